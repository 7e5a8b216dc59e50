/* placeopt.c - reads --bind-to and --map-by. */
#include "mpiexec/placeopt.h"
#include "mpiexec/words.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    enum unit unit;
} units[] = {{"none", UNIT_NONE},   {"hwthread", UNIT_HWTHREAD}, {"core", UNIT_CORE},      {"l1cache", UNIT_L1},
             {"l2cache", UNIT_L2},  {"l3cache", UNIT_L3},        {"numa", UNIT_NUMA},      {"socket", UNIT_SOCKET},
             {"node", UNIT_NODE},   {"slot", UNIT_NONE},         {"package", UNIT_SOCKET}, {"board", UNIT_NODE},
             {"machine", UNIT_NODE}};

const char *placeopt_unit_name(enum unit unit)
{
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (units[i].unit == unit) return units[i].name;
    return "?";
}

static bool unit_named(const char *word, enum unit *unit)
{
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (!strcasecmp(units[i].name, word)) {
            *unit = units[i].unit;
            return true;
        }
    return false;
}

static bool positive(const char *word, int *out)
{
    char *end;
    long v = word ? strtol(word, &end, 10) : 0;
    if (!word || end == word || *end || v < 1 || v > 1 << 20) return false;
    *out = (int)v;
    return true;
}

/* The end of an option, whose words are in `copy`. `known`: what would be understood. 0, or an exit code with words. */
static int end_of(const char *option, const char *text, char *copy, bool ok, const char *known)
{
    free(copy);
    if (ok) return 0;
    say("%s %s is not understood: %s", option, text, known);
    return EXIT_USAGE;
}

int placeopt_bind(struct place_spec *p, const char *text)
{
    char *copy = xstrdup(text), *rest = copy, *word = strsep(&rest, ":");
    bool ok;
    p->bind_said = true;
    p->user = NULL; /* of an earlier --bind-to */
    p->cpu_each = false;
    if (!strcasecmp(word, "user")) {
        p->user = text + (rest ? rest - copy : 0);
        ok = rest && *rest && strspn(rest, "0123456789,+-") == strlen(rest);
    } else if (!strcasecmp(word, "cpu-list")) {
        p->cpu_each = true;
        ok = !rest || !strcasecmp(rest, "ordered");
    } else {
        if (!strcasecmp(word, "rr")) word = "core";
        ok = unit_named(word, &p->bind) && p->bind != UNIT_NODE;
        while (ok && (word = strsep(&rest, ":")))
            /* Permissions to bind, in Open MPI's words: here a binding that was asked for is always made. */
            ok = positive(word, &p->width) || !strcasecmp(word, "overload-allowed") ||
                 !strcasecmp(word, "if-supported") || !strcasecmp(word, "report");
    }
    return end_of("--bind-to", text, copy, ok,
                  "none, hwthread, core, l1cache, l2cache, l3cache, numa, socket (with :N for several), user:LIST of "
                  "cpus, or cpu-list:ordered");
}

static bool map_modifier(struct place_spec *p, const char *word)
{
    static const char *const needless[] = {"inherit", "noinherit", "ordered"};
    const struct {
        const char *name;
        bool *flag, value;
    } flags[] = {{"oversubscribe", &p->refuse_more, false},
                 {"nooversubscribe", &p->refuse_more, true},
                 {"span", &p->span, true},
                 {"hwtcpus", &p->hwthreads, true},
                 {"corecpus", &p->hwthreads, false}};
    if (!strncasecmp(word, "pe=", 3)) return positive(word + 3, &p->width);
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        if (!strcasecmp(word, flags[i].name)) {
            *flags[i].flag = flags[i].value;
            return true;
        }
    for (size_t i = 0; i < ARRAY_LEN(needless); i++)
        if (!strcasecmp(word, needless[i])) return true;
    return false;
}

int placeopt_map(struct place_spec *p, const char *text, int *ppn)
{
    char *copy = xstrdup(text), *rest = copy, *word = strsep(&rest, ":");
    bool ok;
    if (!strcasecmp(word, "ppr")) {
        ok = positive(strsep(&rest, ":"), &p->per_unit);
        word = strsep(&rest, ":,");
        ok = ok && word && unit_named(word, &p->map);
        if (ok && p->map == UNIT_NODE) *ppn = p->per_unit;
    } else if (!*word) { /* modifiers alone: ranks are mapped as they are without */
        ok = rest;
    } else {
        ok = unit_named(word, &p->map) && strcasecmp(word, "none");
    }
    while (ok && (word = strsep(&rest, ":,"))) ok = map_modifier(p, word);
    return end_of("--map-by", text, copy, ok,
                  "slot, hwthread, core, l1cache, l2cache, l3cache, numa, socket, node or ppr:N:unit, with :PE=N for N "
                  "cores a rank, :SPAN, :OVERSUBSCRIBE, :NOOVERSUBSCRIBE, :HWTCPUS");
}

int placeopt_rank(struct place_spec *p, const char *text)
{
    char *copy = xstrdup(text), *rest = copy, *word = strsep(&rest, ":");
    bool ok = unit_named(word, &p->order_unit) && strcasecmp(word, "none");
    p->order = p->order_unit == UNIT_NONE ? RANK_BY_SLOT : p->order_unit == UNIT_NODE ? RANK_BY_NODE : RANK_BY_UNIT;
    while (ok && (word = strsep(&rest, ":,"))) {
        if (!strcasecmp(word, "span"))
            p->order_span = true;
        else if (!strcasecmp(word, "fill"))
            p->order_fill = true;
        else
            ok = false;
    }
    return end_of("--rank-by", text, copy, ok,
                  "slot, hwthread, core, l1cache, l2cache, l3cache, numa, socket or node, with :SPAN or :FILL");
}
