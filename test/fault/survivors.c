/*
 * survivors.c - a rank of the job is killed while the others are in operations that need it, for survive.test:
 *
 *     survivors FILE SEED KIND
 *
 * FILE is shared memory for this round. The rank that the seed chooses starts a process before MPI_Init that, once all
 * are inside of the operations, waits for a random moment, writes down the time and kills it. Each survivor then prints
 * "survivor RANK MICROSECONDS MICROSECONDS good": from the signal, and from the time when the system said that the rank is
 * dead, to the end of its call. With SURVIVORS_TELL_FIRST set it looks whether the dead process is still a zombie then. It checks the class and the words of the error, and talks to the other survivors on a
 * communicator of their own.
 */
#include "../mpi/check.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LARGE = 60000, FLIGHTS = 4, NAP_US = 15000, REAP_NS = 50000000 };

static struct page {
    _Atomic int going;       /* ranks that are inside */
    _Atomic uint64_t killed; /* CLOCK_MONOTONIC in ns, 0: it lives */
    _Atomic uint64_t ended;  /* when the system has told that it is dead, 0: not yet */
    _Atomic int pid;         /* of the one that is killed */
} *page;

static int victim, size;
static MPI_Comm world;
static int *in, *out;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t seed;
static unsigned draw(unsigned n)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (unsigned)(seed >> 33) % n;
}

/* ---- what the victim does: answers each message by one of the same length and tag ---- */

static void serve(void)
{
    for (;;) {
        MPI_Status s;
        int n;
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, world, &s);
        MPI_Get_count(&s, MPI_INT, &n);
        MPI_Recv(in, n, MPI_INT, s.MPI_SOURCE, s.MPI_TAG, world, MPI_STATUS_IGNORE);
        MPI_Send(in, n, MPI_INT, s.MPI_SOURCE, s.MPI_TAG, world);
    }
}

static void sleep_on(void)
{
    for (;;) pause();
}

/* ---- what a survivor does again and again: one round, or its error ---- */

static int length(int round) { return round % 5 == 4 ? LARGE : round % 3 ? 1 : 800; }

static int both(int round)
{
    int rc = MPI_Send(out, length(round), MPI_INT, victim, 1, world);
    return rc ? rc : MPI_Recv(in, length(round), MPI_INT, victim, 1, world, MPI_STATUS_IGNORE);
}

static int both_synchronous(int round)
{
    int rc = MPI_Ssend(out, length(round), MPI_INT, victim, 1, world);
    return rc ? rc : MPI_Recv(in, length(round), MPI_INT, victim, 1, world, MPI_STATUS_IGNORE);
}

static int any_source(int round)
{
    int rc = MPI_Send(out, length(round), MPI_INT, victim, 1, world);
    return rc ? rc : MPI_Recv(in, length(round), MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, world, MPI_STATUS_IGNORE);
}

static int probed(int round)
{
    int rc = MPI_Send(out, length(round), MPI_INT, victim, 1, world);
    if (!rc) rc = MPI_Probe(round & 1 ? MPI_ANY_SOURCE : victim, 1, world, MPI_STATUS_IGNORE);
    return rc ? rc : MPI_Recv(in, length(round), MPI_INT, victim, 1, world, MPI_STATUS_IGNORE);
}

static int matched(int round)
{
    MPI_Message m;
    int rc = MPI_Send(out, length(round), MPI_INT, victim, 1, world);
    if (!rc) rc = MPI_Mprobe(round & 1 ? MPI_ANY_SOURCE : victim, 1, world, &m, MPI_STATUS_IGNORE);
    return rc ? rc : MPI_Mrecv(in, length(round), MPI_INT, &m, MPI_STATUS_IGNORE);
}

static int looked_for(int round)
{
    int rc = MPI_Send(out, length(round), MPI_INT, victim, 1, world);
    for (int there = 0; !rc && !there;)
        rc = MPI_Iprobe(round & 1 ? MPI_ANY_SOURCE : victim, 1, world, &there, MPI_STATUS_IGNORE);
    return rc ? rc : MPI_Recv(in, length(round), MPI_INT, victim, 1, world, MPI_STATUS_IGNORE);
}

