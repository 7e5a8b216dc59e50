/*
 * closing_test.c - peers of another job are closed when no communicator needs them any more, on both sides, whatever
 * the communicators are and in whatever order they go; and nothing that is still to be sent or received is lost by
 * that. Takes the arguments of party_cycles.h.
 */
#include "../comm/two_jobs.h"
#include "../transport/party_cycles.h"
#include "base/err.h"
#include "obj/comm.h"
#include "proc/jobs.h"
#include "pt2pt/api.h"
#include "pt2pt/closing.h"
#include "pt2pt/protocol.h"
#include "transport/peer.h"
#include "transport/wires.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONG = 200000, MADE = 5 };

static const uint32_t sizes[2] = {2, 3}, pair[2] = {1, 1};
static uint64_t seed;

static void turns(int n)
{
    for (int i = 0; i < n; i++) {
        pt_progress_once(NULL);
        sched_yield();
    }
}

/* Each to each process of the other job, of this many bytes. */
static bool exchange(MPI_Comm inter, int bytes)
{
    static char out[LONG], in[PARTY_MAX][LONG];
    MPI_Request q[2 * PARTY_MAX];
    memset(out, 16 * (int)party_job + two_rank, (size_t)bytes);
    memset(in, 0, sizeof in);
    for (int r = 0; r < two_others; r++) {
        PARTY_CHECK(!MPI_Irecv(in[r], LONG, MPI_CHAR, r, 5, inter, &q[2 * r]));
        PARTY_CHECK(!MPI_Isend(out, bytes, MPI_CHAR, r, 5, inter, &q[2 * r + 1]));
    }
    PARTY_CHECK(!MPI_Waitall(2 * two_others, q, MPI_STATUSES_IGNORE));
    for (int r = 0; r < two_others; r++)
        for (int i = 0; i < bytes; i++) PARTY_CHECK(in[r][i] == (char)(16 * (1 - (int)party_job) + r));
    return true;
}

/* All that can be made of an intercommunicator, with it: two intercommunicators, three of one group. */
static bool make_all(MPI_Comm made[MADE])
{
    int me;
    PARTY_CHECK(!MPI_Comm_dup(made[0], &made[1]) && !MPI_Intercomm_merge(made[0], (int)party_job, &made[2]));
    MPI_Comm_rank(made[2], &me);
    PARTY_CHECK(!MPI_Comm_split(made[2], me % 2, me, &made[3]) && !MPI_Comm_dup(made[2], &made[4]));
    return true;
}

static bool sums(MPI_Comm comm)
{
    int sum = 0, n = 0, one = 1;
    MPI_Comm_size(comm, &n);
    PARTY_CHECK(!MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm) && sum == n);
    return true;
}

/* ---- freeing closes ---- */

/* In an order by its number; some by MPI_Comm_disconnect, which is collective, so that it is the same everywhere. */
static bool end_all(MPI_Comm made[MADE], uint64_t order, bool free_only)
{
    for (int left = MADE; left; left--, order /= 7) {
        int i = (int)(order % (uint64_t)left);
        bool disconnect = !free_only && order % 3 == 0;
        PARTY_CHECK(left == 1 || jobs_others() == 1);
        PARTY_CHECK(!(disconnect ? MPI_Comm_disconnect : MPI_Comm_free)(&made[i]) && made[i] == MPI_COMM_NULL);
        made[i] = made[left - 1];
        made[left - 1] = MPI_COMM_NULL;
    }
    return true;
}

static bool all_orders(void)
{
    PARTY_CHECK(two_open());
    for (uint64_t i = 0; i < 24; i++) {
        MPI_Comm made[MADE];
        PARTY_CHECK(two_connect(i + 1, &made[0]) && make_all(made));
        PARTY_CHECK(exchange(made[1], i % 2 ? 100 : LONG) && sums(made[2]) && sums(made[3]));
        PARTY_CHECK(end_all(made, i * 131, i % 2));
        PARTY_CHECK(two_apart());
        PARTY_CHECK(sums(MPI_COMM_WORLD));
    }
    two_close();
    return true;
}

/* Of two communicators to the same job, one goes: the peers stay connected as they are. */
static bool one_of_two(void)
{
    MPI_Comm inter, dup;
    PARTY_CHECK(two_open() && two_connect(1, &inter) && !MPI_Comm_dup(inter, &dup) && exchange(dup, 1000));
    const struct peer *before = peer_table[two_size];
    MPI_Comm_free(&inter);
    turns(2000);
    PARTY_CHECK(before && peer_table[two_size] == before && !(before->flags & PEER_IDLE));
    PARTY_CHECK(exchange(dup, 1000) && exchange(dup, LONG) && jobs_others() == 1);
    MPI_Comm_free(&dup);
    PARTY_CHECK(two_apart());
    two_close();
    return true;
}

