/* hammer_coll.c - rounds of hammer.c with collectives: each thread on a communicator of its own. */
#include "hammer.h"

enum { SEVERAL = 3 /* under way at the same time */, STARTS = 3 };

enum form { BLOCKING, NONBLOCKING, PERSISTENT };

/* One collective. Each rank's buffers have room for n elements of every rank. */
struct call {
    struct thread *t;
    MPI_Comm comm;
    enum form form;
    int n, root;
    long salt;
    long *out, *in;
    int *counts[2], *places[2]; /* of what is sent and received by MPI_Alltoallv */
    MPI_Request request;
    const struct collective *of;
};

struct collective {
    const char *name;
    int (*begin)(struct call *);
    long (*expected)(const struct call *, int i); /* element i of what is received */
    int (*received)(const struct call *);         /* how many elements this rank gets */
};

/* Element i of what a rank sends. */
static long value(const struct call *k, int rank, int i) { return (long)(rank + 1) * (i + 3) + k->salt; }

static long sum(const struct call *k, int ranks, int i)
{
    long s = 0;
    for (int r = 0; r < ranks; r++) s += value(k, r, i);
    return s;
}

static int of_all(const struct call *k) { return k->n; }
static int of_each(const struct call *k) { return k->n * hammer_size; }
static int at_root(const struct call *k) { return hammer_rank == k->root ? k->n : 0; }
static int each_at_root(const struct call *k) { return hammer_rank == k->root ? k->n * hammer_size : 0; }
static int but_first(const struct call *k) { return hammer_rank > 0 ? k->n : 0; }
static int none(const struct call *k) { return k->n * 0; }

static long roots(const struct call *k, int i) { return value(k, k->root, i); }
static long total(const struct call *k, int i) { return sum(k, hammer_size, i); }
static long prefix(const struct call *k, int i) { return sum(k, hammer_rank + 1, i); }
static long before(const struct call *k, int i) { return sum(k, hammer_rank, i); }
static long gathered(const struct call *k, int i) { return value(k, i / k->n, i % k->n); }
static long scattered(const struct call *k, int i) { return value(k, k->root, hammer_rank * k->n + i); }
static long exchanged(const struct call *k, int i) { return value(k, i / k->n, hammer_rank * k->n + i % k->n); }
static long part_of_total(const struct call *k, int i) { return sum(k, hammer_size, hammer_rank * k->n + i); }
static long nothing(const struct call *k, int i) { return i + 0 * k->salt; }

/* What rank `from` sends to `to` by MPI_Alltoallv: fewer elements than n for some. */
static int count_of(const struct call *k, int from, int to) { return k->n - (k->n + from + 2 * to) % 3 % (k->n + 1); }

static long exchanged_v(const struct call *k, int i)
{
    return i % k->n < count_of(k, i / k->n, hammer_rank) ? exchanged(k, i) : -1;
}

/* The call `b` with these arguments, or the nonblocking `nb`, or persistent: the first call of it makes the request. */
#define IN_FORM(k, b, nb, ...)                                                                                         \
    ((k)->form == BLOCKING      ? MPI_##b(__VA_ARGS__)                                                                 \
     : (k)->form == NONBLOCKING ? MPI_##nb(__VA_ARGS__, &(k)->request)                                                 \
                                : MPI_##b##_init(__VA_ARGS__, MPI_INFO_NULL, &(k)->request))
#define BOTH(k) (k)->out, (k)->n, MPI_LONG, (k)->in, (k)->n, MPI_LONG

static MPI_Op own_sum; /* of a user's function */
static pthread_once_t own_sum_once = PTHREAD_ONCE_INIT;
static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++) ((long *)inout)[i] += ((long *)in)[i];
}
static void make_own_sum(void) { MPI_Op_create(add, 1, &own_sum); }

static MPI_Op op(const struct call *k)
{
    pthread_once(&own_sum_once, make_own_sum);
    return k->salt % 3 ? MPI_SUM : own_sum;
}

static int barrier(struct call *k) { return IN_FORM(k, Barrier, Ibarrier, k->comm); }
static int bcast(struct call *k) { return IN_FORM(k, Bcast, Ibcast, k->in, k->n, MPI_LONG, k->root, k->comm); }
static int reduce(struct call *k)
{
    return IN_FORM(k, Reduce, Ireduce, k->out, k->in, k->n, MPI_LONG, op(k), k->root, k->comm);
}
static int allreduce(struct call *k)
{
    return IN_FORM(k, Allreduce, Iallreduce, k->out, k->in, k->n, MPI_LONG, op(k), k->comm);
}
static int scan(struct call *k) { return IN_FORM(k, Scan, Iscan, k->out, k->in, k->n, MPI_LONG, op(k), k->comm); }
static int exscan(struct call *k) { return IN_FORM(k, Exscan, Iexscan, k->out, k->in, k->n, MPI_LONG, op(k), k->comm); }
static int gather(struct call *k) { return IN_FORM(k, Gather, Igather, BOTH(k), k->root, k->comm); }
static int scatter(struct call *k) { return IN_FORM(k, Scatter, Iscatter, BOTH(k), k->root, k->comm); }
static int allgather(struct call *k) { return IN_FORM(k, Allgather, Iallgather, BOTH(k), k->comm); }
static int alltoall(struct call *k) { return IN_FORM(k, Alltoall, Ialltoall, BOTH(k), k->comm); }
static int alltoallv(struct call *k)
{
    return IN_FORM(k, Alltoallv, Ialltoallv, k->out, k->counts[0], k->places[0], MPI_LONG, k->in, k->counts[1],
                   k->places[1], MPI_LONG, k->comm);
}
static int reduce_scatter(struct call *k)
{
    return IN_FORM(k, Reduce_scatter_block, Ireduce_scatter_block, k->out, k->in, k->n, MPI_LONG, op(k), k->comm);
}

