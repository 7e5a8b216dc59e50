/*
 * collectives.c - threads of each rank call collectives at the same time, each on a communicator of its own: blocking,
 * nonblocking and persistent ones, with a user's operator whose function has a state for each communicator, and with
 * messages between two ranks under way on the same communicator. Then each makes communicators from its own. By random
 * numbers with a seed.
 *
 * A thread has one reduction by its operator under way at a time, which any thread may go on with: so the calls of its function
 * come one after the other, each ordered behind the one before. `inside` and the thread sanitizer check that.
 */
#include "../check.h"

#include <pthread.h>
#include <stdbool.h>

enum { THREADS = 8, SEVERAL = 3, LARGEST = 40000, TAG = 3 };

static struct thread {
    pthread_t id;
    int number;
    MPI_Comm comm;
    MPI_Op op;
    uint64_t random; /* the same in all ranks */
    int *out[SEVERAL], *in[SEVERAL], *message[2];
    MPI_Request ring[2];
    int round;
    long checked, bad;
    struct {
        int inside;
        long calls, overlaps;
    } operator; /* the state of its function, which any thread may be in */
    char first_bad[200];
} all[THREADS];

static int rounds;

#define DO(t, call) is((t), (call) == MPI_SUCCESS, __LINE__, #call)
#define IS(t, true) is((t), (true), __LINE__, #true)
static void is(struct thread *t, bool good, int line, const char *what)
{
    t->checked++;
    if (!good && !t->bad++) snprintf(t->first_bad, sizeof t->first_bad, "round %d, line %d: %s", t->round, line, what);
}

static int draw(struct thread *t, int n) { return (int)(check_random(&t->random) % (uint64_t)n); }

/* ---- operators: the function of one knows the thread by itself ---- */

static void add(struct thread *t, const int *in, int *inout, int n)
{
    t->operator.overlaps += t->operator.inside++ != 0;
    t->operator.calls++;
    for (int i = 0; i < n; i++) inout[i] += in[i];
    t->operator.inside--;
}

#define FUNCTION(number)                                                                                               \
    static void add_##number(void *in, void *inout, int *n, MPI_Datatype *type)                                        \
    {                                                                                                                  \
        (void)type;                                                                                                    \
        add(&all[number], in, inout, *n);                                                                              \
    }
FUNCTION(0)
FUNCTION(1)
FUNCTION(2)
FUNCTION(3)
FUNCTION(4)
FUNCTION(5)
FUNCTION(6)
FUNCTION(7)
static MPI_User_function *const functions[THREADS] = {add_0, add_1, add_2, add_3, add_4, add_5, add_6, add_7};

/* ---- what is sent, and what is to come ---- */

static int value(const struct thread *t, int rank, int which, int i) { return (rank + 1) * (i % 97 + 1) + which + t->round; }

static void fill(struct thread *t, int which, int n)
{
    for (int i = 0; i < n; i++) {
        t->out[which][i] = value(t, check_rank, which, i);
        t->in[which][i] = -1;
    }
}

/* The sums over the first so many ranks. */
static void is_sum(struct thread *t, int which, int n, int ranks)
{
    int wrong = 0;
    for (int i = 0; i < n; i++) {
        int sum = 0;
        for (int r = 0; r < ranks; r++) sum += value(t, r, which, i);
        wrong += t->in[which][i] != sum;
    }
    IS(t, wrong == 0);
}

static void is_of(struct thread *t, int which, int n, int rank)
{
    int wrong = 0;
    for (int i = 0; i < n; i++) wrong += t->in[which][i] != value(t, rank, which, i);
    IS(t, wrong == 0);
}

/* Elements: most are few. All ranks' together have room. */
static int draw_count(struct thread *t)
{
    static const int most[] = {1, 1, 12, 100, 1000, 6000, LARGEST};
    return 1 + draw(t, most[draw(t, 7)]);
}

/* ---- messages beside them, around the ring ---- */

