/*
 * retire.c - giving back the block of a communicator that goes.
 *
 * Other ranks may be behind: they read slots, sleep at the gates, or look whether somebody sleeps there. So each rank says
 * in the block when it will not touch it any more (node_done.left), which is when its communicator goes, and the rank that
 * owns the memory keeps it until all have said so. It looks when the next block is made.
 *
 * When the last user of the library goes, the owner waits, but for less: until all ranks have finished the last operation.
 * A rank that exits takes nothing from those that have mapped its memory.
 *
 * Threads: any; `lock` is a leaf lock. Memory of the segment is taken and given back under the lane's lock.
 */
#include "base/clock.h"
#include "base/lock.h"
#include "coll/node/block.h"
#include "coll/node/node.h"
#include "coll/node/wide.h"
#include "pt2pt/api.h"
#include "transport/peer.h"

#include <stdlib.h>
#include <unistd.h>

struct retired {
    struct retired *next;
    struct node node;
    struct rankmap *members; /* its communicator is gone */
};
static struct retired *retired;
static struct lock lock; /* of the list */

/* ---- what the ranks have said ---- */

/* acquire: pairs with node_retire; the rank's use of the block is over */
static bool has_left(struct node *n, int r) { return atomic_load_explicit(&node_done(n, r)->left, memory_order_acquire); }

/* acquire: pairs with node_finish; the rank has read what it wants of this process */
static bool has_finished(struct node *n, int r)
{
    return atomic_load_explicit(&node_done(n, r)->seq, memory_order_acquire) == n->seq;
}

static bool all(struct retired *e, bool (*have)(struct node *, int))
{
    for (int r = 0; r < e->node.size; r++)
        if (!have(&e->node, r) && !peer_is_lost(rankmap_at(e->members, r))) return false;
    return true;
}

/* ---- the list ---- */

static void forget(struct retired *r)
{
    rankmap_unref(r->members);
    free(r);
}

/* Takes those that all have left out of the list. */
static struct retired *take_left(void)
{
    struct retired *left = NULL;
    lock_take(&lock);
    for (struct retired **at = &retired, *r; (r = *at);) {
        if (!all(r, has_left)) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        r->next = left;
        left = r;
    }
    lock_give(&lock);
    return left;
}

void node_reclaim(void)
{
    for (struct retired *r = take_left(), *next; r; r = next) {
        next = r->next;
        node_wide_free(&r->node);
        peer_shared_free(r->node.block, r->node.bytes);
        forget(r);
    }
}

void node_retire(struct node *n)
{
    bool is_known = n->state == NODE_READY;
    /* Without memory the block is lost until the end; so is one that not all ranks come to an end with. */
    struct retired *r = n->block && !node_failed(n) ? malloc(sizeof *r) : NULL;
    /* release: pairs with has_left; nothing of this rank's touches the block behind it */
    if (is_known) atomic_store_explicit(&node_done(n, n->rank)->left, 1, memory_order_release);
    if (!r) return;
    r->node = *n;
    r->members = rankmap_ref(n->comm->map);
    lock_take(&lock);
    r->next = retired;
    retired = r;
    lock_give(&lock);
}

/* ---- the end ---- */

/* How long a rank that failed in the middle of an operation is waited for. */
#define SETTLE_NS UINT64_C(2000000000)

static bool all_finished(void)
{
    bool yes = true;
    lock_take(&lock);
    for (struct retired *r = retired; r && yes; r = r->next) yes = all(r, has_finished);
    lock_give(&lock);
    return yes;
}

void node_settle(void)
{
    uint64_t start = clock_ns();
    node_reclaim();
    while (!all_finished() && clock_ns() - start < SETTLE_NS) {
        pt_progress_once(NULL); /* hears of deaths */
        usleep(100);
        node_reclaim();
    }
}

void node_forget_retired(void)
{
    while (retired) {
        struct retired *r = retired;
        retired = r->next;
        forget(r);
    }
}
