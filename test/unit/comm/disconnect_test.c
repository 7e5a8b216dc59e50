/*
 * disconnect_test.c - two jobs connected by an intercommunicator, as a layer for dynamic processes would do it: messages and
 * collectives between the groups, what is made of the communicator, and its end, again and again.
 * Takes the arguments of party_cycles.h.
 */
#include "two_jobs.h"
#include "../transport/party_cycles.h"
#include "base/err.h"
#include "obj/comm.h"
#include "proc/jobs.h"
#include "transport/peer.h"
#include "transport/wires.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { LONG = 100000 };

static const uint32_t sizes[2] = {2, 3};

/* ---- what one can do with it ---- */

static bool messages(MPI_Comm inter)
{
    static char out[LONG], in[LONG];
    MPI_Request request;
    MPI_Status status;
    int remote;
    PARTY_CHECK(!MPI_Comm_remote_size(inter, &remote) && remote == two_others);
    for (int bytes = 0; bytes <= LONG; bytes = bytes ? bytes * 10 : 1)
        for (int r = 0; r < two_others; r++) {
            memset(out, 16 * (int)party_job + two_rank, sizeof out);
            memset(in, 0, sizeof in);
            MPI_Irecv(in, LONG, MPI_CHAR, r, bytes, inter, &request);
            PARTY_CHECK(!MPI_Send(out, bytes, MPI_CHAR, r, bytes, inter));
            PARTY_CHECK(!MPI_Wait(&request, &status) && status.MPI_SOURCE == r);
            int got = 0;
            MPI_Get_count(&status, MPI_CHAR, &got);
            PARTY_CHECK(got == bytes);
            for (int i = 0; i < bytes; i++) PARTY_CHECK(in[i] == (char)(16 * (1 - (int)party_job) + r));
        }
    return true;
}

static bool collectives(MPI_Comm inter)
{
    int mine = 10 * (int)party_job + two_rank + 1, sum = 0, expected = 0, all[PARTY_MAX] = {0}, to[PARTY_MAX], from[PARTY_MAX];
    for (int r = 0; r < two_others; r++) expected += 10 * (1 - (int)party_job) + r + 1;
    PARTY_CHECK(!MPI_Barrier(inter));
    PARTY_CHECK(!MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter) && sum == expected);
    PARTY_CHECK(!MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, inter));
    for (int r = 0; r < two_others; r++) PARTY_CHECK(all[r] == 10 * (1 - (int)party_job) + r + 1);
    for (int r = 0; r < two_others; r++) to[r] = 100 * mine + r;
    PARTY_CHECK(!MPI_Alltoall(to, 1, MPI_INT, from, 1, MPI_INT, inter));
    for (int r = 0; r < two_others; r++) PARTY_CHECK(from[r] == 100 * all[r] + two_rank);
    int word = party_job ? 0 : 4711, root = party_job ? 1 : two_rank == 1 ? MPI_ROOT : MPI_PROC_NULL;
    PARTY_CHECK(!MPI_Bcast(&word, 1, MPI_INT, root, inter) && word == 4711);
    return true;
}

