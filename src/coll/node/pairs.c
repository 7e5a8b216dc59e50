/*
 * pairs.c - the transfers of a large collective inside a node: see pairs.h.
 *
 * Each side begins with what it receives, from the rank behind it on, and helps with what it sends when nothing of that
 * is left; ranks that read the same buffer begin at different chunks of it, since readers of a page get into each
 * other's way in the kernel. A look copies about a chunk of the largest size (limits_chunk.copied), so that messages
 * have their turn. What a rank has for itself comes first: others do the rest meanwhile, and it costs them more.
 */
#include "coll/node/pairs.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/var.h"
#include "coll/node/blocks.h"
#include "coll/node/v.h"
#include "copy/copy.h"
#include "pt2pt/check.h"
#include "pt2pt/helper.h"
#include "pt2pt/limits.h"
#include "transfer/transfer.h"
#include "transport/arena.h"

#include <stdlib.h>

struct node_pair {
    TERN_ALIGNED(CACHE_LINE) struct transfer transfer;
};
static_assert(sizeof(struct node_pair) == 2 * CACHE_LINE, "shared layout");

struct node_left {
    TERN_ALIGNED(CACHE_LINE) _Atomic uint32_t count;
    _Atomic int32_t error; /* of one of them */
};
static_assert(sizeof(struct node_left) == CACHE_LINE, "shared layout");

/* What this rank sends to another one, or receives from it: its end of a transfer. */
struct part {
    struct transfer *transfer; /* from node_pairs_begin on, as is `at` */
    struct node_block block;
    char *at; /* packed data; NULL: there was no memory for it */
    uint64_t bytes;
    int other;
    uint32_t claimed; /* chunks, when it was retracted */
    uint8_t side;     /* enum transfer_side */
    bool both;        /* the two have something the other way, too */
    bool from_result; /* a send of what is received into: it is packed in any case */
    bool own_memory;  /* `at` is: to be freed, and unpacked if received */
    bool met;         /* the other's end is there */
    bool over;        /* nothing is left for this rank to do */
};

struct node_pairs {
    struct node *n;
    const struct coll_call *call; /* only its kind and root */
    uint32_t seq;
    bool blocking; /* all ranks wait for it: nobody has to be woken so that it goes on */
    bool begun, over;
    uint64_t left_at; /* 0, or it was left at this time: all ends are retracted */
    int error; /* found here, with words */
    struct node_block own_from, own_to; /* what this rank has for itself */
    uint64_t own_at, own_end;           /* bytes of it that nobody else copies: copied, and in all */
    char *buffer;                       /* for a chunk of another rank's */
    int first, parts; /* part[first] to part[parts - 1]; what this rank has for itself, if others carry it, is part[0] */
    struct part part[];
};

/* Bytes of a chunk of what a rank has for itself; what is not longer is not shared. To carry 64 KB took 27 us so, and 36 in chunks of 16 KB:
 * each is two calls of the system. */
#define OWN_CHUNK 32768u

#define NO_MEMORY 1 /* the address of an end that there was no memory to pack */

/* ---- the lines ---- */

static struct transfer *transfer_of(const struct node *n, uint32_t seq, int from, int to)
{
    size_t p = (size_t)n->size, set = seq % n->pair_sets;
    return &n->pairs[(set * p + (size_t)from) * p + (size_t)to].transfer;
}

static struct node_left *left_of(const struct node_pairs *p, int rank)
{
    return &p->n->left[(size_t)(p->seq % p->n->pair_sets) * (size_t)p->n->size + (size_t)rank];
}

/* What that rank has for itself, if it is said and chunks are left. Operation seq keeps its lines as long as it is not finished here. */
static struct transfer *own_of(const struct node_pairs *p, int rank)
{
    struct transfer *t = transfer_of(p->n, p->seq, rank, rank);
    return transfer_is_said(t, TRANSFER_FROM, p->seq) && transfer_has_work(t) ? t : NULL;
}

/* Takes one transfer out. True: it was the last one. acq_rel: pairs with the acquire of the rank that looks for 0 */
static bool take_out(const struct node_pairs *p, int rank)
{
    return atomic_fetch_sub_explicit(&left_of(p, rank)->count, 1, memory_order_acq_rel) == 1;
}

