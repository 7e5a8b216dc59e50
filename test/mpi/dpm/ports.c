/*
 * ports.c - ports within a job, whose ranks are two groups: connected many times over, by several ports, with
 * all sorts of traffic, and taken apart again. What is wrong with a port is said.
 */
#include "../check.h"

#include <stdbool.h>

enum { ROUNDS = 20, LONG = 200000 };

static MPI_Comm half; /* of this process: the even or the odd ranks */
static bool serves;   /* the even ones open the ports */
static int half_rank, half_size, others;

/* Messages of all lengths to and from all ranks of the other group. */
static void messages(MPI_Comm inter)
{
    static unsigned char out[LONG], in[LONG];
    for (int bytes = 0; bytes <= LONG; bytes = bytes ? bytes * 20 : 1)
        for (int r = 0; r < others; r++) {
            MPI_Request q;
            MPI_Status status;
            int got;
            memset(out, 16 * serves + half_rank, (size_t)bytes);
            memset(in, 0, (size_t)bytes);
            CHECK_OK(MPI_Irecv(in, LONG, MPI_BYTE, r, bytes % 1000, inter, &q));
            CHECK_OK(MPI_Send(out, bytes, MPI_BYTE, r, bytes % 1000, inter));
            CHECK_OK(MPI_Wait(&q, &status));
            MPI_Get_count(&status, MPI_BYTE, &got);
            CHECK(got == bytes && status.MPI_SOURCE == r, "%d of %d bytes from rank %d", got, bytes, status.MPI_SOURCE);
            for (int i = 0; i < bytes; i += 997) CHECK(in[i] == 16 * !serves + r, "byte %d from rank %d is %d", i, r, in[i]);
        }
}

static void collectives(MPI_Comm inter)
{
    int mine = 10 * serves + half_rank, sum = -1, expected = 0, all = -1, size;
    MPI_Comm merged;
    for (int r = 0; r < others; r++) expected += 10 * !serves + r;
    CHECK_OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter));
    CHECK(sum == expected, "the sum of the other group is %d", sum);
    CHECK_OK(MPI_Intercomm_merge(inter, serves, &merged));
    MPI_Comm_size(merged, &size);
    CHECK_OK(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, merged));
    int own = -1;
    CHECK_OK(MPI_Allreduce(&mine, &own, 1, MPI_INT, MPI_SUM, half));
    CHECK(all == expected + own && size == half_size + others, "%d ranks have %d", size, all);
    CHECK_OK(MPI_Comm_free(&merged));
}

static MPI_Comm connect_once(int round)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter = MPI_COMM_NULL;
    int root = round % (serves ? half_size : others), other_root = round % (serves ? others : half_size);
    int opener = 2 * (serves ? root : root), caller = 2 * other_root + 1;
    if (serves) {
        if (half_rank == root) {
            CHECK_OK(MPI_Open_port(MPI_INFO_NULL, port));
            CHECK_OK(MPI_Send(port, sizeof port, MPI_CHAR, caller, 77, MPI_COMM_WORLD));
        }
        CHECK_OK(MPI_Comm_accept(half_rank == root ? port : NULL, MPI_INFO_NULL, root, half, &inter));
        if (half_rank == root) CHECK_OK(MPI_Close_port(port));
    } else {
        if (check_rank == caller) CHECK_OK(MPI_Recv(port, sizeof port, MPI_CHAR, opener, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_OK(MPI_Comm_connect(check_rank == caller ? port : NULL, MPI_INFO_NULL, caller / 2, half, &inter));
    }
    int n = -1;
    CHECK_OK(MPI_Comm_remote_size(inter, &n));
    CHECK(n == others, "%d processes at the other side", n);
    return inter;
}

static void mistakes(void)
{
    char port[MPI_MAX_PORT_NAME], bad[MPI_MAX_PORT_NAME];
    MPI_Comm inter = MPI_COMM_NULL;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_OK(MPI_Open_port(MPI_INFO_NULL, port));
    CHECK_CLASS(MPI_Comm_connect("nobody", MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT);
    CHECK(inter == MPI_COMM_NULL, "there is a communicator");
    strcpy(bad, port);
    bad[20] ^= 1;
    CHECK_WORDS(MPI_Comm_connect(bad, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT, "no name of a port");
    strcpy(bad, port);
    bad[4] = '7';
    CHECK_WORDS(MPI_Comm_connect(bad, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT, "another version");
    CHECK_WORDS(MPI_Comm_accept(bad, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT, "has no port");
    CHECK_OK(MPI_Close_port(port));
    CHECK_CLASS(MPI_Close_port(port), MPI_ERR_PORT);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    if (check_size < 2) return check_skip("at least 2 ranks are needed");
    serves = check_rank % 2 == 0;
    MPI_Comm_split(MPI_COMM_WORLD, serves, check_rank, &half);
    MPI_Comm_rank(half, &half_rank);
    MPI_Comm_size(half, &half_size);
    others = check_size - half_size;
    mistakes();
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm inter = connect_once(round);
        messages(inter);
        collectives(inter);
        if (round % 2) CHECK_OK(MPI_Comm_disconnect(&inter));
        else CHECK_OK(MPI_Comm_free(&inter));
    }
    MPI_Comm_free(&half);
    return check_done();
}
