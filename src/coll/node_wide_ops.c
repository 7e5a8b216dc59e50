/*
 * node_wide_ops.c - the halves of the operations of node_wide.h, at one slice: what a rank leaves in its wide slot, and
 * what it makes of the others'.
 *
 * Where all get a combination of all, or of all before them, the last one that arrives makes it for everybody: it has
 * just been switched in, and the others wait.
 */
#include "base/err.h"
#include "coll/node_wide_in.h"
#include "copy/copy.h"

static char *slot(const struct node_pass *p, int rank)
{
    size_t i = (size_t)(p->seq % NODE_WIDE_SETS) * (size_t)p->n->size + (size_t)rank;
    return p->n->wide.at + i * p->n->wide.bytes;
}

/* Beside the flag, in the first slice: is the data of this rank missing? */
static void say_lack(struct node_pass *p, int rank)
{
    if (!p->at) memcpy(node_slot(p->n, p->seq, rank)->payload, &p->lacks, sizeof p->lacks);
}

static int hear_lack(struct node_pass *p, int slot_of, int whose)
{
    int lacks = 0;
    if (!p->at) memcpy(&lacks, node_slot(p->n, p->seq, slot_of)->payload, sizeof lacks);
    return lacks ? err_set(TERN_ERR_NOMEM, "rank %d had no memory to pack its buffer", whose) : 0;
}

static int hear_lacks(struct node_pass *p)
{
    int rc = 0;
    for (int r = 0; r < p->n->size && !p->at && !rc; r++)
        if (r != p->n->rank) rc = hear_lack(p, r, r);
    return rc;
}

/* ---- leaving ---- */

static void fill_vector(struct node_pass *p)
{
    if (p->in.at) copy_memory(slot(p, p->n->rank), p->in.at + p->at, p->len);
    say_lack(p, p->n->rank);
}

static int leave_vector(struct node_pass *p)
{
    fill_vector(p);
    node_contribute(p->n, p->seq);
    return 0;
}

static int leave_blocks(struct node_pass *p)
{
    char *mine = slot(p, p->n->rank);
    for (int r = 0; r < p->n->size && p->in.at; r++) {
        if (r == p->n->rank && p->a->kind == COLL_ALLTOALL) continue;
        copy_memory(mine + (size_t)r * p->len, p->in.at + (size_t)r * p->block + p->at, p->len);
    }
    say_lack(p, p->n->rank);
    node_contribute(p->n, p->seq);
    return 0;
}

static int leave_bcast(struct node_pass *p)
{
    if (!node_pass_root(p)) return 0;
    fill_vector(p);
    node_signal(p->n, p->seq, p->n->rank);
    node_announce(p->n);
    return 0;
}

/* Into the slots of the others. */
static int leave_scatter(struct node_pass *p)
{
    for (int r = 0; r < p->n->size && node_pass_root(p); r++) {
        if (r == p->n->rank) continue;
        if (p->in.at) copy_memory(slot(p, r), p->in.at + (size_t)r * p->block + p->at, p->len);
        say_lack(p, r);
        node_signal(p->n, p->seq, r);
    }
    if (node_pass_root(p)) node_announce(p->n);
    return 0;
}

/* ---- taking ---- */

static void get(struct node_pass *p, size_t at, const char *from)
{
    if (p->out.at) copy_memory(p->out.at + at + p->at, from, p->len);
}

static int take_bcast(struct node_pass *p)
{
    get(p, 0, slot(p, p->a->root));
    return hear_lack(p, p->a->root, p->a->root);
}

static int take_scatter(struct node_pass *p)
{
    get(p, 0, slot(p, p->n->rank));
    return hear_lack(p, p->n->rank, p->a->root);
}

/* Beginning behind the own one, so that not all read the same at the same time. The own block is there already. */
static int take_gather(struct node_pass *p)
{
    for (int i = 1; i < p->n->size; i++) {
        int r = (p->n->rank + i) % p->n->size;
        get(p, (size_t)r * p->block, slot(p, r));
    }
    return hear_lacks(p);
}

