/*
 * win_hints.c - what programs promise about their use of a window (MPI-5.0 section 12.2.1), as hints.h has it for
 * communicators: those that are known here with a value that makes sense are kept and returned, others are ignored.
 *
 * None of them changes what the library does, but for alloc_shared_noncontig and tern_rma_passive: operations of one origin are done in the order
 * of the calls, which any accumulate_ordering allows, and locks cost nothing until they are used.
 */
#include "base/err.h"
#include "obj/info.h"
#include "rma/rma.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_boolean(const char *v) { return !strcasecmp(v, "true") || !strcasecmp(v, "false"); }

/* "none", or a list of rar, raw, war and waw. */
static bool is_ordering(const char *v)
{
    if (!strcmp(v, "none")) return true;
    for (;; v += 4) {
        if (strncmp(v, "rar", 3) && strncmp(v, "raw", 3) && strncmp(v, "war", 3) && strncmp(v, "waw", 3)) return false;
        if (!v[3]) return true;
        if (v[3] != ',') return false;
    }
}

static bool is_ops(const char *v) { return !strcmp(v, "same_op") || !strcmp(v, "same_op_no_op"); }

static bool is_bytes(const char *v) { return *v && strspn(v, "0123456789") == strlen(v); }

static const struct hint {
    const char *key, *standard; /* value when none was given */
    bool (*valid)(const char *);
} table[] = {
    {"no_locks", "false", is_boolean},
    {"accumulate_ordering", "rar,raw,war,waw", is_ordering},
    {"accumulate_ops", "same_op_no_op", is_ops},
    {"mpi_accumulate_granularity", "0", is_bytes},
    {"same_size", "false", is_boolean},
    {"same_disp_unit", "false", is_boolean},
    {"alloc_shared_noncontig", "false", is_boolean},
    {"tern_rma_passive", NULL, passive_knows}, /* told is what was chosen when the window was made */
};

static const struct hint *find(const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (!strcmp(table[i].key, key)) return &table[i];
    return NULL;
}

static int add_accepted(struct info *hints, const struct info *given)
{
    int rc = 0;
    for (int i = 0; !rc && i < given->n; i++) {
        const struct hint *h = find(given->pair[i].key);
        if (h && h->valid(given->pair[i].value)) rc = info_set(hints, h->key, given->pair[i].value);
    }
    return rc;
}

int win_hints_set(struct win *w, struct info *given)
{
    if (!given) return 0;
    struct info *asked = info_snapshot(&given), *hints = info_snapshot(&w->info);
    int rc = asked && hints ? add_accepted(hints, asked) : TERN_ERR_NOMEM;
    info_free(asked);
    if (rc) {
        info_free(hints);
        return rc;
    }
    handle_state_lock();
    struct info *old = w->info;
    w->info = hints;
    handle_state_unlock();
    info_free(old);
    return 0;
}

struct info *win_hints_used(const struct win *w)
{
    struct info *used = info_new(), *set = info_snapshot(&w->info);
    int rc = used && set ? 0 : TERN_ERR_NOMEM;
    for (size_t i = 0; !rc && i < ARRAY_LEN(table); i++) {
        const char *v = info_get(set, table[i].key);
        if (!table[i].standard) v = passive_word(w);
        rc = info_set(used, table[i].key, v ? v : table[i].standard);
    }
    info_free(set);
    if (!rc) return used;
    info_free(used);
    return NULL;
}
