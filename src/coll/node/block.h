/*
 * block.h - the memory behind node.h: its layout, a rank's view of it, and the flags.
 */
#ifndef TERN_COLL_NODE_BLOCK_H
#define TERN_COLL_NODE_BLOCK_H

#include "base/sleep.h"
#include "base/var.h"
#include "coll/coll.h"
#include "coll/way.h"
#include "pt2pt/lane.h"
#include "pt2pt/lanes.h"

#include <stddef.h>

#define NODE_K 32      /* operations whose slots exist at the same time: that far a rank gets ahead of others */
#define NODE_BIG_K 8   /* and those whose payloads lie in the big slots */
#define NODE_INLINE 48 /* bytes of payload that lie beside the flag */
#define NODE_MIDDLE 512 /* and those that lie in a slot of middle size */
#define NODE_LENGTHS 8
#define NODE_RANKS_MAX 256

/* Counting arrivals of one operation in K (ranks that share cores). Every rank adds one in each counting operation. */
struct node_round {
    _Atomic uint64_t arrived;  /* ranks and the sum of their flags (node_arrive); the last one sets it back to 0 */
    _Atomic uint32_t released; /* number of the last operation that is */
};

struct node_head {
    struct gate gate;        /* who waits for contributions */
    struct gate room;        /* who waits for slots to be free again */
    _Atomic uint32_t fenced; /* a rank whose bell is fenced sets it when it attaches: all wakers fence from then on */
    uint64_t wide_at;        /* where the wide slots are in rank 0's segment; written before its NODE_HAS_WIDE */
    TERN_ALIGNED(CACHE_LINE) struct node_round round[NODE_K];
    /* The operation that some rank contributed to while it had not finished all before; written rarely. */
    TERN_ALIGNED(CACHE_LINE) _Atomic uint32_t behind[NODE_K];
};
static_assert(sizeof(struct node_head) == 11 * CACHE_LINE, "shared layout");

#define NODE_WANTS (UINT64_C(1) << 32)

/*
 * What a rank says of itself in its line of the block, once. It never changes, so all ranks find the same of all, whenever they
 * look, and need neither an operation nor an order for that.
 */
enum node_fact {
    NODE_REACHES,  /* it may read and write the memory of all others (pairs.h) */
    NODE_HAS_WIDE, /* it has mapped the wide slots (wide.h) */
    NODE_FACTS
};
enum node_word { NODE_UNKNOWN, NODE_YES, NODE_NO };

struct node_done {
    TERN_ALIGNED(CACHE_LINE) _Atomic uint32_t seq; /* this rank has finished all operations up to this one */
    _Atomic uint8_t says[NODE_FACTS]; /* enum node_word */
    _Atomic uint64_t wants; /* 0, or NODE_WANTS and an operation: it may sleep until all ranks have finished that (node_finish) */
    _Atomic uint32_t left; /* it touches the block no more, nor sleeps at its gates: the block may go (retire.c) */
};
static_assert(sizeof(struct node_done) == CACHE_LINE, "shared layout");

struct node_slot {
    TERN_ALIGNED(CACHE_LINE) _Atomic uint64_t flag; /* node_flag of the operation whose payload is here */
    union {
        struct {
            uint32_t terms; /* of the others: bytes, so that ranks who do not agree notice (ops.c) */
            _Atomic uint32_t prefix; /* of scan and exscan: 1, what all ranks up to this one give together is here (ops.c) */
        };
        uint32_t length; /* of operations where not all ranks know it, see v.h ... */
        uint8_t lengths[NODE_LENGTHS];  /* ... for each rank */
    };
    char payload[NODE_INLINE];
};
static_assert(offsetof(struct node_slot, payload) == 16, "shared layout");
static_assert(sizeof(struct node_slot) == CACHE_LINE, "a small contribution moves one line");

struct node_pair;
struct node_left;

