/*
 * comm_dup.c - entry points: duplicating communicators (MPI-5.0 section 7.4.2).
 *
 * Attributes are copied by their callbacks, the topology is; hints are not, since MPI 4.0,
 * but the given ones of the _with_info calls are set.
 *
 * The nonblocking calls run the callbacks before they return. The communicator that they give
 * lacks only its context until the request is complete: calls that need none are allowed
 * (comm_of_local), as other libraries allow them.
 */
#include "comm/create.h"
#include "mpi/attr.h"
#include "mpi/life.h"
#include "mpi/report.h"
#include "obj/info.h"
#include "pt2pt/api.h"
#include "topo/topo.h"

/* All that a duplicate has besides groups and context. */
static int furnish(struct comm *c, struct comm *made, struct info *hints)
{
    topo_copy(c, made);
    int rc = life_take_hints(made, hints);
    return rc ? rc : comm_attrs_copy(c, made);
}

static int dup(const char *call, MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm)
{
    struct comm *c = comm_of(comm), *made = NULL;
    struct info *hints;
    no_comm_yet(newcomm);
    if (!c) return bad_comm(call, comm);
    if (!newcomm) return bad_null(c, call, "newcomm");
    if (!info_given(info, &hints)) return bad_info(c, call, info);
    int rc = comm_dup(c, hints, &made);
    if (rc) return report_code(c, call, rc);
    rc = furnish(c, made, hints);
    if (rc) comm_unref(made); /* one callback's refusal undoes the whole at this process (7.4.2) */
    else
        *newcomm = comm_handle(made);
    return report_attr(c, call, rc);
}

MPI_ALIAS(Comm_dup);
int PMPI_Comm_dup(MPI_Comm comm, MPI_Comm *newcomm) { return dup("MPI_Comm_dup", comm, MPI_INFO_NULL, newcomm); }

MPI_ALIAS(Comm_dup_with_info);
int PMPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm)
{
    return dup("MPI_Comm_dup_with_info", comm, info, newcomm);
}

/* The others count on this process, which does not want the result. */
static void take_part(struct comm *c)
{
    struct request *r;
    if (!comm_dup_start(c, NULL, &r)) pt_release(r);
}

static int idup(const char *call, MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm, MPI_Request *request)
{
    struct comm *c = comm_of(comm), *made = NULL;
    struct info *hints;
    struct request *r;
    no_comm_yet(newcomm);
    if (!c) return bad_comm(call, comm);
    if (!newcomm || !request) return bad_null(c, call, newcomm ? "request" : "newcomm");
    if (!info_given(info, &hints)) return bad_info(c, call, info);
    int rc = comm_dup_reserve(c, &made);
    if (rc) return report_code(c, call, rc);
    rc = furnish(c, made, hints);
    if (rc) {
        comm_discard(made);
        take_part(c);
        return report_attr(c, call, rc);
    }
    MPI_Comm handle = comm_handle(made);
    rc = comm_dup_start(c, made, &r);
    if (rc) return report_code(c, call, rc);
    *newcomm = handle;
    *request = (MPI_Request)r;
    return MPI_SUCCESS;
}

MPI_ALIAS(Comm_idup);
int PMPI_Comm_idup(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request)
{
    return idup("MPI_Comm_idup", comm, MPI_INFO_NULL, newcomm, request);
}

MPI_ALIAS(Comm_idup_with_info);
int PMPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm, MPI_Request *request)
{
    return idup("MPI_Comm_idup_with_info", comm, info, newcomm, request);
}
