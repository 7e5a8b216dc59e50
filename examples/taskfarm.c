/*
 * taskfarm.c - counts primes by a farm of workers that may die at any moment.
 *
 * The numbers below a limit are cut into ranges; a task is to count the primes of one. The master spawns the workers, each
 * by a call of its own, so each is a job of its own, and its death is an error on one intercommunicator alone. A worker has
 * up to AHEAD tasks in hand, so that it computes while the master is busy with others.
 *
 *        master                                    worker
 *          |  WELCOME ----------------------->        |
 *          |  <------------------------- HELLO        |   process number and host
 *          |  TASK number, range ------------>        |   the next one lies there already
 *          |  <------------- RESULT number, primes    |
 *          |  LEAVE ------------------------->        |
 *          |  <--------------------------- BYE        |   then both disconnect
 *
 * If a call names an error, the worker is dead: its tasks are handed out again, and another worker is spawned in its
 * place. A worker that has a task for longer than the lease is given up likewise, and killed if it is on the master's
 * host; what it tells later is welcome. The first result of a task counts, no other one does. The total has to be
 * the known number of primes, or that of a serial count (--check).
 *
 * With --kill-every MS, the master itself kills a worker in such intervals; a thread does so, as the master may be
 * inside of MPI_Comm_spawn just then. --static takes the ranks of MPI_COMM_WORLD as workers, to compare.
 */
#include "allocate.h"
#include "options.h"
#include "spawning.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

enum { AHEAD = 2, WORKERS = 256, FAILURES = 20 }; /* tasks in hand; workers at most; spawns that fail one after the other */
enum { BLOCK = 1 << 16 };                         /* odd numbers that are sieved at a time */
enum { NAP_US = 200 };                            /* between two looks for messages, if there were none */

static long workers = 4, limit = 100000000, grain = 500000, think_ms = 0, kill_ms = 0, lease_s = 10;
static const char *pairs[SPAWNING_PAIRS];
static int npairs;
static bool is_static, is_worker, check, bench;

static const struct option options[] = {
    {.name = "workers", .number = &workers, .min = 1, .max = WORKERS, .help = "workers at a time (4)"},
    {.name = "limit", .number = &limit, .min = 10, .max = 1000000000000, .help = "counts the primes below N (100000000)"},
    {.name = "grain", .number = &grain, .min = 100, .max = 1000000000, .help = "numbers of one task (500000)"},
    {.name = "think", .number = &think_ms, .min = 0, .max = 60000, .help = "a worker sleeps N ms in each task (0)"},
    {.name = "kill-every", .number = &kill_ms, .min = 0, .max = 3600000, .help = "kills a worker every N ms (0: none)"},
    {.name = "lease", .number = &lease_s, .min = 1, .max = 86400, .help = "seconds for one task, then it is handed out again (10)"},
    {.name = "info", .text = pairs, .given = &npairs, .max = SPAWNING_PAIRS, .what = "KEY=VALUE",
     .help = "for MPI_Comm_spawn; may be repeated"},
    {.name = "static", .flag = &is_static, .help = "the workers are ranks 1 and up of MPI_COMM_WORLD"},
    {.name = "check", .flag = &check, .help = "compares with a serial count; exit code 1 when they differ"},
    {.name = "bench", .flag = &bench, .help = "prints figures, a line each: key value"},
    {.name = "worker", .flag = &is_worker, .help = "(given to spawned workers, to be seen in lists of processes)"},
    {.name = NULL}};

/* The number of primes below 10, 100, ...: sequence A006880 of the On-Line Encyclopedia of Integer Sequences. */
static const int64_t known[] = {4, 25, 168, 1229, 9592, 78498, 664579, 5761455, 50847534, 455052511, 4118054813, 37607912018};

enum kind { WELCOME = 1, HELLO, TASK, RESULT, LEAVE, BYE };

/* What master and workers say; all processes are of the same kind, so it travels as bytes. */
struct message {
    int64_t kind, task, first, end, primes, pid;
    char host[64];
};

/* ---- primes ---- */

struct sieve {
    uint32_t *prime; /* odd ones, up to the root of the limit */
    size_t n;
    unsigned char block[BLOCK];
};

