/*
 * external.c - the walk that goes with a conversion: which kind of number comes next.
 *
 * The machine's form is packed and unpacked in slices through a buffer on the stack
 * (not at all when it is contiguous). Beside it the tree of parts is walked, which says
 * how many numbers of which kind follow; each run goes through one kernel.
 */
#include "type/external.h"
#include "base/err.h"
#include "type/external_kernels.h"

#include <float.h>
#include <wchar.h>

#define SLICE 4096       /* bytes of the machine's form that are converted at a time: they stay in the nearest cache */
#define NUMBER_MAX 16    /* bytes of the largest number, in either form */
#define DEPTH_MAX 10000  /* structs within structs; the walk recurses */

/* ---- basic types ---- */

static enum external_form swap_of(int64_t size)
{
    return size == 1 ? FORM_SAME : size == 2 ? FORM_SWAP2 : size == 4 ? FORM_SWAP4 : size == 8 ? FORM_SWAP8 : FORM_SWAP16;
}

/* How its numbers are converted. Complex types are pairs of numbers. */
static enum external_form form_of(const struct type *basic)
{
    if (basic->self == MPI_LONG && sizeof(long) == 8) return FORM_LONG;
    if (basic->self == MPI_UNSIGNED_LONG && sizeof(long) == 8) return FORM_ULONG;
    if (basic->self == MPI_WCHAR) return sizeof(wchar_t) == 4 ? FORM_WCHAR : swap_of(basic->size);
    switch (basic->kind) {
    case KIND_FL:
    case KIND_CL: return LDBL_MANT_DIG == 64 ? FORM_X87 : FORM_SWAP16;
    case KIND_C16: return FORM_SWAP2;
    case KIND_C32: return FORM_SWAP4;
    case KIND_C64: return FORM_SWAP8;
    case KIND_C128: return FORM_SWAP16;
    case KIND_NONE: return FORM_SAME; /* characters, MPI_PACKED */
    default: return swap_of(basic->size);
    }
}

static_assert(sizeof(long double) == 16, "a long double of 8 bytes would need a form of its own");

static const struct {
    uint8_t native, external; /* bytes of a number */
} widths[FORM_COUNT] = {
    [FORM_SAME] = {1, 1},  [FORM_SWAP2] = {2, 2}, [FORM_SWAP4] = {4, 4},   [FORM_SWAP8] = {8, 8}, [FORM_SWAP16] = {16, 16},
    [FORM_LONG] = {8, 4}, [FORM_ULONG] = {8, 4}, [FORM_WCHAR] = {4, 2}, [FORM_X87] = {16, 16},
};

int64_t external_basic_size(const struct type *basic)
{
    if (basic->size <= 0) return basic->size;
    enum external_form f = form_of(basic);
    return basic->size / widths[f].native * widths[f].external;
}

static const struct external_kernels *kernels(void) { return external_avx2_usable() ? &external_avx2 : &external_plain; }

/* ---- the walk ---- */

/* One slice on its way. The external side may end within a number, which is then not touched. */
struct slice {
    external_kernel *const *convert;
    bool packing;
    char *native;
    size_t native_left;
    char *external;
    size_t external_left;
    size_t most; /* numbers to convert */
    size_t next; /* external bytes of the number that did not fit */
    int error;
};

/* The n next numbers, as many as fit; false: the slice has ended. */
static bool convert_run(struct slice *s, const struct type *basic, size_t n)
{
    enum external_form f = form_of(basic);
    size_t in = widths[f].native, ex = widths[f].external;
    size_t fit = min_size(min_size(s->native_left / in, s->external_left / ex), min_size(n, s->most));
    bool ok = s->packing ? s->convert[f](s->native, s->external, fit) : s->convert[f](s->external, s->native, fit);
    s->native += fit * in;
    s->native_left -= fit * in;
    s->external += fit * ex;
    s->external_left -= fit * ex;
    s->most -= fit;
    s->next = ex;
    if (!ok)
        s->error = err_set(TERN_ERR_CONVERSION, "a value of type %s does not fit into the %zu bytes that external32 has for it",
                           type_name(basic), ex);
    return ok && fit == n && s->most;
}

static bool is_leaf(const struct type *basic) { return basic && !basic->nparts; }

static bool walk(struct slice *s, const struct type *t, int64_t count, int64_t skip, int depth);

/* The parts of one element. */
static bool walk_parts(struct slice *s, const struct type *t, int64_t skip, int depth)
{
    for (const struct type_part *p = t->parts, *end = p + t->nparts; p < end; p++) {
        int64_t bytes = p->n * p->type->size;
        if (skip >= bytes) {
            skip -= bytes;
            continue;
        }
        if (!walk(s, p->type, p->n, skip, depth)) return false;
        skip = 0;
    }
    return true;
}

/* The numbers of (count x t) from the skip-th byte of the machine's packed form on; false: the slice has ended. */
static bool walk(struct slice *s, const struct type *t, int64_t count, int64_t skip, int depth)
{
    if (count == 0 || t->size == 0) return true;
    while (t->nparts == 1) { /* a chain is followed without recursion */
        count *= t->parts[0].n;
        t = t->parts[0].type;
    }
    if (is_leaf(t->basic))
        return convert_run(s, t->basic, (size_t)(count * t->size - skip) / widths[form_of(t->basic)].native);
    if (depth == DEPTH_MAX) {
        s->error = err_set(TERN_ERR_ARG, "the datatype is nested more than %d deep", DEPTH_MAX);
        return false;
    }
    int64_t i = skip / t->size;
    for (skip %= t->size; i < count; i++, skip = 0)
        if (!walk_parts(s, t, skip, depth + 1)) return false;
    return true;
}

