/*
 * link.h - a connection between two processes of the tree: a keyed handshake (base/handshake.h), then framed messages.
 *
 *      0        4      6      8       12      16
 *      | length | type | zero | from  | to    | bytes [length]
 *
 * in network order; from and to are nodes, or TREE_ROOT, TREE_ALL (tree.h), type is an enum tree_type. Nothing is taken
 * from a stranger but the bytes of a handshake, within LINK_STRANGER_S; a frame that cannot be ends the link.
 *
 * A peer whose system is gone without a word is noticed after about LINK_SILENCE_S: by keepalive probes while nothing
 * is under way, and while something is, by looking when the last acknowledgement came. A peer that is stopped (its
 * system still answers) is not lost, however long it takes.
 */
#ifndef TERN_MPIEXEC_LINK_H
#define TERN_MPIEXEC_LINK_H

#include "base/handshake.h"
#include <event2/event.h>

#define LINK_STRANGER_S 10
#define LINK_SILENCE_S 10

struct link_head {
    uint32_t length;
    uint16_t type, zero;
    int32_t from, to;
};
static_assert(sizeof(struct link_head) == 16, "wire format");

struct tree_link;

/* What becomes of a link. link_close may be called in each of them. */
struct link_calls {
    /* Acceptor: the other side is genuine and says it is number `from`; is it wanted? */
    bool (*wanted)(struct tree_link *, uint64_t from);
    void (*opened)(struct tree_link *);
    /* The head is in the host's order, the bytes are valid during the call. False: this cannot be. */
    bool (*message)(struct tree_link *, const struct link_head *, const void *bytes);
    /* The end, with the reason in words; called once, unless we close it. */
    void (*lost)(struct tree_link *, const char *why);
};

/* On a connected socket, which the link owns from now on. `key` stays where it is. */
struct tree_link *link_connect(struct event_base *, int fd, const uint8_t *key, uint64_t from, uint64_t to,
                          const struct link_calls *, void *arg);
struct tree_link *link_accept(struct event_base *, int fd, const uint8_t *key, uint64_t to, const struct link_calls *,
                         void *arg);

/* Queues a message; never waits. */
void link_send(struct tree_link *, const struct link_head *, const void *bytes);

/* Bytes that are still to be sent. */
size_t link_pending(const struct tree_link *);

void *link_arg(const struct tree_link *);
bool link_is_open(const struct tree_link *);
bool link_has_spoken(const struct tree_link *); /* acceptor's side: the hello of the handshake has come */
uint64_t link_from(const struct tree_link *); /* acceptor's side, once open: who the other is */

/* From here on its calls are these. */
void link_set_calls(struct tree_link *, const struct link_calls *, void *arg);

void link_close(struct tree_link *);

#endif