enum node_state {
    NODE_MAKING, /* rank 0 has not said yet where the block is */
    NODE_READY,
    NODE_NONE /* there is no memory for one, or making it failed (`error`) */
};

/* Of wide.c: the wide slots of a communicator. */
struct node_wide {
    char *at;
    size_t bytes; /* of a slot */
    size_t whole; /* of all of them */
    uint32_t sets;
    void *block;  /* of the rank that owns the memory, else NULL */
};

struct node {
    struct node_head *head;
    struct node_done *done_of; /* [P] */
    struct node_slot *slots;   /* [K][P] */
    char *middle;              /* [K][P] of NODE_MIDDLE */
    char *big;                 /* [BIG_K][P] of big_bytes */
    size_t big_bytes;
    size_t share, small_share; /* of each rank in a big slot, and in a slot's own line: v.h */
    uint32_t short_kinds;      /* of v.h, a bit each, that need no questions if all blocks are short (node_v_is_short) */
    struct comm *comm;
    struct node_pair *pairs; /* [pair_sets][P][P]; see pairs.h */
    struct node_left *left;  /* [pair_sets][P] */
    int rank, size;
    _Atomic uint32_t quick; /* kinds of operations, a bit each, that go through the slots if they are small; 0 until the outcome of
                     * the making is known to all */
    uint32_t seq;   /* the last operation begun */
    uint64_t flag[NODE_K]; /* of the operations whose slots this rank may write, by number (node_take_sign) */
    uint32_t safe;  /* slots of operations up to this number are known to be free */
    uint32_t done;  /* operations up to this number are finished here */
    uint32_t over;  /* bit i: so is operation done + 1 + i */
    bool counted;   /* arrivals are counted: coll_comm.oversubscribed */
    bool settled;   /* a blocking operation has come behind the making: all ranks know the outcome */
    uint8_t state;  /* enum node_state */
    _Atomic uint8_t all_say[NODE_FACTS]; /* enum node_word: is it so of all ranks? */
    void *block;    /* of the rank that owns the memory, else NULL */
    size_t bytes;
    struct node_wide wide;

    /* operations in the background (background.c), under the lane's lock */
    struct link background;
    struct link spare; /* records to be used again, with their requests */
    _Atomic uint32_t pending; /* there are some. 0 is a release: who acquires it is alone with the node */
    struct step step;

    /* large ones (pairs.c) */
    uint32_t pair_sets; /* operations whose pairs exist at the same time */
    uint32_t moved;  /* chunks copied here, in all */

    /* making */
    uint64_t block_at; /* of the block in rank 0's segment, plus 1; 1: none, 0: not told yet */
    uint64_t told;  /* the buffer of the broadcast of that */
    int error;
};

static inline struct node_slot *node_slot(struct node *n, uint32_t seq, int rank)
{
    return &n->slots[(seq % NODE_K) * (uint32_t)n->size + (uint32_t)rank];
}

static inline struct node_done *node_done(struct node *n, int rank) { return &n->done_of[rank]; }

/* Where a rank's payload of so many bytes lies. */
static inline char *node_payload(struct node *n, uint32_t seq, int rank, size_t bytes)
{
    if (bytes <= NODE_INLINE) return node_slot(n, seq, rank)->payload;
    if (bytes <= NODE_MIDDLE) return n->middle + ((seq % NODE_K) * (size_t)n->size + (size_t)rank) * NODE_MIDDLE;
    return n->big + ((seq % NODE_BIG_K) * (size_t)n->size + (size_t)rank) * n->big_bytes;
}

/* ---- making (block.c) ---- */

/*
 * The node of a communicator all of whose ranks are on one, made at first use; NULL when it cannot have one (*rc_p 0)
 * or memory is out. It may be in the making still. Collective: asked for by all ranks at the same place in their order.
 */
struct node *node_get(struct comm *, int *rc_p);

/* The largest contribution that has room in the big slots of so many ranks; half a megabyte for all of them, but 1 KB
 * for each rank at least. */
