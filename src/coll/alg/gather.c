/*
 * gather.c - gather and gatherv. Blocks in the send and the receive buffer may have
 * different datatypes, so ranks in between hold them packed.
 */
#include "coll/alg/alg.h"

/* My own block into the root's receive buffer. */
static void keep_own(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct goal_part to = coll_recv_block(s, v, s->rank);
    if (!coll_in_place(s) && to.len) goal_copy(b, goal_mem(GOAL_SEND_BUF, 0), to.at, to.len);
}

void coll_gather_linear(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    if (s->rank != s->root) {
        if (s->bytes) goal_send(b, s->root, 0, goal_mem(GOAL_SEND_BUF, 0), s->bytes);
        return;
    }
    for (int i = 1; i < s->size; i++) {
        int peer = (s->rank + i) % s->size;
        struct goal_part to = coll_recv_block(s, v, peer);
        if (to.len) goal_recv(b, peer, 0, to.at, to.len);
    }
    keep_own(b, s, v);
}

/*
 * The root asks, by an empty message, for the blocks of few ranks at a time: what comes finds its receive posted, and
 * the wire to the root is not contended for.
 */
void coll_gather_staged(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    enum { ASK = 0, BLOCK = 1 };
    goal_id end[TREE_RADIX_MAX];
    int window = coll_radix(s), turn = 0;
    if (s->rank != s->root) {
        if (!s->bytes) return;
        goal_id asked = goal_recvv(b, s->root, ASK, NULL, 0);
        goal_after(b, goal_send(b, s->root, BLOCK, goal_mem(GOAL_SEND_BUF, 0), s->bytes), asked);
        return;
    }
    for (int w = 0; w < window; w++) end[w] = GOAL_NONE;
    for (int i = 1; i < s->size; i++) {
        int peer = (s->rank + i) % s->size, w = turn % window;
        struct goal_part to = coll_recv_block(s, v, peer);
        if (!to.len) continue;
        goal_id got = goal_recv(b, peer, BLOCK, to.at, to.len), ask = goal_sendv(b, peer, ASK, NULL, 0);
        goal_after(b, got, end[w]);
        goal_after_start(b, ask, got);
        end[w] = got;
        turn++;
    }
    keep_own(b, s, v);
}

/* Blocks of the numbers [vr, vr + n) of the tree as pieces of the receive buffer: two where the ranks wrap around. */
static int root_pieces(const struct coll_shape *s, int vr, int n, struct goal_part part[2])
{
    int first = (s->root + vr) % s->size, head = n < s->size - first ? n : s->size - first;
    part[0] = (struct goal_part){goal_mem(GOAL_RECV_BUF, first * s->bytes), head * s->bytes};
    part[1] = (struct goal_part){goal_mem(GOAL_RECV_BUF, 0), (n - head) * s->bytes};
    return n > head ? 2 : 1;
}

static void gather_root(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v,
                        const struct coll_tree *t)
{
    struct goal_part part[2];
    for (int k = 0; k < t->children; k++) {
        int64_t n = t->child_span[k] * s->bytes;
        if (root_pieces(s, t->child_vr[k], t->child_span[k], part) == 1) {
            goal_recv(b, t->child[k], 0, part[0].at, n);
            continue;
        }
        struct goal_part x = {goal_scratch(b, n), n};
        goal_id got = goal_recv(b, t->child[k], 0, x.at, n);
        goal_after(b, goal_copyv(b, &x, 1, part, 2), got);
    }
    keep_own(b, s, v);
}

void coll_gather_binomial(struct goal_build *b, const struct coll_shape *s, const struct coll_given *v)
{
    struct coll_tree t;
    coll_tree_binomial(&t, s->rank, s->size, s->root);
    if (t.parent < 0) return gather_root(b, s, v, &t);
    struct goal_mem own = goal_mem(GOAL_SEND_BUF, 0);
    if (!t.children) {
        goal_send(b, t.parent, 0, own, s->bytes);
        return;
    }
    struct goal_mem x = goal_scratch(b, t.span * s->bytes);
    goal_id copied = goal_copy(b, own, x, s->bytes);
    goal_id up = goal_send(b, t.parent, 0, x, t.span * s->bytes);
    goal_after(b, up, copied);
    for (int k = 0; k < t.children; k++) {
        struct goal_mem to = goal_plus(x, (t.child_vr[k] - t.vr) * s->bytes);
        goal_after(b, up, goal_recv(b, t.child[k], 0, to, t.child_span[k] * s->bytes));
    }
}
