/* native_test.c - the job block: places and cards of all ranks, waiting for a card, and blocks that are none. */
#include "../transport/party.h"
#include "base/err.h"
#include "base/sleep.h"
#include "base/var.h"
#include "proc/job_block.h"
#include "proc/proc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static bool exchange(void)
{
    char card[64], got[JOB_CARD_MAX];
    PARTY_CHECK(var_open() == 0 && proc_open() == 0);
    const struct proc_info *me = proc_self();
    PARTY_CHECK(!strcmp(me->bootstrap, "native") && !strncmp(me->job, "party0.", 7));
    PARTY_CHECK(me->rank == party_rank && me->size == party->size && me->local_rank == party_rank);
    PARTY_CHECK(me->local_size == party->size && me->nodes == 1 && me->node == 0 && me->usable_cpus >= 1);
    PARTY_CHECK(me->oversubscribed == (party->size > me->usable_cpus));
    if (party_rank == 1) usleep(50000); /* its card is waited for */
    snprintf(card, sizeof card, "card of %u", party_rank);
    PARTY_CHECK(proc_card_put(card, strlen(card) + 1 + party_rank) == 0);
    for (uint32_t r = 0; r < party->size; r++) {
        snprintf(card, sizeof card, "card of %u", r);
        PARTY_CHECK(proc_card_get(r, got, sizeof got) == (int)(strlen(card) + 1 + r));
        PARTY_CHECK(!strcmp(got, card));
        PARTY_CHECK(proc_node_of(r) == 0);
    }
    PARTY_CHECK(proc_card_get(party->size, got, sizeof got) == TERN_ERR_RANK);
    PARTY_CHECK(proc_card_get(0, got, 3) < 0);
    proc_state(JOB_LIFE_INITIALISED);
    proc_close();
    return true;
}

static bool too_large_a_card(void)
{
    static char card[JOB_CARD_MAX + 1];
    PARTY_CHECK(var_open() == 0 && proc_open() == 0);
    PARTY_CHECK(proc_card_put(card, sizeof card) < 0);
    PARTY_CHECK(proc_card_put(card, JOB_CARD_MAX) == 0);
    return true;
}

static void cards_are_exchanged(void **state)
{
    (void)state;
    assert_true(party_run(4, exchange));
    assert_true(party_run(1, too_large_a_card));
}

/* ---- cards of another node: this process is rank 0 on node 0, rank 1 is on node 1, and the test plays the launcher ---- */

static struct job_head *two_nodes(int *fd_p, int wanted_pipe)
{
    uint64_t place, card, bytes = job_layout(2, &place, &card);
    int fd = *fd_p = memfd_create("block", 0);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    struct job_head *h = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(h != MAP_FAILED);
    *h = (struct job_head){.magic = JOB_MAGIC, .version = JOB_VERSION, .bytes = bytes, .size = 2, .nodes = 2, .local_size = 1,
                           .usable_cpus = 2, .place_off = place, .card_off = card, .name = "job", .wanted_pipe = wanted_pipe};
    job_places(h)[1].node = 1;
    return h;
}

static int open_by_block(int fd)
{
    char text[16];
    snprintf(text, sizeof text, "%d", fd);
    setenv(JOB_ENV_FD, text, 1);
    setenv(JOB_ENV_RANK, "0", 1);
    setenv("TERN_BOOTSTRAP", "native", 1);
    return var_open() || proc_open();
}

static void close_all(void)
{
    proc_close();
    var_close();
}

struct launcher {
    struct job_head *block;
    int wanted_pipe;
    bool good;
};

/* Waits for a byte in the pipe, and for the bit; brings the card. */
static void *bring_card(void *arg)
{
    struct launcher *l = arg;
    struct job_card *c = &job_cards(l->block)[1];
    char byte;
    l->good = read(l->wanted_pipe, &byte, 1) == 1 && atomic_exchange(&job_wanted(l->block)[0], 0) == 2 &&
              atomic_exchange(&c->state, JOB_CARD_WANTED) == JOB_CARD_EMPTY;
    usleep(20000);
    c->len = 5;
    memcpy(c->data, "hello", 5);
    atomic_store(&c->state, JOB_CARD_HERE);
    futex_wake_all(&c->state);
    return NULL;
}

