/*
 * env.h - all that a transport needs of the library, as a structure that its `open` is given. So a transport can be a
 * module that is loaded on demand (find.h) and sees no symbol of the library: of its headers it uses transport.h and
 * what that includes, and of what they declare only types, constants and inline functions. `struct peer` is opaque to it.
 *
 * The structure stays for as long as the transport is open. Its functions are called as the members of tp_ops are, with
 * the lane's lock held; `words` is per thread.
 */
#ifndef TERN_TRANSPORT_ENV_H
#define TERN_TRANSPORT_ENV_H

#include "transport/am.h"

/* The number of the contract, one more for every change of what a module sees. */
#define TP_CONTRACT 2

struct tp_env {
    /* Messages, by id (am.h). An id without a handler is none: what comes with it is no message of Tern. */
    const tp_handler_fn *handlers;
    const tp_sink_fn *sinks;
    const bool *questions;

    /* Peers by their index: the peer that a message came from, NULL with words for an index that is none; and back. */
    struct peer *(*peer_of)(uint32_t index);
    uint32_t (*index_of)(const struct peer *);

    /* The end of a peer, see transport.h. */
    void (*lost)(struct peer *, int code);
    void (*left)(struct peer *);

    /* This process: its index, how many there are in the job, the job's name. */
    uint32_t index, count;
    const char *job;

    /* The job's secret, the same in all its processes and known to nobody else. 0, or a code with words. May wait, so not
     * to be asked for by `open` or `card`; the caller wipes it when done. */
    int (*secret)(uint8_t key[32]);

    /* A variable by its name, "TERN_X": its value or default, or for one that is not the library's, what the environment
     * says; NULL: it is not set. Valid until the transport is closed. */
    const char *(*variable)(const char *name);

    /* Words of failures, as in base/err.h. */
    int (*err_set)(int code, const char *fmt, ...) TERN_PRINTF(2, 3);
    int (*err_sys)(const char *fmt, ...) TERN_PRINTF(1, 2);
    const char *(*words)(void);
};

/* The one of this process. */
const struct tp_env *tp_env(void);

#endif
