/*
 * idle.c - for how long was a job idle?
 *
 *     idle FILE RANKS COMMAND...
 *
 * runs the command, exits as it does, and writes into FILE: wall time, and the time in which none of its processes ran
 * or was ready to run, in ms; "-" for the latter if not all ranks have said how busy they were (busy.h). It is a lower
 * bound: the wall time less what all processes together have run or waited for a cpu. So it hardly depends on what else
 * the machine does: a process that sleeps waits for no cpu.
 */
#include "busy.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pid_t child;

static void pass_on(int sig) { kill(child, sig); }

static long long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void start(char **argv)
{
    child = fork();
    if (child) return;
    execvp(argv[0], argv);
    fprintf(stderr, "idle: cannot execute %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

/* What the command itself used, which is a zombie now, and is taken away. */
static long long reap(int *status)
{
    siginfo_t info;
    char path[64];
    while (waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) && errno == EINTR) continue;
    snprintf(path, sizeof path, "/proc/%d/schedstat", (int)child);
    struct busy b = {0, 0};
    busy_add_task(&b, path);
    waitpid(child, status, 0);
    return b.ran + b.waited;
}

/* The sum of what the ranks have said, and how many have. */
static long long read_said(const char *file, int *n)
{
    long long sum = 0, one;
    FILE *f = fopen(file, "r");
    for (*n = 0; f && fscanf(f, "%lld", &one) == 1; ++*n) sum += one;
    if (f) fclose(f);
    unlink(file);
    return sum;
}

int main(int argc, char **argv)
{
    int status, said;
    char file[4096];
    if (argc < 4) return 2;
    snprintf(file, sizeof file, "%s.busy", argv[1]);
    unlink(file);
    setenv("TERN_TEST_BUSY", file, 1);
    signal(SIGTERM, pass_on);
    signal(SIGINT, pass_on);
    long long wall = now_ns();
    start(argv + 3);
    long long busy = reap(&status);
    wall = now_ns() - wall;
    busy += read_said(file, &said);
    FILE *f = fopen(argv[1], "w");
    if (!f) return 2;
    if (busy && said == atoi(argv[2]))
        fprintf(f, "%lld %lld\n", wall / 1000000, busy < wall ? (wall - busy) / 1000000 : 0);
    else
        fprintf(f, "%lld -\n", wall / 1000000);
    fclose(f);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
