/*
 * absolute.c - every send, receive and packing call with MPI_BOTTOM and datatypes that hold absolute addresses (MPI-5.0
 * sections 3.2 and 5.1.5): each rank to the next.
 */
#include "../check.h"

#include <stdbool.h>

enum { N = 5, TAG = 7 };

static int sent[N], received[N], kept[N];
static MPI_Datatype from, to; /* all of `sent`, of `received`, by their addresses */
static int next, previous;

static void check_got(const char *call)
{
    int bad = 0;
    for (int i = 0; i < N; i++) bad += received[i] != 100 * previous + i;
    CHECK(!bad, "%s: %d of %d elements are wrong", call, bad, N);
    memset(received, 0xff, sizeof received);
}

/* ---- sends: the receive is there already, as a ready send wants it ---- */

static MPI_Request posted(void)
{
    MPI_Request r;
    CHECK_OK(MPI_Irecv(MPI_BOTTOM, 1, to, previous, TAG, MPI_COMM_WORLD, &r));
    MPI_Barrier(MPI_COMM_WORLD);
    return r;
}

typedef int send_fn(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int large_send_fn(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm);
typedef int start_fn(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
typedef int large_start_fn(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

#define NAMED(fn) {#fn, fn}
static const struct { const char *name; send_fn *fn; } sends[] = {NAMED(MPI_Send), NAMED(MPI_Ssend), NAMED(MPI_Rsend), NAMED(MPI_Bsend)};
static const struct { const char *name; large_send_fn *fn; } large_sends[] = {NAMED(MPI_Send_c), NAMED(MPI_Ssend_c), NAMED(MPI_Rsend_c),
                                                                              NAMED(MPI_Bsend_c)};
static const struct { const char *name; start_fn *fn; } starts[] = {
    NAMED(MPI_Isend),     NAMED(MPI_Issend),     NAMED(MPI_Irsend),     NAMED(MPI_Ibsend),
    NAMED(MPI_Send_init), NAMED(MPI_Ssend_init), NAMED(MPI_Rsend_init), NAMED(MPI_Bsend_init),
};
static const struct { const char *name; large_start_fn *fn; } large_starts[] = {
    NAMED(MPI_Isend_c),     NAMED(MPI_Issend_c),     NAMED(MPI_Irsend_c),     NAMED(MPI_Ibsend_c),
    NAMED(MPI_Send_init_c), NAMED(MPI_Ssend_init_c), NAMED(MPI_Rsend_init_c), NAMED(MPI_Bsend_init_c),
};

static void blocking_sends(void)
{
    for (int i = 0; i < 4; i++) {
        MPI_Request r = posted();
        CHECK_OK(sends[i].fn(MPI_BOTTOM, 1, from, next, TAG, MPI_COMM_WORLD));
        CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        check_got(sends[i].name);
        r = posted();
        CHECK_OK(large_sends[i].fn(MPI_BOTTOM, 1, from, next, TAG, MPI_COMM_WORLD));
        CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        check_got(large_sends[i].name);
    }
}

static void complete(MPI_Request s, MPI_Request r, bool persistent, const char *call)
{
    if (persistent) CHECK_OK(MPI_Start(&s));
    CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_Wait(&s, MPI_STATUS_IGNORE));
    if (persistent) CHECK_OK(MPI_Request_free(&s));
    check_got(call);
}

static void started_sends(void)
{
    for (int i = 0; i < 8; i++) {
        MPI_Request r = posted(), s;
        CHECK_OK(starts[i].fn(MPI_BOTTOM, 1, from, next, TAG, MPI_COMM_WORLD, &s));
        complete(s, r, i >= 4, starts[i].name);
        r = posted();
        CHECK_OK(large_starts[i].fn(MPI_BOTTOM, 1, from, next, TAG, MPI_COMM_WORLD, &s));
        complete(s, r, i >= 4, large_starts[i].name);
    }
}

/* ---- receives ---- */

static MPI_Request sending(void)
{
    MPI_Request s;
    CHECK_OK(MPI_Isend(MPI_BOTTOM, 1, from, next, TAG, MPI_COMM_WORLD, &s));
    return s;
}

static void blocking_receives(void)
{
    MPI_Message m;
    for (int i = 0; i < 4; i++) {
        static const char *const names[] = {"MPI_Recv", "MPI_Recv_c", "MPI_Mrecv", "MPI_Mrecv_c"};
        MPI_Request s = sending();
        if (i > 1) CHECK_OK(MPI_Mprobe(previous, TAG, MPI_COMM_WORLD, &m, MPI_STATUS_IGNORE));
        CHECK_OK(i == 0   ? MPI_Recv(MPI_BOTTOM, 1, to, previous, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
                 : i == 1 ? MPI_Recv_c(MPI_BOTTOM, 1, to, previous, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
                 : i == 2 ? MPI_Mrecv(MPI_BOTTOM, 1, to, &m, MPI_STATUS_IGNORE)
                          : MPI_Mrecv_c(MPI_BOTTOM, 1, to, &m, MPI_STATUS_IGNORE));
        CHECK_OK(MPI_Wait(&s, MPI_STATUS_IGNORE));
        check_got(names[i]);
    }
}

static void started_receives(void)
{
    MPI_Message m;
    for (int i = 0; i < 6; i++) {
        static const char *const names[] = {"MPI_Irecv", "MPI_Irecv_c", "MPI_Imrecv", "MPI_Imrecv_c", "MPI_Recv_init", "MPI_Recv_init_c"};
        MPI_Request r, s = sending();
        if (i == 2 || i == 3) CHECK_OK(MPI_Mprobe(previous, TAG, MPI_COMM_WORLD, &m, MPI_STATUS_IGNORE));
        CHECK_OK(i == 0   ? MPI_Irecv(MPI_BOTTOM, 1, to, previous, TAG, MPI_COMM_WORLD, &r)
                 : i == 1 ? MPI_Irecv_c(MPI_BOTTOM, 1, to, previous, TAG, MPI_COMM_WORLD, &r)
                 : i == 2 ? MPI_Imrecv(MPI_BOTTOM, 1, to, &m, &r)
                 : i == 3 ? MPI_Imrecv_c(MPI_BOTTOM, 1, to, &m, &r)
                 : i == 4 ? MPI_Recv_init(MPI_BOTTOM, 1, to, previous, TAG, MPI_COMM_WORLD, &r)
                          : MPI_Recv_init_c(MPI_BOTTOM, 1, to, previous, TAG, MPI_COMM_WORLD, &r));
        if (i >= 4) CHECK_OK(MPI_Start(&r));
        CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        if (i >= 4) CHECK_OK(MPI_Request_free(&r));
        CHECK_OK(MPI_Wait(&s, MPI_STATUS_IGNORE));
        check_got(names[i]);
    }
}

/* ---- both at once ---- */

static void pairs(void)
{
    MPI_Comm c = MPI_COMM_WORLD;
    MPI_Request r;
    CHECK_OK(MPI_Sendrecv(MPI_BOTTOM, 1, from, next, TAG, MPI_BOTTOM, 1, to, previous, TAG, c, MPI_STATUS_IGNORE));
    check_got("MPI_Sendrecv");
    CHECK_OK(MPI_Sendrecv_c(MPI_BOTTOM, 1, from, next, TAG, MPI_BOTTOM, 1, to, previous, TAG, c, MPI_STATUS_IGNORE));
    check_got("MPI_Sendrecv_c");
    CHECK_OK(MPI_Isendrecv(MPI_BOTTOM, 1, from, next, TAG, MPI_BOTTOM, 1, to, previous, TAG, c, &r));
    CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    check_got("MPI_Isendrecv");
    CHECK_OK(MPI_Isendrecv_c(MPI_BOTTOM, 1, from, next, TAG, MPI_BOTTOM, 1, to, previous, TAG, c, &r));
    CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    check_got("MPI_Isendrecv_c");
    for (int i = 0; i < 4; i++) {
        static const char *const names[] = {"MPI_Sendrecv_replace", "MPI_Sendrecv_replace_c", "MPI_Isendrecv_replace", "MPI_Isendrecv_replace_c"};
        memcpy(received, sent, sizeof sent);
        CHECK_OK(i == 0   ? MPI_Sendrecv_replace(MPI_BOTTOM, 1, to, next, TAG, previous, TAG, c, MPI_STATUS_IGNORE)
                 : i == 1 ? MPI_Sendrecv_replace_c(MPI_BOTTOM, 1, to, next, TAG, previous, TAG, c, MPI_STATUS_IGNORE)
                 : i == 2 ? MPI_Isendrecv_replace(MPI_BOTTOM, 1, to, next, TAG, previous, TAG, c, &r)
                          : MPI_Isendrecv_replace_c(MPI_BOTTOM, 1, to, next, TAG, previous, TAG, c, &r));
        if (i > 1) CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        check_got(names[i]);
    }
}

/* ---- packing: packed data of this rank, as if it had come from the one before ---- */

static void packing(void)
{
    char room[256];
    int at = 0;
    MPI_Count large_at = 0;
    MPI_Aint external_at = 0;
    for (int i = 0; i < N; i++) kept[i] = sent[i], sent[i] = 100 * previous + i;
    CHECK_OK(MPI_Pack(MPI_BOTTOM, 1, from, room, sizeof room, &at, MPI_COMM_WORLD));
    at = 0;
    CHECK_OK(MPI_Unpack(room, sizeof room, &at, MPI_BOTTOM, 1, to, MPI_COMM_WORLD));
    check_got("MPI_Unpack");
    CHECK_OK(MPI_Pack_c(MPI_BOTTOM, 1, from, room, sizeof room, &large_at, MPI_COMM_WORLD));
    large_at = 0;
    CHECK_OK(MPI_Unpack_c(room, sizeof room, &large_at, MPI_BOTTOM, 1, to, MPI_COMM_WORLD));
    check_got("MPI_Unpack_c");
    CHECK_OK(MPI_Pack_external("external32", MPI_BOTTOM, 1, from, room, sizeof room, &external_at));
    external_at = 0;
    CHECK_OK(MPI_Unpack_external("external32", room, sizeof room, &external_at, MPI_BOTTOM, 1, to));
    check_got("MPI_Unpack_external");
    large_at = 0;
    CHECK_OK(MPI_Pack_external_c("external32", MPI_BOTTOM, 1, from, room, sizeof room, &large_at));
    large_at = 0;
    CHECK_OK(MPI_Unpack_external_c("external32", room, sizeof room, &large_at, MPI_BOTTOM, 1, to));
    check_got("MPI_Unpack_external_c");
    memcpy(sent, kept, sizeof sent);
}

/* ---- */

static MPI_Datatype by_address(const int *data)
{
    MPI_Datatype type;
    MPI_Aint address[2];
    int n[2] = {2, N - 2};
    MPI_Get_address(data, &address[0]);
    MPI_Get_address(data + 2, &address[1]);
    MPI_Type_create_hindexed(2, n, address, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

int main(int argc, char **argv)
{
    static char buffer[4096];
    int size;
    check_start(&argc, &argv);
    next = (check_rank + 1) % check_size, previous = (check_rank + check_size - 1) % check_size;
    for (int i = 0; i < N; i++) sent[i] = 100 * check_rank + i;
    from = by_address(sent);
    to = by_address(received);
    void *attached = buffer;
    MPI_Buffer_attach(buffer, sizeof buffer);
    blocking_sends();
    started_sends();
    blocking_receives();
    started_receives();
    pairs();
    packing();
    MPI_Buffer_detach(&attached, &size);
    MPI_Type_free(&from);
    MPI_Type_free(&to);
    return check_done();
}
