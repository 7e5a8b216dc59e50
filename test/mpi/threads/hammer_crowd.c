/*
 * hammer_crowd.c - rounds of hammer.c in which each thread sends a message to the rank on its right and one to the rank
 * on its left, and takes two: whichever come first, sent by whichever thread.
 *
 * Nobody waits for its sends before the end: two ranks whose threads wait for each other to receive would both be out
 * of receives. The rank that has begun the fewest rounds has more messages coming than it takes, so this does not hang.
 */
#include "hammer.h"

enum { CROWD_TAG = 7, LONG = 20000 };

/* A message that is sent may not have been received yet. */
struct sending {
    MPI_Request *request;
    unsigned char **message;
    int count, room;
};

/* What a message begins with; the rest is filled by a seed made of it. */
struct head {
    int rank, thread, number, length;
};

static uint64_t seed_of_head(const struct head *h)
{
    return (uint64_t)h->rank * 1000003u + (uint64_t)h->thread * 10007u + (uint64_t)h->number;
}

static void retire(struct sending *s, int i)
{
    free(s->message[i]);
    s->count--;
    s->request[i] = s->request[s->count];
    s->message[i] = s->message[s->count];
}

static void send_one(struct thread *t, int to, int i)
{
    if (!t->sending) t->sending = calloc(1, sizeof *t->sending);
    struct sending *s = t->sending;
    if (s->count == s->room) {
        s->room = 2 * s->room + 64;
        s->request = realloc(s->request, (size_t)s->room * sizeof *s->request);
        s->message = realloc(s->message, (size_t)s->room * sizeof *s->message);
    }
    int n = (int)sizeof(struct head) + draw(t, draw(t, 8) ? 500 : LONG);
    struct head h = {hammer_rank, t->number, (int)t->rounds * 2 + i, n};
    unsigned char *message = malloc((size_t)n);
    memcpy(message, &h, sizeof h);
    check_fill(message + sizeof h, (size_t)n - sizeof h, seed_of_head(&h));
    s->message[s->count] = message;
    DO(t, MPI_Isend(message, n, MPI_BYTE, to, CROWD_TAG, t->comm, &s->request[s->count]));
    s->count++;
    for (int k = s->count - 1; k >= 0; k--) {
        int flag = 0;
        DO(t, MPI_Test(&s->request[k], &flag, MPI_STATUS_IGNORE));
        if (flag) retire(s, k);
    }
}

static void send_both(struct thread *t)
{
    send_one(t, (hammer_rank + 1) % hammer_size, 0);
    send_one(t, (hammer_rank + hammer_size - 1) % hammer_size, 1);
}

static void is_of_crowd(struct thread *t, const unsigned char *in, const MPI_Status *st)
{
    struct head h;
    int n = -1;
    MPI_Get_count(st, MPI_BYTE, &n);
    memcpy(&h, in, sizeof h);
    IS(t, n == h.length && st->MPI_SOURCE == h.rank && st->MPI_TAG == CROWD_TAG,
       "a message of %d bytes from rank %d says that it has %d and comes from %d", n, st->MPI_SOURCE, h.length, h.rank);
    if (n != h.length) return;
    IS(t, !check_differ(in + sizeof h, (size_t)n - sizeof h, seed_of_head(&h)),
       "%d bytes are not what rank %d has sent", n, h.rank);
}

static void by_recv(struct thread *t)
{
    send_both(t);
    for (int i = 0; i < 2; i++) {
        MPI_Status st;
        DO(t, MPI_Recv(t->in, LARGEST, MPI_BYTE, MPI_ANY_SOURCE, CROWD_TAG, t->comm, &st));
        is_of_crowd(t, t->in, &st);
    }
}

static void by_irecv(struct thread *t)
{
    MPI_Request r[2];
    MPI_Status st[2];
    for (int i = 0; i < 2; i++)
        DO(t, MPI_Irecv(t->in + i * (LARGEST / 2), LARGEST / 2, MPI_BYTE, MPI_ANY_SOURCE, CROWD_TAG, t->comm, &r[i]));
    send_both(t);
    finish(t, r, 2, st);
    for (int i = 0; i < 2; i++) is_of_crowd(t, t->in + i * (LARGEST / 2), &st[i]);
}

/* The message that a matched probe has taken. */
static void take(struct thread *t, MPI_Message *m, const MPI_Status *probed)
{
    MPI_Status st;
    int n = -1, got = -2;
    MPI_Get_count(probed, MPI_BYTE, &n);
    DO(t, MPI_Mrecv(t->in, n, MPI_BYTE, m, &st));
    MPI_Get_count(&st, MPI_BYTE, &got);
    IS(t, n == got, "%d bytes received, %d probed", got, n);
    is_of_crowd(t, t->in, &st);
}

static void by_mprobe(struct thread *t)
{
    send_both(t);
    for (int i = 0; i < 2; i++) {
        MPI_Message m;
        MPI_Status st;
        DO(t, MPI_Mprobe(MPI_ANY_SOURCE, CROWD_TAG, t->comm, &m, &st));
        take(t, &m, &st);
    }
}

static void by_improbe(struct thread *t)
{
    send_both(t);
    for (int i = 0; i < 2; i++) {
        MPI_Message m;
        MPI_Status st;
        int flag = 0;
        do_at(t, __LINE__, "MPI_Improbe in a loop");
        while (!flag) MPI_Improbe(MPI_ANY_SOURCE, CROWD_TAG, t->comm, &flag, &m, &st);
        take(t, &m, &st);
    }
}

static void end(struct thread *t)
{
    t->round = "the last sends";
    DO(t, MPI_Waitall(t->sending->count, t->sending->request, MPI_STATUSES_IGNORE));
    while (t->sending->count > 0) retire(t->sending, 0);
    free(t->sending->request);
    free(t->sending->message);
    free(t->sending);
}

static const struct round rounds[] = {{"receive", by_recv},
                                      {"nonblocking receives", by_irecv},
                                      {"MPI_Mprobe", by_mprobe},
                                      {"MPI_Improbe", by_improbe},
                                      {NULL, NULL}};
struct kind kind_crowd = {"crowd", rounds, MPI_COMM_NULL, end};
