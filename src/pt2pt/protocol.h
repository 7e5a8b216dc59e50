/*
 * protocol.h - what goes over the wire between the point-to-point layers of two
 * processes, and the parts of the protocol that call each other.
 *
 *   id              h0        h1                payload
 *   AM_EAGER        context   source, tag       the data
 *   AM_EAGER_SYNC   context   source, tag       id of the sender's request (8), the data
 *   AM_RTS          context   source, tag       struct pt_rts
 *   AM_CTS          id of the send    way       struct pt_cts: send this in fragments, or by the wire's own protocol
 *   AM_FRAG         id of the receive  offset   the data
 *   AM_ACK          id of the send    -         a synchronous send was matched
 *   AM_CREDIT       bytes     more, or fewer    eager bytes given back; by how much the sender's quota changes
 *   AM_CANCEL       context   source, tag       id of the send (8): is it still unmatched?
 *   AM_CANCELLED    id of the send    0 or 1    1: it was, and is gone
 *   AM_SIGNATURE    -         -                 of the next message, see check.h
 *   AM_ASK          -         -                 I wait for you: say so if you are over (doubt.h)
 *   AM_OVER         -         -                 I am: nothing more is begun here
 *   AM_CALL         context   number            struct wire_call: I have called that collective (call_log.h)
 *   AM_CLASH        context   two ranks         struct wire_clash: these have called different ones
 *   AM_CLOSING      enum closing_word  -        the end of a connection between jobs, see closing.h
 *   AM_PART         bytes     offset            a part of a long message of a layer above (gather.c)
 *   AM_READY        context   source, tag       a large receive of such a message has been posted (rndv/ready.h)
 *   AM_AHEAD        context   message, offset   the data of a large message that nobody has asked for (rndv/ahead.h)
 *
 * Ids are those of ids.h. Every handler checks that a message keeps to the protocol: lengths, ids, that
 * fragments follow each other within the bytes that were asked for, that the sender is the process that
 * the envelope names. A peer whose message does not is lost (lost.h, pt_violation).
 *
 * Eager credit: a sender may have so many bytes (payload + 64 a message) of eager
 * messages to a peer that the peer has not consumed as the peer allows it (credit.c);
 * beyond that it offers (RTS), so that the receiver keeps only an envelope and the data
 * stays with the sender. Memory at the receiver is bounded for all senders together by
 * TERN_EAGER_STORE, nothing is dropped, and a receive that is posted always finds its
 * message.
 *
 * Large messages, when both sides are contiguous and one can reach the other's
 * memory, by the system (get, put) or since it lies in an arena that can be mapped
 * (map_arena): the sender leaves a transfer (transfer/transfer.h) in its shared segment, the receiver adds
 * its end, and then both claim chunks and copy them. A side copies while one of its threads is inside the
 * library, so one side alone can do all of it. The side that finishes the last chunk nudges the other. If
 * the system begins to refuse the copying, the receiver asks for all of the message in fragments.
 *
 * What request.cookie has of a large message, stage by stage; each file names what is its own:
 *
 *                              [0]     [1]      [2]      [3]                   [4]
 *   send, offered              -       OFFER    -        READY_SENT            -           rndv/offer.c, ready.h
 *   send, in fragments         GOING   SENT     TO_SEND  TO_REQUEST or NUMBER  MOST        rndv/stream.c
 *   send, by the wire's own    TAG     TO_SEND  -        -                     -           rndv/bulk.c
 *   receive, announced         -       -        -        -                     READY_AT    rndv/ready.c
 *   receive, of an offer       -       FAULT    -        SENDER                -           rndv/offer.c
 *   receive, in fragments      -       FAULT    ARRIVED  SENDER                SEEN        rndv/stream.c
 *   receive, by the wire's own -       FAULT    -        SENDER                -           rndv/bulk.c
 */
#ifndef TERN_PT2PT_PROTOCOL_H
#define TERN_PT2PT_PROTOCOL_H

#include "obj/request.h"
#include "pt2pt/credit.h"
#include "pt2pt/ids.h"
#include "pt2pt/lane.h"
#include "pt2pt/match/body.h"
#include "transfer/transfer.h"
#include <stdatomic.h>

