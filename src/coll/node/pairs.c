/*
 * pairs.c - the transfers of a large collective inside a node: see pairs.h.
 *
 * Each side begins with what it receives, from the rank behind it on, and helps with what it sends when nothing of that
 * is left; ranks that read the same buffer begin at different chunks of it, since readers of a page get into each
 * other's way in the kernel. One chunk is copied in a look, so that messages have their turn. What a rank has for itself it
 * copies when there is nothing to do with others.
 */
#include "coll/node/pairs.h"
#include "base/err.h"
#include "coll/node/v.h"
#include "copy/copy.h"
#include "pt2pt/check.h"
#include "pt2pt/helper.h"
#include "pt2pt/limits.h"
#include "transport/endpoint.h"
#include "type/cursor.h"

#include <stdlib.h>
#include <string.h>

/* A transfer that this rank is a side of, as long as there may be something for it to do. */
struct turn {
    struct node_pair *pair;
    int other;
    bool sending, met;      /* met: the other's half is there */
    uint32_t chunks, first; /* the order of chunks begins with the first one */
};

struct node_pairs {
    struct node *n;
    const struct coll_call *call; /* only its kind and root */
    uint32_t seq;
    uint64_t sign; /* of the call */
    bool blocking; /* all ranks wait for it: nobody has to be woken so that it goes on */
    bool published, over;
    uint64_t own_at, own_end; /* bytes of what this rank has for itself: copied, and in all */
    int turns;
    struct node_ends ends;
    struct turn turn[];
};

/* ---- the lines ---- */

static struct node_pair *line_of(const struct node *n, uint32_t seq, int from, int to)
{
    size_t p = (size_t)n->size, place = seq % n->places;
    return &n->pairs[(place * p + (size_t)from) * p + (size_t)to];
}

static struct node_pair *pair_of(const struct node_pairs *p, int from, int to)
{
    return line_of(p->n, p->seq, from, to);
}

static struct node_tally *tally_of(struct node_pairs *p, int rank) { return node_tally_of(p->n, p->seq, rank); }

