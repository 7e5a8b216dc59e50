/*
 * node.c - the flags of a communicator's node-local block: signalling, waiting, and
 * when slots may be used again; see node.h for the memory.
 */
#include "coll/node/node.h"
#include "coll/node/block.h"

/* ---- waiting ---- */

bool node_ready(void *wait) { return node_is_there(wait); }

static void wait_until(struct node *n, bool (*ready)(void *), void *arg, struct gate *gate)
{
    if (ready(arg)) return;
    struct lane *l = n->comm->lane;
    lane_enter(l);
    lane_wait(l, ready, arg, gate);
    lane_leave(l);
}

void node_wait_for(struct node *n, uint32_t seq, int rank)
{
    struct node_wait w = {n, seq, rank, 0};
    wait_until(n, node_ready, &w, &n->head->gate);
}

/* ---- slots ---- */

/* All ranks have contributed to `seq`: so they have finished those before, but for any that says otherwise. */
static inline void all_came(struct node *n, uint32_t seq)
{
    /* relaxed: written before the contributions, which have been seen */
    if (likely(atomic_load_explicit(&n->head->behind[seq % NODE_K], memory_order_relaxed) != seq) &&
        (int32_t)(seq - 1 + NODE_K - n->safe) > 0)
        n->safe = seq - 1 + NODE_K;
}

bool node_look_for_slots(struct node *n, uint32_t until)
{
    uint32_t least = n->done;
    for (int r = 0; r < n->size; r++) {
        uint32_t done = atomic_load_explicit(&node_done(n, r)->seq, memory_order_acquire); /* pairs with node_finish */
        if ((int32_t)(done - least) < 0) least = done;
    }
    n->safe = least + NODE_K;
    return (int32_t)(n->safe - until) >= 0;
}

struct wait_free {
    struct node *n;
    bool big;
};

/* Who has got so far ahead lets the others catch up with half of that: else it would meet them in every operation from
 * here on, at the price of a line between caches for both, or of a switch where they share a core. All that they need
 * for that from here is in the slots. */
static bool half_is_free(void *wait)
{
    const struct wait_free *w = wait;
    return node_free_slots(w->n, w->n->seq + (w->big ? NODE_BIG_K / 2 : NODE_K / 2), w->big);
}

uint32_t node_begin(struct node *n, bool big)
{
    uint32_t seq = ++n->seq;
    if (unlikely(!node_free_slots(n, seq, big))) {
        struct wait_free w = {n, big};
        wait_until(n, half_is_free, &w, &n->head->room);
    }
    return seq;
}

/* ---- signalling ---- */

/* Ranks that wait for more than these flags have to be woken one by one. */
void node_wake_pollers(struct node *n)
{
    struct lane *l = n->comm->lane;
    lane_enter(l);
    for (int r = 0; r < n->size; r++)
        if (r != n->rank) peer_wake(comm_index(n->comm, r));
    lane_leave(l);
}

bool node_arrive(struct node *n, uint32_t seq)
{
    uint32_t k = seq % NODE_K;
    struct node_round *r = &n->head->round[k];
    node_signal_own(n, seq);
    if (!n->counted) return false;
    /* acq_rel: the last one has seen everybody's payload and passes that on by `released` */
    if (atomic_fetch_add_explicit(&r->arrived, 1, memory_order_acq_rel) + 1 != (uint32_t)n->size) return false;
    /* relaxed: the next count comes K operations later, behind `released` */
    atomic_store_explicit(&r->arrived, 0, memory_order_relaxed);
    return true;
}

void node_release(struct node *n, uint32_t seq)
{
    atomic_store_explicit(&n->head->round[seq % NODE_K].released, seq, memory_order_release);
    node_announce(n);
}

/*
 * Ranks above wait for this one, and for all below it. Where they may sleep and share cores they are not woken for
 * nothing: while one below is missing, that one will do it. The fence makes sure that of two who come at the same time
 * one sees the other: if this one does not see the other's flag, whoever is woken by the other sees this one's.
 */
void node_pass_on(struct node *n, uint32_t seq)
{
    struct node_wait below = {n, seq, NODE_LOWER, 0};
    node_signal(n, seq, n->rank);
    if (n->rank == n->size - 1) return;
    if (n->counted) {
        atomic_thread_fence(memory_order_seq_cst);
        if (!node_ready(&below)) return;
    }
    node_announce(n);
}

void node_finish(struct node *n, uint32_t seq, bool met_all)
{
    if (met_all) all_came(n, seq);
    if (likely(!n->over && seq == n->done + 1)) {
        n->done = seq;
    } else {
        n->over |= 1u << (seq - n->done - 1);
        if (!(n->over & 1)) return; /* others before it are still in flight */
        for (; n->over & 1; n->over >>= 1) n->done++;
    }
    /* release: pairs with node_free_slots; our reads of the slots are over */
    atomic_store_explicit(&node_done(n, n->rank)->seq, n->done, memory_order_release);
    if (unlikely(gate_check(&n->head->room, n->fenced))) node_wake_pollers(n);
}
