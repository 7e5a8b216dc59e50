/*
 * worklist.h - requests that a lane has to go on with, and the step that does so: it is on while there are any.
 *
 * Threads: under the lane's lock.
 */
#ifndef TERN_PT2PT_WORKLIST_H
#define TERN_PT2PT_WORKLIST_H

#include "obj/request.h"
#include "transport/progress.h"

struct worklist {
    struct step step;
    struct link requests; /* struct request.link */
};

/* Empty, and known to the set. */
void worklist_open(struct progress *, struct worklist *, const struct step_ops *);

/* At the end; and out, wherever it is. */
void worklist_push(struct progress *, struct worklist *, struct request *);
void worklist_remove(struct worklist *, struct request *);

/* The list whose step this is. */
static inline struct worklist *worklist_of(const struct step *s)
{
    return container_of((struct step *)(uintptr_t)s, struct worklist, step);
}

/*
 * For `poll`: one call for each request, until somebody else wants the lane that the helper holds. A call may end its
 * request and, through `done`, start, move or end others. worklist_some: for the first `most` requests, which go to the end.
 * How much happened: the sum of what the calls return.
 */
int worklist_all(struct worklist *, int (*go_on)(struct request *));
int worklist_some(struct worklist *, int (*go_on)(struct request *), int most);

/* For `drained` and `busy_with`. */
bool worklist_is_empty(const struct step *);
bool worklist_has(const struct step *, const struct peer *); /* a request of this peer's */

/* Takes the requests of this peer out, and calls `end` for each. */
void worklist_end(struct worklist *, const struct peer *, void (*end)(struct request *)) TERN_COLD;

/* Takes the requests of this communicator out, which ends although they are under way (MPI_Finalize): nobody knows them any more. */
void worklist_forget(struct worklist *, const struct comm *);

#endif
