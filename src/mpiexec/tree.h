/*
 * tree.h - the processes that run a job over several hosts, and the messages between them.
 *
 *                root (the mpiexec that the user started)
 *              /   |    \            each line: a process started by an agent (ssh), and one connection back (link.h)
 *        daemon  daemon  daemon      at most TERN_TREE_WIDTH lines below each
 *         /  \      |
 *    daemon ...   daemon
 *
 * Every daemon serves one node of the job; the root serves the node of its own host, if ranks go there. Messages go
 * from any process to any other along the lines, in order between two processes. With one node there is nothing of all
 * this but messages to oneself.
 *
 * Threads: the main one only.
 */
#ifndef TERN_MPIEXEC_TREE_H
#define TERN_MPIEXEC_TREE_H

#include "base/compiler.h"

/* Where messages go; else the number of a node. */
#define TREE_ROOT (-1)
#define TREE_ALL (-2) /* every process but the sender */

enum tree_type {
    TREE_NONE,
    /* Between parent and child (tree.c). */
    TREE_JOB, TREE_BYE, TREE_LOST,
    /* Between root and nodes (watch.c, daemon.c). */
    TREE_READY, TREE_FAILED, TREE_START, TREE_WORDS, TREE_EXIT, TREE_ABORT, TREE_OVER, TREE_END, TREE_KILL, TREE_SIGNAL,
    TREE_STOP, TREE_OUTPUT, TREE_OUTPUT_ACK, TREE_INPUT, TREE_INPUT_ACK,
    /* Between nodes: what ranks and PMIx servers of different nodes have to say to each other. */
    TREE_CARD_ASK, TREE_CARD, TREE_FENCE, TREE_FENCE_DONE, TREE_MODEX_ASK, TREE_MODEX, TREE_NAMES_ASK, TREE_NAMES,
    TREE_TYPES = 48
};

#define TREE_MESSAGE_MAX (64u << 20) /* bytes of one message */

/* Sends n bytes (at most TREE_MESSAGE_MAX) to a node, TREE_ROOT or TREE_ALL. Never waits, never fails: what cannot be
 * delivered any more belongs to a job that is ending. To oneself: the handler is called at once. */
void tree_send(int to, enum tree_type, const void *bytes, size_t n);

/* Takes a message of `from`, a node or TREE_ROOT: to this an answer can be sent. The bytes are valid during the call,
 * and come from a process of the job; their content is to be checked all the same. False: they cannot be; the line they
 * came on is given up, and with it the job. */
typedef bool (*tree_handler_fn)(int from, const void *bytes, size_t n);

/* By type; filled before tree_open. A message without a handler is one that cannot be. */
extern tree_handler_fn tree_handlers[TREE_TYPES];

#endif
