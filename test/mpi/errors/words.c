/*
 * words.c - the reason that was worded where a mistake was found is what the user reads: of messages and collectives
 * that are too long, of a later failure rather than of one before, of types without names.
 */
#include "../check.h"

enum { LARGE = 1 << 20 };
static int *buffer;

/* Rank 0 sends `sent` elements to rank 1, which has room for some. */
static void too_long(int sent, int room)
{
    char part[120];
    snprintf(part, sizeof part, "of %d bytes from rank 0 with tag 7 is longer than the receive buffer of %d bytes",
             4 * sent, 4 * room);
    if (check_rank == 0) CHECK_OK(MPI_Send(buffer, sent, MPI_INT, 1, 7, MPI_COMM_WORLD));
    if (check_rank == 1)
        CHECK_WORDS(MPI_Recv(buffer, room, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE, part);
}

/* What was wrong with another call before is not said again. */
static void later_failure(void)
{
    MPI_Request req;
    int byte = 0;
    if (check_rank == 1) {
        CHECK_CLASS(MPI_Send(&byte, 1, MPI_INT, 0, -5, MPI_COMM_WORLD), MPI_ERR_TAG);
        CHECK_OK(MPI_Irecv(buffer, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, &req));
        CHECK_WORDS(MPI_Wait(&req, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE, "of 12 bytes from rank 0 with tag 8");
    }
    if (check_rank == 0) CHECK_OK(MPI_Send(buffer, 3, MPI_INT, 1, 8, MPI_COMM_WORLD));
}

/* A small bcast: rank 0 gives more than the others expect. */
static void collective(MPI_Comm comm)
{
    int rc = MPI_Bcast(buffer, check_rank ? 2 : 4, MPI_INT, 0, comm), n;
    char text[MPI_MAX_ERROR_STRING] = "";
    if (!check_rank) CHECK_OK(rc);
    if (!check_rank) return;
    MPI_Error_string(rc, text, &n);
    CHECK(rc && strstr(text, "rank 0 gives 16 bytes in a collective"), "%s", text);
}

static void nameless_type(void)
{
    MPI_Datatype t;
    MPI_Type_contiguous(4, MPI_INT, &t);
    CHECK_WORDS(MPI_Send(buffer, 1, t, 0, 0, MPI_COMM_WORLD), MPI_ERR_TYPE,
                "(a derived datatype without a name) has not been committed");
    MPI_Type_set_name(t, "four");
    CHECK_WORDS(MPI_Send(buffer, 1, t, 0, 0, MPI_COMM_WORLD), MPI_ERR_TYPE, "(four) has not been committed");
    MPI_Type_free(&t);
}

int main(int argc, char **argv)
{
    MPI_Comm comm;
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    buffer = calloc(LARGE, sizeof *buffer);
    nameless_type();
    too_long(4, 2);
    too_long(4, 0);
    too_long(LARGE, 1000);
    later_failure();
    collective(comm);
    MPI_Comm_free(&comm);
    free(buffer);
    return check_done();
}
