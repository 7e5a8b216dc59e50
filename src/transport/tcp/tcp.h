/*
 * tcp.h - the TCP transport within itself: what its files share.
 *
 *   tcp.c       the domain: opening, progress, events, timers, closing
 *   hot.c       connections that are read without asking epoll, and room for what they expect
 *   addr.c      interfaces, cards, which address of a peer to try first
 *   dial.c      connecting to a peer: several addresses at once, the handshake
 *   incoming.c  incoming connections until their handshakes are complete
 *   conn.c      the life of an endpoint: adopted, left, lost
 *   out.c       sending: frames, what waits for room
 *   in.c        receiving: one read for headers and payloads
 *   stage.c     the buffer that is read into, which stays where it is while a handler keeps bytes of it
 *   seal.c      sending and receiving on sealed connections: records (record.h) between frames and socket
 *
 * On the wire, after the handshake (base/handshake.h), each way:
 *
 *   | bytes 4 | id 1 | 0 1 | number 2 | h0 8 | h1 8 | payload `bytes` | pad to 8 |
 *
 * little endian; `number` counts the frames of the connection, so that a reader notices when
 * it does not read at the start of a frame. A frame with the id AM_PAD is the transport's own: h0
 * is an enum tcp_note.
 *
 * One thread at a time is in the transport (transport.h, wire_lock.h).
 */
#ifndef TERN_TRANSPORT_TCP_H
#define TERN_TRANSPORT_TCP_H

#include "base/handshake.h"
#include "transport/net_addr.h"
#include "transport/peer.h"
#include "transport/tcp/record.h"

#include <netinet/in.h>

#define TCP_SHORT (65536 + 64)      /* max_short: an eager message of 64 KB with what the protocols put in front */
#define TCP_OUT_BYTES (256u << 10)  /* what may wait to be sent by one connection; at least twice a frame */
#define TCP_STAGE_BYTES (80u << 10) /* one read; at least a frame */
#define TCP_LONG_MAX (2u << 30)     /* payload of am_zcopy */
#define TCP_HOT 4                   /* connections that are read without asking epoll */
#define TCP_ADDRS NET_IFS           /* addresses of a process in use */

struct tcp_frame {
    uint32_t bytes;
    uint8_t id, zero;
    uint16_t number;
    uint64_t h0, h1;
};
static_assert(sizeof(struct tcp_frame) == 24, "wire format");
static_assert(offsetof(struct tcp_frame, h0) == 8, "wire format");
static_assert(RECORD_MAX >= TCP_SHORT + sizeof(struct tcp_frame) + 8, "any short message is one record");
static_assert(TCP_STAGE_BYTES >= RECORD_MAX + sizeof(struct tcp_frame) + 8,
              "a record behind a header that came in part");
static_assert(TCP_OUT_BYTES >= 2 * (TCP_SHORT + 32), "half a buffer holds any short message");
static_assert(TCP_STAGE_BYTES >= TCP_SHORT + 32, "one read may bring any short message");

enum tcp_note { TCP_NOTE_LEAVE = 1 }; /* the end of the connection, when it comes, is not a loss */

/* ---- addresses (addr.c) ---- */

struct tcp_card {
    char host[64];
    bool sealed; /* TERN_TCP_SEAL of that process */
    unsigned count;
    struct net_addr addr[TCP_ADDRS];
};

/* ---- descriptors: what an event of epoll points to ---- */

#define TCP_UNWATCHED UINT32_MAX

enum tcp_kind { TCP_TIMER, TCP_LISTENER, TCP_HALF, TCP_CONN };

struct tcp_source {
    int fd; /* -1: closed, and an event that is still in the hand means nothing */
    enum tcp_kind kind;
    uint32_t events; /* watched for */
};

/* ---- a connection that is not one yet ---- */

enum tcp_stage {
    HALF_CONNECTING,
    HALF_TALKING,
    HALF_PROVED, /* connector: the other side may count it as connected from now on */
    HALF_ASKING  /* acceptor: genuine, and held until our own dialling is decided */
};

