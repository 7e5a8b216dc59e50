/* v.c - see v.h. */
#include "coll/node/v.h"

#include "base/err.h"
#include "coll/node/pack.h"
#include "coll/node/pairs.h"

#include <stdlib.h>

enum { IN_MESSAGE = 0xfe, IN_BIG = 0xff, SHARE_LEAST = 8 };
#define BY_MESSAGE UINT32_MAX
#define ROOM_MAX ((size_t)1 << 30)

/* ---- blocks of the user's ---- */

struct block {
    char *at;
    int64_t count;
    const struct type *t;
};

static size_t bytes_of(const struct block *b) { return (size_t)(b->count * b->t->size); }

/* What this rank gets from rank r. */
static inline struct block in_block(const struct coll_call *a, int r)
{
    if (a->kind == COLL_SCATTERV) return (struct block){a->recvbuf, a->rcount, a->rtype};
    if (a->rtypes) return (struct block){(char *)a->recvbuf + a->rdispls[r], a->rcounts[r], a->rtypes[r]};
    return (struct block){(char *)a->recvbuf + a->rdispls[r] * a->rtype->extent, a->rcounts[r], a->rtype};
}

/* What it sends to rank r. */
static inline struct block out_block(const struct coll_call *a, int r)
{
    char *from = (char *)(uintptr_t)a->sendbuf;
    if (a->kind == COLL_GATHERV) return (struct block){from, a->scount, a->stype};
    if (from == MPI_IN_PLACE) return in_block(a, r);
    if (a->stypes) return (struct block){from + a->sdispls[r], a->scounts[r], a->stypes[r]};
    return (struct block){from + a->sdispls[r] * a->stype->extent, a->scounts[r], a->stype};
}

/* With which others does this rank exchange blocks? */
static bool sends_to(const struct node *n, const struct coll_call *a, int r)
{
    if (r == n->rank) return false;
    return node_v_to_all(a->kind) || (a->kind == COLL_GATHERV ? r == a->root : n->rank == a->root);
}

static bool gets_from(const struct node *n, const struct coll_call *a, int r)
{
    if (r == n->rank) return false;
    return node_v_to_all(a->kind) || (a->kind == COLL_SCATTERV ? r == a->root : n->rank == a->root);
}

/* ---- room ---- */

static size_t share(size_t big_bytes, int ranks) { return min_size(big_bytes, ROOM_MAX) / (size_t)ranks / 8 * 8; }

void node_v_shares(struct node *n)
{
    n->share = share(n->big_bytes, n->size);
    n->small_share = n->size <= NODE_LENGTHS ? (size_t)(NODE_INLINE / n->size) : 0;
}

/* The largest block that goes through the slots. */
static size_t room(const struct node *n, const struct coll_call *a)
{
    return node_v_to_all(a->kind) ? n->share - NODE_V_PREFIX : min_size(n->big_bytes, ROOM_MAX);
}

bool node_v_suits(enum coll_kind kind, int ranks)
{
    int64_t limit = node_limit(ranks);
    bool gathers = kind == COLL_GATHERV || kind == COLL_SCATTERV;
    return limit > 0 && (gathers || share((size_t)limit, ranks) >= SHARE_LEAST);
}

/* Bytes of the longest of these blocks, but for the own one, that is not longer than `most`; 0: there is none. */
static size_t longest(const int64_t *counts, const struct type *t, struct type *const *types, const struct node *n, size_t most)
{
    size_t found = 0;
    for (int r = 0; r < n->size; r++) {
        size_t bytes = (size_t)(counts[r] * (types ? types[r] : t)->size);
        if (bytes > found && bytes <= most && r != n->rank) found = bytes;
    }
    return found;
}

/* The same of what this rank sends, and of what it gets. */
static size_t longest_out(const struct node *n, const struct coll_call *a, size_t most)
{
    bool root = n->rank == a->root;
    size_t one = a->kind == COLL_GATHERV && !root ? (size_t)(a->scount * a->stype->size) : 0;
    if (!node_v_to_all(a->kind) && (a->kind == COLL_GATHERV || !root)) return one <= most ? one : 0;
    if (a->sendbuf == MPI_IN_PLACE) return longest(a->rcounts, a->rtype, a->rtypes, n, most);
    return longest(a->scounts, a->stype, a->stypes, n, most);
}

