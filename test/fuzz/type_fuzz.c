/*
 * type_fuzz.c - random trees of all type constructors, eight deep, against the list of
 * (basic type, displacement) pairs that the standard defines a datatype to be.
 *
 * For each tree: bounds, packing and unpacking in pieces of any size, the list of
 * memory pieces, external32 in pieces, the elements in any number of bytes, signatures
 * of any beginning, and making the type again from its envelope.
 *
 * TERN_FUZZ_CASES   how many trees (10000)
 * TERN_FUZZ_SEED    the first tree's seed; tree i has seed + i, so that a failing one
 *                   is repeated by its own seed and one case
 */
#include "base/err.h"
#include "reference.h"
#include "type/cursor.h"
#include "type/envelope.h"
#include "type/external.h"
#include "type/signature.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <wchar.h>

#define DEPTH 8
#define ITEMS 200             /* basic elements of one tree */
#define SPAN ((int64_t)1 << 20) /* bytes of memory of one tree: what is larger is not tried */

static uint64_t seed;
static long failures;

static void failed(const char *rule, int line)
{
    failures++;
    printf("# seed %llu: %s (line %d): %s\n", (unsigned long long)seed, rule, line, err_words());
}
#define RULE(cond, words) ((cond) ? (void)0 : failed(words, __LINE__))

/* A tree, its model, and memory for it. Sizes are exact, so that a sanitizer sees what goes beyond. */
struct tree {
    struct type *t;
    struct ref r;
    int64_t count;
    size_t bytes, packed;
    char *mem, *buf, *expect;
};

static char *bytes_new(size_t n)
{
    char *p = malloc(n ? n : 1);
    if (!p) abort();
    return p;
}

static bool tree_open(struct tree *x)
{
    int64_t first, span;
    x->t = random_type((int)random_int(1, DEPTH), ITEMS, &x->r);
    if (random_int(0, 7) && type_commit(x->t)) abort();
    x->count = random_int(0, 3);
    span = type_span(x->t, x->count, &first);
    if (span > SPAN) {
        type_unref(x->t);
        ref_close(&x->r);
        return false;
    }
    x->bytes = (size_t)span;
    x->packed = (size_t)(x->count * x->t->size);
    x->mem = bytes_new(x->bytes);
    x->expect = bytes_new(x->packed);
    x->buf = (char *)((uintptr_t)x->mem - (uintptr_t)first);
    random_fill(x->mem, x->bytes);
    ref_pack(&x->r, x->count, x->buf, x->expect);
    return true;
}

static void tree_close(struct tree *x)
{
    type_unref(x->t);
    ref_close(&x->r);
    free(x->mem);
    free(x->expect);
}

/* Memory like x->mem with other contents; *buf is where the data's origin is in it. */
static char *memory_like(const struct tree *x, char **buf)
{
    char *m = bytes_new(x->bytes);
    random_fill(m, x->bytes);
    *buf = (char *)((uintptr_t)m + ((uintptr_t)x->buf - (uintptr_t)x->mem));
    return m;
}

static char *copy_of(const void *p, size_t n)
{
    char *m = bytes_new(n);
    memcpy(m, p, n);
    return m;
}

/* Mostly small pieces, sometimes all. */
static size_t piece(size_t total) { return (size_t)(random_u64() & 3 ? random_int(1, 40) : random_int(1, (int64_t)total + 1)); }

/* ---- the rules ---- */

static void bounds(const struct tree *x)
{
    int64_t lo, hi;
    ref_true(&x->r, &lo, &hi);
    RULE(x->t->size == ref_size(&x->r), "size");
    RULE(x->t->lb == x->r.lb && x->t->extent == ref_extent(&x->r), "lower bound and extent");
    RULE(x->t->true_lb == lo && x->t->true_extent == hi - lo, "true bounds");
    RULE(x->t->elements == x->r.n, "number of basic elements");
}

static void pack(const struct tree *x)
{
    struct type_cursor c;
    char *out = bytes_new(x->packed);
    type_cursor_init(&c, x->t, x->count, x->buf);
    for (size_t at = 0; at < x->packed;) at += type_pack(&c, out + at, min_size(piece(x->packed), x->packed - at));
    RULE(!memcmp(out, x->expect, x->packed), "pack in pieces");
    size_t at = (size_t)random_int(0, (int64_t)x->packed), n = min_size(piece(x->packed), x->packed - at);
    type_cursor_seek(&c, at);
    RULE(type_pack(&c, out, n) == n && !memcmp(out, x->expect + at, n), "pack from anywhere");
    free(out);
}

static void unpack(const struct tree *x)
{
    struct type_cursor c;
    char *buf, *mem = memory_like(x, &buf), *model = copy_of(mem, x->bytes), *in = bytes_new(x->packed);
    random_fill(in, x->packed);
    type_cursor_init(&c, x->t, x->count, buf);
    for (size_t at = 0; at < x->packed;) at += type_unpack(&c, in + at, min_size(piece(x->packed), x->packed - at));
    ref_unpack(&x->r, x->count, model + (buf - mem), in);
    RULE(!memcmp(mem, model, x->bytes), "unpack in pieces, and nothing but the data");
    free(mem);
    free(model);
    free(in);
}

