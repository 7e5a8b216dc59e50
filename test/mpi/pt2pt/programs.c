/*
 * programs.c - random programs of sends and receives, and whether what they do keeps to the order of messages (MPI-5.0 section 3.5).
 *
 *     programs [SECONDS]
 *
 * With TEST_PROGRAMS=N, N programs of a few small messages: to be run with a small limit of eager ones (make check-match).
 *
 * In a program each rank sends messages of random sizes, tags and communicators to random ranks, and posts as many receives as
 * come to it: of the source and tag of a message, or with wildcards in place of either (30 %). Between these it computes, tests, cancels
 * a receive, or receives by a matched probe what it finds. Receives that wildcards have left without a message are cancelled at the end,
 * and what is left is received.
 *
 * All ranks know what all send. The oracle, for the messages of one sender and communicator in the order in which they were sent, and
 * the receives in the order in which they were posted (that of a probe: when it has found its message):
 *   - if two receives would take the same message, the one that was posted first has got one that was sent before;
 *   - a receive that was cancelled had no message that it would have taken pass it by: one that a later receive had got by then.
 * And each message is whole, and written nowhere else.
 */
#include "../rounds.h"

enum { RANKS = 8, MESSAGES = 24, TAGS = 3, COMMS = 2, LARGEST = 150000, GUARD = 64 };

static MPI_Comm comms[COMMS];
static int messages = MESSAGES, small; /* of each rank; is none of them large? */

struct message {
    int to, tag, comm, size;
};
static struct message sent[RANKS][MESSAGES];

struct receive {
    int source, tag, comm; /* as it was posted */
    int room;
    MPI_Request request;
    char *buf;
    int over;           /* it has got a message */
    int from, index;    /* ... this one: sent[from][index] */
    int seen, cancelled; /* when: so many things had been seen before; 0: not */
};
static struct receive received[2 * RANKS * MESSAGES];
static int receives;
static int seen;
static uint64_t dice;

static unsigned roll(unsigned n) { return (unsigned)(check_random(&dice) % n); }

/* Below and above what is eager. */
static int random_size(uint64_t *state)
{
    if (small) return 4 + (int)(check_random(state) % 1000);
    unsigned r = (unsigned)(check_random(state) % 8);
    if (r < 3) return 4 + (int)(check_random(state) % 2000);
    return r < 4 ? 30000 + (int)(check_random(state) % 6000) : 40000 + (int)(check_random(state) % (LARGEST - 40000));
}

/* The same at all ranks. */
static void plan(uint64_t state)
{
    for (int r = 0; r < check_size; r++) {
        for (int i = 0; i < messages; i++) {
            struct message *m = &sent[r][i];
            m->to = (int)(check_random(&state) % (unsigned)check_size);
            m->tag = (int)(check_random(&state) % TAGS);
            m->comm = (int)(check_random(&state) % COMMS);
            m->size = random_size(&state);
        }
    }
}

/* Does that message come to this rank? */
static int comes(int id) { return id % MESSAGES < messages && sent[id / MESSAGES][id % MESSAGES].to == check_rank; }

/* The first word says which one it is. */
static void fill(char *at, int from, int index)
{
    int words[1] = {from * MESSAGES + index};
    check_fill(at, (size_t)sent[from][index].size, (unsigned long)words[0] + 7);
    memcpy(at, words, sizeof words);
}