static inline int64_t node_limit(int ranks)
{
    enum { MOST = 1 << 20 }; /* there are 8 for each rank */
    int64_t wanted = var_int(VAR_COLL_NODE), most = likely(wanted < MOST) ? wanted : MOST, share;
    if (likely(ranks <= 8)) return most;
    share = ((int64_t)512 << 10) / (NODE_BIG_K * ranks);
    if (share < 1024) share = 1024;
    return most < share ? most : share;
}

/* Is the outcome known here? Then node_make takes note of it. */
static inline bool node_told(const struct node *n) { return n->block_at || n->error; }
void node_make(struct node *);

/* A blocking operation has come behind the making. */
void node_settled(struct node *) TERN_COLD;

/* The parts of the block of a node whose size and big_bytes are set, from `base` on, or NULL to measure; bytes. */
size_t node_layout(struct node *, char *base);

/* ---- giving back (retire.c) ---- */

/* This rank has used the block for the last time, and its communicator goes. The node is the caller's. Any thread. */
void node_retire(struct node *);

/* Gives back the blocks of this process that all ranks have left. Lock held, or no other thread is in the library. */
void node_reclaim(void);

/* ---- which way (possible.c) ---- */

/* With blocks of one length that are small enough for the slots, on a node whose outcome is known: most calls. */
static inline bool node_is_quick(const struct comm *c, const struct node *n, const struct coll_call *a, int64_t bytes, bool *big_p)
{
    enum { FOR_EACH = 1u << COLL_ALLTOALL | 1u << COLL_REDUCE_SCATTER_BLOCK };
    int64_t amount = FOR_EACH >> a->kind & 1 ? bytes * n->size : bytes;
    *big_p = amount > NODE_MIDDLE;
    /* acquire: pairs with open_quick_way, of whichever thread has made the block */
    return likely(atomic_load_explicit(&n->quick, memory_order_acquire) >> a->kind & 1 && amount <= c->coll->slot_max) &&
           (!coll_reduces(a->kind) || likely(a->rtype->contig && a->rtype->size > 0));
}

/* acquire: pairs with the release by whoever ended the last one pending */
static inline bool node_has_background(const struct node *n) { return atomic_load_explicit(&n->pending, memory_order_acquire); }

/* Of a call with an array of lengths: the longest if all ranks know them, else 0; of others `bytes`, as in node_run. */
int64_t node_longest_block(const struct coll_call *, int ranks, int64_t bytes);

/* The ways that the rules name and this call can take, as far as is known before it begins; in their order. `slots`: those, too. Alike on
 * all ranks. 0, or TERN_ERR_NOMEM with words. */
int node_ways(const struct comm *, const struct coll_call *, bool blocking, bool slots, int64_t bytes, struct coll_way_list *);

/* Do the blocks of a v-collective that have no room in the slots (v.h) go by pairs, if all ranks reach all others? `blocking`: of a
 * blocking one. */
bool node_v_by_pairs(const struct node *, bool blocking);

/* Does a reduce, an allreduce or a reduce_scatter_block of a type without gaps from memory to memory (shares.c): 0, or a code with words.
 * Blocking and collective, nothing is pending, and all ranks have said NODE_REACHES. */
int node_reduce_by_shares(struct node *, const struct coll_call *);

/* The node for a call that goes through the slots, NULL if it has to use messages. *big_p: contributions lie in the big slots. */
struct node *node_for(struct comm *, const struct coll_call *, int64_t bytes, bool *big_p, int *rc_p);

/* ---- flags (node.c) ---- */

/*
 * The way that an operation takes, which is part of its sign: what one rank says on its way is nothing to others on
 * another one. Signs are those of calls (pt2pt/call_log.h).
 */