static size_t longest_in(const struct node *n, const struct coll_call *a)
{
    bool root = n->rank == a->root;
    size_t one = a->kind == COLL_SCATTERV && !root ? (size_t)(a->rcount * a->rtype->size) : 0;
    if (!node_v_to_all(a->kind) && (a->kind == COLL_SCATTERV || !root)) return one;
    return longest(a->rcounts, a->rtype, a->rtypes, n, SIZE_MAX);
}

bool node_v_big(const struct node *n, const struct coll_call *a)
{
    bool to_all = node_v_to_all(a->kind);
    if (to_all && n->size > NODE_LENGTHS) return true;
    return longest_out(n, a, room(n, a)) > (to_all ? n->small_share : NODE_MIDDLE);
}

/* ---- what has none ---- */

static bool long_out(const struct node *n, const struct coll_call *a, int r)
{
    if (!sends_to(n, a, r)) return false;
    struct block b = out_block(a, r);
    return bytes_of(&b) > room(n, a);
}

static bool long_in(const struct node *n, const struct coll_call *a, int r)
{
    if (!gets_from(n, a, r)) return false;
    struct block b = in_block(a, r);
    return bytes_of(&b) > room(n, a);
}

bool node_v_long(const struct node *n, const struct coll_call *a)
{
    size_t most = room(n, a);
    return longest_out(n, a, SIZE_MAX) > most || longest_in(n, a) > most;
}

void node_v_rest(const struct node *n, const struct coll_call *a, struct coll_call *rest, int64_t **mem)
{
    int64_t *out = *mem = malloc(2 * (size_t)n->size * sizeof *out), *in = out + n->size;
    if (!out) return;
    for (int r = 0; r < n->size; r++) {
        out[r] = a->scounts && long_out(n, a, r) ? a->scounts[r] : 0;
        in[r] = a->rcounts && long_in(n, a, r) ? a->rcounts[r] : 0;
    }
    *rest = *a;
    if (a->scounts) rest->scounts = out;
    if (a->rcounts) rest->rcounts = in;
}

static struct node_end end_of(const struct block *b, bool own)
{
    return (struct node_end){
        .bytes = bytes_of(b), .buf = b->at, .count = b->count, .type = (struct type *)(uintptr_t)b->t, .own = own};
}

void node_v_ends(const struct node *n, const struct coll_call *a, struct node_ends *e)
{
    for (int r = 0; r < n->size; r++) {
        if (long_out(n, a, r)) {
            struct block b = out_block(a, r);
            e->send[r] = end_of(&b, a->sendbuf == MPI_IN_PLACE && node_v_to_all(a->kind));
        }
        if (long_in(n, a, r)) {
            struct block b = in_block(a, r);
            e->recv[r] = end_of(&b, false);
        }
    }
}

/* ---- leaving blocks ---- */

/* A block with the slot of one rank to itself. */
static void leave(struct node *n, uint32_t seq, const struct coll_call *a, int slot, const struct block *b)
{
    size_t bytes = bytes_of(b);
    bool fits = bytes <= room(n, a);
    node_slot(n, seq, slot)->length = fits ? (uint32_t)bytes : BY_MESSAGE;
    if (fits) node_pack(node_payload(n, seq, slot, bytes), b->at, b->count, b->t);
}

int node_put_gatherv(struct node *n, uint32_t seq, const struct coll_call *a)
{
    if (n->rank != a->root) {
        struct block b = out_block(a, a->root);
        leave(n, seq, a, n->rank, &b);
    }
    node_contribute(n, seq);
    return 0;
}

static void copy_own(const struct node *n, const struct coll_call *a)
{
    struct block from = out_block(a, n->rank), to = in_block(a, n->rank);
    type_copy_across(to.at, to.count, to.t, from.at, from.count, from.t);
}

int node_put_scatterv(struct node *n, uint32_t seq, const struct coll_call *a)
{
    if (n->rank != a->root) return 0;
    for (int r = 0; r < n->size; r++) {
        if (r == n->rank) continue;
        struct block b = out_block(a, r);
        leave(n, seq, a, r, &b);
        node_signal(n, seq, r);
    }
    node_announce(n);
    if (a->recvbuf != MPI_IN_PLACE) copy_own(n, a);
    return 0;
}

/* The share of one receiver in a sender's payloads. */
static char *small_share(struct node *n, uint32_t seq, int from, int to)
{
    return node_slot(n, seq, from)->payload + (size_t)to * n->small_share;
}

static char *big_share(struct node *n, uint32_t seq, int from, int to)
{
    return node_payload(n, seq, from, NODE_MIDDLE + 1) + (size_t)to * n->share;
}

