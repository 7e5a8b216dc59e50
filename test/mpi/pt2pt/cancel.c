/*
 * cancel.c - cancelling receives and sends (MPI-5.0 section 3.8.4): either the cancel succeeds and nothing was
 * received, or the operation completes as if there had been no cancel. Nothing hangs, nothing comes twice.
 */
#include "../check.h"

static int was_cancelled(MPI_Request *r)
{
    MPI_Status st;
    int flag = -1;
    CHECK_OK(MPI_Wait(r, &st));
    CHECK_OK(MPI_Test_cancelled(&st, &flag));
    return flag;
}

/* A receive that nothing matches can always be cancelled, and is then out of matching. */
static void receives(int peer)
{
    int in[2] = {-1, -1}, out = 7, flag;
    MPI_Request r;
    MPI_Status st;
    for (int way = 0; way < 2; way++) {
        if (way == 0) MPI_Irecv(&in[0], 1, MPI_INT, peer, 1, MPI_COMM_WORLD, &r);
        else MPI_Irecv(&in[0], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &r);
        CHECK_OK(MPI_Cancel(&r));
        CHECK(was_cancelled(&r) == 1, "the receive was not cancelled");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Irecv(&in[1], 1, MPI_INT, peer, 1, MPI_COMM_WORLD, &r);
    MPI_Send(&out, 1, MPI_INT, peer, 1, MPI_COMM_WORLD);
    MPI_Wait(&r, &st);
    CHECK(in[0] == -1 && in[1] == 7, "the cancelled receive got the message");
    MPI_Test_cancelled(&st, &flag);
    CHECK(flag == 0, "a completed receive says that it was cancelled");
}

/* Persistent: cancelled, and then started again as if nothing had been. */
static void persistent(int peer)
{
    int in = -1, out = 8;
    MPI_Request r;
    MPI_Recv_init(&in, 1, MPI_INT, peer, 2, MPI_COMM_WORLD, &r);
    MPI_Start(&r);
    CHECK_OK(MPI_Cancel(&r));
    CHECK(was_cancelled(&r) == 1 && r != MPI_REQUEST_NULL, "the persistent receive was not cancelled, or is gone");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Start(&r);
    MPI_Send(&out, 1, MPI_INT, peer, 2, MPI_COMM_WORLD);
    CHECK(was_cancelled(&r) == 0 && in == 8, "the second run was cancelled, or got %d", in);
    MPI_Request_free(&r);
}

/* Sends that are not received: after the cancel the receiver hears whether the message is still to come. */
static void sends(int peer, int n, int synchronous, char *out, char *in)
{
    MPI_Request r;
    int gone = 0, theirs = -1;
    check_fill(out, (size_t)n, 3);
    if (synchronous) MPI_Issend(out, n, MPI_BYTE, peer, 3, MPI_COMM_WORLD, &r);
    else MPI_Isend(out, n, MPI_BYTE, peer, 3, MPI_COMM_WORLD, &r);
    CHECK_OK(MPI_Cancel(&r));
    gone = was_cancelled(&r);
    MPI_Sendrecv(&gone, 1, MPI_INT, peer, 4, &theirs, 1, MPI_INT, peer, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (n > 4 << 20 || synchronous) CHECK(gone == 1, "a send of %d bytes that nobody received was not cancelled", n);
    if (!theirs) {
        memset(in, 0, (size_t)n);
        CHECK_OK(MPI_Recv(in, n, MPI_BYTE, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(check_differ(in, (size_t)n, 3) == 0, "a send that was not cancelled has wrong data");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    int flag = 1;
    MPI_Iprobe(peer, 3, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK(flag == 0, "a cancelled send of %d bytes was delivered", n);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Cancels that race with their receives: whoever wins, both sides agree. */
static void races(int peer, int n, char *out, char *in)
{
    for (int i = 0; i < 200; i++) {
        MPI_Request s, r;
        MPI_Status st;
        int gone, got, theirs;
        MPI_Issend(out, n, MPI_BYTE, peer, 5, MPI_COMM_WORLD, &s);
        MPI_Irecv(in, n, MPI_BYTE, peer, 5, MPI_COMM_WORLD, &r);
        MPI_Cancel(&s);
        gone = was_cancelled(&s);
        MPI_Sendrecv(&gone, 1, MPI_INT, peer, 6, &theirs, 1, MPI_INT, peer, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (theirs) MPI_Cancel(&r);
        MPI_Wait(&r, &st);
        MPI_Test_cancelled(&st, &got);
        CHECK(got == theirs, "sender says cancelled %d, receiver %d", theirs, got);
        MPI_Barrier(MPI_COMM_WORLD); /* the next message is not to meet this receive */
    }
}

int main(int argc, char **argv)
{
    static const int sizes[] = {0, 8, 5000, 200000, 5000000}; /* the last is offered over all transports */
    check_start(&argc, &argv);
    int peer = check_size - 1 - check_rank;
    char *out = malloc(5000000), *in = malloc(5000000);
    receives(peer);
    persistent(peer);
    for (int s = 0; s < 5; s++)
        for (int sync = 0; sync < 2; sync++) sends(peer, sizes[s], sync, out, in);
    races(peer, 8, out, in);
    races(peer, 300000, out, in);
    free(in);
    free(out);
    MPI_Barrier(MPI_COMM_WORLD); /* the messages of check_done would meet wildcards */
    return check_done();
}