/* Before the transfer is taken out; any of several. */
static TERN_COLD void note_error(const struct node_pairs *p, int rank, int error)
{
    atomic_store_explicit(&left_of(p, rank)->error, error, memory_order_relaxed);
}

/* For tests: with TERN_TEST_PAIR_SETS=N no more than that, so that operations wait for the lines of earlier ones. */
static size_t pair_sets(size_t ranks)
{
    const char *text = getenv("TERN_TEST_PAIR_SETS");
    size_t sets = NODE_PAIRS_MOST / (ranks * ranks), most = text ? strtoul(text, NULL, 10) : NODE_BIG_K;
    if (sets > most) sets = most;
    return sets < 2 ? 2 : min_size(sets, NODE_BIG_K);
}

size_t node_pairs_layout(struct node *n, char *base)
{
    size_t p = (size_t)n->size, sets = pair_sets(p);
    if (p > NODE_PAIRS_RANKS || !var_int(VAR_COLL_DIRECT)) return 0;
    n->pair_sets = (uint32_t)sets;
    n->pairs = (struct node_pair *)base;
    n->left = (struct node_left *)(base + sets * p * p * sizeof *n->pairs);
    return sets * p * (p * sizeof *n->pairs + sizeof *n->left);
}

/* ---- beginning ---- */

static bool reaches_all(const struct node *n)
{
    if (!var_int(VAR_COLL_DIRECT) || pt_checking) return false;
    for (int r = 0; r < n->size; r++) {
        struct peer *p = r == n->rank ? NULL : peer_get(comm_index(n->comm, r));
        if (r != n->rank && !(p && (p->ep.caps & TP_CAP_GETPUT))) return false;
    }
    return true;
}

void node_tell_reach(struct node *n)
{
    if (likely(node_has_told(n, NODE_REACHES))) return;
    lane_enter(n->comm->lane);
    node_tell(n, NODE_REACHES, reaches_all(n));
    lane_leave(n->comm->lane);
}

/* Of one that is not longer than the room in the slots: 0. */
static uint64_t long_bytes(struct node_block b, size_t room)
{
    size_t bytes = node_bytes(&b);
    return bytes > room ? bytes : 0;
}

static struct part *add_part(struct node_pairs *p, int other, enum transfer_side side, struct node_block b, size_t room)
{
    uint64_t bytes = long_bytes(b, room);
    if (!bytes) return NULL;
    p->part[p->parts] = (struct part){.block = b, .bytes = bytes, .other = other, .side = (uint8_t)side};
    return &p->part[p->parts++];
}

/* From the rank behind this one on: the ranks begin with different others. */
static void add_parts(struct node_pairs *p, const struct coll_call *a)
{
    int me = p->n->rank, size = p->n->size;
    size_t room = node_v_is(a->kind) ? node_v_room(p->n, a) : 0;
    bool from_result = NODE_SENDS_EACH >> a->kind & 1 && a->sendbuf == MPI_IN_PLACE;
    p->first = p->parts = 1;
    for (int i = 1, r = me + 1; i < size; i++, r++)
        if (node_moves(a, r % size, me)) add_part(p, r % size, TRANSFER_TO, node_in(a, r % size), room);
    const struct part *received = &p->part[1], *end = &p->part[p->parts];
    for (int i = 1, r = me + 1; i < size; i++, r++) {
        struct part *x = node_moves(a, me, r % size) ? add_part(p, r % size, TRANSFER_FROM, node_out(a, me, r % size), room) : NULL;
        bool both = received < end && received->other == r % size;
        received += both;
        if (x) x->both = both;
        if (x) x->from_result = from_result;
    }
    if (!node_moves(a, me, me)) return;
    p->own_from = node_out(a, me, me);
    p->own_to = node_in(a, me);
    if (long_bytes(p->own_to, room)) p->own_end = long_bytes(p->own_from, room);
}

