/* intercomm.c - entry points: intercommunicators (MPI-5.0 section 7.6). */
#include "comm/create.h"
#include "mpi/report.h"

static bool rank_in(int rank, int size) { return rank >= 0 && rank < size; }

/* What only the local leader has to say. */
static int check_peer(const char *call, struct comm *c, MPI_Comm peer, int remote_leader, struct comm **peer_p)
{
    *peer_p = comm_of(peer);
    if (!*peer_p) return report(c, call, MPI_ERR_COMM, "argument peer_comm is not a communicator");
    if (!rank_in(remote_leader, comm_peers(*peer_p)))
        return report(c, call, MPI_ERR_RANK, "argument remote_leader is %d, but peer_comm has ranks 0 to %d", remote_leader,
                      comm_peers(*peer_p) - 1);
    return MPI_SUCCESS;
}

MPI_ALIAS(Intercomm_create);
int PMPI_Intercomm_create(MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm, int remote_leader, int tag,
                          MPI_Comm *newintercomm)
{
    const char *call = "MPI_Intercomm_create";
    struct comm *c = comm_of(local_comm), *peer = NULL, *made;
    if (!c) return bad_comm_named(call, local_comm, "local_comm");
    if (c->inter) return report(c, call, MPI_ERR_COMM, "argument local_comm is an intercommunicator");
    if (!rank_in(local_leader, c->size))
        return report(c, call, MPI_ERR_RANK, "argument local_leader is %d, but local_comm has ranks 0 to %d", local_leader, c->size - 1);
    if (tag < 0) return report(c, call, MPI_ERR_TAG, "argument tag is %d, but tags are 0 to %d", tag, INT32_MAX);
    if (!newintercomm) return bad_null(c, call, "newintercomm");
    int rc = c->rank == local_leader ? check_peer(call, c, peer_comm, remote_leader, &peer) : MPI_SUCCESS;
    if (rc) return rc;
    rc = comm_inter_create(c, local_leader, peer, remote_leader, tag, &made);
    if (rc) return report_code(c, call, rc);
    *newintercomm = comm_handle(made);
    return MPI_SUCCESS;
}

MPI_ALIAS(Intercomm_merge);
int PMPI_Intercomm_merge(MPI_Comm intercomm, int high, MPI_Comm *newintracomm)
{
    const char *call = "MPI_Intercomm_merge";
    struct comm *c = comm_of(intercomm), *made;
    if (!c) return bad_comm_named(call, intercomm, "intercomm");
    if (!c->inter) return report(c, call, MPI_ERR_COMM, "argument intercomm is not an intercommunicator");
    if (!newintracomm) return bad_null(c, call, "newintracomm");
    int rc = comm_inter_merge(c, high != 0, &made);
    if (rc) return report_code(c, call, rc);
    *newintracomm = comm_handle(made);
    return MPI_SUCCESS;
}
