/*
 * wide_ops.c - the halves of the operations of wide.h, at one slice: what a rank leaves in its wide slot, and
 * what it makes of the others'.
 *
 * Where ranks share cores and all get a combination of all, or of all before them, the last one that arrives makes it
 * for everybody: it has just been switched in, and the others wait. With a core for each all combine at the same time.
 */
#include "base/err.h"
#include "coll/node/wide_in.h"
#include "copy/copy.h"

static char *slot(const struct node_pass *p, int rank)
{
    size_t i = (size_t)(p->seq % p->n->wide.sets) * (size_t)p->n->size + (size_t)rank;
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
    size_t n = p->a->kind == COLL_ALLGATHERV ? node_pass_len(p, p->n->rank) : p->len;
    if (p->in.at && n) copy_memory(slot(p, p->n->rank), p->in.at + p->at, n);
    say_lack(p, p->n->rank);
}

/* The own slot, which others wait for. */
static void signal_own(struct node_pass *p)
{
    node_signal(p->n, p->seq, p->n->rank);
    node_announce(p->n);
}

static int leave_vector(struct node_pass *p)
{
    fill_vector(p);
    node_contribute(p->n, p->seq);
    return 0;
}

/* The root has nothing to leave, but counts. */
static int leave_gather(struct node_pass *p)
{
    if (!node_pass_root(p)) return leave_vector(p);
    if (p->n->counted) node_contribute(p->n, p->seq);
    return 0;
}

static int leave_blocks(struct node_pass *p)
{
    char *mine = slot(p, p->n->rank);
    for (int r = 0; r < p->n->size && p->in.at; r++) {
        if (r == p->n->rank && !node_pass_in_place(p)) continue;
        size_t n = node_pass_len(p, r);
        if (n) copy_memory(mine + (size_t)r * p->len, p->in.at + node_pass_start(p, r) + p->at, n);
    }
    say_lack(p, p->n->rank);
    node_contribute(p->n, p->seq);
    return 0;
}