static void begin_ring(struct thread *t, int n)
{
    int next = (check_rank + 1) % check_size, before = (check_rank + check_size - 1) % check_size;
    for (int i = 0; i < n; i++) t->message[0][i] = value(t, check_rank, 50, i);
    DO(t, MPI_Irecv(t->message[1], n, MPI_INT, before, TAG, t->comm, &t->ring[0]));
    DO(t, MPI_Isend(t->message[0], n, MPI_INT, next, TAG, t->comm, &t->ring[1]));
}

static void end_ring(struct thread *t, int n)
{
    int before = (check_rank + check_size - 1) % check_size, wrong = 0;
    DO(t, MPI_Waitall(2, t->ring, MPI_STATUSES_IGNORE));
    for (int i = 0; i < n; i++) wrong += t->message[1][i] != value(t, before, 50, i);
    IS(t, wrong == 0);
}

/* ---- rounds ---- */

static void blocking(struct thread *t)
{
    int n = draw_count(t), root = draw(t, check_size);
    MPI_Op op = draw(t, 3) ? t->op : MPI_SUM;
    fill(t, 0, n);
    DO(t, MPI_Allreduce(t->out[0], t->in[0], n, MPI_INT, op, t->comm));
    is_sum(t, 0, n, check_size);
    fill(t, 0, n);
    DO(t, MPI_Reduce(t->out[0], t->in[0], n, MPI_INT, op, root, t->comm));
    if (check_rank == root) is_sum(t, 0, n, check_size);
    fill(t, 0, n);
    DO(t, MPI_Scan(t->out[0], t->in[0], n, MPI_INT, op, t->comm));
    is_sum(t, 0, n, check_rank + 1);
    fill(t, 0, n);
    if (check_rank == root) memcpy(t->in[0], t->out[0], (size_t)n * sizeof(int));
    DO(t, MPI_Bcast(t->in[0], n, MPI_INT, root, t->comm));
    is_of(t, 0, n, root);
}

static void wait_for(struct thread *t, int n, MPI_Request *r)
{
    int done = 0;
    if (draw(t, 2)) DO(t, MPI_Waitall(n, r, MPI_STATUSES_IGNORE));
    else
        while (!done) DO(t, MPI_Testall(n, r, &done, MPI_STATUSES_IGNORE));
}

static void nonblocking(struct thread *t)
{
    MPI_Request r[SEVERAL + 2];
    int n[SEVERAL], root = draw(t, check_size);
    for (int i = 0; i < SEVERAL; i++) {
        fill(t, i, n[i] = draw_count(t));
        if (i == SEVERAL - 1) memcpy(t->in[i], t->out[i], (size_t)n[i] * sizeof(int));
    }
    DO(t, MPI_Iallreduce(t->out[0], t->in[0], n[0], MPI_INT, t->op, t->comm, &r[0]));
    DO(t, MPI_Ibarrier(t->comm, &r[3]));
    DO(t, MPI_Iscan(t->out[1], t->in[1], n[1], MPI_INT, MPI_SUM, t->comm, &r[1]));
    DO(t, MPI_Ibcast(t->in[2], n[2], MPI_INT, root, t->comm, &r[2]));
    wait_for(t, SEVERAL + 1, r);
    is_sum(t, 0, n[0], check_size);
    is_sum(t, 1, n[1], check_rank + 1);
    is_of(t, 2, n[2], root);
}