static void list(const struct tree *x)
{
    struct type_cursor c;
    char *out = bytes_new(x->packed);
    size_t at = 0, got = 1;
    type_cursor_init(&c, x->t, x->count, x->buf);
    while (got) {
        struct iovec iov[9];
        int n = (int)random_int(1, 9);
        got = type_iov(&c, iov, &n, piece(x->packed));
        for (int i = 0; i < n && at + iov[i].iov_len <= x->packed; at += iov[i++].iov_len)
            memcpy(out + at, iov[i].iov_base, iov[i].iov_len);
    }
    RULE(at == x->packed && !memcmp(out, x->expect, at), "the pieces of memory in order");
    free(out);
}

/* ---- external32, from the items ---- */

static int64_t external_size(MPI_Datatype basic, int64_t size)
{
    return basic == MPI_LONG ? 4 : basic == MPI_WCHAR ? 2 : size;
}

/* Numbers of one item: complex ones are two. */
static int64_t number_size(const struct ref_item *it) { return it->basic == MPI_C_DOUBLE_COMPLEX ? 8 : it->size; }

/* Can the model tell? Its long doubles would be random bits. */
static bool external_known(const struct tree *x)
{
    for (int64_t i = 0; i < x->r.n; i++)
        if (x->r.items[i].basic == MPI_LONG_DOUBLE) return false;
    return true;
}

/* Puts values that have an external form where the model has long and wchar_t; overlaps may spoil them again. */
static void make_small(const struct tree *x)
{
    for (int64_t k = 0; k < x->count; k++)
        for (int64_t i = 0; i < x->r.n; i++) {
            char *at = x->buf + k * ref_extent(&x->r) + x->r.items[i].disp;
            if (x->r.items[i].basic == MPI_LONG) memcpy(at, &(int64_t){(int32_t)random_u64()}, 8);
            if (x->r.items[i].basic == MPI_WCHAR) memcpy(at, &(uint32_t){(uint16_t)random_u64()}, 4);
        }
}

/* The external form of the packed data; false if a value has none. */
static bool ref_external(const struct tree *x, const char *packed, char *out)
{
    bool fits = true;
    for (int64_t k = 0; k < x->count * x->r.n; k++) {
        const struct ref_item *it = &x->r.items[k % x->r.n];
        int64_t number = number_size(it), n = external_size(it->basic, number), v = 0;
        for (int64_t at = 0; at < it->size; at += number, packed += number) {
            for (int64_t b = 0; b < n; b++) *out++ = packed[n - 1 - b];
            memcpy(&v, packed, (size_t)min_size((size_t)number, 8));
            if (it->basic == MPI_LONG && v != (int32_t)v) fits = false;
            if (it->basic == MPI_WCHAR && (uint32_t)v > 0xffff) fits = false;
        }
    }
    return fits;
}

/* ... and back: signs are continued in what is longer here. */
static void ref_internal(const struct tree *x, const char *in, char *packed)
{
    for (int64_t k = 0; k < x->count * x->r.n; k++) {
        const struct ref_item *it = &x->r.items[k % x->r.n];
        int64_t number = number_size(it), n = external_size(it->basic, number);
        for (int64_t at = 0; at < it->size; at += number, in += n) {
            char fill = it->basic == MPI_LONG && in[0] & 0x80 ? -1 : 0;
            for (int64_t b = 0; b < number; b++) *packed++ = b < n ? in[n - 1 - b] : fill;
        }
    }
}

static void unpack_external(const struct tree *x, const char *in, size_t size)
{
    struct external_cursor c;
    char *buf, *mem = memory_like(x, &buf), *model = copy_of(mem, x->bytes), *packed = bytes_new(x->packed);
    size_t n = 0;
    ref_internal(x, in, packed);
    ref_unpack(&x->r, x->count, model + (buf - mem), packed);
    RULE(!external_open(&c, x->t, x->count, buf), "an external cursor for unpacking");
    for (size_t at = 0; at < size; at += n) RULE(!external_unpack(&c, in + at, min_size(piece(size), size - at), &n) && n, "external32 unpacks");
    RULE(!memcmp(mem, model, x->bytes), "external32 unpacked in pieces");
    free(mem);
    free(model);
    free(packed);
}

static void external(struct tree *x)
{
    struct external_cursor c;
    size_t size = 0, n = 0;
    if (!external_known(x)) return;
    if (random_int(0, 9)) make_small(x);
    ref_pack(&x->r, x->count, x->buf, x->expect);
    for (int64_t i = 0; i < x->r.n; i++)
        size += (size_t)(x->r.items[i].size / number_size(&x->r.items[i]) * external_size(x->r.items[i].basic, number_size(&x->r.items[i])));
    size *= (size_t)x->count;
    char *expect = bytes_new(size), *out = bytes_new(size);
    bool fits = ref_external(x, x->expect, expect);
    RULE(!external_open(&c, x->t, x->count, x->buf) && c.total == size, "external size");
    int rc = 0;
    for (size_t at = 0; at < size && !rc; at += n) rc = external_pack(&c, out + at, min_size(piece(size), size - at), &n);
    RULE(rc == (fits ? 0 : TERN_ERR_CONVERSION), "external32 packs what fits, and nothing else");
    if (!rc) RULE(!memcmp(out, expect, size), "external32 packed in pieces");
    if (fits) unpack_external(x, expect, size);
    free(expect);
    free(out);
}

