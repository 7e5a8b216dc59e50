/*
 * comm_info.c - entry points: hints of communicators (MPI-5.0 section 7.4.4).
 */
#include "mpi/life.h"
#include "mpi/report.h"
#include "obj/hints.h"

MPI_ALIAS(Comm_set_info);
int PMPI_Comm_set_info(MPI_Comm comm, MPI_Info info)
{
    struct comm *c = comm_of_local(comm);
    struct info *i = info_of(info);
    if (!c) return bad_comm("MPI_Comm_set_info", comm);
    if (!i) return bad_info(c, "MPI_Comm_set_info", info);
    return report_if(c, "MPI_Comm_set_info", life_take_hints(c, i));
}

MPI_ALIAS(Comm_get_info);
int PMPI_Comm_get_info(MPI_Comm comm, MPI_Info *info_used)
{
    struct comm *c = comm_of_local(comm);
    if (!c) return bad_comm("MPI_Comm_get_info", comm);
    if (!info_used) return bad_null(c, "MPI_Comm_get_info", "info_used");
    return give_info(c, "MPI_Comm_get_info", comm_hints_used(c), 0, info_used);
}
