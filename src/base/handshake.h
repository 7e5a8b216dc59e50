/*
 * handshake.h - how two processes that share a 256-bit key make sure of each other when
 * a connection opens: the ranks' data connections and the launcher's tree alike. It
 * turns bytes into bytes; the sockets are the caller's.
 *
 *     connector                                  acceptor
 *     HELLO      magic, version, kind,
 *                from, to, each of a job,
 *                nonce                       ->   is it meant for me, and which key have the two jobs?
 *                                            <-   CHALLENGE  nonce, tag(key, "A", hello, nonce)
 *     is the tag right?
 *     PROOF      tag(key, "C", hello, nonce) ->   is the tag right?
 *                                            <-   VERDICT    welcome, or why not
 *
 * Without the key a stranger learns nothing. A recorded handshake is of no use to it, since both
 * sides' nonces are new. Nor are a side's own messages sent back to it, since the two tags
 * differ in their first byte. For a stranger an acceptor computes one tag and
 * keeps 72 bytes. The data that follows on the connection is sealed only if its kind says so; handshake_key makes
 * keys for that, which only the two sides know.
 *
 * The numbers of a message are in network order. Who is kept out and who is not: doc/security.md.
 *
 * Threads: a struct handshake belongs to one thread at a time.
 */
#ifndef TERN_BASE_HANDSHAKE_H
#define TERN_BASE_HANDSHAKE_H

#include "base/crypto.h"

#define HANDSHAKE_NONCE 32
#define HANDSHAKE_OUT 72 /* the most that one step writes */

/* What the connection is for. */
enum handshake_kind {
    HANDSHAKE_RANK = 1,
    HANDSHAKE_TREE = 2,
    HANDSHAKE_SEALED = 3, /* ranks, and the data is sealed */
    HANDSHAKE_TABLE = 4   /* a table of processes (dpm/connected.h), sealed */
};

/* What an acceptor says at the end. */
enum handshake_verdict {
    VERDICT_WELCOME = 1,
    VERDICT_TIE = 2,    /* both sides connected at once, and the other connection is kept */
    VERDICT_LEAVING = 3, /* the acceptor takes no connections any more */
    VERDICT_FULL = 4     /* it has no descriptor for one now */
};

enum handshake_state {
    HANDSHAKE_MORE, /* bytes of the other side are awaited */
    HANDSHAKE_ASK,  /* acceptor: the other side is genuine; handshake_answer says whether it is wanted */
    HANDSHAKE_DONE, /* over: connector, see `verdict` */
    HANDSHAKE_BAD   /* see `why`; close the connection */
};

struct handshake {
    const struct crypto *crypto;
    const uint8_t *key;          /* the caller's, which stays where it is; or pair_key */
    uint64_t from, to;           /* connector and acceptor: ranks, or numbers of daemons */
    uint64_t from_job, to_job;   /* that they belong to; 0 for daemons */
    bool (*key_of)(uint64_t job, uint8_t key[CRYPTO_KEY]); /* see handshake_between */
    uint8_t pair_key[CRYPTO_KEY];
    const char *why;             /* of HANDSHAKE_BAD, in words, e.g. "wrong key" */
    uint32_t step;               /* what is awaited next */
    uint16_t kind;
    uint16_t verdict;            /* enum handshake_verdict */
    bool acceptor;
    uint8_t have;                /* bytes of it in `in` */
    uint8_t in[HANDSHAKE_OUT];
    uint8_t hello[72];
    uint8_t nonce[HANDSHAKE_NONCE]; /* the acceptor's */
    uint8_t out[HANDSHAKE_OUT];  /* to be sent: */
    uint8_t out_len;             /* bytes; the caller sends them and sets this to 0 */
};

/* A connector's first message is in `out` at once. */
void handshake_connect(struct handshake *, const struct crypto *, const uint8_t *key, enum handshake_kind, uint64_t from,
                       uint64_t to);

/*
 * Called directly after handshake_connect or handshake_accept, for processes of jobs: the key of the two jobs takes the
 * place of the key given there. key_of finds the key for connections with another job. `own` is the job of this
 * process, `other` that of the acceptor, for a connector; an acceptor reads it from the hello. False: a connector's key
 * is not known.
 */
bool handshake_between(struct handshake *, uint64_t own, uint64_t other,
                       bool (*key_of)(uint64_t job, uint8_t key[CRYPTO_KEY]));

/* `to` is what this process is; UINT64_MAX: any. `from` is known from HANDSHAKE_ASK on. */
void handshake_accept(struct handshake *, const struct crypto *, const uint8_t *key, enum handshake_kind, uint64_t to);

/* Bytes that the other side is still expected to send in this step: never read more than that, for what follows a
 * handshake is not ours. */
size_t handshake_wants(const struct handshake *);

/* Acceptor: a whole hello has come, which any stranger may send. */
bool handshake_spoken(const struct handshake *);

/* Takes n <= handshake_wants() bytes; `out` must be empty. */
enum handshake_state handshake_input(struct handshake *, const void *bytes, size_t n);

/* From HANDSHAKE_ASK or HANDSHAKE_DONE on: the key for the data that this side sends, or receives. */
void handshake_key(const struct handshake *, bool sends, uint8_t key[CRYPTO_KEY]);

/* The acceptor's verdict, into `out`; the handshake is then over. */
void handshake_answer(struct handshake *, enum handshake_verdict);

#endif