/* By shares also goes the barrier that settles the node before a large operation (call.c). */
enum node_way { NODE_BY_SLOTS = 0, NODE_BY_SHARES = 0x5bd1e995, NODE_BY_PAIRS = 0x2c1b3c6d };
static inline uint64_t node_sign(const struct node *n, uint64_t way) { return n->comm->call_log->history + (way << 32); }

/* What the flags of an operation are: number and sign. Taken before anything of it is left, or looked for. */
static inline uint64_t node_take_sign(struct node *n, uint32_t seq, uint64_t sign)
{
    return n->flag[seq % NODE_K] = sign + seq;
}
static inline uint64_t node_flag(const struct node *n, uint32_t seq) { return n->flag[seq % NODE_K]; }

/* 0, or the code for which collectives of the communicator are over, with words. */
static inline int node_failed(const struct node *n) { return pt_call_log_error(n->comm); }

/* The same for the condition of a wait, which another thread may look at: no words. */
static inline bool node_is_over(const struct node *n) { return pt_call_log_is_over(n->comm); }

/* Whose contribution an operation needs at this rank, besides ranks. */
enum { NODE_ALL = -1, NODE_NOBODY = -2, NODE_LOWER = -3 /* those of all lower ranks */ };

/* What is waited for; `seen` begins with 0. */
struct node_wait {
    struct node *n;
    uint64_t flag; /* of the operation (node_flag) */
    uint32_t seq;
    int rank; /* or NODE_ALL, NODE_LOWER */
    int seen; /* slots of the first so many ranks have been seen set */
};

static inline bool node_is_set(struct node_slot *slot, uint64_t flag)
{
    /* acquire: pairs with the release in node_signal; the payload is there */
    return atomic_load_explicit(&slot->flag, memory_order_acquire) == flag;
}

/* Of a scan or exscan: has that rank left the combination of all up to it? */
static inline bool node_is_prefix(struct node_slot *slot, uint64_t flag)
{
    /* acquire: pairs with the release behind the combination (take_scan), which may follow the flag */
    return node_is_set(slot, flag) && atomic_load_explicit(&slot->prefix, memory_order_acquire) == 1;
}

/* Of a scan or exscan whose slot has none, before its flag: the slot may have said so of an earlier operation. relaxed: the flag is
 * behind it */
static inline void node_say_no_prefix(struct node *n, uint32_t seq)
{
    atomic_store_explicit(&node_slot(n, seq, n->rank)->prefix, 0, memory_order_relaxed);
}

/* How many of the first `end` ranks' are there; those seen once need no second look. */
static inline int node_first_seen(struct node *n, uint32_t seq, uint64_t flag, int seen, int end)
{
    for (struct node_slot *slot = node_slot(n, seq, seen); seen < end && node_is_set(slot, flag); slot++) seen++;
    return seen;
}

/* Of the lower ranks, of which so many have been seen before: how many contributions are there, from rank 0 on. By value: a
 * struct node_wait whose address is taken would not stay in registers. Cold: the other kinds, which never come here, have it out
 * of their way. */
int node_lower_seen(struct node *, uint32_t seq, uint64_t flag, int seen) TERN_COLD;

/* Are the contributions there? */
static inline bool node_is_there(struct node_wait *w)
{
    struct node *n = w->n;
    if (w->rank >= 0) return node_is_set(node_slot(n, w->seq, w->rank), w->flag);
    if (unlikely(w->rank == NODE_LOWER)) return (w->seen = node_lower_seen(n, w->seq, w->flag, w->seen)) == n->rank;
    if (n->counted)
        return atomic_load_explicit(&n->head->round[w->seq % NODE_K].released, memory_order_acquire) == w->seq;
    return (w->seen = node_first_seen(n, w->seq, w->flag, w->seen, n->size)) == n->size;
}
bool node_ready(void *wait); /* the same, of a struct node_wait */

/* Has this rank, or have all (NODE_ALL), come to the operation `seq`? One look. */
static inline bool node_has_come(struct node *n, uint32_t seq, int rank)
{
    return node_is_there(&(struct node_wait){n, node_flag(n, seq), seq, rank, 0});
}

