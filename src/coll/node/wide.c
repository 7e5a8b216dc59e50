/*
 * wide.c - see wide.h: the memory, and an operation as slices of the vector, or of each block, one after the other. Each slice is what a
 * small operation is: a rank that has something leaves it in its wide slot, and one that needs something takes it. What a rank has
 * for itself does not go through the slots.
 *
 * Where ranks share cores and all get a combination of all, or of all before them, the last one that arrives makes it
 * for everybody: it has just been switched in, and the others wait. With a core for each all combine at the same time.
 */
#include "coll/node/wide.h"
#include "base/var.h"
#include "coll/node/blocks.h"
#include "coll/node/node.h"
#include "copy/copy.h"
#include "transport/endpoint.h"
#include "transport/peer.h"

/* Sets of kinds, of those that this is for (way.h): moved blocks; each rank gets another block of the result; a result of lower ranks. */
enum {
    MOVES = 1u << COLL_BCAST | 1u << COLL_SCATTER | 1u << COLL_GATHER | 1u << COLL_ALLGATHER | 1u << COLL_ALLGATHERV | 1u << COLL_ALLTOALL,
    SPREADS = 1u << COLL_REDUCE_SCATTER_BLOCK | 1u << COLL_REDUCE_SCATTER,
    SCANS = 1u << COLL_SCAN | 1u << COLL_EXSCAN
};

static bool is_of(uint32_t kinds, const struct coll_call *a) { return kinds >> a->kind & 1; }

/* An operation at one slice. */
struct pass {
    struct node *n;
    const struct coll_call *a;
    uint32_t seq;
    size_t block;   /* bytes of the vector, or of a block; of the longest one where they differ */
    size_t at, len; /* the slice */
};

#define SLICE_LEAST 256 /* bytes; less is not worth a switch */

/*
 * Ranks that share cores: few large slices, since each is a switch, but no larger than what stays in a core's own
 * cache. With a core for each, one rank fills slots while another one empties those before.
 */
static const struct wide_shape {
    uint32_t sets;
    size_t most; /* bytes of a slot */
} shared_cores = {2, 128 << 10}, own_cores = {8, 16 << 10};

static const struct wide_shape *shape(const struct comm *c) { return c->coll->oversubscribed ? &shared_cores : &own_cores; }

/* ---- memory ---- */

/* Of all communicators whose rank 0 this process is: half of the heap that peers map (shm/segment.h), which others
 * need. */
#define WHOLE_MOST ((size_t)32 << 20)

static _Atomic size_t whole_taken; /* on different lanes perhaps; a mere sum, so relaxed */

/* False: that would be too much. */
static bool take_share(size_t bytes)
{
    if (atomic_fetch_add_explicit(&whole_taken, bytes, memory_order_relaxed) + bytes <= WHOLE_MOST) return true;
    atomic_fetch_sub_explicit(&whole_taken, bytes, memory_order_relaxed);
    return false;
}

static void give_share(size_t bytes) { atomic_fetch_sub_explicit(&whole_taken, bytes, memory_order_relaxed); }

static size_t slot_bytes(const struct comm *c)
{
    size_t share = (size_t)var_int(VAR_COLL_WIDE) / shape(c)->sets / (size_t)c->size;
    return min_size(share, shape(c)->most) & ~(size_t)4095;
}

/* Rank 0: where it is, for the others. */
static void take_memory(struct node *n, size_t bytes)
{
    if (!take_share(bytes)) return;
    lane_enter(n->comm->lane);
    n->wide.block = peer_shared_alloc(bytes, &n->head->wide_at);
    lane_leave(n->comm->lane);
    if (!n->wide.block) give_share(bytes);
    n->wide.at = n->wide.block;
}

/* Rank 0's word comes behind the place. */
static bool first_has_it(struct node *n)
{
    bool yes = false;
    return !node_await_words(n, NODE_HAS_WIDE, 1, &yes) && yes;
}

static char *map_memory(struct node *n, uint64_t off, size_t bytes)
{
    lane_enter(n->comm->lane);
    struct peer *p = peer_get(comm_index(n->comm, 0));
    char *at = p && (p->ep.caps & TP_CAP_MAP) ? ep_map(&p->ep, off, bytes) : NULL;
    lane_leave(n->comm->lane);
    return at;
}