struct tcp_half {
    struct tcp_source src;
    enum tcp_stage stage;
    bool slow;     /* incoming: it may take its time, and no newcomer has its place */
    bool reserved; /* incoming: it has the descriptor that is kept for telling others that there is none */
    struct tcp_dial *dial; /* NULL: it is incoming */
    unsigned which;        /* dial: which address */
    uint64_t deadline;     /* incoming: ns */
    struct handshake hs;
    struct link link; /* among the dial's halves, the incoming ones, or the dead */
};

/* ---- the way to a peer ---- */

enum tcp_state { TCP_DIALLING, TCP_OPEN, TCP_LEFT, TCP_LOST };

/* Bytes that wait: buf[start, end), and between them the memory of `longs`, each behind the byte number `at`. */
struct tcp_out {
    char *buf; /* NULL while nothing waits */
    uint32_t start, end;
    uint64_t taken; /* number of the byte at `start`, since the connection began */
    struct link longs;
};

struct tcp_in {
    char *to;         /* a message that is coming in: where its next bytes go; NULL: none */
    size_t left;      /* of them */
    char *base;       /* where it begins */
    bool own;         /* base is ours to free */
    uint8_t skip;     /* bytes of padding to come */
    uint8_t have;     /* bytes in `head` */
    struct tcp_frame frame; /* of the message coming in */
    char head[sizeof(struct tcp_frame)]; /* a header that came in part */
};

/* What a sealed connection has besides. */
struct tcp_seal {
    struct record_way out, in;
    uint8_t *rest; /* of a record that the socket took in part: rest[rest_at, rest_end); NULL: none */
    uint32_t rest_at, rest_end;
    uint8_t *part; /* of a record that came in part: part[0, part_end); NULL: none */
    uint32_t part_end;
};

struct tcp_ep {
    struct tcp_source src;
    enum tcp_state state;
    bool ready;     /* open, nothing waits, not sealed: messages go straight to the socket */
    bool waits;     /* open, and something waits: counted in tcp_dom.unsettled */
    bool leaving;   /* the peer has taken its leave */
    bool broken;    /* sending has failed; what the peer said before is still read */
    bool starved;   /* the system has no memory for what we send; the timers try again */
    bool severed;   /* lost, because we do not want it any more; the rest is progress's */
    bool flushing;
    bool said_last; /* alone: our leave has been said (tcp_peer_close) */
    bool asks_only; /* not connected yet, and what waits are questions: nobody waits until they are out */
    uint16_t number_out, number_in;
    uint8_t stalled; /* looks in turn that found bytes not acknowledged and no sign of the peer */
    uint32_t fruitless; /* reads in turn without a byte */
    uint32_t mark;      /* so many bytes have room in the socket, and epoll does not tell of less (hot.c); 0: it does */
    struct peer *peer;
    struct tcp_out out;
    struct tcp_in in;
    struct tcp_seal *seal; /* NULL: not sealed */
    struct tcp_dial *dial;
    struct link in_all, in_lost;
    int code; /* of TCP_LOST */
    char *words;
    char host[64]; /* of the peer, "" if only its address is known */
    char far[INET6_ADDRSTRLEN], near[IFNAMSIZ];
};

struct tcp_dom {
    int epoll, timer;
    int reserve; /* a descriptor kept for when there are no more; -1: in use, or lost */
    struct tcp_source timer_src;
    struct net_ifs ifs;
    struct tcp_source listener[TCP_ADDRS];
    char host[64];
    const struct crypto *crypto;
    uint8_t key[CRYPTO_KEY];
    bool sealed;      /* TERN_TCP_SEAL */
    bool near;        /* `ifs` are for processes of this node only */
    bool keyed;       /* tcp_keyed has fetched the key */
    uint64_t timeout; /* ns */
    struct link eps, dials, incoming, dead, lost;
    unsigned incoming_count, ep_count;
    unsigned slow_count; /* of the incoming ones, those that may take their time */
    uint64_t deaf_until; /* no descriptors are left, or too many are incoming: nobody is let in until then */
    uint64_t due, checked; /* the timers are next looked at; the connections were last looked at */
    struct tcp_ep *hot[TCP_HOT];
    unsigned hot_count, turn, unsettled; /* unsettled: halves and connections that wait for room */
    struct tcp_ep *held; /* its bytes stage[held_at, held_end) are not delivered yet */
    uint32_t held_at, held_end;
    char *stage;         /* what is read into (stage.c) */
    char *stage_spare;   /* takes its place when a handler keeps bytes of it; NULL: none does */
    char *own, *own_end; /* memory of the message that is being delivered; NULL: it has none, or its handler keeps it */
    uint8_t *sealed_out; /* a record being sealed: RECORD_WIRE bytes; as the next, only if `sealed` */
    uint8_t
        *sealed_in; /* sealed_in[sealed_at, sealed_end): records that have come and are not open yet, those of `held` */
    uint32_t sealed_at, sealed_end;
    char *spare[4]; /* buffers for tcp_out */
    unsigned spares;
};
extern struct tcp_dom tcp_dom;

