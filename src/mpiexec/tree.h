/*
 * tree.h - the processes that run a job over several hosts, and the messages between them.
 *
 *                root (the mpiexec of the job)
 *              /   |    \            each link: a process started by an agent (ssh), and one connection back (link.h)
 *        daemon  daemon  daemon      at most TERN_TREE_WIDTH links below each
 *         /  \      |
 *    daemon ...   daemon
 *
 * Every daemon serves one node of the job; the root serves the node of its own host, if ranks go there. Messages go
 * from any process to any other along the links, in order between two processes. In a job of one node the tree is the
 * root alone, which sends messages to itself only.
 *
 * Threads: the main one only.
 */
#ifndef TERN_MPIEXEC_TREE_H
#define TERN_MPIEXEC_TREE_H

#include "base/compiler.h"
#include <sys/types.h>

struct event_base;

/* Where messages go; else the number of a node. */
#define TREE_ROOT (-1)
#define TREE_ALL (-2) /* every process but the sender */

enum tree_type {
    TREE_NONE,
    TREE_JOB,
    TREE_BYE, /* from parent to child */
    /* Between root and nodes (watch.c, daemon.c). */
    TREE_LOST,
    TREE_READY,
    TREE_FAILED,
    TREE_START,
    TREE_WORDS,
    TREE_EXIT,
    TREE_ABORT,
    TREE_OVER,
    TREE_END,
    TREE_KILL,
    TREE_SIGNAL,
    TREE_STOP,
    TREE_OUTPUT,
    TREE_OUTPUT_ACK,
    TREE_INPUT,
    TREE_INPUT_ACK,
    /* Between nodes: cards (cards.h), and the PMIx servers' fences and data (fence.h, modex.h). */
    TREE_CARD_ASK,
    TREE_CARD,
    TREE_FENCE,
    TREE_FENCE_DONE,
    TREE_MODEX_ASK,
    TREE_MODEX,
    /* Root and nodes again. */
    TREE_TRACE,
    TREE_TRACED,
    TREE_DIED,
    /* Between all: asks.h. */
    TREE_ASK,
    TREE_ANSWER,
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

struct job;
struct boot;

/* Takes this process's place in the tree, once the job's nodes are known, and starts the daemons below it. Each of them
 * is sent the job's description (TREE_JOB) first of all. `boot` is what a daemon was told; NULL at the root. 0 or an
 * exit code after saying why. Not called where all ranks run on the root's host. */
int tree_open(struct job *, const struct boot *, const void *description, size_t n);

/* A daemon: connects to its parent. The description arrives as TREE_JOB, whose handler calls tree_open. `orphaned` is
 * called, once, when there is no parent (any more). */
void tree_join(struct event_base *, const struct boot *, void (*orphaned)(const char *why));

/* A process of ours has ended: was it one of the tree's? */
bool tree_exited(pid_t, int status);

/* Is `node` served by the process that serves `top`, or by one below that? */
bool tree_is_below(int node, int top);

/* The end: tells those below to leave (TREE_BYE), and calls `done` when they have, or after a while. */
void tree_leave(void (*done)(void));

#endif