/* All ranks have it, or none uses it. */
static int open_memory(struct node *n, bool *all_p)
{
    n->wide.bytes = slot_bytes(n->comm);
    n->wide.sets = shape(n->comm)->sets;
    n->wide.whole = n->wide.sets * (size_t)n->size * n->wide.bytes;
    if (n->rank == 0)
        take_memory(n, n->wide.whole);
    else if (first_has_it(n))
        n->wide.at = map_memory(n, n->head->wide_at, n->wide.whole);
    node_tell(n, NODE_HAS_WIDE, n->wide.at != NULL);
    return node_await_all(n, NODE_HAS_WIDE, all_p);
}

void node_wide_free(struct node *n)
{
    if (!n->wide.block) return;
    peer_shared_free(n->wide.block, n->wide.whole);
    give_share(n->wide.whole);
}

/* ---- slots ---- */

static char *slot(const struct pass *p, int rank)
{
    size_t i = (size_t)(p->seq % p->n->wide.sets) * (size_t)p->n->size + (size_t)rank;
    return p->n->wide.at + i * p->n->wide.bytes;
}

/* As node_begin: the wide slots are free when all have finished the last operation that used them. The length is part of the sign:
 * ranks that do not agree on it have different slices. */
static int begin(struct pass *p)
{
    uint32_t until = p->n->seq + 1 + NODE_K - p->n->wide.sets;
    return node_begin_when(p->n, until, until, (p->block * UINT64_C(0x9e3779b97f4a7c15) >> 32) | 1, &p->seq);
}

size_t node_wide_slice(const struct comm *c, const struct coll_call *a)
{
    bool reduces = coll_reduces(a->kind);
    size_t most = slot_bytes(c) / (is_of(SPREADS | 1u << COLL_ALLTOALL, a) ? (size_t)c->size : 1);
    size_t bytes = reduces ? most / (size_t)a->rtype->size * (size_t)a->rtype->size : most & ~(size_t)63;
    return bytes < SLICE_LEAST ? 0 : bytes;
}

/* ---- the user's data ---- */

/* Bytes of the slice of a block. */
static size_t part_of(const struct pass *p, size_t bytes) { return bytes <= p->at ? 0 : min_size(bytes - p->at, p->len); }

static void get(const struct pass *p, struct node_block b, char *to)
{
    struct type_cursor c;
    type_cursor_init(&c, b.type, b.count, b.buf);
    type_cursor_seek(&c, p->at);
    if (b.type->contig) copy_memory(to, c.buf + p->at, part_of(p, node_bytes(&b)));
    else type_pack(&c, to, part_of(p, node_bytes(&b)));
}

/* Pieces of what may go past the caches. */
#define STREAMED_LEAST ((size_t)16 << 10)

/* What goes through the caches that ranks share: of one to all of them, what all ranks get in all. */
static size_t whole_of(const struct pass *p)
{
    size_t ranks = (size_t)p->n->size;
    if (p->len < STREAMED_LEAST) return p->len;
    return is_of(MOVES & ~(NODE_FROM_ROOT | NODE_TO_ROOT), p->a) ? p->block * ranks * ranks : p->block;
}

static void put(const struct pass *p, struct node_block b, const char *from)
{
    struct type_cursor c;
    size_t n = part_of(p, node_bytes(&b));
    type_cursor_init(&c, b.type, b.count, b.buf);
    type_cursor_seek(&c, p->at);
    if (b.type->contig) copy_part(c.buf + p->at, from, n, max_size(n, whole_of(p)));
    else type_unpack(&c, from, n);
}

/* ---- moving blocks ---- */

/* Where in the slots the block of one rank for another one is. */
static char *place(const struct pass *p, int from, int to)
{
    if (p->a->kind == COLL_SCATTER) return slot(p, to);
    return slot(p, from) + (p->a->kind == COLL_ALLTOALL ? (size_t)to * p->len : 0);
}