static bool words_checked;

/* The words of the last failure, with this code, name the dead. */
static void check_words_for(int rc)
{
    char words[MPI_MAX_ERROR_STRING] = "", name[32];
    int n;
    MPI_Error_string(rc, words, &n);
    snprintf(name, sizeof name, "rank %d", victim);
    CHECK(strstr(words, name) != NULL, "the words are '%s'", words);
    words_checked = true;
}

/* The error of one of several: that of a call for many lies in a status, and its words belong to the call. */
static int first_error(int rc, int n, const MPI_Status *s)
{
    if (rc == MPI_ERR_IN_STATUS) check_words_for(rc);
    for (int i = 0; rc == MPI_ERR_IN_STATUS && i < n; i++)
        if (s[i].MPI_ERROR && s[i].MPI_ERROR != MPI_ERR_PENDING) return s[i].MPI_ERROR;
    return rc;
}

static void let_go(int n, MPI_Request *r)
{
    for (int i = 0; i < n; i++) {
        if (r[i] == MPI_REQUEST_NULL) continue;
        MPI_Wait(&r[i], MPI_STATUS_IGNORE); /* they end as well */
    }
}

static int start_both(int round, MPI_Request r[2])
{
    r[0] = r[1] = MPI_REQUEST_NULL;
    int rc = MPI_Irecv(in, length(round), MPI_INT, round & 1 ? MPI_ANY_SOURCE : victim, 1, world, &r[1]);
    return rc ? rc : MPI_Isend(out, length(round), MPI_INT, victim, 1, world, &r[0]);
}

static int waited_for(int round)
{
    MPI_Request r[2];
    MPI_Status s[2];
    int rc = start_both(round, r);
    if (!rc) rc = first_error(MPI_Waitall(2, r, s), 2, s);
    let_go(2, r);
    return rc;
}

static int tested(int round)
{
    MPI_Request r[2];
    int rc = start_both(round, r);
    for (int i = 0, done; i < 2 && !rc; i++)
        for (done = 0; !rc && !done;) rc = MPI_Test(&r[i], &done, MPI_STATUS_IGNORE);
    let_go(2, r);
    return rc;
}

static int tested_any(int round)
{
    MPI_Request r[2];
    int rc = start_both(round, r);
    for (int i = 0, done, which; i < 2 && !rc; i++)
        for (done = 0; !rc && !done;) rc = MPI_Testany(2, r, &which, &done, MPI_STATUS_IGNORE);
    let_go(2, r);
    return rc;
}

static int waited_for_any(int round)
{
    MPI_Request r[2];
    int rc = start_both(round, r);
    for (int i = 0, which; i < 2 && !rc; i++) rc = MPI_Waitany(2, r, &which, MPI_STATUS_IGNORE);
    let_go(2, r);
    return rc;
}

/* By MPI_Waitsome or MPI_Testsome. */
static int some(int round, int (*call)(int, MPI_Request *, int *, int *, MPI_Status *))
{
    MPI_Request r[2];
    MPI_Status s[2];
    int rc = start_both(round, r), which[2];
    for (int i = 0, n; i < 2 && !rc; i += n) {
        rc = call(2, r, &n, which, s);
        rc = first_error(rc, n, s);
    }
    let_go(2, r);
    return rc;
}

static int waited_for_some(int round) { return some(round, MPI_Waitsome); }
static int tested_some(int round) { return some(round, MPI_Testsome); }

static int kept(int round)
{
    static MPI_Request r[2];
    MPI_Status s[2];
    if (!round) {
        MPI_Recv_init(in, 100, MPI_INT, victim, 1, world, &r[1]);
        MPI_Send_init(out, 100, MPI_INT, victim, 1, world, &r[0]);
    }
    int rc = MPI_Startall(2, r);
    return rc ? rc : first_error(MPI_Waitall(2, r, s), 2, s);
}

