/*
 * coll.h - the collective operations: all that the layers above see of this folder.
 *
 * An operation is described by a struct coll_call, which is what MPI's arguments say with
 * counts and displacements widened. coll_run does it and returns when it is done here,
 * coll_start returns at once; the named functions are for the layers above that need one. Arguments have been
 * checked: communicator, root, signs of counts, types committed, operator valid for the
 * type, send buffer MPI_IN_PLACE only where that is allowed.
 *
 * Errors: a code with words. TERN_ERR_TRUNCATE when this rank's own send and receive
 * amounts differ, or a peer's message does not fit.
 *
 * Source: MPI-5.0 chapter 6; GOAL-28.
 *
 * Threads: collectives on one communicator are called one after the other (MPI 6.13); on
 * different communicators by any threads.
 */
#ifndef TERN_COLL_COLL_H
#define TERN_COLL_COLL_H

#include "coll/alg/alg.h"
#include "obj/comm.h"
#include "pt2pt/call_log.h"
#include "type/op.h"

struct request;

struct coll_call {
    enum coll_kind kind;
    const void *sendbuf; /* MPI_IN_PLACE where MPI allows it */
    void *recvbuf;       /* bcast: the buffer */
    int64_t scount, rcount;
    struct type *stype, *rtype; /* reductions and bcast: rtype; NULL: not significant here */
    const int64_t *scounts, *sdispls, *rcounts, *rdispls; /* v: one entry a block; displacements in extents (w: bytes) */
    struct type *const *stypes, *const *rtypes;           /* w */
    const struct op *op;
    int root; /* between two groups: MPI_ROOT, MPI_PROC_NULL or a rank of the other one */
    int in, out; /* neighbourhoods: constants of the communicator, as in struct coll_given */
    const int *sources, *destinations;
    bool grid;
};

/* Before anything that can be seen by other processes: reads the tables and variables that choose algorithms. */
int coll_choose_open(void);
void coll_choose_close(void);

int coll_open(void); /* before communicators are made: hooks into their end */
void coll_close(void); /* after the last communicator is gone */

/* The last user of the library goes, and all communicators have gone: when this returns the process may exit. */
void coll_settle(void);

/* Does the operation and waits for its end at this rank. */
int coll_run(struct comm *, const struct coll_call *);

/*
 * Starts the operation; *req_p (of kind REQ_COLL, the caller's) completes when it has ended here, by whatever progress
 * the process makes. The arrays of the call may be reused on return; types and operator are kept; buffers belong to the
 * operation until completion. Any number may be pending on a communicator, among blocking ones, as long as all ranks
 * call them in the same order.
 */
int coll_start(struct comm *, const struct coll_call *, struct request **req_p);

/*
 * The same in two steps, for what consists of more than one: coll_prepare takes the place in the order of the
 * communicator's collectives; nothing happens until coll_go, which is called once with the lane's lock held. Between the
 * two the caller may set the request's done and owner.
 */
int coll_prepare(struct comm *, const struct coll_call *, struct request **req_p);
void coll_go(struct request *);

/*
 * A persistent operation (MPI-5.0 6.13): *req_p is inactive; pt_start runs it, any number of times. Collective: all
 * ranks make theirs in the same order, and start them in any order. Arrays as in coll_start.
 */
int coll_persist(struct comm *, const struct coll_call *, struct request **req_p);

/* What the layers above need themselves, blocking. */
int coll_barrier(struct comm *);
int coll_last_barrier(struct comm *); /* of MPI_Finalize: meets no other barrier */
int coll_bcast(struct comm *, void *buf, int64_t count, struct type *, int root);
int coll_allgather(struct comm *, const void *sendbuf, int64_t scount, struct type *stype, void *recvbuf,
                   int64_t rcount, struct type *rtype);

/* Gives back the memory of programs that are kept for the next time: for a communicator that will seldom call the same ones. */
void coll_forget(struct comm *);

/* ---- for the parts of this folder that hang on a communicator ---- */

struct coll_cache;
struct coll_numbers;
struct coll_choice;
struct schedule_numbers;

struct coll_comm {
    struct coll_cache *cache; /* programs and idle frames */
    struct coll_numbers *numbers; /* of persistent collectives (persist.c); malloc'ed, NULL until there is one */
    struct coll_choice *wanted; /* by its hints, one an operation; NULL: it has none */
    uint32_t forced;          /* operations, a bit each, that go by messages in any case */
    uint32_t asked[2];        /* and those and others of which the user has said something (coll_select_asked): blocking, nonblocking */
    int64_t slot_max;         /* the largest contribution that goes through the node's slots */
    uint32_t seq;             /* collectives started: the same number at all ranks, makes the tags (coll_number) */
    struct pt_call_log call_log; /* what has been called: comm.call_log */
    void *node;               /* the node-local fast path's */
    void (*node_free)(void *node);
    struct schedule_numbers *schedules; /* of users (schedule.h); malloc'ed, NULL: there were none */
    bool far;        /* its ranks do not all share memory */
    bool oversubscribed; /* they are all on one node, and rank 0 knows of more ranks there than cores, or never spins */
    bool mixed;      /* the ranks of a node are not all neighbours */
    bool shuffled;   /* those of a domain are not */
    int32_t nodes;   /* that the ranks of this group are on */
    int32_t domains; /* that they are known to be in, a node where nothing is known being one */
    int32_t *node_of; /* the node of each rank, as in struct coll_given; NULL with one node */
    int32_t *domain_of; /* and the domain; NULL where they are the nodes */
    struct shared_places *shared; /* whose these two are (places.c), NULL: there are none */
};

/* The number of the next collective by messages: its place in the order, and in the upper half the sign of the call. */
static inline uint32_t coll_number(struct coll_comm *k)
{
    return (k->seq++ & 0xffff) | (uint32_t)(k->call_log.history >> 48 << 16);
}

/* coll_prepare by messages in any case, of a call that is part of another one or has been noted. The second: for a
 * request that is there already, as collective `number`; only coll_go remains to be called. */
int coll_prepare_messages(struct comm *, const struct coll_call *, struct request **req_p);
int coll_by_messages(struct request *, const struct coll_call *, uint32_t number);

struct request *coll_request(struct comm *); /* of a collective, not started; NULL with words: memory is out */

/* The communicator's state, made at first use; NULL with words and their code (err_code) when that fails. */
struct coll_comm *coll_comm(struct comm *);

#endif