/* Converts the whole numbers of the slice that follow the cursor's position. */
static void walk_slice(struct slice *s, const struct external_cursor *c)
{
    walk(s, c->native.type, c->native.count, (int64_t)c->native.pos, 0);
}

int external_open(struct external_cursor *c, const struct type *t, int64_t count, const void *buf)
{
    int64_t total, native;
    if (__builtin_mul_overflow(count, t->external, &total) || __builtin_mul_overflow(count, t->size, &native))
        return err_set(TERN_ERR_COUNT, "%lld elements are more data than can be addressed", (long long)count);
    *c = (struct external_cursor){.total = (size_t)total};
    type_cursor_init(&c->native, t, count, buf);
    return 0;
}

/* ---- pack ---- */

/* At most `most` of the next numbers, those that fit whole into `max` bytes. Moves the native cursor behind them. */
static int pack_numbers(struct external_cursor *c, char *out, size_t max, size_t most, struct slice *s)
{
    char buffer[SLICE];
    struct type_cursor ahead = c->native;
    size_t left = type_cursor_left(&ahead), enough = 2 * min_size(max, SLICE / 2); /* no number shrinks to less than half */
    *s = (struct slice){.convert = kernels()->pack, .packing = true, .external = out, .external_left = max, .most = most};
    s->native = ahead.type->contig ? ahead.buf + ahead.pos : buffer;
    s->native_left = ahead.type->contig ? left : type_pack(&ahead, buffer, min_size(left, enough));
    char *from = s->native;
    walk_slice(s, c);
    c->native.pos += (size_t)(s->native - from);
    return s->error;
}

/* A piece of a number of which c->cut bytes have been given out, or which does not fit whole. */
static int pack_cut(struct external_cursor *c, char *out, size_t max, size_t *n_p)
{
    char number[NUMBER_MAX];
    struct external_cursor behind = *c;
    struct slice s;
    int rc = pack_numbers(&behind, number, sizeof number, 1, &s);
    if (rc) return rc;
    size_t size = (size_t)(s.external - number);
    *n_p = min_size(size - c->cut, max);
    memcpy(out, number + c->cut, *n_p);
    c->cut += *n_p;
    if (c->cut < size) return 0;
    c->cut = 0;
    c->native.pos = behind.native.pos;
    return 0;
}

int external_pack(struct external_cursor *c, void *to, size_t max, size_t *n_p)
{
    char *out = to;
    size_t left = *n_p = min_size(max, c->total - c->pos);
    while (left) {
        struct slice s;
        size_t n = 0;
        int rc = c->cut ? 0 : pack_numbers(c, out, left, SIZE_MAX, &s);
        if (!c->cut) n = (size_t)(s.external - out);
        if (!rc && !n) rc = pack_cut(c, out, left, &n);
        if (rc) return rc;
        out += n;
        left -= n;
        c->pos += n;
    }
    return 0;
}

/* ---- unpack ---- */

/* The whole numbers in the `max` bytes at `in`. Moves the native cursor behind them. */
static int unpack_numbers(struct external_cursor *c, const char *in, size_t max, struct slice *s)
{
    char buffer[SLICE];
    size_t left = type_cursor_left(&c->native);
    bool contig = c->native.type->contig;
    char *to = contig ? c->native.buf + c->native.pos : buffer;
    *s = (struct slice){.convert = kernels()->unpack, .external = (char *)(uintptr_t)in, .external_left = max, .most = SIZE_MAX};
    s->native = to;
    s->native_left = contig ? left : min_size(left, SLICE);
    walk_slice(s, c);
    size_t n = (size_t)(s->native - to);
    if (contig) c->native.pos += n;
    else type_unpack(&c->native, buffer, n);
    return s->error;
}

/* Bytes for a number that does not come in one piece: kept until it is whole. `size` is its own. */
static int unpack_cut(struct external_cursor *c, const char *in, size_t max, size_t size, size_t *n_p)
{
    struct slice s;
    *n_p = min_size(size - c->cut, max);
    memcpy(c->number + c->cut, in, *n_p);
    c->cut += *n_p;
    if (c->cut < size) return 0;
    c->cut = 0;
    return unpack_numbers(c, (const char *)c->number, size, &s);
}

int external_unpack(struct external_cursor *c, const void *from, size_t max, size_t *n_p)
{
    const char *in = from;
    size_t left = *n_p = min_size(max, c->total - c->pos);
    while (left) {
        struct slice s;
        int rc = unpack_numbers(c, in, c->cut ? 0 : left, &s); /* when a number is cut, this only tells its size */
        size_t n = (size_t)(s.external - in);
        if (!rc && !n) rc = unpack_cut(c, in, left, s.next, &n);
        if (rc) return rc;
        in += n;
        left -= n;
        c->pos += n;
    }
    return 0;
}
