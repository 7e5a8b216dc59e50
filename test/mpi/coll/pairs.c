/*
 * pairs.c - large nonblocking collectives inside a node (src/coll/node/pairs.h): random ones, many pending and waited
 * for in any order, among blocking ones, with gaps in the types, in place and empty; each rank knows what every word of
 * its buffers has to be. Then a rank that computes has all done by the others: it starts operations and calls nothing
 * until the others say, by memory that they share, that theirs are over.
 *
 * With TEST_DIES the last rank is killed in the middle of it all; with TEST_SURVIVES, too, and the others have to go on after that: what
 * succeeds has its data, and nobody touches the memory of what has failed. With TEST_REFUSED some rank may not copy.
 */
#include "../check.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

enum { ROUNDS = 20, PENDING = 12, MOST = 60000, GAP = 3, RANKS = 16 };
enum { BCAST, GATHER, SCATTER, ALLGATHER, ALLTOALL, ALLGATHERV, GATHERV, SCATTERV, ALLTOALLV, KINDS };

static uint64_t common, own; /* drawn alike at all ranks, and by each for itself */

struct job {
    int kind, root, count, in_place, id;
    int stride[2];       /* words from one element to the next, of what is sent and received: an element is one word */
    MPI_Datatype type[2];
    uint64_t *send, *recv, *want;
    size_t words;
    int len[RANKS][RANKS];   /* v: of the block from one rank to another; allgatherv: to rank 0 */
    int sn[RANKS], sat[RANKS], rn[RANKS], rat[RANKS]; /* this rank's blocks, and where they begin */
};

static int draw(int n) { return (int)(check_random(&common) % (unsigned)n); }

/* Word i of what rank `from` has for rank `to`. */
static uint64_t value(const struct job *j, int from, int to, int i)
{
    uint64_t seed = (uint64_t)j->id << 40 | (uint64_t)from << 32 | (uint64_t)to << 24 | (uint64_t)(unsigned)i;
    return check_random(&seed);
}

static MPI_Datatype make_type(int stride)
{
    MPI_Datatype t;
    MPI_Type_create_resized(MPI_UINT64_T, 0, 8 * stride, &t);
    MPI_Type_commit(&t);
    return t;
}

/* Writes a block at element `place` of a buffer. */
static void put(uint64_t *buf, int stride, int place, const struct job *j, int from, int to, int count)
{
    for (int i = 0; i < count; i++) buf[(size_t)(place + i) * (size_t)stride] = value(j, from, to, i);
}

static int is_v(int kind) { return kind >= ALLGATHERV; }
static int to_all(int kind) { return kind == BCAST || kind == ALLGATHER || kind == ALLGATHERV; }
static int scatters(int kind) { return kind == SCATTER || kind == SCATTERV; }
static int gathers(int kind) { return kind == GATHER || kind == GATHERV; }

/* For whom a block is, in `value` and `len`. */
static int receiver(const struct job *j, int r) { return to_all(j->kind) ? 0 : r; }

static int length(const struct job *j, int from, int to)
{
    return is_v(j->kind) ? j->len[from][receiver(j, to)] : j->count;
}

static int gets_from(const struct job *j, int r)
{
    if (j->kind == BCAST || scatters(j->kind)) return r == j->root;
    return !gathers(j->kind) || check_rank == j->root;
}

static int one_block_out(int kind) { return to_all(kind) || gathers(kind); }
static int one_block_in(int kind) { return kind == BCAST || scatters(kind); }

static void make_lengths(struct job *j)
{
    int me = check_rank, same = j->kind == ALLTOALLV && j->in_place;
    for (int r = 0; r < check_size; r++)
        for (int q = 0; q < check_size; q++) {
            int n = draw(4) ? draw(j->count + 1) : draw(2) ? 0 : draw(j->count < 60 ? j->count + 1 : 60);
            j->len[r][q] = same && q < r ? j->len[q][r] : n;
        }
    for (int r = 0, in = 0, out = 0; r < check_size; r++) {
        j->sn[r] = length(j, me, r);
        j->rn[r] = length(j, r, me);
        j->sat[r] = one_block_out(j->kind) ? 0 : out;
        j->rat[r] = one_block_in(j->kind) ? 0 : in;
        out += j->sn[r];
        in += j->rn[r];
    }
}

