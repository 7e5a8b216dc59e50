/*
 * state.h - the state of an endpoint and of its peers, which dgram.c (endpoint),
 * out.c (sending) and in.c (receiving) share.
 *
 *     sending      una            next                 a window of segments
 *                  | X . X . . .  |                    X: has come, by what the peer says
 *                  `- all before this one have come
 *     receiving    expected
 *                  | - S - S                           S: stored until those before it come
 *                  `- all before this one are in a message
 */
#ifndef TERN_TRANSPORT_DGRAM_STATE_H
#define TERN_TRANSPORT_DGRAM_STATE_H

#include "transport/dgram/dgram.h"
#include "transport/dgram/past.h"

#define NEVER UINT64_MAX
#define PEER_BUCKETS 256

/* Times of retransmission, ns. RFC 6298 has 1 s for the first and the least; here wires are short, and a segment sent
 * again in vain is cheap. */
#define RTO_FIRST 100000000u
#define RTO_LEAST 5000000u
#define RTO_MOST 1000000000u
#define ROUNDS 3       /* timers that run out, at least, before a peer is given up */
#define CWND_FIRST 10  /* segments: RFC 6928 */
#define CWND_LEAST 4   /* after a loss that later arrivals tell */
#define LATE (2 * (uint64_t)RTO_MOST) /* between two looks: a process that waits looks within RTO_MOST */
#define OVERTAKEN 3    /* a segment is lost when one sent so many transmissions later has come */
#define FIRST_ROOM 16384 /* bytes: memory for a message grows with what has come of it */

enum segment_state { SEGMENT_SENT, SEGMENT_LOST, SEGMENT_THERE };

struct segment {
    struct dgram_message *message;
    uint32_t at, n;    /* its piece of the message */
    uint64_t order;    /* number of its last transmission to that peer */
    uint64_t sent;     /* when that was, ns */
    uint8_t state;     /* enum segment_state */
    bool again;        /* was sent more than once: tells no round trip (Karn) */
};

/* A segment that came before its turn. */
struct stored {
    bool start;
    uint32_t left, n;
    uint8_t data[];
};

struct dgram_peer {
    struct dgram *ep;
    struct link bucket; /* ep->buckets */
    struct link all;    /* ep->peers; when forgotten: ep->dying */
    struct link busy;   /* ep->busy: something is to be done for it */
    struct link newcomer; /* ep->newcomers, if it is one: the owner has not called it, and has taken nothing of it */
    void *tag;
    struct dgram_card card;
    bool heard;     /* a packet has come from it: no need to introduce oneself any more */
    bool dead;      /* given up: */
    char why[256];
    bool forgotten;
    bool replaced;  /* somebody else answers at its address */

    /* sending */
    struct link queue;             /* messages; the head has segments that are not acknowledged, or has not begun */
    struct dgram_message *cutting; /* the first that is not wholly cut into segments */
    size_t cut;                    /* bytes of it that are */
    struct segment *out;           /* DGRAM_WINDOW; segment s is out[s % DGRAM_WINDOW]; NULL: none was sent yet */
    uint64_t una, next;
    uint64_t order, recovery;      /* transmissions so far; and when the window was last halved */
    unsigned outstanding, lost;       /* segments in those states */
    unsigned cwnd, credit, ssthresh;
    uint64_t edge;                 /* the peer takes segments before this one */
    uint64_t srtt, rttvar, rto;    /* ns; srtt 0: not measured yet */
    uint64_t lull;                 /* ns between questions to a peer that nothing is sent to */
    uint64_t timer;                /* when on_timer is due */
    uint64_t news;                 /* when something was last acknowledged, or sending began; 0: not known yet */
    unsigned rounds;               /* timers that ran out since then */
    bool watched;                  /* dgram_watch */
    bool prompt;                   /* dgram_send was called, and dgram_progress was not since */
    uint32_t probe;                /* number of the last question */

    /* receiving */
    uint64_t expected;
    struct stored **in; /* DGRAM_WINDOW, by number as `out`; NULL: none was stored yet */
    unsigned stored;
    char *whole;        /* the message that is coming: `have` bytes of `total`; NULL: none */
    size_t have, room, total;
    size_t bytes;       /* of memory for what comes */
    bool held;          /* it is complete, and not taken yet */
    uint64_t came;      /* when the last segment came */
    uint32_t echo;      /* number of the last question asked */
    bool asked;         /* and it is not answered */
    bool owes;          /* something has come, and no packet has said so ... */
    bool answerable;    /* ... as it is a message that has just been taken, whose answer may say so */
    bool deaf;          /* dgram_deafen */
};

struct dgram {
    struct step step;
    struct dgram_wire *wire;
    const struct crypto *crypto;
    uint8_t key[CRYPTO_KEY];
    uint64_t patience;
    unsigned window, seq_bits;
    void *arg;
    bool (*deliver)(void *, struct dgram_peer *, const void *, size_t);
    void (*failed)(void *, struct dgram_peer *, int);

    uint64_t id, now, came; /* came: when the last genuine packet was taken */
    uint32_t epoch;
    bool inside;            /* dgram_progress: peers that are forgotten stay until its end */
    bool full;              /* the carrier has no room: acknowledgements wait until it has sent something */
    struct link peers, busy, dying;
    struct link newcomers;  /* the first is the one that has been silent for longest */
    size_t newcomer_bytes;  /* of memory for what comes of them */
    unsigned newcomers_now;
    struct link buckets[PEER_BUCKETS];
    struct dgram_past past;
    struct dgram_stats stats;
};

/* dgram.c */
void dgram_packet_start(const struct dgram_peer *, unsigned type, struct dgram_packet *); /* a packet to that peer */
bool dgram_packet_send(struct dgram *, const struct dgram_addr *, const struct dgram_packet *); /* false: no room now */
void dgram_peer_busy(struct dgram_peer *);
void dgram_peer_fail(struct dgram_peer *, int code); /* with the words in err_words */
void dgram_peer_known(struct dgram_peer *);          /* it is no newcomer any more */
static inline bool dgram_peer_is_new(const struct dgram_peer *p) { return !list_empty(&p->newcomer); }

/* out.c */
void out_open(struct dgram_peer *);
void out_close(struct dgram_peer *, int code); /* messages are done, with the words in err_words */
void out_take_ack(struct dgram_peer *, const struct dgram_packet *);
void out_resend_all(struct dgram_peer *);      /* as if all that is under way were lost */
void out_progress(struct dgram_peer *);
static inline bool out_sends(const struct dgram_peer *p) { return p->una < p->next || p->cutting; }
static inline bool out_waits(const struct dgram_peer *p) { return out_sends(p) || p->watched; }

/* in.c */
void in_close(struct dgram_peer *);
void in_take(struct dgram_peer *, const struct dgram_packet *);
void in_progress(struct dgram_peer *);
void in_tell(const struct dgram_peer *, struct dgram_packet *); /* ack, got and window: what has come */
static inline bool in_waits(const struct dgram_peer *p) { return p->whole || p->stored; }

#endif
