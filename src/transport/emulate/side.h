/*
 * side.h - the state of operations by messages between this process and one peer, as origin and as owner: what the
 * files of this folder share.
 *
 *   origin.c    operations of this process on the peer's memory, and the peer's answers
 *   owner.c     the peer's requests for memory of this process
 *   fragment.c  sending data in fragments, and the end of a peer
 *
 * At the origin, operations lie in a ring, in the order of their starts:
 *
 *     asked   | finished ... | first: not finished ... | unsent: waits for room ... | end
 *
 * At the owner, answers that find no room lie in another ring, `owed`. Both have EMULATE_DEPTH places: a peer that asks
 * for more than that breaks the protocol.
 *
 * Much data goes in fragments from where it lies (am_zcopy), EMULATE_WINDOW at a time in each direction, and is read to
 * where it belongs (the sinks). The origin's memory stays until the operation ends. The owner's may be deregistered
 * meanwhile: then the owner loses the peer whose data is just being written there.
 *
 * A handler, and op->done, may be called while a message is sent (transports that deliver at once), so an
 * operation is in its state before its message is sent, and is not looked at afterwards if the peer is given up.
 */
#ifndef TERN_TRANSPORT_EMULATE_SIDE_H
#define TERN_TRANSPORT_EMULATE_SIDE_H

#include "transport/emulate/emulate.h"
#include "transport/peer.h"
#include "transport/progress.h"

enum { KIND_NONE = 0, FLUSH_REFUSED = 1 };

/* Of a request's h1. */
#define OFFSET_BITS 48
#define OFFSET_MASK (((uint64_t)1 << OFFSET_BITS) - 1)
#define ZERO_BITS ((uint64_t)0x3f << OFFSET_BITS)

/* Fragments under way in each direction: the system sends one, and the next is ready when that is done. */
#define EMULATE_WINDOW 2

struct asked {
    uint32_t kind; /* enum emulate_kind; KIND_NONE: finished */
    uint32_t width;
    enum remote_op op;
    uint32_t fragments; /* of a put: under way */
    char *local;        /* data of a put, place for that of a get or the result of an amo */
    uint64_t id, offset, bytes;
    uint64_t moved; /* sent of a put, come of a get */
    uint64_t operand, compare;
    struct tp_op *done;
};

struct owed {
    uint32_t kind;
    uint64_t value;             /* h0 of the answer, or of a get: the bytes sent already */
    uint64_t id, offset, bytes; /* of a get */
};

/* Data that goes out in one direction. */
struct data_way {
    struct fragment {
        struct tp_op op;
        struct emulate_state *side;
        struct data_way *way;
        struct asked *put; /* NULL: of an answer */
        bool busy;
    } fragment[EMULATE_WINDOW];
    uint32_t under_way; /* fragments that are busy */
    size_t bytes;       /* of the next fragment; 0: none has gone so far */
};

struct emulate_state {
    struct peer *peer;           /* NULL: forgotten, and freed when no fragment is under way */
    struct link in_all;          /* sides */
    struct step waits;           /* on while something waits for room */
    bool broken;                 /* the peer broke the protocol, or is lost */
    bool unflushed;              /* puts and silent amos went out since the last flush */
    bool refused;                /* a put or silent amo of the peer's was refused, since its last flush */
    bool sending, answering; /* emulate_send_waiting, emulate_answer_waiting is running: not called again meanwhile */
    bool getting;                /* data of a get is coming in to where it belongs */
    uint64_t putting;            /* the memory here that data of a put is coming in to; 0: none */
    uint32_t first, unsent, end, owed_first, owed_end; /* running numbers */
    struct data_way puts, answers;
    struct asked asked[EMULATE_DEPTH];
    struct owed owed[EMULATE_DEPTH];
};

static inline struct asked *asked_at(struct emulate_state *s, uint32_t i) { return &s->asked[i % EMULATE_DEPTH]; }
static inline struct owed *owed_at(struct emulate_state *s, uint32_t i) { return &s->owed[i % EMULATE_DEPTH]; }

/* ---- fragment.c ---- */

extern TERN_HIDDEN struct link emulate_sides; /* all that there are of peers */

struct emulate_state *emulate_state_make(struct peer *) TERN_COLD; /* the first one; NULL with words: no memory */
struct emulate_state *emulate_state_of_sender(struct peer *);      /* for a handler: NULL, and the peer lost */
static inline struct emulate_state *emulate_state_of(struct peer *p)
{
    return likely(p->emulate != NULL) ? p->emulate : emulate_state_make(p);
}

/* Behind what may have changed whether something waits for room. */
static inline void emulate_note_waiting(struct emulate_state *s)
{
    bool waits = !s->broken && (s->unsent != s->end || s->owed_first != s->owed_end);
    if (unlikely(waits))
        step_on(&progress_process, &s->waits);
    else if (unlikely(s->waits.on))
        step_off(&s->waits);
}

/*
 * Sends the first of `left` bytes, *n of them: at most what goes as one message, in place if it is much. Their message may
 * be under way longer than the call (`put`, NULL for an answer, counts it). TERN_AGAIN: there is no room, or enough is
 * under way. When the peer has been given up during the call, `put` is not the caller's any more.
 */
int emulate_send(struct emulate_state *, struct data_way *, unsigned id, uint64_t h0, uint64_t h1, const char *from,
                 size_t left, struct asked *put, size_t *n);

size_t emulate_most(const struct peer *);     /* bytes that go with a message that is copied */
int emulate_gone(const struct peer *);        /* TERN_ERR_PEER, with the words of the loss */

/* emulate_give_up: the peer is lost, for the reason in `words`. emulate_violation: the same, since it has sent a
 * message that breaks the protocol. emulate_end_all: ends all operations with TERN_ERR_PEER and the words `why`. */
void emulate_give_up(struct emulate_state *, const char *words) TERN_COLD;
void emulate_violation(struct emulate_state *, const char *what) TERN_COLD;
void emulate_end_all(struct emulate_state *, const char *why);

/* ---- origin.c ---- */

void emulate_finish(struct emulate_state *, struct asked *, int rc); /* the operation is over; `done` may start others */
int emulate_send_waiting(struct emulate_state *); /* sends what there is room for; how many operations */
void emulate_on_back(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n);
void *emulate_back_sink(struct peer *from, uint64_t h0, uint64_t h1, size_t n);

/* ---- owner.c ---- */

int emulate_answer_waiting(struct emulate_state *); /* sends the answers that there is room for; how many */
void emulate_on_request(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n);
void *emulate_request_sink(struct peer *from, uint64_t h0, uint64_t h1, size_t n);
void emulate_owner_close(void);

#endif
