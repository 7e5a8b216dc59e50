/*
 * turns.c - MPI_THREAD_SERIALIZED: the threads of a rank take turns, by a mutex of the program. Each piece of what they do
 * together - an operation is started, completed, its object freed, its error explained - is another thread's than the piece
 * before, and threads end and are made anew. Everything that the library keeps for a thread has to be right then. By
 * random numbers with a seed.
 *
 * Requests are on two communicators, which are in two lanes where there are several.
 *
 * TURNS=join: meanwhile another thread opens a session, and uses it at the same time: with MPI_THREAD_MULTIPLE, or alone.
 */
#include "../rounds.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { THREADS = 5, MANY = 40, LARGEST = 300000, TAG = 5, JOINER_ROUNDS = 200 };

static uint64_t seed;
static int left, right;
static MPI_Comm world; /* a duplicate of MPI_COMM_WORLD, errors return */
static MPI_Comm apart; /* one more, in a lane of its own if there are several */

static MPI_Comm one_of_two(int i) { return i % 2 ? apart : world; }

static int number(int n) { return (int)(check_random(&seed) % (uint64_t)n); }

/* ---- the pieces: the state of what is under way is the process's ---- */

static MPI_Request r[2 * MANY];
static char *in[MANY], *out[MANY];
static int length[MANY], count;

static void choose(int most)
{
    static const int lengths[] = {0, 8, 200, 5000, 70000, LARGEST};
    count = 1 + number(most);
    for (int i = 0; i < count; i++) {
        length[i] = lengths[number(6)];
        check_fill(out[i], (size_t)length[i], (uint64_t)(check_rank * 1000 + i));
        memset(in[i], 0xee, (size_t)length[i]);
    }
}

static void compare(const char *what)
{
    for (int i = 0; i < count; i++) {
        size_t bad = check_differ(in[i], (size_t)length[i], (uint64_t)(left * 1000 + i));
        CHECK(!bad, "%s: message %d of %d bytes: %zu bytes are wrong", what, i, length[i], bad);
    }
}

static void post(void)
{
    choose(MANY);
    for (int i = 0; i < count; i++) CHECK_OK(MPI_Irecv(in[i], length[i], MPI_BYTE, left, TAG + i, one_of_two(i), &r[i]));
}
static void isend(void)
{
    for (int i = 0; i < count; i++) CHECK_OK(MPI_Isend(out[i], length[i], MPI_BYTE, right, TAG + i, one_of_two(i), &r[count + i]));
}
static void wait_all(void)
{
    CHECK_OK(MPI_Waitall(2 * count, r, MPI_STATUSES_IGNORE));
    compare("MPI_Waitall");
}
static void wait_some(void)
{
    int indices[2 * MANY], n = 0;
    CHECK_OK(MPI_Waitsome(2 * count, r, &n, indices, MPI_STATUSES_IGNORE));
    CHECK(n > 0, "MPI_Waitsome: %d", n);
}
static void test_all(void)
{
    int done = 0;
    while (!done) CHECK_OK(MPI_Testall(2 * count, r, &done, MPI_STATUSES_IGNORE));
    compare("MPI_Testall");
}

static void exchange(void)
{
    choose(1);
    CHECK_OK(MPI_Sendrecv(out[0], length[0], MPI_BYTE, right, TAG, in[0], length[0], MPI_BYTE, left, TAG, world,
                          MPI_STATUS_IGNORE));
    compare("MPI_Sendrecv");
}

static void send_small(void)
{
    choose(1);
    length[0] = 8;
    check_fill(out[0], 8, (uint64_t)(check_rank * 1000));
    CHECK_OK(MPI_Send(out[0], 8, MPI_BYTE, right, TAG, world));
}
static void receive(void)
{
    CHECK_OK(MPI_Recv(in[0], 8, MPI_BYTE, left, TAG, world, MPI_STATUS_IGNORE));
    compare("MPI_Recv");
}
static MPI_Message message;
static void probe(void)
{
    MPI_Status st;
    int bytes = -1;
    CHECK_OK(MPI_Probe(left, TAG, world, &st));
    MPI_Get_count(&st, MPI_BYTE, &bytes);
    CHECK(bytes == 8, "MPI_Probe: %d bytes", bytes);
}
static void mprobe(void) { CHECK_OK(MPI_Mprobe(MPI_ANY_SOURCE, TAG, world, &message, MPI_STATUS_IGNORE)); }
static void mrecv(void)
{
    CHECK_OK(MPI_Mrecv(in[0], 8, MPI_BYTE, &message, MPI_STATUS_IGNORE));
    compare("MPI_Mrecv");
}

static void persist(void)
{
    choose(MANY);
    for (int i = 0; i < count; i++) {
        CHECK_OK(MPI_Recv_init(in[i], length[i], MPI_BYTE, left, TAG + i, one_of_two(i), &r[i]));
        CHECK_OK(MPI_Send_init(out[i], length[i], MPI_BYTE, right, TAG + i, one_of_two(i), &r[count + i]));
    }
}
static void start_all(void) { CHECK_OK(MPI_Startall(2 * count, r)); }
static void free_all(void)
{
    for (int i = 0; i < 2 * count; i++) CHECK_OK(MPI_Request_free(&r[i]));
}

