/* rights_test.c - descriptors come with the bytes that they were sent with, and only as many as are asked for. */
#include "base/rights.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

static void open_pair(int pair[2]) { assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0); }

static void close_pair(const int pair[2])
{
    close(pair[0]);
    close(pair[1]);
}

static int lowest_free(void)
{
    int fd = dup(0);
    close(fd);
    return fd;
}

static void all_of_them(void **state)
{
    int pair[2], ends[2], came[2];
    char bytes[8], byte = 0;
    (void)state;
    open_pair(pair);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(rights_send(pair[0], "two", 4, ends, 2, 0), 4);
    assert_int_equal(rights_recv(pair[1], bytes, sizeof bytes, came, 2), 4);
    assert_string_equal(bytes, "two");
    assert_true(fcntl(came[0], F_GETFD) & FD_CLOEXEC);
    assert_int_equal(write(came[1], "x", 1), 1);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_int_equal(byte, 'x');
    close_pair(ends);
    close_pair(came);
    close_pair(pair);
}

static void none(void **state)
{
    int pair[2], came = 7;
    char byte;
    (void)state;
    open_pair(pair);
    assert_int_equal(rights_send(pair[0], "", 1, NULL, 0, 0), 1);
    assert_int_equal(rights_recv(pair[1], &byte, 1, &came, 1), 1);
    assert_int_equal(came, -1);
    close(pair[0]);
    came = 7;
    assert_int_equal(rights_recv(pair[1], &byte, 1, &came, 1), 0);
    assert_int_equal(came, -1);
    close(pair[1]);
}

/* Those that nobody has asked for are not left open. */
static void another_number(void **state)
{
    int pair[2], ends[2], came;
    char byte;
    (void)state;
    open_pair(pair);
    assert_int_equal(pipe(ends), 0);
    int before = lowest_free();
    assert_int_equal(rights_send(pair[0], "", 1, ends, 2, 0), 1);
    assert_int_equal(rights_recv(pair[1], &byte, 1, &came, 1), 1);
    assert_int_equal(came, -1);
    assert_int_equal(lowest_free(), before);
    close_pair(ends);
    close_pair(pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_of_them), cmocka_unit_test(none), cmocka_unit_test(another_number)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