struct node_pairs *node_pairs_new(struct node *n, const struct coll_call *a, bool blocking, uint32_t seq)
{
    struct node_pairs *p = calloc(1, sizeof *p + (2 * (size_t)n->size - 1) * sizeof *p->part);
    if (!p) return NULL;
    p->n = n;
    p->call = a;
    p->seq = seq;
    p->blocking = blocking;
    add_parts(p, a);
    return p;
}

void node_pairs_free(struct node_pairs *p)
{
    if (!p) return;
    for (int i = 0; i < p->parts; i++)
        if (p->part[i].own_memory) free(p->part[i].at);
    free(p->buffer);
    free(p);
}

/* ---- the ends: where they lie, the block being there now ---- */

static bool same_block(const struct part *a, const struct part *b)
{
    return a->side == b->side && a->block.buf == b->block.buf && a->block.count == b->block.count && a->block.type == b->block.type;
}

/* What goes to several ranks, one after the other, is packed once: `last` is the part before, or NULL. */
static void open_part(const struct node_pairs *p, struct part *x, const struct part *last)
{
    int me = p->n->rank;
    x->transfer = x->side == TRANSFER_FROM ? transfer_of(p->n, p->seq, me, x->other) : transfer_of(p->n, p->seq, x->other, me);
    if (last && x->side == TRANSFER_FROM && same_block(last, x)) {
        x->at = last->at;
        return;
    }
    x->own_memory = !x->block.type->contig || x->from_result;
    x->at = x->own_memory ? malloc(x->bytes) : x->block.buf + x->block.type->true_lb;
    x->own_memory &= x->at != NULL;
    if (x->own_memory && x->side == TRANSFER_FROM) node_pack(x->at, x->block);
}

static void unpack_parts(const struct node_pairs *p)
{
    for (int i = 1; i < p->parts; i++) {
        const struct part *x = &p->part[i];
        if (x->own_memory && x->met && x->side == TRANSFER_TO) node_unpack_some(x->block, x->at, x->bytes);
    }
}

/* ---- saying them ---- */

static char *packed(const struct node_block *b, uint64_t at) { return b->buf + b->type->true_lb + at; }

static bool own_is_plain(const struct node_pairs *p)
{
    return p->own_from.type->contig && p->own_to.type->contig && node_bytes(&p->own_from) == node_bytes(&p->own_to);
}

/* What this rank has for itself, packed, at both ends. Is it for others to carry? They know no types, and cost a core; and a helper has
 * done it before they come. */
static bool is_shared(const struct node_pairs *p)
{
    return p->own_end > OWN_CHUNK && !p->blocking && !p->n->counted && !background_is_helped() && own_is_plain(p);
}

/* The work, which the sender prepares. Small ones are one chunk for each side, or only one where nothing is gained by sharing them: if
 * the sender has something to receive meanwhile, or shares its core. */
static void cut(const struct node_pairs *p, const struct part *x)
{
    struct transfer *t = x->transfer;
    transfer_renew(t);
    t->chunk = transfer_chunk(x->both || p->n->counted ? 2 * x->bytes : x->bytes, (uint64_t)limits_chunk.copied);
    t->first = (uint32_t)((x->bytes + t->chunk - 1) / t->chunk * (uint64_t)x->other / (uint64_t)p->n->size);
}

static void say(const struct node_pairs *p, const struct part *x)
{
    if (x->side == TRANSFER_FROM) cut(p, x);
    if (likely(x->at))
        transfer_say(x->transfer, x->side, p->seq, x->at, arena_place(x->at, x->bytes), x->bytes);
    else
        transfer_say(x->transfer, x->side, p->seq, (void *)NO_MEMORY, 0, 0);
}

/* What this rank has for itself. Before the flag is set: who sees that looks here. */
static void share_own(struct node_pairs *p)
{
    struct transfer *t = transfer_of(p->n, p->seq, p->n->rank, p->n->rank);
    p->first = 0;
    p->part[0] = (struct part){.transfer = t, .bytes = p->own_end, .other = p->n->rank, .side = TRANSFER_FROM, .met = true};
    transfer_renew(t);
    t->chunk = transfer_chunk(p->own_end, OWN_CHUNK);
    t->first = 0;
    transfer_say(t, TRANSFER_TO, p->seq, packed(&p->own_to, 0), 0, p->own_end);
    transfer_say(t, TRANSFER_FROM, p->seq, packed(&p->own_from, 0), 0, p->own_end); /* of both: who sees it finds the other */
    p->own_end = 0;
}