static void cancel_posted(void)
{
    choose(MANY);
    for (int i = 0; i < count; i++) {
        CHECK_OK(MPI_Irecv(in[i], length[i], MPI_BYTE, left, TAG + MANY, world, &r[i]));
        CHECK_OK(MPI_Cancel(&r[i]));
        r[count + i] = MPI_REQUEST_NULL;
    }
}
static void wait_cancelled(void)
{
    MPI_Status st[2 * MANY];
    int cancelled;
    CHECK_OK(MPI_Waitall(2 * count, r, st));
    for (int i = 0; i < count; i++) {
        MPI_Test_cancelled(&st[i], &cancelled);
        CHECK(cancelled, "receive %d of %d is not cancelled", i, count);
    }
}

/* Nobody waits for these sends: whoever comes next in the library gives the requests back. */
static void send_and_forget(void)
{
    choose(MANY);
    for (int i = 0; i < count; i++) {
        CHECK_OK(MPI_Isend(out[i], length[i], MPI_BYTE, right, TAG + i, one_of_two(i), &r[i]));
        CHECK_OK(MPI_Request_free(&r[i]));
    }
}
static void receive_all(void)
{
    for (int i = 0; i < count; i++)
        CHECK_OK(MPI_Recv(in[i], length[i], MPI_BYTE, left, TAG + i, one_of_two(i), MPI_STATUS_IGNORE));
    compare("of sends that nobody waits for");
    CHECK_OK(MPI_Barrier(world)); /* what was sent may be written again */
}

/* ---- collectives ---- */

static MPI_Comm made = MPI_COMM_NULL;
static MPI_Op op = MPI_OP_NULL;
static MPI_Request coll[4];
static long mine, sum, product, root_word, blocks[64], all[64];

static void add(void *a, void *b, int *n, MPI_Datatype *t)
{
    (void)t;
    for (int i = 0; i < *n; i++) ((long *)b)[i] += ((long *)a)[i];
}

static long triangle(void) { return (long)check_size * (check_size + 1) / 2; }

static void make_comm(void)
{
    if (number(2)) CHECK_OK(MPI_Comm_dup(world, &made));
    else CHECK_OK(MPI_Comm_split(world, 0, check_rank, &made));
    CHECK_OK(MPI_Op_create(add, 1, &op));
}
static void reduce(void)
{
    mine = check_rank + 1;
    sum = 0;
    CHECK_OK(MPI_Allreduce(&mine, &sum, 1, MPI_LONG, number(2) ? op : MPI_SUM, made));
    CHECK(sum == triangle(), "MPI_Allreduce: %ld", sum);
    CHECK_OK(MPI_Barrier(made));
}
static void start_collectives(void)
{
    mine = check_rank + 1;
    root_word = check_rank == 0 ? 4711 : 0;
    for (int i = 0; i < check_size; i++) blocks[i] = check_rank * 100 + i;
    CHECK_OK(MPI_Iallreduce(&mine, &product, 1, MPI_LONG, op, made, &coll[0]));
    CHECK_OK(MPI_Ibcast(&root_word, 1, MPI_LONG, 0, made, &coll[1]));
    CHECK_OK(MPI_Ialltoall(blocks, 1, MPI_LONG, all, 1, MPI_LONG, made, &coll[2]));
    CHECK_OK(MPI_Ibarrier(made, &coll[3]));
}
static void wait_collectives(void)
{
    CHECK_OK(MPI_Waitall(4, coll, MPI_STATUSES_IGNORE));
    CHECK(product == triangle() && root_word == 4711, "MPI_Iallreduce: %ld, MPI_Ibcast: %ld", product, root_word);
    for (int i = 0; i < check_size; i++) CHECK(all[i] == i * 100 + check_rank, "MPI_Ialltoall: %ld from rank %d", all[i], i);
}
static void big_collective(void)
{
    if (check_rank == 0) check_fill(in[0], LARGEST, 99);
    else memset(in[0], 0, LARGEST);
    CHECK_OK(MPI_Bcast(in[0], LARGEST, MPI_BYTE, 0, made));
    CHECK(!check_differ(in[0], LARGEST, 99), "MPI_Bcast of %d bytes", LARGEST);
}
static void free_comm(void)
{
    CHECK_OK(MPI_Op_free(&op));
    CHECK_OK(MPI_Comm_free(&made));
}

/* ---- errors: words belong to the thread that saw the failure ---- */

