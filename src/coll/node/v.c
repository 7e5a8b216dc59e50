/* v.c - see v.h. */
#include "coll/node/v.h"

#include "base/err.h"
#include "coll/node/blocks.h"
#include "coll/node/pairs.h"

#include <stdlib.h>

enum { IN_MESSAGE = 0xfe, IN_BIG = 0xff, SHARE_LEAST = 8 };
#define BY_MESSAGE UINT32_MAX
#define ROOM_MAX ((size_t)1 << 30)

/* ---- room ---- */

static size_t share(size_t big_bytes, int ranks) { return min_size(big_bytes, ROOM_MAX) / (size_t)ranks / 8 * 8; }

void node_v_shares(struct node *n)
{
    n->share = share(n->big_bytes, n->size);
    n->small_share = n->size <= NODE_LENGTHS ? (size_t)(NODE_INLINE / n->size) : 0;
}

size_t node_v_room(const struct node *n, const struct coll_call *a)
{
    return node_v_to_all(a->kind) ? n->share - NODE_V_PREFIX : min_size(n->big_bytes, ROOM_MAX);
}

bool node_v_suits(enum coll_kind kind, int ranks)
{
    int64_t limit = node_limit(ranks);
    bool gathers = kind == COLL_GATHERV || kind == COLL_SCATTERV;
    return limit > 0 && (gathers || share((size_t)limit, ranks) >= SHARE_LEAST);
}

static size_t bytes_out(const struct node *n, const struct coll_call *a, int r)
{
    if (!node_moves(a, n->rank, r)) return 0;
    struct node_block b = node_out(a, n->rank, r);
    return node_bytes(&b);
}

static size_t bytes_in(const struct node *n, const struct coll_call *a, int r)
{
    if (!node_moves(a, r, n->rank)) return 0;
    struct node_block b = node_in(a, r);
    return node_bytes(&b);
}

bool node_v_big(const struct node *n, const struct coll_call *a)
{
    bool to_all = node_v_to_all(a->kind);
    size_t least = to_all ? n->small_share : NODE_MIDDLE, most = node_v_room(n, a);
    if (to_all && n->size > NODE_LENGTHS) return true;
    for (int r = 0; r < n->size; r++) {
        size_t bytes = r == n->rank ? 0 : bytes_out(n, a, r);
        if (bytes > least && bytes <= most) return true;
    }
    return false;
}

/* ---- what has none ---- */

static bool long_out(const struct node *n, const struct coll_call *a, int r) { return bytes_out(n, a, r) > node_v_room(n, a); }
static bool long_in(const struct node *n, const struct coll_call *a, int r) { return bytes_in(n, a, r) > node_v_room(n, a); }

bool node_v_long(const struct node *n, const struct coll_call *a)
{
    for (int r = 0; r < n->size; r++)
        if (long_out(n, a, r) || long_in(n, a, r)) return true;
    return false;
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

static void move_short_own(const struct node *n, const struct coll_call *a)
{
    if (!long_in(n, a, n->rank)) node_move_own(a, n->rank);
}

/* ---- leaving blocks ---- */

/* A block with the slot of one rank to itself. */
static void leave(struct node *n, uint32_t seq, const struct coll_call *a, int slot, int to)
{
    struct node_block b = node_out(a, n->rank, to);
    size_t bytes = node_bytes(&b);
    bool fits = bytes <= node_v_room(n, a);
    node_slot(n, seq, slot)->length = fits ? (uint32_t)bytes : BY_MESSAGE;
    if (fits) node_pack(node_payload(n, seq, slot, bytes), b);
}

int node_put_gatherv(struct node *n, uint32_t seq, const struct coll_call *a)
{
    if (n->rank != a->root) leave(n, seq, a, n->rank, a->root);
    node_contribute(n, seq);
    return 0;
}

int node_put_scatterv(struct node *n, uint32_t seq, const struct coll_call *a)
{
    if (n->rank != a->root) return 0;
    for (int r = 0; r < n->size; r++) {
        if (r == n->rank) continue;
        leave(n, seq, a, r, r);
        node_signal(n, seq, r);
    }
    node_announce(n);
    move_short_own(n, a);
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

static void leave_for(struct node *n, uint32_t seq, const struct coll_call *a, int to)
{
    struct node_slot *slot = node_slot(n, seq, n->rank);
    struct node_block b = node_out(a, n->rank, to);
    size_t bytes = node_bytes(&b);
    bool few = n->size <= NODE_LENGTHS, fits = bytes <= node_v_room(n, a);
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
    if (fits) node_pack(at, b);
}

int node_put_alltoallv(struct node *n, uint32_t seq, const struct coll_call *a)
{
    for (int r = 0; r < n->size; r++)
        if (r != n->rank) leave_for(n, seq, a, r);
    node_contribute(n, seq);
    return 0;
}

/* ---- taking them ---- */

/* The block from rank r: its length, and where it is. */
static uint32_t look(struct node *n, uint32_t seq, const struct coll_call *a, int r, const char **at)
{
    int whose = a->kind == COLL_SCATTERV ? n->rank : r;
    struct node_slot *slot = node_slot(n, seq, whose);
    uint32_t length;
    if (!node_v_to_all(a->kind)) {
        if (slot->length != BY_MESSAGE)
            *at = node_payload(n, seq, whose, slot->length);
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
    struct node_block b = node_in(a, r);
    size_t expected = node_bytes(&b), most = node_v_room(n, a);
    if (unlikely(length == BY_MESSAGE)) return likely(expected > most) ? 0 : disagree(r, length, expected);
    if (unlikely(length > expected || expected > most)) return disagree(r, length, expected);
    node_unpack_some(b, at, length);
    return 0;
}

int node_v_disagrees(struct node *n, uint32_t seq, const struct coll_call *a, int r)
{
    const char *at = NULL;
    if (r == n->rank || !node_moves(a, r, n->rank)) return 0;
    bool expected = long_in(n, a, r), comes = look(n, seq, a, r, &at) == BY_MESSAGE;
    return comes - expected;
}

/* No two ranks begin with the same other one. */
int node_take_v(struct node *n, uint32_t seq, const struct coll_call *a)
{
    int rc = 0;
    for (int i = 1; i < n->size; i++) {
        int r = (n->rank + i) % n->size;
        int failed = take_from(n, seq, a, r);
        if (unlikely(failed)) rc = failed;
    }
    move_short_own(n, a);
    return rc;
}

int node_take_scatterv(struct node *n, uint32_t seq, const struct coll_call *a) { return take_from(n, seq, a, a->root); }
