/*
 * gather.c - long messages of the layers above, which come in parts (say.c).
 *
 *     AM_PART, bytes, offset    |<------ the parts, as long as the sender's transport takes them ------>|
 *                               | struct pt_long | data of the message                                  |
 *                               0                                                                   bytes
 *
 * The parts of a message follow each other; other messages may come between them, but no part of another one. They are
 * gathered in memory that the peer's struct has, and the handler of the message is called when the last is there. So a
 * process can make this one keep at most PT_MESSAGE_LARGEST bytes. Ids of this layer and of the transports are not taken:
 * their messages are short, or have rules about memory of their own (credit.c).
 */
#include "base/err.h"
#include "pt2pt/api.h"
#include "pt2pt/deliver.h"
#include "pt2pt/dispatch.h"
#include "pt2pt/lost.h"
#include "pt2pt/protocol.h"

#include <stdlib.h>
#include <string.h>

struct gather {
    uint64_t bytes, there;
    struct pt_long head;
    char data[];
};
static_assert(offsetof(struct gather, data) == offsetof(struct gather, head) + sizeof(struct pt_long), "as on the wire");
static_assert(offsetof(struct gather, data) % 8 == 0, "data are aligned as in a message of one piece");

void pt_gather_drop(struct peer *p)
{
    free(p->gather);
    p->gather = NULL;
}

static bool is_possible(uint64_t bytes)
{
    return bytes >= sizeof(struct pt_long) && bytes <= sizeof(struct pt_long) + PT_MESSAGE_LARGEST;
}

static struct gather *gather_new(uint64_t bytes)
{
    struct gather *g = malloc(offsetof(struct gather, head) + bytes);
    if (!g) {
        err_set(TERN_ERR_NOMEM, "no memory for %llu bytes", (unsigned long long)bytes);
        lane_fatal("a long message cannot be received");
    }
    g->bytes = bytes;
    g->there = 0;
    return g;
}

/* Does the part follow what is there? */
static bool follows(const struct gather *g, uint64_t bytes, uint64_t at, size_t n)
{
    return g && bytes == g->bytes && at == g->there && n && n <= bytes - at;
}

/* Other messages of the peer may be in the inbox, behind the last part. */
static void hand_over(struct peer *from, const struct gather *g)
{
    uint32_t id = g->head.id;
    if (id < TP_AM_COLL || id >= TP_AM_MAX || !tp_handlers[id] || g->head.zero)
        pt_violation(from, "a long message with the id %u", id);
    else {
        deliver_in_place(true);
        tp_handlers[id](from, g->head.h0, g->head.h1, g->data, (size_t)(g->bytes - sizeof g->head));
        deliver_in_place(false);
    }
}

static void on_part(struct lane *l, struct pt_comm *pt, struct peer *from, uint64_t bytes, uint64_t at, const void *data, size_t n)
{
    (void)l, (void)pt;
    if (!at && !from->gather && is_possible(bytes)) from->gather = gather_new(bytes);
    struct gather *g = from->gather;
    if (unlikely(!follows(g, bytes, at, n))) {
        pt_violation(from, "%zu bytes at %llu of %llu of a long message, which are not the next ones", n, (unsigned long long)at,
                     (unsigned long long)bytes);
        return;
    }
    memcpy((char *)g + offsetof(struct gather, head) + at, data, n);
    g->there += n;
    if (g->there < g->bytes) return;
    from->gather = NULL; /* the handler may send a message to itself */
    hand_over(from, g);
    free(g);
}

static const struct pt_kind part = {AM_PART, PT_BY_PEER, on_part};

void pt_on_part(struct peer *from, uint64_t bytes, uint64_t at, const void *data, size_t n)
{
    dispatch(&part, from, bytes, at, data, n);
}
