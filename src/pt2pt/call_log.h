/*
 * call_log.h - the collectives that a process has called on a communicator: do all its processes call the same ones?
 *
 * Each call is noted with what has to be the same at all ranks: kind, root, operator, and the bytes where all have the
 * same number. A running hash of that, the history, makes the sign of a call. The contributions of a call carry its
 * sign (in the tags of messages, beside the flags of a node's slots), so a contribution never meets another call. Ranks
 * that disagree therefore wait, and a wait that lasts asks (doubt.h):
 *
 *     AM_CALL    this is my call number k: what is yours?    compared; if an earlier one differs, that one is asked for
 *     AM_CLASH   two ranks have called this and that         sent to every connected member, which passes it on
 *
 * From then on collectives on the communicator fail, at every rank with the same words. A process that has not come to
 * call k answers with its last one; it is asked again when the wait has lasted twice as long.
 *
 * Threads: notes are written by the one thread that calls collectives on the communicator, and read under the lane's
 * lock by whichever thread delivers a question. The rest is under the lane's lock.
 */
#ifndef TERN_PT2PT_CALL_LOG_H
#define TERN_PT2PT_CALL_LOG_H

#include "obj/comm.h"

#include <stdatomic.h>

#define CALL_LOG_KEPT 32

struct pt_call {
    TERN_ALIGNED(32) _Atomic uint64_t what; /* kind, operator and root, as the layer above packs them; not 0 */
    _Atomic uint64_t history;               /* hash of `what` of all calls so far */
    _Atomic int64_t bytes;                  /* see pt_call_bytes */
};

/* What two ranks of the job have called where they should have called the same. */
struct pt_clash {
    uint32_t rank[2];
    uint64_t what[2];
    int64_t bytes[2];
};

/* The messages. */
struct wire_call {
    uint64_t what, history;
    int64_t bytes;
    uint64_t before; /* history of the call before */
};
static_assert(sizeof(struct wire_call) == 32, "wire format");

struct wire_clash {
    uint64_t what[2];
    int64_t bytes[2];
};
static_assert(sizeof(struct wire_clash) == 32, "wire format");

struct pt_call_log {
    uint64_t history; /* of the last call: also the sign of its contributions */
    _Atomic uint32_t count;
    _Atomic int error; /* 0, TERN_ERR_DISAGREE, TERN_ERR_PEER or TERN_ERR_ABSENT: no collective can be done any more */
    bool ended;        /* what has come for them and what waits for more has been ended */
    struct pt_clash clash;
    char words[400];
    struct pt_call call[CALL_LOG_KEPT]; /* by number */
};

/* Writes what `what` says, "a bcast with root 0", into text (0: the communicator was freed). Set by the layer that
 * packs it. */
extern TERN_HIDDEN void (*pt_call_words)(uint64_t what, int64_t bytes, char *text, size_t n);

/* The bytes that were noted, if all ranks have to have the same number, else -1. */
extern TERN_HIDDEN int64_t (*pt_call_bytes)(uint64_t what, int64_t bytes);

static inline void pt_call_log_note(struct pt_call_log *s, uint64_t what, int64_t bytes)
{
    uint32_t k = atomic_load_explicit(&s->count, memory_order_relaxed) + 1;
    struct pt_call *c = &s->call[k % CALL_LOG_KEPT];
    uint64_t history = (s->history + what) * UINT64_C(0x9e3779b97f4a7c15);
    s->history = history;
    /* release: whoever reads an entry that is being replaced sees the count that says so (see read_call) */
    atomic_store_explicit(&c->what, what, memory_order_release);
    atomic_store_explicit(&c->history, history, memory_order_release);
    atomic_store_explicit(&c->bytes, bytes, memory_order_release);
    atomic_store_explicit(&s->count, k, memory_order_release);
}

/* 0, or the code for which collectives are over, with its words. */
int pt_call_log_failed(const struct comm *) TERN_COLD;
static inline bool pt_call_log_is_over(const struct comm *c) /* the same without words, by any thread */
{
    return atomic_load_explicit(&c->call_log->error, memory_order_relaxed);
}
static inline int pt_call_log_error(const struct comm *c)
{
    return unlikely(atomic_load_explicit(&c->call_log->error, memory_order_relaxed)) ? pt_call_log_failed(c) : 0;
}

/* A collective has ended with `rc`: the reason is that of the communicator, if its collectives are over. */
static inline int pt_call_log_outcome(const struct comm *c, int rc)
{
    int over = unlikely(rc) ? pt_call_log_failed(c) : 0;
    return unlikely(over) ? over : rc;
}

/* This process has waited long for the part of `rank` (as calls on the communicator name it) in its last call: asks, or
 * ends the communicator's collectives if nothing more comes from there. Lock held. */
void pt_call_log_doubt(struct comm *, int rank) TERN_COLD;
void pt_call_log_ask(struct comm *, int rank) TERN_COLD; /* asks only; where collectives are over, ends what was posted since */

/* Collectives on it cannot go on, for the reason in err_words: the others are not told. Lock held. */
void pt_call_log_give_up(struct comm *, int error) TERN_COLD;

/* The communicator goes: who asks later is told which call was the last one here. Lock held. */
void pt_call_log_gone(const struct comm *);

struct lane;
void call_log_open(struct lane *);

#endif
