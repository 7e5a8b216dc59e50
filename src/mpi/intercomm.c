/* intercomm.c - entry points: intercommunicators (MPI-5.0 section 7.6). */
#include "comm/create.h"
#include "dpm/dpm.h"
#include "mpi/fromgroup.h"
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
    no_comm_yet(newintercomm);
    if (!c) return bad_comm_named(call, local_comm, "local_comm");
    if (c->inter) return report(c, call, MPI_ERR_COMM, "argument local_comm is an intercommunicator");
    if (!rank_in(local_leader, c->size))
        return report(c, call, MPI_ERR_RANK, "argument local_leader is %d, but local_comm has ranks 0 to %d", local_leader, c->size - 1);
    if (tag < 0) return report(c, call, MPI_ERR_TAG, "argument tag is %d, but tags are 0 to %d", tag, INT32_MAX);
    if (!newintercomm) return bad_null(c, call, "newintercomm");
    int bad = c->rank == local_leader ? check_peer(call, c, peer_comm, remote_leader, &peer) : MPI_SUCCESS;
    int rc = comm_inter_create(c, local_leader, bad ? NULL : peer, remote_leader, tag, dpm_inter_create, &made);
    if (bad) return bad;
    if (rc) return report_code(c, call, rc);
    *newintercomm = comm_handle(made);
    return MPI_SUCCESS;
}

/* What only the local leader has to say. */
static int check_remote(const struct from_groups *a, MPI_Group remote_group, int remote_leader, struct group **remote_p)
{
    *remote_p = group_of(remote_group);
    if (!*remote_p) return bad_group(a->errh, a->call, remote_group, "remote_group");
    if (rank_in(remote_leader, (*remote_p)->map->size)) return MPI_SUCCESS;
    return report(a->errh, a->call, MPI_ERR_RANK, "argument remote_leader is %d, but remote_group has ranks 0 to %d", remote_leader,
                  (*remote_p)->map->size - 1);
}

MPI_ALIAS(Intercomm_create_from_groups);
int PMPI_Intercomm_create_from_groups(MPI_Group local_group, int local_leader, MPI_Group remote_group, int remote_leader,
                                      const char *stringtag, MPI_Info info, MPI_Errhandler errhandler, MPI_Comm *newintercomm)
{
    const char *call = "MPI_Intercomm_create_from_groups";
    struct from_groups a = {call, errh_of(errhandler), group_of(local_group), info_of(info), stringtag};
    struct group *remote = NULL;
    struct comm *made = NULL;
    int rc = check_from_groups(&a, errhandler, local_group, info, "local_group");
    no_comm_yet(newintercomm);
    if (rc) return rc;
    if (!newintercomm) return bad_null(a.errh, call, "newintercomm");
    if (!rank_in(local_leader, a.group->map->size))
        return report(a.errh, call, MPI_ERR_RANK, "argument local_leader is %d, but local_group has ranks 0 to %d", local_leader,
                      a.group->map->size - 1);
    int bad = a.group->rank == local_leader ? check_remote(&a, remote_group, remote_leader, &remote) : MPI_SUCCESS;
    rc = comm_inter_from_groups(a.group, local_leader, bad ? NULL : remote, remote_leader, stringtag, a.errh, dpm_inter_create, &made);
    return bad ? bad : give_from_groups(&a, rc, made, newintercomm);
}

MPI_ALIAS(Intercomm_merge);
int PMPI_Intercomm_merge(MPI_Comm intercomm, int high, MPI_Comm *newintracomm)
{
    const char *call = "MPI_Intercomm_merge";
    struct comm *c = comm_of(intercomm), *made;
    no_comm_yet(newintracomm);
    if (!c) return bad_comm_named(call, intercomm, "intercomm");
    if (!c->inter) return report(c, call, MPI_ERR_COMM, "argument intercomm is not an intercommunicator");
    if (!newintracomm) return bad_null(c, call, "newintracomm");
    int rc = comm_inter_merge(c, high != 0, &made);
    if (rc) return report_code(c, call, rc);
    *newintracomm = comm_handle(made);
    return MPI_SUCCESS;
}
