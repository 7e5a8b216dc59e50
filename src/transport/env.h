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
#define TP_CONTRACT 5

struct tp_env {
    /* Messages, by id (am.h). A message whose id has no handler breaks the protocol. */
    const tp_handler_fn *handlers;
    const tp_sink_fn *sinks;
    const bool *questions;

    /* Processes, of this job and of others, which send their names (job and rank, proc/jobs.h).
     *   peer_of  the peer with this name; NULL with words: no such process is known here, or memory is out
     *   name_of  the peer in words ("rank 3"), valid until this thread has asked eight more times
     *   news     a number, never 0, that changes when a name that was not known may be known now (jobs_news) */
    struct peer *(*peer_of)(const struct proc_name *);
    const char *(*name_of)(const struct peer *);
    uint32_t (*news)(void);

    /* The end of a peer, see transport.h. */
    void (*lost)(struct peer *, int code);
    void (*left)(struct peer *);

    /* This process, and how many there are in its job. */
    struct proc_name self;
    uint32_t count;
    bool others; /* this process will also communicate with processes of other jobs, which may be on any host */

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
