/*
 * cursor.c - the walk over a layout that packs, unpacks and lists memory.
 *
 * One walk serves all three: it descends from the packed position to the leaf it
 * lies in, hands whole blocks to the sink in bulk and cut blocks as single runs,
 * and ends when the sink has no room left. Descending again at the next call is
 * cheaper than keeping a stack, and leaves nothing to go stale.
 */
#include "type/cursor.h"
#include "type/layout.h"
#include "type/strided.h"

/* Where the walk delivers. The functions get runs or whole blocks that fit into walk.left and account for them. */
struct walk {
    const struct sink *sink;
    size_t left;       /* bytes still wanted; set to 0 to end the walk */
    char *packed;      /* pack, unpack */
    struct iovec *iov; /* list: the entry being filled is iov[n - 1] */
    int n, room;
    size_t listed; /* list: bytes delivered */
};

struct sink {
    void (*run)(struct walk *, char *at, size_t len);
    void (*grid)(struct walk *, char *at, const struct grid *);
    void (*scattered)(struct walk *, char *base, const struct scattered *);
    void (*pieces)(struct walk *, char *base, const struct pieces *);
};

/* ---- the walk: each function starts `skip` packed bytes into its part, false: ended ---- */

static bool walk_layout(struct walk *w, char *base, const struct layout *l, size_t skip);

/* The bytes of one run from `skip` on, as far as they are wanted. */
static bool walk_run(struct walk *w, char *at, size_t len, size_t skip)
{
    size_t n = min_size(len - skip, w->left);
    w->sink->run(w, at + skip, n);
    return w->left != 0;
}

static bool walk_strided(struct walk *w, char *at, int64_t n, size_t block, int64_t stride, size_t skip)
{
    int64_t i = 0;
    if (skip) {
        i = (int64_t)(skip / block);
        skip %= block;
        if (skip && !walk_run(w, at + i++ * stride, block, skip)) return false;
    }
    int64_t fit = (int64_t)min_size(w->left / block, (size_t)(n - i));
    if (fit) w->sink->grid(w, at + i * stride, &(struct grid){block, fit, stride, 1, 0});
    i += fit;
    return w->left && (i == n || walk_run(w, at + i * stride, block, 0));
}

static bool walk_blocks(struct walk *w, char *base, const struct layout *l, size_t skip)
{
    size_t block = (size_t)l->block;
    int64_t i = (int64_t)(skip / block);
    skip %= block;
    if (skip && !walk_run(w, base + l->offs[i++], block, skip)) return false;
    int64_t fit = (int64_t)min_size(w->left / block, (size_t)(l->n - i));
    if (fit) w->sink->scattered(w, base, &(struct scattered){block, l->offs + i, fit, 1, 0});
    i += fit;
    return w->left && (i == l->n || walk_run(w, base + l->offs[i], block, 0));
}

/* The last piece of [from, n) that starts at or before packed position `at`. */
static int64_t piece_at(const struct layout_piece *p, int64_t from, int64_t n, size_t at)
{
    while (n - from > 1) {
        int64_t mid = from + (n - from) / 2;
        if ((size_t)p[mid].at <= at)
            from = mid;
        else
            n = mid;
    }
    return from;
}

static bool walk_pieces(struct walk *w, char *base, const struct layout *l, size_t skip)
{
    const struct layout_piece *p = l->pieces;
    int64_t i = skip ? piece_at(p, 0, l->n, skip) : 0, last = l->n;
    skip -= (size_t)p[i].at;
    if (skip) {
        if (!walk_run(w, base + p[i].off, (size_t)(p[i + 1].at - p[i].at), skip)) return false;
        i++;
    }
    bool cut = w->left < (size_t)(l->size - p[i].at);
    if (cut) last = piece_at(p, i, l->n, (size_t)p[i].at + w->left); /* the piece in which the room ends */
    if (last > i) w->sink->pieces(w, base, &(struct pieces){p + i, last - i, 1, 0});
    if (!cut) return w->left != 0;
    return w->left && walk_run(w, base + p[last].off, (size_t)(p[last + 1].at - p[last].at), 0);
}

