/*
 * pt2pt.c - wrong arguments of the point-to-point calls: the error class of the standard, no matter what else is right.
 */
#include "wrong.h"

static int x[4];
static MPI_Request r;
static MPI_Status st;

/* A send-like call with each argument wrong in turn. */
#define SENDS(F, ...)                                                                                                  \
    WRONG_COMMS(F(x, 1, MPI_INT, 0, 0, comm __VA_ARGS__));                                                             \
    WRONG_TYPES(F(x, 1, type, 0, 0, MPI_COMM_WORLD __VA_ARGS__));                                                      \
    CHECK_CLASS(F(x, -1, MPI_INT, 0, 0, MPI_COMM_WORLD __VA_ARGS__), MPI_ERR_COUNT);                                   \
    CHECK_CLASS(F(NULL, 1, MPI_INT, 0, 0, MPI_COMM_WORLD __VA_ARGS__), MPI_ERR_BUFFER);                                \
    CHECK_CLASS(F(x, 1, MPI_INT, check_size, 0, MPI_COMM_WORLD __VA_ARGS__), MPI_ERR_RANK);                            \
    CHECK_CLASS(F(x, 1, MPI_INT, -17, 0, MPI_COMM_WORLD __VA_ARGS__), MPI_ERR_RANK);                                   \
    CHECK_CLASS(F(x, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD __VA_ARGS__), MPI_ERR_RANK);                        \
    CHECK_CLASS(F(x, 1, MPI_INT, 0, -5, MPI_COMM_WORLD __VA_ARGS__), MPI_ERR_TAG);                                     \
    CHECK_CLASS(F(x, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD __VA_ARGS__), MPI_ERR_TAG)

#define STARTS(F) SENDS(F, , &r); CHECK_CLASS(F(x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, NULL), MPI_ERR_ARG)

#define RECVS(F, ...)                                                                                                  \
    WRONG_COMMS(F(x, 1, MPI_INT, 0, 0, comm, __VA_ARGS__));                                                            \
    WRONG_TYPES(F(x, 1, type, 0, 0, MPI_COMM_WORLD, __VA_ARGS__));                                                     \
    CHECK_CLASS(F(x, -1, MPI_INT, 0, 0, MPI_COMM_WORLD, __VA_ARGS__), MPI_ERR_COUNT);                                  \
    CHECK_CLASS(F(NULL, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, __VA_ARGS__), MPI_ERR_BUFFER);                               \
    CHECK_CLASS(F(x, 1, MPI_INT, check_size, 0, MPI_COMM_WORLD, __VA_ARGS__), MPI_ERR_RANK);                           \
    CHECK_CLASS(F(x, 1, MPI_INT, -17, 0, MPI_COMM_WORLD, __VA_ARGS__), MPI_ERR_RANK);                                  \
    CHECK_CLASS(F(x, 1, MPI_INT, 0, -5, MPI_COMM_WORLD, __VA_ARGS__), MPI_ERR_TAG)

static void sends(void)
{
    SENDS(MPI_Send, );
    SENDS(MPI_Send_c, );
    SENDS(MPI_Ssend, );
    SENDS(MPI_Ssend_c, );
    SENDS(MPI_Rsend, );
    SENDS(MPI_Rsend_c, );
    SENDS(MPI_Bsend, );
    SENDS(MPI_Bsend_c, );
}

static void starts(void)
{
    STARTS(MPI_Isend);
    STARTS(MPI_Isend_c);
    STARTS(MPI_Issend);
    STARTS(MPI_Issend_c);
    STARTS(MPI_Irsend);
    STARTS(MPI_Irsend_c);
    STARTS(MPI_Ibsend);
    STARTS(MPI_Ibsend_c);
}

static void inits(void)
{
    STARTS(MPI_Send_init);
    STARTS(MPI_Send_init_c);
    STARTS(MPI_Ssend_init);
    STARTS(MPI_Ssend_init_c);
    STARTS(MPI_Rsend_init);
    STARTS(MPI_Rsend_init_c);
    STARTS(MPI_Bsend_init);
    STARTS(MPI_Bsend_init_c);
}

