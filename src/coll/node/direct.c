/*
 * direct.c - moving large buffers inside a node; see direct.h. Reductions are in direct_reduce.c.
 *
 * Ranks that read the same buffer begin at different places of it: readers of one page get into each other's way in the
 * kernel (page references), and with the buffer cut by ranks they meet seldom.
 */
#include "coll/node/direct.h"
#include "coll/node/pairs.h"
#include "base/err.h"
#include "base/var.h"
#include "copy/copy.h"
#include "pt2pt/api.h"
#include "transport/endpoint.h"
#include "type/cursor.h"

#include <stdlib.h>
#include <string.h>

/* ---- saying where ---- */

static void write_words(struct node *n, uint32_t seq, uint64_t first, uint64_t second)
{
    uint64_t w[2] = {first, second};
    memcpy(node_slot(n, seq, n->rank)->payload, w, sizeof w);
}

struct node_place node_say(struct node *n, int root, struct node_place place)
{
    uint32_t seq;
    if (node_begin(n, false, NODE_BY_PLACES, &seq)) return (struct node_place){0};
    if (n->rank == root) {
        write_words(n, seq, place.at, place.bytes);
        node_signal(n, seq, root);
        node_announce(n);
    } else if (node_wait_for(n, seq, root)) {
        place = (struct node_place){0};
    } else {
        memcpy(&place, node_slot(n, seq, root)->payload, sizeof place);
    }
    node_finish(n, seq, false);
    return place;
}

int node_say_all(struct node *n, uint64_t first, uint64_t second, struct node_said *said)
{
    uint32_t seq;
    int rc = node_begin(n, false, NODE_BY_PLACES, &seq);
    if (rc) return rc;
    write_words(n, seq, first, second);
    node_contribute(n, seq);
    rc = node_wait_for(n, seq, NODE_ALL);
    for (int r = 0; r < n->size; r++) memcpy(said->place[r], node_slot(n, seq, r)->payload, sizeof said->place[r]);
    node_finish(n, seq, true);
    return rc;
}

void node_close(struct node *n, bool wait)
{
    uint32_t seq;
    if (node_begin(n, false, NODE_BY_PLACES, &seq)) return; /* as below */
    node_contribute(n, seq);
    if (wait) node_wait_for(n, seq, NODE_ALL); /* a failure is found by node_direct_run */
    node_finish(n, seq, wait);
}

/* ---- copying ---- */

/* Bytes of one system call. Between two of them other messages have their turn. */
#define PIECE ((size_t)512 << 10)

static int move(struct node *n, int rank, uint64_t there, char *here, size_t bytes, bool store)
{
    struct lane *l = n->comm->lane;
    int rc = 0;
    if (!there) return err_set(TERN_ERR_NOMEM, "rank %d had no memory to pack its buffer", rank);
    lane_enter(l);
    struct peer *p = peer_get(comm_index(n->comm, rank));
    if (!p) rc = err_code();
    for (size_t at = 0; at < bytes && !rc; at += PIECE) {
        size_t part = min_size(PIECE, bytes - at);
        struct iovec mine = {here + at, part}, its = {(void *)(uintptr_t)(there + at), part};
        if (at) lane_progress(l);
        if (!(p->ep.caps & TP_CAP_GETPUT))
            rc = TERN_ERR_UNSUPPORTED;
        else
            rc = store ? ep_put(&p->ep, &mine, 1, &its, 1) : ep_get(&p->ep, &mine, 1, &its, 1);
    }
    lane_leave(l);
    return rc == TERN_ERR_UNSUPPORTED
               ? err_set(TERN_ERR_SYSTEM, "the system no longer lets rank %d's memory be reached", rank)
               : rc;
}

int node_fetch(struct node *n, int rank, void *to, uint64_t place, size_t bytes)
{
    return bytes ? move(n, rank, place, to, bytes, false) : 0;
}

int node_store(struct node *n, int rank, uint64_t place, const void *from, size_t bytes)
{
    return bytes ? move(n, rank, place, (char *)(uintptr_t)from, bytes, true) : 0;
}

/* packed: the copy begins with the data; own: it is a copy in any case. */
struct node_flat node_flat(const void *buf, int64_t count, const struct type *t, bool packed, bool own)
{
    struct node_flat f = {.bytes = (size_t)(count * t->size)};
    if (t->contig && !own) {
        f.at = (char *)(uintptr_t)buf + t->true_lb;
        return f;
    }
    f.at = f.copy = malloc(f.bytes + 1);
    if (f.at && packed) {
        struct type_cursor c;
        type_cursor_init(&c, t, count, buf);
        type_pack(&c, f.at, f.bytes);
    }
    return f;
}

