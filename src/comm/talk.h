/*
 * talk.h - a word between two processes of a communicator while another one is
 * made: blocking, in the collective context, with tags out of the way of schedules.
 */
#ifndef TERN_COMM_TALK_H
#define TERN_COMM_TALK_H

#include "obj/comm.h"
#include "obj/request.h"
#include "pt2pt/api.h"

/* Bit 30 keeps them apart from the tags of schedules; the bits below it say what the talk is about. */
enum talk_tag {
    TALK_GROUP = PT_FOR_TWO, /* goes on where a member of the communicator has died */
    TALK_INTER = 5 << 28,
    TALK_TOPO = 6 << 28,
    TALK_CREATE = 7 << 28, /* calls that are collective over the communicator, so that their order tells them apart */
    TALK_TAGS = (1 << 28) - 1 /* a user's tag is cut to this */
};

/* `rank` as calls on the communicator name it: of the remote group in an intercommunicator. Fewer bytes than are to be received are
 * TERN_ERR_SYSTEM. */
int talk_send(struct comm *, const void *buf, size_t bytes, int rank, int tag);
int talk_recv(struct comm *, void *buf, size_t bytes, int rank, int tag);

/* The same of at most `room` bytes; *bytes_p: so many have come. */
int talk_recv_some(struct comm *, void *buf, size_t room, int rank, int tag, size_t *bytes_p);

/* Both at once, of different lengths. */
int talk_swap(struct comm *, const void *out, size_t out_bytes, void *in, size_t in_bytes, int rank, int tag);

/* Begins one message with a request of the caller's (REQ_SEND, REQ_RECV), which may be complete on return. */
void talk_start(struct request *, uint8_t kind, struct comm *, const void *buf, size_t bytes, int rank, int tag);

/*
 * From `root` to all of an intracommunicator. By messages, which lie at the receiver: unlike a collective, which may leave
 * them in the memory of the sender, it lets a process go (end its session) that has said all it had to. Of more bytes than one.
 *
 * 0: this rank has the bytes, as the root always has, whatever becomes of others that die. A rank that cannot be told for a second, as
 * memory is out here, waits. One that does not get the bytes tells those that would have had them from it, which fail with the same code.
 */
int talk_spread(struct comm *, void *buf, size_t bytes, int root);

/*
 * The same of bytes that the others have no memory for yet: *buf is the root's, and malloc'ed at the others, who know the length. One
 * without memory fails with TERN_ERR_NOMEM. *buf is NULL at another process that fails.
 */
int talk_spread_new(struct comm *, void **buf, size_t bytes, int root);

/* The way it goes, a binomial tree, by ranks counted from the root's, which is 0: a rank has it from the rank without its lowest bit,
 * and then sends it to the ranks with one more, lower bit, the highest first. For the root that bit is the first above all ranks. */
static inline int32_t talk_lowest_bit(int32_t rank, int32_t size)
{
    int32_t bit = 1;
    while (bit < size && !(rank & bit)) bit <<= 1;
    return bit;
}

#endif