static int kept_tested(int round)
{
    static MPI_Request r[2];
    if (!round) {
        MPI_Recv_init(in, LARGE, MPI_INT, MPI_ANY_SOURCE, 1, world, &r[1]);
        MPI_Send_init(out, LARGE, MPI_INT, victim, 1, world, &r[0]);
    }
    int rc = MPI_Startall(2, r);
    for (int i = 0, done; i < 2 && !rc; i++)
        for (done = 0; !rc && !done;) rc = MPI_Test(&r[i], &done, MPI_STATUS_IGNORE);
    return rc;
}

/* Until the victim, which receives nothing, has no room for more. */
static int flooded(int round)
{
    return MPI_Send(out, round & 1 ? 1 : 800, MPI_INT, victim, 1, world);
}

/* The victim floods all others: it may die in the middle of a message. */
static void flood_all(void)
{
    for (int to = 0;; to = (to + 1) % size)
        if (to != victim) MPI_Send(out, 200, MPI_INT, to, 4, world);
}

static int flooded_by(int round)
{
    (void)round;
    return MPI_Recv(in, 200, MPI_INT, victim, 4, world, MPI_STATUS_IGNORE);
}

/* Nothing has ever been sent between the two. */
static int asleep(int round) { return MPI_Recv(in, 1, MPI_INT, round & 1 ? MPI_ANY_SOURCE : victim, 1, world, MPI_STATUS_IGNORE); }
static int asleep_any(int round) { return asleep(round | 1); }
static int asleep_probing(int round) { return MPI_Probe(round & 1 ? MPI_ANY_SOURCE : victim, 1, world, MPI_STATUS_IGNORE); }
static int asleep_sending(int round)
{
    (void)round;
    return MPI_Ssend(out, 1, MPI_INT, victim, 1, world);
}

static int slots(int round)
{
    int rc = MPI_Allreduce(out, in, 2, MPI_INT, MPI_SUM, world);
    if (!rc) rc = MPI_Bcast(in, 2, MPI_INT, round % size, world);
    if (!rc) rc = MPI_Alltoall(out, 2, MPI_INT, in, 2, MPI_INT, world);
    return rc ? rc : MPI_Barrier(world);
}

static int rooted(int round)
{
    int root = round % size, rc = MPI_Reduce(out, in, 800, MPI_INT, MPI_MAX, root, world);
    if (!rc) rc = MPI_Gather(out, 10, MPI_INT, in, 10, MPI_INT, root, world);
    if (!rc) rc = MPI_Scatter(out, 10, MPI_INT, in, 10, MPI_INT, root, world);
    return rc ? rc : MPI_Scan(out, in, 800, MPI_INT, MPI_SUM, world);
}

static int large(int round)
{
    int rc = MPI_Allreduce(out, in, LARGE, MPI_INT, MPI_SUM, world);
    if (!rc) rc = MPI_Bcast(in, LARGE, MPI_INT, round % size, world);
    if (!rc) rc = MPI_Allgather(out, LARGE / size, MPI_INT, in, LARGE / size, MPI_INT, world);
    return rc ? rc : MPI_Alltoall(out, LARGE / size, MPI_INT, in, LARGE / size, MPI_INT, world);
}

static int background(int round)
{
    MPI_Request r[FLIGHTS];
    MPI_Status s[FLIGHTS];
    int rc = 0, n = 0;
    for (; n < FLIGHTS && !rc; n++) {
        int count = (round + n) % 3 ? 2 : LARGE / FLIGHTS;
        rc = MPI_Iallreduce(out, in + n * (LARGE / FLIGHTS), count, MPI_INT, MPI_SUM, world, &r[n]);
        if (rc) break;
    }
    int waited = n ? first_error(MPI_Waitall(n, r, s), n, s) : 0;
    return rc ? rc : waited;
}

static int background_tested(int round)
{
    MPI_Request r;
    int done = 0, rc = round & 1 ? MPI_Ibarrier(world, &r) : MPI_Ibcast(in, 100, MPI_INT, round % size, world, &r);
    if (rc) return rc;
    while (!rc && !done) rc = MPI_Test(&r, &done, MPI_STATUS_IGNORE);
    return rc;
}

