/*
 * node.c - the flags of a communicator's node-local block: signalling, waiting,
 * when slots may be used again, and what ranks say of themselves; see node.h for the memory.
 */
#include "coll/node/node.h"
#include "coll/node/block.h"

/* ---- waiting ---- */

int node_lower_seen(struct node *n, uint32_t seq, uint64_t flag, int seen)
{
    if (n->rank && node_is_prefix(node_slot(n, seq, n->rank - 1), flag)) return n->rank;
    return node_first_seen(n, seq, flag, seen, n->rank);
}

bool node_ready(void *wait) { return node_is_there(wait); }

/* Asks the ranks whose flags are not set: also where arrivals are counted each rank sets its own. The own flag is set
 * by the root, which is not known here. */
void node_doubt(const struct node_wait *w)
{
    struct node *n = w->n;
    if (w->rank == n->rank) {
        node_doubt_all(n);
        return;
    }
    int first = w->rank >= 0 ? w->rank : 0, end = w->rank == NODE_LOWER ? n->rank : n->size;
    if (w->rank >= 0) end = w->rank + 1;
    for (int r = first; r < end; r++)
        if (r != n->rank && !node_is_set(node_slot(n, w->seq, r), w->flag)) pt_call_log_doubt(n->comm, r);
}

/* A rank that has finished the last operation of this one may have finalised, though others are not done yet. */
void node_doubt_all(struct node *n)
{
    for (int r = 0; r < n->size; r++) {
        uint32_t done = atomic_load_explicit(&node_done(n, r)->seq, memory_order_relaxed);
        if (r != n->rank && (int32_t)(done - n->seq) < 0) pt_call_log_doubt(n->comm, r);
    }
}

static void doubt_wait(void *wait) { node_doubt(wait); }

static bool is_there_or_over(void *wait)
{
    const struct node_wait *w = wait;
    return node_is_there(wait) || node_is_over(w->n);
}

