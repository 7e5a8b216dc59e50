/*
 * cycles.c - spawning and disconnecting again and again leaves nothing: memory, mappings, descriptors of this process and of its launcher,
 * and the processes of this user, are as many after the last cycle as after the first tenth.
 *
 *     cycles [N]     300 cycles, if it is not said; the figures of the documentation are from 10000
 */
#include "../check.h"

#include <dirent.h>
#include <stdbool.h>
#include <unistd.h>

/* Pages that come and go: of the allocator, of the kernel's page tables. The address sanitizer's allocator takes more at a time. */
#ifdef __SANITIZE_ADDRESS__
#define GROWTH_KB 1536
#else
#define GROWTH_KB 512
#endif

struct use {
    long descriptors, mappings, kb;
};

static long entries(int pid, const char *what)
{
    char path[64];
    long n = 0;
    snprintf(path, sizeof path, "/proc/%d/%s", pid, what);
    DIR *d = opendir(path);
    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n;
}

static long mappings(int pid)
{
    char path[64];
    long n = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *f = fopen(path, "re");
    for (int c; f && (c = fgetc(f)) != EOF;) n += c == '\n';
    if (f) fclose(f);
    return n;
}

static long resident(int pid)
{
    char path[64], line[200];
    long kb = 0;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmRSS: %ld", &kb) == 1) break;
    if (f) fclose(f);
    return kb;
}

/* Its processes, and theirs. */
static long descendants(int pid)
{
    char path[64];
    int child;
    long n = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    FILE *f = fopen(path, "re");
    while (f && fscanf(f, "%d", &child) == 1) n += 1 + descendants(child);
    if (f) fclose(f);
    return n;
}

static struct use use_of(int pid) { return (struct use){entries(pid, "fd"), mappings(pid), resident(pid)}; }

static void compare(const char *who, struct use before, struct use now)
{
    CHECK(now.descriptors <= before.descriptors, "%s: %ld descriptors, %ld before", who, now.descriptors, before.descriptors);
    CHECK(now.mappings <= before.mappings + 2, "%s: %ld mappings, %ld before", who, now.mappings, before.mappings);
    CHECK(now.kb <= before.kb + GROWTH_KB, "%s: %ld KB, %ld KB before", who, now.kb, before.kb);
}

static void cycle(char *own)
{
    MPI_Comm inter;
    int word = -1;
    CHECK_OK(MPI_Comm_spawn(own, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE));
    CHECK_OK(MPI_Recv(&word, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE));
    CHECK(word == 7, "the child says %d", word);
    CHECK_OK(MPI_Comm_disconnect(&inter));
}

/* How many processes the launcher has, when the last children have ended and the next launcher is ready: it is the same for a while. */
static long settle(int launcher)
{
    long n = -1;
    for (int same = 0; same < 10; same++) {
        long now = descendants(launcher);
        if (now != n) same = 0;
        n = now;
        usleep(20000);
    }
    return n;
}

static void loop(char *own, int cycles)
{
    int launcher = getppid();
    struct use here = {0}, there = {0};
    long processes = 0;
    bool shown = isatty(STDERR_FILENO);
    for (int i = 1; i <= cycles; i++) {
        cycle(own);
        if (shown && i % 100 == 0) fprintf(stderr, "\r%d of %d", i, cycles);
        if (i != (cycles + 9) / 10) continue;
        processes = settle(launcher);
        here = use_of(getpid());
        there = use_of(launcher);
    }
    long left = settle(launcher);
    CHECK(left <= processes, "%ld processes, %ld before", left, processes); /* one that was going may have been counted before */
    compare("this process", here, use_of(getpid()));
    compare("its launcher", there, use_of(launcher));
    if (shown) fprintf(stderr, "\n");
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    char *own = realpath(argv[0], NULL);
    int word = 7;
    check_start(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        MPI_Send(&word, 1, MPI_INT, 0, 1, parent);
        MPI_Comm_disconnect(&parent);
        MPI_Finalize();
        free(own);
        return 0;
    }
    loop(own, argc > 1 ? atoi(argv[1]) : 300);
    free(own);
    return check_done();
}
