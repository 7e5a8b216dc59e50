/* launch.c - the tables of a job that root and daemons fill alike. */
#include "mpiexec/launch.h"
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
