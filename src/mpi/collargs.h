/*
 * collargs.h - what the collective entry points share (coll.c, collv.c, alltoallv.c,
 * reduce.c, neighbor.c): the blocking, nonblocking and persistent forms of a collective check
 * the same arguments and fill the same struct coll_call; they differ in how it is carried out.
 *
 * Argument checks: each returns MPI_SUCCESS or the reported class.
 */
#ifndef TERN_MPI_COLLARGS_H
#define TERN_MPI_COLLARGS_H

#include "coll/coll.h"
#include "mpi/dataargs.h"

/* How a collective is carried out. */
enum way { NOW, LATER, OFTEN };

/* One use of a collective: which entry point it is. */
struct use {
    const char *call; /* the entry point's name */
    enum way way;
    MPI_Info info;        /* OFTEN: hints, ... */
    MPI_Request *request; /* ... and where the request goes: LATER started, OFTEN inactive */
};

static inline struct use now(const char *call) { return (struct use){call, NOW, MPI_INFO_NULL, NULL}; }
static inline struct use later(const char *call, MPI_Request *request)
{
    return (struct use){call, LATER, MPI_INFO_NULL, request};
}
static inline struct use often(const char *call, MPI_Info info, MPI_Request *request)
{
    return (struct use){call, OFTEN, info, request};
}

/* The last line of the entry points: does or starts the operation, or makes it persistent, and reports. */
int start_later(const char *call, MPI_Request *, struct comm *, const struct coll_call *);
int make_persistent(struct use, struct comm *, const struct coll_call *);
static inline int carry_out(struct use u, struct comm *c, const struct coll_call *a)
{
    if (u.way == NOW) return report_if(c, u.call, coll_run(c, a));
    return u.way == LATER ? start_later(u.call, u.request, c, a) : make_persistent(u, c, a);
}

/* The communicator of a collective; NULL: *rc is the reported class. */
static inline struct comm *collective(const char *call, MPI_Comm comm, int *rc)
{
    struct comm *c = comm_of(comm);
    if (unlikely(!c)) *rc = bad_comm(call, comm);
    return c;
}

/* Between two groups, root is MPI_ROOT at the root, MPI_PROC_NULL beside it, else a rank of the other group. */
int bad_root(struct comm *, const char *call, int root) TERN_COLD;
static inline bool root_ok(const struct comm *c, int root)
{
    if (unlikely(c->inter) && (root == MPI_ROOT || root == MPI_PROC_NULL)) return true;
    return likely((uint32_t)root < (uint32_t)comm_peers(c));
}

/* Is the caller the root, and is it one of those that the root sends to and receives from? */
static inline bool at_root(const struct comm *c, int root) { return likely(!c->inter) ? c->rank == root : root == MPI_ROOT; }
static inline bool is_served(const struct comm *c, int root) { return likely(!c->inter) || root >= 0; }

/* May the root of an operation, or all ranks in one without, say MPI_IN_PLACE here? Never between two groups. */
static inline bool place_ok(const struct comm *c, const void *buf) { return buf == MPI_IN_PLACE && !c->inter; }

/* A buffer of n >= 1 equal blocks; *t_p is their type. */
static inline int check_blocks(struct comm *c, const char *call, const struct data_names *names, const void *buf,
                               int64_t count, int64_t n, MPI_Datatype h, struct type **t_p)
{
    struct type *t = type_of(h);
    *t_p = t;
    return blocks_ok(buf, count, n, t) ? MPI_SUCCESS : bad_blocks(c, call, names, buf, count, n, h);
}

static inline int check_block(struct comm *c, const char *call, const struct data_names *names, const void *buf,
                              int64_t count, MPI_Datatype h, struct type **t_p)
{
    return check_blocks(c, call, names, buf, count, 1, h, t_p);
}

/*
 * Are what is sent and what is received apart, as they must be (6.2)? The side of `many` has blocks, of which number
 * `own` is for or from this process. Looks at the addresses of first bytes only, so types that interleave in one array
 * are no mistake.
 */
static inline bool apart(const void *many, int64_t count, const struct type *t, int own, const void *one,
                         int64_t one_count, const struct type *one_t)
{
    uintptr_t a = (uintptr_t)many + (uintptr_t)t->true_lb, b = (uintptr_t)one + (uintptr_t)one_t->true_lb;
    if (likely(a != b && a + (uintptr_t)own * (uintptr_t)count * (uintptr_t)t->extent != b)) return true;
    return !count || !t->size || !one_count || !one_t->size;
}

#endif