/* Loads the cryptography into tcp_dom.crypto: 0.2 ms, which processes that have no connection do not spend. 0, or a code with words. */
int tcp_load_crypto(void);

/* Does so, and fetches the job's secret into tcp_dom.key. Called before the first connection and not at the start: under some
 * launchers rank 0 publishes the secret beside its card, when its transports are open. May wait for that. 0, or a code
 * with words. */
int tcp_keyed(void);
/* After tcp_keyed: the key for connections with processes of that job. False: the job is not known. */
bool tcp_key_of(uint64_t job, uint8_t key[CRYPTO_KEY]);

/* ---- addr.c ---- */

/* tcp_addr_open: fills tcp_dom.ifs with the addresses by which others can reach this process; `others`: processes of
 * other jobs, too. TERN_ERR_NOT_FOUND: there is none. tcp_addr_more: adds those for processes of other jobs later. */
int tcp_addr_open(struct tcp_dom *, bool others);
int tcp_addr_more(struct tcp_dom *);
int tcp_card_write(const struct tcp_dom *, void *buf, size_t cap); /* bytes, or a code */
bool tcp_card_read(struct tcp_card *, const void *buf, size_t n);
bool tcp_card_usable(const struct tcp_dom *, const struct tcp_card *); /* one of its addresses is */
void tcp_addr_rank(const struct tcp_dom *, struct tcp_card *);      /* puts the most promising addresses first */
void tcp_addr_learn(const char *host, const struct net_addr *, bool good);
const char *tcp_addr_near(const struct tcp_dom *, int fd);            /* the interface a socket uses, "?" if unknown */

/* ---- tcp.c ---- */

bool tcp_watch(struct tcp_source *, uint32_t events); /* false, with words, when the system refuses */
void tcp_due(uint64_t when);                          /* the timers are to be looked at then */
void tcp_half_free(struct tcp_half *);                /* closes; freed when no event can point to it */
struct tcp_half *tcp_half_new(int fd);                /* NULL, and the descriptor closed: no memory */
void tcp_starve(struct tcp_ep *);                     /* tcp_flush is to be tried again in a while */

/* ---- hot.c ---- */

void tcp_hot_add(struct tcp_ep *);
void tcp_hot_remove(struct tcp_ep *);
int tcp_hot_read(int budget); /* how many messages were delivered */
/* Epoll tells of all connections again. True: of some it did not, so look at them once more before a sleep. */
bool tcp_hot_unmark(void);
void tcp_expect(struct tp_ep *, uint64_t bytes);

/* ---- dial.c ---- */

int tcp_dial(struct tcp_ep *, struct tcp_card *);
void tcp_dial_cancel(struct tcp_ep *);
bool tcp_dial_proved(const struct tcp_ep *);
void tcp_dial_event(struct tcp_half *, uint32_t events);
/* Time has passed, `away` ns of which the process did not look. When to look again. */
uint64_t tcp_dial_timer(struct tcp_dial *, uint64_t now, uint64_t away);
struct tcp_dial *tcp_dial_of(struct link *in_all);
/* Moves the handshake of a half on by what has come. HANDSHAKE_BAD: *why says what; *again: another try may do better. */
enum handshake_state tcp_half_talk(struct tcp_half *, const char **why, bool *again);

/* ---- incoming.c ---- */