/* A turn of progress walks no communicators, however many there are: it looks at a count, which each that comes or goes
 * changes. */
static bool counted(void)
{
    MPI_Comm inter, dup, merged, more, half;
    int me;
    PARTY_CHECK(two_open() && two_connect(1, &inter) && !MPI_Comm_dup(inter, &dup) && exchange(dup, 1000));
    PARTY_CHECK(!MPI_Intercomm_merge(inter, (int)party_job, &merged) && !MPI_Comm_rank(merged, &me));
    const struct peer *p = peer_table[two_size];
    MPI_Comm_free(&inter);
    turns(10);
    PARTY_CHECK(peer_table[two_size] == p && p->comms == 2);
    PARTY_CHECK(!MPI_Comm_dup(merged, &more) && p->comms == 3);
    PARTY_CHECK(!MPI_Comm_split(merged, two_rank, me, &half) && p->comms == 3 + (two_rank == 0));
    MPI_Comm_free(&half);
    PARTY_CHECK(p->comms == 3 && !MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &half) && p->comms == 3);
    MPI_Comm_free(&half);
    MPI_Comm_free(&dup);
    MPI_Comm_free(&merged);
    PARTY_CHECK(p->comms == 1 && sums(more));
    MPI_Comm_free(&more);
    PARTY_CHECK(two_apart());
    PARTY_CHECK(two_connect(2, &inter) && !MPI_Comm_dup(inter, &dup) && exchange(dup, 1000));
    MPI_Comm_free(&inter);
    turns(10);
    PARTY_CHECK(peer_table[two_size] && peer_table[two_size]->comms == 1); /* the next peer of this index begins anew */
    MPI_Comm_free(&dup);
    PARTY_CHECK(two_apart());
    two_close();
    return true;
}

/* Job 0 frees, job 1 goes on for a while, receives what was sent to it, and frees then. */
static bool one_is_late(void)
{
    enum { MESSAGES = 50 };
    MPI_Comm inter;
    int number;
    PARTY_CHECK(two_open() && two_connect(1, &inter) && exchange(inter, LONG));
    for (int i = 0; i < MESSAGES && !party_job; i++) MPI_Send(&i, 1, MPI_INT, 0, 0, inter);
    if (!party_job) {
        MPI_Comm_free(&inter);
        turns(2000);
        PARTY_CHECK(jobs_others() == 1); /* for the other side needs it */
        party_meet();
        PARTY_CHECK(two_apart());
        two_close();
    }
    party_meet();
    turns(2000);
    PARTY_CHECK(jobs_others() == 1 && sums(MPI_COMM_WORLD));
    for (int i = 0; i < MESSAGES && !two_rank; i++)
        for (int r = 0; r < two_others; r++)
            PARTY_CHECK(!MPI_Recv(&number, 1, MPI_INT, r, 0, inter, MPI_STATUS_IGNORE) && number == i);
    MPI_Comm_free(&inter);
    PARTY_CHECK(two_apart());
    two_close();
    return true;
}

static void the_last_one_freed_closes(void **state)
{
    (void)state;
    assert_true(two_run_over_all(sizes, all_orders));
}

static void one_of_two_freed_closes_nothing(void **state)
{
    (void)state;
    assert_true(two_run_over_all(sizes, one_of_two));
}

static void whether_a_peer_is_needed_is_a_count(void **state)
{
    (void)state;
    assert_true(two_run_over_all(sizes, counted));
}

static void a_side_that_frees_late_is_waited_for(void **state)
{
    (void)state;
    assert_true(two_run_over_all(sizes, one_is_late));
}

/* ---- connecting anew ---- */

/* Job 0 is idle and makes another communicator: what it sends waits, and comes. The other side has one all the time. */
static bool resumes(void)
{
    MPI_Comm old, new;
    int got = 0, sent = 4711;
    PARTY_CHECK(two_open() && two_connect(1, &old) && exchange(old, 1000));
    if (!party_job) {
        MPI_Comm_free(&old);
        struct peer *p = peer_table[two_size];
        turns(1000);
        PARTY_CHECK(p->flags & PEER_IDLE && !(p->flags & PEER_CLOSING));
        PARTY_CHECK(two_make(2, &new) && !MPI_Send(&sent, 1, MPI_INT, 0, 1, new));
        PARTY_CHECK(peer_table[two_size] == p && !(p->flags & PEER_IDLE));
    } else {
        PARTY_CHECK(two_make(2, &new) && !MPI_Recv(&got, 1, MPI_INT, 0, 1, new, MPI_STATUS_IGNORE) && got == sent);
        MPI_Comm_free(&old);
    }
    PARTY_CHECK(exchange(new, LONG));
    MPI_Comm_free(&new);
    PARTY_CHECK(two_apart());
    two_close();
    return true;
}

