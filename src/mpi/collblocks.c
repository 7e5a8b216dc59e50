/* collblocks.c - see collblocks.h. */
#include "mpi/collblocks.h"

const struct names blocks_sent = {"send", "sendbuf", "sendcounts", "sdispls", "sendtype"};
const struct names blocks_sent_each = {"send", "sendbuf", "sendcounts", "sdispls", "sendtypes"};
const struct names blocks_received = {"recv", "recvbuf", "recvcounts", "rdispls", "recvtype"};
const struct names blocks_received_each = {"recv", "recvbuf", "recvcounts", "rdispls", "recvtypes"};
const struct names blocks_gathered = {"recv", "recvbuf", "recvcounts", "displs", "recvtype"};

static int widen_blocks(struct comm *c, const char *call, int n, struct blocks *b)
{
    if (!n) return MPI_SUCCESS;
    if (!b->counts && !b->wide_counts) return bad_null(c, call, b->names->counts);
    if (!b->displs && !b->wide_displs) return bad_null(c, call, b->names->displs);
    if (b->counts) b->wide_counts = wide_ints(&b->wide[0], n, b->counts);
    if (b->displs) b->wide_displs = wide_ints(&b->wide[1], n, b->displs);
    if (!b->wide_counts || !b->wide_displs)
        return report(c, call, MPI_ERR_NO_MEM, "no memory for arrays of %d entries", n);
    return MPI_SUCCESS;
}

static int open_types(struct comm *c, const char *call, int n, struct blocks *b)
{
    if (!b->each) {
        b->type = type_of(b->datatype);
        return type_ready(b->type) ? MPI_SUCCESS : bad_type(c, call, b->datatype, b->names->type);
    }
    if (!n) return MPI_SUCCESS;
    if (!b->datatypes) return bad_null(c, call, b->names->type);
    b->types = malloc((size_t)n * sizeof(struct type *));
    if (!b->types) return report(c, call, MPI_ERR_NO_MEM, "no memory for arrays of %d entries", n);
    for (int i = 0; i < n; i++) {
        b->types[i] = type_of(b->datatypes[i]);
        if (!type_ready(b->types[i])) return bad_type(c, call, b->datatypes[i], b->names->type);
    }
    return MPI_SUCCESS;
}

static int check_counts(struct comm *c, const char *call, int n, const struct blocks *b)
{
    for (int i = 0; i < n; i++) {
        if (b->wide_counts[i] < 0)
            return report(c, call, MPI_ERR_COUNT, "argument %s[%d] is %lld, which is negative", b->names->counts, i,
                          (long long)b->wide_counts[i]);
        if (!buffer_ok(b->buf, b->wide_counts[i], b->types ? b->types[i] : b->type)) return bad_buffer(c, call, b->names->buf);
    }
    return MPI_SUCCESS;
}

static int open_blocks(struct comm *c, const char *call, int n, struct blocks *b, struct wide room[2])
{
    b->wide = room;
    room[0].many = room[1].many = NULL;
    if (b->buf == MPI_IN_PLACE) return bad_in_place(c, call, b->names->side);
    int rc = widen_blocks(c, call, n, b);
    if (!rc) rc = open_types(c, call, n, b);
    if (!rc) rc = check_counts(c, call, n, b);
    return rc;
}

/* Also of a side that is not opened, or was not with success. */
static void close_blocks(struct blocks *b)
{
    if (!b || !b->wide) return;
    free(b->types);
    wide_close(&b->wide[0]);
    wide_close(&b->wide[1]);
}

static void put_sent(struct coll_call *a, const struct blocks *b)
{
    a->sendbuf = b->buf;
    a->scounts = b->wide_counts;
    a->sdispls = b->wide_displs;
    a->stype = b->type;
    a->stypes = b->types;
}

static void put_received(struct coll_call *a, const struct blocks *b)
{
    a->recvbuf = (void *)(uintptr_t)b->buf;
    a->rcounts = b->wide_counts;
    a->rdispls = b->wide_displs;
    a->rtype = b->type;
    a->rtypes = b->types;
}

int carry_out_blocks(struct use u, struct comm *c, struct coll_call *a, struct blocks *send, int n_send, struct blocks *recv, int n_recv)
{
    struct wide send_room[2], recv_room[2]; /* not in struct blocks, which is set to zero as a whole */
    int rc = send ? open_blocks(c, u.call, n_send, send, send_room) : MPI_SUCCESS;
    if (!rc && recv) rc = open_blocks(c, u.call, n_recv, recv, recv_room);
    if (!rc) {
        if (send) put_sent(a, send);
        if (recv) put_received(a, recv);
        rc = carry_out(u, c, a);
    }
    close_blocks(send);
    close_blocks(recv);
    return rc;
}
