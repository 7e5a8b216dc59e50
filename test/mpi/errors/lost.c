/*
 * lost.c - the connections of one rank break in the middle of everything: with MPI_ERRORS_RETURN every operation that
 * needs them ends with an error, everywhere, in bounded time; what does not need them goes on, and so does the end.
 *
 * A list line over tcp. Rank 0 can count nobody's checks but its own; the others say by their exit code.
 */
#include "../check.h"

#include <sys/socket.h>
#include <unistd.h>

enum { LARGE = 8 << 20, DOUBLES = 300000, ROUNDS = 15, CUT = 5 };

static int last; /* the rank that cuts its connections */

static void cut(void)
{
    for (int fd = 3; fd < 1024; fd++) {
        int domain;
        socklen_t n = sizeof domain;
        if (!getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) && domain != AF_UNIX) shutdown(fd, SHUT_RDWR);
    }
}

static int collective(int i, double *a, double *b)
{
    int part = DOUBLES / check_size;
    switch (i % 5) {
    case 0:
        return MPI_Allreduce(a, b, DOUBLES, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    case 1:
        return MPI_Barrier(MPI_COMM_WORLD);
    case 2:
        return MPI_Allgather(a, part, MPI_DOUBLE, b, part, MPI_DOUBLE, MPI_COMM_WORLD);
    case 3:
        return MPI_Alltoall(a, part, MPI_DOUBLE, b, part, MPI_DOUBLE, MPI_COMM_WORLD);
    default:
        return MPI_Reduce_scatter_block(a, b, part, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
}

/* What is under way with the rank when it happens. */
static void messages(char *out, char *in)
{
    int other = check_rank == last ? 0 : last;
    MPI_Request req[4];
    MPI_Status status[4];
    char none;
    int sent[2] = {0, 0}; /* a send says at once what is known then, and leaves no request */
    int with = check_rank == 0 || check_rank == last;
    if (with) {
        MPI_Irecv(in, LARGE, MPI_BYTE, other, 5, MPI_COMM_WORLD, &req[0]);
        sent[0] = MPI_Isend(out, LARGE, MPI_BYTE, other, 5, MPI_COMM_WORLD, &req[1]);
        MPI_Irecv(&none, 1, MPI_BYTE, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &req[2]);
        sent[1] = MPI_Issend(out, 8, MPI_BYTE, other, 7, MPI_COMM_WORLD, &req[3]);
    }
    if (check_rank == last) {
        usleep(300000); /* the others have left the last collective too */
        cut();
    }
    if (!with) return;
    CHECK_CLASS(MPI_Waitall(4, req, status), MPI_ERR_IN_STATUS);
    if (sent[0]) status[1].MPI_ERROR = sent[0];
    if (sent[1]) status[3].MPI_ERROR = sent[1];
    for (int i = 0; i < 4; i++) /* the large ones may just have made it */
        CHECK(status[i].MPI_ERROR == MPI_ERR_PROC_ABORTED || (i < 2 && !status[i].MPI_ERROR), "request %d: %d", i,
              status[i].MPI_ERROR);
}

static void nothing_more_goes(void)
{
    int other = check_rank == last ? 0 : last, length, flag;
    char byte = 0, words[MPI_MAX_ERROR_STRING];
    int rc = MPI_Send(&byte, 1, MPI_BYTE, other, 1, MPI_COMM_WORLD);
    CHECK(rc == MPI_ERR_PROC_ABORTED, "a send: %d", rc);
    MPI_Error_string(rc, words, &length);
    CHECK(strstr(words, "connection") || strstr(words, "lost"), "the words are '%s'", words);
    CHECK_CLASS(MPI_Recv(&byte, 1, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_ERR_PROC_ABORTED);
    CHECK_CLASS(MPI_Probe(other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_ERR_PROC_ABORTED);
    CHECK_CLASS(MPI_Iprobe(other, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE), MPI_ERR_PROC_ABORTED);
}

/* Those that live still talk to each other. */
static void the_others_go_on(MPI_Comm others)
{
    int rank, size, sum = 0;
    if (others == MPI_COMM_NULL) return;
    MPI_Comm_rank(others, &rank);
    MPI_Comm_size(others, &size);
    CHECK_OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, others));
    CHECK(sum == size * (size - 1) / 2, "the sum is %d", sum);
}

int main(int argc, char **argv)
{
    MPI_Comm others;
    check_start(&argc, &argv);
    last = check_size - 1;
    double *a = calloc(DOUBLES, sizeof *a), *b = calloc(DOUBLES, sizeof *b);
    char *out = calloc(1, LARGE), *in = calloc(1, LARGE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_split(MPI_COMM_WORLD, check_rank == last ? MPI_UNDEFINED : 0, 0, &others);
    for (int i = 0; i < CUT; i++) CHECK_OK(collective(i, a, b)); /* all are connected with all now */
    messages(out, in);
    int failed = 0;
    for (int i = CUT; i < ROUNDS; i++) failed += collective(i, a, b) != MPI_SUCCESS;
    CHECK(failed >= ROUNDS - CUT - 1, "%d collectives of %d failed", failed,
          ROUNDS - CUT); /* the first may be over with those who know nothing yet */
    nothing_more_goes();
    the_others_go_on(others);
    if (others != MPI_COMM_NULL) MPI_Comm_free(&others);
    CHECK_CLASS(MPI_Finalize(), MPI_ERR_PROC_ABORTED); /* and it is finalised */
    int flag = 0;
    MPI_Finalized(&flag);
    CHECK(flag, "MPI is not finalised");
    if (check_rank == 0) printf("checks: %ld, failed: %ld\n", check_cases, check_failures);
    free(a);
    free(b);
    free(out);
    free(in);
    return check_failures != 0;
}