/* How long a rank that fails waits for others that have begun to copy from or to its memory. A chunk takes less than a millisecond; but its
 * process may have lost its core, or its life. */
#define NODE_LEAVE_NS UINT64_C(500000000)

void node_doubt(const struct node_wait *) TERN_COLD; /* that lasts: asks the ranks that it waits for */
void node_doubt_all(struct node *) TERN_COLD;        /* asks those that have not finished the last operation */

/* May the slots of this operation be written? */
bool node_look_for_slots(struct node *, uint32_t until);
static inline bool node_free_slots(struct node *n, uint32_t seq, bool big)
{
    uint32_t until = seq + (big ? NODE_K - NODE_BIG_K : 0);
    return likely((int32_t)(n->safe - until) >= 0) || node_look_for_slots(n, until);
}

/* Have all ranks finished that operation? */
static inline bool node_all_have_finished(struct node *n, uint32_t seq) { return node_free_slots(n, seq + NODE_BIG_K, true); }

/* Takes the next number, for an operation of the call at hand, whose slots are free then. Not 0: node_failed, and they may
 * still be read for an earlier one. */
int node_begin(struct node *, bool big, enum node_way, uint32_t *seq_p);

/* The same when `until` is free, as in node_look_for_slots; if that is not so yet, `enough` is waited for. */
int node_begin_when(struct node *, uint32_t until, uint32_t enough, uint64_t way, uint32_t *seq_p);
int node_wait_for(struct node *, uint32_t seq, int rank);
void node_finish(struct node *, uint32_t seq,
                 bool met_all); /* this rank needs nothing more of it; it has waited for all */

/* The slot has its payload. */
static inline void node_signal(struct node *n, uint32_t seq, int rank)
{
    sanitizer_released(&lanes_told);
    /* release: pairs with node_is_set */
    atomic_store_explicit(&node_slot(n, seq, rank)->flag, node_flag(n, seq), memory_order_release);
}

/* Behind what has been published for them. */
static inline bool node_has_sleepers(struct node *n, struct gate *g)
{
    /* relaxed: a rank sets it long before it first sleeps at a gate */
    if (atomic_load_explicit(&n->head->fenced, memory_order_relaxed)) atomic_thread_fence(memory_order_seq_cst);
    else atomic_signal_fence(memory_order_seq_cst);
    return atomic_load_explicit(&g->sleepers, memory_order_relaxed);
}

/* True: some of those who sleep at this gate of the head have to be woken one by one (node_wake_pollers). */
static inline bool node_open_gate(struct node *n, struct gate *g)
{
    /* relaxed: a rank sets it long before it first sleeps at a gate */
    return gate_check(g, atomic_load_explicit(&n->head->fenced, memory_order_relaxed));
}

/* Wakes who sleeps for what was signalled. */
void node_wake_pollers(struct node *) TERN_COLD; /* who waits for more than these flags, one by one */
static inline void node_announce(struct node *n)
{
    if (unlikely(node_open_gate(n, &n->head->gate))) node_wake_pollers(n);
}

void node_pass_on(struct node *, uint32_t seq);          /* own slot, which higher ranks wait for with all below it */

/* Own slot, with a word to the others if this rank has not finished all before. */
static inline void node_signal_own(struct node *n, uint32_t seq)
{
    /* relaxed: ordered by the release of the flag, or of the count */
    if (unlikely(n->done + 1 != seq)) atomic_store_explicit(&n->head->behind[seq % NODE_K], seq, memory_order_relaxed);
    node_signal(n, seq, n->rank);
}

bool node_arrive(struct node *, uint32_t seq);  /* the same; true if arrivals are counted and this one is the last */
void node_release(struct node *, uint32_t seq); /* the last one lets the others go */

