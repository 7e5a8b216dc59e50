/* stray_test.c - when processes that cannot find each other are noticed, by which of them, and when nothing is said. */
#include "base/compiler.h"
#include "base/err.h"
#include "base/var.h"
#include "proc/stray.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* stray_check with these variables ("A=1 B=2") and no others; what it printed is in `said`. */
static char said[1000];
static int check_with(const char *variables)
{
    char list[400], *at = list, *word, path[] = "/tmp/tern-test-XXXXXX";
    int fd = mkstemp(path), err = dup(STDERR_FILENO);
    unlink(path);
    clearenv();
    snprintf(list, sizeof list, "%s", variables);
    while ((word = strsep(&at, " "))) {
        char *equals = strchr(word, '=');
        if (!equals) continue;
        *equals = 0;
        setenv(word, equals + 1, 1);
    }
    var_close();
    assert_int_equal(var_open(), 0);
    fflush(stderr);
    dup2(fd, STDERR_FILENO);
    err_clear();
    int rc = stray_check();
    fflush(stderr);
    dup2(err, STDERR_FILENO);
    close(err);
    ssize_t n = pread(fd, said, sizeof said - 1, 0);
    said[n > 0 ? n : 0] = 0;
    close(fd);
    return rc;
}

#define STEP "SLURM_JOB_ID=7 SLURM_NTASKS=4 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 "

static void the_first_of_several_says_so(void **state)
{
    static const char *const first[][2] = {
        {STEP "SLURM_PROCID=0", "Slurm started this program as 4 processes"},
        {"OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0", "Open MPI's mpirun"},
        {"PMI_SIZE=3 PMI_RANK=0", "PMI_SIZE=3"},
        {"PALS_RANKID=1", "PALS started this program as several processes"},
        {"ALPS_APP_PE=1", "ALPS"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(first); i++) {
        assert_int_equal(check_with(first[i][0]), 0);
        assert_memory_equal(said, "tern: ", 6);
        assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1); /* one line */
        assert_non_null(strstr(said, first[i][1]));
        assert_non_null(strstr(said, "TERN_SINGLETON=allow"));
    }
}

static void nothing_is_said_without_need(void **state)
{
    static const char *const quiet[] = {
        "",
        STEP "SLURM_PROCID=1", /* rank 0 does */
        "PALS_RANKID=0",
        "PALS_RANKID=2",
        "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1",
        "SLURM_JOB_ID=7 SLURM_NTASKS=4 SLURM_NPROCS=4",                /* the shell of salloc */
        "SLURM_JOB_ID=7 SLURM_NTASKS=4 SLURM_PROCID=0 SLURM_NODEID=0", /* a batch script */
        "SLURM_NTASKS=4 SLURM_PROCID=0 SLURM_STEP_ID=batch SLURM_STEP_NUM_TASKS=4",
        "SLURM_NTASKS=4 SLURM_PROCID=0 SLURM_STEP_ID=4294967291 SLURM_STEP_NUM_TASKS=4",
        STEP "SLURM_PROCID=0 SLURM_PTY_PORT=1", /* srun --pty */
        "SLURM_NTASKS=4 SLURM_PROCID=0 SLURM_STEP_ID=3 SLURM_STEP_NUM_TASKS=1",
        "OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0",
        "PMI_SIZE=1 PMI_RANK=0",
        "PMI_SIZE=x PMI_RANK=0",
        "PMI_SIZE=2 PMI_RANK=-1",
        STEP "SLURM_PROCID=0 TERN_SINGLETON=allow",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(quiet); i++) {
        assert_int_equal(check_with(quiet[i]), 0);
        assert_string_equal(said, "");
    }
}

static void it_can_be_an_error(void **state)
{
    (void)state;
    assert_int_equal(check_with(STEP "SLURM_PROCID=0 TERN_SINGLETON=error"), TERN_ERR_SYSTEM);
    assert_string_equal(said, "");
    assert_non_null(strstr(err_words(), "SLURM_STEP_NUM_TASKS=4"));
    assert_int_equal(check_with(STEP "SLURM_PROCID=3 TERN_SINGLETON=error"), TERN_ERR_SYSTEM);
    assert_non_null(strstr(err_words(), "process 0"));
    assert_int_equal(check_with("TERN_SINGLETON=error"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_of_several_says_so),
        cmocka_unit_test(nothing_is_said_without_need),
        cmocka_unit_test(it_can_be_an_error),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
