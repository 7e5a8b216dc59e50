/*
 * hammer.c - many threads of each rank call all of MPI at the same time (MPI_THREAD_MULTIPLE):
 *
 *     hammer [THREADS [SECONDS [SEED]]]
 *
 * or HAMMER_THREADS, HAMMER_SECONDS, TERN_TEST_SEED. Thread i is of kind i modulo the number of kinds;
 * HAMMER_KINDS=own,coll leaves only these:
 *
 *     own      point-to-point messages, each thread on a communicator of its own: all modes, probes, MPI_Cancel
 *     shared   the same, all threads on one communicator, told apart by tags
 *     crowd    all threads take whatever message comes first, from any rank, by receives and by matched probes
 *     coll     collectives on communicators of their own: blocking, nonblocking, persistent
 *     objects  communicators made and freed, attributes, datatypes, info objects, groups
 *     hang     receives what nobody sends: to see that a thread that hangs is told of. Only if named
 *
 * All data are checked. Rank 0 prints how many rounds each thread did. The program fails if a thread starved: if the
 * slowest of a kind did less than half of the mean of its kind, or in a run of less than JUDGED_S seconds, in which the
 * system's own scheduler decides who is ahead, less than a tenth. A thread that is in one call for HAMMER_STUCK seconds ends
 * the job: each rank then prints where its threads are.
 */
#include "hammer.h"

#include <stdbool.h>
#include <unistd.h>

enum { THREADS_MAX = 256, JUDGED = 20 /* rounds; fewer say nothing about fairness */ };
/* Seconds. With three jobs on two cores for 2 s, 5 runs of 75 had a thread with 0.36 to 0.49 of the mean; alone, the least
 * of 40 was 0.88. */
enum { JUDGED_S = 20 };

int hammer_rank, hammer_size;
static void hang(struct thread *t)
{
    DO(t, MPI_Recv(t->in, 1, MPI_BYTE, hammer_rank, t->tag + 1, t->comm, MPI_STATUS_IGNORE));
}
static const struct round hang_rounds[] = {{"hang", hang}, {NULL, NULL}};
static struct kind kind_hang = {"hang", hang_rounds, MPI_COMM_NULL, NULL};

static struct kind *const all_kinds[] = {&kind_own, &kind_shared, &kind_crowd, &kind_coll, &kind_objects, &kind_hang};
enum { KINDS = sizeof all_kinds / sizeof all_kinds[0] };
static struct thread threads[THREADS_MAX];
static int count;
static double ends_at;
static int stuck_s = 30;

void is_bad(struct thread *t, int line, const char *words, ...)
{
    va_list ap;
    if (t->bad++) return;
    va_start(ap, words);
    int n = snprintf(t->first_bad, sizeof t->first_bad, "%s, round %ld, %s, line %d: ", t->kind->name, t->rounds,
                     t->round, line);
    vsnprintf(t->first_bad + n, sizeof t->first_bad - (size_t)n, words, ap);
    va_end(ap);
    fprintf(stderr, "rank %d, thread %d: %s\n", hammer_rank, t->number, t->first_bad);
}

/* ---- a thread ---- */

/* Whether to go on with another deck of rounds: rank 0 says so to the others. */
static bool go_on(struct thread *t)
{
    int more = MPI_Wtime() < ends_at;
    t->round = "another deck?";
    if (hammer_rank > 0) {
        DO(t, MPI_Recv(&more, 1, MPI_INT, 0, t->tag, t->comm, MPI_STATUS_IGNORE));
        return more;
    }
    for (int r = 1; r < hammer_size; r++) DO(t, MPI_Send(&more, 1, MPI_INT, r, t->tag, t->comm));
    return more;
}

/* Each kind of round once, in random order: so that threads of a kind have done about the same after as many rounds. */
static void one_deck(struct thread *t)
{
    const struct round *deck[16];
    int n = 0;
    while (t->kind->rounds[n].name) deck[n] = &t->kind->rounds[n], n++;
    for (; n > 0; n--) {
        int i = draw(t, n);
        t->round = deck[i]->name;
        deck[i]->run(t);
        t->rounds++;
        deck[i] = deck[n - 1];
    }
}

static void *work(void *arg)
{
    struct thread *t = arg;
    do one_deck(t);
    while (go_on(t));
    if (t->kind->end) t->kind->end(t);
    t->steps = -1;
    return NULL;
}

/* ---- the watchdog: a thread that calls no MPI ---- */

static _Atomic bool all_ended;

static void say_where(const double idle[])
{
    for (int i = 0; i < count; i++) {
        const struct thread *t = &threads[i];
        if (t->steps < 0)
            fprintf(stderr, "rank %d, thread %2d, %s: has ended\n", hammer_rank, i, t->kind->name);
        else
            fprintf(stderr, "rank %d, thread %2d, %s: for %.0f s in round '%s', line %d: %s\n", hammer_rank, i,
                    t->kind->name, idle[i], t->round, t->line, t->call);
    }
}

static void *watch(void *arg)
{
    long seen[THREADS_MAX] = {0};
    double since[THREADS_MAX] = {0};
    const struct timespec nap = {0, 200000000};
    for (double now = 0; !all_ended; now += 0.2, nanosleep(&nap, NULL)) {
        bool stuck = false;
        double idle[THREADS_MAX];
        for (int i = 0; i < count; i++) {
            long steps = threads[i].steps;
            if (steps < 0 || steps != seen[i]) seen[i] = steps, since[i] = now;
            idle[i] = now - since[i];
            stuck |= idle[i] > stuck_s;
        }
        if (!stuck) continue;
        fprintf(stderr, "rank %d: a thread has not returned from a call for %d s\n", hammer_rank, stuck_s);
        say_where(idle);
        sleep(2); /* the other ranks say where they are */
        _exit(3);
    }
    return arg;
}