static void cards_of_other_nodes_are_asked_for(void **state)
{
    int ends[2], fd;
    char got[JOB_CARD_MAX];
    (void)state;
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    fcntl(ends[0], F_SETFL, 0);
    struct launcher l = {.block = two_nodes(&fd, ends[1]), .wanted_pipe = ends[0]};
    assert_int_equal(open_by_block(fd), 0);
    assert_int_equal(proc_node_of(1), 1);
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, bring_card, &l), 0);
    assert_int_equal(proc_card_get(1, got, sizeof got), 5);
    assert_memory_equal(got, "hello", 5);
    pthread_join(t, NULL);
    assert_true(l.good);
    assert_int_equal(proc_card_get(1, got, sizeof got), 5); /* nobody is asked again */
    assert_int_equal(atomic_load(&job_wanted(l.block)[0]), 0);
    close_all();
    close(fd);
    close(ends[0]);
    close(ends[1]);
}

/* Another rank of the node wanted the same card, and was killed just before it told the launcher, or the launcher has not looked
 * yet: this one tells the launcher itself. The others waited until the end of the job once. */
static void a_card_that_a_dead_rank_wanted_is_asked_for(void **state)
{
    (void)state;
    for (int asked = 0; asked < 2; asked++) {
        int ends[2], fd;
        char byte;
        assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
        struct job_head *h = two_nodes(&fd, ends[1]);
        assert_int_equal(open_by_block(fd), 0);
        atomic_store(&job_wanted(h)[0], 2);
        if (asked) atomic_store(&job_cards(h)[1].state, JOB_CARD_WANTED); /* by the launcher: once is enough */
        assert_false(proc_card_there(1));
        assert_int_equal(atomic_load(&job_wanted(h)[0]), 2);
        assert_int_equal(read(ends[0], &byte, 1) == 1, !asked);
        close_all();
        close(fd);
        close(ends[0]);
        close(ends[1]);
    }
}

/* A rank that wants a card leaves nothing behind, if it is killed, that keeps others from asking: at any moment the card is EMPTY,
 * or the launcher has set it to WANTED. */
static void a_rank_does_not_set_wanted(void **state)
{
    int ends[2], fd;
    (void)state;
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    struct job_head *h = two_nodes(&fd, ends[1]);
    assert_int_equal(open_by_block(fd), 0);
    assert_false(proc_card_there(1));
    assert_int_equal(atomic_load(&job_cards(h)[1].state), JOB_CARD_EMPTY);
    assert_int_equal(atomic_load(&job_wanted(h)[0]), 2);
    close_all();
    close(fd);
    close(ends[0]);
    close(ends[1]);
}

/* The launcher of the owner's node hears of a card that it waits for, and of no other. */
static void own_cards_are_announced_when_wanted(void **state)
{
    (void)state;
    for (int wanted = 0; wanted < 2; wanted++) {
        int ends[2], fd;
        char byte;
        assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
        struct job_head *h = two_nodes(&fd, ends[1]);
        assert_int_equal(open_by_block(fd), 0);
        if (wanted) atomic_store(&job_cards(h)[0].state, JOB_CARD_WANTED);
        assert_int_equal(proc_card_put("me", 3), 0);
        assert_int_equal(atomic_load(&job_cards(h)[0].state), JOB_CARD_HERE);
        assert_int_equal(read(ends[0], &byte, 1) == 1, wanted);
        assert_int_equal(atomic_load(&job_wanted(h)[0]), wanted);
        close_all();
        close(fd);
        close(ends[0]);
        close(ends[1]);
    }
}

