/* agree.h - what the two groups of an intercommunicator tell each other, and their members. */
#ifndef TERN_COMM_AGREE_H
#define TERN_COMM_AGREE_H

#include <stdint.h>

/* What a leader says of its group. */
struct side {
    uint64_t ctx;
    uint32_t leader; /* process index */
    int32_t size;  /* -1: no memory to tell of them */
    uint32_t runs; /* with the size: how the list of members is packed (rankmap_pack) */
    int32_t high;  /* merging */
};

/* What the members of a group are told. */
struct news {
    struct side remote;
    uint64_t ctx, within; /* contexts of the new communicator, and of the local group's own */
    int32_t rc;
};

/* The context that both sides take. */
static inline uint64_t side_context(const struct side *mine, const struct side *theirs)
{
    return mine->leader < theirs->leader ? mine->ctx : theirs->ctx;
}

#endif