static void leave_blocks(const struct pass *p)
{
    int me = p->n->rank;
    bool once = !is_of(NODE_SENDS_EACH, p->a); /* all get the same */
    for (int r = 0, left = 0; r < p->n->size && !(once && left); r++) {
        if (r == me || !node_moves(p->a, me, r)) continue;
        get(p, node_out(p->a, me, r), place(p, me, r));
        left++;
    }
}

/* From the next rank on, so that not all read the same at the same time. */
static void take_blocks(const struct pass *p)
{
    int me = p->n->rank;
    for (int i = 1; i < p->n->size; i++) {
        int r = (me + i) % p->n->size;
        if (node_moves(p->a, r, me)) put(p, node_in(p->a, r), place(p, r, me));
    }
}

/* ---- combining: types have no gaps ---- */

/* So much of the result stays in the nearest cache while the inputs pass. */
#define COMBINED_AT_ONCE ((size_t)8 << 10)

static char *data(struct node_block b) { return b.buf + b.type->true_lb; }

/* Bytes of the operand before block r, and of that. */
static size_t block_at(const struct pass *p, int r, size_t *bytes)
{
    int64_t before;
    struct node_block b = node_result(p->a, r, &before);
    *bytes = node_bytes(&b);
    return (size_t)(before * b.type->size);
}

/* What this rank gives of the slice; the own block is combined from where it is, but in place, where the result may overwrite it. */
static void leave_operand(const struct pass *p)
{
    const char *from = data(node_operand(p->a, p->n->size)) + p->at;
    char *mine = slot(p, p->n->rank);
    size_t bytes = 0;
    if (!is_of(SPREADS, p->a)) {
        copy_memory(mine, from, p->len);
        return;
    }
    for (int r = 0; r < p->n->size; r++) {
        size_t at = block_at(p, r, &bytes);
        if (r != p->n->rank || node_in_place(p->a)) copy_memory(mine + (size_t)r * p->len, from + at, part_of(p, bytes));
    }
}

/* What a rank gives of the slice that this rank combines, from byte x on. */
static const char *operand(const struct pass *p, int rank, size_t x)
{
    size_t bytes, me = (size_t)p->n->rank, at = block_at(p, p->n->rank, &bytes);
    if (rank == p->n->rank && !node_in_place(p->a)) return data(node_operand(p->a, p->n->size)) + at + p->at + x;
    return slot(p, rank) + (is_of(SPREADS, p->a) ? me * p->len : 0) + x;
}

/* to = a op b, `len` bytes; to may be b. */
static int join(const struct pass *p, const char *a, const char *b, char *to, size_t len)
{
    struct type *t = p->a->rtype;
    return op_apply3(p->a->op, a - t->true_lb, b - t->true_lb, to - t->true_lb, (int64_t)len / t->size, t);
}

/* to = what rank 0 gives op ... op what rank `last` gives, `len` bytes from byte x on. */
static int combine_part(const struct pass *p, int last, size_t x, char *to, size_t len)
{
    if (!last) {
        copy_memory(to, operand(p, 0, x), len);
        return 0;
    }
    int rc = join(p, operand(p, last - 1, x), operand(p, last, x), to, len);
    for (int r = last - 2; r >= 0 && !rc; r--) rc = join(p, operand(p, r, x), to, to, len);
    return rc;
}

/* From the right, so the same bits wherever it is done. */
static int combine(const struct pass *p, int last, char *to)
{
    size_t size = (size_t)p->a->rtype->size, step = size < COMBINED_AT_ONCE ? COMBINED_AT_ONCE / size * size : size, len = p->len;
    if (is_of(SPREADS, p->a)) {
        block_at(p, p->n->rank, &len);
        len = part_of(p, len);
    }
    int rc = 0;
    for (size_t x = 0; x < len && !rc; x += step) rc = combine_part(p, last, x, to + x, min_size(step, len - x));
    return rc;
}

/* Does another rank wait for what this one gives? */
static bool is_wanted(const struct pass *p)
{
    if (p->a->kind == COLL_REDUCE) return p->n->rank != p->a->root;
    return !is_of(SCANS, p->a) || p->n->rank < p->n->size - 1;
}