static int background_any(int round)
{
    MPI_Request r[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int rc = MPI_Ialltoall(out, 200, MPI_INT, in, 200, MPI_INT, world, &r[0]);
    if (!rc) rc = MPI_Ireduce(out, in + LARGE / 2, round & 1 ? 2 : LARGE / 2, MPI_INT, MPI_SUM, round % size, world, &r[1]);
    for (int i = 0, which; i < 2 && !rc; i++) rc = MPI_Waitany(2, r, &which, MPI_STATUS_IGNORE);
    let_go(2, r);
    return rc;
}

static int kept_collective(int round)
{
    static MPI_Request r;
    int rc = 0;
    if (!round) rc = MPI_Allreduce_init(out, in, 100, MPI_INT, MPI_SUM, world, MPI_INFO_NULL, &r);
    if (!rc) rc = MPI_Start(&r);
    if (!rc) rc = MPI_Wait(&r, MPI_STATUS_IGNORE);
    if (rc && r != MPI_REQUEST_NULL) MPI_Request_free(&r);
    return rc;
}

static int made(int round)
{
    MPI_Comm c = MPI_COMM_NULL;
    int rc = round & 1 ? MPI_Comm_split(world, 0, 0, &c) : MPI_Comm_dup(world, &c);
    if (!rc) rc = MPI_Barrier(c);
    if (c != MPI_COMM_NULL) MPI_Comm_free(&c);
    return rc;
}

static int barrier(int round)
{
    (void)round;
    return MPI_Barrier(world);
}

/* One of the others begins its first operation when the victim is dead, and has never had contact with it. */
static int late(int round)
{
    int last = victim == size - 1 ? size - 2 : size - 1;
    struct timespec tick = {0, 100000};
    (void)round;
    while (check_rank == last && !atomic_load(&page->ended)) nanosleep(&tick, NULL);
    return MPI_Barrier(world);
}

/* ---- windows: all change the memory of all ---- */

static MPI_Win win;
enum { WIN_INTS = 30000 }; /* in pieces through a dock, or by a move */
static int put_from[WIN_INTS];
static int some_ints(int round) { return round % 4 ? 1 : WIN_INTS; }

/* In the first round, by the number of processes: memory that is mapped, or the process's own. */
static int with_window(int round)
{
    static int private[WIN_INTS];
    int *base, rc;
    if (round) return 0;
    if (size % 2) rc = MPI_Win_allocate(sizeof private, sizeof *private, MPI_INFO_NULL, world, &base, &win);
    else rc = MPI_Win_create(private, sizeof private, sizeof *private, MPI_INFO_NULL, world, &win);
    if (!rc) MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    return rc;
}

/* The victim dies with locks of others, waits for them, is waited for. */
static int window_locked(int round)
{
    int to = (round + check_rank) % size, rc = with_window(round), end;
    if (!rc) rc = MPI_Win_lock(round % 3 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, to, 0, win);
    if (rc) return rc;
    rc = MPI_Put(put_from, some_ints(round), MPI_INT, to, 0, some_ints(round), MPI_INT, win);
    end = MPI_Win_unlock(to, win);
    return rc ? rc : end;
}

static int window_flushed(int round)
{
    int rc = with_window(round), one = 1, was;
    if (!rc && !round) rc = MPI_Win_lock_all(0, win);
    if (!rc) rc = MPI_Fetch_and_op(&one, &was, MPI_INT, round % size, 1, MPI_SUM, win);
    if (!rc && !(round % 4)) rc = MPI_Accumulate(put_from, WIN_INTS, MPI_INT, round % size, 0, WIN_INTS, MPI_INT, MPI_SUM, win);
    return rc ? rc : MPI_Win_flush(round % size, win);
}

static int window_fenced(int round)
{
    int rc = with_window(round);
    if (!rc && !round) rc = MPI_Win_fence(0, win);
    if (!rc) rc = MPI_Put(put_from, some_ints(round), MPI_INT, (check_rank + round) % size, 0, some_ints(round), MPI_INT, win);
    return rc ? rc : MPI_Win_fence(0, win);
}

static int window_posted(int round)
{
    MPI_Group all;
    int rc = with_window(round);
    MPI_Comm_group(world, &all);
    if (!rc) rc = MPI_Win_post(all, 0, win);
    if (!rc) rc = MPI_Win_start(all, 0, win);
    if (!rc) rc = MPI_Put(put_from, some_ints(round), MPI_INT, (check_rank + round) % size, 0, some_ints(round), MPI_INT, win);
    if (!rc) rc = MPI_Win_complete(win);
    if (!rc) rc = MPI_Win_wait(win);
    MPI_Group_free(&all);
    return rc;
}

static int finalize(int round)
{
    (void)round;
    return MPI_Finalize();
}

static void go_along(int (*once)(int))
{
    for (int i = 0;; i++) once(i);
}

static const struct kind {
    const char *name;
    int (*once)(int round);
    void (*victim)(void); /* NULL: the same as the others */
} kinds[] = {
    {"send", both, serve},
    {"ssend", both_synchronous, serve},
    {"anysource", any_source, serve},
    {"probe", probed, serve},
    {"mprobe", matched, serve},
    {"iprobe", looked_for, serve},
    {"wait", waited_for, serve},
    {"waitany", waited_for_any, serve},
    {"waitsome", waited_for_some, serve},
    {"test", tested, serve},
    {"testany", tested_any, serve},
    {"testsome", tested_some, serve},
    {"persistent", kept, serve},
    {"persistent-test", kept_tested, serve},
    {"flood", flooded, sleep_on},
    {"flooded", flooded_by, flood_all},
    {"asleep", asleep, sleep_on},
    {"asleep-any", asleep_any, sleep_on},
    {"asleep-probe", asleep_probing, sleep_on},
    {"asleep-ssend", asleep_sending, sleep_on},
    {"asleep-barrier", barrier, sleep_on},
    {"slots", slots, NULL},
    {"rooted", rooted, NULL},
    {"large", large, NULL},
    {"background", background, NULL},
    {"background-test", background_tested, NULL},
    {"background-any", background_any, NULL},
    {"kept", kept_collective, NULL},
    {"made", made, NULL},
    {"late", late, NULL},
    {"window-locked", window_locked, NULL},
    {"window-flushed", window_flushed, NULL},
    {"window-fenced", window_fenced, NULL},
    {"window-posted", window_posted, NULL},
    {"finalize", finalize, sleep_on},
};

/* ---- the death ---- */

static void kill_later(pid_t whom)
{
    struct timespec nap = {0, (long)draw(NAP_US) * 1000}, tick = {0, 100000};
    for (int i = 0; atomic_load(&page->going) < size && i < 100000; i++) nanosleep(&tick, NULL);
    nanosleep(&nap, NULL);
    struct pollfd dead = {.fd = (int)syscall(SYS_pidfd_open, whom, 0), .events = POLLIN};
    atomic_store(&page->pid, whom);
    atomic_store(&page->killed, now_ns());
    kill(whom, SIGKILL);
    if (dead.fd >= 0 && poll(&dead, 1, 60000) > 0) atomic_store(&page->ended, now_ns());
    _exit(0);
}

static void start_killer(void)
{
    pid_t self = getpid();
    if (!fork()) kill_later(self);
}

/* ---- afterwards ---- */

static void check_failure(int rc)
{
    int klass;
    char words[MPI_MAX_ERROR_STRING] = "";
    int n;
    MPI_Error_string(rc, words, &n);
    MPI_Error_class(rc, &klass);
    CHECK(klass == MPI_ERR_PROC_ABORTED, "class %d: %s", klass, words);
    if (!words_checked) check_words_for(rc);
    words_checked = false;
}

static MPI_Comm of_the_living(void)
{
    MPI_Group all, some;
    MPI_Comm c = MPI_COMM_NULL;
    MPI_Comm_group(world, &all);
    MPI_Group_excl(all, 1, &victim, &some);
    CHECK_OK(MPI_Comm_create_group(world, some, 7, &c));
    MPI_Group_free(&all);
    MPI_Group_free(&some);
    return c;
}

/* Two leaders of the same group find that; what they pass on to the dead member does not replace their words. */
static void lead_the_same(MPI_Comm c, int me)
{
    MPI_Comm inter;
    if (me < 2) CHECK_WORDS(MPI_Intercomm_create(world, check_rank, c, 1 - me, 9, &inter), MPI_ERR_COMM, "processes are in both groups");
}

static void talk_on(void)
{
    MPI_Comm c = of_the_living(), half = MPI_COMM_NULL;
    int n, me, sum = 0, one = 1, got = -1;
    if (c == MPI_COMM_NULL) return;
    MPI_Comm_size(c, &n);
    MPI_Comm_rank(c, &me);
    CHECK(n == size - 1, "%d live", n);
    CHECK_OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c));
    CHECK(sum == n, "the sum is %d of %d", sum, n);
    CHECK_OK(MPI_Sendrecv(&me, 1, MPI_INT, (me + 1) % n, 3, &got, 1, MPI_INT, MPI_ANY_SOURCE, 3, c, MPI_STATUS_IGNORE));
    CHECK(got == (me + n - 1) % n, "got %d", got);
    CHECK_OK(MPI_Comm_split(c, me % 2, 0, &half));
    CHECK_OK(MPI_Barrier(half));
    CHECK_OK(MPI_Comm_free(&half));
    lead_the_same(c, me);
    CHECK_OK(MPI_Comm_free(&c));
    check_failure(MPI_Barrier(world));
}