size_t node_pairs_layout(struct node *n, char *base)
{
    size_t p = (size_t)n->size, places = NODE_PAIRS_LINES / (p * p);
    if (p > NODE_PAIRS_RANKS || !var_int(VAR_COLL_DIRECT)) return 0;
    if (places < 2) places = 2;
    if (places > NODE_BIG_K) places = NODE_BIG_K;
    n->places = (uint32_t)places;
    n->pairs = (struct node_pair *)base;
    n->tallies = (struct node_tally *)(base + places * p * p * sizeof *n->pairs);
    return places * p * (p * sizeof *n->pairs + sizeof *n->tallies);
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

struct node_pairs *node_pairs_new(struct node *n, const struct coll_call *a, bool blocking, uint32_t seq)
{
    size_t ranks = (size_t)n->size, head = sizeof(struct node_pairs) + 2 * ranks * sizeof(struct turn);
    struct node_pairs *p = calloc(1, head + 2 * ranks * sizeof(struct node_end));
    if (!p) return NULL;
    p->n = n;
    p->call = a;
    p->seq = seq;
    p->blocking = blocking;
    p->sign = node_sign(n, NODE_BY_PAIRS);
    p->ends = (struct node_ends){.send = (struct node_end *)((char *)p + head), .size = n->size, .rank = n->rank};
    p->ends.recv = p->ends.send + ranks;
    if (node_v_is(a->kind)) {
        node_v_ends(n, a, &p->ends);
        return p;
    }
    node_ends_fill(&p->ends, a);
    return p;
}

void node_pairs_free(struct node_pairs *p)
{
    if (!p) return;
    node_ends_free(&p->ends);
    free(p);
}

/* Bytes of a chunk: large transfers in pieces so that both sides get some. Small ones in two, or, if the receiver sends as well,
 * so that the sender has something to receive meanwhile, in one. */
static uint32_t chunk_of(uint64_t bytes, bool both)
{
    uint64_t part = round_up(both ? bytes : bytes / 2, 4096), most = (uint64_t)limits_chunk.copied;
    return (uint32_t)(part > most ? most : part ? part : 4096);
}

/* This rank's half of a transfer. release: pairs with half_is_there */
static void say_sent(struct node_pair *pair, const struct node_end *e, bool both, uint32_t seq)
{
    pair->from = (uintptr_t)e->at;
    pair->bytes = e->bytes;
    pair->chunk = chunk_of(e->bytes, both);
    atomic_store_explicit(&pair->next, 0, memory_order_relaxed);
    atomic_store_explicit(&pair->done, 0, memory_order_relaxed);
    atomic_store_explicit(&pair->sent, seq, memory_order_release);
}

static void say_taken(struct node_pair *pair, const struct node_end *e, uint32_t seq)
{
    pair->to = (uintptr_t)e->at;
    pair->room = e->bytes;
    atomic_store_explicit(&pair->taken, seq, memory_order_release);
}

/* Of what goes to another, or comes from it, if there is something. */
static void add_turn(struct node_pairs *p, int other, bool sending)
{
    const struct node_end *e = sending ? &p->ends.send[other] : &p->ends.recv[other];
    if (!e->bytes) return;
    struct node_pair *pair = sending ? pair_of(p, p->n->rank, other) : pair_of(p, other, p->n->rank);
    p->turn[p->turns++] = (struct turn){.pair = pair, .other = other, .sending = sending};
}

/* From the rank behind this one on: the ranks begin with different others. */
static void plan(struct node_pairs *p)
{
    int size = p->n->size;
    for (int sending = 0; sending < 2; sending++)
        for (int i = 1; i < size; i++) add_turn(p, (p->n->rank + i) % size, sending);
}

/* Are the lines free, and the slot of the flag? */
static bool may_publish(const struct node_pairs *p)
{
    return node_free_slots(p->n, p->seq - p->n->places + NODE_BIG_K, true) && node_free_slots(p->n, p->seq, false);
}

static uint64_t own_bytes(const struct node_ends *e)
{
    return e->recv[e->rank].bytes ? e->send[e->rank].bytes : 0;
}

static void say(struct node_pairs *p)
{
    struct node_tally *t = tally_of(p, p->n->rank);
    node_ends_open(&p->ends);
    plan(p);
    p->own_end = own_bytes(&p->ends);
    /* relaxed: nobody else has a turn before it knows of our halves */
    atomic_store_explicit(&t->error, 0, memory_order_relaxed);
    atomic_store_explicit(&t->left, (uint32_t)p->turns, memory_order_relaxed);
    for (int i = 0; i < p->turns; i++) {
        const struct turn *w = &p->turn[i];
        if (w->sending)
            say_sent(w->pair, &p->ends.send[w->other], p->ends.recv[w->other].bytes > 0, p->seq);
        else
            say_taken(w->pair, &p->ends.recv[w->other], p->seq);
    }
    p->published = true;
}

/* acquire: pairs with say_sent and say_taken */
static bool half_is_there(const struct node_pairs *p, const struct turn *t)
{
    return atomic_load_explicit(t->sending ? &t->pair->taken : &t->pair->sent, memory_order_acquire) == p->seq;
}

bool node_pairs_are_ours(const struct node_pairs *p)
{
    for (int i = 0; i < p->turns; i++) {
        const struct turn *t = &p->turn[i];
        if ((t->met || half_is_there(p, t)) && !peer_is_helped(comm_index(p->n->comm, t->other))) return true;
    }
    return false;
}

/* Who sleeps may have something to copy now. One by one: helpers do not hear gates. */
void node_pairs_wake(struct node_pairs *p)
{
    if (p->blocking) return;
    for (int i = 0; i < p->turns; i++) peer_wake(comm_index(p->n->comm, p->turn[i].other));
    /* Ours was called for what was there before. */
    if (unlikely(background_any()) && node_pairs_are_ours(p)) lane_leaves_more(p->n->comm->lane);
}

static void publish(struct node_pairs *p)
{
    struct node *n = p->n;
    node_tell_reach(n);
    node_take_sign(n, p->seq, p->sign);
    say(p);
    if (p->blocking) {
        node_contribute(n, p->seq); /* where ranks share cores, the last one wakes the others */
    } else {
        node_signal(n, p->seq, n->rank);
        node_pairs_wake(p);
    }
}

/* Has the other said all that it has to say in this operation? A scatterv's flags are all the root's, and mean nothing.
 */
static bool has_come(struct node_pairs *p, int rank)
{
    struct node_wait w = {p->n, node_flag(p->n, p->seq), p->seq, rank, 0};
    return p->call->kind != COLL_SCATTERV && node_ready(&w);
}

/* ---- copying ---- */

/* Both sides hear of it; the transfer's other chunks are claimed and counted all the same. */
static TERN_COLD void note_error(struct node_pairs *p, int other, int error)
{
    node_tally_note(tally_of(p, p->n->rank), error);
    node_tally_note(tally_of(p, other), error);
}

static int copy(const struct node_pairs *p, const struct turn *t, uint64_t at, uint64_t bytes)
{
    const struct node_pair *pair = t->pair;
    struct iovec from = {(void *)(uintptr_t)(pair->from + at), bytes}, to = {(void *)(uintptr_t)(pair->to + at), bytes};
    if (!pair->from || !pair->to)
        return err_set(TERN_ERR_NOMEM, "rank %d or %d had no memory to pack its buffer", p->n->rank, t->other);
    struct peer *peer = peer_get(comm_index(p->n->comm, t->other));
    int rc = TERN_ERR_UNSUPPORTED;
    if (!peer) return err_code();
    struct tp_ep *ep = &peer->ep;
    if (ep->caps & TP_CAP_GETPUT)
        rc = t->sending ? ep_put(ep, &from, 1, &to, 1) : ep_get(ep, &to, 1, &from, 1);
    if (rc != TERN_ERR_UNSUPPORTED) return rc;
    return err_set(TERN_ERR_SYSTEM, "the system no longer lets the memory of rank %d be reached", t->other);
}

/* The transfer is over. */
static void settle(struct node_pairs *p, const struct turn *t)
{
    node_tally_less(tally_of(p, p->n->rank));
    if (node_tally_less(tally_of(p, t->other))) peer_wake(comm_index(p->n->comm, t->other));
}

/* Copies the next chunk of a transfer; false: none is left. */
static bool copy_chunk(struct node_pairs *p, struct turn *t)
{
    uint32_t i = node_pair_claim(t->pair, t->chunks);
    if (i == t->chunks) return false;
    uint64_t at = (uint64_t)((i + t->first) % t->chunks) * t->pair->chunk, all = node_pair_bytes(t->pair);
    int rc = copy(p, t, at, min_size(t->pair->chunk, all - at));
    if (unlikely(rc)) note_error(p, t->other, rc);
    if (node_pair_done(t->pair, t->chunks)) settle(p, t);
    p->n->moved++;
    return true;
}

/* The other's half is there. False: it is empty. */
static bool meet(struct node_pairs *p, struct turn *t)
{
    int receiver = t->sending ? t->other : p->n->rank;
    t->met = true;
    t->chunks = half_is_there(p, t) ? node_pair_chunks(t->pair) : 0;
    t->first = (uint32_t)((uint64_t)t->chunks * (uint64_t)receiver / (uint64_t)p->n->size);
    if (t->chunks) return true;
    node_tally_less(tally_of(p, p->n->rank));
    return false;
}

/* One chunk, of the first transfer that has one. Those that have none left are forgotten. */
static bool copy_some(struct node_pairs *p)
{
    bool found = false;
    int kept = 0;
    for (int i = 0; i < p->turns; i++) {
        struct turn *t = &p->turn[i];
        bool stays = found || (!t->met && !half_is_there(p, t) && !has_come(p, t->other));
        if (!stays && (t->met || meet(p, t))) stays = found = copy_chunk(p, t);
        if (stays) p->turn[kept++] = *t;
    }
    p->turns = kept;
    return found;
}

static char *packed(const struct node_end *e, uint64_t at) { return (char *)(uintptr_t)e->buf + e->type->true_lb + at; }

/* A piece, or all of it if it has gaps. False: nothing is left. */
static bool copy_own(struct node_pairs *p)
{
    const struct node_end *from = &p->ends.send[p->n->rank], *to = &p->ends.recv[p->n->rank];
    uint64_t at = p->own_at;
    if (at == p->own_end) return false;
    if (from->type->contig && to->type->contig && from->bytes == to->bytes) {
        p->own_at += min_size(p->own_end - at, (size_t)limits_chunk.copied);
        copy_memory(packed(to, at), packed(from, at), p->own_at - at);
    } else {
        p->own_at = p->own_end;
        type_copy_across((void *)(uintptr_t)to->buf, to->count, to->type, from->buf, from->count, from->type);
    }
    p->n->moved++;
    return true;
}

/* ---- the end ---- */

/* Who received less than was sent says so. */
static int check_lengths(struct node_pairs *p)
{
    for (int r = 0; r < p->n->size; r++) {
        const struct node_pair *in = pair_of(p, r, p->n->rank);
        if (r == p->n->rank || !p->ends.recv[r].bytes || in->bytes <= in->room) continue;
        if (atomic_load_explicit(&in->sent, memory_order_relaxed) != p->seq) continue; /* nothing came */
        return err_set(TERN_ERR_TRUNCATE, "rank %d sent %llu bytes in a %s, where there is room for %llu", r,
                       (unsigned long long)in->bytes, coll_kind_name(p->call->kind), (unsigned long long)in->room);
    }
    return 0;
}

static int result(struct node_pairs *p)
{
    int error = atomic_load_explicit(&tally_of(p, p->n->rank)->error, memory_order_relaxed); /* behind `left` */
    if (error && err_code() != error)
        err_set(error, "another process could not copy its part of a %s", coll_kind_name(p->call->kind));
    if (error) return error;
    node_ends_unpack(&p->ends);
    return check_lengths(p);
}

/* acquire: pairs with node_tally_less; what others have copied here is there */
static bool has_ended(struct node_pairs *p)
{
    return !atomic_load_explicit(&tally_of(p, p->n->rank)->left, memory_order_acquire);
}

bool node_pairs_begin(struct node_pairs *p)
{
    if (!may_publish(p)) return false;
    say(p);
    return true;
}

bool node_pairs_go_on(struct node_pairs *p, int *rc_p)
{
    if (p->over) return true;
    copy_some(p);
    if (!has_ended(p)) return false;
    int rc = result(p);
    if (!*rc_p) *rc_p = rc;
    return p->over = true;
}

void node_pairs_refuse(struct node *n, uint32_t seq, int from)
{
    say_taken(line_of(n, seq, from, n->rank), &(struct node_end){0}, seq);
    peer_wake(comm_index(n->comm, from));
}

void node_pairs_expect_none(struct node_pairs *p, int from)
{
    for (int i = 0; i < p->turns; i++) {
        struct turn *t = &p->turn[i];
        if (t->sending || t->other != from || t->met) continue;
        *t = p->turn[--p->turns];
        node_tally_less(tally_of(p, p->n->rank));
        return;
    }
}

enum node_pairs_state node_pairs_step(struct node_pairs *p, int *rc_p)
{
    struct node *n = p->n;
    *rc_p = 0;
    if (!p->published && !may_publish(p)) return NODE_PAIRS_GO_ON;
    enum node_word all = node_all(n, NODE_REACHES);
    if (unlikely(all == NODE_NO)) {
        node_finish(n, p->seq, false);
        return NODE_PAIRS_REFUSED;
    }
    if (!p->published) publish(p);
    if (unlikely(all != NODE_YES)) return NODE_PAIRS_GO_ON;
    if (copy_some(p) || copy_own(p) || !has_ended(p)) return NODE_PAIRS_GO_ON;
    *rc_p = result(p);
    node_finish(n, p->seq, false);
    return NODE_PAIRS_OVER;
}