static void check_message(struct receive *r, const MPI_Status *s)
{
    int n, id;
    MPI_Get_count(s, MPI_BYTE, &n);
    memcpy(&id, r->buf, sizeof id);
    r->over = 1;
    r->seen = ++seen;
    int known = id >= 0 && id < check_size * MESSAGES && id % MESSAGES < messages;
    CHECK(known, "message %d", id);
    if (!known) return;
    r->from = id / MESSAGES;
    r->index = id % MESSAGES;
    const struct message *m = &sent[r->from][r->index];
    CHECK(m->to == check_rank && m->comm == r->comm && s->MPI_SOURCE == r->from && s->MPI_TAG == m->tag && n == m->size,
          "message %d of rank %d: source %d, tag %d, %d bytes", r->index, r->from, s->MPI_SOURCE, s->MPI_TAG, n);
    CHECK(r->source == MPI_ANY_SOURCE || r->source == r->from, "from %d in place of %d", r->from, r->source);
    CHECK(r->tag == MPI_ANY_TAG || r->tag == m->tag, "tag %d in place of %d", m->tag, r->tag);
    char *copy = malloc((size_t)n);
    fill(copy, r->from, r->index);
    CHECK(!memcmp(copy, r->buf, (size_t)n), "message %d of rank %d has been changed", r->index, r->from);
    free(copy);
    for (int i = 0; i < GUARD; i++) CHECK(r->buf[r->room + i] == 'g', "byte %d behind the buffer", i);
}

static struct receive *new_receive(int source, int tag, int comm)
{
    struct receive *r = &received[receives++];
    *r = (struct receive){.source = source, .tag = tag, .comm = comm, .room = small ? 1004 : LARGEST, .request = MPI_REQUEST_NULL};
    r->buf = malloc((size_t)r->room + GUARD);
    memset(r->buf, 'p', 4);
    memset(r->buf + r->room, 'g', GUARD);
    return r;
}

static void post(int source, int tag, int comm)
{
    struct receive *r = new_receive(source, tag, comm);
    CHECK_OK(MPI_Irecv(r->buf, r->room, MPI_BYTE, source, tag, comms[comm], &r->request));
}

/* Those that are over now. */
static void look(void)
{
    for (int i = 0; i < receives; i++) {
        struct receive *r = &received[i];
        MPI_Status s;
        int flag = 0;
        if (r->request == MPI_REQUEST_NULL) continue;
        CHECK_OK(MPI_Test(&r->request, &flag, &s));
        if (flag) check_message(r, &s);
    }
}

static void cancel(struct receive *r)
{
    MPI_Status s;
    int cancelled;
    CHECK_OK(MPI_Cancel(&r->request));
    CHECK_OK(MPI_Wait(&r->request, &s));
    MPI_Test_cancelled(&s, &cancelled);
    if (cancelled) r->cancelled = ++seen;
    else check_message(r, &s);
}

/* A message that no receive has taken yet, if there is one. */
static void probe(void)
{
    int comm = (int)roll(COMMS), source = roll(2) ? MPI_ANY_SOURCE : (int)roll((unsigned)check_size), flag = 0;
    int tag = roll(2) ? MPI_ANY_TAG : (int)roll(TAGS);
    MPI_Message m;
    MPI_Status s;
    CHECK_OK(MPI_Improbe(source, tag, comms[comm], &flag, &m, MPI_STATUS_IGNORE));
    if (!flag) return;
    struct receive *r = new_receive(source, tag, comm);
    CHECK_OK(MPI_Mrecv(r->buf, r->room, MPI_BYTE, &m, &s));
    check_message(r, &s);
}

static void cancel_one(void)
{
    struct receive *r = receives ? &received[roll((unsigned)receives)] : NULL;
    if (r && r->request != MPI_REQUEST_NULL) cancel(r);
}

/* Receives for messages in random order, some with wildcards. */
static void post_next(const int *order, int i)
{
    const struct message *m = &sent[order[i] / MESSAGES][order[i] % MESSAGES];
    unsigned kind = roll(10);
    post(kind < 2 ? MPI_ANY_SOURCE : order[i] / MESSAGES, kind == 1 || kind == 2 ? MPI_ANY_TAG : m->tag, m->comm);
}

