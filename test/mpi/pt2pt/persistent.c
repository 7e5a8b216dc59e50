/*
 * persistent.c - persistent requests (MPI-5.0 section 3.9): started many times, together, with other data each time;
 * an inactive one is complete; freed while active it still does its work.
 */
#include "../check.h"

enum { N = 6, ROUNDS = 200 };
static const int sizes[N] = {0, 8, 1000, 9000, 70000, 400000};

static void rounds(int right, int left)
{
    char *out[N], *in[N];
    MPI_Request r[2 * N];
    MPI_Status st[2 * N];
    for (int i = 0; i < N; i++) {
        out[i] = malloc((size_t)sizes[i] + 1);
        in[i] = malloc((size_t)sizes[i] + 1);
        CHECK_OK(MPI_Recv_init(in[i], sizes[i], MPI_BYTE, left, i, MPI_COMM_WORLD, &r[i]));
        if (i % 2) CHECK_OK(MPI_Send_init(out[i], sizes[i], MPI_BYTE, right, i, MPI_COMM_WORLD, &r[N + i]));
        else CHECK_OK(MPI_Ssend_init(out[i], sizes[i], MPI_BYTE, right, i, MPI_COMM_WORLD, &r[N + i]));
    }
    CHECK_OK(MPI_Waitall(2 * N, r, st)); /* all inactive: nothing to wait for */
    for (int k = 0; k < ROUNDS; k++) {
        for (int i = 0; i < N; i++) check_fill(out[i], (size_t)sizes[i], (unsigned long)(check_rank + k + i));
        if (k % 2) {
            CHECK_OK(MPI_Startall(2 * N, r));
        } else {
            for (int i = 0; i < 2 * N; i++) CHECK_OK(MPI_Start(&r[i]));
        }
        CHECK_OK(MPI_Waitall(2 * N, r, st));
        for (int i = 0; i < N; i++) {
            int got = -1;
            MPI_Get_count(&st[i], MPI_BYTE, &got);
            CHECK(got == sizes[i] && st[i].MPI_SOURCE == left, "round %d: %d bytes from %d", k, got, st[i].MPI_SOURCE);
            CHECK(check_differ(in[i], (size_t)sizes[i], (unsigned long)(left + k + i)) == 0, "round %d, %d bytes: data differ", k, sizes[i]);
        }
    }
    for (int i = 0; i < 2 * N; i++) CHECK_OK(MPI_Request_free(&r[i]));
    for (int i = 0; i < N; i++) free(out[i]), free(in[i]);
}

/* A type and a communicator that the user lets go stay while a request needs them. */
static void borrowed(int right, int left)
{
    MPI_Comm dup;
    MPI_Datatype pair;
    MPI_Request r[2];
    int out[4] = {1, 2, 3, 4}, in[4] = {0};
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Type_vector(2, 1, 3, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Recv_init(in, 1, pair, left, 1, dup, &r[0]);
    MPI_Send_init(out, 1, pair, right, 1, dup, &r[1]);
    CHECK_OK(MPI_Type_free(&pair));
    CHECK_OK(MPI_Comm_free(&dup));
    for (int k = 0; k < 3; k++) {
        in[0] = in[3] = 0;
        CHECK_OK(MPI_Startall(2, r));
        CHECK_OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
        CHECK(in[0] == 1 && in[1] == 0 && in[2] == 0 && in[3] == 4, "%d %d %d %d", in[0], in[1], in[2], in[3]);
    }
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
}

static void nobody(void)
{
    MPI_Request r[2];
    MPI_Status st[2];
    int x = 5;
    MPI_Recv_init(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &r[0]);
    MPI_Bsend_init(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &r[1]);
    for (int k = 0; k < 2; k++) {
        CHECK_OK(MPI_Startall(2, r));
        CHECK_OK(MPI_Waitall(2, r, st));
        CHECK(st[0].MPI_SOURCE == MPI_PROC_NULL && x == 5, "a receive from nobody: from %d, got %d", st[0].MPI_SOURCE, x);
    }
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
}

/* Freed while active: the message arrives all the same. */
static void freed_active(int right, int left)
{
    static char out[300000], in[300000];
    MPI_Request s;
    check_fill(out, sizeof out, 4);
    MPI_Send_init(out, sizeof out, MPI_BYTE, right, 2, MPI_COMM_WORLD, &s);
    MPI_Start(&s);
    CHECK_OK(MPI_Request_free(&s));
    CHECK_OK(MPI_Recv(in, sizeof in, MPI_BYTE, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(check_differ(in, sizeof in, 4) == 0, "the data of a freed persistent send differ");
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    rounds(right, left);
    borrowed(right, left);
    nobody();
    freed_active(right, left);
    return check_done();
}
