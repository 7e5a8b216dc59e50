/* topo.c - entry points: topologies of all kinds (MPI-5.0 section 8.5.5); checks for the others. */
#include "mpi/topoargs.h"

static const char *kind_name(int kind)
{
    return kind == MPI_CART ? "a cartesian topology" : kind == MPI_GRAPH ? "a graph topology" : "a distributed graph topology";
}

struct comm *with_topology(const char *call, MPI_Comm comm, int kind, int *rc)
{
    struct comm *c = comm_of_local(comm);
    if (!c) {
        *rc = bad_comm(call, comm);
        return NULL;
    }
    const struct topo *t = topo_of(c);
    if (t && t->kind == kind) return c;
    *rc = report(c, call, MPI_ERR_TOPOLOGY, "argument comm has %s, and the call is for %s", t ? kind_name(t->kind) : "no topology",
                 kind_name(kind));
    return NULL;
}

struct comm *topology_parent(const char *call, MPI_Comm comm, const char *argument, int *rc)
{
    struct comm *c = comm_of(comm);
    if (!c) *rc = bad_comm_named(call, comm, argument);
    else if (c->inter) *rc = report(c, call, MPI_ERR_COMM, "argument %s is an intercommunicator, which can have no topology",
                                 argument);
    else return c;
    return NULL;
}

int give_topology(struct comm *c, const char *call, int code, struct comm *made, MPI_Comm *newcomm)
{
    if (code) return report_code(c, call, code);
    *newcomm = made ? comm_handle(made) : MPI_COMM_NULL;
    return MPI_SUCCESS;
}

int check_room(struct comm *c, const char *call, const char *name, int room, const char *array, const int *given, int n)
{
    if (room < n)
        return report(c, call, MPI_ERR_ARG, "argument %s is %d, but there are %d entries to put into %s", name, room, n, array);
    return n && !given ? bad_null(c, call, array) : MPI_SUCCESS;
}

int bad_topology_rank(struct comm *c, const char *call, const char *argument, int rank)
{
    return report(c, call, MPI_ERR_RANK, "argument %s is %d, but the communicator has ranks 0 to %d", argument, rank, c->size - 1);
}

MPI_ALIAS(Topo_test);
int PMPI_Topo_test(MPI_Comm comm, int *status)
{
    struct comm *c = comm_of_local(comm);
    if (!c) return bad_comm("MPI_Topo_test", comm);
    if (!status) return bad_null(c, "MPI_Topo_test", "status");
    *status = topo_of(c) ? topo_of(c)->kind : MPI_UNDEFINED;
    return MPI_SUCCESS;
}