static int take_alltoall(struct node_pass *p)
{
    for (int i = 1; i < p->n->size; i++) {
        int r = (p->n->rank + i) % p->n->size;
        get(p, (size_t)r * p->block, slot(p, r) + (size_t)p->n->rank * p->len);
    }
    return hear_lacks(p);
}

/* ---- combining ---- */

/* So much of the result stays in the nearest cache while the inputs pass. */
#define COMBINED_AT_ONCE ((size_t)8 << 10)

/* to = a op b, `len` bytes; to may be b. */
static int join(const struct node_pass *p, const char *a, const char *b, char *to, size_t len)
{
    struct type *t = p->a->rtype;
    return op_apply3(p->a->op, a - t->true_lb, b - t->true_lb, to - t->true_lb, (int64_t)len / t->size, t);
}

/* to = slot 0 op ... op last slot, `len` bytes from byte `off` of each, from the right: the same bits wherever it is
 * done. */
static int combine_part(const struct node_pass *p, size_t off, char *to, size_t len)
{
    int last = p->n->size - 1;
    int rc = join(p, slot(p, last - 1) + off, slot(p, last) + off, to, len);
    for (int r = last - 2; r >= 0 && !rc; r--) rc = join(p, slot(p, r) + off, to, to, len);
    return rc;
}

static int combine(const struct node_pass *p, size_t off, char *to)
{
    size_t size = (size_t)p->a->rtype->size, step = size < COMBINED_AT_ONCE ? COMBINED_AT_ONCE / size * size : size;
    int rc = 0;
    for (size_t at = 0; at < p->len && !rc; at += step)
        rc = combine_part(p, off + at, to + at, min_size(step, p->len - at));
    return rc;
}

static int take_reduce(struct node_pass *p) { return combine(p, 0, p->out.at + p->at); }

static int take_block(struct node_pass *p) { return combine(p, p->len * (size_t)p->n->rank, p->out.at + p->at); }

/* The last one to arrive: every slot gets the combination up to its rank. */
static int combine_prefixes(const struct node_pass *p)
{
    int rc = 0;
    for (int r = 1; r < p->n->size && !rc; r++) rc = join(p, slot(p, r - 1), slot(p, r), slot(p, r), p->len);
    return rc;
}

/* The result of all lies in the last slot then. */
static int leave_operand(struct node_pass *p)
{
    int rc = 0;
    fill_vector(p);
    if (!node_arrive(p->n, p->seq)) return 0;
    rc = p->a->kind == COLL_ALLREDUCE ? combine(p, 0, slot(p, p->n->size - 1)) : combine_prefixes(p);
    node_release(p->n, p->seq);
    return rc;
}

static int take_combined(struct node_pass *p)
{
    int from = p->a->kind == COLL_ALLREDUCE ? p->n->size - 1 : p->n->rank - (p->a->kind == COLL_EXSCAN);
    if (from >= 0) get(p, 0, slot(p, from));
    return 0;
}

/* ---- all of them ---- */

const struct node_wide_op node_wide_ops[COLL_KINDS] = {
    [COLL_BCAST] = {leave_bcast, take_bcast, NODE_WIDE_ROOTS},
    [COLL_SCATTER] = {leave_scatter, take_scatter, NODE_WIDE_OWN},
    [COLL_GATHER] = {leave_vector, take_gather, NODE_WIDE_ROOT_ALL},
    [COLL_ALLGATHER] = {leave_vector, take_gather, NODE_WIDE_ALL},
    [COLL_ALLTOALL] = {leave_blocks, take_alltoall, NODE_WIDE_ALL},
    [COLL_REDUCE] = {leave_vector, take_reduce, NODE_WIDE_ROOT_ALL},
    [COLL_ALLREDUCE] = {leave_operand, take_combined, NODE_WIDE_ALL},
    [COLL_SCAN] = {leave_operand, take_combined, NODE_WIDE_ALL},
    [COLL_EXSCAN] = {leave_operand, take_combined, NODE_WIDE_ALL},
    [COLL_REDUCE_SCATTER_BLOCK] = {leave_blocks, take_block, NODE_WIDE_ALL},
};