/* SURVIVORS_TELL_FIRST is set: the launcher has told of the death before it reaps the process, unless that took long. */
static void check_order(uint64_t end)
{
    uint64_t ended = atomic_load(&page->ended);
    if (!getenv("SURVIVORS_TELL_FIRST") || (ended && end > ended + REAP_NS)) return;
    CHECK(!kill(atomic_load(&page->pid), 0), "it is not there any more");
}

static void survive(const struct kind *k)
{
    int rc = 0;
    for (int i = 0; !rc; i++) rc = k->once(i);
    uint64_t end = now_ns(), killed = atomic_load(&page->killed), ended = atomic_load(&page->ended);
    bool over = k->once == finalize;
    check_order(end);
    CHECK(killed != 0, "an error before the death: %d", rc);
    if (over) {
        int klass;
        CHECK(!MPI_Error_class(rc, &klass) && klass == MPI_ERR_PROC_ABORTED, "class %d", klass);
    } else {
        check_failure(rc);
        talk_on();
        check_failure(MPI_Finalize());
    }
    printf("survivor %d %llu %llu %s\n", check_rank, (unsigned long long)(end - killed) / 1000,
           (unsigned long long)(ended && ended < end ? end - ended : 0) / 1000, check_failures ? "failed" : "good");
}

