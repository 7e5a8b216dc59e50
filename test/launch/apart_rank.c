/*
 * apart_rank.c - an MPI program whose ranks see little of each other. All talk to all: a sum, short messages, long ones
 * out of private memory and out of that of MPI_Alloc_mem; then each says "rank 1 of 3: good".
 *
 *     apart_rank [nodump] [close] [tracer] [run COMMAND]     as an MPI program:
 *         nodump   may not be looked into by others (PR_SET_DUMPABLE)
 *         close    closes all descriptors that it did not open, before the first message
 *         tracer   says whom it has allowed to trace it: "tracer none", "tracer any" or "tracer launcher"
 *         run      runs a command by the shell between MPI_Init and the messages
 *     apart_rank closed COMMAND...     runs the command without the descriptors above 2
 *     apart_rank replaced COMMAND...   and with another file under each of their numbers
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LONG_BYTES = 1 << 20, FDS = 256 };

static int rank, size, good = 1;
static const char *tracer = "none";

/* In place of the C library's: what the MPI library asks for is noted. */
int prctl(int option, ...)
{
    unsigned long a[4];
    va_list ap;
    va_start(ap, option);
    for (int i = 0; i < 4; i++) a[i] = va_arg(ap, unsigned long);
    va_end(ap);
    if (option == PR_SET_PTRACER) tracer = a[0] == PR_SET_PTRACER_ANY ? "any" : "launcher";
    return (int)syscall(SYS_prctl, option, a[0], a[1], a[2], a[3]);
}

static void check(int is_true)
{
    if (!is_true) good = 0;
}

static void send_round(char *out, char *in, int bytes)
{
    for (int step = 0; step < size; step++) {
        int to = (rank + step) % size, from = (rank + size - step) % size;
        memset(out, rank + 1, (size_t)bytes);
        memset(in, 0, (size_t)bytes);
        MPI_Sendrecv(out, bytes, MPI_CHAR, to, 3, in, bytes, MPI_CHAR, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check(in[0] == from + 1 && in[bytes - 1] == from + 1);
    }
}

static void talk(void)
{
    int one = 1, sum = 0;
    char *shared, *private[2] = {malloc(LONG_BYTES), malloc(LONG_BYTES)};
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(sum == size);
    send_round(private[0], private[1], 8);
    send_round(private[0], private[1], LONG_BYTES);
    MPI_Alloc_mem(LONG_BYTES, MPI_INFO_NULL, &shared);
    send_round(shared, private[1], LONG_BYTES);
    send_round(private[0], shared, LONG_BYTES);
    MPI_Free_mem(shared);
    free(private[0]);
    free(private[1]);
}

static void close_all(void)
{
    for (int fd = 3; fd < FDS; fd++) close(fd);
}

static int run_without(int replaced, char **command)
{
    close_all();
    int other = replaced ? memfd_create("another", 0) : -1;
    if (replaced && (other < 0 || ftruncate(other, 1 << 20))) return 98;
    for (int fd = 3; fd < FDS && replaced; fd++)
        if (fd != other) dup2(other, fd);
    execvp(command[0], command);
    return 99;
}

int main(int argc, char **argv)
{
    int closes = 0, tells = 0;
    const char *command = NULL;
    if (argc > 2 && (!strcmp(argv[1], "closed") || !strcmp(argv[1], "replaced")))
        return run_without(!strcmp(argv[1], "replaced"), argv + 2);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "nodump")) prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
        closes |= !strcmp(argv[i], "close");
        tells |= !strcmp(argv[i], "tracer");
        if (!strcmp(argv[i], "run") && i + 1 < argc) command = argv[++i];
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (closes) close_all();
    if (command) check(system(command) == 0);
    talk();
    printf("rank %d of %d: %s%s%s\n", rank, size, good ? "good" : "wrong", tells ? ", tracer " : "",
           tells ? tracer : "");
    MPI_Finalize();
    return !good;
}