static int shuffle(int *order)
{
    int n = 0;
    int in_order = roll(2);
    for (int id = 0; id < check_size * MESSAGES; id++)
        if (comes(id)) order[n++] = id;
    for (int i = n - 1; i > 0 && !in_order; i--) {
        int k = (int)roll((unsigned)i + 1), t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
    return n;
}

static int takes(const struct receive *r, const struct receive *other)
{
    const struct message *m = &sent[other->from][other->index];
    return r->comm == m->comm && (r->source == MPI_ANY_SOURCE || r->source == other->from) && (r->tag == MPI_ANY_TAG || r->tag == m->tag);
}

static void check_order(void)
{
    for (int i = 0; i < receives; i++) {
        for (int k = i + 1; k < receives; k++) {
            const struct receive *a = &received[i], *b = &received[k];
            if (!b->over || !takes(a, b)) continue;
            CHECK(!a->cancelled || b->seen > a->cancelled,
                  "rank %d: message %d of rank %d came to receive %d; receive %d, cancelled later, takes it", check_rank, b->index,
                  b->from, k, i);
            if (!a->over || a->from != b->from) continue;
            CHECK(a->index < b->index, "rank %d: messages %d and %d of rank %d came to receives %d and %d", check_rank, a->index, b->index,
                  a->from, i, k);
        }
    }
}

/* Receives whose messages others have got are cancelled, and the rest is received. */
static void receive_rest(void)
{
    double until = MPI_Wtime() + (small ? 0 : 0.002);
    int got[COMMS] = {0}, all[COMMS] = {0};
    while (MPI_Wtime() < until) look();
    for (int i = 0; i < receives; i++)
        if (received[i].request != MPI_REQUEST_NULL) cancel(&received[i]);
    for (int i = 0; i < receives; i++) got[received[i].comm] += received[i].over;
    for (int id = 0; id < check_size * MESSAGES; id++) {
        if (comes(id)) all[sent[id / MESSAGES][id % MESSAGES].comm]++;
    }
    for (int c = 0; c < COMMS; c++) {
        for (int i = got[c]; i < all[c]; i++) {
            MPI_Status s;
            post(MPI_ANY_SOURCE, MPI_ANY_TAG, c);
            CHECK_OK(MPI_Wait(&received[receives - 1].request, &s));
            check_message(&received[receives - 1], &s);
        }
    }
}

static void one_round(void)
{
    static int order[RANKS * MESSAGES];
    static char *data[MESSAGES];
    MPI_Request sends[MESSAGES];
    int n = shuffle(order), posted = 0, out = 0;
    receives = seen = 0;
    while (posted < n || out < messages) {
        unsigned what = roll(17);
        if (what < 7 && posted < n) {
            post_next(order, posted++);
        } else if (what < 13 && out < messages) {
            const struct message *m = &sent[check_rank][out];
            data[out] = malloc((size_t)m->size);
            fill(data[out], check_rank, out);
            CHECK_OK((what == 7 ? MPI_Issend : MPI_Isend)(data[out], m->size, MPI_BYTE, m->to, m->tag, comms[m->comm], &sends[out]));
            out++;
        } else if (what == 13) {
            look();
        } else if (what == 14) {
            cancel_one();
        } else if (what == 15) {
            probe();
        } else {
            for (double until = MPI_Wtime() + 1e-6 * roll(60); MPI_Wtime() < until;) continue;
        }
    }
    receive_rest();
    CHECK_OK(MPI_Waitall(messages, sends, MPI_STATUSES_IGNORE));
    check_order();
    for (int i = 0; i < receives; i++) free(received[i].buf);
    for (int i = 0; i < messages; i++) free(data[i]);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    if (check_size > RANKS) MPI_Abort(MPI_COMM_WORLD, 2);
    comms[0] = MPI_COMM_WORLD;
    CHECK_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]));
    uint64_t seed = check_seed();
    const char *count = getenv("TEST_PROGRAMS");
    long left = count ? atol(count) : 0;
    double end = rounds_end(argc, argv);
    small = left > 0;
    if (small) messages = 6;
    do {
        plan(check_random(&seed));
        dice = check_random(&seed) + (uint64_t)check_rank * 7919;
        one_round();
        CHECK_OK(MPI_Barrier(MPI_COMM_WORLD)); /* no message of the next round meets a receive of this one */
    } while (small ? --left > 0 : rounds_more(end));
    CHECK_OK(MPI_Comm_free(&comms[1]));
    return check_done();
}