static void an_idle_side_resumes(void **state)
{
    (void)state;
    assert_true(two_run_over_all(pair, resumes));
}

/* Job 1 has freed and does not look; job 0 closes, makes the next communicator and sends in it, by the new connection,
 * while job 1 still has the old one. And the other way round: job 1 sends before it has seen the end of the old one. */
static bool meets_the_close(void)
{
    MPI_Comm inter, next;
    PARTY_CHECK(two_open());
    for (uint64_t i = 0; i < 40; i++) {
        PARTY_CHECK(two_connect(2 * i + 1, &inter) && exchange(inter, 100));
        MPI_Comm_free(&inter);
        if (party_job) turns(i % 2 ? 3 : 0);
        party_meet();
        if (!party_job) turns((int)i);
        party_meet();
        PARTY_CHECK(two_make(2 * i + 2, &next));
        for (int bytes = i % 3 ? 10 : LONG; bytes; bytes /= 10) PARTY_CHECK(exchange(next, bytes));
        MPI_Comm_free(&next);
        if (i % 4 == 3) PARTY_CHECK(two_apart());
    }
    PARTY_CHECK(two_apart());
    two_close();
    return true;
}

static void sends_wait_for_the_new_connection(void **state)
{
    (void)state;
    assert_true(two_run_over_all(pair, meets_the_close));
    assert_true(two_run_over_all(sizes, meets_the_close));
}

/* What came by a connection that has been closed is received later, in a communicator that is made later. */
static bool early(void)
{
    MPI_Comm inter, next;
    int sent = 17, got = 0;
    PARTY_CHECK(two_open() && two_connect(1, &inter) && exchange(inter, 100));
    if (party_job) { /* idle before the other side is, and awake */
        MPI_Comm_free(&inter);
        while (!atomic_load(&party->sign[0])) turns(1);
    } else {
        turns(1000);
        PARTY_CHECK(two_make(2, &next) && !MPI_Send(&sent, 1, MPI_INT, 0, 1, next));
        MPI_Comm_free(&next);
        MPI_Comm_free(&inter);
        uint64_t end = clock_ns() + 20000000000u;
        while (peer_count > 1 && clock_ns() < end) turns(1);
        PARTY_CHECK(peer_count == 1);
        atomic_store(&party->sign[0], 1);
    }
    if (party_job) {
        turns(1000);
        PARTY_CHECK(peer_count == 1 && jobs_others() == 1); /* closed; the message is there, and refers to its job */
        PARTY_CHECK(two_make(2, &next) && !MPI_Recv(&got, 1, MPI_INT, 0, 1, next, MPI_STATUS_IGNORE) && got == sent);
        MPI_Comm_free(&next);
    }
    PARTY_CHECK(two_apart());
    two_close();
    return true;
}

static void what_came_before_the_end_is_received(void **state)
{
    (void)state;
    assert_true(two_run_over_all(pair, early));
}

/* Job 1 sends in a communicator that job 0 has freed: nobody receives that, and the peers are closed all the same. */
static bool sends_to_nobody(void)
{
    MPI_Comm inter;
    PARTY_CHECK(two_open() && two_connect(1, &inter) && exchange(inter, 100));
    if (!party_job) MPI_Comm_free(&inter);
    turns(500);
    party_meet();
    for (int i = 0; i < 10 && party_job; i++) PARTY_CHECK(!MPI_Send(&i, 1, MPI_INT, 0, 0, inter));
    if (party_job) MPI_Comm_free(&inter);
    uint64_t end = clock_ns() + 20000000000u;
    while (peer_count > 1 && clock_ns() < end) turns(1);
    PARTY_CHECK(peer_count == 1 && sums(MPI_COMM_WORLD));
    two_close();
    return true;
}

static void a_message_to_nobody_holds_no_connection(void **state)
{
    (void)state;
    assert_true(two_run_over_all(pair, sends_to_nobody));
}

/* ---- what cannot be ---- */

static uint64_t word; /* as in closing.h */

