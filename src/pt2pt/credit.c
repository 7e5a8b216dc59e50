/*
 * credit.c - see credit.h.
 *
 * TERN_EAGER_STORE bounds the eager bytes of all peers together, and each peer has a quota of it: what it may have
 * sent and we have not consumed. The quotas' sum never exceeds the bound:
 *
 *     | quota of peer 0 | quota of peer 1 | ... | eager_store.spare |
 *
 * A quota begins with the peer's share of half of the bound (peer_first_quota), which the peer reads on our card. It
 * doubles, out of what is spare, when the peer has used up half of it and does not leave the rest lying, and when a
 * message was offered for want of credit and its receive waited; at most a quarter of what is spare goes to one peer at
 * a time, and TERN_EAGER_CREDIT bounds a quota. When little is spare, larger quotas become smaller: a part of what the
 * peer gets back is kept.
 *
 * Credit goes back by AM_CREDIT when half of a quota has been consumed. A sender without credit offers its messages
 * (AM_RTS), so that it is held back until they are received, and nothing has to be dropped.
 */
#include "pt2pt/credit.h"
#include "base/var.h"
#include "proc/jobs.h"
#include "proc/proc.h"
#include "pt2pt/dispatch.h"
#include "pt2pt/lane.h"
#include "pt2pt/limits.h"
#include "pt2pt/lost.h"
#include "pt2pt/protocol.h"
#include "pt2pt/rndv/ahead.h"
#include "pt2pt/say.h"

struct eager_store eager_store;
static struct lock store_lock; /* a leaf: `spare` and quotas */

void pt_credit_open(void)
{
    int64_t bytes = var_int(VAR_EAGER_STORE);
    eager_store = (struct eager_store){
        .credit = var_int(VAR_EAGER_CREDIT), .bytes = bytes, .spare = bytes - peer_first_quota() * (int64_t)proc_self()->size};
}

/* What quotas may grow by. Peers of other jobs come with quotas that nobody has kept room for: then it may be negative
 * for a while, and quotas become smaller. */
static int64_t spare(void) { return eager_store.spare - counter_get(&peer_other_quotas); }

void pt_credit_forget(const struct peer *p)
{
    leaf_take(&store_lock);
    eager_store.spare += p->quota - peer_first_quota();
    leaf_give(&store_lock);
}

/* Eager bytes consumed here for which the peer has not been given credit yet. */
static int64_t owed_to(const struct peer *p) { return p->quota / 2 - counter_get(&p->due); }

/* ---- tallies ---- */

/* What is stored and what is consumed is told to the peer when it is more than the quota shifted by this. So as many lanes as there
 * can be hold back an eighth of the quota of each. */
#define TALLY_SHIFT 9
static_assert((1 << TALLY_SHIFT) / LANES_MAX == 8, "an eighth");

/* The most that all lanes hold back of what is stored and consumed. */
static int64_t held_back(const struct peer *p) { return wires_threaded ? p->quota / 4 : 0; }

/* The lane has a new tally of that peer. The old one is told last, as that may send a message. */
static void change_tally(struct lane *l, struct peer *p)
{
    struct tally old = l->tally;
    l->tally = (struct tally){.of = p, .most = counter_get(&p->quota) >> TALLY_SHIFT};
    if (old.stored) counter_add(&old.of->stored, old.stored);
    if (old.consumed && counter_add(&old.of->due, -old.consumed) < 0) pt_give_credit(l, old.of);
}

void pt_settle_tally(struct lane *l)
{
    if (l->tally.of) change_tally(l, l->tally.of);
}

/* NULL: the peer has none. */
static TERN_COLD struct tally *begin_tally(struct lane *l, struct peer *p)
{
    if (!jobs_is_own(p->index)) return NULL;
    change_tally(l, p);
    return &l->tally;
}

static struct tally *tally_of(struct lane *l, struct peer *p) { return likely(l->tally.of == p) ? &l->tally : begin_tally(l, p); }

void pt_count_consumed(struct lane *l, struct peer *p, int64_t bytes)
{
    struct tally *t = tally_of(l, p);
    if (likely(t != NULL)) {
        t->consumed += bytes;
        if (unlikely(t->consumed > t->most)) pt_settle_tally(l);
    } else if (counter_add(&p->due, -bytes) < 0) {
        pt_give_credit(l, p);
    }
}

