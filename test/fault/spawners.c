/*
 * spawners.c - a job that spawns again and again, of which a process or a launcher is killed, for kill_spawn.test:
 *
 *     spawners FILE SEED VICTIM PHASE CYCLES
 *
 * In each cycle two processes are spawned, talk with the root, and leave. FILE is memory that all of them share; there they note
 * what they are doing. A process that rank 0 starts before MPI_Init waits until a cycle is in PHASE, naps for a random moment, and
 * kills the VICTIM if the phase has lasted; else it tries again in the next cycle. It writes the time into FILE.killed: nanoseconds of
 * the system's clock.
 *
 *     parent     one of the processes that spawn        order      MPI_Comm_spawn, until a spawned process is in main
 *     child      one of the spawned processes           start      MPI_Init of the spawned processes, and what is left of MPI_Comm_spawn
 *     launcher   the launcher of the spawned job        meet       the same while datagrams are slow (TERN_DGRAM_FAULTS): the two roots
 *     any        any launcher but the first                        tell each other of their groups
 *     first      the launcher of the job that spawns    talk       messages between the jobs
 *     ready      the launcher that was made last        leave      MPI_Comm_disconnect
 *     stopped    the same, which is stopped so long     finalize   MPI_Finalize of the spawned processes
 *                that it has its order when it dies
 *
 * A parent whose call fails says so. After the death so many CYCLES have to be good; then rank 0 prints "recovered MICROSECONDS", from
 * the death to the first words, or "undisturbed" when no call has failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PARENTS = 2, CHILDREN = 2, WORDS = 3, WARM_CYCLES = 2, LONGEST_S = 30, LAUNCHERS_MOST = 64, TICK_US = 50, LATE_US = 30000 };

enum phase { ORDER, START, TALK, LEAVE, FINALIZE };

/* The random moment is drawn from so many microseconds of the phase, about what it lasts on a machine of 2 cores. */
static const struct aim {
    const char *name;
    enum phase phase;
    unsigned from, span;
} aims[] = {
    {"order", ORDER, 0, 1200},  {"start", START, 0, 1500},  {"meet", START, 1000, 14000},
    {"talk", TALK, 0, 4000},    {"leave", LEAVE, 0, 300},   {"finalize", FINALIZE, 0, 600},
};
enum { AIMS = sizeof aims / sizeof *aims };

static struct page {
    _Atomic int phase, cycle;
    _Atomic int parent[PARENTS], child[CHILDREN], launcher, first; /* pids; 0: not there, or not yet */
    _Atomic uint64_t killed, heard;                                /* ns; 0: not yet */
} *page;

static int rank;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t); /* as `date` */
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void nap(unsigned us) { nanosleep(&(struct timespec){0, (long)us * 1000}, NULL); }

static uint64_t seed;
static unsigned draw(unsigned n)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (unsigned)(seed >> 33) % n;
}

static void pass(enum phase from, enum phase to)
{
    int was = from;
    atomic_compare_exchange_strong(&page->phase, &was, (int)to);
}

/* ---- the death ---- */

static bool is_launcher(pid_t pid)
{
    char path[64], name[16] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    FILE *f = fopen(path, "r");
    bool is = f && fgets(name, sizeof name, f) && !strcmp(name, "mpiexec\n");
    if (f) fclose(f);
    return is;
}

/* The launchers that the first one has made, the oldest first: the one that makes the others, those of jobs, and one that is ready. */
static int find_launchers(pid_t all[LAUNCHERS_MOST])
{
    char path[64];
    int first = atomic_load(&page->first), n = 0, pid;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", first, first);
    FILE *f = fopen(path, "r");
    while (f && n < LAUNCHERS_MOST && fscanf(f, "%d", &pid) == 1)
        if (is_launcher(pid)) all[n++] = pid;
    if (f) fclose(f);
    return n;
}

static pid_t any_launcher(void)
{
    pid_t all[LAUNCHERS_MOST];
    int n = find_launchers(all);
    return n ? all[draw((unsigned)n)] : 0;
}

/* Most often it is the one that is ready. */
static pid_t newest_launcher(void)
{
    pid_t all[LAUNCHERS_MOST];
    int n = find_launchers(all);
    return n > 1 ? all[n - 1] : 0;
}

static pid_t find_victim(const char *who)
{
    if (!strcmp(who, "parent")) return atomic_load(&page->parent[draw(PARENTS)]);
    if (!strcmp(who, "child")) return atomic_load(&page->child[draw(CHILDREN)]);
    if (!strcmp(who, "launcher")) return atomic_load(&page->launcher);
    if (!strcmp(who, "first")) return atomic_load(&page->first);
    return strcmp(who, "any") ? newest_launcher() : any_launcher();
}

/* The process that rank 0 has started ends with it. */
static void await_phase(enum phase wanted, int after, pid_t parent)
{
    while (atomic_load(&page->cycle) <= after || atomic_load(&page->phase) != (int)wanted) {
        if (getppid() != parent) _exit(0);
        nap(TICK_US);
    }
}

/* False: the phase is over. The victim is stopped first: what it has done when it dies belongs to the phase. */
static bool kill_now(const struct aim *a, int cycle, pid_t victim, bool late, int said)
{
    kill(victim, SIGSTOP);
    if (atomic_load(&page->phase) != (int)a->phase || atomic_load(&page->cycle) != cycle) {
        kill(victim, SIGCONT);
        return false;
    }
    if (late) nap(LATE_US);
    uint64_t now = now_ns();
    atomic_store(&page->killed, now);
    dprintf(said, "%llu\n", (unsigned long long)now); /* before the end of the job ends this process */
    kill(victim, SIGKILL);
    return true;
}

