/*
 * on_demand.c - two groups that connect make no connection between their members: these connect when they talk to each other first,
 * and then those two alone. Over TCP, where a connection is a socket of this process.
 */
#include "../check.h"

#include <dirent.h>
#include <stdbool.h>
#include <unistd.h>

static MPI_Comm half; /* of this process: the lower or the upper ranks */
static bool serves;
static int half_rank, half_size;

/* How many sockets this process has. */
static int sockets(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[300], text[64] = "";
        snprintf(path, sizeof path, "/proc/self/fd/%s", e->d_name);
        n += readlink(path, text, sizeof text - 1) > 0 && !strncmp(text, "socket:", 7);
    }
    if (d) closedir(d);
    return n;
}

/* The same when all is settled: where both sides connect at once, one has to give way. */
static int sockets_at_rest(void)
{
    for (int i = 0; i < 20; i++) {
        CHECK_OK(MPI_Barrier(half));
        usleep(2000);
    }
    return sockets();
}

static MPI_Comm connect_halves(void)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter = MPI_COMM_NULL;
    if (serves) {
        if (half_rank == 0) {
            CHECK_OK(MPI_Open_port(MPI_INFO_NULL, port));
            CHECK_OK(MPI_Send(port, sizeof port, MPI_CHAR, half_size, 7, MPI_COMM_WORLD));
        }
        CHECK_OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter));
        if (half_rank == 0) CHECK_OK(MPI_Close_port(port));
    } else {
        if (half_rank == 0) CHECK_OK(MPI_Recv(port, sizeof port, MPI_CHAR, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter));
    }
    return inter;
}

/* The last ranks of both halves. */
static void talk(MPI_Comm inter)
{
    int mine = check_rank, its = -1;
    CHECK_OK(MPI_Sendrecv(&mine, 1, MPI_INT, half_size - 1, 1, &its, 1, MPI_INT, half_size - 1, 1, inter, MPI_STATUS_IGNORE));
    CHECK(its == (serves ? check_size - 1 : half_size - 1), "rank %d has answered", its);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    if (check_size != 6 && check_size != 10) return check_skip("6 or 10 ranks are needed: the collectives at the start connect others at distance 2 and 4");
    serves = check_rank < check_size / 2;
    MPI_Comm_split(MPI_COMM_WORLD, serves, check_rank, &half);
    MPI_Comm_rank(half, &half_rank);
    MPI_Comm_size(half, &half_size);
    MPI_Comm first = connect_halves(); /* and with it the members of a half with their root, as they have something to tell */
    CHECK_OK(MPI_Barrier(MPI_COMM_WORLD)); /* connects no ranks at distance 3 or 5, now or when it is called again */
    int before = sockets_at_rest();
    MPI_Comm inter = connect_halves();
    int after = sockets_at_rest();
    CHECK(after == before, "%d sockets, and %d before the groups were connected", after, before);
    CHECK_OK(MPI_Barrier(MPI_COMM_WORLD)); /* nobody talks before all have counted */
    bool talks = half_rank == half_size - 1;
    if (talks) talk(inter);
    int now = sockets_at_rest();
    CHECK(now == before + talks, "%d sockets behind a message, %d before", now, before);
    CHECK_OK(MPI_Barrier(MPI_COMM_WORLD)); /* check_done connects all with rank 0 */
    CHECK_OK(MPI_Comm_free(&inter));
    CHECK_OK(MPI_Comm_free(&first));
    MPI_Comm_free(&half);
    return check_done();
}
