/* background.h - operations in the background inside a node (background.c): the record of one, and what it keeps. */
#ifndef TERN_COLL_NODE_BACKGROUND_H
#define TERN_COLL_NODE_BACKGROUND_H

#include "coll/call.h"
#include "coll/node/block.h"
#include "coll/node/pairs.h"
#include "obj/request.h"

struct node_background {
    struct link link;
    struct coll_call call;
    struct request *req;         /* NULL: somebody waits for `ended` */
    enum node_way way;
    struct {
        bool big, put, ended, lost; /* lost: there is none */
        bool awaits, taken;          /* needs others' contributions; nothing is left to be done in the slots */
        bool finished;               /* nor in the node */
        bool carries, completed;     /* but for chunks of other ranks that it may carry; its request has ended */
        bool blocking;                  /* a blocking one: `req` is NULL */
        bool kept;                   /* it comes and goes with a request of its own (REQ_KEPT) */
        bool holds;                  /* see node_holds; of a kept one */
        int rc;
        uint32_t number;             /* of the messages, should there be no block, and of `rest` */
    };
    struct request *rest; /* the messages for what has no room; NULL: none, or they are over */
    void *arrays;         /* of the call, kept; NULL: they are the caller's, or there are none */
    struct node_wait wait;
    uint64_t sign;            /* of the call and its way; of one that is put later, when its slots are free */
    struct node_pairs *pairs; /* of a large one, or for what has no room; else NULL */
};

/* Has it types or an operator that the user may free before it is over? */
static inline bool node_type_stays(const struct type *t) { return !t || t->predefined; }
static inline bool node_holds(const struct coll_call *a)
{
    return !node_type_stays(a->stype) || !node_type_stays(a->rtype) || a->stypes || a->rtypes || (a->op && !a->op->predefined);
}

/* Of a v-collective, blocks that have no room in the slots (v.c): as messages, which the caller starts. 0 or a code. With the lane's lock
 * or without. */
int node_prepare_messages(struct node_background *);
void node_drop_messages(struct node_background *) TERN_COLD; /* they were not started, and are not wanted any more */

/* A take has failed since sender and receiver do not agree (an error of the program): nothing shall wait for what does
 * not come. Lock held. */
void node_background_straighten(struct node_background *) TERN_COLD;

int node_no_memory(enum coll_kind) TERN_COLD;

/* From now on progress looks at it; none is left. Lock held. */
static inline void node_background_add(struct node_background *f)
{
    struct node *n = f->wait.n;
    list_push(&n->background, &f->link);
    atomic_store_explicit(&n->pending, 1, memory_order_relaxed);
    lane_step_on(n->comm->lane, &n->step);
}

static inline void node_background_none(struct node *n)
{
    atomic_store_explicit(&n->pending, 0, memory_order_release); /* pairs with the acquire in node_has_background */
}

/* The result, when everything that it needs is there. */
static inline void node_background_take(struct node_background *f)
{
    int rc = node_take(f->wait.n, f->wait.seq, &f->call);
    if (likely(!rc)) return;
    node_background_straighten(f);
    f->rc = rc;
}

/* The communicator goes: ends the records whose requests are over, and that only carry for others. Lock held. */
void node_end_carrying(struct node *);

/* A kept one is over. Its request brings it back, now or when the user has waited. */
void node_drop_arrays(struct node_background *) TERN_COLD;
void node_let_go(struct node_background *) TERN_COLD; /* of types and operator */
static inline void node_end_kept(struct node_background *f)
{
    if (unlikely(f->holds)) node_let_go(f);
    if (unlikely(f->arrays)) node_drop_arrays(f);
    lane_finish_plain(f->req, f->rc);
}

#endif