/* Whole leaves, `times` times, stride apart. False: not a leaf that the sinks repeat. */
static bool repeat_leaf(struct walk *w, char *at, int64_t times, int64_t stride, const struct layout *body)
{
    switch (body->kind) {
    case LAYOUT_VECTOR:
        w->sink->grid(w, at + body->off, &(struct grid){(size_t)body->block, body->n, body->stride, times, stride});
        return true;
    case LAYOUT_BLOCKS:
        w->sink->scattered(w, at, &(struct scattered){(size_t)body->block, body->offs, body->n, times, stride});
        return true;
    case LAYOUT_LIST:
        w->sink->pieces(w, at, &(struct pieces){body->pieces, body->n, times, stride});
        return true;
    default:
        return false;
    }
}

static bool walk_loop(struct walk *w, char *at, int64_t n, int64_t stride, const struct layout *body, size_t skip)
{
    if (body->kind == LAYOUT_RUN) return walk_strided(w, at + body->off, n, (size_t)body->block, stride, skip);
    int64_t i = 0;
    if (skip) {
        i = (int64_t)(skip / (size_t)body->size);
        skip %= (size_t)body->size;
    }
    if (skip && !walk_layout(w, at + i++ * stride, body, skip)) return false;
    int64_t fit = (int64_t)min_size(w->left / (size_t)body->size, (size_t)(n - i));
    if (fit && repeat_leaf(w, at + i * stride, fit, stride, body)) {
        i += fit;
        if (!w->left) return false;
    }
    for (; i < n; i++)
        if (!walk_layout(w, at + i * stride, body, 0)) return false;
    return true;
}

static bool walk_loops(struct walk *w, char *base, const struct layout *l, size_t skip)
{
    int64_t i = 0, behind = l->n;
    while (skip && behind - i > 1) { /* the last loop that starts at or before skip */
        int64_t mid = i + (behind - i) / 2;
        if ((size_t)l->loops[mid].at <= skip)
            i = mid;
        else
            behind = mid;
    }
    skip -= (size_t)l->loops[i].at;
    for (; i < l->n; i++, skip = 0) {
        const struct layout_loop *e = &l->loops[i];
        if (!walk_loop(w, base + e->off, e->n, e->stride, e->body, skip)) return false;
    }
    return true;
}

static bool walk_layout(struct walk *w, char *base, const struct layout *l, size_t skip)
{
    switch (l->kind) {
    case LAYOUT_RUN:
        return walk_run(w, base + l->off, (size_t)l->block, skip);
    case LAYOUT_VECTOR:
        return walk_strided(w, base + l->off, l->n, (size_t)l->block, l->stride, skip);
    case LAYOUT_BLOCKS:
        return walk_blocks(w, base, l, skip);
    case LAYOUT_LIST:
        return walk_pieces(w, base, l, skip);
    default:
        return walk_loops(w, base, l, skip);
    }
}

/* From the cursor's position on; w->left is at most what is left of the data, and not 0. */
static void walk(struct walk *w, const struct type_cursor *c)
{
    walk_loop(w, c->buf, c->count, c->type->extent, c->type->layout, c->pos);
}

/* ---- pack ---- */

static void packed_to(struct walk *w, const char *end)
{
    w->left -= (size_t)(end - w->packed);
    w->packed += end - w->packed;
}

static void pack_run(struct walk *w, char *at, size_t len)
{
    memcpy(w->packed, at, len);
    packed_to(w, w->packed + len);
}

static void pack_grid(struct walk *w, char *at, const struct grid *g) { packed_to(w, grid_pack(w->packed, at, g)); }

static void pack_scattered(struct walk *w, char *base, const struct scattered *s)
{
    packed_to(w, scattered_pack(w->packed, base, s));
}

static void pack_pieces(struct walk *w, char *base, const struct pieces *p)
{
    packed_to(w, pieces_pack(w->packed, base, p));
}

static const struct sink pack_sink = {pack_run, pack_grid, pack_scattered, pack_pieces};

size_t type_pack_general(struct type_cursor *c, void *out, size_t max)
{
    size_t n = min_size(max, c->total - c->pos);
    struct walk w = {.sink = &pack_sink, .left = n, .packed = out};
    if (!n) return 0;
    walk(&w, c);
    c->pos += n;
    return n;
}

/* ---- unpack ---- */

static void unpack_run(struct walk *w, char *at, size_t len)
{
    memcpy(at, w->packed, len);
    packed_to(w, w->packed + len);
}

static void unpack_grid(struct walk *w, char *at, const struct grid *g) { packed_to(w, grid_unpack(w->packed, at, g)); }