/* Communicators with members of both jobs. */
static bool descendants(MPI_Comm inter)
{
    MPI_Comm dup, merged, half, part, node;
    int n, me, sum = 0, one = 1;
    MPI_Group a, b;
    PARTY_CHECK(!MPI_Comm_dup(inter, &dup));
    PARTY_CHECK(collectives(dup));
    PARTY_CHECK(!MPI_Intercomm_merge(inter, (int)party_job, &merged));
    MPI_Comm_size(merged, &n);
    MPI_Comm_rank(merged, &me);
    PARTY_CHECK(n == two_size + two_others && me == two_rank + (party_job ? two_others : 0));
    PARTY_CHECK(!MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, merged) && sum == n);
    PARTY_CHECK(!MPI_Comm_split(merged, me % 2, -me, &half));
    sum = 0;
    PARTY_CHECK(!MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, half) && sum == (me % 2 ? 1 + 3 : 0 + 2 + 4));
    PARTY_CHECK(!MPI_Comm_split_type(merged, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    MPI_Comm_size(node, &sum);
    PARTY_CHECK(sum == two_size); /* where those of the other job are is not known */
    MPI_Comm_free(&node);
    PARTY_CHECK(!MPI_Comm_split(merged, me > 1, 0, &part));
    MPI_Comm_group(part, &a);
    MPI_Comm_group(half, &b);
    PARTY_CHECK(!MPI_Group_compare(a, b, &n) && n == MPI_UNEQUAL);
    MPI_Group_free(&a);
    MPI_Group_free(&b);
    MPI_Comm_free(&part);
    MPI_Comm_free(&half);
    MPI_Comm_free(&merged);
    PARTY_CHECK(!MPI_Comm_disconnect(&dup)); /* `inter` still connects them */
    PARTY_CHECK(jobs_others() == 1);
    return true;
}

static bool everything(void)
{
    MPI_Comm inter;
    PARTY_CHECK(two_open());
    PARTY_CHECK(two_connect(1, &inter));
    PARTY_CHECK(messages(inter) && collectives(inter) && descendants(inter) && messages(inter));
    PARTY_CHECK(!MPI_Comm_disconnect(&inter) && inter == MPI_COMM_NULL);
    PARTY_CHECK(jobs_others() == 0 && peer_count == sizes[party_job] && peer_other_quotas == 0);
    PARTY_CHECK(two_connect(2, &inter) && messages(inter) && collectives(inter));
    MPI_Comm_free(&inter);
    PARTY_CHECK(two_apart());
    int sum = 0, one = 1;
    PARTY_CHECK(!MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) && sum == two_size);
    two_close();
    return true;
}

static void two_jobs_work_together(void **state)
{
    (void)state;
    assert_true(two_run_over_all(sizes, everything));
}

/* ---- the last communicator, of whatever kind ---- */

/* A persistent request refers to its communicator: what it connects cannot be waited for. */
static bool kinds(void)
{
    MPI_Comm inter, merged, half;
    MPI_Request kept;
    int me, number = 0;
    PARTY_CHECK(two_open() && two_connect(1, &inter) && !MPI_Intercomm_merge(inter, (int)party_job, &merged));
    MPI_Comm_free(&inter);
    PARTY_CHECK(!MPI_Barrier(merged) && !MPI_Comm_disconnect(&merged) && jobs_others() == 0);
    PARTY_CHECK(two_connect(2, &inter) && !MPI_Intercomm_merge(inter, (int)party_job, &merged));
    MPI_Comm_rank(merged, &me);
    PARTY_CHECK(!MPI_Comm_split(merged, me / 4, me, &half)); /* one has a communicator of its own */
    PARTY_CHECK(!MPI_Comm_disconnect(&inter) && !MPI_Comm_disconnect(&merged) && jobs_others() == (me < 4));
    PARTY_CHECK(!MPI_Barrier(half) && !MPI_Comm_disconnect(&half));
    PARTY_CHECK(two_apart());
    PARTY_CHECK(two_connect(3, &inter) && collectives(inter));
    PARTY_CHECK(!MPI_Recv_init(&number, 1, MPI_INT, 0, 0, inter, &kept));
    PARTY_CHECK(!MPI_Comm_disconnect(&inter) && jobs_others() == 1);
    party_meet();
    MPI_Request_free(&kept);
    PARTY_CHECK(two_apart());
    two_close();
    return true;
}

static void the_last_one_of_any_kind_closes(void **state)
{
    (void)state;
    setenv("TERN_TRANSPORTS", "self,shm", 1);
    assert_true(party_run_two(sizes, kinds));
    setenv("TERN_TRANSPORTS", "self,tcp", 1);
    assert_true(party_run_two(sizes, kinds));
}

/* ---- context ids ---- */

/* Rank 0 of each job counts the communicators that it makes. One job is a communicator ahead, so that what the one makes
 * for both and what the other makes for itself have the same count. */
enum { ROUNDS = 8 };

