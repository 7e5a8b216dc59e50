/* spec.c - building and checking the description of a job. */
#include "mpiexec/spec.h"
#include "mpiexec/map.h"
#include "mpiexec/words.h"

#include <stdlib.h>
#include <string.h>

struct app_spec *spec_app(struct spec *s)
{
    if (s->napps && !s->apps[s->napps - 1].argv.n) return &s->apps[s->napps - 1];
    s->apps = xrealloc(s->apps, sizeof *s->apps * ((size_t)s->napps + 1));
    struct app_spec *a = &s->apps[s->napps++];
    memset(a, 0, sizeof *a);
    return a;
}

int spec_settle(struct spec *s)
{
    int64_t size = 0;
    if (!s->napps) spec_app(s); /* to be found empty below */
    int rc = map_hosts(s);
    if (rc) return rc;
    for (int i = 0; i < s->napps; i++) {
        struct app_spec *a = &s->apps[i];
        if (!a->argv.n) {
            say("no program was named%s: mpiexec [options] program [arguments]; --help lists the options",
                s->napps > 1 ? " after the last ':'" : "");
            return EXIT_USAGE;
        }
        int64_t n = a->n ? a->n : map_default_size(s, a);
        size += n;
        a->n = n > RANKS_MAX ? RANKS_MAX : (int)n; /* refused below */
    }
    if (size > RANKS_MAX) {
        say("%lld ranks were asked for; this version starts at most %d", (long long)size, RANKS_MAX);
        return EXIT_USAGE;
    }
    s->size = (int)size;
    if (s->rankfile.path && (rc = rankfile_check(&s->rankfile, s->size))) return rc;
    if (s->place.cpu_each && !s->place.cpu_set) {
        say("--bind-to cpu-list:ordered needs a list: --cpu-list 0,2-3");
        return EXIT_USAGE;
    }
    if (s->in.kind == IN_RANK && s->in.rank >= s->size) {
        say("--stdin %d: there is no such rank, the job has %d", s->in.rank, s->size);
        return EXIT_USAGE;
    }
    return 0;
}

static void free_env(struct env_spec *e)
{
    strv_free(&e->list);
    strv_free(&e->sets);
}

void spec_free(struct spec *s)
{
    for (int i = 0; i < s->napps; i++) {
        struct app_spec *a = &s->apps[i];
        strv_free(&a->argv);
        hosts_free(&a->list);
        hosts_free(&a->file);
        hosts_free(&a->hosts);
        free_env(&a->env);
    }
    free(s->apps);
    free_env(&s->env);
    hosts_free(&s->hosts);
    rankfile_free(&s->rankfile);
    *s = (struct spec){0};
}