void node_flat_end(struct node_flat *f, void *buf, int64_t count, const struct type *t, bool unpacked)
{
    if (f->copy && unpacked) {
        struct type_cursor c;
        type_cursor_init(&c, t, count, buf);
        type_unpack(&c, f->copy, f->bytes);
    }
    free(f->copy);
}

static uint64_t place_of(const struct node_flat *f) { return (uintptr_t)f->at; }

static int no_memory(void) { return err_set(TERN_ERR_NOMEM, "no memory to pack the buffer of a collective"); }

/* A block from a rank's memory into the user's buffer. */
static int fetch_block(struct node *n, int rank, uint64_t place, void *buf, int64_t count, const struct type *t)
{
    struct node_flat f = node_flat(buf, count, t, false, false);
    int rc = f.at ? node_fetch(n, rank, f.at, place, f.bytes) : no_memory();
    node_flat_end(&f, buf, count, t, !rc);
    return rc;
}

static char *block_at(const void *buf, int rank, int64_t count, const struct type *t)
{
    return (char *)(uintptr_t)buf + rank * count * t->extent;
}

/* ---- from one, to one ---- */

/* Ranks that do not agree on the length would read, or write, behind a buffer of another process. */
static int check_length(const struct coll_call *a, int rank, uint64_t theirs, uint64_t mine)
{
    if (likely(theirs == mine)) return 0;
    return err_set(TERN_ERR_TRUNCATE, "rank %d has a block of %llu bytes in a %s, where this rank has %llu", rank,
                   (unsigned long long)theirs, coll_kind_name(a->kind), (unsigned long long)mine);
}

static int take_bcast(struct node *n, const struct coll_call *a, const struct node_place *root)
{
    struct node_flat f = node_flat(a->recvbuf, a->rcount, a->rtype, false, false);
    size_t cut = f.bytes / (size_t)n->size * (size_t)n->rank & ~(size_t)4095; /* begin elsewhere than the others */
    int rc = f.at ? check_length(a, a->root, root->bytes, f.bytes) : no_memory();
    if (!rc) rc = node_fetch(n, a->root, f.at + cut, root->at + cut, f.bytes - cut);
    if (!rc) rc = node_fetch(n, a->root, f.at, root->at, cut);
    node_flat_end(&f, a->recvbuf, a->rcount, a->rtype, !rc);
    return rc;
}

static int direct_bcast(struct node *n, const struct coll_call *a)
{
    bool root = n->rank == a->root;
    struct node_flat f = {0};
    if (root) f = node_flat(a->recvbuf, a->rcount, a->rtype, true, false);
    struct node_place place = node_say(n, a->root, (struct node_place){place_of(&f), f.bytes});
    int rc = root ? f.at ? 0 : no_memory() : take_bcast(n, a, &place);
    node_close(n, root);
    free(f.copy);
    return rc;
}

static int direct_scatter(struct node *n, const struct coll_call *a)
{
    bool root = n->rank == a->root;
    struct node_flat f = {0};
    int rc = 0;
    if (root) f = node_flat(a->sendbuf, a->scount * n->size, a->stype, true, false);
    struct node_place place = node_say(n, a->root, (struct node_place){place_of(&f), f.bytes / (size_t)n->size});
    if (!root) rc = check_length(a, a->root, place.bytes, (uint64_t)(a->rcount * a->rtype->size));
    if (!root && !rc)
        rc = fetch_block(n, a->root, place.at ? place.at + place.bytes * (size_t)n->rank : 0, a->recvbuf, a->rcount, a->rtype);
    else if (root && a->recvbuf != MPI_IN_PLACE)
        type_copy_across(a->recvbuf, a->rcount, a->rtype, block_at(a->sendbuf, n->rank, a->scount, a->stype), a->scount,
                         a->stype);
    node_close(n, root);
    if (root && !f.at) rc = no_memory();
    free(f.copy);
    return rc;
}

/* Each rank writes its block to the root: so all cores copy. */
static int leave_block(struct node *n, const struct coll_call *a, const struct node_place *root)
{
    struct node_flat f = node_flat(a->sendbuf, a->scount, a->stype, true, false);
    int rc = f.at ? check_length(a, a->root, root->bytes, f.bytes) : no_memory();
    if (!rc) rc = node_store(n, a->root, root->at ? root->at + f.bytes * (size_t)n->rank : 0, f.at, f.bytes);
    free(f.copy);
    return rc;
}