bool node_pairs_begin(struct node_pairs *p)
{
    if (!node_all_have_finished(p->n, p->seq - p->n->pair_sets)) return false; /* which had these lines */
    bool shared = is_shared(p);
    for (int i = 1; i < p->parts; i++) open_part(p, &p->part[i], i > 1 ? &p->part[i - 1] : NULL);
    /* relaxed: nobody else has a part before it knows of our ends */
    atomic_store_explicit(&left_of(p, p->n->rank)->error, 0, memory_order_relaxed);
    atomic_store_explicit(&left_of(p, p->n->rank)->count, (uint32_t)(p->parts - !shared), memory_order_relaxed);
    if (shared) share_own(p);
    for (int i = 1; i < p->parts; i++) say(p, &p->part[i]);
    return p->begun = true;
}

static bool is_met(const struct node_pairs *p, const struct part *x)
{
    return x->met || transfer_is_said(x->transfer, !x->side, p->seq);
}

/* What this rank has for itself always is: those that carry it may compute. */
bool node_pairs_are_ours(const struct node_pairs *p)
{
    bool ours = p->begun && p->own_at < p->own_end;
    for (int i = p->first; i < p->parts && p->begun && !ours; i++) {
        const struct part *x = &p->part[i];
        if (x->over) continue;
        ours = x->other == p->n->rank ? own_of(p, x->other) != NULL
                                      : is_met(p, x) && !peer_is_helped(comm_index(p->n->comm, x->other));
    }
    return ours;
}

/* Has everybody something to do now that this rank has come? Before, only pairs of those that have. */
static bool completes(const struct node_pairs *p)
{
    struct node_wait all = {p->n, node_flag(p->n, p->seq), p->seq, NODE_ALL, 0};
    enum coll_kind kind = p->call->kind;
    if (kind == COLL_BCAST || kind == COLL_SCATTER || kind == COLL_SCATTERV) return p->call->root == p->n->rank;
    atomic_thread_fence(memory_order_seq_cst); /* of two that come at the same time one sees the other: as node_pass_on */
    return node_ready(&all);
}

/* One by one. */
static void wake(const struct node_pairs *p, bool only_helped)
{
    for (int i = 1; i < p->parts; i++) {
        uint32_t other = comm_index(p->n->comm, p->part[i].other);
        if (!only_helped || peer_is_helped(other)) peer_wake(other);
    }
}

/*
 * Where ranks share cores, a rank that sleeps is woken when all can go on, not by each that comes: it would find little, and be
 * switched to for each. us, by messages and so: 8 ranks on 2 cores, 64 KB, ibcast 836 and 48, igather 90 and 57, iscatter 83 and 57, iallgather 343 and
 * 252, ialltoall 367 and 296; 4 ranks, 1 MB, ialltoall 1365 and 1361.
 */
void node_pairs_wake(struct node_pairs *p)
{
    if (p->blocking) return;
    if (p->n->counted && completes(p)) node_announce(p->n);
    wake(p, p->n->counted); /* helpers do not hear gates */
    /* Ours was called for what was there before. */
    if (unlikely(background_any()) && node_pairs_are_ours(p)) lane_leaves_more(p->n->comm->lane);
}

/* ---- meeting ---- */

static TERN_COLD void fail(struct node_pairs *p, int error)
{
    if (!p->error) p->error = error;
}

static TERN_COLD int no_memory(const struct node_pairs *p, const struct part *x)
{
    return err_set(TERN_ERR_NOMEM, "rank %d or %d had no memory to pack its buffer", p->n->rank, x->other);
}

static TERN_COLD int too_long(const struct node_pairs *p, const struct part *x, uint64_t sent)
{
    return err_set(TERN_ERR_TRUNCATE, "rank %d sent %llu bytes in a %s, where there is room for %llu", x->other,
                   (unsigned long long)sent, coll_kind_name(p->call->kind), (unsigned long long)x->bytes);
}