/* ---- elements, signatures, envelopes ---- */

static void elements(const struct tree *x)
{
    size_t at = (size_t)random_int(0, (int64_t)x->packed);
    int64_t n = 0, bytes = 0;
    while (bytes < (int64_t)at) bytes += x->r.items[n++ % x->r.n].size;
    int64_t expect = bytes == (int64_t)at ? n : MPI_UNDEFINED;
    RULE(type_count_elements(x->t, (int64_t)at) == expect, "elements in some bytes");
    RULE(type_bytes_of_elements(x->t, n) == bytes, "bytes of some elements");
}

static void signatures(const struct tree *x)
{
    struct signature expect = SIGNATURE_EMPTY, all = type_signature(x->t, x->count);
    int64_t total = x->count * x->r.n, n = random_int(0, total);
    for (int64_t i = 0; i < n; i++) expect = signature_join(expect, signature_basic(x->r.items[i % x->r.n].basic));
    RULE(signature_of_first(x->t, n).hash == expect.hash, "signature of the first elements");
    RULE(signature_of_first(x->t, total).hash == all.hash, "signature of all elements");
}

/* Making it again from what the envelope says gives the same data. */
static void envelope(const struct tree *x)
{
    struct type_envelope e;
    type_get_envelope(x->t, &e);
    if (e.combiner == MPI_COMBINER_NAMED) return;
    int *ints = calloc((size_t)e.ints + 1, sizeof *ints);
    MPI_Aint *addresses = calloc((size_t)e.addresses + 1, sizeof *addresses);
    MPI_Datatype *types = calloc((size_t)e.types + 1, sizeof(MPI_Datatype));
    struct type *again = NULL;
    if (!ints || !addresses || !types) abort();
    RULE(!type_contents(x->t, ints, addresses, NULL, types), "contents");
    if (e.combiner == MPI_COMBINER_RESIZED) {
        RULE(!type_resized(type_of(types[0]), addresses[0], addresses[1], &again), "resized again");
    } else if (e.combiner == MPI_COMBINER_HVECTOR || e.combiner == MPI_COMBINER_VECTOR) {
        bool wide = e.combiner == MPI_COMBINER_HVECTOR;
        RULE(!type_vector(ints[0], ints[1], wide ? addresses[0] : ints[2], wide ? TYPE_BYTES : TYPE_ELEMENTS, type_of(types[0]), &again), "vector again");
    } else if (e.combiner == MPI_COMBINER_DARRAY) {
        int64_t sizes[2] = {ints[3], ints[4]};
        RULE(!type_darray(ints[0], ints[1], ints[2], sizes, ints + 5, ints + 7, ints + 9, ints[11], type_of(types[0]), &again), "darray again");
    }
    if (again) {
        char *out = bytes_new(x->packed);
        struct type_cursor c;
        type_cursor_init(&c, again, x->count, x->buf);
        RULE(type_pack(&c, out, x->packed) == x->packed && !memcmp(out, x->expect, x->packed), "the type made again from its envelope");
        RULE(again->extent == x->t->extent && again->lb == x->t->lb, "bounds of the type made again");
        type_unref(again);
        free(out);
    }
    for (int64_t i = 0; i < e.types; i++) type_unref(type_of(types[i]));
    free(ints);
    free(addresses);
    free(types);
}

static bool try_one(void)
{
    struct tree x;
    random_seed(seed);
    if (!tree_open(&x)) return false;
    bounds(&x);
    pack(&x);
    unpack(&x);
    list(&x);
    elements(&x);
    signatures(&x);
    envelope(&x);
    external(&x);
    tree_close(&x);
    return true;
}

static uint64_t number_from(const char *name, uint64_t dflt)
{
    const char *word = getenv(name);
    return word ? strtoull(word, NULL, 0) : dflt;
}

int main(void)
{
    uint64_t cases = number_from("TERN_FUZZ_CASES", 10000), tried = 0;
    uint64_t first = number_from("TERN_FUZZ_SEED", (uint64_t)time(NULL) * 1000003u);
    printf("1..1\n# TERN_FUZZ_SEED=%llu TERN_FUZZ_CASES=%llu\n", (unsigned long long)first, (unsigned long long)cases);
    if (type_open()) return 1;
    for (seed = first; seed < first + cases && failures < 10; seed++) tried += try_one();
    printf("# %llu trees of %llu were small enough to be tried\n", (unsigned long long)tried, (unsigned long long)cases);
    if (tried < cases / 2) failures++;
    printf("%s 1 - random datatypes move as their lists of basic elements\n", failures ? "not ok" : "ok");
    type_close();
    handle_close();
    return failures != 0;
}