static void leave_for(struct node *n, uint32_t seq, const struct coll_call *a, int to, const struct block *b)
{
    struct node_slot *slot = node_slot(n, seq, n->rank);
    size_t bytes = bytes_of(b);
    bool few = n->size <= NODE_LENGTHS, fits = bytes <= room(n, a);
    uint32_t length = fits ? (uint32_t)bytes : BY_MESSAGE;
    char *at;
    if (few && bytes <= n->small_share) {
        slot->lengths[to] = (uint8_t)bytes;
        at = small_share(n, seq, n->rank, to);
    } else if (few && length == BY_MESSAGE) {
        slot->lengths[to] = IN_MESSAGE;
        return;
    } else {
        if (few) slot->lengths[to] = IN_BIG;
        at = big_share(n, seq, n->rank, to);
        memcpy(at, &length, sizeof length);
        at += NODE_V_PREFIX;
    }
    if (fits) node_pack(at, b->at, b->count, b->t);
}

int node_put_alltoallv(struct node *n, uint32_t seq, const struct coll_call *a)
{
    for (int r = 0; r < n->size; r++) {
        if (r == n->rank) continue;
        struct block b = out_block(a, r);
        leave_for(n, seq, a, r, &b);
    }
    node_contribute(n, seq);
    return 0;
}

/* ---- taking them ---- */

/* The block from rank r: its length, and where it is. */
static uint32_t look(struct node *n, uint32_t seq, const struct coll_call *a, int r, const char **at)
{
    struct node_slot *slot = node_slot(n, seq, a->kind == COLL_SCATTERV ? n->rank : r);
    uint32_t length;
    if (!node_v_to_all(a->kind)) {
        if (slot->length != BY_MESSAGE)
            *at = node_payload(n, seq, a->kind == COLL_SCATTERV ? n->rank : r, slot->length);
        return slot->length;
    }
    if (n->size <= NODE_LENGTHS && slot->lengths[n->rank] != IN_BIG) {
        *at = small_share(n, seq, r, n->rank);
        return slot->lengths[n->rank] == IN_MESSAGE ? BY_MESSAGE : slot->lengths[n->rank];
    }
    *at = big_share(n, seq, r, n->rank);
    memcpy(&length, *at, sizeof length);
    *at += NODE_V_PREFIX;
    return length;
}

TERN_COLD static int disagree(int r, uint32_t length, size_t expected)
{
    if (length == BY_MESSAGE)
        return err_set(TERN_ERR_TRUNCATE, "rank %d sends more than the %zu bytes that are expected of it", r, expected);
    return err_set(TERN_ERR_TRUNCATE, "rank %d sends %u bytes, but %zu are expected of it", r, length, expected);
}

static int take_from(struct node *n, uint32_t seq, const struct coll_call *a, int r)
{
    const char *at = NULL;
    uint32_t length = look(n, seq, a, r, &at);
    struct block b = in_block(a, r);
    size_t expected = bytes_of(&b), most = room(n, a);
    if (unlikely(length == BY_MESSAGE)) return likely(expected > most) ? 0 : disagree(r, length, expected);
    if (unlikely(length > expected || expected > most)) return disagree(r, length, expected);
    node_unpack_some(b.at, b.count, b.t, at, length);
    return 0;
}

int node_v_disagrees(struct node *n, uint32_t seq, const struct coll_call *a, int r)
{
    const char *at = NULL;
    if (!gets_from(n, a, r)) return 0;
    bool expected = long_in(n, a, r), comes = look(n, seq, a, r, &at) == BY_MESSAGE;
    return comes - expected;
}

static int take_all(struct node *n, uint32_t seq, const struct coll_call *a)
{
    int rc = 0;
    for (int i = 1; i < n->size; i++) { /* no two begin with the same one */
        int r = (n->rank + i) % n->size;
        int failed = take_from(n, seq, a, r);
        if (unlikely(failed)) rc = failed;
    }
    if (a->sendbuf != MPI_IN_PLACE) copy_own(n, a);
    return rc;
}

int node_take_gatherv(struct node *n, uint32_t seq, const struct coll_call *a) { return take_all(n, seq, a); }
int node_take_scatterv(struct node *n, uint32_t seq, const struct coll_call *a)
{
    return take_from(n, seq, a, a->root);
}
int node_take_alltoallv(struct node *n, uint32_t seq, const struct coll_call *a) { return take_all(n, seq, a); }