static void persistent(struct thread *t)
{
    MPI_Request r[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int n = draw_count(t), m = draw_count(t);
    DO(t, MPI_Allreduce_init(t->out[0], t->in[0], n, MPI_INT, t->op, t->comm, MPI_INFO_NULL, &r[0]));
    DO(t, MPI_Scan_init(t->out[1], t->in[1], m, MPI_INT, MPI_SUM, t->comm, MPI_INFO_NULL, &r[1]));
    for (int i = 0; i < SEVERAL; i++, t->round++) {
        fill(t, 0, n);
        fill(t, 1, m);
        DO(t, MPI_Startall(2, r));
        wait_for(t, 2, r);
        is_sum(t, 0, n, check_size);
        is_sum(t, 1, m, check_rank + 1);
    }
    DO(t, MPI_Request_free(&r[0]));
    DO(t, MPI_Request_free(&r[1]));
}

static void sums(struct thread *t, MPI_Comm comm, int size)
{
    int one = 1, sum = 0;
    DO(t, MPI_Allreduce(&one, &sum, 1, MPI_INT, t->op, comm));
    IS(t, sum == size);
}

/* Communicators made from the own one, in each thread. */
static void objects(struct thread *t)
{
    MPI_Comm dup, half, of_group;
    MPI_Group group;
    int odd = check_rank % 2, mine = odd ? check_size / 2 : (check_size + 1) / 2;
    DO(t, MPI_Comm_dup(t->comm, &dup));
    DO(t, MPI_Comm_split(dup, odd, check_rank, &half));
    sums(t, half, mine);
    sums(t, dup, check_size);
    DO(t, MPI_Comm_group(half, &group));
    DO(t, MPI_Comm_create_group(dup, group, 100 + t->number, &of_group));
    DO(t, MPI_Comm_free(&half));
    sums(t, of_group, mine);
    DO(t, MPI_Group_free(&group));
    DO(t, MPI_Comm_free(&dup));
    DO(t, MPI_Comm_free(&of_group));
}

static void *run(void *arg)
{
    struct thread *t = arg;
    static void (*const kinds[])(struct thread *) = {blocking, blocking, nonblocking, nonblocking, persistent, objects};
    for (t->round = 0; t->round < rounds; t->round++) {
        int messages = draw(t, 2) ? draw_count(t) : 0;
        int round = t->round;
        if (messages) begin_ring(t, messages);
        kinds[draw(t, 6)](t);
        t->round = round; /* as in the messages */
        if (messages) end_ring(t, messages);
    }
    return NULL;
}

/* ---- all of it ---- */

static void prepare(struct thread *t, int number, uint64_t seed)
{
    *t = (struct thread){.number = number, .random = seed + (uint64_t)number};
    CHECK_OK(MPI_Comm_dup(MPI_COMM_WORLD, &t->comm));
    CHECK_OK(MPI_Op_create(functions[number], 1, &t->op));
    for (int i = 0; i < SEVERAL; i++) {
        t->out[i] = malloc((LARGEST + 1) * sizeof(int));
        t->in[i] = malloc((LARGEST + 1) * sizeof(int));
    }
    for (int i = 0; i < 2; i++) t->message[i] = malloc((LARGEST + 1) * sizeof(int));
}

static void finish(struct thread *t)
{
    CHECK(!t->bad, "thread %d: %ld of %ld are wrong, the first: %s", t->number, t->bad, t->checked, t->first_bad);
    CHECK(t->checked > 0 && (t->operator.calls > 0 || check_size == 1), "thread %d: its operator was not used", t->number);
    CHECK(!t->operator.overlaps, "thread %d: %ld calls of its operator began in another", t->number, t->operator.overlaps);
    CHECK_OK(MPI_Op_free(&t->op));
    CHECK_OK(MPI_Comm_free(&t->comm));
    for (int i = 0; i < SEVERAL; i++) {
        free(t->out[i]);
        free(t->in[i]);
    }
    for (int i = 0; i < 2; i++) free(t->message[i]);
}

int main(int argc, char **argv)
{
    const char *given = getenv("COLLECTIVES_ROUNDS");
    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    uint64_t seed = check_seed();
    rounds = given ? atoi(given) : check_size > 4 ? 60 : 300;
    for (int i = 0; i < THREADS; i++) prepare(&all[i], i, seed);
    for (int i = 0; i < THREADS; i++) CHECK(!pthread_create(&all[i].id, NULL, run, &all[i]), "thread %d cannot be made", i);
    for (int i = 0; i < THREADS; i++) pthread_join(all[i].id, NULL);
    for (int i = 0; i < THREADS; i++) finish(&all[i]);
    return check_done();
}
