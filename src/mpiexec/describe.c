/* describe.c - see describe.h. Both directions in the same order, part by part. */
#include "mpiexec/describe.h"
#include "config.h"
#include "mpiexec/words.h"

#include <stdlib.h>
#include <string.h>

#define NODES_MAX 65536

/* --- to bytes ---------------------------------------------------------------------------------------------------- */

static void put_launcher(struct wire_out *w, const struct launcher_spec *l)
{
    wire_put_text(w, l->kind);
    wire_put_text(w, l->exec);
    wire_put_text(w, l->iface);
    wire_put_text(w, l->command);
    wire_put32(w, (uint32_t)l->width);
    wire_put32(w, (uint32_t)l->seconds);
}

static void put_place(struct wire_out *w, const struct place_spec *p)
{
    wire_put32(w, p->map);
    wire_put32(w, (uint32_t)p->per_unit);
    wire_put8(w, p->bind_said);
    wire_put32(w, p->bind);
    wire_put32(w, (uint32_t)p->width);
    wire_put_text(w, p->user);
    wire_put_text(w, p->cpu_set);
    wire_put8(w, p->cpu_each);
    wire_put8(w, p->hwthreads);
    wire_put8(w, (uint8_t)p->order);
    wire_put32(w, p->order_unit);
    wire_put8(w, p->order_fill);
    wire_put8(w, p->report);
}

static void put_spec(struct wire_out *w, const struct spec *s)
{
    put_launcher(w, &s->launcher);
    put_place(w, &s->place);
    wire_put8(w, s->out.merge);
    wire_put8(w, (uint8_t)s->in.kind);
    wire_put32(w, (uint32_t)s->in.rank);
    wire_put32(w, (uint32_t)s->ppn);
    wire_put32(w, (uint32_t)s->usize);
    wire_put32(w, (uint32_t)s->slots);
}

static bool same_list(const struct strv *a, const struct strv *b)
{
    bool same = a->n == b->n;
    for (int i = 0; i < a->n && same; i++) same = !strcmp(a->v[i], b->v[i]);
    return same;
}

/* The environment is the bulk: apps that have the same one say so. */
static void put_app(struct wire_out *w, const struct app *a, const struct app *before)
{
    wire_put_list(w, &a->spec->argv);
    wire_put32(w, (uint32_t)a->spec->n);
    wire_put_text(w, a->spec->wdir);
    wire_put_text(w, a->spec->path);
    wire_put_text(w, a->spec->pset);
    bool same = before && same_list(&a->env, &before->env);
    wire_put8(w, same);
    if (!same) wire_put_list(w, &a->env);
}

static void put_nodes(struct wire_out *w, const struct job *j)
{
    wire_put32(w, (uint32_t)j->nnodes);
    for (int i = 0; i < j->nnodes; i++) {
        wire_put_text(w, j->nodes[i].name);
        wire_put32(w, (uint32_t)j->nodes[i].slots);
        wire_put8(w, j->nodes[i].own);
    }
    for (int r = 0; r < j->size; r++) wire_put32(w, (uint32_t)j->ranks[r].node);
    bool slots = j->spec->rankfile.path;
    wire_put8(w, slots);
    for (int r = 0; r < j->size && slots; r++) wire_put_text(w, j->ranks[r].slots);
}

void describe_job(struct wire_out *w, const struct job *j, const char *cwd)
{
    wire_put_text(w, PACKAGE_VERSION);
    wire_put_text(w, j->name);
    wire_put_text(w, j->parent);
    wire_put_text(w, cwd);
    wire_put8(w, words_verbose);
    put_spec(w, j->spec);
    wire_put32(w, (uint32_t)j->spec->napps);
    for (int i = 0; i < j->spec->napps; i++) put_app(w, &j->apps[i], i ? &j->apps[i - 1] : NULL);
    put_nodes(w, j);
}

/* --- and back ---------------------------------------------------------------------------------------------------- */

/* A number from `least` to `most`. */
static int get_number(struct wire_in *w, int least, int most)
{
    int64_t v = (int32_t)wire_get32(w);
    if (v >= least && v <= most) return (int)v;
    w->bad = true;
    return least;
}

static void get_launcher(struct wire_in *w, struct launcher_spec *l)
{
    l->kind = wire_get_text(w);
    l->exec = wire_get_text(w);
    l->iface = wire_get_text(w);
    l->command = wire_get_text(w);
    l->width = get_number(w, 1, NODES_MAX);
    l->seconds = get_number(w, 1, 86400);
    if (!l->command) w->bad = true;
}

static void get_place(struct wire_in *w, struct place_spec *p)
{
    p->map = (enum unit)get_number(w, UNIT_NONE, UNIT_NODE);
    p->per_unit = get_number(w, 0, 1 << 30);
    p->bind_said = wire_get8(w);
    p->bind = (enum unit)get_number(w, UNIT_NONE, UNIT_NODE);
    p->width = get_number(w, 0, 1 << 30);
    p->user = wire_get_text(w);
    p->cpu_set = wire_get_text(w);
    p->cpu_each = wire_get8(w);
    p->hwthreads = wire_get8(w);
    p->order = (enum rank_order)wire_get8(w);
    p->order_unit = (enum unit)get_number(w, UNIT_NONE, UNIT_NODE);
    p->order_fill = wire_get8(w);
    p->report = wire_get8(w);
    if (p->order > RANK_BY_UNIT || (p->cpu_each && !p->cpu_set)) w->bad = true;
}