/* The other's end is there: is there something to copy? */
static bool meet(struct node_pairs *p, struct part *x)
{
    const struct transfer_end *there = &x->transfer->end[!x->side];
    x->met = true;
    if (unlikely(!x->at || there->at == NO_MEMORY)) fail(p, no_memory(p, x));
    if (x->side == TRANSFER_TO && unlikely(there->bytes > x->bytes)) fail(p, too_long(p, x, there->bytes));
    if (x->side == TRANSFER_TO && there->bytes < x->bytes) x->bytes = there->bytes; /* that is unpacked */
    return transfer_bytes(x->transfer) > 0;
}

/* Has the other said all that it has to say in this operation? A scatterv's flags are all the root's, and mean nothing.
 */
static bool has_come(const struct node_pairs *p, int rank)
{
    return p->call->kind != COLL_SCATTERV && node_has_come(p->n, p->seq, rank);
}

enum outlook { WAITS, GOES_ON, IS_EMPTY };

static enum outlook look_at(struct node_pairs *p, struct part *x)
{
    if (x->met) return GOES_ON;
    if (!is_met(p, x) && !has_come(p, x->other)) return WAITS;
    return is_met(p, x) && meet(p, x) ? GOES_ON : IS_EMPTY; /* again: the end is said before the flag is set */
}

/* ---- copying ---- */

/* A transfer is over: for one of its ranks. */
static void end_for(struct node_pairs *p, const struct transfer *t, int rank)
{
    int error = transfer_error(t);
    if (unlikely(error)) note_error(p, rank, error);
    if (take_out(p, rank) && rank != p->n->rank) peer_wake(comm_index(p->n->comm, rank));
}

/* The next chunk of a transfer that is met: its bytes, 0: none is left. */
static uint64_t copy_chunk(struct node_pairs *p, const struct part *x)
{
    bool own = x->other == p->n->rank;
    struct peer *peer = own ? NULL : peer_get(comm_index(p->n->comm, x->other));
    unsigned what = own ? transfer_go_on_here(x->transfer) : likely(peer != NULL) ? transfer_go_on(x->transfer, x->side, &peer->ep) : 0;
    uint64_t moved = what & TRANSFER_MOVED ? x->transfer->chunk : 0;
    if (what & TRANSFER_ENDED) {
        end_for(p, x->transfer, p->n->rank);
        if (!own) end_for(p, x->transfer, x->other);
    }
    return moved;
}

/* A chunk of the first transfer that has one. */
static uint64_t copy_some(struct node_pairs *p)
{
    uint64_t moved = 0;
    for (int i = p->first; i < p->parts && !moved; i++) {
        struct part *x = &p->part[i];
        enum outlook o = x->over ? WAITS : look_at(p, x);
        if (o == WAITS) continue;
        if (o == GOES_ON) moved = copy_chunk(p, x);
        else take_out(p, p->n->rank);
        x->over = !moved;
    }
    return moved;
}

/* Bytes: so many that memcpy goes past the caches where that pays (of 1 MB it takes a tenth less than in pieces of 256 KB). */
#define OWN_PIECE ((size_t)4 << 20)

/* A piece, or all of it if it has gaps. */
static uint64_t copy_own(struct node_pairs *p)
{
    uint64_t at = p->own_at;
    if (at == p->own_end) return 0;
    if (own_is_plain(p)) {
        p->own_at += min_size(p->own_end - at, OWN_PIECE);
        copy_part(packed(&p->own_to, at), packed(&p->own_from, at), p->own_at - at, p->own_end);
    } else {
        p->own_at = p->own_end;
        node_move(p->own_to, p->own_from);
    }
    return p->own_at - at;
}

/* As much as is copied in a look. True: something was, and more may be left. */
static bool copy(struct node_pairs *p)
{
    uint64_t all = 0, moved;
    do {
        moved = copy_own(p);
        if (!moved) moved = copy_some(p);
        if (moved) p->n->moved++;
        all += moved;
    } while (moved && all < (uint64_t)limits_chunk.copied);
    return moved;
}

