/*
 * errhandler.h - what happens when a call fails (MPI-5.0 section 9.3).
 */
#ifndef TERN_OBJ_ERRHANDLER_H
#define TERN_OBJ_ERRHANDLER_H

#include "base/handle.h"
#include <mpi.h>

enum errh_action { ERRH_FATAL, ERRH_RETURN, ERRH_ABORT, ERRH_USER };

struct errhandler {
    struct handle h;
    enum errh_action action;
    uintptr_t predefined;
    MPI_Comm_errhandler_function *comm_fn; /* for ERRH_USER, made by MPI_Comm_create_errhandler */
};

static inline struct errhandler *errh_of(MPI_Errhandler e) { return handle_get(e, HANDLE_ERRHANDLER); }
MPI_Errhandler errh_handle(struct errhandler *);

void errh_open(void); /* defines the predefined handlers */
struct errhandler *errh_fatal(void);
struct errhandler *errh_new(MPI_Comm_errhandler_function *fn); /* NULL when memory is out */
struct errhandler *errh_ref(struct errhandler *);
void errh_unref(struct errhandler *);

#endif