void pt_count_stored(struct lane *l, struct peer *p, int64_t bytes)
{
    struct tally *t = tally_of(l, p);
    if (likely(t != NULL)) {
        t->stored += bytes;
        if (unlikely(t->stored > t->most || t->stored < -t->most)) pt_settle_tally(l);
    } else {
        counter_add(&p->stored, bytes);
    }
}

/* ---- giving ---- */

/* What the peer's quota grows by. */
static int64_t growth(const struct peer *p)
{
    bool keeps_up = counter_get(&p->stored) <= p->quota / 4;
    int64_t n = min_int64(min_int64(p->quota, eager_store.credit - p->quota), spare() / 4);
    return keeps_up && n > 0 ? n : 0;
}

/* Bytes of what is owed to the peer by which its quota shrinks instead. */
static int64_t withheld(const struct peer *p, int64_t owed)
{
    bool scarce = spare() < eager_store.bytes / 16;
    return scarce && p->quota > 2 * peer_first_quota() ? owed / 2 : 0;
}

/* What a peer is told. */
struct gift {
    int64_t bytes, change;
};

/* With the lock. Other threads may consume meanwhile: they count from what is due next. */
static struct gift give(struct peer *p)
{
    int64_t owed = owed_to(p), less = withheld(p, owed), change = less ? -less : growth(p);
    counter_add(&p->quota, change);
    eager_store.spare -= change;
    counter_add(&p->due, p->quota / 2 - ((p->quota - change) / 2 - owed));
    return (struct gift){owed - less, change};
}

/* The lock is given back before: a message may need that of its wire. */
static void tell(struct lane *l, struct peer *p, struct gift g)
{
    if (g.bytes || g.change) lane_say(l, p, AM_CREDIT, (uint64_t)g.bytes, (uint64_t)g.change, NULL, 0);
}

void pt_give_credit(struct lane *l, struct peer *p)
{
    struct gift g = {0, 0};
    leaf_take(&store_lock);
    if (counter_get(&p->due) < 0) g = give(p); /* else another thread was faster */
    leaf_give(&store_lock);
    tell(l, p, g);
}

/* Bytes of the largest message that is not offered, if there is credit. */
static uint64_t largest_by_credit(struct peer *p)
{
    const struct limits *l = limits_of(p);
    return (uint64_t)(l->ahead_max > l->eager_max ? l->ahead_max : l->eager_max);
}

void pt_offered(struct lane *l, struct peer *p, uint64_t bytes)
{
    struct gift g = {0, 0};
    if (p->lost || !peer_is_connected(p) || bytes > largest_by_credit(p)) return;
    if (wires_threaded) pt_settle_tally(l);
    leaf_take(&store_lock);
    int64_t cost = eager_cost(bytes);
    if (bytes > (uint64_t)limits_of(p)->eager_max) cost += p->quota / AHEAD_LEAVES;
    if (cost > p->quota - counter_get(&p->stored) - owed_to(p) - held_back(p)) g = give(p);
    leaf_give(&store_lock);
    tell(l, p, g);
}

/* By how much our quota there changes: what we are given beyond our own TERN_EAGER_CREDIT we do not use. */
static int64_t change_there(const struct peer *p, int64_t change)
{
    int64_t most = eager_store.credit - counter_get(&p->quota_there);
    return change <= 0 || most >= change ? change : most > 0 ? most : 0;
}

/* Needs no lane: who polls the wire is the only one that gives credit of this peer. */
void pt_on_credit(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    int64_t change = change_there(from, (int64_t)h1),
            taken = counter_get(&from->quota_there) - counter_get(&from->credit) + (change < 0 ? change : 0);
    (void)data, (void)n;
    if (unlikely(from->lost)) return;
    if (unlikely(taken < 0 || h0 > (uint64_t)taken)) {
        pt_violation(from, "it gives back %llu bytes of eager credit, more than was taken", (unsigned long long)h0);
        return;
    }
    counter_add(&from->quota_there, change);
    counter_add(&from->credit, (int64_t)h0 + (change > 0 ? change : 0));
}
