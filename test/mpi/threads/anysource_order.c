/*
 * anysource_order.c - messages do not overtake (MPI-5.0 section 3.5), also under MPI_THREAD_MULTIPLE: on one
 * communicator, several threads of each rank send numbered messages, short and long ones mixed, and one thread of each
 * rank takes them from any source. The messages of each thread come in the order in which it has sent them; meanwhile
 * other threads receive on other communicators. NAPPING=1: a further thread reduces by an operator that naps; where that is
 * done by messages, it naps inside of the library, and messages come for a lane that is held.
 */
#include "../check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

enum { SENDERS = 4, MESSAGES = 250, WINDOW = 16, LONG = 70000, TAG = 3 };

struct head {
    int thread, number, length;
};

static MPI_Comm together, apart[SENDERS];

static int length_of(int thread, int i)
{
    static const int s[] = {0, 8, 200, 8, 5000, 100, 8, LONG - (int)sizeof(struct head)};
    return (int)sizeof(struct head) + s[(i * 5 + thread) % 8];
}

struct sender {
    pthread_t id;
    int number;
    long bad;
};

/* Sends to each rank in turn, and to the same thread of the next rank on a communicator of its own. */
static void *send_all(void *arg)
{
    struct sender *s = arg;
    char *out = malloc((size_t)WINDOW * LONG);
    MPI_Request r[WINDOW];
    int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    for (int i = 0; i < WINDOW; i++) r[i] = MPI_REQUEST_NULL;
    for (int i = 0; i < MESSAGES * check_size; i++) {
        char *message = out + (size_t)(i % WINDOW) * LONG;
        struct head h = {s->number, i / check_size, length_of(s->number, i / check_size)};
        MPI_Wait(&r[i % WINDOW], MPI_STATUS_IGNORE);
        memcpy(message, &h, sizeof h);
        MPI_Isend(message, h.length, MPI_BYTE, i % check_size, TAG, together, &r[i % WINDOW]);
        if (i % 10) continue;
        int got = -1;
        MPI_Sendrecv(&i, 1, MPI_INT, right, 1, &got, 1, MPI_INT, left, 1, apart[s->number], MPI_STATUS_IGNORE);
        s->bad += got != i;
    }
    MPI_Waitall(WINDOW, r, MPI_STATUSES_IGNORE);
    free(out);
    return NULL;
}

/* How the message is taken. */
enum way { RECEIVE, POSTED, MATCHED, WAYS };

static void take(enum way way, char *in, MPI_Status *st)
{
    MPI_Message m;
    MPI_Request r;
    if (way == RECEIVE) {
        MPI_Recv(in, LONG, MPI_BYTE, MPI_ANY_SOURCE, TAG, together, st);
    } else if (way == POSTED) {
        int flag = 0;
        MPI_Irecv(in, LONG, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, together, &r);
        while (!flag) MPI_Test(&r, &flag, st);
    } else {
        MPI_Mprobe(MPI_ANY_SOURCE, TAG, together, &m, st);
        MPI_Mrecv(in, LONG, MPI_BYTE, &m, st);
    }
}

static void take_all(enum way way)
{
    int *next = calloc((size_t)check_size * SENDERS, sizeof *next);
    char *in = malloc(LONG);
    for (long i = 0; i < (long)check_size * SENDERS * MESSAGES; i++) {
        MPI_Status st;
        struct head h;
        int n = -1;
        take(way < WAYS ? way : (enum way)(i % WAYS), in, &st);
        MPI_Get_count(&st, MPI_BYTE, &n);
        memcpy(&h, in, sizeof h);
        CHECK(n == h.length, "a message of %d bytes, %d were sent", n, h.length);
        int *expected = &next[st.MPI_SOURCE * SENDERS + h.thread];
        CHECK(h.number == *expected, "message %d of thread %d of rank %d, number %d is the next", h.number, h.thread,
              st.MPI_SOURCE, *expected);
        *expected = h.number + 1;
    }
    free(in);
    free(next);
}

/* ---- an operator that naps ---- */

enum { NAP_US = 300 };

static MPI_Comm napping;
static _Atomic bool enough;
static _Atomic long naps;

static void least(void *in, void *inout, int *n, MPI_Datatype *type)
{
    const int *a = in;
    int *b = inout;
    (void)type;
    for (int i = 0; i < *n; i++) b[i] = a[i] < b[i] ? a[i] : b[i];
    usleep(NAP_US);
    naps++;
}

/* Until all ranks have enough. */
static void *nap_all(void *none)
{
    MPI_Op op;
    (void)none;
    MPI_Op_create(least, 1, &op);
    for (int all = 0; !all;) {
        int own = enough;
        MPI_Allreduce(&own, &all, 1, MPI_INT, op, napping);
    }
    MPI_Op_free(&op);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t nap;
    bool naps_too = getenv("NAPPING");
    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    MPI_Comm_dup(MPI_COMM_WORLD, &napping);
    if (naps_too) pthread_create(&nap, NULL, nap_all, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &together);
    for (int i = 0; i < SENDERS; i++) MPI_Comm_dup(MPI_COMM_WORLD, &apart[i]);
    for (enum way way = RECEIVE; way <= WAYS; way++) {
        struct sender s[SENDERS];
        for (int i = 0; i < SENDERS; i++) {
            s[i] = (struct sender){.number = i};
            pthread_create(&s[i].id, NULL, send_all, &s[i]);
        }
        take_all(way);
        for (int i = 0; i < SENDERS; i++) {
            pthread_join(s[i].id, NULL);
            CHECK(s[i].bad == 0, "thread %d: %ld messages on its own communicator are wrong", i, s[i].bad);
        }
        MPI_Barrier(MPI_COMM_WORLD); /* no message of the next way is taken by this one */
    }
    enough = true;
    if (naps_too) {
        pthread_join(nap, NULL);
        long own = naps, all = 0;
        MPI_Allreduce(&own, &all, 1, MPI_LONG, MPI_SUM, napping);
        CHECK(check_size == 1 || all > 0, "the operator was called %ld times", all);
    }
    MPI_Comm_free(&napping);
    for (int i = 0; i < SENDERS; i++) MPI_Comm_free(&apart[i]);
    MPI_Comm_free(&together);
    return check_done();
}
