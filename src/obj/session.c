/* session.c - see session.h. */
#include "obj/session.h"
#include "base/err.h"

#include <string.h>
#include <strings.h>

static const struct {
    int level;
    const char *name;
} levels[] = {
    {MPI_THREAD_SINGLE, "MPI_THREAD_SINGLE"},
    {MPI_THREAD_FUNNELED, "MPI_THREAD_FUNNELED"},
    {MPI_THREAD_SERIALIZED, "MPI_THREAD_SERIALIZED"},
    {MPI_THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE"},
};

int session_level(const struct info *asked, int otherwise)
{
    char copy[MPI_MAX_INFO_VAL];
    const char *word = info_copy_value(asked, "thread_level", copy);
    if (!word) return otherwise;
    for (size_t i = 0; i < ARRAY_LEN(levels); i++)
        if (!strcasecmp(word, levels[i].name)) return levels[i].level;
    return MPI_THREAD_SINGLE - 1;
}

const char *session_level_name(int level)
{
    for (size_t i = 0; i < ARRAY_LEN(levels); i++)
        if (levels[i].level == level) return levels[i].name;
    return "";
}

/* Is `word` of length n one of the kinds of memory that every MPI can use? Qualifiers ("mpi:alloc_mem") count. */
static bool supported_kind(const char *word, size_t n)
{
    size_t kind = 0;
    while (kind < n && word[kind] != ':') kind++;
    return (kind == 6 && !strncasecmp(word, "system", 6)) || (kind == 3 && !strncasecmp(word, "mpi", 3));
}

/* What is told of kinds of memory (12.4.3): those asked for that can be used, and those that always can. */
static int tell_memory_kinds(struct info *hints, const char *asked)
{
    char kinds[MPI_MAX_INFO_VAL] = "mpi,system";
    for (size_t n; asked && *asked; asked += n + (asked[n] == ',')) {
        n = strcspn(asked, ",");
        size_t at = strlen(kinds);
        if (!supported_kind(asked, n) || !memchr(asked, ':', n) || at + 1 + n >= sizeof kinds) continue;
        kinds[at] = ',';
        memcpy(kinds + at + 1, asked, n);
        kinds[at + 1 + n] = 0;
    }
    return info_set(hints, "mpi_memory_alloc_kinds", kinds);
}

struct session *session_new(struct errhandler *e, int level, const struct info *asked)
{
    struct session *s = handle_alloc(HANDLE_SESSION, sizeof *s);
    if (!s) {
        err_set(TERN_ERR_NOMEM, "no memory for a session");
        return NULL;
    }
    char kinds[MPI_MAX_INFO_VAL];
    s->errh = errh_ref(e);
    s->level = level;
    s->hints = info_new();
    if (s->hints && !info_set(s->hints, "thread_level", session_level_name(level)) &&
        !tell_memory_kinds(s->hints, info_copy_value(asked, "mpi_memory_alloc_kinds", kinds)))
        return s;
    session_unref(s);
    return NULL;
}

struct session *session_ref(struct session *s)
{
    if (s) atomic_fetch_add_explicit(&s->h.refs, 1, memory_order_relaxed);
    return s;
}

void session_unref(struct session *s)
{
    /* acq_rel: the last owner sees what the others did */
    if (!s || atomic_fetch_sub_explicit(&s->h.refs, 1, memory_order_acq_rel) != 1) return;
    errh_unref(s->errh);
    info_free(s->hints);
    handle_release(s, sizeof *s);
}
