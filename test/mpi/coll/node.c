/*
 * node.c - small collectives started in the background and blocking ones, mixed at random: on several communicators,
 * some of them made for one operation and freed while it is pending, more pending than the node-local slots are
 * good for, completed in an order of each rank's own, with ranks that come late. What must come out is known by
 * formula. With TEST_THREADS two threads do that at the same time, each on communicators of its own.
 */
#include "../check.h"
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

enum { BATCHES = 60, IN_FLIGHT = 30, MAXCOUNT = 12, COMMS = 3, MAXRANKS = 16, THREADS = 2 };
enum { BARRIER, BCAST, REDUCE, ALLREDUCE, GATHER, SCATTER, ALLGATHER, ALLTOALL, BLOCKS, SCAN, EXSCAN, KINDS };

struct job {
    int kind, root, count;
    unsigned tag; /* of the operation: makes the values */
    uint64_t *send, *recv;
    MPI_Comm comm;
};

struct thread { /* random numbers: alike at all ranks, and of each rank's own */
    uint64_t common, own;
    MPI_Comm comms[COMMS];
};

static int draw(uint64_t *state, int n) { return (int)(check_random(state) % (unsigned)n); }

/* Element i of the block that rank `from` sends to rank `to`. */
static uint64_t value(const struct job *j, int from, int to, int i)
{
    return (uint64_t)j->tag * 1000003u + (uint64_t)from * 7919u + (uint64_t)to * 104729u + (uint64_t)i;
}

static uint64_t sum(const struct job *j, int to, int i, int ranks)
{
    uint64_t s = 0;
    for (int r = 0; r < ranks; r++) s += value(j, r, to, i);
    return s;
}

static void make_job(struct thread *t, struct job *j, unsigned tag)
{
    *j = (struct job){.kind = draw(&t->common, KINDS), .root = draw(&t->common, check_size), .tag = tag};
    j->count = draw(&t->common, MAXCOUNT);
    if (!draw(&t->common, 20)) j->count *= 50; /* by messages */
    size_t room = (size_t)(j->count + 1) * (size_t)check_size;
    j->send = malloc(room * 8);
    j->recv = malloc(room * 8);
    for (int r = 0; r < check_size; r++)
        for (int i = 0; i < j->count; i++) j->send[r * j->count + i] = value(j, check_rank, r, i);
    for (size_t i = 0; i < room; i++) j->recv[i] = ~(uint64_t)0;
    if (j->kind == BCAST && check_rank == j->root) memcpy(j->recv, j->send, (size_t)j->count * 8);
    int which = draw(&t->common, COMMS * 4);
    if (which)
        j->comm = t->comms[which % COMMS];
    else
        MPI_Comm_dup(t->comms[0], &j->comm);
}

static int start(struct job *j, MPI_Request *q)
{
    int n = j->count, root = j->root;
    uint64_t *s = j->send, *r = j->recv;
    MPI_Comm c = j->comm;
    switch (j->kind) {
    case BARRIER:
        return MPI_Ibarrier(c, q);
    case BCAST:
        return MPI_Ibcast(r, n, MPI_UINT64_T, root, c, q);
    case REDUCE:
        return MPI_Ireduce(s, r, n, MPI_UINT64_T, MPI_SUM, root, c, q);
    case ALLREDUCE:
        return MPI_Iallreduce(s, r, n, MPI_UINT64_T, MPI_SUM, c, q);
    case GATHER:
        return MPI_Igather(s, n, MPI_UINT64_T, r, n, MPI_UINT64_T, root, c, q);
    case SCATTER:
        return MPI_Iscatter(s, n, MPI_UINT64_T, r, n, MPI_UINT64_T, root, c, q);
    case ALLGATHER:
        return MPI_Iallgather(s, n, MPI_UINT64_T, r, n, MPI_UINT64_T, c, q);
    case ALLTOALL:
        return MPI_Ialltoall(s, n, MPI_UINT64_T, r, n, MPI_UINT64_T, c, q);
    case BLOCKS:
        return MPI_Ireduce_scatter_block(s, r, n, MPI_UINT64_T, MPI_SUM, c, q);
    case SCAN:
        return MPI_Iscan(s, r, n, MPI_UINT64_T, MPI_SUM, c, q);
    default:
        return MPI_Iexscan(s, r, n, MPI_UINT64_T, MPI_SUM, c, q);
    }
}

static int run(struct job *j)
{
    int n = j->count, root = j->root;
    uint64_t *s = j->send, *r = j->recv;
    MPI_Comm c = j->comm;
    switch (j->kind) {
    case BARRIER:
        return MPI_Barrier(c);
    case BCAST:
        return MPI_Bcast(r, n, MPI_UINT64_T, root, c);
    case REDUCE:
        return MPI_Reduce(s, r, n, MPI_UINT64_T, MPI_SUM, root, c);
    case ALLREDUCE:
        return MPI_Allreduce(s, r, n, MPI_UINT64_T, MPI_SUM, c);
    case GATHER:
        return MPI_Gather(s, n, MPI_UINT64_T, r, n, MPI_UINT64_T, root, c);
    case SCATTER:
        return MPI_Scatter(s, n, MPI_UINT64_T, r, n, MPI_UINT64_T, root, c);
    case ALLGATHER:
        return MPI_Allgather(s, n, MPI_UINT64_T, r, n, MPI_UINT64_T, c);
    case ALLTOALL:
        return MPI_Alltoall(s, n, MPI_UINT64_T, r, n, MPI_UINT64_T, c);
    case BLOCKS:
        return MPI_Reduce_scatter_block(s, r, n, MPI_UINT64_T, MPI_SUM, c);
    case SCAN:
        return MPI_Scan(s, r, n, MPI_UINT64_T, MPI_SUM, c);
    default:
        return MPI_Exscan(s, r, n, MPI_UINT64_T, MPI_SUM, c);
    }
}

