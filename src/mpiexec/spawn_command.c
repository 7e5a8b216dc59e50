/* spawn_command.c - see spawn_command.h. */
#include "mpiexec/spawn_command.h"
#include "mpiexec/rankfile.h"

#include <stdlib.h>
#include <string.h>

static const char unreadable[] = "a question that cannot be read";

static void push(struct strv *argv, const char *a, const char *b)
{
    strv_push(argv, xstrdup(a));
    if (b) strv_push(argv, xstrdup(b));
}

static void push_number(struct strv *argv, const char *option, int n)
{
    push(argv, option, NULL);
    strv_push(argv, xasprintf("%d", n));
}

/* What holds for all jobs of a user's command line. */
static void push_common(struct strv *argv, const struct spec *s)
{
    const struct launcher_spec *l = &s->launcher;
    if (s->out.tag_rank) push(argv, "-l", NULL);
    if (s->out.tag_stream) push(argv, "-tag-output", NULL);
    if (s->out.tag_time) push(argv, "-timestamp-output", NULL);
    if (s->out.merge) push(argv, "-merge-stderr-to-stdout", NULL);
    if (s->keep_going) push(argv, "-disable-auto-cleanup", NULL);
    if (s->usize || s->hosts_named) push_number(argv, "-usize", spec_universe(s));
    if (s->no_manager) push(argv, "-rmk", "none");
    if (s->prefix) push(argv, "-prefix", s->prefix);
    if (l->kind) push(argv, "-launcher", l->kind);
    if (l->exec) push(argv, "-launcher-exec", l->exec);
    if (l->iface) push(argv, "-iface", l->iface);
}

/* ---- one program ---- */

/* A program, as it was asked for. The texts lie in the question's bytes. */
struct app_wish {
    uint32_t n;
    const char *wdir;
    struct strv words, env, info; /* info: keys and values in turn */
};

/* False: there is less than that. */
static bool get_list(struct ask_in *in, struct strv *list)
{
    uint32_t n = ask_get32(in);
    for (uint32_t i = 0; i < n && !in->bad; i++) strv_push(list, (char *)(uintptr_t)ask_get_text(in, ASK_BYTES_MAX));
    return !in->bad;
}

static bool get_app(struct ask_in *in, struct app_wish *a)
{
    *a = (struct app_wish){.n = ask_get32(in), .wdir = ask_get_text(in, ASK_BYTES_MAX)};
    return get_list(in, &a->words) && get_list(in, &a->env) && get_list(in, &a->info) && a->info.n % 2 == 0;
}

static void free_app(struct app_wish *a)
{
    strv_free(&a->words);
    strv_free(&a->env);
    strv_free(&a->info);
}

/* The value of an info key; NULL: it is not there. */
static const char *info_of(const struct app_wish *a, const char *key)
{
    for (int i = 0; i < a->info.n; i += 2)
        if (!strcmp(a->info.v[i], key)) return a->info.v[i + 1];
    return NULL;
}

/* The number, and the program's words as options do not take them otherwise. NULL or what is wrong. */
static const char *check_program(uint32_t n, const struct strv *words)
{
    static_assert(SLOTS_MAX == 1048576, "as the words say");
    if (!n || n > SLOTS_MAX) return "a program of no process, or of more than 1048576";
    if (!words->n || !*words->v[0]) return "no program to be spawned";
    if (*words->v[0] == '-') return "a program whose name begins with '-'";
    for (int i = 0; i < words->n; i++)
        if (!strcmp(words->v[i], ":")) return "an argument ':', which separates programs";
    return NULL;
}

