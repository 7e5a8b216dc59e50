/*
 * stuck.c - a launcher that cannot go on holds up no other one: rank 1 spawns a process on hosts that are in a pipe, which nobody writes to
 * until rank 0 has spawned two others.
 */
#include "../check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* One process, which disconnects. */
static void spawn(char *own, MPI_Info info)
{
    MPI_Comm inter;
    CHECK_OK(MPI_Comm_spawn(own, MPI_ARGV_NULL, 1, info, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE));
    CHECK_OK(MPI_Comm_disconnect(&inter));
}

static void go_on(const char *pipe)
{
    static const char hosts[] = "localhost\n";
    int fd = open(pipe, O_WRONLY | O_NONBLOCK);
    CHECK(fd >= 0, "the other launcher does not read the pipe");
    if (fd < 0) return;
    CHECK(write(fd, hosts, sizeof hosts - 1) == sizeof hosts - 1, "no host written");
    close(fd);
}

static void first(char *own, const char *pipe)
{
    usleep(200000); /* the other launcher has its order */
    spawn(own, MPI_INFO_NULL);
    spawn(own, MPI_INFO_NULL);
    go_on(pipe);
}

static void second(char *own, const char *pipe)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "hostfile", pipe);
    spawn(own, info);
    MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    char pipe[64], *own;
    check_start(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        MPI_Comm_disconnect(&parent);
        MPI_Finalize();
        return 0;
    }
    own = realpath(argv[0], NULL);
    snprintf(pipe, sizeof pipe, "/tmp/stuck-%d", (int)getpid());
    CHECK_OK(MPI_Bcast(pipe, sizeof pipe, MPI_CHAR, 0, MPI_COMM_WORLD));
    CHECK(check_rank || !mkfifo(pipe, 0600), "no pipe");
    CHECK_OK(MPI_Barrier(MPI_COMM_WORLD));
    if (check_rank == 0) first(own, pipe);
    if (check_rank == 1) second(own, pipe);
    CHECK_OK(MPI_Barrier(MPI_COMM_WORLD));
    if (check_rank == 0) unlink(pipe);
    free(own);
    return check_done();
}
