/* type.c - the predefined datatypes, the life of types, and facts about them. */
#include "type/type.h"
#include "base/err.h"
#include "base/scratch.h"
#include "type/element.h"
#include "type/envelope.h"
#include "type/external.h"
#include "type/f90.h"
#include "type/layout.h"
#include "type/signature.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

/* ---- the table ---- */

struct predefined {
    MPI_Datatype self;
    const char *name;
    int size, extent, align; /* size MPI_UNDEFINED: lacking */
    enum type_kind kind;
    enum type_class klass;
    int second; /* pairs: where the index lies; else 0 */
    MPI_Datatype half[2];
};

/* clang-format off */
#define SIGNED(t)    (sizeof(t) == 1 ? KIND_I8 : sizeof(t) == 2 ? KIND_I16 : sizeof(t) == 4 ? KIND_I32 : KIND_I64)
#define UNSIGNED(t)  (sizeof(t) == 1 ? KIND_U8 : sizeof(t) == 2 ? KIND_U16 : sizeof(t) == 4 ? KIND_U32 : KIND_U64)
#define IN_STRUCT(t) offsetof(struct { char c; t x; }, x) /* alignment as a member, which can be less than alone */
#define TYPE(id, ctype, kind, klass) {id, #id, sizeof(ctype), sizeof(ctype), IN_STRUCT(ctype), kind, klass, 0, {0, 0}},
#define PAIR(id, value, index, kind, first, second)                                                                    \
    {id, #id, sizeof(value) + sizeof(index), sizeof(struct { value v; index i; }),                                     \
     IN_STRUCT(struct { value v; index i; }), kind, CLASS_PAIR, offsetof(struct { value v; index i; }, i),             \
     {first, second}},
#define LACK(id) {id, #id, MPI_UNDEFINED, 0, 1, KIND_NONE, CLASS_OTHER, 0, {0, 0}},

/* clang-format on */

static const struct predefined table[] = {
#include "type/predefined.def"
};
#undef TYPE
#undef PAIR
#undef LACK

static struct type types[ARRAY_LEN(table)];
static struct type_part halves[2 * ARRAY_LEN(table)];
static bool is_open;

static int make_layout(const struct predefined *p, const struct layout **out)
{
    struct layout_pieces pieces;
    if (p->size < 0) {
        *out = NULL;
        return 0;
    }
    if (!p->second) return layout_run(0, p->size, out);
    int rc = layout_pieces_open(&pieces, 2);
    if (rc) return rc;
    int first = (int)type_of(p->half[0])->size;
    layout_pieces_add(&pieces, 0, first);
    layout_pieces_add(&pieces, p->second, p->size - first);
    return layout_pieces_seal(&pieces, out);
}

static uint64_t magnitude(int64_t n) { return n < 0 ? -(uint64_t)n : (uint64_t)n; }

/* No offset in (count x t), nor its size, native or portable, is beyond 2^63. One element never is. */
static uint64_t count_limit(const struct type *t)
{
    uint64_t step = max_size(max_size((uint64_t)t->size, (uint64_t)t->external), max_size(magnitude(t->extent), 1));
    uint64_t reach = max_size(magnitude(t->true_lb), magnitude(t->true_lb + t->true_extent));
    uint64_t most = reach < INT64_MAX ? (INT64_MAX - reach) / step : 0;
    return most ? most + 1 : 2;
}

static void make_elements(const struct predefined *p, struct type *t, struct type_part *half)
{
    struct signature s = signature_basic(p->self);
    t->elements = p->size > 0;
    t->basic = t;
    t->external = external_basic_size(t);
    if (p->second) {
        half[0] = (struct type_part){1, type_of(p->half[0])};
        half[1] = (struct type_part){1, type_of(p->half[1])};
        t->parts = half;
        t->nparts = 2;
        t->elements = 2;
        t->external = half[0].type->external + half[1].type->external;
        s = signature_join(type_signature(half[0].type, 1), type_signature(half[1].type, 1));
    }
    t->untyped = p->self == MPI_BYTE || p->self == MPI_PACKED;
    t->signature = s.hash;
    t->signature_step = s.step;
    t->count_limit = t->committed ? count_limit(t) : 0;
}

