/* tree.c - see tree.h. */
#include "coll/alg/alg.h"
#include "coll/alg/levels.h"

static void add_child(struct coll_tree *t, int size, int first, int vr, int span)
{
    int k = t->children++;
    t->child_vr[k] = vr;
    t->child[k] = (vr + first) % size;
    t->child_span[k] = span;
}

/* The lowest digit of vr that is not 0 leads up: without it vr is the parent's. Below it any digit leads down. */
void coll_tree_knomial(struct coll_tree *t, int rank, int size, int first, int radix)
{
    int vr = (rank - first + size) % size;
    int64_t low = 1;
    while (low < size && vr / low % radix == 0) low *= radix;
    *t = (struct coll_tree){.vr = vr, .parent = -1};
    if (vr) t->parent = (int)((vr - vr / low % radix * low + first) % size);
    t->span = (int)(low < size - vr ? low : size - vr);
    for (int64_t w = 1; w < low; w *= radix)
        for (int64_t c = vr + w; c < vr + radix * w && c < size; c += w)
            add_child(t, size, first, (int)c, (int)(w < size - c ? w : size - c));
}

void coll_tree_binomial(struct coll_tree *t, int rank, int size, int first)
{
    coll_tree_knomial(t, rank, size, first, 2);
}

/* The numbers from 1 are cut into n runs as equal as can be. */
void coll_tree_chains(struct coll_tree *t, int rank, int size, int first, int n)
{
    int vr = (rank - first + size) % size, others = size - 1;
    *t = (struct coll_tree){.vr = vr, .parent = -1, .span = size};
    if (n > others) n = others;
    for (int k = 0; k < n; k++) {
        int lo = 1 + (int)((int64_t)others * k / n), hi = 1 + (int)((int64_t)others * (k + 1) / n);
        if (!vr) add_child(t, size, first, lo, hi - lo);
        if (vr < lo || vr >= hi) continue;
        t->parent = vr == lo ? first : (rank - 1 + size) % size;
        t->span = hi - vr;
        if (vr + 1 < hi) add_child(t, size, first, vr + 1, hi - vr - 1);
    }
}

void coll_tree_chain(struct coll_tree *t, int rank, int size, int first) { coll_tree_chains(t, rank, size, first, 1); }

/* From the root down to me: the root of a span has one half of what follows it on either side. */
void coll_tree_binary(struct coll_tree *t, int rank, int size, int first)
{
    int vr = (rank - first + size) % size, at = 0, span = size;
    *t = (struct coll_tree){.vr = vr, .parent = -1};
    while (at != vr) {
        int left = span / 2, right = at + 1 + left;
        t->parent = (at + first) % size;
        span = vr < right ? left : span - 1 - left;
        at = vr < right ? at + 1 : right;
    }
    t->span = span;
    int left = span / 2;
    if (left) add_child(t, size, first, vr + 1, left);
    if (span - 1 > left) add_child(t, size, first, vr + 1 + left, span - 1 - left);
}

/* ---- the pair ------------------------------------------------------------------ */

/*
 * The in-order tree over places 1 to n: the power of two in a place is its height, so odd places are leaves; where a
 * place is beyond n its next descendant that is not stands in for it.
 */
static int place_above(int y, int n)
{
    if (y == coll_pow2_below(n)) return 0;
    do {
        int h = y & -y;
        y = y & (2 * h) ? y - h : y + h;
    } while (y > n);
    return y;
}

static int place_right(int y, int n)
{
    int c = (y & -y) / 2;
    while (c && y + c > n) c /= 2;
    return c ? y + c : 0;
}

/* The number at a place of the first tree and of the second. Place 0 is number 0. */
static int number_at(int y, int n, int kind) { return !y ? 0 : kind == 0 ? y : kind == 1 ? n + 1 - y : y + 1; }

static void add_places(struct coll_tree *t, int size, int first, int a, int b)
{
    if (a > b) {
        int x = a;
        a = b;
        b = x;
    }
    if (a) add_child(t, size, first, a, 0);
    if (b) add_child(t, size, first, b, 0);
}

/*
 * kind 0: places are numbers. 1: turned around, for an even n, so that odd numbers are inside. 2: moved on by one, for
 * an odd n: number 1 is left over and hangs below number 2, a leaf.
 */
static void in_order(struct coll_tree *t, int size, int first, int n, int kind)
{
    int y = kind == 0 ? t->vr : kind == 1 ? n + 1 - t->vr : t->vr - 1;
    if (kind == 2 && t->vr == 1) {
        t->parent = (2 + first) % size;
        return;
    }
    if (!t->vr) {
        add_child(t, size, first, number_at(coll_pow2_below(n), n, kind), 0);
        return;
    }
    int h = y & -y, left = h > 1 ? y - h / 2 : 0;
    t->parent = (number_at(place_above(y, n), n, kind) + first) % size;
    if (kind == 2 && y == 1) add_child(t, size, first, 1, 0);
    add_places(t, size, first, number_at(left, n, kind), number_at(place_right(y, n), n, kind));
}

void coll_tree_pair(struct coll_tree *t, int rank, int size, int first, bool second)
{
    int n = size - 1;
    *t = (struct coll_tree){.vr = (rank - first + size) % size, .parent = -1};
    if (!n) return;
    if (!second || n == 1)
        in_order(t, size, first, n, 0);
    else if (n % 2 == 0)
        in_order(t, size, first, n, 1);
    else
        in_order(t, size, first, n - 1, 2);
}

/* ---- levels -------------------------------------------------------------------- */

void coll_tree_levels(struct coll_tree *t, const struct coll_shape *s, const struct coll_given *v, int first)
{
    struct coll_levels x;
    struct coll_tree in;
    coll_levels_open(&x, s, v, first);
    *t = (struct coll_tree){.vr = x.top ? 1 : 0, .parent = -1};
    for (int level = x.last; level && level >= x.top; level--) {
        struct coll_level l = coll_level_look(&x, level);
        coll_tree_binomial(&in, l.me, l.n, l.home);
        if (level == x.top) t->parent = coll_level_leader(&x, level, in.parent);
        for (int k = 0; k < in.children; k++) t->child[t->children++] = coll_level_leader(&x, level, in.child[k]);
    }
    for (int k = 0; k < t->children; k++) t->child_vr[k] = t->vr + 1 + k;
}

int coll_tree_make(struct coll_tree t[2], enum coll_tree_kind kind, const struct coll_shape *s,
                   const struct coll_given *v, int first)
{
    switch (kind) {
    case TREE_BINOMIAL:
        coll_tree_binomial(t, s->rank, s->size, first);
        return 1;
    case TREE_KNOMIAL:
        coll_tree_knomial(t, s->rank, s->size, first, coll_radix(s));
        return 1;
    case TREE_CHAIN:
        coll_tree_chain(t, s->rank, s->size, first);
        return 1;
    case TREE_CHAINS:
        coll_tree_chains(t, s->rank, s->size, first, coll_radix(s));
        return 1;
    case TREE_BINARY:
        coll_tree_binary(t, s->rank, s->size, first);
        return 1;
    case TREE_LEVELS:
        coll_tree_levels(t, s, v, first);
        return 1;
    case TREE_PAIR:
        break;
    }
    coll_tree_pair(&t[0], s->rank, s->size, first, false);
    coll_tree_pair(&t[1], s->rank, s->size, first, true);
    return 2;
}
