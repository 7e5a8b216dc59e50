/*
 * message_test.c - messages of layers above between processes, of the own job, of another one and to itself, over every
 * transport: of any size up to the largest, whole, once, in order with each other and with sends; across the end of a
 * connection; and to a process that dies.
 */
#include "../comm/two_jobs.h"
#include "base/err.h"
#include "obj/comm.h"
#include "proc/jobs.h"
#include "pt2pt/api.h"
#include "pt2pt/closing.h"
#include "pt2pt/lanes.h"
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

enum { MESSAGES = 40 };

static const uint32_t sizes[2] = {2, 1}, pair[2] = {1, 1};
static uint64_t seed;
static char out[PT_MESSAGE_LARGEST];
static _Atomic uint64_t heard[PARTY_MAX]; /* by the sender's number, see me() */
static _Atomic bool wrong;

/* A number for each process of both jobs. */
static uint64_t me(void) { return party_job * party->job_size[0] + (uint64_t)two_rank; }

static size_t size_of(uint64_t sender, uint64_t k)
{
    uint64_t state = seed + 1000 * sender + k, r = party_random(&state);
    if (k == 3) return PT_MESSAGE_LARGEST;
    return r % (r % 3 ? 5000 : PT_MESSAGE_LARGEST);
}

/* The data of message k begin at this byte of an endless sequence. */
static char byte_of(uint64_t sender, uint64_t k, size_t i) { return (char)(i * 31 + i / 256 + k * 7 + sender); }

static void hear(struct peer *from, uint64_t sender, uint64_t k, const void *data, size_t n)
{
    (void)from;
    bool right = sender < PARTY_MAX && k == atomic_load(&heard[sender]) && n == size_of(sender, k);
    for (size_t i = 0; right && i < n; i++) right = ((const char *)data)[i] == byte_of(sender, k, i);
    if (!right) atomic_store(&wrong, true);
    else atomic_fetch_add(&heard[sender], 1);
}

static bool say(uint32_t index, uint64_t k)
{
    size_t n = size_of(me(), k);
    for (size_t i = 0; i < n; i++) out[i] = byte_of(me(), k, i);
    PARTY_CHECK(pt_message(index, AM_NUMBER, me(), k, out, n) == 0);
    return true;
}

static void turns(int n)
{
    for (int i = 0; i < n; i++) {
        pt_progress_once(NULL);
        sched_yield();
    }
}

/* ---- whole, once and in order ---- */

/* To each process of a communicator, message k before a send of k. */
static bool say_to_all(struct comm *c, MPI_Comm comm, uint64_t k, MPI_Request *q, int *numbers)
{
    numbers[k] = (int)k;
    for (int r = 0; r < comm_peers(c); r++)
        PARTY_CHECK(say(comm_index(c, r), k) && !MPI_Isend(&numbers[k], 1, MPI_INT, r, 7, comm, &q[r]));
    return true;
}

/* What was sent behind a message is received when that has been heard. */
static bool hear_from_all(struct comm *c, MPI_Comm comm, uint64_t first, uint64_t k)
{
    for (int r = 0; r < comm_peers(c); r++) {
        int number = -1;
        PARTY_CHECK(!MPI_Recv(&number, 1, MPI_INT, r, 7, comm, MPI_STATUS_IGNORE) && number == (int)k);
        PARTY_CHECK(atomic_load(&heard[first + (uint64_t)r]) > k && !atomic_load(&wrong));
    }
    return true;
}

static bool all_to_all(void)
{
    static MPI_Request q[2][MESSAGES][PARTY_MAX];
    static int numbers[2][MESSAGES];
    MPI_Comm inter, world = MPI_COMM_WORLD;
    PARTY_CHECK(party_takes(hear, NULL) && two_open() && two_connect(1, &inter));
    for (uint64_t k = 0; k < MESSAGES; k++) {
        PARTY_CHECK(say_to_all(comm_of(world), world, k, q[0][k], numbers[0]));
        PARTY_CHECK(say_to_all(comm_of(inter), inter, k, q[1][k], numbers[1]));
    }
    for (uint64_t k = 0; k < MESSAGES; k++) {
        PARTY_CHECK(hear_from_all(comm_of(world), world, party_job * party->job_size[0], k));
        PARTY_CHECK(hear_from_all(comm_of(inter), inter, (1 - party_job) * party->job_size[0], k));
    }
    for (int k = 0; k < MESSAGES; k++) {
        PARTY_CHECK(!MPI_Waitall(two_size, q[0][k], MPI_STATUSES_IGNORE));
        PARTY_CHECK(!MPI_Waitall(two_others, q[1][k], MPI_STATUSES_IGNORE));
    }
    for (uint32_t s = 0; s < party->size; s++) PARTY_CHECK(atomic_load(&heard[s]) == MESSAGES);
    MPI_Comm_free(&inter);
    PARTY_CHECK(two_apart());
    two_close();
    return true;
}