static void fail(const char *words)
{
    fprintf(stderr, "taskfarm: %s\n", words);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static struct sieve *sieve_open(void)
{
    struct sieve *s = allocate(1, sizeof *s);
    size_t root = 3;
    while ((int64_t)root * (int64_t)root < limit) root++;
    unsigned char *composite = allocate(root + 1, 1);
    s->prime = allocate(root, sizeof *s->prime);
    for (size_t p = 3; p <= root; p += 2) {
        if (composite[p]) continue;
        s->prime[s->n++] = (uint32_t)p;
        for (size_t k = p * p; k <= root; k += 2 * p) composite[k] = 1;
    }
    free(composite);
    return s;
}

static void sieve_close(struct sieve *s)
{
    free(s->prime);
    free(s);
}

/* The primes of `count` odd numbers from `first` on, which is odd. */
static int64_t sieve_block(struct sieve *s, int64_t first, int64_t count)
{
    int64_t primes = 0, last = first + 2 * (count - 1);
    memset(s->block, 0, (size_t)count);
    for (size_t i = 0; i < s->n && (int64_t)s->prime[i] * s->prime[i] <= last; i++) {
        int64_t p = s->prime[i], from = p * p > first ? p * p : (first + p - 1) / p * p;
        if (from % 2 == 0) from += p;
        for (int64_t k = (from - first) / 2; k < count; k += p) s->block[k] = 1;
    }
    for (int64_t k = 0; k < count; k++) primes += !s->block[k];
    return primes;
}

/* The primes p with first <= p < end. */
static int64_t sieve_range(struct sieve *s, int64_t first, int64_t end)
{
    int64_t primes = first <= 2 && end > 2, from = first < 3 ? 3 : first | 1;
    for (int64_t count; from < end; from += 2 * count) {
        count = (end - from + 1) / 2 < BLOCK ? (end - from + 1) / 2 : BLOCK;
        primes += sieve_block(s, from, count);
    }
    return primes;
}

static void sleep_us(long us)
{
    nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}, NULL);
}

/* ---- a worker ---- */

static void tell(MPI_Comm master, const struct message *m)
{
    MPI_Send(m, sizeof *m, MPI_BYTE, 0, 0, master);
}

static void work(MPI_Comm master)
{
    struct sieve *s = sieve_open();
    struct message m = {.kind = HELLO, .pid = getpid()};
    gethostname(m.host, sizeof m.host - 1);
    tell(master, &m);
    for (;;) {
        MPI_Recv(&m, sizeof m, MPI_BYTE, 0, 0, master, MPI_STATUS_IGNORE);
        if (m.kind == LEAVE) break;
        if (m.kind == WELCOME) continue;
        m.primes = sieve_range(s, m.first, m.end);
        if (think_ms) sleep_us(1000 * think_ms);
        m.kind = RESULT;
        tell(master, &m);
    }
    m.kind = BYE;
    tell(master, &m);
    sieve_close(s);
}

/* ---- the master's tasks ---- */

/* Tasks are handed out from `again`, which has those of workers that were lost, and then one after the other. */
struct tasks {
    int64_t n, next, done, again_n, primes;
    int64_t *again;
    unsigned char *is_done;
    long handed_again, repeated;
};

static void tasks_open(struct tasks *t)
{
    *t = (struct tasks){.n = (limit + grain - 1) / grain};
    t->again = allocate((size_t)t->n, sizeof *t->again);
    t->is_done = allocate((size_t)t->n, 1);
}

static void tasks_close(struct tasks *t)
{
    free(t->again);
    free(t->is_done);
}

/* The next task that is to be done; false: all are in someone's hands, or done. */
static bool tasks_take(struct tasks *t, struct message *m)
{
    while (t->again_n && t->is_done[t->again[t->again_n - 1]]) t->again_n--; /* its worker has reported it meanwhile */
    if (!t->again_n && t->next == t->n) return false;
    int64_t task = t->again_n ? t->again[--t->again_n] : t->next++;
    *m = (struct message){.kind = TASK, .task = task, .first = task * grain, .end = (task + 1) * grain};
    if (m->end > limit) m->end = limit;
    return true;
}

/* A task is in `again` once at most: it was in the hands of one worker. */
static void tasks_give_back(struct tasks *t, int64_t task)
{
    if (t->is_done[task]) return;
    t->again[t->again_n++] = task;
    t->handed_again++;
}

static void tasks_count(struct tasks *t, const struct message *m)
{
    if (m->task < 0 || m->task >= t->n) fail("a worker told of a task that there is not");
    t->repeated += t->is_done[m->task];
    if (t->is_done[m->task]) return;
    t->is_done[m->task] = 1;
    t->done++;
    t->primes += m->primes;
}

/* ---- the master's workers ---- */