static void fail(void)
{
    CHECK_WORDS(MPI_Send(out[0], 1, MPI_BYTE, check_size, TAG, world), MPI_ERR_RANK, "MPI_Send");
    CHECK_WORDS(MPI_Send(out[0], -1, MPI_BYTE, right, TAG, world), MPI_ERR_COUNT, "-1");
}
static void truncate(void)
{
    choose(1);
    CHECK_OK(MPI_Irecv(in[0], 4, MPI_BYTE, left, TAG, world, &r[0]));
    CHECK_OK(MPI_Send(out[0], 8, MPI_BYTE, right, TAG, world));
}
static void wait_truncated(void) { CHECK_WORDS(MPI_Wait(&r[0], MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE, "is longer than the receive buffer"); }

/* What is done in this order, a piece a turn. */
static void (*const programs[][8])(void) = {
    {post, isend, wait_all},
    {post, isend, test_all},
    {post, isend, wait_some, wait_all},
    {exchange},
    {send_small, receive},
    {send_small, probe, receive},
    {send_small, mprobe, mrecv},
    {persist, start_all, wait_all, start_all, test_all, free_all},
    {cancel_posted, wait_cancelled},
    {send_and_forget, receive_all},
    {make_comm, reduce, start_collectives, wait_collectives, big_collective, reduce, free_comm},
    {fail},
    {truncate, wait_truncated},
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

/* ---- turns ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long turns;
static int left_over, program, piece; /* programs that are still to come; the one under way */
static bool over;

static void take_turn(void)
{
    if (piece == 8 || !programs[program][piece]) {
        over = !left_over--;
        program = number(PROGRAMS);
        piece = 0;
    }
    if (!over) programs[program][piece++]();
}

/* A thread's turn comes once in THREADS turns; in other ranks it is another thread's. */
static void *play(void *arg)
{
    long me = (long)(intptr_t)arg;
    pthread_mutex_lock(&mutex);
    while (!over) {
        if ((turns + check_rank) % THREADS == me) {
            take_turn();
            turns++;
            pthread_cond_broadcast(&changed);
        } else {
            pthread_cond_wait(&changed, &mutex);
        }
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

/* ---- the thread that joins ---- */

struct joiner {
    pthread_t id;
    int nap_us;
    const char *level; /* of thread support */
    long bad;
};

static void *join(void *arg)
{
    struct joiner *j = arg;
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    MPI_Info info;
    nanosleep(&(struct timespec){.tv_nsec = j->nap_us * 1000L}, NULL);
    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", j->level);
    j->bad += MPI_Session_init(info, MPI_ERRORS_RETURN, &session) != MPI_SUCCESS;
    MPI_Info_free(&info);
    j->bad += MPI_Group_from_session_pset(session, "mpi://WORLD", &group) != MPI_SUCCESS;
    j->bad += MPI_Comm_create_from_group(group, "turns", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) != MPI_SUCCESS;
    for (int i = 0; i < JOINER_ROUNDS; i++) {
        long to = i, from = -1, total = -1;
        MPI_Sendrecv(&to, 1, MPI_LONG, right, TAG, &from, 1, MPI_LONG, left, TAG, comm, MPI_STATUS_IGNORE);
        MPI_Allreduce(&to, &total, 1, MPI_LONG, MPI_SUM, comm);
        j->bad += from != i || total != (long)i * check_size;
    }
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    j->bad += MPI_Session_finalize(&session) != MPI_SUCCESS;
    return NULL;
}

static void play_all(bool joined)
{
    pthread_t t[THREADS];
    static const char *const levels[] = {"MPI_THREAD_MULTIPLE", "MPI_THREAD_SERIALIZED", "MPI_THREAD_SINGLE"};
    struct joiner j = {.nap_us = number(20000), .level = levels[number(3)]};
    over = false;
    left_over = PROGRAMS * 3;
    piece = 8;
    for (int i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, play, (void *)(intptr_t)i);
    if (joined) pthread_create(&j.id, NULL, join, &j);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    if (!joined) return;
    pthread_join(j.id, NULL);
    CHECK(j.bad == 0, "the thread that joined: %ld failures", j.bad);
}

int main(int argc, char **argv)
{
    check_start_thread(&argc, &argv, MPI_THREAD_SERIALIZED);
    seed = check_seed();
    left = (check_rank + check_size - 1) % check_size;
    right = (check_rank + 1) % check_size;
    MPI_Info own;
    MPI_Info_create(&own);
    MPI_Info_set(own, "tern_lane", "own");
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, own, &apart);
    MPI_Info_free(&own);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(apart, MPI_ERRORS_RETURN);
    for (int i = 0; i < MANY; i++) {
        in[i] = malloc(LARGEST);
        out[i] = malloc(LARGEST);
    }
    for (int i = 0; i < 2 * MANY; i++) r[i] = MPI_REQUEST_NULL;
    bool joins = getenv("TURNS") && !strcmp(getenv("TURNS"), "join");
    double end = rounds_end(argc, argv);
    do {
        play_all(joins);
        joins = false;
    } while (rounds_more(end));
    if (check_rank == 0) printf("%ld turns of %d threads\n", turns, THREADS);
    for (int i = 0; i < MANY; i++) {
        free(in[i]);
        free(out[i]);
    }
    MPI_Comm_free(&apart);
    MPI_Comm_free(&world);
    return check_done();
}