/* What the receive buffer has to be: blocks, and else as before. */
static void expect(struct job *j)
{
    for (int r = 0; r < check_size; r++)
        if (gets_from(j, r) && !(scatters(j->kind) && check_rank == j->root && j->in_place))
            put(j->want, j->stride[1], j->rat[r], j, r, receiver(j, check_rank), j->rn[r]);
}

/* What this rank gives: in the send buffer, or where it belongs in the receive buffer. */
static void give(struct job *j)
{
    int me = check_rank, here = j->in_place && !scatters(j->kind);
    uint64_t *to = here || j->kind == BCAST ? j->recv : j->send;
    int s = j->stride[to == j->recv];
    if (j->kind == BCAST) {
        if (me == j->root) put(to, s, 0, j, me, 0, j->count);
    } else if (one_block_out(j->kind)) {
        int for_whom = gathers(j->kind) ? j->root : 0;
        put(to, s, here ? j->rat[me] : 0, j, me, for_whom, length(j, me, for_whom));
    } else {
        for (int r = 0; r < check_size; r++) put(to, s, here ? j->rat[r] : j->sat[r], j, me, r, j->sn[r]);
    }
}

static int start(struct job *j, MPI_Request *q)
{
    void *s = j->in_place ? MPI_IN_PLACE : j->send, *r = j->recv;
    int n = j->count;
    MPI_Datatype st = j->type[0], rt = j->type[1];
    MPI_Comm c = MPI_COMM_WORLD;
    switch (j->kind) {
    case BCAST: return MPI_Ibcast(r, n, rt, j->root, c, q);
    case GATHER: return MPI_Igather(s, n, st, r, n, rt, j->root, c, q);
    case SCATTER: return MPI_Iscatter(j->send, n, st, j->in_place ? MPI_IN_PLACE : r, n, rt, j->root, c, q);
    case ALLGATHER: return MPI_Iallgather(s, n, st, r, n, rt, c, q);
    case ALLGATHERV: return MPI_Iallgatherv(s, j->sn[0], st, r, j->rn, j->rat, rt, c, q);
    case GATHERV: return MPI_Igatherv(s, j->sn[j->root], st, r, j->rn, j->rat, rt, j->root, c, q);
    case SCATTERV:
        return MPI_Iscatterv(j->send, j->sn, j->sat, st, j->in_place ? MPI_IN_PLACE : r, j->rn[j->root], rt, j->root, c, q);
    case ALLTOALLV: return MPI_Ialltoallv(s, j->sn, j->sat, st, r, j->rn, j->rat, rt, c, q);
    default: return MPI_Ialltoall(s, n, st, r, n, rt, c, q);
    }
}

static void make_job(struct job *j, int gaps)
{
    static int id;
    int rooted;
    *j = (struct job){.kind = draw(KINDS), .root = draw(check_size), .id = ++id};
    j->count = draw(8) ? draw(MOST / check_size) : draw(2) ? 0 : draw(40);
    rooted = gathers(j->kind) || scatters(j->kind);
    j->in_place = draw(3) == 0 && j->kind != BCAST && (!rooted || check_rank == j->root);
    make_lengths(j);
    for (int i = 0; i < 2; i++) { /* gaps: each rank as it likes */
        j->stride[i] = gaps && check_random(&own) % 2 ? GAP : 1;
        j->type[i] = make_type(j->stride[i]);
    }
    j->words = (size_t)(j->count + 1) * GAP * (size_t)check_size;
    j->send = calloc(j->words, 8);
    j->recv = malloc(j->words * 8);
    j->want = malloc(j->words * 8);
    for (size_t i = 0; i < j->words; i++) j->recv[i] = check_random(&own);
    give(j);
    memcpy(j->want, j->recv, j->words * 8);
    expect(j);
}

static size_t differ(const struct job *j)
{
    size_t bad = 0;
    for (size_t i = 0; i < j->words; i++) bad += j->recv[i] != j->want[i];
    return bad;
}

/* Does word i come from this rank itself? */
static int is_own(const struct job *j, size_t i)
{
    int at = (int)(i / (size_t)j->stride[1]) - j->rat[check_rank];
    return j->kind != BCAST && gets_from(j, check_rank) && at >= 0 && at < j->rn[check_rank];
}

/* Is what a rank has for itself done by the others, too? If it is long, every rank has a core, and none a helper that does it at its own
 * time. How many cores there are is known by the hook only: the system may have set a quota. */
