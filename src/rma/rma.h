/*
 * rma.h - one-sided communication: all that the entry points see of this folder, with epoch.h.
 *
 * Source: MPI-5.0 chapter 12; RMA-1 to RMA-21.
 *
 * Threads: any. Windows of one communicator are made and freed by one thread at a time, as the standard wants of collective
 * calls.
 */
#ifndef TERN_RMA_RMA_H
#define TERN_RMA_RMA_H

#include "rma/op.h"

static inline struct win *win_of(MPI_Win h) { return handle_get(h, HANDLE_WIN); }
static inline MPI_Win win_handle(struct win *w) { return (MPI_Win)w; }

int rma_register(void); /* its messages (transport/am.h): before peers_open */
void rma_unregister(void);
int rma_open(void); /* before the first communicator */
void rma_close(void);

/*
 * Making windows: collective over the communicator. 0, or a code with words, the same at all ranks but for its words; `info` may
 * be NULL. *base_p: where the memory of this process lies.
 *
 *   win_create     over memory of the caller's
 *   win_allocate   memory is allocated; processes of the node reach it by loads and stores, where it can be shared
 *   win_share      the same on one node; one piece for all, ordered by rank, unless alloc_shared_noncontig says otherwise.
 *                  TERN_ERR_WIN_SHARED: they do not share memory
 *   win_dynamic    without memory: each process attaches what it wants, when it wants
 */
int win_create(struct comm *, void *base, MPI_Aint bytes, MPI_Aint unit, struct info *info, struct win **);
int win_allocate(struct comm *, MPI_Aint bytes, MPI_Aint unit, struct info *info, void **base_p, struct win **);
int win_share(struct comm *, MPI_Aint bytes, MPI_Aint unit, struct info *info, void **base_p, struct win **);
int win_dynamic(struct comm *, struct info *info, struct win **);

/* Memory of this process, to a dynamic window, and from it. TERN_ERR_WIN_ATTACH: it overlaps with what is attached, or is not
 * attached. */
int win_attach(struct win *, void *base, MPI_Aint bytes);
int win_detach(struct win *, const void *base);

/* Collective; all operations of all processes on the window are complete. Frees it whatever it returns. */
int win_free(struct win *);
bool win_may_be_freed(const struct win *); /* no epoch is open; otherwise words */

/* MPI_Win_shared_query: rank MPI_PROC_NULL is the lowest that has memory. bytes 0 and base NULL: it is not shared. */
int win_query(struct win *, int rank, MPI_Aint *bytes, MPI_Aint *unit, void **base);

/* An operation, whose arguments have been checked but for the window's memory and epoch. `req_p`, if not NULL, gets a request
 * of it. */
int win_access(struct win *, const struct win_op *, struct request **req_p);

/* Hints: those that are known are taken; all in use, as a new object, NULL with words when memory is out. */
int win_hints_set(struct win *, struct info *given);
struct info *win_hints_used(const struct win *);

void win_set_name(struct win *, const char *);
const char *win_name(const struct win *); /* valid until this thread asks for another name */

#endif
