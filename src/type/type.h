/*
 * type.h - datatypes: what a user's MPI_Datatype stands for, and how new ones are made.
 *
 * A type is a list of (basic type, displacement) pairs, never stored as such: its
 * bytes are described by a tree of loops (layout.h), its elements by the types it
 * was built from (parts), its origin by the constructor's arguments (envelope.h).
 * type_commit turns the tree into the form that moves data fastest; cursor.h
 * packs, unpacks and lists memory from it.
 *
 * Counts and displacements are int64_t; entry points widen the user's int arrays.
 * Displacements are in bytes unless a parameter says otherwise. Chapter 5 of
 * MPI-5.0; handle values are those of its standard ABI.
 *
 * Threads: a type does not change after type_commit (its name and attributes
 * excepted), so any thread may use it; references are counted atomically. Threads may
 * commit one type at the same time, and make others of it meanwhile: constructors get its
 * layout by type_layout.
 */
#ifndef TERN_TYPE_TYPE_H
#define TERN_TYPE_TYPE_H

#include "base/handle.h"
#include <mpi.h>

struct layout;
struct envelope;

/* One row for each family. */
/* clang-format off */

/* What one predefined element is to an operator; operators have one kernel per kind. */
enum type_kind {
    KIND_NONE, /* moved, never computed with */
    KIND_I8, KIND_I16, KIND_I32, KIND_I64, KIND_I128,
    KIND_U8, KIND_U16, KIND_U32, KIND_U64,
    KIND_F16, KIND_F32, KIND_F64, KIND_FL, KIND_F128,                /* FL: C long double */
    KIND_C16, KIND_C32, KIND_C64, KIND_CL, KIND_C128,                /* complex, by the width of a part */
    KIND_F32_I, KIND_F64_I, KIND_L_I, KIND_I_I, KIND_S_I, KIND_FL_I, /* (value, int) pairs: L long, S short */
    KIND_F32_F32, KIND_F64_F64,                                      /* Fortran pairs */
    KIND_COUNT
};

/* The groups in which the standard lists the types an operator accepts (6.9.2), as a bit mask. */
enum type_class {
    CLASS_CINT = 1, CLASS_FINT = 2, CLASS_FLOAT = 4, CLASS_LOGICAL = 8, CLASS_COMPLEX = 16, CLASS_BYTE = 32,
    CLASS_MULTI = 64, /* MPI_AINT, MPI_OFFSET, MPI_COUNT */
    CLASS_PAIR = 128,
    CLASS_OTHER = 256 /* characters, MPI_PACKED: no arithmetic */
};

/* clang-format on */

/* `n` elements of `type`, in the order in which they are packed. */
struct type_part {
    int64_t n;
    struct type *type;
};

struct type {
    struct handle h;
    /* The first line is all that moving data looks at. */
    int64_t size;                /* bytes of data; MPI_UNDEFINED: optional type that this machine lacks */
    int64_t extent;              /* distance from one element to the next */
    uint64_t count_limit;        /* one more than the largest count to communicate (type_takes); 0 until committed */
    int64_t true_lb;             /* first byte of data */
    int64_t true_extent;         /* from there to the end of the last byte of data */
    const struct layout *layout; /* the bytes of one element; NULL if it has none */
    bool contig;                 /* committed, and `count` elements are one run of count * size bytes at buf + true_lb */
    bool committed;              /* may be communicated with; false for a type that this machine lacks */
    bool predefined; /* named by a constant, or of f90.h: neither freed nor counted */
    uint8_t kind;    /* enum type_kind of a predefined type, else KIND_NONE */
    uint16_t klass;  /* enum type_class of a predefined type, else 0 */
    uint16_t align;  /* of the strictest basic type in it, bytes */

    int64_t lb;               /* ub is lb + extent */
    const struct type *basic; /* the one predefined type all elements have; NULL if there are several or none */
    int64_t elements;         /* basic elements; the two halves of a pair count separately */
    uint64_t signature;       /* hash of the sequence of basic types (signature.h) */
    uint64_t signature_step;  /* what a signature before this one is multiplied by when joined */
    int64_t external;         /* bytes in the portable representation (external.h) */
    bool untyped;             /* has MPI_BYTE or MPI_PACKED in it, which match anything */
    bool lb_set, ub_set;      /* bounds set by MPI_Type_create_resized, here or in a part */
    MPI_Datatype self;        /* the user's value */
    struct type_part *parts;  /* what it was built from; references are held */
    int64_t nparts;
    struct envelope *envelope; /* NULL: predefined by a constant */
    char *name;                /* MPI_Type_set_name; NULL: never set */
    void *attributes;          /* belongs to the attribute code above, NULL here */
} TERN_ALIGNED(CACHE_LINE);
static_assert(offsetof(struct type, contig) == 56, "what moves data lies in the first cache line");

