/*
 * asks.h - questions and answers between the processes that run jobs: ranks, the launchers of their nodes, the root,
 * and the launchers of spawned jobs (src/proc/ask.h). Each of them asks along a *way*: the tree to a node of the job,
 * or a line. An answer goes the way back that its question came.
 *
 *     TREE_ASK      struct ask_head, bytes     a question, or that it needs no answer any more
 *     TREE_ANSWER   struct ask_head, bytes
 *
 * Threads: the main one only.
 */
#ifndef TERN_MPIEXEC_ASKS_H
#define TERN_MPIEXEC_ASKS_H

#include "mpiexec/line.h"

struct way {
    uint32_t line; /* the number of a line; 0: by the tree */
    int node;      /* then: a node, or TREE_ROOT */
};

/* Who asks: by which way, under which number, for which rank of its job. */
struct asker {
    struct way way;
    uint32_t id, rank;
    bool rings; /* the answer may come when nobody reads: `ring` is called behind it */
};

/* Takes messages of the tree from here on. `take` gets the questions: it answers each of them, once, now or
 * later. `cancel`: the question of this asker needs no answer any
 * more; id 0: nor do any that came this way. */
struct asks_calls {
    void (*take)(const struct asker *, enum ask_type, const void *bytes, size_t n);
    void (*cancel)(const struct asker *);
    void (*ring)(void);
};
void asks_open(const struct asks_calls *);

/* Asks. `done` is called once; with a status that is not 0, the bytes are a text that says why. Not called any more
 * after asks_cancel(arg). */
typedef void (*asks_done_fn)(void *arg, int status, const void *bytes, size_t n);
void asks_send(struct way, enum ask_type, uint32_t rank, const void *bytes, size_t n, asks_done_fn done, void *arg);
void asks_cancel(const void *arg);

/* Passes the question on, and its answer back. */
void asks_forward(const struct asker *, struct way, enum ask_type, const void *bytes, size_t n);

void asks_answer(const struct asker *, int status, const void *bytes, size_t n);
void asks_refuse(const struct asker *, int status, const char *fmt, ...) TERN_PRINTF(3, 4);

/* A frame has come by a line. */
void asks_take(struct line *, const struct ask_head *, bool rings, const void *bytes);

/* A line is gone: its questions are cancelled, and what was asked by it has no answer. */
void asks_lose(struct line *);

static inline bool asks_same(const struct asker *a, const struct asker *b)
{
    return a->way.line == b->way.line && a->id == b->id && (a->way.line || a->way.node == b->way.node);
}

#endif