static const struct collective collectives[] = {
    {"barrier", barrier, nothing, none},
    {"bcast", bcast, roots, of_all},
    {"reduce", reduce, total, at_root},
    {"allreduce", allreduce, total, of_all},
    {"scan", scan, prefix, of_all},
    {"exscan", exscan, before, but_first},
    {"gather", gather, gathered, each_at_root},
    {"scatter", scatter, scattered, of_all},
    {"allgather", allgather, gathered, of_each},
    {"alltoall", alltoall, exchanged, of_each},
    {"alltoallv", alltoallv, exchanged_v, of_each},
    {"reduce_scatter_block", reduce_scatter, part_of_total, of_all},
};
enum { COLLECTIVES = sizeof collectives / sizeof collectives[0] };

/* ---- a call from its drawing to its end ---- */

static void fill(struct call *k)
{
    for (int i = 0; i < k->n * hammer_size; i++) k->out[i] = value(k, hammer_rank, i), k->in[i] = -1;
    if (k->of->begin == bcast && hammer_rank == k->root) memcpy(k->in, k->out, (size_t)k->n * sizeof *k->in);
}

static struct call new_call(struct thread *t, enum form form)
{
    static const int most[] = {2, 20, 130, 130, 1000, 3000, 20000};
    struct call k = {.t = t, .comm = t->comm, .form = form, .of = &collectives[draw(t, COLLECTIVES)]};
    k.n = 1 + draw(t, most[draw(t, 7)]), k.root = draw(t, hammer_size), k.salt = draw(t, 100000);
    size_t all = (size_t)k.n * (size_t)hammer_size;
    k.out = malloc(all * sizeof *k.out), k.in = malloc(all * sizeof *k.in);
    for (int side = 0; side < 2; side++) {
        k.counts[side] = malloc((size_t)hammer_size * sizeof(int)),
        k.places[side] = malloc((size_t)hammer_size * sizeof(int));
        for (int r = 0; r < hammer_size; r++) {
            k.counts[side][r] = side == 0 ? count_of(&k, hammer_rank, r) : count_of(&k, r, hammer_rank);
            k.places[side][r] = r * k.n;
        }
    }
    fill(&k);
    return k;
}

static void begin(struct call *k)
{
    do_at(k->t, __LINE__, k->of->name);
    do_code(k->t, k->of->begin(k), k->of->name);
}

static void check_call(struct call *k)
{
    long bad = 0;
    int n = k->of->received(k);
    for (int i = 0; i < n; i++) bad += k->in[i] != k->of->expected(k, i);
    IS(k->t, bad == 0, "%s, form %d: %ld of %d elements are wrong", k->of->name, (int)k->form, bad, n);
}

static void drop(struct call *k)
{
    free(k->out);
    free(k->in);
    for (int side = 0; side < 2; side++) {
        free(k->counts[side]);
        free(k->places[side]);
    }
}

static void blocking(struct thread *t)
{
    struct call k = new_call(t, BLOCKING);
    begin(&k);
    check_call(&k);
    drop(&k);
}

static void complete(struct thread *t, struct call k[SEVERAL])
{
    MPI_Request r[SEVERAL];
    MPI_Status st[SEVERAL];
    for (int i = 0; i < SEVERAL; i++) r[i] = k[i].request;
    finish(t, r, SEVERAL, st);
    for (int i = 0; i < SEVERAL; i++) {
        check_call(&k[i]);
        k[i].request = r[i];
    }
}

/* A blocking one meanwhile. */
static void nonblocking(struct thread *t)
{
    struct call k[SEVERAL];
    for (int i = 0; i < SEVERAL; i++) {
        k[i] = new_call(t, NONBLOCKING);
        begin(&k[i]);
    }
    if (draw(t, 2)) blocking(t);
    complete(t, k);
    for (int i = 0; i < SEVERAL; i++) drop(&k[i]);
}

static void persistent(struct thread *t)
{
    struct call k[SEVERAL];
    for (int i = 0; i < SEVERAL; i++) {
        k[i] = new_call(t, PERSISTENT);
        begin(&k[i]);
    }
    for (int again = 0; again < STARTS; again++) {
        for (int i = 0; i < SEVERAL; i++) {
            k[i].salt += 3;
            fill(&k[i]);
            DO(t, MPI_Start(&k[i].request));
        }
        complete(t, k);
    }
    for (int i = 0; i < SEVERAL; i++) {
        DO(t, MPI_Request_free(&k[i].request));
        drop(&k[i]);
    }
}

static const struct round rounds[] = {{"a blocking collective", blocking},
                                      {"nonblocking collectives", nonblocking},
                                      {"persistent collectives", persistent},
                                      {NULL, NULL}};
struct kind kind_coll = {"coll", rounds, MPI_COMM_NULL, NULL};