static void a_closed_pipe_is_an_error_in_words(void **state)
{
    int ends[2], fd;
    char got[JOB_CARD_MAX];
    (void)state;
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    two_nodes(&fd, ends[1]);
    assert_int_equal(open_by_block(fd), 0);
    int other = open("/dev/null", O_RDWR);
    dup2(other, ends[1]); /* the number is the program's now */
    assert_int_equal(proc_card_get(1, got, sizeof got), TERN_ERR_SYSTEM);
    assert_non_null(strstr(err_words(), "not open any more"));
    close_all();
    close(fd);
    close(other);
    close(ends[0]);
    close(ends[1]);
}

/* ---- a rank is one process at a time ---- */

static int exit_code_of(pid_t pid)
{
    int status = -1;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* While this process is rank 0, no other can be; the words say which it is. */
static void a_second_process_is_refused(void **state)
{
    int fd;
    (void)state;
    struct job_head *h = two_nodes(&fd, 0);
    assert_int_equal(open_by_block(fd), 0);
    pid_t pid = fork();
    if (!pid) {
        char number[16];
        snprintf(number, sizeof number, " %d,", (int)getppid());
        _exit(proc_open() != TERN_ERR_SYSTEM || !strstr(err_words(), number) || !strstr(err_words(), "mpiexec -n 1"));
    }
    assert_int_equal(exit_code_of(pid), 0);
    close_all();
    munmap(h, h->bytes);
    close(fd); /* the lock goes with it */
}

/* A later process of rank 0 does not take the card that an earlier one of rank 1 has left. */
static void cards_of_earlier_processes_are_not_taken(void **state)
{
    int fd;
    char got[JOB_CARD_MAX];
    (void)state;
    struct job_head *h = two_nodes(&fd, 0);
    job_places(h)[1].node = 0;
    struct job_card *c = job_cards(h);
    for (int r = 0; r < 2; r++) { /* what the first two have left */
        c[r].turns = 1;
        c[r].len = 5;
        memcpy(c[r].data, "first", 5);
        c[r].state = JOB_CARD_HERE;
    }
    assert_int_equal(open_by_block(fd), 0);
    assert_int_equal(proc_card_put("second", 6), 0);
    assert_int_equal(c[0].turns, 2);
    assert_false(proc_card_there(1));
    pid_t pid = fork();
    if (!pid) { /* the second process of rank 1 */
        usleep(20000);
        memcpy(c[1].data, "other", 5);
        atomic_store(&c[1].state, JOB_CARD_EMPTY);
        atomic_store(&c[1].turns, 2);
        futex_wake_all(&c[1].state);
        usleep(20000);
        atomic_store(&c[1].state, JOB_CARD_HERE);
        futex_wake_all(&c[1].state);
        _exit(0);
    }
    assert_int_equal(proc_card_get(1, got, sizeof got), 5);
    assert_memory_equal(got, "other", 5);
    assert_int_equal(exit_code_of(pid), 0);
    atomic_store(&c[1].turns, 3);
    assert_int_equal(proc_card_get(1, got, sizeof got), TERN_ERR_PEER);
    assert_non_null(strstr(err_words(), "another MPI program"));
    close_all();
    munmap(h, h->bytes);
    close(fd);
}

/* A rank that has ended without a card is not waited for. */
static void cards_of_the_ended_are_errors_in_words(void **state)
{
    int fd;
    char got[JOB_CARD_MAX];
    (void)state;
    struct job_head *h = two_nodes(&fd, 0);
    job_places(h)[1].node = 0;
    assert_int_equal(open_by_block(fd), 0);
    assert_int_equal(proc_card_put("me", 2), 0);
    assert_false(proc_card_there(1));
    pid_t pid = fork();
    if (!pid) { /* the launcher */
        usleep(20000);
        atomic_fetch_or(&job_cards(h)[1].life, JOB_ENDED);
        futex_wake_all(&job_cards(h)[1].state);
        _exit(0);
    }
    assert_int_equal(proc_card_get(1, got, sizeof got), TERN_ERR_PEER);
    assert_non_null(strstr(err_words(), "rank 1 of the job has ended without calling MPI_Init"));
    assert_true(proc_card_there(1));
    assert_int_equal(exit_code_of(pid), 0);
    close_all();
    munmap(h, h->bytes);
    close(fd);
}

/* ---- descriptors that are no job block: words, and never a fault ---- */

static int with_descriptor(int fd, const char *rank)
{
    char text[16];
    snprintf(text, sizeof text, "%d", fd);
    setenv(JOB_ENV_FD, text, 1);
    setenv(JOB_ENV_RANK, rank, 1);
    setenv("TERN_BOOTSTRAP", "native", 1);
    err_clear();
    assert_int_equal(var_open(), 0);
    int rc = proc_open();
    proc_close();
    var_close();
    return rc;
}

static void strange_descriptors_are_refused_in_words(void **state)
{
    (void)state;
    assert_int_equal(with_descriptor(900, "0"), TERN_ERR_SYSTEM);
    assert_non_null(strstr(err_words(), "900"));
    int fd = open("/dev/null", O_RDWR);
    assert_int_equal(with_descriptor(fd, "0"), TERN_ERR_SYSTEM);
    close(fd);
    fd = memfd_create("short", 0);
    assert_int_equal(ftruncate(fd, 100), 0);
    assert_int_equal(with_descriptor(fd, "0"), TERN_ERR_SYSTEM);
    assert_int_equal(ftruncate(fd, 100000), 0); /* zeros */
    assert_int_equal(with_descriptor(fd, "0"), TERN_ERR_SYSTEM);
    assert_non_null(strstr(err_words(), "version"));
    close(fd);
}

/* Every field that is believed is checked. */
static void damaged_blocks_are_refused(void **state)
{
    uint64_t place, card, bytes = job_layout(3, &place, &card);
    int fd = memfd_create("block", 0);
    (void)state;
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    struct job_head *h = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(h != MAP_FAILED);
    const struct job_head good = {.magic = JOB_MAGIC, .version = JOB_VERSION, .bytes = bytes, .size = 3, .nodes = 1,
                                  .local_size = 3, .usable_cpus = 2, .place_off = place, .card_off = card, .name = "job"};
    memcpy(h, &good, sizeof good);
    assert_int_equal(with_descriptor(fd, "2"), 0);
    assert_int_equal(with_descriptor(fd, "3"), TERN_ERR_SYSTEM);
    assert_int_equal(with_descriptor(fd, "-1"), TERN_ERR_NOT_FOUND);
    assert_int_equal(with_descriptor(fd, "2x"), TERN_ERR_NOT_FOUND);
    for (int damage = 0; damage < 6; damage++) {
        memcpy(h, &good, sizeof good);
        if (damage == 0) h->magic++;
        if (damage == 1) h->version++;
        if (damage == 2) h->bytes += 4096;
        if (damage == 3) h->size = 1u << 30;
        if (damage == 4) h->place_off += 64;
        if (damage == 5) h->card_off = bytes;
        assert_int_equal(with_descriptor(fd, "2"), TERN_ERR_SYSTEM);
    }
    munmap(h, bytes);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cards_are_exchanged),
        cmocka_unit_test(cards_of_other_nodes_are_asked_for),
        cmocka_unit_test(a_card_that_a_dead_rank_wanted_is_asked_for),
        cmocka_unit_test(a_rank_does_not_set_wanted),
        cmocka_unit_test(own_cards_are_announced_when_wanted),
        cmocka_unit_test(a_closed_pipe_is_an_error_in_words),
        cmocka_unit_test(a_second_process_is_refused),
        cmocka_unit_test(cards_of_earlier_processes_are_not_taken),
        cmocka_unit_test(cards_of_the_ended_are_errors_in_words),
        cmocka_unit_test(strange_descriptors_are_refused_in_words),
        cmocka_unit_test(damaged_blocks_are_refused),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