struct worker {
    MPI_Comm comm;
    int rank; /* there */
    MPI_Request request;
    struct message in;
    int64_t task[AHEAD]; /* in hand, the oldest first */
    int held;
    double since;   /* when it told something last, or got the first of its tasks */
    bool silent;    /* its lease is over: it gets no more */
    pid_t pid;      /* 0: of another host */
    int prey;       /* its place in the list of the killer */
};

struct farm {
    struct tasks tasks;
    struct worker *worker[WORKERS * 2]; /* those that are silent as well */
    int n, silent, failures;
    long spawned, lost, given_up;
    double spawn_s; /* in MPI_Comm_spawn, all in all */
    char host[64], *program;
    MPI_Info info;
};

/* What the killer looks for: numbers of processes, 0 where there is none. */
static _Atomic int prey[WORKERS * 2];
static atomic_long kills;
static atomic_bool over;

static void *kill_workers(void *arg)
{
    unsigned random = (unsigned)time(NULL);
    (void)arg;
    for (;;) {
        long us = 1000 * kill_ms / 2 + rand_r(&random) % (1000 * kill_ms); /* kill_ms in the mean */
        for (; us > 0 && !over; us -= 10000) sleep_us(us < 10000 ? us : 10000);
        if (over) return NULL;
        for (int i = 0, at = rand_r(&random); i < WORKERS * 2; i++) {
            int pid = atomic_exchange(&prey[(at + i) % (WORKERS * 2)], 0);
            if (!pid) continue;
            kills += !kill(pid, SIGKILL);
            break;
        }
    }
}

static void offer_prey(struct worker *w)
{
    for (w->prey = 0; w->prey < WORKERS * 2; w->prey++) {
        int none = 0;
        if (atomic_compare_exchange_strong(&prey[w->prey], &none, w->pid)) return;
    }
}

static void spare(struct worker *w)
{
    int pid = w->pid;
    if (pid && w->prey < WORKERS * 2) atomic_compare_exchange_strong(&prey[w->prey], &pid, 0);
}

static void listen(struct worker *w, int *code)
{
    *code = MPI_Irecv(&w->in, sizeof w->in, MPI_BYTE, w->rank, 0, w->comm, &w->request);
}

/* The worker is dead. What is left of it is taken down: that fails, and ends, for lack of the other side. */
static void lose(struct farm *f, struct worker *w, int code)
{
    fprintf(stderr, "taskfarm: worker %d is lost: %s\n", (int)w->pid, spawning_words(code));
    if (w->request != MPI_REQUEST_NULL) {
        MPI_Cancel(&w->request);
        MPI_Wait(&w->request, MPI_STATUS_IGNORE);
    }
    spare(w);
    if (!w->silent)
        for (int i = 0; i < w->held; i++) tasks_give_back(&f->tasks, w->task[i]);
    MPI_Comm_disconnect(&w->comm);
    if (w->comm != MPI_COMM_NULL) MPI_Comm_free(&w->comm);
    int i = 0;
    while (f->worker[i] != w) i++;
    f->worker[i] = f->worker[--f->n];
    f->silent -= w->silent;
    f->lost++;
    free(w);
}

/* Tasks, up to AHEAD. */
static int hand_out(struct farm *f, struct worker *w)
{
    struct message m;
    int code = MPI_SUCCESS;
    while (!w->silent && w->held < AHEAD && !code && tasks_take(&f->tasks, &m)) {
        if (!w->held) w->since = MPI_Wtime();
        w->task[w->held++] = m.task;
        code = MPI_Send(&m, sizeof m, MPI_BYTE, w->rank, 0, w->comm);
    }
    return code;
}

static void drop_task(struct worker *w, int64_t task)
{
    for (int i = 0; i < w->held; i++) {
        if (w->task[i] != task) continue;
        memmove(&w->task[i], &w->task[i + 1], (size_t)(--w->held - i) * sizeof w->task[0]);
        return;
    }
}

/* It has spoken; its tasks are others' by now, if it was silent. */
static void welcome_back(struct farm *f, struct worker *w)
{
    if (!w->silent) return;
    w->silent = false;
    w->held = 0;
    f->silent--;
}

static void take_message(struct farm *f, struct worker *w)
{
    const struct message *m = &w->in;
    w->since = MPI_Wtime();
    if (m->kind == HELLO && !strcmp(m->host, f->host)) {
        w->pid = (pid_t)m->pid;
        if (kill_ms) offer_prey(w);
    }
    if (m->kind == RESULT) tasks_count(&f->tasks, m);
    if (m->kind == RESULT) drop_task(w, m->task);
    welcome_back(f, w);
}

