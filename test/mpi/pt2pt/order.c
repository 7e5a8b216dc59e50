/*
 * order.c - messages do not overtake each other (MPI-5.0 section 3.5), with wildcards and without, whether
 * the receive or the message comes first; and a random exchange in which every receive knows what to expect.
 */
#include "../check.h"

enum { MESSAGES = 300, ROUNDS = 400 };

/* Sizes that go by different protocols, so that a small message could overtake a large one. */
static int size_of(int i)
{
    static const int s[] = {4, 40, 5000, 4, 70000, 12, 300000, 4};
    return s[i % 8];
}

/* All at once: the receiver may want the last one first. */
static void sender(void)
{
    MPI_Request r[MESSAGES];
    size_t total = 0;
    for (int i = 0; i < MESSAGES; i++) total += (size_t)size_of(i);
    char *buf = malloc(total), *at = buf;
    for (int i = 0; i < MESSAGES; at += size_of(i++)) {
        check_fill(at, (size_t)size_of(i), (unsigned long)i + 1000ul * (unsigned)check_rank);
        CHECK_OK(MPI_Isend(at, size_of(i), MPI_BYTE, 0, i % 3, MPI_COMM_WORLD, &r[i]));
    }
    CHECK_OK(MPI_Waitall(MESSAGES, r, MPI_STATUSES_IGNORE));
    free(buf);
}

/* Rank 0 receives from all: per sender and tag the messages come in order. */
static void receiver(char *buf, int use_any_source, int use_any_tag)
{
    int next[64][3];
    MPI_Status status;
    for (int r = 0; r < check_size; r++)
        for (int t = 0; t < 3; t++) next[r][t] = t;
    int senders = check_size - 1;
    for (int i = 0; i < MESSAGES * senders; i++) {
        int from = use_any_source ? MPI_ANY_SOURCE : 1 + i % senders, tag = use_any_tag ? MPI_ANY_TAG : i / senders % 3, n = -1;
        CHECK_OK(MPI_Recv(buf, 300000, MPI_BYTE, from, tag, MPI_COMM_WORLD, &status));
        int s = status.MPI_SOURCE, t = status.MPI_TAG, *k = &next[s][t];
        MPI_Get_count(&status, MPI_BYTE, &n);
        CHECK((from == MPI_ANY_SOURCE || s == from) && (tag == MPI_ANY_TAG || t == tag), "from %d, tag %d", s, t);
        CHECK(n == size_of(*k), "message %d of rank %d has %d bytes", *k, s, n);
        CHECK(check_differ(buf, (size_t)n, (unsigned long)*k + 1000ul * (unsigned)s) == 0, "message %d of rank %d is another", *k, s);
        *k += 3;
    }
}

/* All to all, random sizes and tags; receives are posted in random order of senders, some with wildcards for the tag. */
static void random_round(uint64_t *state, int round)
{
    enum { MAX = 3000 };
    static char out[64][MAX], in[64][MAX];
    MPI_Request r[128];
    MPI_Status st[128];
    int n = 0, size = check_size, first = (int)(check_random(state) % (unsigned)size), step = 1;
    int len = (int)(check_random(state) % MAX), any = (int)(check_random(state) % 2), late = (int)(check_random(state) % 2);
    if (late) MPI_Barrier(MPI_COMM_WORLD);
    for (int k = 0; k < size; k++) {
        int peer = (first + k * step) % size;
        CHECK_OK(MPI_Irecv(in[peer], MAX, MPI_BYTE, peer, any ? MPI_ANY_TAG : round, MPI_COMM_WORLD, &r[n++]));
    }
    for (int k = 0; k < size; k++) {
        int peer = (check_rank + k) % size;
        check_fill(out[peer], (size_t)(len + peer) % MAX, (unsigned long)(round + check_rank * 31 + peer));
        CHECK_OK(MPI_Isend(out[peer], (len + peer) % MAX, MPI_BYTE, peer, round, MPI_COMM_WORLD, &r[n++]));
    }
    CHECK_OK(MPI_Waitall(n, r, st));
    for (int k = 0; k < size; k++) {
        int peer = st[k].MPI_SOURCE, got = -1;
        MPI_Get_count(&st[k], MPI_BYTE, &got);
        CHECK(got == (len + check_rank) % MAX && st[k].MPI_TAG == round, "round %d: %d bytes, tag %d", round, got, st[k].MPI_TAG);
        CHECK(check_differ(in[peer], (size_t)got, (unsigned long)(round + peer * 31 + check_rank)) == 0, "round %d, from %d", round, peer);
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    char *buf = malloc(300000);
    for (int way = 0; way < 4 && check_size > 1; way++) {
        if (check_rank == 0) receiver(buf, way & 1, way & 2);
        else sender();
        MPI_Barrier(MPI_COMM_WORLD);
    }
    uint64_t state = check_seed();
    for (int i = 0; i < ROUNDS; i++) random_round(&state, i);
    free(buf);
    MPI_Barrier(MPI_COMM_WORLD); /* the messages of check_done would meet wildcards */
    return check_done();
}