/* Info keys that are options; those of MPI, of MPICH's and of Open MPI's documents. */
static const char *option_of(const char *key)
{
    static const struct {
        const char *key, *option;
    } known[] = {{"host", "-host"},         {"hosts", "-host"},         {"add-host", "-host"},
                 {"hostfile", "-hostfile"}, {"add-hostfile", "-hostfile"}, {"path", "-path"},
                 {"ppn", "-ppn"},           {"npernode", "-ppn"},
                 {"map_by", "-map-by"},     {"map-by", "-map-by"},
                 {"bind_to", "-bind-to"},   {"bind-to", "-bind-to"},
                 {"rank_by", "-rank-by"},   {"rank-by", "-rank-by"},
                 {"wdir", "-wdir"},         {"pset", "-pset"},
                 {"mpi_initial_errhandler", "-initial-errhandler"}};
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (!strcmp(known[i].key, key)) return known[i].option;
    return NULL;
}

static bool names_host(const struct app_wish *a)
{
    for (int i = 0; i < a->info.n; i += 2) {
        const char *option = option_of(a->info.v[i]);
        if (option && !strncmp(option, "-host", 5)) return true;
    }
    return false;
}

/* ---- places ---- */

/* Mapped by the job's launcher: so many hosts are used. 0: it is mapped by us. */
static int hosts_of_own_map(const struct app_wish *a)
{
    const char *ppn = info_of(a, "ppn") ? info_of(a, "ppn") : info_of(a, "npernode");
    int each = ppn ? atoi(ppn) : 0;
    if (each >= (int)a->n) return 1;
    if (each > 0) return ((int)a->n + each - 1) / each;
    return info_of(a, "map_by") || info_of(a, "map-by") ? 1 : 0;
}

static const char *push_places(struct strv *argv, const struct spec *s, const struct app_wish *a, struct spawn_wish *w)
{
    enum schedule_policy policy = SCHEDULE_ROUND_ROBIN;
    const char *word = info_of(a, "tern_placement");
    if (word && !schedule_policy_of(word, &policy)) return "tern_placement is one of round_robin, restart, load, packed, spread";
    if (names_host(a)) return NULL;
    int used = hosts_of_own_map(a);
    char *list = used ? schedule_hosts(used) : schedule_place(policy, (int)a->n, &w->load);
    if (s->hosts_named) push(argv, "-hosts", list);
    free(list);
    return NULL;
}

/* ---- the whole ---- */

static const char *push_app(struct strv *argv, const struct spec *s, const struct app_wish *a, struct spawn_wish *w)
{
    const char *why = check_program(a->n, &a->words), *failure = info_of(a, "tern_failure");
    if (why) return why;
    if (failure && strcmp(failure, "event") && strcmp(failure, "end")) return "tern_failure is one of event, end";
    if (failure) w->fatal |= !strcmp(failure, "end");
    push_number(argv, "-n", (int)a->n);
    if (*a->wdir) push(argv, "-wdir", a->wdir);
    for (int i = 0; i < a->info.n; i += 2)
        if (option_of(a->info.v[i])) push(argv, option_of(a->info.v[i]), a->info.v[i + 1]);
    if ((why = push_places(argv, s, a, w))) return why;
    if (info_of(a, ASK_WHOLE_ENV)) push(argv, "-envnone", NULL);
    for (int i = 0; i < a->env.n; i++) push(argv, "-env", a->env.v[i]);
    for (int i = 0; i < a->words.n; i++) push(argv, a->words.v[i], NULL);
    return NULL;
}

const char *spawn_command(const struct job *j, struct ask_in *in, struct strv *argv, struct spawn_wish *w)
{
    uint32_t n = ask_get32(in);
    uint64_t processes = 0;
    const char *why = n ? NULL : unreadable;
    push_common(argv, j->spec);
    for (uint32_t i = 0; i < n && !why; i++) {
        struct app_wish a;
        if (i) push(argv, ":", NULL);
        why = get_app(in, &a) ? NULL : unreadable;
        if (!why && (processes += a.n) > RANKS_MAX) why = "programs of more than 1048576 processes in all";
        if (!why) why = push_app(argv, j->spec, &a, w);
        free_app(&a);
    }
    return why || ask_done(in) ? why : unreadable;
}