static void unpack_scattered(struct walk *w, char *base, const struct scattered *s)
{
    packed_to(w, scattered_unpack(w->packed, base, s));
}

static void unpack_pieces(struct walk *w, char *base, const struct pieces *p)
{
    packed_to(w, pieces_unpack(w->packed, base, p));
}

static const struct sink unpack_sink = {unpack_run, unpack_grid, unpack_scattered, unpack_pieces};

size_t type_unpack_general(struct type_cursor *c, const void *in, size_t n)
{
    n = min_size(n, c->total - c->pos);
    struct walk w = {.sink = &unpack_sink, .left = n, .packed = (char *)(uintptr_t)in};
    if (!n) return 0;
    walk(&w, c);
    c->pos += n;
    return n;
}

/* ---- list ---- */

static void list_run(struct walk *w, char *at, size_t len)
{
    struct iovec *last = w->n ? &w->iov[w->n - 1] : NULL;
    if (last && (char *)last->iov_base + last->iov_len == at) {
        last->iov_len += len;
    } else if (w->n == w->room) {
        w->left = 0;
        return;
    } else {
        w->iov[w->n++] = (struct iovec){at, len};
    }
    w->left -= len;
    w->listed += len;
}

static void list_grid(struct walk *w, char *at, const struct grid *g)
{
    for (int64_t k = 0; k < g->rows && w->left; k++, at += g->row_step)
        for (int64_t i = 0; i < g->n && w->left; i++) list_run(w, at + i * g->step, g->block);
}

static void list_scattered(struct walk *w, char *base, const struct scattered *s)
{
    for (int64_t k = 0; k < s->times && w->left; k++, base += s->stride)
        for (int64_t i = 0; i < s->n && w->left; i++) list_run(w, base + s->offs[i], s->block);
}

static void list_pieces(struct walk *w, char *base, const struct pieces *s)
{
    const struct layout_piece *p = s->p;
    for (int64_t k = 0; k < s->times && w->left; k++, base += s->stride)
        for (int64_t i = 0; i < s->n && w->left; i++) list_run(w, base + p[i].off, (size_t)(p[i + 1].at - p[i].at));
}

static const struct sink list_sink = {list_run, list_grid, list_scattered, list_pieces};

size_t type_iov(struct type_cursor *c, struct iovec *iov, int *n_inout, size_t max_bytes)
{
    struct walk w = {.sink = &list_sink, .left = min_size(max_bytes, c->total - c->pos), .iov = iov, .room = *n_inout};
    if (w.left && w.room > 0) {
        if (c->type->contig)
            list_run(&w, c->buf + c->pos, w.left);
        else
            walk(&w, c);
    }
    *n_inout = w.n;
    c->pos += w.listed;
    return w.listed;
}

/* ---- copies between user buffers ---- */

#define PIECES 64 /* iov entries on the stack */

/* Up to so many bytes in one piece are copied without further ado. */
#define SHORT_COPY 4096

static bool is_short(int64_t count, const struct type *t) { return t->contig && count * t->size <= SHORT_COPY; }

static size_t copy_short(void *dst, int64_t room, const void *src, int64_t bytes)
{
    size_t n = (size_t)(bytes < room ? bytes : room);
    if (n) memcpy(dst, src, n);
    return n;
}

size_t type_copy_across(void *dst, int64_t dcount, const struct type *dtype, const void *src, int64_t scount,
                        const struct type *stype)
{
    struct type_cursor to, from;
    size_t done = 0, room;
    if (likely(is_short(dcount, dtype) && is_short(scount, stype)))
        return copy_short((char *)dst + dtype->true_lb, dcount * dtype->size, (const char *)src + stype->true_lb,
                          scount * stype->size);
    type_cursor_init(&to, dtype, dcount, dst);
    type_cursor_init(&from, stype, scount, src);
    while ((room = type_cursor_left(&to)) > 0) {
        struct iovec iov[PIECES];
        int n = PIECES;
        done += type_iov(&from, iov, &n, room);
        if (n == 0) break;
        for (int i = 0; i < n; i++) type_unpack(&to, iov[i].iov_base, iov[i].iov_len);
    }
    return done;
}

void type_copy(void *dst, const void *src, int64_t count, const struct type *t)
{
    type_copy_across(dst, count, t, src, count, t);
}