/* ---- the whole ---- */

static bool is_chosen(const struct kind *k)
{
    const char *wish = getenv("HAMMER_KINDS");
    size_t n = strlen(k->name);
    for (const char *at = wish; at && (at = strstr(at, k->name)); at += n)
        if ((at == wish || at[-1] == ',') && (at[n] == ',' || !at[n])) return true;
    return !wish && k != &kind_hang;
}

/* Thread numbers are dealt out over the kinds. */
static void prepare(uint64_t seed)
{
    struct kind *kinds[KINDS];
    int n = 0;
    for (int k = 0; k < KINDS; k++)
        if (is_chosen(all_kinds[k])) kinds[n++] = all_kinds[k];
    if (n == 0) {
        fprintf(stderr, "HAMMER_KINDS=%s names no kind\n", getenv("HAMMER_KINDS"));
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &kind_shared.common);
    MPI_Comm_dup(MPI_COMM_WORLD, &kind_crowd.common);
    for (int i = 0; i < count; i++) {
        struct thread *t = &threads[i];
        t->number = i, t->tag = 100 + i * TAGS, t->kind = kinds[i % n];
        t->random = seed + (uint64_t)i * 7919, t->random_own = ~t->random * (uint64_t)(hammer_rank + 3);
        t->out = malloc(LARGEST), t->in = malloc(LARGEST);
        t->comm = t->kind->common;
        t->round = "start";
        t->call = "";
        if (t->comm == MPI_COMM_NULL) MPI_Comm_dup(MPI_COMM_WORLD, &t->comm);
        if (t->kind == &kind_own && i % 2) MPI_Comm_attach_buffer(t->comm, MPI_BUFFER_AUTOMATIC, 0);
    }
}

/* Prints how much each thread of a kind did, and checks that the slowest did as much as `bound` times the mean. */
static void report(const struct kind *k, double bound)
{
    long least = -1, sum = 0, n = 0;
    for (int i = 0; i < count; i++) {
        if (threads[i].kind != k) continue;
        sum += threads[i].rounds, n++;
        if (least < 0 || threads[i].rounds < least) least = threads[i].rounds;
    }
    if (n == 0) return;
    double mean = (double)sum / (double)n;
    for (int i = 0; i < count && hammer_rank == 0; i++)
        if (threads[i].kind == k)
            printf("thread %2d, %-8s %7ld rounds, %.2f of the mean\n", i, k->name, threads[i].rounds,
                   (double)threads[i].rounds / mean);
    if (mean >= JUDGED)
        CHECK((double)least >= bound * mean, "%s: the slowest thread did %ld rounds, the mean is %.0f", k->name, least,
              mean);
    else if (hammer_rank == 0)
        printf("%s: %.0f rounds a thread are too few to tell whether one starved\n", k->name, mean);
}

static const char *setting(int argc, char **argv, int i, const char *name, const char *otherwise)
{
    const char *env = getenv(name);
    return argc > i ? argv[i] : env ? env : otherwise;
}

int main(int argc, char **argv)
{
    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    hammer_rank = check_rank, hammer_size = check_size;
    count = atoi(setting(argc, argv, 1, "HAMMER_THREADS", "10"));
    double seconds = atof(setting(argc, argv, 2, "HAMMER_SECONDS", "2"));
    if (argc > 3) setenv("TERN_TEST_SEED", argv[3], 1);
    stuck_s = atoi(setting(0, NULL, 1, "HAMMER_STUCK", "30"));
    if (count < 1 || count > THREADS_MAX || seconds <= 0 || stuck_s <= 0) {
        fprintf(stderr, "hammer [THREADS (1..%d) [SECONDS [SEED]]]\n", THREADS_MAX);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    uint64_t seed = check_seed();
    fflush(stdout);

    enum { BUFFER = 8000000 };
    char *buffer = malloc(BUFFER), *detached;
    pthread_t watchdog;
    int size;
    MPI_Buffer_attach(buffer, BUFFER);
    prepare(seed);
    MPI_Barrier(MPI_COMM_WORLD);
    ends_at = MPI_Wtime() + seconds;
    for (int i = 0; i < count; i++) pthread_create(&threads[i].id, NULL, work, &threads[i]);
    pthread_create(&watchdog, NULL, watch, NULL);
    for (int i = 0; i < count; i++) pthread_join(threads[i].id, NULL);
    all_ended = true;
    pthread_join(watchdog, NULL);

    for (int i = 0; i < count; i++) {
        struct thread *t = &threads[i];
        CHECK(t->bad == 0 && t->rounds > 0, "seed %llu, thread %d: %ld bad in %ld rounds, the first: %s",
              (unsigned long long)seed, i, t->bad, t->rounds, t->first_bad);
        if (t->kind->common == MPI_COMM_NULL) MPI_Comm_free(&t->comm);
        free(t->out);
        free(t->in);
    }
    for (int k = 0; k < KINDS; k++) report(all_kinds[k], seconds < JUDGED_S ? 0.1 : 0.5);
    MPI_Comm_free(&kind_shared.common);
    MPI_Comm_free(&kind_crowd.common);
    MPI_Buffer_detach(&detached, &size);
    CHECK(detached == buffer && size == BUFFER, "%d bytes are detached", size);
    free(buffer);
    return check_done();
}