/* Ids of the messages above; pt_register names their handlers. */
enum pt_am {
    AM_EAGER = TP_AM_PT2PT,
    AM_EAGER_SYNC,
    AM_RTS,
    AM_CTS,
    AM_FRAG,
    AM_ACK,
    AM_CREDIT,
    AM_CANCEL,
    AM_CANCELLED,
    AM_SIGNATURE,
    AM_ASK,
    AM_OVER,
    AM_CALL,
    AM_CLASH,
    AM_CLOSING,
    AM_PART,
    AM_READY,
    AM_AHEAD,
    AM_PT2PT_END
};
static_assert((int)AM_PT2PT_END <= (int)TP_AM_COLL, "the ids of a layer are in its block");

static inline uint64_t env_pack(int32_t source, int32_t tag) { return (uint64_t)(uint32_t)source << 32 | (uint32_t)tag; }
static inline int32_t env_source(uint64_t h1) { return (int32_t)(h1 >> 32); }
static inline int32_t env_tag(uint64_t h1) { return (int32_t)h1; }

/* Negative tags are the library's own (coll/port_pt2pt.c). */
static inline bool env_possible(uint64_t ctx, uint64_t env)
{
    return env_source(env) >= 0 && (env_tag(env) >= 0 || (ctx & CTX_COLL));
}

struct pt_rts {
    uint64_t send;  /* id of the sender's request; with RTS_AHEAD, the number of the message */
    uint64_t bytes; /* of the message */
    uint64_t offer; /* offset of a struct pt_offer in the sender's segment; RTS_BULK; 0: fragments only */
};
#define RTS_BULK 1  /* the wire's own protocol can be used as well (rndv/bulk.c) */
#define RTS_READY 2 /* with the offset: it is the receiver's, and the message has taken it (rndv/ready.h) */
#define RTS_AHEAD 4 /* the data follow (rndv/ahead.h) */
static_assert(sizeof(struct pt_rts) == 24, "wire format");

/* What precedes the data of a long message (AM_PART). */
struct pt_long {
    uint64_t h0, h1;
    uint32_t id;
    uint32_t zero;
};
static_assert(sizeof(struct pt_long) == 24, "wire format");

enum cts_way { BY_FRAGMENTS, BY_BULK };

struct pt_cts {
    uint64_t recv;  /* id of the receiver's request, by BY_BULK the tag of the transfer */
    uint64_t bytes; /* to send; less than the message if the receiver has no room for more */
    uint64_t most;  /* bytes of a fragment (else 0): one that does not go to where it belongs lies in memory meanwhile */
};
static_assert(sizeof(struct pt_cts) == 24, "wire format");

/* A transfer of a message, in the shared segment of its maker. Its number is always the same, as it is used once. */
#define OFFER_NUMBER 1
struct pt_offer {
    struct transfer transfer;
    uint32_t receiver_of;          /* made by a receiver: the sender's index, plus 1 (rndv/ready.h) */
    struct pt_offer *next_retired; /* of who has made it */
    uint64_t pad[3];
};
static_assert(sizeof(struct pt_offer) == 128, "shared layout");

/* Has the message met its receive, and both sides have said where their memory is? */
static inline bool offer_is_met(const struct pt_offer *o)
{
    return transfer_is_said(&o->transfer, TRANSFER_FROM, OFFER_NUMBER) && transfer_is_said(&o->transfer, TRANSFER_TO, OFFER_NUMBER);
}

enum body_kind { BODY_EAGER, BODY_SYNC, BODY_OFFER, BODY_AHEAD };

/* ---- waiting (request_ops.c) ---- */
extern TERN_HIDDEN const struct awaiting pt_awaiting; /* lane_await for a request without hooks, until it is complete */

/* ---- receive side (recv.c) ---- */
/* TERN_ERR_TRUNCATE in words, which are kept for the request */
int pt_too_long(const struct request *, int32_t source, int32_t tag, uint64_t bytes) TERN_COLD;
void pt_deliver(struct request *, int32_t source, int32_t tag, const void *data, size_t n); /* eager data to a receive */
void pt_take_body(struct request *, struct match_body *); /* an unexpected message meets its receive; the body is freed */
void pt_free_body(struct lane *, struct match_body *);    /* its eager bytes, if it has any, have been consumed */
void pt_drop_body(struct lane *, struct match_body *);    /* the same, and the sender is not told */
bool pt_hand_over(struct pt_comm *, struct match_body *); /* to a thread that waits to take such a message; false: there is none */
void pt_stranger(struct peer *, uint64_t env) TERN_COLD; /* a message whose envelope cannot be: its sender is lost */
bool pt_is_too_much(struct peer *, size_t n); /* beside what the peer has unreceived here; if so, it is lost */

void pt_arrived(struct peer *, uint64_t h1, const void *data, size_t n); /* to peer.sunk, in the handler of a wire */

