/* pairs_own.c - see pairs_own.h. */
#include "coll/node/pairs_own.h"
#include "base/err.h"
#include "copy/copy.h"
#include "pt2pt/limits.h"
#include "transport/endpoint.h"
#include "type/cursor.h"

#include <stdlib.h>

size_t node_own_layout(struct node *n, char *base)
{
    n->own = (struct node_own *)base;
    return n->places * (size_t)n->size * sizeof *n->own;
}

static struct node_own *line(struct node *n, uint32_t seq, int rank)
{
    return &n->own[(size_t)(seq % n->places) * (size_t)n->size + (size_t)rank];
}

static uint32_t chunks_of(const struct node_own *o) { return (uint32_t)((o->bytes - 1) / o->chunk) + 1; }

/* ---- a rank's own ---- */

static char *packed(const struct node_end *e) { return (char *)(uintptr_t)e->buf + e->type->true_lb; }

/* May others copy it? They know no types. */
static bool is_plain(const struct node_end *from, const struct node_end *to)
{
    return from->type->contig && to->type->contig && from->bytes == to->bytes;
}

static void fill(struct node_own *o, const struct node_end *from, const struct node_end *to)
{
    uint64_t least = round_up(from->bytes / NODE_OWN_CHUNKS + 1, 4096);
    o->from = (uintptr_t)packed(from);
    o->to = (uintptr_t)packed(to);
    o->bytes = from->bytes;
    o->chunk = least > NODE_OWN_CHUNK ? least : NODE_OWN_CHUNK;
    atomic_store_explicit(&o->done, 0, memory_order_relaxed); /* ordered by node_own_open */
}

void node_own_say(struct node *n, uint32_t seq, const struct node_ends *e)
{
    const struct node_end *from = &e->send[n->rank], *to = &e->recv[n->rank];
    struct node_own *o = line(n, seq, n->rank);
    if (!is_plain(from, to)) return;
    fill(o, from, to);
    node_own_open(o, seq, chunks_of(o));
}

/* n chunks have been copied, for that rank. */
static void settle(struct node *n, struct node_own *o, uint32_t seq, int rank, uint32_t copied)
{
    bool all = node_own_done(o, copied, chunks_of(o));
    n->moved++;
    if (all && node_tally_less(node_tally_of(n, seq, rank)) && rank != n->rank) peer_wake(comm_index(n->comm, rank));
}

static bool copy_plain(struct node *n, uint32_t seq)
{
    struct node_own *o = line(n, seq, n->rank);
    uint32_t most = (uint32_t)((uint64_t)limits_chunk.copied / o->chunk), first = 0;
    uint32_t claimed = node_own_claim(o, seq, most ? most : 1, &first);
    if (!claimed) return false;
    uint64_t at = first * o->chunk;
    bool more = first + claimed < chunks_of(o);
    copy_part((char *)(uintptr_t)o->to + at, (const char *)(uintptr_t)o->from + at, min_size(claimed * o->chunk, o->bytes - at),
              o->bytes);
    settle(n, o, seq, n->rank, claimed);
    return more;
}

bool node_own_copy(struct node *n, uint32_t seq, const struct node_ends *e)
{
    const struct node_end *from = &e->send[n->rank], *to = &e->recv[n->rank];
    if (is_plain(from, to)) return copy_plain(n, seq);
    type_copy_across((void *)(uintptr_t)to->buf, to->count, to->type, from->buf, from->count, from->type);
    node_tally_less(node_tally_of(n, seq, n->rank));
    return false;
}

/* ---- others' ---- */

/* From a rank's memory to its memory, by way of a buffer here. */
static int carry(struct node *n, int rank, uint64_t from, uint64_t to, uint64_t bytes)
{
    struct peer *p = peer_get(comm_index(n->comm, rank));
    if (!p) return err_code();
    for (uint64_t at = 0; at < bytes; at += NODE_OWN_CHUNK) {
        size_t part = min_size(NODE_OWN_CHUNK, bytes - at);
        struct iovec here = {n->carrier, part}, out = {(void *)(uintptr_t)(from + at), part},
                     in = {(void *)(uintptr_t)(to + at), part};
        int rc = p->ep.caps & TP_CAP_GETPUT ? ep_get(&p->ep, &here, 1, &out, 1) : TERN_ERR_UNSUPPORTED;
        if (!rc) rc = ep_put(&p->ep, &here, 1, &in, 1);
        if (rc) return rc;
    }
    return 0;
}

/* One chunk of an operation, for anybody. */
static bool aid(struct node *n, uint32_t seq)
{
    for (int i = 1; i < n->size; i++) {
        int r = (n->rank + i) % n->size;
        struct node_own *o = line(n, seq, r);
        uint32_t first = 0;
        if (!node_own_claim(o, seq, 1, &first)) continue;
        uint64_t at = first * o->chunk;
        int rc = carry(n, r, o->from + at, o->to + at, min_size(o->chunk, o->bytes - at));
        if (unlikely(rc)) node_tally_note(node_tally_of(n, seq, r), rc);
        settle(n, o, seq, r, 1);
        return true;
    }
    return false;
}

static void say_aids(struct node *n, uint32_t aids)
{
    /* release: pairs with the look of who gives the block back; our use of the lines is over */
    atomic_store_explicit(&node_done(n, n->rank)->aids, aids, memory_order_release);
}

/* No more of that: nobody has anything left, or the node goes. */
static void forget(struct node *n)
{
    if (!n->aiding) return;
    step_off(&n->aide);
    n->aiding = false;
    n->aids = 0;
    say_aids(n, 0);
}

/* A look: a chunk, unless something of this rank's own has been moved since the last one. */
static int look(struct step *s)
{
    struct node *n = container_of(s, struct node, aide);
    if (this_is_the_helper) return 0;
    if (n->moved != n->moved_before) {
        n->moved_before = n->moved;
        return 0;
    }
    for (; n->aids; n->aids--) {
        if (!aid(n, n->aid[n->aids - 1])) continue;
        n->moved_before = n->moved;
        return 1;
    }
    forget(n);
    return 0;
}

static const struct step_ops aide_ops = {.name = "copies of other ranks", .poll = look};

void node_own_aid(struct node *n, uint32_t seq)
{
    if (!n->carrier) n->carrier = aligned_alloc(CACHE_LINE, NODE_OWN_CHUNK);
    if (n->aids == NODE_BIG_K || !n->carrier) return; /* nobody needs the help to come to an end */
    if (!n->aids) {
        n->aide.ops = &aide_ops;
        lane_step_on(n->comm->lane, &n->aide);
        say_aids(n, 1); /* before the operation is finished here */
        n->aiding = true;
    }
    n->aid[n->aids++] = seq;
    n->moved_before = n->moved;
}

void node_own_end(struct node *n)
{
    lane_enter(n->comm->lane);
    forget(n);
    lane_leave(n->comm->lane);
    free(n->carrier);
}
