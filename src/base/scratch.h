/*
 * scratch.h - a buffer of each thread's own, for what is too large for a thread-local variable. A library that a program
 * loads while it runs (dlopen) finds about 1,600 bytes for such variables, which it shares with all others that are loaded so.
 *
 * Threads: any. The buffer lives as long as its thread.
 */
#ifndef TERN_BASE_SCRATCH_H
#define TERN_BASE_SCRATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* One kind of buffer: a static variable, with SCRATCH_INIT. */
struct scratch {
    size_t size;
    void *common; /* of this size: for threads that found no memory when they first asked, which see each other's words */
    bool made;
    pthread_key_t key;
    struct scratch *next;
};
#define SCRATCH_INIT(variable) {.size = sizeof(variable), .common = &(variable)}

/* The calling thread's buffer, zeroed at first. Never NULL. A thread that finds no memory for it has the common one, as a rule from then
 * on. */
void *scratch(struct scratch *);

#endif
