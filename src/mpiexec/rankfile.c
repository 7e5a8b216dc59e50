/* rankfile.c - see rankfile.h. */
#include "mpiexec/rankfile.h"
#include "mpiexec/cpulist.h"
#include "mpiexec/textfile.h"
#include "mpiexec/words.h"
#include "mpiexec/xalloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int refuse(const struct rankfile *f, int line, const char *why)
{
    say("rank file %s, line %d: %s (rank N=HOST slot=CORES)", f->path, line, why);
    return EXIT_USAGE;
}

static struct rankfile_line *line_of(struct rankfile *f, int rank)
{
    if (rank >= f->n) {
        f->v = xrealloc(f->v, sizeof *f->v * ((size_t)rank + 1));
        memset(f->v + f->n, 0, sizeof *f->v * (size_t)(rank + 1 - f->n));
        f->n = rank + 1;
    }
    return &f->v[rank];
}

static bool is_relative(const char *host) { return !strncmp(host, "+n", 2); }

static int add(struct rankfile *f, int number, int rank, char *host, char *slots)
{
    struct rankfile_line *l = line_of(f, rank);
    if (l->host) return refuse(f, number, "this rank has a line already");
    if (slots && strncmp(slots, "slot=", 5) && strncmp(slots, "slots=", 6))
        return refuse(f, number, "'slot=' is missing");
    if (slots) slots = strchr(slots, '=') + 1;
    if (slots && !cpulist_is_slots(slots))
        return refuse(f, number, "the slots are not cores ('0,2-3') nor a socket and its cores ('1:0-2')");
    if (is_relative(host) && strspn(host + 2, "0123456789") != strlen(host + 2))
        return refuse(f, number, "'+n' needs the number of a host");
    int rc = is_relative(host) ? 0 : hosts_add(&f->hosts, host, 0, f->path);
    l->host = xstrdup(hosts_canonical(host));
    l->slots = slots ? xstrdup(slots) : NULL;
    return rc;
}

static int read_line(void *arg, int number, char *line)
{
    struct rankfile *f = arg;
    char host[1024], *save;
    int rank, at = 0;
    line[strcspn(line, "#\n")] = 0;
    if (strspn(line, " \t\r") == strlen(line)) return 0;
    if (sscanf(line, " rank %d = %1023s %n", &rank, host, &at) < 2 || rank < 0 || rank >= RANKS_MAX)
        return refuse(f, number, "this is not the line of a rank");
    char *slots = at ? strtok_r(line + at, " \t\r", &save) : NULL;
    if (slots && strtok_r(NULL, " \t\r", &save)) return refuse(f, number, "there is more than a host and its slots");
    return add(f, number, rank, host, slots);
}

int rankfile_read(struct rankfile *f, const char *path)
{
    f->path = path;
    int rc = textfile_read(path, "the rank file", read_line, f);
    if (!rc && !f->n) {
        say("the rank file %s names no rank", path);
        return EXIT_USAGE;
    }
    return rc;
}

int rankfile_check(const struct rankfile *f, int size)
{
    for (int r = 0; r < size; r++)
        if (r >= f->n || !f->v[r].host) {
            say("rank %d has no line in the rank file %s, and the job has %d ranks", r, f->path, size);
            return EXIT_USAGE;
        }
    return 0;
}

int rankfile_host(const struct rankfile *f, int rank, const struct hosts *all)
{
    const char *host = f->v[rank].host;
    if (is_relative(host)) {
        long i = strtol(host + 2, NULL, 10);
        return i < all->n ? (int)i : -1;
    }
    const struct host *known = hosts_find(all, host);
    return known ? (int)(known - all->v) : -1;
}

void rankfile_free(struct rankfile *f)
{
    for (int r = 0; r < f->n; r++) {
        free(f->v[r].host);
        free(f->v[r].slots);
    }
    free(f->v);
    hosts_free(&f->hosts);
    *f = (struct rankfile){0};
}