static void receives(void)
{
    RECVS(MPI_Recv, &st);
    RECVS(MPI_Recv_c, &st);
    RECVS(MPI_Irecv, &r);
    RECVS(MPI_Irecv_c, &r);
    RECVS(MPI_Recv_init, &r);
    RECVS(MPI_Recv_init_c, &r);
    CHECK_CLASS(MPI_Irecv(x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Recv_init(x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
}

static void probes(void)
{
    int flag;
    MPI_Message m = MPI_MESSAGE_NULL, stray = STRAY(MPI_Message);
    WRONG_COMMS(MPI_Probe(0, 0, comm, &st));
    WRONG_COMMS(MPI_Iprobe(0, 0, comm, &flag, &st));
    WRONG_COMMS(MPI_Mprobe(0, 0, comm, &m, &st));
    WRONG_COMMS(MPI_Improbe(0, 0, comm, &flag, &m, &st));
    CHECK_CLASS(MPI_Probe(check_size, 0, MPI_COMM_WORLD, &st), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Iprobe(-9, 0, MPI_COMM_WORLD, &flag, &st), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Mprobe(check_size, 0, MPI_COMM_WORLD, &m, &st), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Improbe(0, -7, MPI_COMM_WORLD, &flag, &m, &st), MPI_ERR_TAG);
    CHECK_CLASS(MPI_Iprobe(0, 0, MPI_COMM_WORLD, NULL, &st), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Mprobe(0, 0, MPI_COMM_WORLD, NULL, &st), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Mrecv(x, 1, MPI_INT, &m, &st), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Mrecv_c(x, 1, MPI_INT, &stray, &st), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Imrecv(x, 1, MPI_INT, &stray, &r), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Imrecv_c(x, 1, MPI_INT, NULL, &r), MPI_ERR_ARG);
    m = MPI_MESSAGE_NO_PROC;
    CHECK_CLASS(MPI_Mrecv(x, -1, MPI_INT, &m, &st), MPI_ERR_COUNT);
    WRONG_TYPES(MPI_Mrecv(x, 1, type, &m, &st));
    CHECK_CLASS(MPI_Imrecv(x, 1, MPI_INT, &m, NULL), MPI_ERR_ARG);
}

#define PAIRS(F, last)                                                                                                 \
    WRONG_COMMS(F(x, 1, MPI_INT, 0, 0, x + 1, 1, MPI_INT, 0, 0, comm, last));                                          \
    WRONG_TYPES(F(x, 1, type, 0, 0, x + 1, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, last));                                   \
    WRONG_TYPES(F(x, 1, MPI_INT, 0, 0, x + 1, 1, type, 0, 0, MPI_COMM_WORLD, last));                                   \
    CHECK_CLASS(F(x, -1, MPI_INT, 0, 0, x + 1, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, last), MPI_ERR_COUNT);                \
    CHECK_CLASS(F(x, 1, MPI_INT, 0, 0, x + 1, -1, MPI_INT, 0, 0, MPI_COMM_WORLD, last), MPI_ERR_COUNT);                \
    CHECK_CLASS(F(NULL, 1, MPI_INT, 0, 0, x + 1, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, last), MPI_ERR_BUFFER);             \
    CHECK_CLASS(F(x, 1, MPI_INT, 0, 0, NULL, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, last), MPI_ERR_BUFFER);                 \
    CHECK_CLASS(F(x, 1, MPI_INT, check_size, 0, x + 1, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, last), MPI_ERR_RANK);         \
    CHECK_CLASS(F(x, 1, MPI_INT, MPI_ANY_SOURCE, 0, x + 1, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, last), MPI_ERR_RANK);     \
    CHECK_CLASS(F(x, 1, MPI_INT, 0, 0, x + 1, 1, MPI_INT, -19, 0, MPI_COMM_WORLD, last), MPI_ERR_RANK);                \
    CHECK_CLASS(F(x, 1, MPI_INT, 0, MPI_ANY_TAG, x + 1, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, last), MPI_ERR_TAG);         \
    CHECK_CLASS(F(x, 1, MPI_INT, 0, 0, x + 1, 1, MPI_INT, 0, -8, MPI_COMM_WORLD, last), MPI_ERR_TAG);                  \
    CHECK_CLASS(F(x, 1, MPI_INT, 0, 0, x + 1, 1, MPI_INT, MPI_ANY_SOURCE, -8, MPI_COMM_WORLD, last), MPI_ERR_TAG)

#define REPLACES(F, last)                                                                                              \
    WRONG_COMMS(F(x, 1, MPI_INT, 0, 0, 0, 0, comm, last));                                                             \
    WRONG_TYPES(F(x, 1, type, 0, 0, 0, 0, MPI_COMM_WORLD, last));                                                      \
    CHECK_CLASS(F(x, -1, MPI_INT, 0, 0, 0, 0, MPI_COMM_WORLD, last), MPI_ERR_COUNT);                                   \
    CHECK_CLASS(F(NULL, 1, MPI_INT, 0, 0, 0, 0, MPI_COMM_WORLD, last), MPI_ERR_BUFFER);                                \
    CHECK_CLASS(F(x, 1, MPI_INT, check_size, 0, 0, 0, MPI_COMM_WORLD, last), MPI_ERR_RANK);                            \
    CHECK_CLASS(F(x, 1, MPI_INT, 0, 0, check_size, 0, MPI_COMM_WORLD, last), MPI_ERR_RANK);                            \
    CHECK_CLASS(F(x, 1, MPI_INT, 0, -1, 0, 0, MPI_COMM_WORLD, last), MPI_ERR_TAG);                                     \
    CHECK_CLASS(F(x, 1, MPI_INT, 0, 0, 0, -1, MPI_COMM_WORLD, last), MPI_ERR_TAG)

static void pairs(void)
{
    PAIRS(MPI_Sendrecv, &st);
    PAIRS(MPI_Sendrecv_c, &st);
    PAIRS(MPI_Isendrecv, &r);
    PAIRS(MPI_Isendrecv_c, &r);
    REPLACES(MPI_Sendrecv_replace, &st);
    REPLACES(MPI_Sendrecv_replace_c, &st);
    REPLACES(MPI_Isendrecv_replace, &r);
    REPLACES(MPI_Isendrecv_replace_c, &r);
    CHECK_CLASS(MPI_Isendrecv(x, 1, MPI_INT, 0, 0, x + 1, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Isendrecv_replace(x, 1, MPI_INT, 0, 0, 0, 0, MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
}

static void requests(void)
{
    int flag, n, index, indices[2];
    MPI_Request bad[2] = {MPI_REQUEST_NULL, STRAY(MPI_Request)}, active, fresh, null = MPI_REQUEST_NULL;
    CHECK_CLASS(MPI_Wait(NULL, &st), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Wait(&bad[1], &st), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Test(&bad[1], &flag, &st), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Test(&null, NULL, &st), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Request_get_status(bad[1], &flag, &st), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Request_get_status(null, NULL, &st), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Waitall(2, bad, MPI_STATUSES_IGNORE), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Waitall(-1, bad, MPI_STATUSES_IGNORE), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Waitall(1, NULL, MPI_STATUSES_IGNORE), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Testall(2, bad, &flag, MPI_STATUSES_IGNORE), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Testall(0, NULL, NULL, MPI_STATUSES_IGNORE), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Waitany(2, bad, &index, &st), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Waitany(1, &null, NULL, &st), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Testany(2, bad, &index, &flag, &st), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Waitsome(2, bad, &n, indices, MPI_STATUSES_IGNORE), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Testsome(-2, bad, &n, indices, MPI_STATUSES_IGNORE), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Request_get_status_all(2, bad, &flag, MPI_STATUSES_IGNORE), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Request_get_status_any(2, bad, &index, &flag, &st), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Request_get_status_some(2, bad, &n, indices, MPI_STATUSES_IGNORE), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Request_get_status_all(0, NULL, NULL, MPI_STATUSES_IGNORE), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Cancel(&null), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Request_free(&null), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Start(&null), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Startall(1, &bad[1]), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Startall(-1, bad), MPI_ERR_COUNT);
    MPI_Irecv(x, 1, MPI_INT, check_rank, 1, MPI_COMM_WORLD, &active);
    CHECK_CLASS(MPI_Start(&active), MPI_ERR_REQUEST); /* not persistent */
    MPI_Cancel(&active);
    MPI_Wait(&active, &st);
    MPI_Recv_init(x, 1, MPI_INT, check_rank, 1, MPI_COMM_WORLD, &fresh);
    CHECK_OK(MPI_Start(&fresh));
    CHECK_CLASS(MPI_Start(&fresh), MPI_ERR_REQUEST); /* active already */
    MPI_Cancel(&fresh);
    MPI_Wait(&fresh, &st);
    MPI_Request stale = fresh;
    MPI_Request_free(&fresh);
    CHECK_CLASS(MPI_Wait(&stale, &st), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Test_cancelled(NULL, &flag), MPI_ERR_ARG);
}

static void buffers(void)
{
    char b[100], *p;
    int n;
    CHECK_CLASS(MPI_Buffer_attach(b, -1), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Buffer_attach_c(NULL, 10), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Buffer_detach(NULL, &n), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Buffer_detach(&p, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Buffer_detach_c(&p, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Buffer_iflush(NULL), MPI_ERR_ARG);
    WRONG_COMMS(MPI_Comm_attach_buffer(comm, b, 100));
    WRONG_COMMS(MPI_Comm_attach_buffer_c(comm, b, 100));
    WRONG_COMMS(MPI_Comm_detach_buffer(comm, &p, &n));
    WRONG_COMMS(MPI_Comm_detach_buffer_c(comm, &p, &(MPI_Count){0}));
    WRONG_COMMS(MPI_Comm_flush_buffer(comm));
    WRONG_COMMS(MPI_Comm_iflush_buffer(comm, &r));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    wrong_open();
    sends();
    starts();
    inits();
    receives();
    probes();
    pairs();
    requests();
    buffers();
    wrong_close();
    return check_done();
}
