/* hints.c - see hints.h. */
#include "obj/hints.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct hint {
    const char *key;
    const char *standard; /* value when none was given; NULL: then it is not returned */
    bool (*valid)(const char *value); /* NULL: it is the library's to set */
    bool at_first;        /* it can be given only while the communicator is being made */
};

static bool is_boolean(const char *v) { return !strcasecmp(v, "true") || !strcasecmp(v, "false"); }

/* One kind with its restrictors ("mpi:alloc_mem:win_allocate"), n characters. */
static bool kind_known(const char *kind, size_t n)
{
    static const char *const restrictors[] = {"alloc_mem", "win_allocate", "win_allocate_shared"};
    if (n == 6 && !memcmp(kind, "system", n)) return true;
    if (n < 3 || memcmp(kind, "mpi", 3)) return false;
    for (size_t at = 3, len; at < n; at += 1 + len) {
        bool known = false;
        const char *r = kind + at + 1;
        len = strcspn(r, ":,");
        for (size_t i = 0; i < ARRAY_LEN(restrictors); i++)
            known |= strlen(restrictors[i]) == len && !memcmp(restrictors[i], r, len);
        if (kind[at] != ':' || !known) return false;
    }
    return true;
}

bool memory_kinds_known(const char *list)
{
    for (;; list++) {
        size_t n = strcspn(list, ",");
        if (!kind_known(list, n)) return false;
        list += n;
        if (!*list) return true;
    }
}

static bool is_lane(const char *v)
{
    size_t n = strspn(v, "0123456789");
    return !strcmp(v, "shared") || !strcmp(v, "own") || (n && n < 3 && !v[n] && atoi(v) < 64);
}

static bool is_progress(const char *v) { return !strcmp(v, "auto") || !strcmp(v, "caller") || !strcmp(v, "helper"); }

static const struct hint table[] = {
    {"tern_progress", NULL, is_progress, false}, /* who makes progress: see src/mpi/life.h */
    {"tern_lane", NULL, is_lane, true},          /* the lane that it is in: see src/pt2pt/lanes.h */
    {"mpi_assert_no_any_tag", "false", is_boolean, false},
    {"mpi_assert_no_any_source", "false", is_boolean, false},
    {"mpi_assert_exact_length", "false", is_boolean, false},
    {"mpi_assert_allow_overtaking", "false", is_boolean, false},
    {"mpi_assert_strict_persistent_collective_ordering", "false", is_boolean, false},
    {"mpi_assert_memory_alloc_kinds", NULL, memory_kinds_known, false},
    {"mpi_memory_alloc_kinds", MEMORY_KINDS, NULL, false},
};

static bool (*known_above)(const char *key, const char *value);
static void (*changed_above)(struct comm *);

void comm_hints_extend(bool (*known)(const char *key, const char *value), void (*changed)(struct comm *))
{
    known_above = known;
    changed_above = changed;
}

static const struct hint *find(const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (!strcmp(table[i].key, key)) return &table[i];
    return NULL;
}

/* Is this a hint that can be given, with a value that makes sense? */
static bool accepted(const struct comm *c, const struct info_pair *p)
{
    const struct hint *h = find(p->key);
    if (h) return h->valid && h->valid(p->value) && (!h->at_first || handle_is(c, HANDLE_COMM_RESERVED));
    return known_above && known_above(p->key, p->value);
}

/* Adds what is accepted of the given pairs. */
static int add_accepted(const struct comm *c, struct info *hints, const struct info *given)
{
    int rc = 0;
    for (int i = 0; !rc && i < given->n; i++)
        if (accepted(c, &given->pair[i])) rc = info_set(hints, given->pair[i].key, given->pair[i].value);
    return rc;
}

/* From now on all see these hints. */
static void replace(struct comm *c, struct info *hints)
{
    handle_state_lock();
    struct info *old = c->info;
    c->info = hints;
    handle_state_unlock();
    info_free(old);
}

int comm_hints_set(struct comm *c, struct info *given)
{
    if (!given) return 0;
    struct info *asked = info_snapshot(&given), *hints = info_snapshot(&c->info);
    int rc = asked && hints ? add_accepted(c, hints, asked) : TERN_ERR_NOMEM;
    info_free(asked);
    if (rc) {
        info_free(hints);
        return rc;
    }
    replace(c, hints);
    if (changed_above) changed_above(c);
    return 0;
}

static int add_used(struct info *used, const struct info *set)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < ARRAY_LEN(table); i++) {
        const char *v = info_get(set, table[i].key);
        if (!v) v = table[i].standard;
        if (v) rc = info_set(used, table[i].key, v);
    }
    for (int i = 0; !rc && i < set->n; i++) /* those of the layer above; the others are there again */
        rc = info_set(used, set->pair[i].key, set->pair[i].value);
    return rc;
}

struct info *comm_hints_used(const struct comm *c)
{
    struct info *used = info_new(), *set = info_snapshot(&c->info);
    int rc = used && set ? add_used(used, set) : TERN_ERR_NOMEM;
    info_free(set);
    if (!rc) return used;
    info_free(used);
    return NULL;
}