static void get_spec(struct wire_in *w, struct spec *s)
{
    get_launcher(w, &s->launcher);
    get_place(w, &s->place);
    s->out.merge = wire_get8(w);
    s->in.kind = wire_get8(w);
    s->in.rank = get_number(w, 0, RANKS_MAX);
    s->ppn = get_number(w, 0, 1 << 30);
    s->usize = get_number(w, 0, 1 << 30);
    s->slots = get_number(w, 0, INT32_MAX);
}

static void get_app(struct wire_in *w, struct app *a, struct app_spec *s, const struct app *before)
{
    wire_get_list(w, &s->argv);
    s->n = get_number(w, 1, RANKS_MAX);
    s->wdir = wire_get_text(w);
    s->path = wire_get_text(w);
    s->pset = wire_get_text(w);
    a->spec = s;
    bool same = wire_get8(w);
    if (!same)
        wire_get_list(w, &a->env);
    else if (before)
        a->env = before->env; /* read only from here on */
    if (!s->argv.n || (same && !before)) w->bad = true;
}

static void get_apps(struct wire_in *w, struct job *j, struct spec *s)
{
    s->napps = (int)wire_get_count(w, 25);
    s->apps = xcalloc((size_t)s->napps + 1, sizeof *s->apps);
    j->apps = xcalloc((size_t)s->napps + 1, sizeof *j->apps);
    for (int i = 0; i < s->napps && !w->bad; i++) {
        get_app(w, &j->apps[i], &s->apps[i], i ? &j->apps[i - 1] : NULL);
        s->size += s->apps[i].n;
        if (s->size > RANKS_MAX) w->bad = true;
    }
    if (!s->size) w->bad = true;
    j->size = s->size;
}

static void get_nodes(struct wire_in *w, struct job *j)
{
    j->nnodes = (int)wire_get_count(w, 9);
    j->nodes = xcalloc((size_t)j->nnodes + 1, sizeof *j->nodes);
    for (int i = 0; i < j->nnodes && !w->bad; i++) {
        j->nodes[i].name = wire_get_text(w);
        j->nodes[i].slots = get_number(w, 0, 1 << 30);
        j->nodes[i].own = wire_get8(w);
        if (!j->nodes[i].name || !*j->nodes[i].name) w->bad = true;
    }
    if (!j->nnodes) w->bad = true;
}

static void get_ranks(struct wire_in *w, struct job *j)
{
    if (w->bad) return;
    launch_make_ranks(j);
    for (int r = 0; r < j->size; r++) j->ranks[r].node = get_number(w, 0, j->nnodes - 1);
    bool slots = wire_get8(w);
    for (int r = 0; r < j->size && slots && !w->bad; r++) j->ranks[r].slots = wire_get_text(w);
    if (!w->bad) launch_number_locals(j);
}

/* A name of less than `room` characters. */
static bool get_name(struct wire_in *w, char *name, size_t room)
{
    char *text = wire_get_text(w);
    bool fits = text && strlen(text) < room;
    if (fits) strcpy(name, text);
    free(text);
    return fits;
}

static const char *get_job(struct wire_in *w, struct job *j, struct spec *s, char **cwd, int node)
{
    char version[sizeof PACKAGE_VERSION] = "";
    if (!get_name(w, version, sizeof version) || strcmp(version, PACKAGE_VERSION))
        return "the mpiexec there is of another version (" PACKAGE_VERSION ")";
    j->spec = s;
    if (!get_name(w, j->name, sizeof j->name) || !*j->name) return "the job has no name";
    if (!get_name(w, j->parent, sizeof j->parent)) return "the name of the job's parent is none";
    *cwd = wire_get_text(w);
    words_verbose = wire_get8(w);
    get_spec(w, s);
    get_apps(w, j, s);
    get_nodes(w, j);
    get_ranks(w, j);
    j->node = node;
    if (!wire_done(w) || node < 0 || node >= j->nnodes || j->nodes[node].own || s->in.kind > IN_NONE)
        return "the description of the job is damaged";
    return NULL;
}

const char *describe_parse(struct job *j, struct spec *s, char **cwd, int node, const void *bytes, size_t n)
{
    struct wire_in w = wire_of(bytes, n);
    *cwd = NULL;
    const char *why = get_job(&w, j, s, cwd, node);
    if (!why) return NULL;
    describe_free(j, s);
    free(*cwd);
    *cwd = NULL;
    return why;
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

static void free_text(const char *s) { free((void *)(uintptr_t)s); }

static void free_apps(struct job *j, struct spec *s)
{
    for (int i = 0; i < s->napps; i++) {
        struct app_spec *a = &s->apps[i];
        strv_free_all(&a->argv);
        free_text(a->wdir);
        free_text(a->path);
        free_text(a->pset);
        bool shared = i + 1 < s->napps && j->apps[i].env.v == j->apps[i + 1].env.v; /* see get_app: the last frees it */
        if (!shared) strv_free_all(&j->apps[i].env);
    }
    free(s->apps);
    free(j->apps);
}

static void free_nodes(struct job *j)
{
    for (int i = 0; i < j->nnodes; i++) {
        free(j->nodes[i].name);
        free(j->nodes[i].ranks);
    }
    for (int r = 0; j->ranks && r < j->size; r++) free(j->ranks[r].slots);
    free(j->nodes);
    free(j->ranks);
}

void describe_free(struct job *j, struct spec *s)
{
    const char *const texts[] = {s->launcher.kind,    s->launcher.exec, s->launcher.iface,
                                 s->launcher.command, s->place.user,    s->place.cpu_set};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) free_text(texts[i]);
    free_nodes(j);
    free_apps(j, s);
    memset(j, 0, sizeof *j);
    memset(s, 0, sizeof *s);
}
