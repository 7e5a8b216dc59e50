/*
 * port_pt2pt.h - the port through which frames run inside the library: messages by
 * src/pt2pt in the communicator's collective context, local work by src/type.
 */
#ifndef TERN_COLL_PORT_PT2PT_H
#define TERN_COLL_PORT_PT2PT_H

#include "coll/alg/alg.h"
#include "coll/goal/exec.h"
#include "obj/comm.h"
#include "obj/request.h"

/* A frame with the requests of its messages, one an operation. frame->ctx points back to it. */
struct coll_frame;

/*
 * A frame of `prog` (takes a reference) for runs on communicator c. `kept`: it goes to the communicator's cache when it
 * is done with. NULL when memory is out.
 */
struct coll_frame *coll_frame_new(struct comm *c, struct goal_prog *prog, bool kept);
void coll_frame_free(void *frame); /* not while active; NULL is fine */
void coll_frame_give(struct coll_frame *); /* done with: into the cache, or freed. Under the lane's lock */
struct goal_frame *coll_frame_goal(struct coll_frame *);

/*
 * A run that goes on when the call has returned keeps references to the types and the operator that are bound: forget
 * what earlier runs left, bind, hold; at the end let go.
 */
void coll_frame_forget(struct coll_frame *);
void coll_frame_hold(struct coll_frame *);
void coll_frame_let_go(struct coll_frame *);

void coll_frame_number(struct coll_frame *, uint32_t seq); /* the next run is that collective (coll_number): its tags */

/* All runs of this frame have the tags of persistent collective `number`, 1 to 0x7ffe. */
void coll_frame_keep_number(struct coll_frame *, uint32_t number);
uint32_t coll_frame_number_of(const struct coll_frame *);

/* The tag of the only message between two ranks in collective number seq. */
int coll_frame_tag(uint32_t seq);

/* The running frame waits no more for messages of a rank. */
void coll_frame_give_up(struct coll_frame *, int rank);

/*
 * Runs the bound frame to its end with the tags of collective number seq. Takes the lane's lock and waits as every
 * blocking call does. Returns the status of the run.
 */
int coll_frame_run(struct coll_frame *, uint32_t seq);

/* The status of a run that is over, which the request is for: the words of a failure are kept for it (err_keep). Lock held. */
void coll_frame_keep_words(const struct goal_frame *, const struct request *) TERN_COLD;
static inline int coll_frame_status(const struct goal_frame *f, const struct request *r)
{
    if (unlikely(f->status)) coll_frame_keep_words(f, r);
    return f->status;
}

#endif