static int is_carried(const struct job *j)
{
    const char *cpus = getenv("TERN_TEST_CPUS"), *spin = getenv("TERN_SPIN"), *progress = getenv("TERN_PROGRESS");
    int level, helps = progress && !strcmp(progress, "helper"), never = spin && !strcmp(spin, "never");
    MPI_Query_thread(&level);
    helps |= level == MPI_THREAD_MULTIPLE; /* where there is a core for it, of its own accord */
    return (size_t)j->rn[check_rank] * sizeof *j->recv > 32768 && cpus && check_size <= atoi(cpus) && !helps && !never;
}

/* What comes from others, before the operation has been waited for. A helper thread may have written it, so that is a race, on
 * purpose. */
__attribute__((no_sanitize_thread)) static size_t differ_already(const struct job *j)
{
    size_t bad = 0;
    int carried = is_carried(j);
    for (size_t i = 0; i < j->words; i++) bad += (!is_own(j, i) || carried) && *(volatile uint64_t *)&j->recv[i] != j->want[i];
    return bad;
}

static void check_job(const struct job *j, size_t bad)
{
    CHECK(!bad, "kind %d, %d elements, root %d%s, strides %d %d: %zu words differ", j->kind, j->count, j->root,
          j->in_place ? ", in place" : "", j->stride[0], j->stride[1], bad);
}

static void drop_job(struct job *j)
{
    for (int i = 0; i < 2; i++) MPI_Type_free(&j->type[i]);
    free(j->send);
    free(j->recv);
    free(j->want);
}

/* Blocking ones in between, small or large. */
static void interrupt(void)
{
    static double in[4000], out[4000];
    int n = draw(2) ? 1 : 4000;
    for (int i = 0; i < n; i++) in[i] = 1;
    CHECK_OK(MPI_Allreduce(in, out, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    CHECK(out[n - 1] == check_size, "%g instead of %d", out[n - 1], check_size);
}

/* Several pending; each rank waits in an order of its own, by one way or the other. */
static void round_of(int gaps)
{
    struct job j[PENDING];
    MPI_Request q[PENDING];
    int n = 1 + draw(PENDING), left = n;
    for (int i = 0; i < n; i++) {
        make_job(&j[i], gaps);
        CHECK_OK(start(&j[i], &q[i]));
        if (!draw(6)) interrupt();
    }
    while (left) {
        int i = (int)(check_random(&own) % (unsigned)n), flag = 1;
        if (q[i] == MPI_REQUEST_NULL) continue;
        if (check_random(&own) % 2) CHECK_OK(MPI_Wait(&q[i], MPI_STATUS_IGNORE));
        else CHECK_OK(MPI_Test(&q[i], &flag, MPI_STATUS_IGNORE));
        if (!flag) continue;
        check_job(&j[i], differ(&j[i]));
        left--;
    }
    for (int i = 0; i < n; i++) drop_job(&j[i]);
}

/* ---- a rank dies ---- */

/* The program takes its buffers back. */
static void use_again(struct job *j)
{
    memset(j->send, 0x5a, j->words * 8);
    memset(j->recv, 0x5a, j->words * 8);
    memset(j->want, 0x5a, j->words * 8);
}

/* 1: it has failed, which only the loss of a process is the reason for. */
static int check_end(struct job *j, int code)
{
    int class;
    if (!code) {
        check_job(j, differ(j));
        return 0;
    }
    MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_PROC_ABORTED, "kind %d fails with class %d", j->kind, class);
    use_again(j);
    return 1;
}

/* Time for others that still copy. */
static void look_on(int ms)
{
    for (int i = 0, flag; i < ms; i++) {
        (void)MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        usleep(1000);
    }
}

enum { TERMS = 40000 };

static size_t sums_differ(const uint64_t *out, uint64_t want, uint64_t more)
{
    size_t bad = 0;
    for (int i = 0; i < TERMS; i++) bad += out[i] != want + more * (uint64_t)i;
    return bad;
}

/* A large reduction: does it fail? */
static int reduce_to_death(void)
{
    static uint64_t in[TERMS], out[TERMS];
    uint64_t n = (uint64_t)check_size;
    int to_all = draw(2), root = draw(check_size), gets = to_all || check_rank == root;
    for (int i = 0; i < TERMS; i++) in[i] = (uint64_t)(check_rank + i), out[i] = 7;
    int code = to_all ? MPI_Allreduce(in, out, TERMS, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD)
                      : MPI_Reduce(in, out, TERMS, MPI_UINT64_T, MPI_SUM, root, MPI_COMM_WORLD);
    if (!code) {
        CHECK(!gets || !sums_differ(out, n * (n - 1) / 2, n), "a sum is wrong");
        return 0;
    }
    for (int i = 0; i < TERMS; i++) in[i] = out[i] = 7;
    look_on(20);
    CHECK(!sums_differ(out, 7, 0), "a reduction has failed, and its result is written to");
    return 1;
}

/* Does anything fail? */
static int round_to_death(int gaps)
{
    struct job j[PENDING];
    MPI_Request q[PENDING];
    int n = 1 + draw(PENDING), any = draw(2) ? reduce_to_death() : 0, failed[PENDING];
    static double in[4000], out[4000];
    for (int i = 0; i < n; i++) {
        make_job(&j[i], gaps);
        int code = start(&j[i], &q[i]);
        failed[i] = code && check_end(&j[i], code);
        CHECK(!failed[i] || q[i] == MPI_REQUEST_NULL, "a start that fails leaves a request");
        if (!draw(6)) any |= MPI_Allreduce(in, out, draw(2) ? 1 : 4000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS;
    }
    for (int i = 0; i < n; i++)
        if (!failed[i]) failed[i] = check_end(&j[i], MPI_Wait(&q[i], MPI_STATUS_IGNORE));
    for (int i = 0; i < n; i++) any |= failed[i];
    if (any) look_on(20);
    for (int i = 0; i < n; i++) {
        CHECK(!failed[i] || !differ(&j[i]), "kind %d has failed, and its buffer is written to", j[i].kind);
        drop_job(&j[i]);
    }
    return any;
}

/* The launcher ends the job, or it does not. */
static int go_on_to_death(void)
{
    for (int i = 0; !round_to_death(i % 2); i++) continue;
    while (getenv("TEST_DIES")) pause();
    printf("rank %d goes on, failed: %ld\n", check_rank, check_failures);
    fflush(NULL);
    _exit(check_failures != 0);
}

/* ---- a rank that computes ---- */

static volatile int *said; /* of all ranks: what they have come to */

static void share_memory(void)
{
    char name[64] = "/tmp/pairs-XXXXXX";
    int fd = check_rank ? -1 : mkstemp(name);
    CHECK_OK(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD));
    FILE *f = check_rank ? fopen(name, "r+") : fdopen(fd, "r+");
    if (check_rank == 0 && ftruncate(fd, 4096)) perror("ftruncate");
    MPI_Barrier(MPI_COMM_WORLD);
    said = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
    fclose(f);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0) unlink(name);
}

