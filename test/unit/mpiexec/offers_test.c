/* offers_test.c - tickets for files of memory; the test plays the asker, and a child of it a rank that has a file. */
#include "base/err.h"
#include "base/memfile.h"
#include "mpiexec/offers.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define DOOR 0x1122334455667788u
#define RANK 1 /* the child; rank 0 is nobody */

static struct job job;
static struct job_head head;
static pid_t child;
static int childs_fd;
static uint64_t key;

/* The answer that came last. */
static struct {
    int status;
    uint64_t door;
    uint8_t ticket[ASK_TICKET];
} last;

void asks_answer(const struct asker *a, int status, const void *bytes, size_t n)
{
    struct ask_in in = ask_of(bytes, n);
    (void)a;
    last.status = status;
    last.door = ask_get64(&in);
    memcpy(last.ticket, ask_get(&in, ASK_TICKET), ASK_TICKET);
    assert_true(ask_done(&in));
}

void asks_refuse(const struct asker *a, int status, const char *fmt, ...)
{
    (void)a, (void)fmt;
    last.status = status;
}

static int make(uint32_t rank, uint32_t fd, uint64_t of)
{
    static const struct asker nobody;
    last.status = 1;
    offers_make(&nobody, DOOR, rank, fd, of);
    return last.status;
}

static int open_files(void)
{
    int n = 0;
    for (int fd = 0; fd < 1024; fd++) n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* A process that holds the lock of its rank, and has the file that the test made before. */
static int start_rank(void **state)
{
    char byte;
    int ready[2], block = memfd_create("block", MFD_CLOEXEC);
    (void)state;
    childs_fd = memfd_create("memory", MFD_CLOEXEC);
    if (block < 0 || childs_fd < 0 || ftruncate(block, 16) || ftruncate(childs_fd, 4096) || pipe(ready)) return -1;
    key = memfile_key(memfile_id_of(childs_fd));
    job = (struct job){.size = 2, .base = event_base_new(), .block = {.fd = block, .memory = -1, .head = &head}};
    child = fork();
    if (!child) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = RANK, .l_len = 1};
        if (fcntl(block, F_SETLK, &lock) || write(ready[1], "", 1) != 1) _exit(1);
        for (;;) pause();
    }
    bool good = child > 0 && read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    close(ready[1]);
    offers_open(&job);
    return good ? 0 : -1;
}

static int end_rank(void **state)
{
    (void)state;
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    event_base_free(job.base);
    close(job.block.fd);
    close(childs_fd);
    return 0;
}

static void a_ticket_is_good_once(void **state)
{
    (void)state;
    int before = open_files();
    assert_int_equal(make(RANK, (uint32_t)childs_fd, key), 0);
    assert_true(last.door == DOOR);
    int fd = offers_take(last.ticket, sizeof last.ticket);
    assert_true(fd >= 0 && memfile_key(memfile_id_of(fd)) == key);
    assert_int_equal(offers_take(last.ticket, sizeof last.ticket), -1);
    close(fd);
    assert_int_equal(open_files(), before);
}

static void a_wrong_ticket_is_none(void **state)
{
    uint8_t wrong[ASK_TICKET + 1] = {0};
    (void)state;
    assert_int_equal(make(RANK, (uint32_t)childs_fd, key), 0);
    for (int i = 0; i < ASK_TICKET; i++) {
        memcpy(wrong, last.ticket, ASK_TICKET);
        wrong[i] ^= 1;
        assert_int_equal(offers_take(wrong, ASK_TICKET), -1);
    }
    memcpy(wrong, last.ticket, ASK_TICKET);
    assert_int_equal(offers_take(wrong, ASK_TICKET - 1), -1);
    assert_int_equal(offers_take(wrong, ASK_TICKET + 1), -1);
    assert_int_equal(offers_take(wrong, 0), -1);
    int fd = offers_take(last.ticket, ASK_TICKET); /* none of that has used it up */
    assert_true(fd >= 0);
    close(fd);
}

static void two_tickets_are_different(void **state)
{
    uint8_t first[ASK_TICKET];
    (void)state;
    assert_int_equal(make(RANK, (uint32_t)childs_fd, key), 0);
    memcpy(first, last.ticket, sizeof first);
    assert_int_equal(make(RANK, (uint32_t)childs_fd, key), 0);
    assert_memory_not_equal(first, last.ticket, sizeof first);
    close(offers_take(last.ticket, ASK_TICKET));
    close(offers_take(first, ASK_TICKET));
}

/* Only the file with the key that was asked for, of a rank that lives. */
static void other_files_are_refused(void **state)
{
    int before = open_files();
    (void)state;
    assert_int_equal(make(RANK, (uint32_t)childs_fd, key + 1), TERN_ERR_PEER);
    assert_int_equal(make(RANK, (uint32_t)job.block.fd, key), TERN_ERR_PEER);
    assert_int_equal(make(RANK, 0, key), TERN_ERR_PEER);
    assert_int_equal(make(RANK, 1000000, key), TERN_ERR_PEER);
    assert_int_equal(make(RANK, UINT32_MAX, key), TERN_ERR_PEER);
    assert_int_equal(make(0, (uint32_t)childs_fd, key), TERN_ERR_PEER); /* no process is this rank */
    assert_int_equal(open_files(), before);
}

static void the_dead_give_nothing(void **state)
{
    (void)state;
    assert_int_equal(make(RANK, (uint32_t)childs_fd, key), 0);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    child = 0;
    int fd = offers_take(last.ticket, ASK_TICKET); /* taken before it died */
    assert_true(fd >= 0 && memfile_key(memfile_id_of(fd)) == key);
    close(fd);
    assert_int_equal(make(RANK, (uint32_t)childs_fd, key), TERN_ERR_PEER);
}

/* Whoever asks without end gets no more than 256 at a time, and the launcher keeps its descriptors. What nobody comes
 * for is closed after 10 s. */
static void what_nobody_takes_is_closed(void **state)
{
    int before = open_files(), n = 0;
    (void)state;
    while (n < 1000 && !make(RANK, (uint32_t)childs_fd, key)) n++;
    assert_int_equal(n, 256);
    assert_int_equal(open_files(), before + n);
    event_base_dispatch(job.base); /* until there is nothing to wait for any more */
    assert_int_equal(open_files(), before);
    assert_int_equal(offers_take(last.ticket, ASK_TICKET), -1);
    assert_int_equal(make(RANK, (uint32_t)childs_fd, key), 0);
    close(offers_take(last.ticket, ASK_TICKET));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_ticket_is_good_once, start_rank, end_rank),
        cmocka_unit_test_setup_teardown(a_wrong_ticket_is_none, start_rank, end_rank),
        cmocka_unit_test_setup_teardown(two_tickets_are_different, start_rank, end_rank),
        cmocka_unit_test_setup_teardown(other_files_are_refused, start_rank, end_rank),
        cmocka_unit_test_setup_teardown(the_dead_give_nothing, start_rank, end_rank),
        cmocka_unit_test_setup_teardown(what_nobody_takes_is_closed, start_rank, end_rank),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
