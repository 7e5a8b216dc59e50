/*
 * errhandler.h - what happens when a call fails (MPI-5.0 section 9.3).
 *
 * Error handlers may be made, attached and freed at any time, by any thread: their
 * references are counted atomically whatever the level of thread support, and they
 * live in the arena of handles, which outlasts MPI_Finalize.
 *
 * The place where an object keeps its handler (struct comm.errh ...) may be set and read
 * by several threads: by errh_set and errh_get only, once others know the object.
 */
#ifndef TERN_OBJ_ERRHANDLER_H
#define TERN_OBJ_ERRHANDLER_H

#include "base/handle.h"
#include <mpi.h>

enum errh_action { ERRH_FATAL, ERRH_RETURN, ERRH_ABORT, ERRH_USER };

/* What kind of object a user's handler is for; the predefined ones are for all. */
enum errh_kind { ERRH_ANY, ERRH_COMM, ERRH_SESSION, ERRH_WIN, ERRH_FILE };

typedef void errh_fn(void); /* MPI_Comm_errhandler_function and so on, by kind */

struct errhandler {
    struct handle h;
    enum errh_action action;
    enum errh_kind kind;
    uintptr_t predefined;
    errh_fn *fn; /* for ERRH_USER, by kind: MPI_Comm_errhandler_function ... */
};

static inline struct errhandler *errh_of(MPI_Errhandler e) { return handle_get(e, HANDLE_ERRHANDLER); }
MPI_Errhandler errh_handle(struct errhandler *);

/* Can it be attached to an object of this kind? */
static inline bool errh_fits(const struct errhandler *e, enum errh_kind kind) { return e->kind == ERRH_ANY || e->kind == kind; }

void errh_open(void); /* defines the predefined handlers; done when the library is loaded, and again by tests */
struct errhandler *errh_fatal(void);

/*
 * The handler of objects that got no other, and of failures before there is any object: what the launcher was told
 * (mpiexec -initial-errhandler, 11.8.4), MPI_ERRORS_ARE_FATAL by default.
 */
struct errhandler *errh_initial(void);

struct errhandler *errh_new(enum errh_kind, errh_fn *fn); /* NULL when memory is out */
struct errhandler *errh_ref(struct errhandler *);
void errh_unref(struct errhandler *);

/* The handler at an object's place, with a reference for the caller; NULL: there is none. */
struct errhandler *errh_get(struct errhandler *const *place);

/* Puts a handler there, with a reference of its own, and lets go of the one that was there. */
void errh_set(struct errhandler **place, struct errhandler *);

/* Calls the user's function with the object's handle and the code, which it may change. */
void errh_call(const struct errhandler *, void *handle, int *code);

#endif
