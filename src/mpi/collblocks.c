/* collblocks.c - see collblocks.h. */
#include "mpi/collblocks.h"

#include <stdio.h>

const struct names blocks_sent = {"sendbuf", "sendcounts", "sdispls", "sendtype"};
const struct names blocks_sent_each = {"sendbuf", "sendcounts", "sdispls", "sendtypes"};
const struct names blocks_received = {"recvbuf", "recvcounts", "rdispls", "recvtype"};
const struct names blocks_received_each = {"recvbuf", "recvcounts", "rdispls", "recvtypes"};
const struct names blocks_gathered = {"recvbuf", "recvcounts", "displs", "recvtype"};

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

/* The type of a block without data may be MPI_DATATYPE_NULL: it is never looked at (see data_of_nobody). */
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
        if (unlikely(!b->types[i]) && !b->wide_counts[i] && b->datatypes[i] == MPI_DATATYPE_NULL)
            b->types[i] = type_of(MPI_BYTE);
        if (!type_ready(b->types[i])) return bad_type(c, call, b->datatypes[i], b->names->type);
    }
    return MPI_SUCCESS;
}

static const struct type *type_at(const struct blocks *b, int i) { return b->types ? b->types[i] : b->type; }

/* Where a block begins, in bytes from the buffer. Displacements are bytes where each block has a type. */
static int64_t offset_at(const struct blocks *b, int i)
{
    return b->wide_displs[i] * (b->each ? 1 : type_at(b, i)->extent);
}

/* No address in block i is beyond 2^63. Its count is checked. */
static bool in_reach(const struct blocks *b, int i)
{
    const struct type *t = type_at(b, i);
    int64_t off, end;
    if (__builtin_mul_overflow(b->wide_displs[i], b->each ? 1 : t->extent, &off)) return false;
    return !__builtin_add_overflow(off, t->true_lb, &end) &&
           !__builtin_add_overflow(end, b->wide_counts[i] * t->extent, &end);
}

/* MPI_BOTTOM: the block lies where its displacement says. No process has anything in the first page of its memory. */
static bool absolute(const struct blocks *b, int i)
{
    enum { PAGE = 4096 };
    int64_t at = offset_at(b, i) + type_at(b, i)->true_lb;
    return !b->buf && (at < 0 || at >= PAGE);
}

static TERN_COLD int bad_entry(struct comm *c, const char *call, const char *argument, int i, int64_t count,
                               const struct type *t)
{
    char name[64];
    snprintf(name, sizeof name, "%s[%d]", argument, i);
    return count < 0 ? bad_count_named(c, call, count, name) : too_many(c, call, name, count, 1, t);
}

static TERN_COLD int bad_displacement(struct comm *c, const char *call, const struct blocks *b, int i)
{
    return report(c, call, MPI_ERR_COUNT,
                  "argument %s[%d] is %lld, of a datatype with an extent of %lld bytes: beyond any address",
                  b->names->displs, i, (long long)b->wide_displs[i], (long long)type_at(b, i)->extent);
}

/* Does one look at all of a side say that nothing is wrong with it? Numbers of 31 bits, of a type of 30, have products and sums
 * of less than 63. */
static bool is_small(int n, const struct blocks *b)
{
    const struct type *t = b->type;
    uint64_t bits = 0;
    if (b->each || (uintptr_t)b->buf <= (uintptr_t)MPI_IN_PLACE) return false;
    for (int i = 0; i < n; i++) bits |= (uint64_t)b->wide_counts[i] | (uint64_t)b->wide_displs[i];
    return !(bits >> 31 | (uint64_t)(t->size | t->extent | t->true_lb) >> 30 | (uint64_t)(n * t->size) >> 31);
}

/* Also that all blocks together can be addressed: some algorithms put them one behind the other. */
static int check_counts(struct comm *c, const char *call, int n, const struct blocks *b)
{
    int64_t bytes = 0;
    if (likely(is_small(n, b))) return MPI_SUCCESS;
    for (int i = 0; i < n; i++) {
        const struct type *t = type_at(b, i);
        int64_t count = b->wide_counts[i];
        if (!type_takes(t, count) || __builtin_add_overflow(bytes, count * t->size, &bytes))
            return bad_entry(c, call, b->names->counts, i, count, t);
        if (!count) continue;
        if (!in_reach(b, i)) return bad_displacement(c, call, b, i);
        if (!buffer_ok(b->buf, count, t) && !absolute(b, i)) return bad_buffer(c, call, b->buf, b->names->buf);
    }
    return MPI_SUCCESS;
}

static int open_blocks(struct comm *c, const char *call, int n, struct blocks *b, struct wide room[2])
{
    b->wide = room;
    room[0].many = room[1].many = NULL;
    if (b->buf == MPI_IN_PLACE) return bad_buffer(c, call, b->buf, b->names->buf);
    int rc = widen_blocks(c, call, n, b);
    if (!rc) rc = open_types(c, call, n, b);
    if (!rc) rc = check_counts(c, call, n, b);
    return rc;
}

static uintptr_t first_of(const struct blocks *b, int i)
{
    return first_byte(b->buf, offset_at(b, i), b->wide_counts[i], type_at(b, i));
}

/* Is the first byte of block i at this address? None is at 0. */
static inline bool begins_at(const struct blocks *b, int i, uintptr_t at)
{
    return at && unlikely((uintptr_t)b->buf + (uintptr_t)offset_at(b, i) + (uintptr_t)type_at(b, i)->true_lb == at) && first_of(b, i);
}

/* What is sent must not lie where something is received (6.2). Only the addresses of first bytes are compared. A side that is
 * NULL is one buffer, or none. */
static int check_apart(struct comm *c, const char *call, const struct coll_call *a, const struct blocks *send,
                       int n_send, const struct blocks *recv, int n_recv)
{
    uintptr_t sent = a->stype ? first_byte(a->sendbuf, 0, a->scount, a->stype) : 0;
    uintptr_t received = a->rtype ? first_byte(a->recvbuf, 0, a->rcount, a->rtype) : 0;
    int n = !send ? n_recv : !recv || n_send < n_recv ? n_send : n_recv;
    for (int i = 0; i < n; i++)
        if (recv ? begins_at(recv, i, send ? first_of(send, i) : sent) : begins_at(send, i, received))
            return bad_aliases(c, call, "sendbuf", "recvbuf");
    return MPI_SUCCESS;
}

/* Also of a side that is not opened, or was not with success. */
static void close_blocks(struct blocks *b)
{
    if (!b || !b->wide) return;
    if (b->types) free(b->types);
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
    if (!rc) rc = check_apart(c, u.call, a, send, n_send, recv, n_recv);
    if (!rc) {
        if (send) put_sent(a, send);
        if (recv) put_received(a, recv);
        rc = carry_out(u, c, a);
    }
    close_blocks(send);
    close_blocks(recv);
    return rc;
}