static void enlist(struct farm *f, MPI_Comm comm, int rank)
{
    struct worker *w = allocate(1, sizeof *w);
    const struct message welcome = {.kind = WELCOME};
    int code;
    *w = (struct worker){.comm = comm, .rank = rank, .request = MPI_REQUEST_NULL, .since = MPI_Wtime(), .prey = WORKERS * 2};
    f->worker[f->n++] = w;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    listen(w, &code);
    if (!code) code = MPI_Send(&welcome, sizeof welcome, MPI_BYTE, rank, 0, comm); /* fails if it is dead by now */
    if (!code) code = hand_out(f, w);
    if (code) lose(f, w, code);
}

/* One worker more. It may be killed before it is here: that is an error of the call. */
static void recruit(struct farm *f)
{
    char worker[] = "--worker", word[] = "--think", limit_word[] = "--limit", think[32], below[32];
    char *argv[] = {worker, word, think, limit_word, below, NULL};
    MPI_Comm comm;
    double start = MPI_Wtime();
    snprintf(think, sizeof think, "%ld", think_ms);
    snprintf(below, sizeof below, "%ld", limit);
    int code = MPI_Comm_spawn(f->program, argv, 1, f->info, 0, MPI_COMM_SELF, &comm, MPI_ERRCODES_IGNORE);
    if (code) {
        fprintf(stderr, "taskfarm: no worker: %s\n", spawning_words(code));
        if (++f->failures == FAILURES) fail("no worker can be spawned");
        return;
    }
    f->failures = 0;
    f->spawned++;
    f->spawn_s += MPI_Wtime() - start;
    enlist(f, comm, 0);
}

/* What the workers have told, or that they are dead; how much of that there was. */
static int hear_all(struct farm *f)
{
    int heard = 0;
    for (int i = f->n - 1; i >= 0; i--) {
        struct worker *w = f->worker[i];
        int there = 0, code = MPI_Test(&w->request, &there, MPI_STATUS_IGNORE);
        if (!there && !code) continue;
        heard++;
        if (!code) {
            take_message(f, w);
            listen(w, &code);
        }
        if (!code) code = hand_out(f, w);
        if (code) lose(f, w, code);
    }
    return heard;
}

static void end_leases(struct farm *f)
{
    double now = MPI_Wtime();
    for (int i = 0; i < f->n; i++) {
        struct worker *w = f->worker[i];
        if (w->silent || !w->held || now - w->since < (double)lease_s) continue;
        fprintf(stderr, "taskfarm: worker %d has told nothing for %ld s: its tasks are handed out again\n", (int)w->pid, lease_s);
        for (int k = 0; k < w->held; k++) tasks_give_back(&f->tasks, w->task[k]);
        w->silent = true;
        f->silent++;
        f->given_up++;
        if (w->pid) kill(w->pid, SIGKILL);
    }
}

/* Tasks that were given back while a worker had none. */
static void feed(struct farm *f)
{
    for (int i = f->n - 1; i >= 0 && (f->tasks.again_n || f->tasks.next < f->tasks.n); i--) {
        int code = hand_out(f, f->worker[i]);
        if (code) lose(f, f->worker[i], code);
    }
}

static void show(const struct farm *f, double start, double *shown)
{
    double now = MPI_Wtime();
    if (now - *shown < 2 || bench) return;
    *shown = now;
    fprintf(stderr, "after %.0f s: %lld of %lld tasks, %d workers, %ld lost\n", now - start, (long long)f->tasks.done,
            (long long)f->tasks.n, f->n - f->silent, f->lost);
}

static void run_farm(struct farm *f)
{
    double start = MPI_Wtime(), shown = start;
    while (f->tasks.done < f->tasks.n) {
        if (!is_static && f->n - f->silent < workers && f->n < WORKERS * 2) recruit(f);
        if (is_static && !f->n) fail("all workers are lost");
        int heard = hear_all(f);
        end_leases(f);
        feed(f);
        show(f, start, &shown);
        if (!heard) sleep_us(NAP_US);
    }
}

