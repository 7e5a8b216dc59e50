/*
 * info.h - info objects: pairs of a key and a value, in the order in which the keys
 * were first set (MPI-5.0 chapter 10).
 *
 * Keys and values are text without the standard's limits, which the entry points
 * check. Hints that an object keeps (struct comm.info) are info objects of its own.
 *
 * Threads: users may set and read one object by several threads at the same time
 * (MPI-5.0 section 11.4.1). So an object that they have the handle of is changed and
 * looked at under handle_state_lock, or by the functions below that take it. All other
 * functions are for objects that no other thread knows, or that do not change any more.
 * Works before MPI_Init and after MPI_Finalize.
 */
#ifndef TERN_OBJ_INFO_H
#define TERN_OBJ_INFO_H

#include "base/handle.h"
#include <mpi.h>

struct info_pair {
    char *key, *value;
};

struct info {
    struct handle h;
    struct info_pair *pair;
    int n, room;
    uintptr_t predefined; /* MPI_INFO_ENV's value, 0 for others */
};

struct info *info_env(void); /* see info_env.h */

/* NULL if `h` is MPI_INFO_NULL or no info object. */
static inline struct info *info_of(MPI_Info h) { return h == MPI_INFO_ENV ? info_env() : handle_get(h, HANDLE_INFO); }

/* The same for arguments that may be MPI_INFO_NULL, which is no info; false if `h` is something else. */
static inline bool info_given(MPI_Info h, struct info **info_p)
{
    *info_p = info_of(h);
    return *info_p || h == MPI_INFO_NULL;
}
static inline MPI_Info info_handle(struct info *i) { return i->predefined ? (MPI_Info)i->predefined : (MPI_Info)i; }

struct info *info_new(void);                      /* empty; NULL with words when memory is out */
struct info *info_dup(const struct info *);       /* of NULL: an empty one; NULL with words when memory is out */
void info_free(struct info *);                    /* NULL is ignored */

/* Adds the pair, or changes the value. 0 or TERN_ERR_NOMEM. */
int info_set(struct info *, const char *key, const char *value);
int info_delete(struct info *, const char *key);  /* TERN_ERR_NOT_FOUND: there is no such key */

/* The value, valid until it is changed; NULL if there is no such key (or no info). */
const char *info_get(const struct info *, const char *key);

/* ---- of objects that other threads may change meanwhile ---- */

/* A copy of the value that fits MPI_MAX_INFO_VAL, in `to`, which is returned; NULL if there is no such key (or no
 * info). */
const char *info_copy_value(const struct info *, const char *key, char to[MPI_MAX_INFO_VAL]);

/* What is at the place now, as a new object, empty if that is NULL. NULL with words when memory is out. */
struct info *info_snapshot(struct info *const *place);

/* info_set under the lock. */
int info_set_shared(struct info *, const char *key, const char *value);

/* Is the value of `key` "true" (any case)? `otherwise` when it is not there or no boolean. */
bool info_true(const struct info *, const char *key, bool otherwise);

#endif