static void kill_in(const struct aim *a, const char *who, int said, pid_t parent)
{
    int cycle = WARM_CYCLES;
    pid_t victim;
    do {
        await_phase(a->phase, cycle, parent);
        cycle = atomic_load(&page->cycle);
        nap(a->from + draw(a->span));
        victim = find_victim(who);
    } while (!victim || !kill_now(a, cycle, victim, !strcmp(who, "stopped"), said));
    _exit(0);
}

static bool start_killer(const char *file, const char *who, const char *when)
{
    char path[4096];
    pid_t parent = getpid();
    int i = 0;
    while (i < AIMS && strcmp(aims[i].name, when)) i++;
    snprintf(path, sizeof path, "%s.killed", file);
    int said = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (i == AIMS || said < 0) return false;
    if (!fork()) kill_in(&aims[i], who, said, parent);
    close(said);
    return true;
}

/* ---- the children ---- */

static int child(int number)
{
    MPI_Comm parent;
    int word = 0;
    atomic_store(&page->child[number], getpid());
    atomic_store(&page->launcher, getppid());
    pass(ORDER, START);
    MPI_Init(NULL, NULL);
    MPI_Comm_get_parent(&parent);
    for (int i = 0; i < WORDS; i++) {
        nap(1000);
        MPI_Send(&word, 1, MPI_INT, 0, 1, parent);
        MPI_Recv(&word, 1, MPI_INT, 0, 2, parent, MPI_STATUS_IGNORE);
    }
    MPI_Comm_disconnect(&parent);
    pass(LEAVE, FINALIZE);
    MPI_Finalize();
    return 0;
}

/* ---- the parents ---- */

static void say(const char *what, int rc)
{
    char words[MPI_MAX_ERROR_STRING];
    uint64_t none = 0;
    int n;
    atomic_compare_exchange_strong(&page->heard, &none, now_ns());
    MPI_Error_string(rc, words, &n);
    printf("%s%s: rank %d: %s\n", atomic_load(&page->killed) ? "" : "before the death: ", what, rank, words);
    fflush(stdout);
}

/* The root talks with each child in turn. */
static int talk(MPI_Comm inter)
{
    int rc = MPI_SUCCESS, word;
    for (int i = 0; i < WORDS * CHILDREN && !rc; i++) {
        rc = MPI_Recv(&word, 1, MPI_INT, i % CHILDREN, 1, inter, MPI_STATUS_IGNORE);
        if (!rc) rc = MPI_Send(&word, 1, MPI_INT, i % CHILDREN, 2, inter);
    }
    return rc;
}

static void begin_cycle(void)
{
    if (rank) return;
    for (int i = 0; i < CHILDREN; i++) atomic_store(&page->child[i], 0);
    atomic_store(&page->launcher, 0);
    atomic_fetch_add(&page->cycle, 1);
    atomic_store(&page->phase, ORDER);
}

static void enter(enum phase p)
{
    if (!rank) atomic_store(&page->phase, (int)p);
}

/* Good at all ranks, or at none. */
static bool cycle(char *own, char *file)
{
    MPI_Comm inter;
    char word[] = "child", *argv[] = {file, word, NULL};
    begin_cycle();
    int rc = MPI_Comm_spawn(own, argv, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    if (rc) {
        say("spawn", rc);
        return false;
    }
    enter(TALK);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    if (rank == 0 && (rc = talk(inter))) say("talk", rc);
    MPI_Bcast(&rc, 1, MPI_INT, 0, MPI_COMM_WORLD);
    enter(LEAVE);
    int end = MPI_Comm_disconnect(&inter);
    if (end) say("disconnect", end);
    end = rc || end;
    if (!rank) nap(1000); /* the children are in MPI_Finalize */
    MPI_Allreduce(MPI_IN_PLACE, &end, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return !end;
}

static void report(void)
{
    uint64_t heard = atomic_load(&page->heard), killed = atomic_load(&page->killed);
    if (!killed) printf("nobody was killed\n");
    else if (!heard) printf("undisturbed\n");
    else printf("recovered %lld\n", (long long)(heard - killed) / 1000);
}

static int parent(char *own, char *file, int cycles)
{
    int good = 0, more = 1;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    double end = MPI_Wtime() + LONGEST_S;
    while (more) {
        bool after = atomic_load(&page->killed);
        good = cycle(own, file) && after ? good + 1 : 0;
        more = good < cycles && MPI_Wtime() < end;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (rank == 0) report();
    MPI_Finalize();
    return 0;
}

int main(int argc, char **argv)
{
    const char *number = getenv("PMI_RANK");
    char *own = realpath(argv[0], NULL);
    int fd = argc > 1 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1, i = number ? atoi(number) : 0;
    bool is_child = argc == 3 && !strcmp(argv[2], "child");
    if (fd < 0 || !own || (argc != 6 && !is_child) || i < 0 || i >= PARENTS)
        return fprintf(stderr, "spawners FILE SEED VICTIM PHASE CYCLES\n"), 2;
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page == MAP_FAILED) return perror("spawners"), 2;
    if (is_child) return free(own), child(i);
    seed = strtoull(argv[2], NULL, 10);
    for (int k = 0; k < 4; k++) draw(2);
    atomic_store(&page->parent[i], getpid());
    if (!i) atomic_store(&page->first, getppid());
    if (!i && !start_killer(argv[1], argv[3], argv[4])) return fprintf(stderr, "no phase %s, or no file for the death\n", argv[4]), 2;
    int rc = parent(own, argv[1], atoi(argv[5]));
    free(own);
    return rc;
}
