/* v.c - see v.h. */
#include "coll/node/v.h"

#include "base/err.h"
#include "coll/node/background.h"
#include "coll/node/blocks.h"
#include "coll/port_pt2pt.h"
#include "pt2pt/api.h"

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

/* Are all these no longer than `most`, the own one too? */
static bool are_short(const int64_t *counts, const struct type *t, struct type *const *types, int ranks, size_t most)
{
    for (int r = 0; r < ranks; r++)
        if ((size_t)(counts[r] * (types ? types[r] : t)->size) > most) return false;
    return true;
}

void node_v_open_short(struct node *n, enum coll_kind kind)
{
    if (!node_v_to_all(kind) || n->size <= NODE_LENGTHS) n->short_kinds |= 1u << kind;
}

bool node_v_is_short(const struct node *n, const struct coll_call *a)
{
    size_t most = node_v_to_all(a->kind) ? n->small_share : min_size(n->big_bytes, NODE_MIDDLE);
    if (!(n->short_kinds >> a->kind & 1)) return false;
    if (a->scounts && !are_short(a->scounts, a->stype, a->stypes, n->size, most)) return false;
    if (a->rcounts) return are_short(a->rcounts, a->rtype, a->rtypes, n->size, most);
    struct node_block one = a->kind == COLL_GATHERV ? node_sent_first(a) : node_got_first(a);
    return a->scounts || node_bytes(&one) <= most;
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

static inline void move_short_own(const struct node *n, const struct coll_call *a)
{
    if (likely(!long_in(n, a, n->rank))) node_move_own(a, n->rank);
}

/* ---- leaving blocks ---- */

/* A block with the slot of one rank to itself. */
static inline void leave(struct node *n, uint32_t seq, const struct coll_call *a, int slot, struct node_block b)
{
    size_t bytes = node_bytes(&b);
    bool fits = bytes <= node_v_room(n, a);
    node_slot(n, seq, slot)->length = fits ? (uint32_t)bytes : BY_MESSAGE;
    if (fits) node_pack(node_payload(n, seq, slot, bytes), b);
}

int node_put_gatherv(struct node *n, uint32_t seq, const struct coll_call *a)
{
    if (n->rank != a->root) leave(n, seq, a, n->rank, node_sent_first(a));
    node_contribute(n, seq);
    return 0;
}

int node_put_scatterv(struct node *n, uint32_t seq, const struct coll_call *a)
{
    if (n->rank != a->root) return 0;
    for (int r = 0; r < n->size; r++) {
        if (r == n->rank) continue;
        leave(n, seq, a, r, node_sent(a, r));
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

/* What a slot with one block says: its length, and where it is. */
static inline uint32_t look_alone(struct node *n, uint32_t seq, int whose, const char **at)
{
    struct node_slot *slot = node_slot(n, seq, whose);
    if (slot->length != BY_MESSAGE) *at = node_payload(n, seq, whose, slot->length);
    return slot->length;
}

/* The same of the share of this rank in what rank r has left. */
static inline uint32_t look_share(struct node *n, uint32_t seq, int r, const char **at)
{
    uint32_t length = n->size <= NODE_LENGTHS ? node_slot(n, seq, r)->lengths[n->rank] : IN_BIG;
    if (length != IN_BIG) {
        *at = small_share(n, seq, r, n->rank);
        return length == IN_MESSAGE ? BY_MESSAGE : length;
    }
    *at = big_share(n, seq, r, n->rank);
    memcpy(&length, *at, sizeof length);
    *at += NODE_V_PREFIX;
    return length;
}

/* The same of the block from rank r. */
static inline uint32_t look(struct node *n, uint32_t seq, const struct coll_call *a, int r, const char **at)
{
    if (node_v_to_all(a->kind)) return look_share(n, seq, r, at);
    return look_alone(n, seq, a->kind == COLL_SCATTERV ? n->rank : r, at);
}

TERN_COLD static int disagree(int r, uint32_t length, size_t expected)
{
    if (length == BY_MESSAGE)
        return err_set(TERN_ERR_TRUNCATE, "rank %d sends more than the %zu bytes that are expected of it", r, expected);
    return err_set(TERN_ERR_TRUNCATE, "rank %d sends %u bytes, but %zu are expected of it", r, length, expected);
}

/* There is none in the slot, or it is longer than that block. */
TERN_COLD static int take_otherwise(int r, uint32_t length, size_t expected, size_t most)
{
    return length == BY_MESSAGE && expected > most ? 0 : disagree(r, length, expected);
}

static inline int take_from(struct node *n, uint32_t seq, const struct coll_call *a, int r, struct node_block b)
{
    const char *at = NULL;
    uint32_t length = look(n, seq, a, r, &at);
    size_t expected = node_bytes(&b), most = node_v_room(n, a);
    if (unlikely(length > expected || expected > most)) return take_otherwise(r, length, expected, most);
    node_unpack_some(b, at, length);
    return 0;
}

/* No two ranks begin with the same other one. */
int node_take_v(struct node *n, uint32_t seq, const struct coll_call *a)
{
    int rc = 0;
    for (int i = 1, r = n->rank + 1; i < n->size; i++, r++) {
        if (r == n->size) r = 0;
        int failed = take_from(n, seq, a, r, node_got(a, r));
        if (unlikely(failed)) rc = failed;
    }
    move_short_own(n, a);
    return rc;
}

int node_take_scatterv(struct node *n, uint32_t seq, const struct coll_call *a)
{
    return take_from(n, seq, a, a->root, node_got_first(a));
}

/* ---- messages ---- */

/* A call of those blocks alone that have no room, and what it lives in, the caller's to free; NULL: memory is out. */
static void make_rest(const struct node *n, const struct coll_call *a, struct coll_call *rest, int64_t **mem)
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

static void rest_over(struct request *r)
{
    struct node_background *f = r->owner;
    if (!f->rc) f->rc = r->result.error;
    f->rest = NULL; /* the next look at the operation goes on */
    request_free(r);
}

int node_prepare_messages(struct node_background *f)
{
    struct coll_call rest;
    int64_t *mem;
    make_rest(f->wait.n, &f->call, &rest, &mem);
    struct request *r = mem ? request_new(REQ_COLL) : NULL;
    if (r) r->comm = f->wait.n->comm;
    int rc = r ? coll_by_messages(r, &rest, f->number) : node_no_memory(f->call.kind);
    free(mem);
    if (!rc) {
        r->done = rest_over;
        r->owner = f;
        r->flags |= REQ_LAST_WORD | REQ_INTERNAL;
        f->rest = r;
    } else if (r) {
        request_free(r);
    }
    return rc;
}

void node_drop_messages(struct node_background *f)
{
    coll_frame_let_go(f->rest->xfer);
    coll_frame_give(f->rest->xfer);
    request_free(f->rest);
    f->rest = NULL;
}

/* ---- sender and receiver disagree ---- */

/* Of rank r, a message comes that nobody expects (1), or one is expected that will not come (-1). */
static int disagrees(struct node *n, uint32_t seq, const struct coll_call *a, int r)
{
    const char *at = NULL;
    if (r == n->rank || !node_moves(a, r, n->rank)) return 0;
    bool expected = long_in(n, a, r), comes = look(n, seq, a, r, &at) == BY_MESSAGE;
    return comes - expected;
}

static void stray_over(struct request *r) { request_free(r); }

/* A message that does not fit is received for its sender's sake. */
static void receive_stray(struct node *n, int rank, uint32_t number)
{
    struct request *r = request_new(REQ_RECV);
    if (!r) return;
    pt_prepare(r, REQ_RECV, n->comm, PT_COLL, NULL, 0, type_of(MPI_BYTE), rank, coll_frame_tag(number), PT_STANDARD);
    r->done = stray_over;
    r->flags |= REQ_LAST_WORD | REQ_INTERNAL;
    pt_recv_start(r);
}

void node_background_straighten(struct node_background *f)
{
    struct node *n = f->wait.n;
    for (int r = 0; r < n->size && node_v_is(f->call.kind); r++) {
        int d = disagrees(n, f->wait.seq, &f->call, r);
        if (d && node_v_by_pairs(n, f->blocking) && node_all(n, NODE_REACHES) == NODE_YES) {
            if (d > 0) node_pairs_refuse(n, f->wait.seq, r);
            if (d < 0 && f->pairs) node_pairs_expect_none(f->pairs, r);
        } else {
            if (d > 0) receive_stray(n, r, f->number);
            if (d < 0 && f->rest) coll_frame_give_up(f->rest->xfer, r);
        }
    }
}

void node_straighten(struct node *n, uint32_t seq, const struct coll_call *a, bool blocking, uint32_t number)
{
    struct node_background f = {.call = *a, .blocking = blocking, .number = number, .wait = {.n = n, .seq = seq}};
    lane_enter(n->comm->lane);
    node_background_straighten(&f);
    lane_leave(n->comm->lane);
}