/* ---- the end ---- */

/* Of the transfers, all of which are over. The system's words are there if this rank has failed to copy. */
static TERN_COLD int failure(const struct node_pairs *p, int error)
{
    if (error == TERN_ERR_UNSUPPORTED)
        return err_set(TERN_ERR_SYSTEM, "the system no longer lets the memory of another rank be reached");
    if (err_code() != error) err_set(error, "another process could not copy its part of a %s", coll_kind_name(p->call->kind));
    return error;
}

static int result(struct node_pairs *p)
{
    int error = atomic_load_explicit(&left_of(p, p->n->rank)->error, memory_order_relaxed); /* behind `count` */
    for (int i = p->first; i < p->parts; i++)
        if (!p->part[i].met && !p->part[i].over) meet(p, &p->part[i]); /* the other side has done all of it */
    if (unlikely(error)) fail(p, failure(p, error));
    if (likely(!p->error)) unpack_parts(p);
    return p->error;
}

bool node_pairs_go_on(struct node_pairs *p, int *rc_p)
{
    if (p->over) return true;
    if (copy(p)) return false;
    /* acquire: pairs with take_out; what others have copied here is there */
    if (atomic_load_explicit(&left_of(p, p->n->rank)->count, memory_order_acquire)) return false;
    int rc = result(p);
    if (!*rc_p) *rc_p = rc;
    return p->over = true;
}

/* ---- leaving ---- */

static void retract(struct node_pairs *p)
{
    p->left_at = clock_ns();
    for (int i = p->first; i < p->parts; i++) p->part[i].claimed = transfer_retract(p->part[i].transfer);
}

static bool is_quiet(const struct node_pairs *p, const struct part *x)
{
    return !is_met(p, x) || transfer_is_quiet(x->transfer, x->claimed) || peer_is_lost(comm_index(p->n->comm, x->other));
}

bool node_pairs_leave(struct node_pairs *p)
{
    bool quiet = true;
    if (!p->begun || p->over) return true;
    if (!p->left_at) retract(p);
    for (int i = p->first; i < p->parts && quiet; i++) quiet = is_quiet(p, &p->part[i]);
    return quiet || clock_ns() - p->left_at > NODE_LEAVE_NS;
}

/* ---- carrying for others ---- */

bool node_pairs_may_carry(const struct node_pairs *p)
{
    bool may = false;
    for (int i = 1; i < p->n->size && !p->blocking && !p->n->counted && !background_is_helped() && !may; i++)
        may = own_of(p, (p->n->rank + i) % p->n->size) != NULL;
    return may;
}

/* One chunk. */
static bool carry_chunk(struct node_pairs *p, int rank)
{
    struct transfer *t = own_of(p, rank);
    struct peer *peer = t ? peer_get(comm_index(p->n->comm, rank)) : NULL;
    unsigned what = peer ? transfer_carry(t, &peer->ep, p->buffer) : 0;
    if (what & TRANSFER_ENDED) end_for(p, t, rank);
    if (what & TRANSFER_MOVED) p->n->moved++;
    return what & TRANSFER_MOVED;
}

bool node_pairs_carry(struct node_pairs *p)
{
    if (!p->buffer) p->buffer = malloc(OWN_CHUNK);
    for (int i = 1; i < p->n->size && p->buffer; i++)
        if (carry_chunk(p, (p->n->rank + i) % p->n->size)) return false;
    return true;
}

/* ---- disagreement ---- */

void node_pairs_refuse(struct node *n, uint32_t seq, int from)
{
    transfer_say(transfer_of(n, seq, from, n->rank), TRANSFER_TO, seq, NULL, 0, 0);
    peer_wake(comm_index(n->comm, from));
}

void node_pairs_expect_none(struct node_pairs *p, int from)
{
    for (int i = 1; i < p->parts; i++) {
        struct part *x = &p->part[i];
        if (x->side == TRANSFER_FROM || x->other != from || x->met || x->over) continue;
        x->over = true;
        take_out(p, p->n->rank);
        return;
    }
}
