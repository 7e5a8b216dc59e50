/*
 * neighbours_test.c - the watcher tells of the ends of processes of the node that shared memory has watched: of those that
 * there is no connection to, and of processes of other jobs from their connection on; and who had left in order is known.
 */
#include "../party.h"
#include "proc/jobs.h"
#include "proc/proc.h"
#include "proc/watcher.h"
#include "transport/peer.h"
#include "transport/shm/shm.h"
#include "transport/wires.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>
#include <unistd.h>

/* Of the last member, whom the others do not meet. */
static bool leave(void)
{
    peers_close();
    proc_close();
    exit(0);
}

/* True: rank 1 has been told of, which closes its transports, and rank 2, which exits without. */
static bool both_told(void)
{
    static bool told[3];
    uint32_t index;
    while (watcher_next(&index))
        if (index < 3) told[index] = true;
    return told[1] && told[2];
}

static bool ranks_end(bool connected)
{
    PARTY_CHECK(party_open("self,shm"));
    if (connected) PARTY_CHECK(peer_get((party_rank + 1) % 3) && peer_get((party_rank + 2) % 3));
    party_meet();
    if (party_rank == 0) PARTY_CHECK(tp_shm.watch(NULL));
    party_meet();
    if (party_rank == 2) _exit(0);
    if (party_rank == 1) {
        peers_close();
        _exit(0);
    }
    PARTY_AWAIT(both_told());
    PARTY_CHECK(wires_how_ended(1) == TP_END_LEFT && wires_how_ended(2) == TP_END_DIED);
    return leave();
}

static bool unconnected_end(void) { return ranks_end(false); }
static bool connected_end(void) { return ranks_end(true); }

static void an_end_is_told_whether_connected_or_not(void **state)
{
    (void)state;
    assert_true(party_run(3, unconnected_end));
    assert_true(party_run(3, connected_end));
}

/* The process has ended before anybody watches it: nothing of it can be mapped. */
static bool ends_early(void)
{
    uint32_t index = 0;
    PARTY_CHECK(party_open("self,shm"));
    party_meet();
    if (party_rank == 1) _exit(0);
    usleep(100000);
    PARTY_CHECK(tp_shm.watch(NULL));
    while (!watcher_next(&index)) party_look();
    PARTY_CHECK(index == 1 && wires_how_ended(1) == TP_END_UNKNOWN);
    return leave();
}

static void an_end_before_the_watch_cannot_be_explained(void **state)
{
    (void)state;
    assert_true(party_run(2, ends_early));
}

static bool other_job_ends(void)
{
    uint32_t index = 0;
    PARTY_CHECK(party_open("self,shm"));
    struct job_entry *job = party_connect();
    PARTY_CHECK(job);
    struct peer *p = peer_get(job_index(job, 0));
    PARTY_CHECK(p && p->ep.ops == &tp_shm);
    party_meet();
    if (party_job == 1) _exit(0);
    while (!watcher_next(&index)) party_look();
    PARTY_CHECK(index == p->index && wires_how_ended(index) == TP_END_DIED);
    job_unref(job);
    return leave();
}

static void processes_of_other_jobs_are_watched_once_connected(void **state)
{
    static const uint32_t one_each[2] = {1, 1};
    (void)state;
    assert_true(party_run_two(one_each, other_job_ends));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_end_is_told_whether_connected_or_not),
        cmocka_unit_test(an_end_before_the_watch_cannot_be_explained),
        cmocka_unit_test(processes_of_other_jobs_are_watched_once_connected),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
