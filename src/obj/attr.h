/*
 * attr.h - attributes cached on communicators, datatypes and windows (MPI-5.0
 * section 7.7): keys made by users, with their callbacks, and the list of values
 * that hangs on an object.
 *
 * The object is only its handle (given to callbacks) and the head of its list, so
 * this file knows no kind of object.
 *
 * Threads: any. The table of keys and all lists are under one lock, which is never
 * held while a callback runs. Of two threads that set or delete one attribute, one waits
 * until the callback for the other has returned.
 */
#ifndef TERN_OBJ_ATTR_H
#define TERN_OBJ_ATTR_H

#include "base/compiler.h"
#include <mpi.h>

enum attr_kind { ATTR_COMM, ATTR_TYPE, ATTR_WIN };

/* The callbacks of the three kinds differ in the type of the handle only. The predefined ones are the values 0 and 1. */
typedef void attr_fn(void);
#define ATTR_NULL_FN ((attr_fn *)0)
#define ATTR_DUP_FN  ((attr_fn *)1)

/* What has attributes. */
struct attr_object {
    enum attr_kind kind;
    void *handle; /* MPI_Comm, MPI_Datatype or MPI_Win */
    void **list;  /* struct comm.attrs, struct type.attributes ... */
};

int attr_key_new(enum attr_kind, attr_fn *copy, attr_fn *delete, void *extra, int *keyval_p); /* 0 or TERN_ERR_NOMEM */

/* The key takes no new values; it goes with the last value stored under it, and until then a copy of its number finds
 * and deletes values, and may be freed once more. TERN_ERR_KEYVAL: there is no such key. */
int attr_key_free(enum attr_kind, int keyval);

/* Results: 0, TERN_ERR_KEYVAL, TERN_ERR_NOMEM, or the positive code that a callback returned. */
int attr_set(const struct attr_object *, int keyval, void *value); /* an old value is deleted by its callback before */
int attr_get(const struct attr_object *, int keyval, void **value_p, bool *found_p);
int attr_delete(const struct attr_object *, int keyval);
int attr_delete_all(const struct attr_object *); /* the newest first; stops at the first callback that fails */

/* What MPI_Comm_dup does: every value goes through its copy callback, in the order in which they were set. */
int attr_copy_all(const struct attr_object *from, const struct attr_object *to);

/* Forgets the values without callbacks, at the end of the library's life. */
void attr_drop(void **list);
void attr_close(void); /* forgets the keys */

#endif