int tcp_listen(struct tcp_dom *, unsigned first); /* on ifs[first] and those behind */
void tcp_accept(struct tcp_source *listener);
bool tcp_reserve(void); /* keeps a descriptor back, if there is none yet */
void tcp_incoming_event(struct tcp_half *, uint32_t events);
uint64_t tcp_incoming_timer(uint64_t now, uint64_t away);
void tcp_incoming_settle(struct tcp_ep *); /* dialling has ended: takes or drops the peer's connection that is held */

/* ---- conn.c ---- */

struct tcp_ep *tcp_ep_new(struct peer *);
struct tcp_ep *tcp_ep_fill(struct peer *, struct tp_ep *); /* NULL with words: no memory */
int tcp_peer_close(struct tp_dom *, struct peer *);
void tcp_ep_forget(struct tcp_ep *); /* one that was never connected, and to which nothing was sent */
void tcp_adopt(struct tcp_ep *, struct tcp_half *); /* the half is the connection */
void tcp_leave(struct tcp_ep *);                /* the peer has taken its leave and is gone */
void tcp_lose(struct tcp_ep *, int code);       /* with words set */
void tcp_sever(struct tp_ep *);
void tcp_shut_severed(struct tcp_ep *);
void tcp_ended(struct tcp_ep *, int error);     /* the connection has ended: errno, 0: by the other side */
void tcp_check(struct tcp_ep *);                /* is the other side still there? */
int tcp_refusal(const struct tcp_ep *);         /* the code, with words, for sends to a peer that has left or is lost */

/* ---- out.c ---- */

int tcp_am_short(struct tp_ep *, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n);
int tcp_am_bcopy(struct tp_ep *, unsigned id, uint64_t h0, uint64_t h1, tp_pack_fn pack, void *arg, size_t n);
int tcp_am_zcopy(struct tp_ep *, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n, struct tp_op *op);
void tcp_flush(struct tcp_ep *);
void tcp_out_drop(struct tcp_ep *, int code); /* drops what waits to be sent; its operations end with the code */
bool tcp_out_empty(const struct tcp_ep *);
void tcp_settled(struct tcp_ep *, bool ready); /* sets `ready` and `waits`; `ready`: nothing waits to be sent */

/* tcp_gather: the next pieces of what waits to be sent; how many, and their bytes. tcp_sent: n bytes of them have been
 * sent. tcp_not_sent: sending failed with this errno. */
#define TCP_PIECES 16
int tcp_gather(struct tcp_out *, struct iovec[TCP_PIECES], size_t *bytes);
void tcp_sent(struct tcp_out *, size_t n);
void tcp_not_sent(struct tcp_ep *, int error);

/* ---- seal.c ---- */

static inline enum handshake_kind tcp_kind(void) { return tcp_dom.sealed ? HANDSHAKE_SEALED : HANDSHAKE_RANK; }
int tcp_seal_open(struct tcp_dom *);
void tcp_seal_close(struct tcp_dom *);
bool tcp_seal_begin(struct tcp_ep *, const struct handshake *); /* false, with words: no memory */
void tcp_seal_end(struct tcp_ep *);
bool tcp_seal_flush(struct tcp_ep *); /* true while the socket takes all that it is given */
int tcp_seal_recv(struct tcp_ep *, int budget);
int tcp_seal_deliver(struct tcp_ep *, int budget); /* what lies in sealed_in */

/* ---- stage.c ---- */

char *tcp_stage_new(void);    /* TCP_STAGE_BYTES at the start of a page; NULL: no memory */
void tcp_stage_unref(char *); /* NULL: nothing */
void tcp_stage_renew(void);   /* nothing in the stage is needed: another one, if bytes of this one are kept */
int tcp_keep(struct tp_dom *, const void *data, size_t n, enum tp_keep_time, struct tp_kept *);

/* ---- in.c ---- */

int tcp_recv(struct tcp_ep *, int budget); /* how many messages were delivered; the peer may have ended by then */
int tcp_deliver_held(int budget);
void tcp_in_drop(struct tcp_ep *);
/* For bytes that come in another way than by reads of in.c: where the next `n` go, and then takes them from there.
 */
char *tcp_in_place(struct tcp_ep *, size_t n);
int tcp_in_take(struct tcp_ep *, char *place, size_t n, int budget);

#endif
