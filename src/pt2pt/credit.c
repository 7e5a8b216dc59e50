/*
 * credit.c - eager credit: how much of eager messages may lie here unreceived.
 *
 * TERN_EAGER_STORE bounds the eager bytes of all peers together, and each peer has a quota of it: what it may have
 * sent and we have not consumed. The quotas' sum never exceeds the bound:
 *
 *     | quota of peer 0 | quota of peer 1 | ... | lane.spare |
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
#include "base/var.h"
#include "proc/proc.h"
#include "pt2pt/limits.h"
#include "pt2pt/lost.h"
#include "pt2pt/protocol.h"

void pt_credit_open(struct lane *l)
{
    l->credit = var_int(VAR_EAGER_CREDIT);
    l->store = var_int(VAR_EAGER_STORE);
    l->spare = l->store - peer_first_quota() * (int64_t)proc_self()->size;
}

/* What quotas may grow by. Peers of other jobs come with quotas that nobody has kept room for: then it may be negative
 * for a while, and quotas become smaller. */
static int64_t spare(void) { return lane0.spare - peer_other_quotas; }

void pt_credit_forget(const struct peer *p) { lane0.spare += p->quota - peer_first_quota(); }

/* Eager bytes consumed here for which the peer has not been given credit yet. */
static int64_t owed_to(const struct peer *p) { return p->quota / 2 - p->due; }

/* What the peer's quota grows by. */
static int64_t growth(const struct peer *p)
{
    bool keeps_up = p->stored <= p->quota / 4;
    int64_t n = min_int64(min_int64(p->quota, lane0.credit - p->quota), spare() / 4);
    return keeps_up && n > 0 ? n : 0;
}

/* Bytes of what is owed to the peer by which its quota shrinks instead. */
static int64_t withheld(const struct peer *p, int64_t owed)
{
    bool scarce = spare() < lane0.store / 16;
    return scarce && p->quota > 2 * peer_first_quota() ? owed / 2 : 0;
}

void pt_give_credit(struct peer *p)
{
    int64_t owed = owed_to(p), less = withheld(p, owed), change = less ? -less : growth(p);
    p->quota += change;
    lane0.spare -= change;
    p->due = p->quota / 2;
    if (owed || change) lane_control(p, AM_CREDIT, (uint64_t)(owed - less), (uint64_t)change, NULL, 0);
}

void pt_offered(struct peer *p, uint64_t bytes)
{
    if (p->lost || !p->ep.ops || bytes > (uint64_t)limits_of(p)->eager_max) return;
    if (eager_cost(bytes) > p->quota - p->stored - owed_to(p)) pt_give_credit(p);
}

/* By how much our quota there changes: what we are given beyond our own TERN_EAGER_CREDIT we do not use. */
static int64_t change_there(const struct peer *p, int64_t change)
{
    int64_t most = lane0.credit - p->quota_there;
    return change <= 0 || most >= change ? change : most > 0 ? most : 0;
}

void pt_on_credit(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    int64_t change = change_there(from, (int64_t)h1),
            taken = from->quota_there - from->credit + (change < 0 ? change : 0);
    (void)data, (void)n;
    if (unlikely(from->lost)) return;
    if (unlikely(taken < 0 || h0 > (uint64_t)taken)) {
        pt_violation(from, "it gives back %llu bytes of eager credit, more than was taken", (unsigned long long)h0);
        return;
    }
    from->quota_there += change;
    from->credit += (int64_t)h0 + (change > 0 ? change : 0);
}
