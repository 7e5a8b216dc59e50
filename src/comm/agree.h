/* agree.h - what the two groups of an intercommunicator tell each other, and their members. */
#ifndef TERN_COMM_AGREE_H
#define TERN_COMM_AGREE_H

#include "obj/comm.h"

/* What a leader says of its group. */
struct side {
    uint64_t ctx;
    struct proc_name leader;
    struct rankmap_form form; /* how the list of members is packed (rankmap_pack); size -1: no memory to tell of them */
    int32_t high;  /* merging */
    uint32_t zero;
};
static_assert(sizeof(struct side) == 48, "sent as it is");

/* What the members of a group are told. */
struct news {
    struct side remote;
    uint64_t ctx, within; /* contexts of the new communicator, and of the local group's own */
    int32_t rc;
    bool several_jobs; /* that the members of the two groups are of; nothing is agreed on */
};

static inline struct proc_name side_name(uint32_t index)
{
    struct proc_name name;
    jobs_name_of(index, &name);
    return name;
}

/* The context that both sides take: a wide one, if either side has seen that there are members of several jobs. */
static inline uint64_t side_context(const struct side *mine, const struct side *theirs)
{
    if (comm_ctx_is_wide(mine->ctx) != comm_ctx_is_wide(theirs->ctx))
        return comm_ctx_is_wide(mine->ctx) ? mine->ctx : theirs->ctx;
    return proc_name_before(&mine->leader, &theirs->leader) ? mine->ctx : theirs->ctx;
}

#endif