static bool all_contexts_differ(void)
{
    int wide = 0;
    for (struct link *a = comm_all()->next; a != comm_all(); a = a->next) {
        wide += comm_ctx_is_wide(container_of(a, struct comm, all)->ctx);
        for (struct link *b = a->next; b != comm_all(); b = b->next)
            PARTY_CHECK(container_of(a, struct comm, all)->ctx != container_of(b, struct comm, all)->ctx);
    }
    PARTY_CHECK(wide >= ROUNDS);
    return true;
}

/* What is sent in the one does not come in the other. */
static bool both_apart(MPI_Comm own, MPI_Comm shared)
{
    int peer = two_rank < two_others ? two_rank : 0, got[2] = {-1, -1}, mine = 100 * (int)party_job + two_rank, from = two_rank;
    MPI_Request wild, named;
    PARTY_CHECK(!MPI_Irecv(&got[0], 1, MPI_INT, MPI_ANY_SOURCE, 7, own, &wild));
    MPI_Barrier(shared);
    if (two_rank < 2) {
        PARTY_CHECK(!MPI_Irecv(&got[1], 1, MPI_INT, peer, 7, shared, &named));
        PARTY_CHECK(!MPI_Send(&mine, 1, MPI_INT, peer, 7, shared));
        PARTY_CHECK(!MPI_Wait(&named, MPI_STATUS_IGNORE) && got[1] == 100 * (1 - (int)party_job) + peer);
    }
    PARTY_CHECK(got[0] == -1);
    MPI_Barrier(MPI_COMM_WORLD);
    PARTY_CHECK(!MPI_Send(&from, 1, MPI_INT, (two_rank + 1) % two_size, 7, own));
    PARTY_CHECK(!MPI_Wait(&wild, MPI_STATUS_IGNORE) && got[0] == (two_rank + two_size - 1) % two_size);
    return true;
}

static bool same_counts(void)
{
    MPI_Comm inter, ahead, own[ROUNDS], shared[ROUNDS];
    PARTY_CHECK(two_open() && two_connect(1, &inter));
    if (party_job) PARTY_CHECK(!MPI_Comm_dup(MPI_COMM_WORLD, &ahead));
    for (int i = 0; i < ROUNDS; i++)
        PARTY_CHECK(!MPI_Comm_dup(MPI_COMM_WORLD, &own[i]) && !MPI_Comm_dup(inter, &shared[i]));
    PARTY_CHECK(all_contexts_differ());
    for (int i = 0; i < ROUNDS; i++)
        for (int k = 0; k < ROUNDS; k++) PARTY_CHECK(both_apart(own[i], shared[k]));
    for (int i = 0; i < ROUNDS; i++) PARTY_CHECK(!MPI_Comm_free(&own[i]) && !MPI_Comm_disconnect(&shared[i]));
    if (party_job) MPI_Comm_free(&ahead);
    PARTY_CHECK(!MPI_Comm_disconnect(&inter));
    two_close();
    return true;
}

static void contexts_of_two_jobs_do_not_collide(void **state)
{
    (void)state;
    setenv("TERN_TRANSPORTS", "self,shm", 1);
    assert_true(party_run_two(sizes, same_counts));
}

/* ---- again and again ---- */

static bool once(long i)
{
    MPI_Comm inter;
    PARTY_CHECK(two_connect((uint64_t)i + 1, &inter));
    PARTY_CHECK(collectives(inter));
    PARTY_CHECK(!MPI_Comm_disconnect(&inter));
    PARTY_CHECK(jobs_others() == 0 && peer_count == sizes[party_job]);
    return true;
}

static bool again(void)
{
    PARTY_CHECK(two_open());
    PARTY_CHECK(cycles_go(&(struct cycles){.once = once, .files = 1}));
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
    bool alone = cycles_arguments(argc, argv, 200);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_jobs_work_together),
        cmocka_unit_test(the_last_one_of_any_kind_closes),
        cmocka_unit_test(contexts_of_two_jobs_do_not_collide),
        cmocka_unit_test(cycles_leave_nothing),
    };
    const struct CMUnitTest only_cycles[] = {cmocka_unit_test(cycles_leave_nothing)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (alone) return cmocka_run_group_tests(only_cycles, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