/* Halves of pairs stand earlier in the table than the pairs. */
static int make_predefined(const struct predefined *p, struct type *t, struct type_part *half)
{
    *t = (struct type){.size = p->size,
                       .extent = p->extent,
                       .true_extent = p->second ? p->second + p->size - (int)type_of(p->half[0])->size : p->extent,
                       .contig = p->size == p->extent,
                       .committed = p->size >= 0,
                       .predefined = true,
                       .kind = (uint8_t)p->kind,
                       .klass = (uint16_t)p->klass,
                       .align = (uint16_t)p->align,
                       .self = p->self};
    t->h.kind = HANDLE_TYPE;
    atomic_init(&t->h.refs, 1);
    int rc = make_layout(p, &t->layout);
    if (rc) return rc;
    make_elements(p, t, half);
    handle_define((uintptr_t)p->self, t);
    return 0;
}

int type_open(void)
{
    if (is_open) return 0;
    is_open = true;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        int rc = make_predefined(&table[i], &types[i], &halves[2 * i]);
        if (rc) {
            type_close();
            return rc;
        }
    }
    return 0;
}

void type_close(void)
{
    if (!is_open) return;
    type_f90_close();
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        layout_unref(types[i].layout);
        free(types[i].name);
        types[i].layout = NULL;
        types[i].name = NULL;
        handle_define((uintptr_t)table[i].self, NULL);
    }
    is_open = false;
}

/* ---- the life of a derived type ---- */

static void free_type(struct type *t)
{
    free(t->parts);
    free(t->envelope);
    free(t->name);
    layout_unref(t->layout);
    handle_release(t, sizeof *t);
}

/* A chain of types, each the last reference to the next, may be long: a loop follows it, only branches recurse. */
void type_destroy(struct type *t)
{
    while (t) {
        struct type *next = NULL;
        for (int64_t i = 0; i < t->nparts; i++) {
            struct type *part = t->parts[i].type;
            if (part->predefined || !handle_unref(&part->h)) continue;
            if (next)
                type_destroy(part);
            else
                next = part;
        }
        free_type(t);
        t = next;
    }
}

static bool is_contig(const struct type *t)
{
    return !t->layout || (t->layout->kind == LAYOUT_RUN && t->size == t->extent);
}

const struct layout *type_layout(const struct type *t)
{
    handle_state_lock();
    const struct layout *l = layout_ref(t->layout);
    handle_state_unlock();
    return l;
}

static bool is_committed(const struct type *t)
{
    handle_state_lock();
    bool committed = t->committed;
    handle_state_unlock();
    return committed;
}

/* The layout that is not used: the old one, or `flat` if another thread was faster. */
static const struct layout *set_committed(struct type *t, const struct layout *flat)
{
    const struct layout *old = flat;
    handle_state_lock();
    if (!t->committed) {
        old = t->layout;
        t->layout = flat;
        t->contig = is_contig(t);
        t->count_limit = count_limit(t);
        t->committed = true;
    }
    handle_state_unlock();
    return old;
}

int type_commit(struct type *t)
{
    const struct layout *flat;
    if (t->predefined || is_committed(t)) return 0; /* an unsupported optional type stays as it is */
    const struct layout *l = type_layout(t);
    int rc = layout_flatten(l, &flat);
    if (!rc) layout_unref(set_committed(t, flat));
    layout_unref(l);
    return rc;
}

/* ---- facts ---- */

int64_t type_blocks(const struct type *t) { return t->layout ? t->layout->blocks : 0; }

int64_t type_span(const struct type *t, int64_t count, int64_t *first)
{
    *first = t->true_lb;
    if (count == 0 || t->size <= 0) return 0;
    int64_t way = (count - 1) * t->extent;
    if (way < 0) { /* a negative extent: the last element lies lowest */
        *first += way;
        way = -way;
    }
    return way + t->true_extent;
}

static const char *first_name(const struct type *t)
{
    return t->predefined && !t->envelope ? table[t - types].name : "";
}

const char *type_name(const struct type *t)
{
    static char common[MPI_MAX_OBJECT_NAME];
    static struct scratch names = SCRATCH_INIT(common);
    char *name = scratch(&names);
    handle_state_lock();
    snprintf(name, sizeof common, "%s", t->name ? t->name : first_name(t));
    handle_state_unlock();
    return name;
}

int type_set_name(struct type *t, const char *name)
{
    char *copy = strdup(name);
    if (!copy) return err_set(TERN_ERR_NOMEM, "no memory for the name of a datatype");
    handle_state_lock();
    char *old = t->name;
    t->name = copy;
    handle_state_unlock();
    free(old);
    return 0;
}