static int leave_bcast(struct node_pass *p)
{
    if (!node_pass_root(p)) return 0;
    fill_vector(p);
    signal_own(p);
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

/* Pieces of what may go past the caches. */
#define STREAMED_LEAST ((size_t)16 << 10)

/* What goes through the caches that ranks share: of one to all of them, what all ranks get in all. */
static size_t whole_of(const struct node_pass *p)
{
    size_t ranks = (size_t)p->n->size;
    enum coll_kind k = p->a->kind;
    bool all_get_all = k == COLL_ALLGATHER || k == COLL_ALLGATHERV || k == COLL_ALLTOALL;
    if (p->len < STREAMED_LEAST) return p->len;
    return all_get_all ? p->block * ranks * ranks : p->block;
}

static void get(struct node_pass *p, size_t at, const char *from, size_t n)
{
    if (p->out.at && n) copy_part(p->out.at + at + p->at, from, n, max_size(n, whole_of(p)));
}

static int take_bcast(struct node_pass *p)
{
    get(p, 0, slot(p, p->a->root), p->len);
    return hear_lack(p, p->a->root, p->a->root);
}

static int take_scatter(struct node_pass *p)
{
    get(p, 0, slot(p, p->n->rank), p->len);
    return hear_lack(p, p->n->rank, p->a->root);
}

/* Beginning behind the own one, so that not all read the same at the same time. The own block is there already. */
static int take_gather(struct node_pass *p)
{
    for (int i = 1; i < p->n->size; i++) {
        int r = (p->n->rank + i) % p->n->size;
        get(p, node_pass_start(p, r), slot(p, r), node_pass_len(p, r));
    }
    return hear_lacks(p);
}

static int take_alltoall(struct node_pass *p)
{
    for (int i = 1; i < p->n->size; i++) {
        int r = (p->n->rank + i) % p->n->size;
        get(p, (size_t)r * p->block, slot(p, r) + (size_t)p->n->rank * p->len, p->len);
    }
    return hear_lacks(p);
}

/* ---- combining ---- */

/* So much of the result stays in the nearest cache while the inputs pass. */
#define COMBINED_AT_ONCE ((size_t)8 << 10)

/* Does each rank get another block of the result? */
static bool has_results(enum coll_kind k) { return k == COLL_REDUCE_SCATTER_BLOCK || k == COLL_REDUCE_SCATTER; }

/* What a rank gives of this slice, for this rank, from byte x on: in its slot; the own one is still where it was, but
 * in place, where the result may overwrite it. */
static const char *operand(const struct node_pass *p, int rank, size_t x)
{
    bool blocks = has_results(p->a->kind);
    int me = p->n->rank;
    if (rank != me || node_pass_in_place(p)) return slot(p, rank) + (blocks ? (size_t)me * p->len : 0) + x;
    return p->in.at + (blocks ? node_pass_start(p, me) : 0) + p->at + x;
}

/* to = a op b, `len` bytes; to may be b. */
static int join(const struct node_pass *p, const char *a, const char *b, char *to, size_t len)
{
    struct type *t = p->a->rtype;
    return op_apply3(p->a->op, a - t->true_lb, b - t->true_lb, to - t->true_lb, (int64_t)len / t->size, t);
}

/* to = what rank 0 gives op ... op what rank `last` gives, `len` bytes from byte x on. */
static int combine_part(const struct node_pass *p, int last, size_t x, char *to, size_t len)
{
    if (!last) {
        copy_memory(to, operand(p, 0, x), len);
        return 0;
    }
    int rc = join(p, operand(p, last - 1, x), operand(p, last, x), to, len);
    for (int r = last - 2; r >= 0 && !rc; r--) rc = join(p, operand(p, r, x), to, to, len);
    return rc;
}

/* From the right, so the same bits wherever it is done. */
static int combine(const struct node_pass *p, int last, char *to)
{
    size_t size = (size_t)p->a->rtype->size, step = size < COMBINED_AT_ONCE ? COMBINED_AT_ONCE / size * size : size;
    size_t len = has_results(p->a->kind) ? node_pass_len(p, p->n->rank) : p->len;
    int rc = 0;
    for (size_t x = 0; x < len && !rc; x += step) rc = combine_part(p, last, x, to + x, min_size(step, len - x));
    return rc;
}

static int take_combination(struct node_pass *p) { return combine(p, p->n->size - 1, p->out.at + p->at); }

/* Does another rank wait for what this one gives? */
static bool is_wanted(const struct node_pass *p)
{
    switch (p->a->kind) {
    case COLL_REDUCE:
        return !node_pass_root(p);
    case COLL_SCAN:
    case COLL_EXSCAN:
        return p->n->rank < p->n->size - 1;
    default:
        return true;
    }
}

static int leave_operand(struct node_pass *p)
{
    bool wanted = is_wanted(p);
    if (wanted || node_pass_in_place(p)) fill_vector(p);
    if (p->n->counted)
        node_contribute(p->n, p->seq);
    else if (wanted)
        signal_own(p);
    return 0;
}

/* ---- by the last one, where ranks share cores ---- */

/* Every slot gets the combination up to its rank. */
static int combine_prefixes(const struct node_pass *p)
{
    int rc = 0;
    for (int r = 1; r < p->n->size && !rc; r++) rc = join(p, slot(p, r - 1), slot(p, r), slot(p, r), p->len);
    return rc;
}

/* The last slot gets the combination of all. */
static int leave_for_all(struct node_pass *p)
{
    if (!p->n->counted) return leave_operand(p);
    fill_vector(p);
    if (!node_arrive(p->n, p->seq)) return 0;
    int last = p->n->size - 1;
    int rc = p->a->kind == COLL_ALLREDUCE ? combine(p, last, slot(p, last)) : combine_prefixes(p);
    node_release(p->n, p->seq);
    return rc;
}

static int take_allreduce(struct node_pass *p)
{
    if (!p->n->counted) return take_combination(p);
    get(p, 0, slot(p, p->n->size - 1), p->len);
    return 0;
}

static int take_scan(struct node_pass *p)
{
    int last = p->n->rank - (p->a->kind == COLL_EXSCAN);
    if (last < 0) return 0;
    if (!p->n->counted) return combine(p, last, p->out.at + p->at);
    get(p, 0, slot(p, last), p->len);
    return 0;
}

/* ---- all of them ---- */

const struct node_wide_op node_wide_ops[COLL_KINDS] = {
    [COLL_BCAST] = {leave_bcast, take_bcast, NODE_WIDE_ROOTS},
    [COLL_SCATTER] = {leave_scatter, take_scatter, NODE_WIDE_OWN},
    [COLL_GATHER] = {leave_gather, take_gather, NODE_WIDE_ROOT_ALL},
    [COLL_ALLGATHER] = {leave_vector, take_gather, NODE_WIDE_ALL},
    [COLL_ALLGATHERV] = {leave_vector, take_gather, NODE_WIDE_ALL},
    [COLL_ALLTOALL] = {leave_blocks, take_alltoall, NODE_WIDE_ALL},
    [COLL_REDUCE] = {leave_operand, take_combination, NODE_WIDE_ROOT_ALL},
    [COLL_ALLREDUCE] = {leave_for_all, take_allreduce, NODE_WIDE_ALL},
    [COLL_SCAN] = {leave_for_all, take_scan, NODE_WIDE_LOWER},
    [COLL_EXSCAN] = {leave_for_all, take_scan, NODE_WIDE_LOWER},
    [COLL_REDUCE_SCATTER] = {leave_blocks, take_combination, NODE_WIDE_ALL},
    [COLL_REDUCE_SCATTER_BLOCK] = {leave_blocks, take_combination, NODE_WIDE_ALL},
};
