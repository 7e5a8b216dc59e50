/* fromgroup.c - see fromgroup.h. */
#include "mpi/fromgroup.h"
#include "mpi/life.h"

#include <string.h>

int check_from_groups(const struct from_groups *a, MPI_Errhandler errhandler, MPI_Group group, MPI_Info info, const char *argument)
{
    if (!a->errh || !errh_fits(a->errh, ERRH_COMM)) return bad_errhandler(NULL, a->call, errhandler);
    if (!a->group) return bad_group(a->errh, a->call, group, argument);
    if (!a->info && info != MPI_INFO_NULL)
        return report(a->errh, a->call, MPI_ERR_INFO, "argument info (%p) is not an info object, or one that was freed", (void *)info);
    if (!a->tag) return bad_null(a->errh, a->call, "stringtag");
    if (strlen(a->tag) >= MPI_MAX_STRINGTAG_LEN)
        return report(a->errh, a->call, MPI_ERR_ARG, "argument stringtag has %zu characters, but at most %d are allowed", strlen(a->tag),
                      MPI_MAX_STRINGTAG_LEN - 1);
    if (a->group->map->size && a->group->rank == MPI_UNDEFINED)
        return report(a->errh, a->call, MPI_ERR_GROUP, "the calling process is not in argument %s", argument);
    return MPI_SUCCESS;
}

int give_from_groups(const struct from_groups *a, int rc, struct comm *made, MPI_Comm *newcomm)
{
    if (!rc && made && (rc = life_take_hints(made, a->info))) comm_unref(made);
    if (rc) return report_code(a->errh, a->call, rc);
    *newcomm = made ? comm_handle(made) : MPI_COMM_NULL;
    return MPI_SUCCESS;
}
