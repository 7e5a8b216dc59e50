/*
 * hammer.h - the parts of hammer.c: what a thread of it is, and the rounds of each kind of thread.
 *
 * Thread i of each rank works with the threads i of the other ranks. They draw the same random numbers, so all ranks
 * run the same rounds in the same order: `draw`. What only concerns one rank, such as how it waits, is drawn by
 * `draw_own`.
 */
#ifndef TERN_TEST_HAMMER_H
#define TERN_TEST_HAMMER_H

#include "../check.h"

#include <pthread.h>
#include <stdatomic.h>

enum { LARGEST = 150000 /* bytes of a message */, TAGS = 32 /* that each thread has for itself */ };

struct thread;
struct round {
    const char *name;
    void (*run)(struct thread *);
};
struct kind {
    const char *name;
    const struct round *rounds;   /* ends with a name NULL */
    MPI_Comm common;              /* of all threads of this kind, MPI_COMM_NULL: each has its own */
    void (*end)(struct thread *); /* what is left to be completed after the last round, or NULL */
};
extern struct kind kind_own, kind_shared, kind_crowd, kind_coll, kind_objects;

struct sending; /* of hammer_crowd.c */
struct thread {
    pthread_t id;
    int number, tag; /* tags tag...tag + TAGS - 1 are its own */
    const struct kind *kind;
    MPI_Comm comm;
    uint64_t random, random_own;
    unsigned char *out, *in; /* LARGEST each */
    struct sending *sending;
    long rounds, bad;
    char first_bad[300];

    /* For the watchdog. */
    const char *_Atomic round, *_Atomic call; /* what it does */
    _Atomic int line;
    _Atomic long steps; /* calls begun; -1: it has ended */
};

extern int hammer_rank, hammer_size;

/* Does an MPI call, which the watchdog names if it does not return. */
#define DO(t, what) do_code((t), (do_at((t), __LINE__, #what), (what)), #what)
/* What is to be true. The words are formatted only if it is not. */
#define IS(t, true, ...) ((true) ? (void)0 : is_bad((t), __LINE__, __VA_ARGS__))

static inline void do_at(struct thread *t, int line, const char *call)
{
    atomic_store_explicit(&t->call, call, memory_order_relaxed);
    atomic_store_explicit(&t->line, line, memory_order_relaxed);
    atomic_fetch_add_explicit(&t->steps, 1, memory_order_relaxed);
}

__attribute__((format(printf, 3, 4))) void is_bad(struct thread *t, int line, const char *words, ...);

static inline void do_code(struct thread *t, int code, const char *call)
{
    if (code != MPI_SUCCESS) is_bad(t, t->line, "%s returned code %d", call, code);
}

/* A number below n: the same in all ranks; or of this rank's own. */
static inline int draw(struct thread *t, int n) { return (int)(check_random(&t->random) % (uint64_t)n); }
static inline int draw_own(struct thread *t, int n) { return (int)(check_random(&t->random_own) % (uint64_t)n); }

/* The length of a message: most are short. */
static inline int draw_size(struct thread *t)
{
    static const int most[] = {1, 17, 65, 300, 300, 5000, 20000, LARGEST + 1};
    return draw(t, most[draw(t, 8)]);
}

/* The seed of the bytes that a rank sends in this round as its message i. */
static inline uint64_t seed_of(const struct thread *t, int rank, int i)
{
    return (uint64_t)rank * 1000003u + (uint64_t)t->number * 10007u + (uint64_t)t->rounds * 101u + (uint64_t)i;
}

/* Whom to send to, and who sends here: a random number of ranks ahead, 0 included. */
struct partners {
    int to, from;
};
static inline struct partners draw_partners(struct thread *t)
{
    int d = draw(t, hammer_size);
    return (struct partners){(hammer_rank + d) % hammer_size, (hammer_rank + hammer_size - d) % hammer_size};
}

/* Completes n requests, by one of MPI_Wait* and MPI_Test*. */
void finish(struct thread *t, MPI_Request *r, int n, MPI_Status *st);
/* A received message is what `from` has sent as its message i. */
void is_message(struct thread *t, const MPI_Status *st, int from, int tag, int n, const void *in, int i);

#endif