/* Element i of block r of the result; false: this rank gets none. */
static bool expected(const struct job *j, int r, int i, uint64_t *want)
{
    int me = check_rank;
    bool root = me == j->root;
    switch (j->kind) {
    case BCAST:
        *want = value(j, j->root, 0, i);
        return r == 0;
    case REDUCE:
        *want = sum(j, 0, i, check_size);
        return root && r == 0;
    case ALLREDUCE:
        *want = sum(j, 0, i, check_size);
        return r == 0;
    case GATHER:
        *want = value(j, r, 0, i);
        return root;
    case SCATTER:
        *want = value(j, j->root, me, i);
        return r == 0;
    case ALLGATHER:
        *want = value(j, r, 0, i);
        return true;
    case ALLTOALL:
        *want = value(j, r, me, i);
        return true;
    case BLOCKS:
        *want = sum(j, me, i, check_size);
        return r == 0;
    case SCAN:
        *want = sum(j, 0, i, me + 1);
        return r == 0;
    case EXSCAN:
        *want = sum(j, 0, i, me);
        return r == 0 && me > 0;
    default:
        return false;
    }
}

static long wrong(const struct job *j)
{
    long bad = 0;
    for (int r = 0; r < check_size; r++)
        for (int i = 0; i < j->count; i++) {
            uint64_t want;
            if (expected(j, r, i, &want)) bad += j->recv[r * j->count + i] != want;
        }
    return bad;
}

/* Some ranks come late. */
static void dawdle(struct thread *t)
{
    if (!draw(&t->own, 40)) usleep((useconds_t)draw(&t->own, 3000));
}

static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;

static void end_job(struct job *j, bool blocking)
{
    long bad = wrong(j);
    pthread_mutex_lock(&counting);
    CHECK(!bad, "%s operation %u of kind %d: %ld elements are wrong", blocking ? "blocking" : "nonblocking", j->tag,
          j->kind, bad);
    pthread_mutex_unlock(&counting);
    free(j->send);
    free(j->recv);
}

static bool is_own(const struct thread *t, MPI_Comm c)
{
    for (int i = 0; i < COMMS; i++)
        if (t->comms[i] == c) return false;
    return true;
}

static void one(struct thread *t, struct job *j, MPI_Request *q, unsigned tag)
{
    make_job(t, j, tag);
    bool blocking = draw(&t->common, 4) == 0, alone = is_own(t, j->comm);
    *q = MPI_REQUEST_NULL;
    dawdle(t);
    int rc = blocking ? run(j) : start(j, q);
    if (rc) check_failed(__FILE__, __LINE__, "operation", "kind %d returned %d", j->kind, rc);
    if (alone) MPI_Comm_free(&j->comm);
    if (blocking) end_job(j, true);
    if (blocking) j->send = NULL;
}

/* In an order of this rank's own, by waits and by tests. */
static void complete(struct thread *t, struct job *jobs, MPI_Request *q, int n)
{
    for (int left = n; left;) {
        int i = draw(&t->own, n), done = 1;
        while (i < n && !jobs[i].send) i++;
        if (i == n) {
            left = 0;
            for (int k = 0; k < n; k++) left += jobs[k].send != NULL;
            continue;
        }
        dawdle(t);
        if (draw(&t->own, 2))
            MPI_Wait(&q[i], MPI_STATUS_IGNORE);
        else
            MPI_Test(&q[i], &done, MPI_STATUS_IGNORE);
        if (!done) continue;
        end_job(&jobs[i], false);
        jobs[i].send = NULL;
    }
}

static void *program(void *thread)
{
    struct thread *t = thread;
    struct job jobs[IN_FLIGHT];
    MPI_Request q[IN_FLIGHT];
    for (unsigned b = 0; b < BATCHES; b++) {
        int n = 1 + draw(&t->common, IN_FLIGHT);
        for (int i = 0; i < n; i++) one(t, &jobs[i], &q[i], b * IN_FLIGHT + (unsigned)i);
        complete(t, jobs, q, n);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    bool threads = getenv("TEST_THREADS") != NULL;
    struct thread t[THREADS];
    pthread_t other;
    check_start_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    uint64_t seed = check_seed();
    for (int k = 0; k < THREADS; k++) {
        t[k].common = seed + (unsigned)k;
        t[k].own = seed * 31 + (uint64_t)check_rank * 17 + (unsigned)k;
        for (int i = 0; i < COMMS; i++) CHECK_OK(MPI_Comm_dup(MPI_COMM_WORLD, &t[k].comms[i]));
    }
    if (threads) pthread_create(&other, NULL, program, &t[1]);
    program(&t[0]);
    if (threads) pthread_join(other, NULL);
    for (int k = 0; k < THREADS; k++)
        for (int i = 0; i < COMMS; i++) CHECK_OK(MPI_Comm_free(&t[k].comms[i]));
    return check_done();
}