int main(int argc, char **argv)
{
    const struct kind *k = kinds;
    int fd = argc == 4 ? open(argv[1], O_RDWR) : -1;
    const char *number = getenv("PMI_SIZE"), *rank = getenv("PMI_RANK");
    if (fd < 0 || !number || !rank) return fprintf(stderr, "survivors FILE SEED KIND, under mpiexec\n"), 2;
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    while (k < kinds + sizeof kinds / sizeof *kinds && strcmp(k->name, argv[3])) k++;
    if (page == MAP_FAILED || k == kinds + sizeof kinds / sizeof *kinds) return fprintf(stderr, "no kind %s\n", argv[3]), 2;
    size = atoi(number);
    seed = strtoull(argv[2], NULL, 10);
    for (int i = 0; i < 4; i++) draw(2);
    victim = (int)draw((unsigned)size);
    if (atoi(rank) == victim) start_killer();
    MPI_Init(NULL, NULL);
    world = MPI_COMM_WORLD;
    MPI_Comm_rank(world, &check_rank);
    check_size = size;
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    in = calloc(LARGE, sizeof *in);
    out = calloc(LARGE, sizeof *out);
    if (!in || !out) MPI_Abort(world, 1);
    atomic_fetch_add(&page->going, 1);
    if (check_rank == victim && k->victim) k->victim();
    if (check_rank == victim) go_along(k->once);
    survive(k);
    return check_failures != 0;
}
