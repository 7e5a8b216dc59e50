/* environ.c - which variables a rank gets. */
#include "mpiexec/environ.h"
#include "proc/launcher_vars.h"

#include <string.h>

static size_t name_length(const char *assignment) { return strcspn(assignment, "="); }

static int find(const struct strv *env, const char *name, size_t n)
{
    for (int i = 0; i < env->n; i++)
        if (!strncmp(env->v[i], name, n) && env->v[i][n] == '=') return i;
    return -1;
}

void environ_put(struct strv *env, char *assignment)
{
    size_t n = name_length(assignment);
    int at = find(env, assignment, n);
    if (assignment[n]) {
        if (at >= 0)
            env->v[at] = assignment;
        else
            strv_push(env, assignment);
    } else if (at >= 0) {
        env->v[at] = env->v[--env->n];
        env->v[env->n] = NULL;
    }
}

const char *environ_get(const struct strv *env, const char *name)
{
    size_t n = strlen(name);
    int at = find(env, name, n);
    return at < 0 ? NULL : env->v[at] + n + 1;
}

/* "NAME" becomes "NAME=value" as the launcher has it; NULL when it has no such variable. */
static char *as_in(char **own, char *set)
{
    size_t n = name_length(set);
    if (set[n]) return set;
    for (; *own; own++)
        if (!strncmp(*own, set, n) && (*own)[n] == '=') return *own;
    return NULL;
}

static void put_all(struct strv *env, char **own, const struct strv *sets)
{
    for (int i = 0; i < sets->n; i++) {
        char *assignment = as_in(own, sets->v[i]);
        if (assignment) environ_put(env, assignment);
    }
}

/* "NAME=dir" or "NAME=dir:what was there". */
static void put_before(struct strv *env, const char *name, const char *dir, const char *sub)
{
    const char *old = environ_get(env, name);
    environ_put(env, xasprintf("%s=%s/%s%s%s", name, dir, sub, old && *old ? ":" : "", old ? old : ""));
}

void environ_of_app(struct strv *env, char **own, const struct spec *s, const struct app_spec *a)
{
    const struct env_spec *base = a->env.base != ENV_UNSAID ? &a->env : &s->env;
    if (base->base == ENV_UNSAID || base->base == ENV_ALL)
        for (char **e = own; *e; e++)
            if (!is_launchers_variable(*e)) strv_push(env, *e);
    if (base->base == ENV_LIST) put_all(env, own, &base->list);
    put_all(env, own, &s->env.sets);
    put_all(env, own, &a->env.sets);
    if (s->prefix) {
        put_before(env, "PATH", s->prefix, "bin");
        put_before(env, "LD_LIBRARY_PATH", s->prefix, "lib");
    }
}
