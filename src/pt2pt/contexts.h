/*
 * contexts.h - the communicators of this process by their contexts: where messages belong.
 *
 * A communicator is in one lane, which is chosen when it is made here and never changes. Messages for a context whose
 * communicator has not been made here yet wait (early.h).
 *
 * Threads: the table has a lock of its own, a leaf. An entry does not go while its lane is held.
 */
#ifndef TERN_PT2PT_CONTEXTS_H
#define TERN_PT2PT_CONTEXTS_H

#include "base/list.h"
#include "base/lock.h"
#include "obj/comm.h"
#include "pt2pt/match/match.h"

/* Matching state of one communicator: its two contexts. */
struct pt_comm {
    TERN_ALIGNED(CACHE_LINE) struct match match[2]; /* by enum pt_half */
    uint64_t ctx;                                   /* even */
    struct comm *comm;
    struct lane *lane;
    struct link in_lane;  /* lane.contexts */
    struct pt_comm *next; /* in the same bucket */
    struct peer *lost;    /* a member that was lost last, NULL: none (lost.h) */
    uint8_t gone;         /* enum pt_gone: what receives have to look at */
    int32_t refs_ahead;     /* to the communicator, for requests to come (context_ref) */
    struct link takers;   /* threads that wait in MPI_Mprobe, in the order in which they came (probe.c) */
};

enum pt_gone {
    PT_GONE_LOST = 1,   /* a member was lost */
    PT_GONE_BEYOND = 2, /* no transport may reach some of them */
    PT_GONE_SOURCE = 4  /* one of those that messages come from was lost */
};

/* The one that a message came for last; at first one whose context is none. */
extern TERN_HIDDEN struct pt_comm *context_last;

/* That of a context, either half; NULL: no communicator has been made here. */
struct pt_comm *context_find(uint64_t ctx) TERN_COLD;
static inline struct pt_comm *context_of(uint64_t ctx)
{
    struct pt_comm *p = context_last;
    return likely(p->ctx == (ctx & ~CTX_COLL)) ? p : context_find(ctx);
}

/*
 * For threads that share the transports: the lane of a context, NULL: it has no communicator here; by any thread. And, with the
 * lane held, the communicator if it is in that lane, else NULL. Each thread remembers the contexts that it was asked for last, and
 * takes no lock for those. So the lane may be that of a communicator which has gone a moment ago; the communicator is there.
 */
struct lane *context_lane(uint64_t ctx);
struct pt_comm *context_in(struct lane *, uint64_t ctx);

/*
 * A reference to the communicator for a request on it, with the lane held. Once threads share the library these are taken many
 * ahead, as an atomic operation for each would bring its cache line from one core to the other. pt_let_go (api.h) gives back
 * those that are left.
 */
void context_refs_ahead(struct pt_comm *) TERN_COLD;
static inline struct comm *context_ref(struct comm *c)
{
    struct pt_comm *p = c->pt;
    if (likely(!handle_is_threaded())) return comm_ref(c);
    if (unlikely(!p->refs_ahead)) context_refs_ahead(p);
    p->refs_ahead--;
    return c;
}

/* From now on no context is the last, so that each message is looked at by dispatch_looked_up: once threads share the transports,
 * or a peer was lost. The lane is held, or no other thread is inside. */
void contexts_no_last(void) TERN_COLD;

/* For early.c: with the lock of the table. */
extern TERN_HIDDEN struct lock contexts_lock;
struct pt_comm *context_find_locked(uint64_t ctx);

/* A communicator comes, or goes, with what has come for it. context_add: NULL when memory is out. The lane is held. */
struct pt_comm *context_add(struct lane *, struct comm *, uint64_t ctx);
void context_drop(struct pt_comm *);

int contexts_open(void); /* the table, and the hooks of communicators. 0, or a code with words */
void contexts_close(void);
bool contexts_are_open(void); /* transports may deliver before and after that: such messages are nobody's */
uint32_t contexts_count(void);

#endif
