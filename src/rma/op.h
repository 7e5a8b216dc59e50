/*
 * op.h - one operation of an origin on a target's memory: what the arguments of MPI_Put and its like say.
 *
 * Source: MPI-5.0 section 12.3.
 */
#ifndef TERN_RMA_OP_H
#define TERN_RMA_OP_H

#include "rma/target.h"
#include "rma/wire.h"
#include "type/op.h"

struct request;

struct win_op {
    const char *call;          /* "MPI_Put" */
    enum win_record_kind kind; /* WIN_PUT ... WIN_COMPARE_AND_SWAP */
    const void *origin;        /* not for WIN_GET, nor MPI_NO_OP */
    void *result;              /* of WIN_GET and those that fetch */
    const void *compare;       /* of WIN_COMPARE_AND_SWAP */
    int64_t ocount, rcount, tcount;
    struct type *otype, *rtype, *ttype; /* of origin, result and target; committed */
    const struct op *op;       /* of accumulates */
    int32_t rank;
    int64_t displacement;
    const struct type *basic;  /* of accumulates: what the elements are */
};

static inline bool win_op_fetches(const struct win_op *a) { return a->kind == WIN_GET || a->kind >= WIN_GET_ACCUMULATE; }
static inline bool win_op_changes(const struct win_op *a)
{
    return a->kind != WIN_GET && !(a->op && a->op->index == OP_NO_OP);
}

#endif
