/*
 * hostenv.c - the hosts that a resource manager gave to the job we run in, by variables of the environment:
 *
 *     Slurm  SLURM_JOB_NODELIST=n[01-03,7],m1   SLURM_TASKS_PER_NODE=2(x3),1 or SLURM_JOB_CPUS_PER_NODE
 *     PBS    PBS_NODEFILE, a file with a host a line, once a slot
 *     LSF    LSB_MCPU_HOSTS="a 2 b 4", or LSB_HOSTS="a a b b"
 *
 * A list that is not understood is an error: to start the ranks elsewhere than where they belong would be worse.
 */
#include "mpiexec/hosts.h"
#include "mpiexec/words.h"
#include "mpiexec/xalloc.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int refuse(const char *variable, const char *text)
{
    say("%s=%.200s is not a list of hosts; -hosts or -rmk none goes round it", variable, text);
    return EXIT_USAGE;
}

/* --- Slurm ------------------------------------------------------------------------------------------------------- */

/* Counts of slots, a host after the other: "2(x3),1" is 2 2 2 1. */
struct counts {
    const char *at;
    long slots, left; /* this many hosts more have so many */
};

/* The next host's, 0 = not known. */
static int next_count(struct counts *c)
{
    char *end;
    if (!c->left) {
        c->slots = strtol(c->at, &end, 10);
        if (end == c->at || c->slots < 1 || c->slots > SLOTS_MAX) return 0;
        c->left = 1;
        if (!strncmp(end, "(x", 2)) {
            c->left = strtol(end + 2, &end, 10);
            if (c->left < 1 || *end++ != ')') return c->left = 0;
        }
        c->at = end + (*end == ',');
    }
    c->left--;
    return (int)c->slots;
}

#define NAME_MAX_LEN 256

struct nodelist {
    struct hosts *hosts;
    struct counts counts;
    const char *variable;
    int rc; /* of adding; said already */
};

static bool expand(struct nodelist *, char *made, size_t n, const char *rest, const char *end);

/* "01-03" or "7" in [from, to): each number, with the zeros it has, then what follows the bracket. */
static bool expand_range(struct nodelist *l, char *made, size_t n, const char *from, const char *to, const char *rest,
                         const char *end)
{
    char *stop;
    if (from == to || !isdigit((unsigned char)*from)) return false;
    long first = strtol(from, &stop, 10), last = first;
    int width = (int)(stop - from);
    if (*stop == '-') {
        if (!isdigit((unsigned char)stop[1])) return false;
        last = strtol(stop + 1, &stop, 10);
    }
    if (stop != to || last < first || last - first >= HOSTS_MAX || width > 18) return false;
    for (long i = first; i <= last; i++) {
        int more = snprintf(made + n, NAME_MAX_LEN - n, "%0*ld", width, i);
        if (more < 0 || n + (size_t)more >= NAME_MAX_LEN) return false;
        if (!expand(l, made, n + (size_t)more, rest, end)) return false;
    }
    return true;
}

static bool expand_bracket(struct nodelist *l, char *made, size_t n, const char *from, const char *end)
{
    const char *close = memchr(from, ']', (size_t)(end - from));
    if (!close) return false;
    for (const char *at = from; at <= close;) {
        const char *comma = memchr(at, ',', (size_t)(close - at)), *to = comma ? comma : close;
        if (!expand_range(l, made, n, at, to, close + 1, end)) return false;
        at = to + 1;
    }
    return true;
}

/* One entry: `made` has the first n characters of a name, [rest, end) is to come. */
static bool expand(struct nodelist *l, char *made, size_t n, const char *rest, const char *end)
{
    for (; rest < end && *rest != '['; rest++) {
        if (n + 1 >= NAME_MAX_LEN) return false;
        made[n++] = *rest;
    }
    if (rest < end) return expand_bracket(l, made, n, rest + 1, end);
    made[n] = 0;
    l->rc = hosts_add(l->hosts, made, next_count(&l->counts), l->variable);
    return !l->rc;
}

/* Where the entry that starts here ends: at a comma outside of brackets. */
static const char *entry_end(const char *s)
{
    int depth = 0;
    for (; *s && (depth || *s != ','); s++) depth += (*s == '[') - (*s == ']');
    return s;
}

static int from_slurm(struct hosts *h, const char *variable, const char *list)
{
    const char *tasks = getenv("SLURM_TASKS_PER_NODE"), *cpus = getenv("SLURM_JOB_CPUS_PER_NODE");
    struct nodelist l = {.hosts = h, .counts.at = tasks ? tasks : cpus ? cpus : "", .variable = variable};
    char made[NAME_MAX_LEN];
    for (const char *at = list, *end; *at; at = end + (*end == ',')) {
        end = entry_end(at);
        if (!expand(&l, made, 0, at, end)) return l.rc ? l.rc : refuse(variable, list);
    }
    return 0;
}

/* --- LSF --------------------------------------------------------------------------------------------------------- */

/* Hosts, each with a number behind it if `counted`. */
static int from_words(struct hosts *h, const char *variable, const char *text, bool counted)
{
    char *copy = xstrdup(text), *save, *word = strtok_r(copy, " \t", &save);
    int rc = 0;
    for (; word && !rc; word = strtok_r(NULL, " \t", &save)) {
        const char *number = counted ? strtok_r(NULL, " \t", &save) : "1";
        long slots = number ? strtol(number, NULL, 10) : 0;
        rc = slots < 1 || slots > SLOTS_MAX ? refuse(variable, text) : hosts_add(h, word, (int)slots, variable);
    }
    free(copy);
    return rc;
}

static const char *set(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value ? value : NULL;
}

int hosts_environment(struct hosts *h)
{
    const char *value;
    if ((value = set("SLURM_JOB_NODELIST"))) return from_slurm(h, "SLURM_JOB_NODELIST", value);
    if ((value = set("SLURM_NODELIST"))) return from_slurm(h, "SLURM_NODELIST", value);
    if ((value = set("PBS_NODEFILE"))) return hosts_file(h, value);
    if ((value = set("LSB_MCPU_HOSTS"))) return from_words(h, "LSB_MCPU_HOSTS", value, true);
    if ((value = set("LSB_HOSTS"))) return from_words(h, "LSB_HOSTS", value, false);
    return 0;
}
