/*
 * nodes_rank.c - an MPI program that says where it runs: who shares a node with it, by MPI_Comm_split_type and by the
 * process set tern://node, after all have talked to all and the ranks of a node among themselves.
 *
 *     rank 3 of 6: node ranks 2 3, good
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

/* Every pair exchanges a message, so that every card is needed. */
static int talk_to_all(void)
{
    int good = 1;
    for (int step = 0; step < size; step++) {
        int to = (rank + step) % size, from = (rank + size - step) % size, got = -1;
        MPI_Sendrecv(&rank, 1, MPI_INT, to, 5, &got, 1, MPI_INT, from, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        good &= got == from;
    }
    return good;
}

/* A sum and a broadcast: those of one node may go through its shared block. */
static int collectives(MPI_Comm c)
{
    int n, me, sum, first;
    MPI_Comm_size(c, &n);
    MPI_Comm_rank(c, &me);
    first = me;
    MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, c);
    MPI_Bcast(&first, 1, MPI_INT, n - 1, c);
    return sum == n * (n - 1) / 2 && first == n - 1;
}

static int same_members(MPI_Comm c)
{
    MPI_Session s;
    MPI_Group by_set, by_split;
    int result;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &s);
    MPI_Group_from_session_pset(s, "tern://node", &by_set);
    MPI_Comm_group(c, &by_split);
    MPI_Group_compare(by_set, by_split, &result);
    MPI_Group_free(&by_set);
    MPI_Group_free(&by_split);
    MPI_Session_finalize(&s);
    return result == MPI_IDENT;
}

int main(int argc, char **argv)
{
    MPI_Comm node;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    int good = talk_to_all() & collectives(MPI_COMM_WORLD) & collectives(node) & same_members(node), n;
    const char *local = getenv("MPI_LOCALRANKID"), *count = getenv("MPI_LOCALNRANKS");
    int me;
    MPI_Comm_rank(node, &me);
    MPI_Comm_size(node, &n);
    good &= local && count && atoi(local) == me && atoi(count) == n;
    int *ranks = calloc((size_t)n, sizeof *ranks);
    MPI_Gather(&rank, 1, MPI_INT, ranks, 1, MPI_INT, 0, node);
    MPI_Bcast(ranks, n, MPI_INT, 0, node);
    char list[4096] = "";
    for (int i = 0; i < n; i++) snprintf(list + strlen(list), sizeof list - strlen(list), " %d", ranks[i]);
    printf("rank %d of %d: node ranks%s, %s\n", rank, size, list, good ? "good" : "bad");
    free(ranks);
    MPI_Comm_free(&node);
    MPI_Finalize();
    return !good;
}