/* Job 0 says it to job 1, which is neither idle nor has been told that job 0 is: it gives job 0 up, in words. */
static bool lies(void)
{
    MPI_Comm inter;
    PARTY_CHECK(two_open() && two_connect(1, &inter) && exchange(inter, 100));
    struct peer *p = peer_table[1];
    if (!party_job) {
        PARTY_CHECK(!p->ep.am_short(&p->ep, AM_CLOSING, word, 0, NULL, 0));
    } else {
        uint64_t end = clock_ns() + 20000000000u;
        while (!p->lost && clock_ns() < end) turns(1);
        PARTY_CHECK(p->lost && strstr(p->lost, "a word about the end of the connection that cannot be now"));
    }
    party_meet();
    _exit(0);
}

static void a_word_that_cannot_be_is_the_end_of_its_sender(void **state)
{
    static const uint64_t words[] = {0, CLOSING_RESUME, CLOSING_RESUMED, CLOSING_CLOSE, 5, UINT64_MAX};
    (void)state;
    setenv("TERN_TRANSPORTS", "self,shm", 1);
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        word = words[i];
        assert_true(party_run_two(pair, lies));
    }
}

/* ---- death ---- */

/* Job 1 ends without a word, while job 0 is idle, or closes. */
static bool is_left(void)
{
    MPI_Comm inter;
    PARTY_CHECK(two_open() && two_connect(1, &inter) && exchange(inter, 100));
    if (party_job) {
        party_meet();
        _exit(0);
    }
    MPI_Comm_free(&inter);
    turns(100);
    party_meet();
    uint64_t end = clock_ns() + 20000000000u;
    while (jobs_others() && clock_ns() < end) {
        turns(1);
        wires_wait_lasts(); /* as a wait would, in time */
    }
    PARTY_CHECK(jobs_others() == 0 && peer_count == sizes[0]);
    atomic_fetch_add(&party->sign[0], 1);
    while (atomic_load(&party->sign[0]) < sizes[0]) turns(1);
    _exit(0);
}

static void the_death_of_the_other_side_closes(void **state)
{
    (void)state;
    setenv("TERN_TRANSPORTS", "self,shm", 1);
    assert_true(party_run_two(sizes, is_left));
    setenv("TERN_TRANSPORTS", "self,tcp", 1);
    assert_true(party_run_two(sizes, is_left));
}

/* ---- again and again ---- */

static uint64_t random_state;

/* Each process by itself looks a few times, or not, before it goes on. */
static bool once(long i)
{
    MPI_Comm made[MADE];
    PARTY_CHECK(two_connect((uint64_t)i + 1, &made[0]));
    if (i % 4) {
        PARTY_CHECK(make_all(made) && sums(made[3]) && end_all(made, (uint64_t)i * 131, i % 2));
    } else {
        PARTY_CHECK(exchange(made[0], i % 3 ? 8 : 20000));
        MPI_Comm_free(&made[0]);
    }
    if (i % 8 == 7)
        PARTY_CHECK(two_apart());
    else
        turns((int)(party_random(&random_state) % 20));
    return true;
}

static bool again(void)
{
    random_state = seed + 10 * party_job + (uint64_t)two_rank;
    PARTY_CHECK(two_open());
    PARTY_CHECK(cycles_go(&(struct cycles){.once = once, .settle = two_apart, .files = 1}));
    two_close();
    return true;
}

static void cycles_leave_nothing(void **state)
{
    (void)state;
    assert_true(cycles_run(sizes, again));
}

int main(int argc, char **argv)
{
    bool alone = cycles_arguments(argc, argv, PARTY_SANITIZED ? 64 : 240);
    seed = party_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_one_freed_closes),
        cmocka_unit_test(one_of_two_freed_closes_nothing),
        cmocka_unit_test(whether_a_peer_is_needed_is_a_count),
        cmocka_unit_test(a_side_that_frees_late_is_waited_for),
        cmocka_unit_test(an_idle_side_resumes),
        cmocka_unit_test(sends_wait_for_the_new_connection),
        cmocka_unit_test(what_came_before_the_end_is_received),
        cmocka_unit_test(a_message_to_nobody_holds_no_connection),
        cmocka_unit_test(a_word_that_cannot_be_is_the_end_of_its_sender),
        cmocka_unit_test(the_death_of_the_other_side_closes),
        cmocka_unit_test(cycles_leave_nothing),
    };
    const struct CMUnitTest only_cycles[] = {cmocka_unit_test(cycles_leave_nothing)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (alone) return cmocka_run_group_tests(only_cycles, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