static bool last_combines(const struct pass *p)
{
    return p->n->counted && (p->a->kind == COLL_ALLREDUCE || is_of(SCANS, p->a));
}

/* By the last one: the last slot gets the combination of all, or every slot that up to its rank. */
static int combine_for_all(const struct pass *p)
{
    int last = p->n->size - 1, rc = 0;
    if (p->a->kind == COLL_ALLREDUCE) return combine(p, last, slot(p, last));
    for (int r = 1; r <= last && !rc; r++) rc = join(p, slot(p, r - 1), slot(p, r), slot(p, r), p->len);
    return rc;
}

static int take_combination(const struct pass *p)
{
    int64_t before;
    char *to = data(node_result(p->a, p->n->rank, &before)) + p->at;
    int last = is_of(SCANS, p->a) ? p->n->rank - (p->a->kind == COLL_EXSCAN) : p->n->size - 1;
    if (last < 0) return 0;
    if (!last_combines(p)) return combine(p, last, to);
    copy_memory(to, slot(p, last), p->len);
    return 0;
}

/* ---- a slice ---- */

/* Whose contributions this rank waits for, as in node_wait_for. */
static int awaited(const struct pass *p)
{
    bool root = p->n->rank == p->a->root;
    if (is_of(NODE_FROM_ROOT, p->a)) return root ? NODE_NOBODY : p->a->root;
    if (is_of(NODE_TO_ROOT | 1u << COLL_REDUCE, p->a)) return root ? NODE_ALL : NODE_NOBODY;
    return is_of(SCANS, p->a) && !p->n->counted ? NODE_LOWER : NODE_ALL;
}

/* Data, then the flag. */
static int leave(const struct pass *p)
{
    if (is_of(MOVES, p->a)) leave_blocks(p);
    else if (is_wanted(p) || node_in_place(p->a) || last_combines(p)) leave_operand(p);
    if (is_of(SCANS, p->a)) node_say_no_prefix(p->n, p->seq);
    if (!is_of(NODE_FROM_ROOT, p->a)) {
        if (!last_combines(p)) {
            node_contribute(p->n, p->seq);
        } else if (node_arrive(p->n, p->seq)) {
            int rc = combine_for_all(p);
            node_release(p->n, p->seq);
            return rc;
        }
    } else if (p->n->rank == p->a->root) {
        node_signal(p->n, p->seq, p->n->rank);
        node_announce(p->n);
    }
    return 0;
}

static int take(const struct pass *p)
{
    if (!is_of(MOVES, p->a)) return take_combination(p);
    take_blocks(p);
    return 0;
}

/* Has this rank met all others? */
static bool meets_all(const struct pass *p, int whom)
{
    return whom == NODE_ALL || (whom == NODE_LOWER ? p->n->rank == p->n->size - 1 : whom >= 0 && p->n->size == 2);
}

static int run_slice(struct pass *p)
{
    int whom = awaited(p), rc = begin(p);
    if (unlikely(rc)) return rc;
    rc = leave(p);
    if (whom != NODE_NOBODY) {
        int failed = node_wait_for(p->n, p->seq, whom);
        if (!rc) rc = failed ? failed : take(p);
    }
    node_finish(p->n, p->seq, meets_all(p, whom));
    return rc;
}

bool node_wide_run(struct node *n, const struct coll_call *a, int64_t bytes, int *rc_p)
{
    struct pass p = {.n = n, .a = a, .block = (size_t)node_longest_block(a, n->size, bytes)};
    bool all = node_all(n, NODE_HAS_WIDE) == NODE_YES;
    *rc_p = node_has_told(n, NODE_HAS_WIDE) ? 0 : open_memory(n, &all);
    if (*rc_p || !all) return false;
    int rc = 0;
    if (is_of(MOVES, a)) node_move_own(a, n->rank);
    for (size_t step = node_wide_slice(n->comm, a); p.at < p.block && !node_failed(n); p.at += step) {
        p.len = min_size(step, p.block - p.at);
        int failed = run_slice(&p); /* the others go on */
        if (!rc) rc = failed;
    }
    *rc_p = rc;
    return true;
}