/* Own slot, and whatever that brings about. */
static inline void node_contribute(struct node *n, uint32_t seq)
{
    if (likely(!n->counted)) {
        node_signal_own(n, seq);
        node_announce(n);
    } else if (node_arrive(n, seq)) {
        node_release(n, seq);
    }
}

/* ---- what ranks say of themselves (node.c) ---- */

static inline bool node_has_told(struct node *n, enum node_fact f)
{
    return atomic_load_explicit(&node_done(n, n->rank)->says[f], memory_order_relaxed) != NODE_UNKNOWN;
}

/* This rank says so. Wakes the others. Takes the lane's lock. */
void node_tell(struct node *, enum node_fact, bool yes);

/* Is it so of all ranks? NODE_UNKNOWN: some have not said it yet. */
enum node_word node_look_at_all(struct node *, enum node_fact) TERN_COLD;
static inline enum node_word node_all(struct node *n, enum node_fact f)
{
    /* relaxed: nothing else is read behind it */
    uint8_t word = atomic_load_explicit(&n->all_say[f], memory_order_relaxed);
    return likely(word) ? word : node_look_at_all(n, f);
}

/* Waits until that is known of so many first ranks, or of all. 0 or a code; this rank has told if it is one of them. */
int node_await_words(struct node *, enum node_fact, int ranks, bool *yes_p);
static inline int node_await_all(struct node *n, enum node_fact f, bool *yes_p)
{
    enum node_word all = node_all(n, f);
    *yes_p = all == NODE_YES;
    return likely(all) ? 0 : node_await_words(n, f, n->size, yes_p);
}

/* ---- in the background (background.c, start.c) ---- */

void node_free_background(struct node *); /* none is under way */
extern TERN_HIDDEN const struct step_ops node_background_ops; /* of node.step, which is on while something is pending */

/* Takes the place of r in the order; node_go then starts it. False: use messages, unless *rc_p is a code. */
bool node_enlist(struct node *, const struct coll_call *, enum node_way, bool big, struct request *r, int *rc_p);

/* Does a blocking operation by the course of those in the background, and waits for its end: one by pairs, or behind others that are
 * pending, or while the block is being made, or with blocks that have no room in the slots (v.h). Messages have that number. False:
 * use messages, see there. */
bool node_run_and_wait(struct node *, const struct coll_call *, enum node_way, bool big, uint32_t number, int *rc_p);

/* After one of v.h whose take failed, without long blocks of its own. `blocking`: a blocking one. */
void node_straighten(struct node *, uint32_t seq, const struct coll_call *, bool blocking, uint32_t number) TERN_COLD;

/* Until nothing is pending. */
void node_await(struct node *);

/* ---- operations (ops.c) ---- */

/*
 * Both halves of an operation. put leaves this rank's contribution: 0, a code, or NODE_OVER when nothing is left to be
 * done. take, once what node_needs says is there, makes the result.
 */
#define NODE_OVER 1
struct node_op {
    int (*put)(struct node *, uint32_t seq, const struct coll_call *); /* NULL: this kind goes by messages */
    int (*take)(struct node *, uint32_t seq, const struct coll_call *);
    int needs;
};
extern TERN_HIDDEN const struct node_op node_ops[COLL_KINDS];

static inline bool node_can(enum coll_kind kind) { return node_ops[kind].put != NULL; }
static inline int node_put(struct node *n, uint32_t seq, const struct coll_call *a)
{
    return node_ops[a->kind].put(n, seq, a);
}
static inline int node_take(struct node *n, uint32_t seq, const struct coll_call *a)
{
    return node_ops[a->kind].take(n, seq, a);
}

int node_needs_by_root(const struct node *, const struct coll_call *);
static inline int node_needs(const struct node *n, const struct coll_call *a)
{
    int needs = node_ops[a->kind].needs;
    return likely(needs >= NODE_LOWER) ? needs : node_needs_by_root(n, a);
}

#endif