int node_wait_for(struct node *n, uint32_t seq, int rank)
{
    struct node_wait w = {n, node_flag(n, seq), seq, rank, 0};
    if (node_is_there(&w)) {
        sanitizer_acquired(&lanes_detached);
        return 0;
    }
    struct lane *l = n->comm->lane;
    lane_enter(l);
    lane_wait_at(l, is_there_or_over, &w, &n->head->gate, doubt_wait);
    lane_leave(l);
    return node_failed(n);
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

/* The last operation that all ranks have finished. acquire: pairs with node_finish */
static uint32_t finished_by_all(struct node *n)
{
    uint32_t least = n->done;
    for (int r = 0; r < n->size; r++) {
        uint32_t done = atomic_load_explicit(&node_done(n, r)->seq, memory_order_acquire);
        if ((int32_t)(done - least) < 0) least = done;
    }
    return least;
}

static bool are_free(struct node *n, uint32_t until)
{
    n->safe = finished_by_all(n) + NODE_K;
    return (int32_t)(n->safe - until) >= 0;
}

/* This rank may be about to wait for these slots: it says so, and looks again. Of several that it waits for the first one
 * counts. The fence makes sure that this look sees what is finished, or make_room sees what is wanted. */
static bool want(struct node *n, uint32_t until)
{
    _Atomic uint64_t *wants = &node_done(n, n->rank)->wants;
    uint64_t said = atomic_load_explicit(wants, memory_order_relaxed);
    uint32_t wanted = until - NODE_K, least = n->safe - NODE_K;
    bool stands = said && (int32_t)(least - (uint32_t)said) < 0;
    if (stands && (int32_t)((uint32_t)said - wanted) <= 0) return false;
    atomic_store_explicit(wants, NODE_WANTS | wanted, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    return are_free(n, until);
}

bool node_look_for_slots(struct node *n, uint32_t until)
{
    if (!are_free(n, until) && !want(n, until)) return false;
    atomic_store_explicit(&node_done(n, n->rank)->wants, 0, memory_order_relaxed);
    return true;
}

struct wait_free {
    struct node *n;
    uint32_t until;
};

static bool is_free(void *wait)
{
    const struct wait_free *w = wait;
    return node_is_over(w->n) || node_look_for_slots(w->n, w->until);
}

static void doubt_free(void *wait) { node_doubt_all(((struct wait_free *)wait)->n); }

static TERN_COLD int wait_free(struct node *n, uint32_t until)
{
    struct wait_free w = {n, until};
    struct lane *l = n->comm->lane;
    lane_enter(l);
    lane_wait_at(l, is_free, &w, &n->head->room, doubt_free);
    lane_leave(l);
    return node_failed(n);
}

int node_begin_when(struct node *n, uint32_t until, uint32_t enough, uint64_t way, uint32_t *seq_p)
{
    uint32_t seq = ++n->seq;
    int rc = likely((int32_t)(n->safe - until) >= 0) || are_free(n, until) ? 0 : wait_free(n, enough);
    node_take_sign(n, seq, node_sign(n, way));
    *seq_p = seq;
    return rc;
}

/* A rank that has got so far ahead lets the others catch up with half of that, or with most of it where they share cores: else it
 * would meet them in every operation from here on, at the price of a line between caches for both, or of a switch. All that
 * they need for that from here is in the slots. */
int node_begin(struct node *n, bool big, enum node_way way, uint32_t *seq_p)
{
    uint32_t slots = big ? NODE_BIG_K : NODE_K, more = n->counted ? slots - slots / 8 : slots / 2;
    uint32_t until = n->seq + 1 + (big ? NODE_K - NODE_BIG_K : 0);
    return node_begin_when(n, until, until + more, way, seq_p);
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

/* Ranks that call different things are never counted as all of them: the signs have to add up, too. */
bool node_arrive(struct node *n, uint32_t seq)
{
    uint32_t k = seq % NODE_K;
    uint64_t one = node_flag(n, seq) << 16 | 1;
    struct node_round *r = &n->head->round[k];
    node_signal_own(n, seq);
    if (!n->counted) return false;
    /* acq_rel: the last one has seen everybody's payload and passes that on by `released` */
    if (atomic_fetch_add_explicit(&r->arrived, one, memory_order_acq_rel) + one != one * (uint32_t)n->size)
        return false;
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
    struct node_wait below = {n, node_flag(n, seq), seq, NODE_LOWER, 0};
    node_signal(n, seq, n->rank);
    if (n->rank == n->size - 1) return;
    if (n->counted) {
        atomic_thread_fence(memory_order_seq_cst);
        if (!node_ready(&below)) return;
    }
    node_announce(n);
}

/* Wakes those who sleep for slots if one of them has what it wants: each for nothing would be a switch. The fence makes sure
 * that of two ranks that finish at the same time one sees the other; see also `want`. */
static TERN_COLD void make_room(struct node *n)
{
    atomic_thread_fence(memory_order_seq_cst);
    uint32_t least = finished_by_all(n);
    for (int r = 0; r < n->size; r++) {
        uint64_t wants = atomic_load_explicit(&node_done(n, r)->wants, memory_order_relaxed);
        if (!wants || (int32_t)(least - (uint32_t)wants) < 0) continue;
        if (node_open_gate(n, &n->head->room)) node_wake_pollers(n);
        return;
    }
}

void node_finish(struct node *n, uint32_t seq, bool met_all)
{
    if (met_all) all_came(n, seq);
    if (likely(!n->over && seq == n->done + 1)) {
        n->done = seq;
    } else {
        n->over |= 1u << (seq - n->done - 1);
        if (!(n->over & 1)) return; /* others before it are still pending */
        for (; n->over & 1; n->over >>= 1) n->done++;
    }
    /* release: pairs with node_free_slots; our reads of the slots are over */
    atomic_store_explicit(&node_done(n, n->rank)->seq, n->done, memory_order_release);
    if (unlikely(node_has_sleepers(n, &n->head->room))) make_room(n);
}

/* ---- what ranks say of themselves ---- */

void node_tell(struct node *n, enum node_fact f, bool yes)
{
    atomic_store_explicit(&node_done(n, n->rank)->says[f], yes ? NODE_YES : NODE_NO, memory_order_release);
    node_open_gate(n, &n->head->gate);
    node_wake_pollers(n); /* helpers do not hear gates */
}

static enum node_word look(struct node *n, enum node_fact f, int ranks)
{
    enum node_word all = NODE_YES;
    for (int r = 0; r < ranks && all == NODE_YES; r++)
        all = atomic_load_explicit(&node_done(n, r)->says[f], memory_order_acquire); /* pairs with node_tell */
    return all;
}

enum node_word node_look_at_all(struct node *n, enum node_fact f)
{
    enum node_word all = look(n, f, n->size);
    atomic_store_explicit(&n->all_say[f], all, memory_order_relaxed);
    return all;
}

struct wait_words {
    struct node *n;
    enum node_fact fact;
    int ranks;
};

static bool is_known(void *wait)
{
    const struct wait_words *w = wait;
    return look(w->n, w->fact, w->ranks) != NODE_UNKNOWN || node_is_over(w->n);
}

static void doubt_words(void *wait)
{
    const struct wait_words *w = wait;
    for (int r = 0; r < w->ranks; r++)
        if (!atomic_load_explicit(&node_done(w->n, r)->says[w->fact], memory_order_relaxed)) pt_call_log_doubt(w->n->comm, r);
}

int node_await_words(struct node *n, enum node_fact f, int ranks, bool *yes_p)
{
    struct wait_words w = {n, f, ranks};
    struct lane *l = n->comm->lane;
    if (!is_known(&w)) {
        lane_enter(l);
        lane_wait_at(l, is_known, &w, &n->head->gate, doubt_words);
        lane_leave(l);
    }
    *yes_p = look(n, f, ranks) == NODE_YES;
    return node_failed(n);
}
