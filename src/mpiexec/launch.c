/* launch.c - the tables of a job that root and daemons fill alike. */
#include "mpiexec/launch.h"
#include "base/crypto.h"
#include "mpiexec/xalloc.h"

#include <stdio.h>

void launch_make_ranks(struct job *j)
{
    j->ranks = xcalloc((size_t)j->size, sizeof *j->ranks);
    for (int app = 0, r = 0; app < j->spec->napps; app++)
        for (int i = 0; i < j->spec->apps[app].n; i++, r++)
            j->ranks[r] = (struct rank){.rank = r, .appnum = app, .place = {.l3 = -1, .numa = -1}};
}

void launch_number_locals(struct job *j)
{
    for (int r = 0; r < j->size; r++) j->ranks[r].local = j->nodes[j->ranks[r].node].nranks++;
    for (int i = 0; i < j->nnodes; i++) j->nodes[i].ranks = xcalloc((size_t)j->nodes[i].nranks + 1, sizeof(int));
    for (int r = 0; r < j->size; r++) j->nodes[j->ranks[r].node].ranks[j->ranks[r].local] = r;
}

void launch_set_mark(struct job *j)
{
    if (j->root)
        snprintf(j->mark, sizeof j->mark, "%s", j->name);
    else
        snprintf(j->mark, sizeof j->mark, "%s.%d", j->name, j->node);
}

void launch_make_secret(struct job *j)
{
    static const char what[] = "the key of the ranks";
    static_assert(sizeof j->key == CRYPTO_KEY && sizeof j->secret == CRYPTO_TAG, "sizes of keys");
    tern_crypto_sodium.tag(j->secret, what, sizeof what, j->key);
}