/* ---- handles ---- */

/* Makes the predefined types known to handle_get; idempotent. Called before any other function of src/type. */
int type_open(void);
void type_close(void);

/* NULL if `h` is MPI_DATATYPE_NULL or no type. Optional types that are not supported are found (size < 0). */
static inline struct type *type_of(MPI_Datatype h) { return handle_get(h, HANDLE_TYPE); }
static inline MPI_Datatype type_handle(const struct type *t) { return t->self; }

static inline void type_ref(struct type *t)
{
    if (!t->predefined) handle_ref(&t->h);
}
void type_destroy(struct type *t); /* by type_unref only */
static inline void type_unref(struct type *t)
{
    if (!t->predefined && handle_unref(&t->h)) type_destroy(t);
}

/* ---- facts ---- */

/*
 * May `count` elements be communicated? One comparison finds a negative count, a type that is not committed, and data
 * or extents of more than 2^63 bytes.
 */
static inline bool type_takes(const struct type *t, int64_t count) { return (uint64_t)count < t->count_limit; }
/* The layout that it has now, with a reference for the caller (layout.h); NULL: it has no bytes. */
const struct layout *type_layout(const struct type *t);

static inline int64_t type_ub(const struct type *t) { return t->lb + t->extent; }

/* Runs of memory that one element consists of, after commit joined where they touch. 0 for an empty type. */
int64_t type_blocks(const struct type *t);

/* Bytes from the first to behind the last one touched by `count` elements, and where they start relative to buf. */
int64_t type_span(const struct type *t, int64_t count, int64_t *first);

/* The words of the standard's type or of the user (MPI_Type_get_name), never NULL: a copy, valid until this thread asks
 * for another type's name. Names longer than MPI_MAX_OBJECT_NAME - 1 are cut. */
const char *type_name(const struct type *t);
int type_set_name(struct type *t, const char *name);

/* ---- constructors: 0 and *new_p (not committed, one reference), or an error in words and *new_p untouched ----
 * TERN_ERR_COUNT for a negative count or length and for types beyond 2^63 bytes, TERN_ERR_TYPE for an unsupported type,
 * TERN_ERR_ARG for other bad arguments, TERN_ERR_NOMEM. Arrays are copied. */

enum type_unit { TYPE_ELEMENTS, TYPE_BYTES }; /* what strides and displacements count: extents of `old`, or bytes */

int type_contiguous(int64_t n, struct type *old, struct type **new_p);
int type_vector(int64_t n, int64_t len, int64_t stride, enum type_unit, struct type *old, struct type **new_p);
int type_indexed(int64_t n, const int64_t *lens, const int64_t *displs, enum type_unit, struct type *old,
                 struct type **new_p);
int type_indexed_block(int64_t n, int64_t len, const int64_t *displs, enum type_unit, struct type *old,
                       struct type **new_p);
int type_struct(int64_t n, const int64_t *lens, const int64_t *displs, struct type *const *types, struct type **new_p);
int type_resized(struct type *old, int64_t lb, int64_t extent, struct type **new_p);
int type_dup(struct type *old, struct type **new_p); /* committed if `old` is */
int type_subarray(int ndims, const int64_t *sizes, const int64_t *subsizes, const int64_t *starts, int order,
                  struct type *old, struct type **new_p);
int type_darray(int size, int rank, int ndims, const int64_t *gsizes, const int *distribs, const int *dargs,
                const int *psizes, int order, struct type *old, struct type **new_p);

/* To be called on a new type made by the _c form of an MPI function: its envelope then speaks of large counts. */
void type_set_large(struct type *t);

/* Chooses the fastest form for moving the data. Idempotent; does nothing for predefined types. */
int type_commit(struct type *t);

/* ---- counting what arrived (MPI_Get_count, MPI_Get_elements) ---- */

/* Whole elements of `t` in `bytes` packed bytes; MPI_UNDEFINED if the last one is incomplete. */
int64_t type_count_whole(const struct type *t, int64_t bytes);

/* Basic elements in the first `bytes` packed bytes of a sequence of `t`; MPI_UNDEFINED if the last one is cut. */
int64_t type_count_elements(const struct type *t, int64_t bytes);

/* The reverse, for MPI_Status_set_elements: bytes of the first `elements` basic elements. */
int64_t type_bytes_of_elements(const struct type *t, int64_t elements);

#endif
