/*
 * asks.h - questions and answers between ranks, the launchers of their nodes, the root, and the launchers of spawned
 * jobs (src/proc/ask.h). A question goes along a *way*: by the tree to a node of the job, or by a line (line.h). Its
 * answer comes back the same way.
 *
 *     TREE_ASK      struct ask_head, bytes     a question, or that it needs no answer any more
 *     TREE_ANSWER   struct ask_head, bytes
 *
 * Threads: the main one only.
 */
#ifndef TERN_MPIEXEC_ASKS_H
#define TERN_MPIEXEC_ASKS_H

#include "mpiexec/line.h"

/* Where a question goes, or an answer: along a line, or by the tree to a node. */
struct route {
    uint32_t line; /* the number of a line; 0: by the tree */
    int node;      /* then: a node, or TREE_ROOT */
};

/* Where an answer goes: the route by which the question came, its number there, and the rank that asks. */
struct asker {
    struct route route;
    uint32_t id, rank;
    bool rings; /* the rank may not read the line just then: `ring` is called after the answer is sent */
};

/* Takes messages of the tree from here on. `take` gets the questions, and answers each of them once, now or later
 * (asks_answer, asks_refuse, asks_forward), but for those that ask.h says have no answer. `cancel`: the question of this asker needs
 * no answer any more; with id 0, no question that came by this route does. */
struct asks_calls {
    void (*take)(const struct asker *, enum ask_type, const void *bytes, size_t n);
    void (*cancel)(const struct asker *);
    void (*ring)(void);
};
void asks_open(const struct asks_calls *);

/* Asks. `done` is called once, with a status of 0 or a code of base/err.h; with a code, the bytes are a text that says
 * why. It is not called after asks_cancel(arg). */
typedef void (*asks_done_fn)(void *arg, int status, const void *bytes, size_t n);
void asks_send(struct route, enum ask_type, uint32_t rank, const void *bytes, size_t n, asks_done_fn done, void *arg);
void asks_cancel(const void *arg);

/* Passes the question on, and its answer back. */
void asks_forward(const struct asker *, struct route, enum ask_type, const void *bytes, size_t n);

void asks_answer(const struct asker *, int status, const void *bytes, size_t n);
void asks_refuse(const struct asker *, int status, const char *fmt, ...) TERN_PRINTF(3, 4);

/* A frame has come by a line. */
void asks_take(struct line *, const struct ask_head *, bool rings, const void *bytes);

/* A line is closed: questions that came by it are cancelled, and `done` of questions that went by it is called with
 * TERN_ERR_PEER. */
void asks_lose(struct line *);

/* The launcher of that node is gone: `done` of what it was asked, and of what it is asked from now on, is called with TERN_ERR_PEER. */
void asks_lose_node(int node);

static inline bool asks_same_route(struct route a, struct route b) { return a.line == b.line && (a.line || a.node == b.node); }

static inline bool asks_same(const struct asker *a, const struct asker *b) { return a->id == b->id && asks_same_route(a->route, b->route); }

#endif
