/*
 * probe_threads.c - probes under MPI_THREAD_MULTIPLE (MPI-5.0 section 3.8): threads that send and take by MPI_Mprobe,
 * on communicators of their own and all on one, lose no message; and a status describes one message, though other
 * threads receive meanwhile.
 */
#include "../rounds.h"

#include <pthread.h>

enum { THREADS = 8, MESSAGES = 200, LENGTH_MAX = 4000 };

static int right, left;

/* ---- each message is taken by MPI_Mprobe, by whichever thread ---- */

/* What a message begins with; the rest is filled by `seed`. */
struct head {
    int length, thread, number;
};

struct taker {
    pthread_t id;
    MPI_Comm comm;
    int number, tag;
    long bad;
    long sum; /* of what was taken: as much as was sent, by all threads together */
};

static unsigned long seed_of(int rank, const struct head *h)
{
    return (unsigned long)(rank * 7919 + h->thread * 1009 + h->number);
}

static int length_of(int i) { return (int)sizeof(struct head) + i * 37 % (LENGTH_MAX - (int)sizeof(struct head)); }

static MPI_Request send_one(const struct taker *t, int i, char *out)
{
    struct head h = {length_of(i), t->number, i};
    MPI_Request r;
    memcpy(out, &h, sizeof h);
    check_fill(out + sizeof h, (size_t)h.length - sizeof h, seed_of(check_rank, &h));
    MPI_Isend(out, h.length, MPI_BYTE, right, t->tag, t->comm, &r);
    return r;
}

static void take_one(struct taker *t, char *in)
{
    MPI_Message m;
    MPI_Status told, got;
    struct head h;
    int n = -1, received = -1;
    MPI_Mprobe(left, t->tag, t->comm, &m, &told);
    MPI_Get_count(&told, MPI_BYTE, &n);
    MPI_Mrecv(in, n, MPI_BYTE, &m, &got);
    MPI_Get_count(&got, MPI_BYTE, &received);
    memcpy(&h, in, sizeof h);
    t->bad += n != received || h.length != n || told.MPI_SOURCE != left || told.MPI_TAG != t->tag;
    t->bad += check_differ(in + sizeof h, (size_t)n - sizeof h, seed_of(left, &h)) != 0;
    t->sum += h.number;
}

static void *take(void *arg)
{
    struct taker *t = arg;
    char *out = malloc(LENGTH_MAX), *in = malloc(LENGTH_MAX);
    for (int i = 0; i < MESSAGES && !t->bad; i++) {
        MPI_Request r = send_one(t, i, out);
        take_one(t, in);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
    free(in);
    free(out);
    return NULL;
}

enum sharing { OWN_COMM, OWN_TAG, ALL_ONE };

static void matched(const MPI_Comm comm[THREADS], enum sharing sharing)
{
    struct taker t[THREADS];
    long bad = 0, sum = 0;
    for (int i = 0; i < THREADS; i++)
        t[i] = (struct taker){
            .comm = sharing == OWN_COMM ? comm[i] : comm[0], .number = i, .tag = sharing == OWN_TAG ? i : 5};
    for (int i = 0; i < THREADS; i++) pthread_create(&t[i].id, NULL, take, &t[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i].id, NULL);
        bad += t[i].bad;
        sum += t[i].sum;
    }
    CHECK(bad == 0, "sharing %d: %ld messages are not what was probed", sharing, bad);
    CHECK(bad || sum == (long)THREADS * MESSAGES * (MESSAGES - 1) / 2, "sharing %d: the numbers taken add up to %ld",
          sharing, sum);
}

/* ---- a status describes one message: its length is four times its tag ---- */

enum { SENT = 4000, TAG_MAX = 900, LAST_TAG = 1000 };

static void *send_all(void *comm)
{
    static char out[4 * TAG_MAX];
    for (int i = 0; i < SENT; i++) {
        int tag = 1 + i * 271 % TAG_MAX;
        MPI_Send(out, 4 * tag, MPI_BYTE, right, tag, *(MPI_Comm *)comm);
    }
    MPI_Send(out, 4, MPI_BYTE, right, LAST_TAG, *(MPI_Comm *)comm);
    return NULL;
}

/* Receives all but the last. */
static void *receive_all(void *comm)
{
    char *in = malloc(4 * TAG_MAX);
    for (int i = 0; i < SENT; i++) {
        int tag = 1 + i * 271 % TAG_MAX;
        MPI_Recv(in, 4 * TAG_MAX, MPI_BYTE, left, i % 2 ? MPI_ANY_TAG : tag, *(MPI_Comm *)comm, MPI_STATUS_IGNORE);
    }
    free(in);
    return NULL;
}

struct prober {
    pthread_t id;
    MPI_Comm comm;
    int source, blocking;
    long bad, seen;
};

/* Until only the last message is there. */
static void *probe(void *arg)
{
    struct prober *p = arg;
    MPI_Status s = {.MPI_TAG = 0};
    while (s.MPI_TAG != LAST_TAG) {
        int flag = 1, n = -1;
        if (p->blocking)
            MPI_Probe(p->source, MPI_ANY_TAG, p->comm, &s);
        else
            MPI_Iprobe(p->source, MPI_ANY_TAG, p->comm, &flag, &s);
        if (!flag) continue;
        MPI_Get_count(&s, MPI_BYTE, &n);
        p->seen++;
        p->bad += s.MPI_SOURCE != left || n != (s.MPI_TAG == LAST_TAG ? 4 : 4 * s.MPI_TAG);
    }
    return NULL;
}

static void described(MPI_Comm comm)
{
    struct prober p[] = {{.comm = comm, .source = left, .blocking = 1},
                         {.comm = comm, .source = left},
                         {.comm = comm, .source = MPI_ANY_SOURCE}};
    enum { PROBERS = sizeof p / sizeof p[0] };
    pthread_t sender, receiver;
    char in[4];
    for (int i = 0; i < PROBERS; i++) pthread_create(&p[i].id, NULL, probe, &p[i]);
    pthread_create(&sender, NULL, send_all, &comm);
    pthread_create(&receiver, NULL, receive_all, &comm);
    for (int i = 0; i < PROBERS; i++) {
        pthread_join(p[i].id, NULL);
        CHECK(p[i].bad == 0 && p[i].seen > 0, "prober %d: %ld of %ld statuses are mixed of two messages", i, p[i].bad,
              p[i].seen);
    }
    pthread_join(sender, NULL);
    pthread_join(receiver, NULL);
    CHECK_OK(MPI_Recv(in, 4, MPI_BYTE, left, LAST_TAG, comm, MPI_STATUS_IGNORE));
}

int main(int argc, char **argv)
{
    MPI_Comm comm[THREADS];
    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    right = (check_rank + 1) % check_size;
    left = (check_rank + check_size - 1) % check_size;
    for (int i = 0; i < THREADS; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
    double end = rounds_end(argc, argv);
    do {
        for (enum sharing s = OWN_COMM; s <= ALL_ONE; s++) matched(comm, s);
        described(comm[1]);
    } while (rounds_more(end));
    for (int i = 0; i < THREADS; i++) MPI_Comm_free(&comm[i]);
    return check_done();
}
