/*
 * starvation.c - no thread starves under MPI_THREAD_MULTIPLE. Of threads that do the same on one communicator, or on
 * their own, and wait in MPI, the slowest does at least half of the mean. A thread that waits alone is served
 * while others keep the library busy: it does not give up the core to them at each look (judged with TERN_SPIN=never).
 * Threads that wait for the same messages have them in turn. How threads share the core that look in loops of their own is
 * printed only.
 */
#include "../rounds.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { THREADS = 8, JUDGED = 50, TRIES = 5 };

enum way { BY_RECV, BY_WAIT, BY_TEST, BY_WAITANY, BY_TESTSOME, BY_PROBE, BY_MPROBE, BY_IMPROBE, WAYS };
static const char *const names[WAYS] = {"MPI_Recv",     "MPI_Wait",  "MPI_Test",   "MPI_Waitany",
                                        "MPI_Testsome", "MPI_Probe", "MPI_Mprobe", "MPI_Improbe"};

struct player {
    pthread_t id;
    MPI_Comm comm;
    enum way way;
    int tag;
    long rounds, bad;
    long judged; /* of the rounds: those since each thread had a message */
};

static int other;
static bool never_spins; /* TERN_SPIN=never */
static double span, ends_at; /* s */

/* A message of one int. */
static int receive(const struct player *p)
{
    int in = -1, flag = 0, index;
    MPI_Request r;
    MPI_Message m = MPI_MESSAGE_NULL;
    switch (p->way) {
    case BY_PROBE:
        MPI_Probe(other, p->tag, p->comm, MPI_STATUS_IGNORE);
        break;
    case BY_MPROBE:
        MPI_Mprobe(other, p->tag, p->comm, &m, MPI_STATUS_IGNORE);
        break;
    case BY_IMPROBE:
        while (!flag) MPI_Improbe(other, p->tag, p->comm, &flag, &m, MPI_STATUS_IGNORE);
        break;
    default:
        break;
    }
    if (m != MPI_MESSAGE_NULL) {
        MPI_Mrecv(&in, 1, MPI_INT, &m, MPI_STATUS_IGNORE);
        return in;
    }
    if (p->way == BY_RECV || p->way == BY_PROBE) {
        MPI_Recv(&in, 1, MPI_INT, other, p->tag, p->comm, MPI_STATUS_IGNORE);
        return in;
    }
    MPI_Irecv(&in, 1, MPI_INT, other, p->tag, p->comm, &r);
    switch (p->way) {
    case BY_TEST:
        while (!flag) MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
        break;
    case BY_WAITANY:
        MPI_Waitany(1, &r, &index, MPI_STATUS_IGNORE);
        break;
    case BY_TESTSOME:
        while (!flag) MPI_Testsome(1, &r, &flag, &index, MPI_STATUSES_IGNORE);
        break;
    default:
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
    return in;
}

/* ---- each has messages of its own ---- */

/* There and back, until the first rank of the pair says that it is over by a negative number. */
static void *play(void *arg)
{
    struct player *p = arg;
    bool first = check_rank < other;
    for (int i = 0; i >= 0; p->rounds++) {
        if (first) {
            int out = MPI_Wtime() < ends_at ? i : -1;
            MPI_Send(&out, 1, MPI_INT, other, p->tag, p->comm);
            p->bad += receive(p) != out;
            i = out < 0 ? -1 : i + 1;
        } else {
            i = receive(p);
            MPI_Send(&i, 1, MPI_INT, other, p->tag, p->comm);
        }
    }
    return NULL;
}

/* Threads start all at once, and play for as long. Returns what the slowest did, to the mean. */
static double slowest(const char *what, const enum way way[THREADS], const MPI_Comm comm[THREADS])
{
    struct player p[THREADS];
    long sum = 0, least = -1;
    MPI_Barrier(MPI_COMM_WORLD);
    ends_at = MPI_Wtime() + span;
    for (int i = 0; i < THREADS; i++) {
        p[i] = (struct player){.comm = comm[i], .tag = i + 10, .way = way[i]};
        pthread_create(&p[i].id, NULL, play, &p[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(p[i].id, NULL);
        CHECK(p[i].bad == 0, "%s, thread %d: %ld answers of %ld are wrong", what, i, p[i].bad, p[i].rounds);
        sum += p[i].rounds;
        if (least < 0 || p[i].rounds < least) least = p[i].rounds;
    }
    double part = (double)least * THREADS / (double)sum;
    if (check_rank == 0) printf("%-24s %7ld round trips, the slowest thread %.2f of the mean\n", what, sum, part);
    return sum < (long)THREADS * JUDGED ? 1 : part;
}

/* ---- all take the same messages ---- */

enum { SAME_TAG = 3, ANSWER = 4 };

static int take(const struct player *p)
{
    MPI_Message m = MPI_MESSAGE_NULL;
    int in = -1;
    if (p->way != BY_PROBE) return receive(p);
    for (int flag = 0; !flag;) { /* another thread may have been quicker */
        MPI_Probe(other, p->tag, p->comm, MPI_STATUS_IGNORE);
        MPI_Improbe(other, p->tag, p->comm, &flag, &m, MPI_STATUS_IGNORE);
    }
    MPI_Mrecv(&in, 1, MPI_INT, &m, MPI_STATUS_IGNORE);
    return in;
}

static _Atomic int began; /* threads that have had a message; until the last one is started, the others have all there are */

/* Takes and answers, until there is a negative number. */
static void *answer(void *arg)
{
    struct player *p = arg;
    for (int i; (i = take(p)) >= 0; p->rounds++) {
        if (!p->rounds) began++;
        p->judged += began == THREADS;
        MPI_Send(&i, 1, MPI_INT, other, ANSWER, p->comm);
    }
    return NULL;
}

/* The first rank of a pair. It sends the next message when the one before is answered: were there more, threads that run
 * would find some at once, and take more than those that have not noticed yet that theirs has come. */
static double give_out(const char *what, MPI_Comm comm)
{
    int i = 0, in = -1, end = -1;
    double part[2], until = MPI_Wtime() + span;
    for (; MPI_Wtime() < until; i++) {
        MPI_Send(&i, 1, MPI_INT, other, SAME_TAG, comm);
        MPI_Recv(&in, 1, MPI_INT, other, ANSWER, comm, MPI_STATUS_IGNORE);
        if (in != i) break;
    }
    for (int k = 0; k < THREADS; k++) MPI_Send(&end, 1, MPI_INT, other, SAME_TAG, comm);
    MPI_Recv(part, 2, MPI_DOUBLE, other, ANSWER, comm, MPI_STATUS_IGNORE);
    CHECK(in == i - 1 && (int)part[0] == i, "%s: %d messages sent, the last answer %d, %d taken", what, i, in, (int)part[0]);
    if (check_rank == 0) printf("%-24s %7d of the same messages, the slowest thread %.2f of the mean\n", what, i, part[1]);
    return part[1];
}

static void take_all(enum way way, MPI_Comm comm)
{
    struct player p[THREADS];
    double part[2] = {0, 1};
    long judged = 0, least = -1;
    began = 0;
    for (int i = 0; i < THREADS; i++) {
        p[i] = (struct player){.comm = comm, .tag = SAME_TAG, .way = way};
        pthread_create(&p[i].id, NULL, answer, &p[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(p[i].id, NULL);
        part[0] += (double)p[i].rounds;
        judged += p[i].judged;
        if (least < 0 || p[i].judged < least) least = p[i].judged;
    }
    if (judged >= THREADS * JUDGED) part[1] = (double)least * THREADS / (double)judged;
    MPI_Send(part, 2, MPI_DOUBLE, other, ANSWER, comm);
}

static double same(const char *what, const enum way way[THREADS], const MPI_Comm comm[THREADS])
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank < other) return give_out(what, comm[0]);
    take_all(way[0], comm[0]);
    return 0;
}

/* ---- what is judged ---- */

static bool in_loops(enum way w) { return w == BY_TEST || w == BY_TESTSOME || w == BY_IMPROBE; }

/* The kernel may keep a thread from a core that it shares for a good part of a second: not five times in a row, each twice as long as
 * the one before. The first rank of a pair decides. */
static void fair(double (*measure)(const char *, const enum way *, const MPI_Comm *), const char *what,
                 const enum way way[THREADS], const MPI_Comm comm[THREADS])
{
    double part = 0, best = 0;
    span = 0.3;
    for (int i = 0; i < TRIES && best < 0.5; i++, span *= 2) {
        part = measure(what, way, comm);
        MPI_Bcast(&part, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        best = part > best ? part : best;
        if (in_loops(way[0]) || (measure == same && way[0] == BY_PROBE)) return;
    }
    CHECK(best >= 0.5, "%s: the slowest thread did %.2f of the mean", what, best);
}

/* ---- threads that wait while others flood the rank, or look for something else ---- */

/* A thread that gives up the core to the others at each look comes to some 10 round trips for a million of their calls. */
enum { LOOKS_A_ROUND = 40000 };

static _Atomic bool enough;
static _Atomic long looks;

/* Sends to itself. */
static void *flood(void *comm)
{
    for (char byte[200] = {0}; !enough; looks++)
        MPI_Sendrecv(byte, sizeof byte, MPI_BYTE, check_rank, 5, byte, sizeof byte, MPI_BYTE, check_rank, 5,
                     *(MPI_Comm *)comm, MPI_STATUS_IGNORE);
    return NULL;
}

static void *look(void *comm)
{
    for (int flag = 0; !enough; looks++) MPI_Iprobe(MPI_ANY_SOURCE, 6, *(MPI_Comm *)comm, &flag, MPI_STATUS_IGNORE);
    return NULL;
}

/* Returns the round trips to one for LOOKS_A_ROUND calls, on the rank where it is less. */
static double disturbed(const char *what, void *(*disturb)(void *), MPI_Comm comm)
{
    enum { DISTURBERS = 3 };
    pthread_t id[DISTURBERS];
    struct player p = {.comm = comm, .tag = 9, .way = BY_RECV};
    enough = false;
    looks = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < DISTURBERS; i++) pthread_create(&id[i], NULL, disturb, &comm);
    ends_at = MPI_Wtime() + span;
    play(&p);
    enough = true;
    for (int i = 0; i < DISTURBERS; i++) pthread_join(id[i], NULL);
    if (check_rank == 0)
        printf("%-24s %7ld round trips beside %ld calls of %d threads\n", what, p.rounds, (long)looks, DISTURBERS);
    CHECK(p.bad == 0 && looks > 0, "%s: %ld answers are wrong", what, p.bad);
    double part = (double)p.rounds * LOOKS_A_ROUND / (double)looks;
    MPI_Allreduce(MPI_IN_PLACE, &part, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    return part;
}

/* As in fair(), the kernel may keep the thread from the core for long: with three jobs on two cores one try of six came to 4 to 11 round
 * trips for a million calls.
 * Where polling pays, waits do that while ranks are on one core (cores.h), and nothing is judged. */
static void served(const char *what, void *(*disturb)(void *), MPI_Comm comm)
{
    double best = 0;
    span = 0.3;
    for (int i = 0; i < TRIES && best < 1; i++, span *= 2) {
        double part = disturbed(what, disturb, comm);
        best = part > best ? part : best;
        if (!never_spins) return;
    }
    CHECK(best >= 1, "%s: %.2f of the round trips that are needed", what, best);
}

int main(int argc, char **argv)
{
    MPI_Comm one, own[THREADS], shared[THREADS];
    enum way way[THREADS];
    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    if (check_size % 2) return check_skip("an even number of ranks is needed");
    other = check_rank ^ 1;
    never_spins = getenv("TERN_SPIN") && !strcmp(getenv("TERN_SPIN"), "never");
    MPI_Comm_dup(MPI_COMM_WORLD, &one);
    for (int i = 0; i < THREADS; i++) {
        shared[i] = one;
        MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
    }
    double end = rounds_end(argc, argv);
    do {
        for (enum way w = BY_RECV; w < WAYS; w++) {
            char what[60];
            for (int i = 0; i < THREADS; i++) way[i] = w;
            snprintf(what, sizeof what, "all by %s", names[w]);
            fair(slowest, what, way, shared);
            fair(same, what, way, shared);
        }
        for (int i = 0; i < THREADS; i++) way[i] = BY_RECV;
        fair(slowest, "on own communicators", way, own);
        served("beside a flood", flood, one);
        served("beside looks", look, one);
    } while (rounds_more(end));
    for (int i = 0; i < THREADS; i++) MPI_Comm_free(&own[i]);
    MPI_Comm_free(&one);
    return check_done();
}
