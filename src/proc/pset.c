/* pset.c - see pset.h. */
#include "proc/pset.h"
#include "base/err.h"
#include "proc/proc.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static struct {
    pthread_mutex_t lock;
    char **name;
    int n, room;
    int failed; /* while names are added: the first code */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- names ---- */

static bool same_name(const char *a, const char *b)
{
    return !strncasecmp(a, "mpi://", 6) ? !strcasecmp(a, b) : !strcmp(a, b);
}

static int no_memory(void) { return err_set(TERN_ERR_NOMEM, "no memory for the names of process sets"); }

static int append(const char *name)
{
    if (all.n == all.room) {
        int room = all.room ? 2 * all.room : 8;
        char **more = realloc(all.name, (size_t)room * sizeof *more);
        if (!more) return no_memory();
        all.name = more;
        all.room = room;
    }
    char *own = strdup(name);
    if (!own) return no_memory();
    all.name[all.n++] = own;
    return 0;
}

/* Lock held. */
static void add(void *arg, const char *name)
{
    (void)arg;
    for (int i = 0; i < all.n; i++)
        if (same_name(all.name[i], name)) return;
    int rc = append(name);
    if (rc && !all.failed) all.failed = rc;
}

static int refresh(void)
{
    all.failed = 0;
    add(NULL, "mpi://WORLD");
    add(NULL, "mpi://SELF");
    add(NULL, "tern://node");
    int rc = proc_psets(add, NULL);
    return rc ? rc : all.failed;
}

int pset_count(int *count_p)
{
    pthread_mutex_lock(&all.lock);
    int rc = refresh();
    if (!rc) *count_p = all.n;
    pthread_mutex_unlock(&all.lock);
    return rc;
}

const char *pset_name_of(int n)
{
    pthread_mutex_lock(&all.lock);
    const char *name = all.name[n];
    pthread_mutex_unlock(&all.lock);
    return name;
}

void pset_close(void)
{
    while (all.n) free(all.name[--all.n]);
    free(all.name);
    all.name = NULL;
    all.room = 0;
}

/* ---- members ---- */

static int made(struct rankmap *map, struct rankmap **out)
{
    *out = map;
    return map ? 0 : err_set(TERN_ERR_NOMEM, "no memory for the processes of a set");
}

static int of_node(uint32_t *ranks)
{
    const struct proc_info *me = proc_self();
    int n = 0;
    for (uint32_t r = 0; r < me->size; r++)
        if (proc_node_of(r) == me->node) ranks[n++] = r;
    return n;
}

static int from_list(const char *name, struct rankmap **out)
{
    uint32_t *ranks = malloc((size_t)proc_self()->size * sizeof *ranks);
    if (!ranks) return made(NULL, out);
    int n = !strcmp(name, "tern://node") ? of_node(ranks) : proc_pset_ranks(name, ranks);
    int rc = n < 0 ? n : made(rankmap_list(n, ranks), out);
    free(ranks);
    return rc;
}

int pset_find(const char *name, struct rankmap **out)
{
    const struct proc_info *me = proc_self();
    if (same_name("mpi://WORLD", name)) return made(rankmap_line((int32_t)me->size, 0, 1), out);
    if (same_name("mpi://SELF", name)) return made(rankmap_line(1, me->rank, 1), out);
    return from_list(name, out);
}
