/*
 * truncate.c - a message longer than its receive is MPI_ERR_TRUNCATE (MPI-5.0 section 3.2.4), for every protocol and every
 * way to receive; what fits has arrived, nothing behind it was touched, and communication goes on. Shorter messages are no error.
 */
#include "../check.h"

static const int sizes[] = {1, 40, 100, 8192, 33000, 500000};
enum { SIZES = 6, LARGEST = 500000 };

static int right, left;

static int receive(int way, char *in, int n, MPI_Status *st)
{
    MPI_Request r;
    MPI_Message m;
    switch (way) {
    case 0: return MPI_Recv(in, n, MPI_BYTE, left, 1, MPI_COMM_WORLD, st);
    case 1: MPI_Irecv(in, n, MPI_BYTE, left, 1, MPI_COMM_WORLD, &r); break;
    case 2: MPI_Probe(left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); return MPI_Recv(in, n, MPI_BYTE, left, 1, MPI_COMM_WORLD, st);
    default: MPI_Mprobe(left, 1, MPI_COMM_WORLD, &m, MPI_STATUS_IGNORE); return MPI_Mrecv(in, n, MPI_BYTE, &m, st);
    }
    return MPI_Wait(&r, st);
}

static void one(int way, int sent, int room, int synchronous, char *out, char *in)
{
    MPI_Request s;
    MPI_Status st;
    int got = -1, want = sent < room ? sent : room;
    check_fill(out, (size_t)sent, (unsigned long)check_rank);
    memset(in, 0x55, LARGEST + 1);
    if (synchronous) MPI_Issend(out, sent, MPI_BYTE, right, 1, MPI_COMM_WORLD, &s);
    else MPI_Isend(out, sent, MPI_BYTE, right, 1, MPI_COMM_WORLD, &s);
    int rc = receive(way, in, room, &st), class = -1;
    MPI_Error_class(rc, &class);
    CHECK(class == (sent > room ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "way %d, %d bytes into %d: class %d", way, sent, room, class);
    CHECK_OK(MPI_Wait(&s, MPI_STATUS_IGNORE));
    MPI_Get_count(&st, MPI_BYTE, &got);
    if (sent <= room) CHECK(got == sent, "way %d: %d bytes instead of %d", way, got, sent);
    CHECK(check_differ(in, (size_t)want, (unsigned long)left) == 0, "way %d, %d bytes into %d: data differ", way, sent, room);
    CHECK(in[room] == 0x55, "way %d, %d bytes into %d: the byte behind the buffer was written", way, sent, room);
}

/* In a set, the error is in the status. */
static void in_status(char *out, char *in)
{
    MPI_Request r[3];
    MPI_Status st[3];
    MPI_Irecv(in, 10, MPI_BYTE, left, 1, MPI_COMM_WORLD, &r[0]);
    MPI_Irecv(in + 100, 10, MPI_BYTE, left, 2, MPI_COMM_WORLD, &r[1]);
    MPI_Isend(out, 10, MPI_BYTE, right, 1, MPI_COMM_WORLD, &r[2]);
    MPI_Send(out, 11, MPI_BYTE, right, 2, MPI_COMM_WORLD);
    CHECK_CLASS(MPI_Waitall(3, r, st), MPI_ERR_IN_STATUS);
    int class[3];
    for (int i = 0; i < 3; i++) MPI_Error_class(st[i].MPI_ERROR, &class[i]);
    CHECK(class[0] == MPI_SUCCESS && class[1] == MPI_ERR_TRUNCATE && class[2] == MPI_SUCCESS, "classes %d %d %d", class[0], class[1], class[2]);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    right = (check_rank + 1) % check_size;
    left = (check_rank + check_size - 1) % check_size;
    char *out = malloc(LARGEST + 1), *in = malloc(LARGEST + 1);
    for (int s = 0; s < SIZES; s++)
        for (int way = 0; way < 4; way++)
            for (int sync = 0; sync < 2; sync++) {
                one(way, sizes[s], sizes[s] - 1, sync, out, in);
                one(way, sizes[s], sizes[s] / 2, sync, out, in);
                one(way, sizes[s], 0, sync, out, in);
                one(way, sizes[s], sizes[s], sync, out, in);
                one(way, sizes[s] - 1, sizes[s], sync, out, in);
            }
    in_status(out, in);
    free(in);
    free(out);
    return check_done();
}