static void messages_come_whole_and_in_order(void **state)
{
    (void)state;
    assert_true(two_run_over_all(sizes, all_to_all));
}

/* ---- across the end of a connection ---- */

/* So many messages have come, and as many are out. */
static bool all_heard(uint64_t sender, uint64_t k)
{
    uint64_t end = clock_ns() + 20000000000u;
    while (atomic_load(&heard[sender]) < k && clock_ns() < end) turns(1);
    PARTY_CHECK(atomic_load(&heard[sender]) == k && !atomic_load(&wrong));
    pt_drain();
    return true;
}

/* Both sides free their communicator and make the next, at different times: a message of either meets a connection that
 * is there, is idle, or is being closed. All come. */
static bool meets_the_close(void)
{
    MPI_Comm inter, next;
    uint64_t other = 1 - me(), k = 0;
    PARTY_CHECK(party_takes(hear, NULL) && two_open());
    for (uint64_t i = 0; i < 40; i++) {
        PARTY_CHECK(two_connect(2 * i + 1, &inter) && say(comm_index(comm_of(inter), 0), k++));
        PARTY_CHECK(all_heard(other, k));
        MPI_Comm_free(&inter);
        if (party_job) turns(i % 2 ? 3 : 0);
        party_meet();
        if (!party_job) turns((int)i);
        party_meet();
        PARTY_CHECK(two_make(2 * i + 2, &next));
        PARTY_CHECK(say(comm_index(comm_of(next), 0), k++) && say(comm_index(comm_of(next), 0), k++));
        PARTY_CHECK(all_heard(other, k));
        MPI_Comm_free(&next);
        if (i % 4 == 3) PARTY_CHECK(two_apart());
    }
    PARTY_CHECK(two_apart());
    two_close();
    return true;
}

static void a_message_goes_by_the_next_connection(void **state)
{
    (void)state;
    assert_true(two_run_over_all(pair, meets_the_close));
}

/* ---- death ---- */

/* Job 1 takes nothing, and ends without a word: what waits for it ends, and a message to it is an error in words. */
static bool is_left(void)
{
    MPI_Comm inter;
    PARTY_CHECK(party_takes(hear, NULL) && two_open() && two_connect(1, &inter));
    uint32_t index = comm_index(comm_of(inter), 0);
    if (party_job) {
        party_meet();
        _exit(0);
    }
    for (uint64_t k = 0; k < 1000 && !(peer_table[index] && peer_table[index]->waiting); k++) PARTY_CHECK(say(index, k));
    struct peer *p = peer_table[index];
    PARTY_CHECK(p->waiting && !p->lost);
    party_meet();
    uint64_t end = clock_ns() + 20000000000u;
    while (!p->lost && clock_ns() < end) {
        turns(1);
        wires_wait_lasts(); /* as a wait would, in time */
    }
    turns(1);
    PARTY_CHECK(p->lost && !p->waiting && list_empty(&p->first.ops) && list_empty(&lanes_first()->pending));
    PARTY_CHECK(pt_message(index, AM_NUMBER, 0, 0, NULL, 0) == TERN_ERR_PEER && strstr(err_words(), jobs_long_words(index)));
    _exit(0);
}

static void what_waits_for_the_dead_ends(void **state)
{
    (void)state;
    setenv("TERN_TRANSPORTS", "self,shm", 1);
    assert_true(party_run_two(pair, is_left));
    setenv("TERN_TRANSPORTS", "self,tcp", 1);
    assert_true(party_run_two(pair, is_left));
}

int main(void)
{
    seed = party_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_come_whole_and_in_order),
        cmocka_unit_test(a_message_goes_by_the_next_connection),
        cmocka_unit_test(what_waits_for_the_dead_ends),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
