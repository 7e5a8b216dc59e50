/* goal.c - programs as objects: references, names, and taking in a block from elsewhere. */
#include "coll/goal/goal.h"

#include "base/err.h"
#include <stdlib.h>
#include <string.h>

const char *goal_type_name(unsigned type)
{
    static const char *const name[GOAL_OP_END] = {
        [GOAL_OP_SEND] = "send",       [GOAL_OP_RECV] = "recv", [GOAL_OP_COPY] = "copy",   [GOAL_OP_REDUCE] = "reduce",
        [GOAL_OP_REDUCE3] = "reduce3", [GOAL_OP_JOIN] = "join", [GOAL_OP_STAMP] = "stamp",
        [GOAL_OP_ARITH] = "arith",
    };
    return type < GOAL_OP_END ? name[type] : NULL;
}

int goal_import(const void *block, size_t size, struct goal_prog **prog_p)
{
    int rc = goal_verify(block, size);
    if (rc) return rc;
    struct goal_prog *prog = malloc(offsetof(struct goal_prog, head) + size);
    if (!prog) return err_set(TERN_ERR_NOMEM, "no memory for a collective schedule of %zu bytes", size);
    atomic_init(&prog->refs, 1);
    prog->zero = 0;
    memcpy(&prog->head, block, size);
    *prog_p = prog;
    return 0;
}

struct goal_prog *goal_ref(struct goal_prog *prog)
{
    atomic_fetch_add_explicit(&prog->refs, 1, memory_order_relaxed); /* the caller owns one already */
    return prog;
}

void goal_unref(struct goal_prog *prog)
{
    if (!prog) return;
    /* acq_rel: the last owner frees after the others have read the block for the last time */
    if (atomic_fetch_sub_explicit(&prog->refs, 1, memory_order_acq_rel) == 1) free(prog);
}
