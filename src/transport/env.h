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

#include "proc/jobs.h"
#include "transport/am.h"

/* The number of the contract, one more for every change of what a module sees. */
#define TP_CONTRACT 3

struct tp_env {
    /* Messages, by id (am.h). An id without a handler is none: what comes with it is no message of Tern. */
    const tp_handler_fn *handlers;
    const tp_sink_fn *sinks;
    const bool *questions;

    /* Processes, of this job and of others, which name themselves by their job and their rank in it (proc/jobs.h): the
     * peer that a message came from, NULL with words for a name that is nobody's, as far as is known; how the peer is
     * called in words ("rank 3"; valid until this thread has asked eight more times); and a number, never 0, that is
     * another one when a job has become known, so that a name may be somebody's now. */
    struct peer *(*peer_of)(const struct proc_name *);
    const char *(*name_of)(const struct peer *);
    uint32_t (*news)(void);

    /* The end of a peer, see transport.h. */
    void (*lost)(struct peer *, int code);
    void (*left)(struct peer *);

    /* This process, and how many there are in its job. */
    struct proc_name self;
    uint32_t count;
    bool others; /* it is going to talk with processes of other jobs as well, which may be on any host */

    /* The key for connections between processes of the job with this number (proc_name.job) and of this one; it may be
     * this very job. The same in all their processes, and known to nobody else. 0, or a code with words. May wait, so
     * not to be asked for by `open` or `card`; the caller wipes it when done. */
    int (*key_of)(uint64_t job, uint8_t key[JOBS_KEY]);

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