/* Until all others have said so, without calling MPI. */
static int others_come_to(int what)
{
    int seconds = 60 * 1000;
    for (; seconds > 0; seconds--) {
        int there = 1;
        for (int r = 0; r < check_size; r++) there &= r == check_rank || said[r] >= what;
        if (there) return 1;
        usleep(1000);
    }
    return 0;
}

/* Where the system forbids single copies, messages are what there is. */
static int may_copy(void)
{
    static struct { long pid; int *at; } mine, all[RANKS];
    static int word = 4711;
    int ok = 1;
    mine.pid = getpid();
    mine.at = &word;
    MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
    for (int r = 0; r < check_size; r++) {
        int seen = 0;
        struct iovec to = {&seen, sizeof seen}, from = {all[r].at, sizeof seen};
        if (process_vm_readv((pid_t)all[r].pid, &to, 1, &from, 1, 0) < 0 || seen != 4711) ok = 0;
    }
    MPI_Allreduce(MPI_IN_PLACE, &ok, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return ok;
}

static void computing_rank(int who, int step)
{
    enum { N = 3 };
    struct job j[N];
    MPI_Request q[N];
    for (int i = 0; i < N; i++) {
        make_job(&j[i], 0);
        if (j[i].count < 3000 || j[i].kind == ALLGATHERV) { /* so that it is one of these; all its blocks may be small */
            drop_job(&j[i--]);
            continue;
        }
        CHECK_OK(start(&j[i], &q[i]));
    }
    if (check_rank == who) {
        CHECK(others_come_to(step), "the others wait for a rank that computes");
        for (int i = 0; i < N; i++)
            CHECK(is_v(j[i].kind) || !differ_already(&j[i]), "kind %d: the others do not do all", j[i].kind); /* v: but short blocks */
    }
    CHECK_OK(MPI_Waitall(N, q, MPI_STATUSES_IGNORE));
    for (int i = 0, flag; i < 1000 && check_rank != who; i++) /* which looks for what is to be done */
        CHECK_OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    said[check_rank] = step;
    for (int i = 0; i < N; i++) {
        check_job(&j[i], differ(&j[i]));
        drop_job(&j[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Somebody sends more than there is room for: whoever receives is told, and nobody hangs. (By messages somebody might: the
 * root's operation ends, and other senders are left without a receive.) */
static void too_much(void)
{
    static char in[200000], out[RANKS * 100000];
    MPI_Request q;
    int n = check_rank == 1 ? 200000 : 100000;
    MPI_Igather(in, n, MPI_BYTE, out, 100000, MPI_BYTE, 0, MPI_COMM_WORLD, &q);
    if (check_rank == 0) CHECK_CLASS(MPI_Wait(&q, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    else CHECK_OK(MPI_Wait(&q, MPI_STATUS_IGNORE));
}

/* The same with blocks whose lengths only two know: rank 1 (scatterv: 0) sends `sent` bytes where `expected` are. */
static void disagree(int kind, int sent, int expected)
{
    static char in[200000], out[200000];
    int sn[RANKS] = {0}, rn[RANKS] = {0}, at[RANKS] = {0}, to = kind == SCATTERV, me = check_rank;
    MPI_Comm c = MPI_COMM_WORLD;
    MPI_Request q;
    if (me == !to) sn[to] = sent;
    if (me == to) rn[!to] = expected;
    if (kind == GATHERV) MPI_Igatherv(in, sn[0], MPI_BYTE, out, rn, at, MPI_BYTE, 0, c, &q);
    else if (kind == SCATTERV) MPI_Iscatterv(in, sn, at, MPI_BYTE, out, rn[0], MPI_BYTE, 0, c, &q);
    else MPI_Ialltoallv(in, sn, at, MPI_BYTE, out, rn, at, MPI_BYTE, c, &q);
    if (me != to) CHECK_OK(MPI_Wait(&q, MPI_STATUS_IGNORE));
    else CHECK_CLASS(MPI_Wait(&q, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    CHECK_OK(MPI_Barrier(c));
}

static void disagree_all(void)
{
    static const int kinds[] = {GATHERV, SCATTERV, ALLTOALLV};
    for (int i = 0; i < 3; i++) {
        disagree(kinds[i], 200000, 100000);
        disagree(kinds[i], 200000, 100);
        disagree(kinds[i], 100, 200000);
    }
}

static void die(int sig)
{
    (void)sig;
    kill(getpid(), SIGKILL);
}

/* Some milliseconds from now. */
static void prepare_to_die(void)
{
    struct itimerval t = {.it_value.tv_usec = 1000 + (int)(check_random(&own) % 200000)};
    signal(SIGALRM, die);
    setitimer(ITIMER_REAL, &t, NULL);
}

/* All ranks on one node, by shared memory? Elsewhere these are messages. */
static int are_together(void)
{
    const char *transports = getenv("TERN_TRANSPORTS");
    MPI_Comm node;
    int near;
    CHECK_OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    MPI_Comm_size(node, &near);
    MPI_Comm_free(&node);
    return MPI_Allreduce(MPI_IN_PLACE, &near, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD) == MPI_SUCCESS && near == check_size &&
           (!transports || strstr(transports, "shm"));
}

int main(int argc, char **argv)
{
    int dies = getenv("TEST_DIES") || getenv("TEST_SURVIVES");
    check_start_thread(&argc, &argv, getenv("TEST_THREADS") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    common = check_seed();
    own = common * 31 + (uint64_t)check_rank;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (dies && check_rank == check_size - 1) prepare_to_die();
    if (dies) return go_on_to_death();
    for (int i = 0; i < ROUNDS; i++) round_of(i % 2);
    if (getenv("TEST_REFUSED") || !are_together() || !may_copy()) return check_done();
    if (check_size > 1) too_much();
    if (check_size > 1) disagree_all();
    if (getenv("TERN_TEST_PAIR_SETS")) return check_done(); /* too few for what a rank starts before it computes */
    share_memory();
    for (int i = 1; i <= 2 * check_size; i++) computing_rank(i % check_size, i);
    return check_done();
}
