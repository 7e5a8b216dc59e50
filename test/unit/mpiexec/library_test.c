/* library_test.c - what the file of a program says of its MPI library. The files are copies of this test, whose need of
 * libcmocka.so.0 is turned into that of another library, and damaged copies. */
#include "base/compiler.h"
#include "mpiexec/library.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define NEEDED "libcmocka.so.0"

static char path[] = "/tmp/tern-library-XXXXXX";
static uint8_t *own;
static size_t own_size;

static int read_self(void **state)
{
    FILE *f = fopen("/proc/self/exe", "r");
    struct stat st;
    (void)state;
    if (!f || fstat(fileno(f), &st)) return -1;
    own_size = (size_t)st.st_size;
    own = malloc(own_size);
    size_t n = own ? fread(own, 1, own_size, f) : 0;
    fclose(f);
    int fd = mkstemp(path);
    if (fd >= 0) close(fd);
    return n == own_size && fd >= 0 ? 0 : -1;
}

static int forget_self(void **state)
{
    (void)state;
    free(own);
    return unlink(path);
}

static struct library look(const uint8_t *bytes, size_t n)
{
    struct library l;
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
    library_of(&l, AT_FDCWD, path);
    return l;
}

/* This program, if it needed `name`. */
static struct library with(const char *name)
{
    uint8_t *copy = malloc(own_size);
    memcpy(copy, own, own_size);
    for (uint8_t *at = copy; (at = memmem(at, own_size - (size_t)(at - copy), NEEDED, sizeof NEEDED)); at++)
        if (at > copy && !at[-1]) strcpy((char *)at, name);
    struct library l = look(copy, own_size);
    free(copy);
    return l;
}

static void libraries(void **state)
{
    (void)state;
    assert_int_equal(look(own, own_size).kind, LIBRARY_UNKNOWN);
    assert_int_equal(with("libmpi_abi.so.").kind, LIBRARY_TERN);
    assert_false(with("libmpi_abi.so.").pmix);
    assert_int_equal(with("libmpich.so.12").kind, LIBRARY_OTHER);
    assert_string_equal(with("libmpich.so.12").name, "libmpich.so.12");
    assert_int_equal(with("libmpi.so.40").kind, LIBRARY_OTHER);
    assert_int_equal(with("libm.so.6").kind, LIBRARY_UNKNOWN);
    assert_true(with("libpmix.so.2").pmix);
    assert_string_equal(library_family("libmpi.so.40"), "Open MPI");
    assert_string_equal(library_family("libmpich.so.12"), "MPICH");
    assert_non_null(strstr(library_family("libmpi.so.12"), "Intel"));
    assert_null(library_family("libmpi_abi.so.1"));
}

static void files_of_other_kinds(void **state)
{
    struct library l;
    (void)state;
    assert_int_equal(look((const uint8_t *)"#!/bin/sh\n", 10).kind, LIBRARY_UNKNOWN);
    assert_int_equal(look(own, 0).kind, LIBRARY_UNKNOWN);
    library_of(&l, AT_FDCWD, "/no/such/file");
    assert_int_equal(l.kind, LIBRARY_UNKNOWN);
    library_of(&l, AT_FDCWD, "/");
    assert_int_equal(l.kind, LIBRARY_UNKNOWN);
}

/* No byte behind the end is read: under a sanitizer or not, a mapping ends there. */
static void damaged_files(void **state)
{
    unsigned seed = 20;
    uint8_t *copy = malloc(own_size);
    (void)state;
    for (size_t n = 1; n < own_size; n += n < 2048 ? 7 : 4099) look(own, n);
    for (int i = 0; i < 300; i++) {
        memcpy(copy, own, own_size);
        for (int k = 0; k < 8; k++) { /* in the headers, where the offsets are */
            seed = seed * 1103515245 + 12345;
            copy[16 + (seed >> 8) % 1024] = (uint8_t)(seed >> 24);
        }
        look(copy, own_size);
    }
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(libraries), cmocka_unit_test(files_of_other_kinds),
                                       cmocka_unit_test(damaged_files)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, read_self, forget_self);
}
