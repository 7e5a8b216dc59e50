/*
 * actor.c - a rank for the tests of the launcher, which does what its arguments say, one after the other. It uses the
 * job block the way the library does, so that the launcher can be tested without the library.
 *
 *   only R / all     the following steps are for rank R only / for all again
 *   init, finalize   says so in the job block          abort N      as MPI_Abort
 *   sleep S, print T (a line), part T (no newline)      exit N       kill N (signal to itself)
 *   ignore N         a signal                           trap N       prints "got N" when it comes
 *   lines N          N lines in small pieces, each line "rank R line I xxxx... end"
 *   flood N          N bytes in long lines              place        prints the job block's words about this rank
 *   fork S           a child that sleeps S              daemon S     the same in a session of its own, without
 * descriptors
 */
#include "proc/job_block.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int rank;
static struct job_head *job;

static void map_job(void)
{
    const char *fd = getenv(JOB_ENV_FD), *r = getenv(JOB_ENV_RANK);
    struct stat st;
    if (!fd || !r || fstat(atoi(fd), &st)) return;
    rank = atoi(r);
    job = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(fd), 0);
    if (job == MAP_FAILED || job->magic != JOB_MAGIC || job->bytes != (uint64_t)st.st_size) {
        fprintf(stderr, "actor: bad job block\n");
        exit(99);
    }
}

static void nap(double s)
{
    struct timespec t = {(time_t)s, (long)((s - (double)(time_t)s) * 1e9)};
    while (nanosleep(&t, &t)) {
    }
}

static void on_signal(int sig)
{
    char line[] = "got 00\n";
    line[4] = (char)('0' + sig / 10);
    line[5] = (char)('0' + sig % 10);
    if (write(1, line, 7) < 0) _exit(98);
}

static void put(const char *text)
{
    if (write(1, text, strlen(text)) < 0) exit(98);
}

/* Two or three writes a line, with pauses now and then, so that a forwarder that does not hold lines tears them. */
static void lines(int n)
{
    char body[200], line[300];
    for (int i = 0; i < n; i++) {
        int length = 20 + (i * 37 + rank * 11) % 150;
        memset(body, 'a' + rank % 26, sizeof body);
        body[length] = 0;
        int all = snprintf(line, sizeof line, "rank %d line %d %s end\n", rank, i, body), cut = 3 + (i * 7) % (all - 5);
        if (write(1, line, (size_t)cut) != cut) exit(98);
        if (i % 8 == 0) nap(0.002);
        put(line + cut);
    }
}

static void flood(long n)
{
    static char line[4000];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    for (; n > 0; n -= (long)sizeof line)
        if (write(1, line, sizeof line) < 0) exit(98);
}

static void leave_child(double s, bool own_session)
{
    if (fork()) return;
    if (own_session) {
        setsid();
        for (int i = 0; i < 3; i++) close(i);
    }
    nap(s);
    _exit(0);
}

static void place(void)
{
    const struct job_place *p = &job_places(job)[rank];
    char line[256];
    snprintf(line, sizeof line, "rank %d of %u local %u of %u app %u bound %u nodes %u universe %u cpus %u\n", rank,
             job->size, p->local_rank, job->local_size, p->appnum, p->bound, job->nodes, job->universe,
             job->usable_cpus);
    put(line);
}

static void set_life(enum job_life life)
{
    atomic_store_explicit(&job_cards(job)[rank].life, life, memory_order_release);
}

static void do_abort(int code)
{
    uint32_t none = 0;
    char line[64];
    snprintf(line, sizeof line, "rank %d aborts\n", rank);
    if (atomic_compare_exchange_strong(&job->aborted, &none, 1 + (uint32_t)code) && write(2, line, strlen(line)) < 0)
        exit(98);
    _exit(code);
}

/* A step with a value; false when there is no such step. */
static bool valued(const char *step, const char *v)
{
    if (!strcmp(step, "abort"))
        do_abort(atoi(v));
    else if (!strcmp(step, "sleep"))
        nap(atof(v));
    else if (!strcmp(step, "print"))
        put(v), put("\n");
    else if (!strcmp(step, "part"))
        put(v);
    else if (!strcmp(step, "exit"))
        exit(atoi(v));
    else if (!strcmp(step, "kill"))
        signal(atoi(v), SIG_DFL), raise(atoi(v)); /* a sanitizer has a handler of its own */
    else if (!strcmp(step, "ignore"))
        signal(atoi(v), SIG_IGN);
    else if (!strcmp(step, "trap"))
        signal(atoi(v), on_signal);
    else if (!strcmp(step, "lines"))
        lines(atoi(v));
    else if (!strcmp(step, "flood"))
        flood(atol(v));
    else if (!strcmp(step, "fork"))
        leave_child(atof(v), false);
    else if (!strcmp(step, "daemon"))
        leave_child(atof(v), true);
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    bool active = true;
    map_job();
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "all"))
            active = true;
        else if (!strcmp(argv[i], "init")) {
            if (active) set_life(JOB_LIFE_INITIALISED);
        } else if (!strcmp(argv[i], "finalize")) {
            if (active) set_life(JOB_LIFE_FINALISED);
        } else if (!strcmp(argv[i], "place")) {
            if (active) place();
        } else if (i + 1 == argc)
            return 97;
        else if (!strcmp(argv[i], "only"))
            active = atoi(argv[++i]) == rank;
        else {
            i++;
            if (active && !valued(argv[i - 1], argv[i])) return 97;
        }
    }
    return 0;
}