/* Sends it away, and waits for its last word, but for one that is silent: it may never say it. */
static void dismiss(struct farm *f, struct worker *w)
{
    struct message m = {.kind = LEAVE};
    int code = MPI_Send(&m, sizeof m, MPI_BYTE, w->rank, 0, w->comm);
    while (!code && !(code = MPI_Wait(&w->request, MPI_STATUS_IGNORE)) && w->in.kind != BYE) {
        take_message(f, w);
        listen(w, &code);
    }
    if (code) {
        lose(f, w, code);
        return;
    }
    spare(w);
    if (!is_static) MPI_Comm_disconnect(&w->comm);
    free(w);
    f->n--;
}

/* Those that are silent and of this host are dead, or about to be. */
static void dismiss_all(struct farm *f)
{
    bool all = true;
    for (int i = 0; i < f->n; i++) all &= !f->worker[i]->silent || f->worker[i]->pid;
    if (!all) fail("a worker of another host has fallen silent, and is not waited for");
    while (f->n) dismiss(f, f->worker[f->n - 1]);
}

/* ---- the result ---- */

static int64_t expected(void)
{
    int64_t power = 10;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++, power *= 10)
        if (power == limit) return known[i];
    return -1;
}

static bool check_result(const struct tasks *t)
{
    int64_t right = expected();
    if (check) {
        struct sieve *s = sieve_open();
        right = sieve_range(s, 0, limit);
        sieve_close(s);
    }
    if (right >= 0 && right != t->primes)
        fprintf(stderr, "taskfarm: %lld primes, but %lld would be right\n", (long long)t->primes, (long long)right);
    else if (check)
        printf("check: the same as the serial count\n");
    return right < 0 || right == t->primes;
}

static void print_result(const struct farm *f, double seconds)
{
    const struct tasks *t = &f->tasks;
    if (bench) {
        printf("mode %s\nworkers %ld\ntasks %lld\nprimes %lld\nseconds %.4f\n", is_static ? "static" : "dynamic", workers,
               (long long)t->n, (long long)t->primes, seconds);
        printf("spawned %ld\nspawn_ms %.2f\nlost %ld\ngiven_up %ld\nkilled %ld\nhanded_again %ld\nrepeated %ld\n", f->spawned,
               f->spawned ? 1000 * f->spawn_s / (double)f->spawned : 0.0, f->lost, f->given_up, (long)kills, t->handed_again,
               t->repeated);
        return;
    }
    printf("%lld primes below %ld: %lld tasks in %.2f s\n", (long long)t->primes, limit, (long long)t->n, seconds);
    printf("%ld workers spawned, %ld lost, %ld killed by the master, %ld tasks handed out again, %ld results came twice\n",
           f->spawned, f->lost, (long)kills, t->handed_again, t->repeated);
}

static int master(const char *argv0, int ranks)
{
    struct farm *f = allocate(1, sizeof *f);
    pthread_t killer;
    if (!spawning_info(pairs, npairs, &f->info)) return OPTIONS_BAD;
    f->program = spawning_program(argv0);
    gethostname(f->host, sizeof f->host - 1);
    tasks_open(&f->tasks);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (is_static && ranks - 1 > WORKERS) fail("there are more ranks than it can have workers");
    if (is_static) workers = ranks - 1;
    double start = MPI_Wtime();
    for (int r = 1; is_static && r < ranks; r++) enlist(f, MPI_COMM_WORLD, r);
    bool kills_some = kill_ms && !pthread_create(&killer, NULL, kill_workers, NULL);
    if (kill_ms && !kills_some) fail("no thread to kill workers");
    run_farm(f);
    over = true;
    if (kills_some) pthread_join(killer, NULL);
    double seconds = MPI_Wtime() - start;
    dismiss_all(f);
    print_result(f, seconds);
    bool good = check_result(&f->tasks);
    tasks_close(&f->tasks);
    if (f->info != MPI_INFO_NULL) MPI_Info_free(&f->info);
    free(f->program);
    free(f);
    return !good;
}

int main(int argc, char **argv)
{
    int rank, ranks, level;
    MPI_Comm parent;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_get_parent(&parent);
    int code = options_read(argc, argv, options, "taskfarm - counts primes by workers that may die", rank == 0);
    if (code == OPTIONS_RUN && parent != MPI_COMM_NULL) {
        work(parent);
        MPI_Comm_disconnect(&parent);
        code = 0;
    } else if (code == OPTIONS_RUN && rank == 0) {
        if (is_static && ranks < 2) fail("--static needs two ranks or more");
        code = master(argv[0], ranks);
    } else if (code == OPTIONS_RUN) {
        if (is_static) work(MPI_COMM_WORLD);
        code = 0;
    }
    MPI_Finalize();
    return code;
}
