/*
 * disconnect.c - MPI_Comm_disconnect (MPI-5.0 section 11.10.4): what was started on the communicator is complete when it
 * returns, whoever asks for it later, or nobody; the handle is null; other communicators go on.
 */
#include "../check.h"

enum { LARGE = 1 << 19, TAG = 4 };

static int *out, *in;

static void fill(void)
{
    for (int i = 0; i < LARGE; i++) out[i] = check_rank + i, in[i] = -1;
}

static int wrong_from(int rank)
{
    int bad = 0;
    for (int i = 0; i < LARGE; i++) bad += in[i] != rank + i;
    return bad;
}

static void check_gone(MPI_Comm c)
{
    CHECK(c == MPI_COMM_NULL, "the handle is still there");
}

/* A large message around a ring, and a collective, which are asked for behind the call. */
static void pending(MPI_Comm c)
{
    int rank, size, mine = check_rank, sum = -1;
    MPI_Request r[3];
    MPI_Comm_rank(c, &rank);
    MPI_Comm_size(c, &size);
    fill();
    CHECK_OK(MPI_Irecv(in, LARGE, MPI_INT, (rank + size - 1) % size, TAG, c, &r[0]));
    CHECK_OK(MPI_Isend(out, LARGE, MPI_INT, (rank + 1) % size, TAG, c, &r[1]));
    CHECK_OK(MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, c, &r[2]));
    CHECK_OK(MPI_Comm_disconnect(&c));
    check_gone(c);
    CHECK(!wrong_from((check_rank + check_size - 1) % check_size), "not all of the message is there");
    CHECK(sum == check_size * (check_size - 1) / 2, "the sum is %d", sum);
    CHECK_OK(MPI_Waitall(3, r, MPI_STATUSES_IGNORE));
}

/* Nobody asks: the requests were freed. Rank 0 receives only when the others are about to disconnect. */
static void let_go(MPI_Comm c)
{
    int rank, size;
    MPI_Request r[2];
    MPI_Comm_rank(c, &rank);
    MPI_Comm_size(c, &size);
    fill();
    CHECK_OK(MPI_Issend(out, LARGE, MPI_INT, (rank + 1) % size, TAG, c, &r[0]));
    CHECK_OK(MPI_Request_free(&r[0]));
    for (int i = 1; rank == 0 && i < size; i++) MPI_Recv(NULL, 0, MPI_INT, i, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_OK(MPI_Irecv(in, LARGE, MPI_INT, (rank + size - 1) % size, TAG, c, &r[1]));
    CHECK_OK(MPI_Request_free(&r[1]));
    if (rank) MPI_Send(NULL, 0, MPI_INT, 0, TAG, MPI_COMM_WORLD);
    CHECK_OK(MPI_Comm_disconnect(&c));
    CHECK(!wrong_from((check_rank + check_size - 1) % check_size), "not all of the message is there");
}

/* A persistent request that was started; one that was not is nothing to wait for. */
static void persistent(MPI_Comm c)
{
    int rank, size;
    MPI_Request r[2];
    MPI_Comm_rank(c, &rank);
    MPI_Comm_size(c, &size);
    fill();
    CHECK_OK(MPI_Recv_init(in, LARGE, MPI_INT, (rank + size - 1) % size, TAG, c, &r[0]));
    CHECK_OK(MPI_Send_init(out, LARGE, MPI_INT, (rank + 1) % size, TAG, c, &r[1]));
    CHECK_OK(MPI_Startall(2, r));
    CHECK_OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
    fill();
    CHECK_OK(MPI_Startall(2, r));
    CHECK_OK(MPI_Comm_disconnect(&c));
    CHECK(!wrong_from((check_rank + check_size - 1) % check_size), "not all of the message is there");
    CHECK_OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
    CHECK_OK(MPI_Request_free(&r[0]));
    CHECK_OK(MPI_Request_free(&r[1]));
}

/* A receive on another communicator is not waited for. */
static void others_go_on(MPI_Comm c)
{
    int got = -1;
    MPI_Request r;
    CHECK_OK(MPI_Irecv(&got, 1, MPI_INT, (check_rank + check_size - 1) % check_size, TAG, MPI_COMM_WORLD, &r));
    CHECK_OK(MPI_Comm_disconnect(&c));
    CHECK_OK(MPI_Send(&check_rank, 1, MPI_INT, (check_rank + 1) % check_size, TAG, MPI_COMM_WORLD));
    CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    CHECK(got == (check_rank + check_size - 1) % check_size, "from %d", got);
}

static int deletions;
static int delete_fn(MPI_Comm c, int key, void *value, void *extra)
{
    (void)c, (void)key, (void)value, (void)extra;
    deletions++;
    return MPI_SUCCESS;
}

static void attributes(MPI_Comm c)
{
    int key;
    CHECK_OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_fn, &key, NULL));
    CHECK_OK(MPI_Comm_set_attr(c, key, NULL));
    CHECK_OK(MPI_Comm_disconnect(&c));
    CHECK(deletions == 1, "%d deletions", deletions);
    CHECK_OK(MPI_Comm_free_keyval(&key));
}

/* Two groups that face each other. */
static void between_groups(void)
{
    MPI_Comm half, inter;
    MPI_Request r[2];
    int mine = check_rank, got = -1, size, rank;
    if (check_size < 2) return;
    MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, check_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - check_rank % 2, 1, &inter);
    MPI_Comm_remote_size(inter, &size);
    MPI_Comm_rank(inter, &rank);
    int partner = rank < size ? rank : MPI_PROC_NULL;
    CHECK_OK(MPI_Irecv(&got, 1, MPI_INT, partner, TAG, inter, &r[0]));
    CHECK_OK(MPI_Issend(&mine, 1, MPI_INT, partner, TAG, inter, &r[1]));
    CHECK_OK(MPI_Comm_disconnect(&inter));
    check_gone(inter);
    CHECK(partner == MPI_PROC_NULL || got == (check_rank ^ 1), "from %d", got);
    CHECK_OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
    CHECK_OK(MPI_Comm_disconnect(&half));
}

static void mistakes(void)
{
    MPI_Comm c[] = {MPI_COMM_WORLD, MPI_COMM_SELF, MPI_COMM_NULL};
    for (int i = 0; i < 3; i++) CHECK_CLASS(MPI_Comm_disconnect(&c[i]), MPI_ERR_COMM);
    CHECK(c[0] == MPI_COMM_WORLD && c[1] == MPI_COMM_SELF, "a handle was changed");
    c[0] = MPI_COMM_WORLD;
    CHECK_WORDS(MPI_Comm_disconnect(&c[0]), MPI_ERR_COMM, "MPI_COMM_WORLD, which cannot be disconnected");
    CHECK_CLASS(MPI_Comm_disconnect(NULL), MPI_ERR_ARG);
}

int main(int argc, char **argv)
{
    void (*const tests[])(MPI_Comm) = {pending, let_go, persistent, others_go_on, attributes};
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    out = malloc(LARGE * sizeof *out);
    in = malloc(LARGE * sizeof *in);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        MPI_Comm c;
        MPI_Comm_dup(MPI_COMM_WORLD, &c);
        tests[i](c);
    }
    between_groups();
    mistakes();
    free(out);
    free(in);
    return check_done();
}