/* ---- large messages (offer.c, bulk.c, stream.c), and which way they go (ways.h) ---- */
void pt_offer_start(struct request *);  /* send side: RTS */
void pt_offer_make(struct request *);   /* its transfer, if it is to have one */
void offer_say_from(struct pt_offer *, const struct request *); /* the sender's end */
void offers_free_some(struct lane *); /* transfers that were retired, and that nobody looks at any more */
void offers_retire(struct lane *, struct pt_offer *);
/* The oldest send offered as this message, that nobody has matched; NULL: none. */
struct request *offer_unmatched(struct lane *, const struct peer *, uint64_t ctx, uint64_t env);
void offer_replace(struct request *, struct pt_offer *, uint64_t at); /* its transfer: by one of the receiver, as in pt_rts.offer */
int pt_offer_send_rts(struct request *); /* one attempt, TERN_AGAIN */
void pt_offer_matched(struct request *, struct peer *, int32_t source, int32_t tag, const struct pt_rts *);
int pt_incoming_step(struct request *); /* > 0: something was moved */
int pt_outgoing_step(struct request *);
void pt_offer_withdraw(struct request *); /* the transfer of a send that is cancelled, or goes in fragments, goes */
void pt_offer_discard(struct request *);  /* the same for one whose RTS has not left yet */
void pt_offer_abandon(struct request *);  /* the receiver is lost: ends the send */
void pt_stream_ask(struct request *, struct peer *, uint64_t send, uint64_t bytes);
void pt_stream_ahead(struct request *, uint64_t number); /* a send whose RTS has gone out, and that is not asked for */
void pt_bulk_ask(struct request *);       /* a receive that has met its message, of result.bytes */
void pt_bulk_send(struct request *, const struct pt_cts *);

/* ---- long messages of the layers above (gather.c) ---- */
void pt_gather_drop(struct peer *); /* what has come of one: no more of it will */

/* ---- small pieces (send.c) ---- */
/* Sending to this peer is a system call that copies: for a helper, where there is one. */
static inline bool pt_send_is_call(const struct peer *p) { return p->ep.ops->cost.send_ns >= TP_SYSTEM_CALL_NS; }
void pt_send_begin(struct request *); /* the first attempt, unless others wait before it */
void pt_send_put_off(struct request *) TERN_COLD; /* an offer that a later turn makes, by the helper, which is called when the lane is left */

/* ---- handlers, and where they want payloads (tp_sinks) ---- */
void *pt_sink_eager(struct peer *, uint64_t h0, uint64_t h1, size_t n);
void *pt_sink_ahead(struct peer *, uint64_t h0, uint64_t h1, size_t n);
void *pt_sink_frag(struct peer *, uint64_t h0, uint64_t h1, size_t n);
void pt_on_eager(struct peer *, uint64_t h0, uint64_t h1, const void *data, size_t n);
void pt_on_eager_sync(struct peer *, uint64_t h0, uint64_t h1, const void *data, size_t n);
void pt_on_rts(struct peer *, uint64_t h0, uint64_t h1, const void *data, size_t n);
void pt_on_cts(struct peer *, uint64_t h0, uint64_t h1, const void *data, size_t n);
void pt_on_frag(struct peer *, uint64_t h0, uint64_t h1, const void *data, size_t n);
void pt_on_ack(struct peer *, uint64_t h0, uint64_t h1, const void *data, size_t n);
void pt_on_credit(struct peer *, uint64_t h0, uint64_t h1, const void *data, size_t n);
void pt_on_cancel(struct peer *, uint64_t h0, uint64_t h1, const void *data, size_t n);
void pt_on_cancelled(struct peer *, uint64_t h0, uint64_t h1, const void *data, size_t n);
void pt_on_ask(struct peer *, uint64_t h0, uint64_t h1, const void *data, size_t n);
void pt_on_over(struct peer *, uint64_t h0, uint64_t h1, const void *data, size_t n);
void pt_on_call(struct peer *, uint64_t h0, uint64_t h1, const void *data, size_t n);
void pt_on_closing(struct peer *, uint64_t h0, uint64_t h1, const void *data, size_t n);
void pt_on_ahead(struct peer *, uint64_t h0, uint64_t h1, const void *data, size_t n);
void pt_on_ready(struct peer *, uint64_t h0, uint64_t h1, const void *data, size_t n);
void pt_on_part(struct peer *, uint64_t h0, uint64_t h1, const void *data, size_t n);
void pt_on_clash(struct peer *, uint64_t h0, uint64_t h1, const void *data, size_t n);

#endif