/* The end of a gather: each says how long its block was, since one that did not fit has not been written. */
static int close_gather(struct node *n, const struct coll_call *a, uint64_t mine)
{
    uint32_t seq;
    int rc = node_begin(n, false, NODE_BY_PLACES, &seq);
    if (rc) return rc;
    write_words(n, seq, mine, 0);
    node_contribute(n, seq);
    if (n->rank == a->root) rc = node_wait_for(n, seq, NODE_ALL);
    for (int r = 0; r < n->size && n->rank == a->root && !rc; r++) {
        uint64_t theirs;
        memcpy(&theirs, node_slot(n, seq, r)->payload, sizeof theirs);
        rc = check_length(a, r, theirs, mine);
    }
    node_finish(n, seq, n->rank == a->root);
    return rc;
}

/* The blocks of the others out of the copy that they wrote to, if it is one. */
static void unpack_blocks(struct node *n, const struct coll_call *a, const struct node_flat *f)
{
    size_t one = f->bytes / (size_t)n->size;
    for (int r = 0; r < n->size && f->copy; r++) {
        struct type_cursor c;
        if (r == n->rank) continue;
        type_cursor_init(&c, a->rtype, a->rcount, block_at(a->recvbuf, r, a->rcount, a->rtype));
        type_unpack(&c, f->copy + one * (size_t)r, one);
    }
}

static int direct_gather(struct node *n, const struct coll_call *a)
{
    bool root = n->rank == a->root;
    struct node_flat f = {0};
    int rc = 0;
    if (root) f = node_flat(a->recvbuf, a->rcount * n->size, a->rtype, false, false);
    struct node_place place = node_say(n, a->root, (struct node_place){place_of(&f), f.bytes / (size_t)n->size});
    if (!root)
        rc = leave_block(n, a, &place);
    else if (a->sendbuf != MPI_IN_PLACE)
        type_copy_across(block_at(a->recvbuf, n->rank, a->rcount, a->rtype), a->rcount, a->rtype, a->sendbuf, a->scount,
                         a->stype);
    int closed = close_gather(n, a, root ? place.bytes : (uint64_t)(a->scount * a->stype->size));
    if (root) rc = f.at ? closed : no_memory();
    if (root && !rc) unpack_blocks(n, a, &f);
    free(f.copy);
    return rc;
}

/* ---- from all to all ---- */

/* Takes a block from each of the others, beginning with the next rank: no two read from the same one, if all keep pace.
 */
static int take_blocks(struct node *n, const struct coll_call *a, const struct node_said *said, size_t off)
{
    int rc = 0;
    for (int i = 1; i < n->size && !rc; i++) {
        int r = (n->rank + i) % n->size;
        uint64_t place = said->place[r][0];
        rc = fetch_block(n, r, place ? place + off : 0, block_at(a->recvbuf, r, a->rcount, a->rtype), a->rcount,
                         a->rtype);
    }
    return rc;
}

static int direct_allgather(struct node *n, const struct coll_call *a)
{
    struct node_said said;
    bool in_place = a->sendbuf == MPI_IN_PLACE;
    void *own = block_at(a->recvbuf, n->rank, a->rcount, a->rtype);
    struct node_flat f = in_place ? node_flat(own, a->rcount, a->rtype, true, false)
                                  : node_flat(a->sendbuf, a->scount, a->stype, true, false);
    int rc = node_say_all(n, place_of(&f), 0, &said);
    if (!in_place) type_copy_across(own, a->rcount, a->rtype, a->sendbuf, a->scount, a->stype);
    if (!rc) rc = take_blocks(n, a, &said, 0);
    node_close(n, true);
    free(f.copy);
    return f.at ? rc : no_memory();
}

static void *block_v_at(const struct coll_call *a, int rank)
{
    return (char *)a->recvbuf + a->rdispls[rank] * a->rtype->extent;
}

/* As take_blocks, of the lengths that all ranks know; what others say of theirs must agree. */
static int take_blocks_v(struct node *n, const struct coll_call *a, const struct node_said *said)
{
    int rc = 0;
    for (int i = 1; i < n->size && !rc; i++) {
        int r = (n->rank + i) % n->size;
        rc = check_length(a, r, said->place[r][1], (uint64_t)(a->rcounts[r] * a->rtype->size));
        if (!rc) rc = fetch_block(n, r, said->place[r][0], block_v_at(a, r), a->rcounts[r], a->rtype);
    }
    return rc;
}

