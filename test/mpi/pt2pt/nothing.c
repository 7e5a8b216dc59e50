/*
 * nothing.c - messages without data: NULL as the buffer of no elements in all modes, and what goes to or comes from
 * MPI_PROC_NULL, whose datatype may be MPI_DATATYPE_NULL if its count is zero.
 */
#include "../check.h"

/* Each mode, to the next rank, which receives into NULL. */
static void no_elements(void)
{
    int next = (check_rank + 1) % check_size, previous = (check_rank + check_size - 1) % check_size, count;
    MPI_Datatype empty;
    MPI_Status status;
    MPI_Request r[2];
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    for (int mode = 0; mode < 4; mode++) {
        CHECK_OK(MPI_Irecv(NULL, 0, MPI_INT, previous, mode, MPI_COMM_WORLD, &r[0]));
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_OK(mode == 0   ? MPI_Isend(NULL, 0, MPI_INT, next, mode, MPI_COMM_WORLD, &r[1])
                 : mode == 1 ? MPI_Issend(NULL, 0, MPI_INT, next, mode, MPI_COMM_WORLD, &r[1])
                 : mode == 2 ? MPI_Irsend(NULL, 0, MPI_INT, next, mode, MPI_COMM_WORLD, &r[1])
                             : MPI_Issend(NULL, 7, empty, next, mode, MPI_COMM_WORLD, &r[1]));
        CHECK_OK(MPI_Wait(&r[0], &status));
        CHECK_OK(MPI_Wait(&r[1], MPI_STATUS_IGNORE));
        MPI_Get_count(&status, MPI_INT, &count);
        CHECK(count == 0, "mode %d: %d elements", mode, count);
    }
    MPI_Type_free(&empty);
    CHECK_OK(MPI_Irecv(NULL, 0, MPI_INT, previous, 9, MPI_COMM_WORLD, &r[0]));
    CHECK_OK(MPI_Ssend(NULL, 0, MPI_INT, next, 9, MPI_COMM_WORLD));
    CHECK_OK(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
}

static void check_nobody(const MPI_Status *s, const char *call)
{
    int count = -1;
    MPI_Get_count(s, MPI_INT, &count);
    CHECK(s->MPI_SOURCE == MPI_PROC_NULL && s->MPI_TAG == MPI_ANY_TAG && count == 0, "%s: %d elements from %d", call, count,
          s->MPI_SOURCE);
}

static void no_datatype(void)
{
    MPI_Comm c = MPI_COMM_WORLD;
    MPI_Datatype none = MPI_DATATYPE_NULL;
    MPI_Message m = MPI_MESSAGE_NO_PROC;
    MPI_Request r[4];
    MPI_Status s;
    CHECK_OK(MPI_Recv(NULL, 0, none, MPI_PROC_NULL, 0, c, &s));
    check_nobody(&s, "MPI_Recv");
    CHECK_OK(MPI_Mrecv(NULL, 0, none, &m, &s));
    check_nobody(&s, "MPI_Mrecv");
    CHECK_OK(MPI_Sendrecv(NULL, 0, none, MPI_PROC_NULL, 0, NULL, 0, none, MPI_PROC_NULL, 0, c, &s));
    check_nobody(&s, "MPI_Sendrecv");
    CHECK_OK(MPI_Sendrecv_replace(NULL, 0, none, MPI_PROC_NULL, 0, MPI_PROC_NULL, 0, c, &s));
    check_nobody(&s, "MPI_Sendrecv_replace");
    CHECK_OK(MPI_Send(NULL, 0, none, MPI_PROC_NULL, 0, c));
    CHECK_OK(MPI_Ssend(NULL, 0, none, MPI_PROC_NULL, 0, c));
    CHECK_OK(MPI_Isend(NULL, 0, none, MPI_PROC_NULL, 0, c, &r[0]));
    CHECK_OK(MPI_Irecv(NULL, 0, none, MPI_PROC_NULL, 0, c, &r[1]));
    CHECK_OK(MPI_Send_init(NULL, 0, none, MPI_PROC_NULL, 0, c, &r[2]));
    CHECK_OK(MPI_Recv_init(NULL, 0, none, MPI_PROC_NULL, 0, c, &r[3]));
    CHECK_OK(MPI_Startall(2, r + 2));
    CHECK_OK(MPI_Waitall(4, r, MPI_STATUSES_IGNORE));
    CHECK_OK(MPI_Request_free(&r[2]));
    CHECK_OK(MPI_Request_free(&r[3]));
}

/* Only that: elements of no datatype, and no elements for somebody, are mistakes. */
static void mistakes(void)
{
    MPI_Comm c = MPI_COMM_WORLD;
    int x;
    CHECK_CLASS(MPI_Recv(&x, 1, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, c, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Recv(&x, 0, MPI_DATATYPE_NULL, check_rank, 0, c, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Send(&x, 0, MPI_DATATYPE_NULL, check_rank, 0, c), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Recv(&x, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, MPI_COMM_NULL, MPI_STATUS_IGNORE), MPI_ERR_COMM);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    no_elements();
    no_datatype();
    mistakes();
    return check_done();
}