static int direct_allgatherv(struct node *n, const struct coll_call *a)
{
    struct node_said said;
    bool in_place = a->sendbuf == MPI_IN_PLACE;
    void *own = block_v_at(a, n->rank);
    int64_t count = a->rcounts[n->rank];
    struct node_flat f = in_place ? node_flat(own, count, a->rtype, true, false)
                                  : node_flat(a->sendbuf, a->scount, a->stype, true, false);
    int rc = node_say_all(n, place_of(&f), f.bytes, &said);
    if (!in_place) type_copy_across(own, count, a->rtype, a->sendbuf, a->scount, a->stype);
    if (!rc) rc = take_blocks_v(n, a, &said);
    node_close(n, true);
    free(f.copy);
    return f.at ? rc : no_memory();
}

static int direct_alltoall(struct node *n, const struct coll_call *a)
{
    struct node_said said;
    bool in_place = a->sendbuf == MPI_IN_PLACE;
    const void *from = in_place ? a->recvbuf : a->sendbuf;
    int64_t count = in_place ? a->rcount : a->scount;
    const struct type *t = in_place ? a->rtype : a->stype;
    struct node_flat f = node_flat(from, count * n->size, t, true, in_place);
    int rc = node_say_all(n, place_of(&f), 0, &said);
    void *own = block_at(a->recvbuf, n->rank, a->rcount, a->rtype);
    if (!in_place) type_copy_across(own, a->rcount, a->rtype, block_at(from, n->rank, count, t), count, t);
    if (!rc) rc = take_blocks(n, a, &said, (size_t)(a->rcount * a->rtype->size) * (size_t)n->rank);
    node_close(n, true);
    free(f.copy);
    return f.at ? rc : no_memory();
}

/* ---- which ---- */

/*
 * From how many bytes on (of the longest block; else as in node_run) this is faster than what comes next, for three ranks
 * and more, and for two; 0: never. Two ranks, whose cores are near or far apart (8 bytes cross in 0.06 or 0.25 us), us,
 * wide slots and this: allgather of 64 KB 9.5 and 11.3 near, 26 and 14.5 far, alltoall 10.8 and 12.1, 26 and 13.2;
 * allgatherv, messages and this, 16.1 and 12.8, 18.5 and 13.6; of 1 MB all alike.
 */
static const struct direct {
    int (*run)(struct node *, const struct coll_call *);
    int64_t least, least_of_two;
} direct[COLL_KINDS] = {
    [COLL_BCAST] = {direct_bcast, 16 << 10, 0},
    [COLL_SCATTER] = {direct_scatter, 16 << 10, 0},
    [COLL_GATHER] = {direct_gather, 16 << 10, 0},
    [COLL_ALLGATHER] = {direct_allgather, 16 << 10, 16 << 10},
    [COLL_ALLGATHERV] = {direct_allgatherv, 0, 16 << 10},
    [COLL_ALLTOALL] = {direct_alltoall, 16 << 10, 16 << 10},
    [COLL_REDUCE] = {node_direct_reduce, 32 << 10, 0},
    [COLL_ALLREDUCE] = {node_direct_reduce, 32 << 10, 0},
    [COLL_REDUCE_SCATTER_BLOCK] = {node_direct_reduce_scatter, 16 << 10, 0},
};

int64_t node_longest_block(const struct coll_call *a, int ranks, int64_t bytes)
{
    int64_t most = 0;
    if (!coll_has_blocks(a->kind)) return bytes;
    for (int r = 0; r < ranks; r++)
        if (a->rcounts[r] > most) most = a->rcounts[r];
    return most * a->rtype->size;
}

bool node_direct_suits(const struct comm *c, const struct coll_call *a, int64_t bytes)
{
    const struct direct *d = &direct[a->kind];
    int64_t least = c->size > 2 ? d->least : d->least_of_two;
    if (!d->run || !least || c->size < 2 || !var_int(VAR_COLL_DIRECT) || !var_int(VAR_COLL_NODE)) return false;
    if (node_longest_block(a, c->size, bytes) < least) return false;
    return !coll_reduces(a->kind) || (a->rtype->contig && a->rtype->size > 0);
}

bool node_direct_run(struct node *n, const struct coll_call *a, int *rc_p)
{
    bool all;
    node_tell_reach(n);
    *rc_p = node_await_all(n, NODE_REACHES, &all);
    if (*rc_p || !all) return false;
    *rc_p = direct[a->kind].run(n, a);
    if (unlikely(node_failed(n))) *rc_p = node_failed(n);
    return true;
}
