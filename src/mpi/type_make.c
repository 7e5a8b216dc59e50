/*
 * type_make.c - entry points: making derived datatypes (MPI-5.0 sections 5.1.2 to
 * 5.1.4, 5.1.10).
 *
 * The constructors of src/type check their arguments themselves; here are only the
 * checks of handles and pointers, and the int arrays made wide.
 */
#include "mpi/report.h"
#include "mpi/widen.h"

/* What the constructors share besides their arrays. */
struct making {
    const char *call;
    MPI_Datatype *newtype;
    bool large; /* a _c call */
};

static struct making making(const char *call, MPI_Datatype *newtype, bool large)
{
    no_type_yet(newtype);
    return (struct making){call, newtype, large};
}

/* The old type, or NULL with *rc the reported class. An unsupported optional type is refused by the constructor. */
static struct type *old_type(const struct making *m, MPI_Datatype oldtype, int *rc)
{
    struct type *t = type_of(oldtype);
    if (!t) *rc = bad_type(NULL, m->call, oldtype, "oldtype");
    else if (!m->newtype) *rc = bad_null(NULL, m->call, "newtype");
    return m->newtype ? t : NULL;
}

/* The end of every constructor; *made is set if rc is 0. */
static int give(const struct making *m, int rc, struct type *const *made)
{
    if (rc) return report_code(NULL, m->call, rc);
    if (m->large) type_set_large(*made);
    *m->newtype = type_handle(*made);
    return MPI_SUCCESS;
}

static int no_memory(const struct making *m, int64_t n)
{
    return report(NULL, m->call, MPI_ERR_NO_MEM, "no memory for arrays of %lld entries", (long long)n);
}

/* ---- contiguous, vector ---- */

static int contiguous(struct making m, int64_t count, MPI_Datatype oldtype)
{
    struct type *made;
    int rc;
    struct type *old = old_type(&m, oldtype, &rc);
    return old ? give(&m, type_contiguous(count, old, &made), &made) : rc;
}

MPI_ALIAS(Type_contiguous);
int PMPI_Type_contiguous(int count, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return contiguous(making("MPI_Type_contiguous", newtype, false), count, oldtype);
}

MPI_ALIAS(Type_contiguous_c);
int PMPI_Type_contiguous_c(MPI_Count count, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return contiguous(making("MPI_Type_contiguous_c", newtype, true), count, oldtype);
}

static int vector(struct making m, int64_t count, int64_t blocklength, int64_t stride, enum type_unit unit, MPI_Datatype oldtype)
{
    struct type *made;
    int rc;
    struct type *old = old_type(&m, oldtype, &rc);
    return old ? give(&m, type_vector(count, blocklength, stride, unit, old, &made), &made) : rc;
}

MPI_ALIAS(Type_vector);
int PMPI_Type_vector(int count, int blocklength, int stride, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return vector(making("MPI_Type_vector", newtype, false), count, blocklength, stride, TYPE_ELEMENTS, oldtype);
}

MPI_ALIAS(Type_vector_c);
int PMPI_Type_vector_c(MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return vector(making("MPI_Type_vector_c", newtype, true), count, blocklength, stride, TYPE_ELEMENTS, oldtype);
}

MPI_ALIAS(Type_create_hvector);
int PMPI_Type_create_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return vector(making("MPI_Type_create_hvector", newtype, false), count, blocklength, stride, TYPE_BYTES, oldtype);
}

MPI_ALIAS(Type_create_hvector_c);
int PMPI_Type_create_hvector_c(MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype oldtype,
                               MPI_Datatype *newtype)
{
    return vector(making("MPI_Type_create_hvector_c", newtype, true), count, blocklength, stride, TYPE_BYTES, oldtype);
}

/* ---- indexed ---- */

/* An array of `n` entries, which may be NULL only if it has none. A constructor copies several of them into one. */
static int check_array(const struct making *m, int64_t n, const void *array, const char *name)
{
    if (n > INT64_MAX / 4 / (int64_t)sizeof(int64_t))
        return report(NULL, m->call, MPI_ERR_COUNT, "argument count is %lld: no array has so many entries",
                      (long long)n);
    return array || n <= 0 ? MPI_SUCCESS : bad_null(NULL, m->call, name);
}

static int indexed(struct making m, int64_t n, const int64_t *lens, const int64_t *displs, enum type_unit unit, MPI_Datatype oldtype)
{
    struct type *made;
    int rc;
    struct type *old = old_type(&m, oldtype, &rc);
    if (!old) return rc;
    if ((rc = check_array(&m, n, lens, "array_of_blocklengths"))) return rc;
    if ((rc = check_array(&m, n, displs, "array_of_displacements"))) return rc;
    return give(&m, type_indexed(n, lens, displs, unit, old, &made), &made);
}

/* Wide lengths, and displacements that are wide already or (`ints`) are not. */
static int indexed_ints(struct making m, int n, const int *lens, const int *ints, const MPI_Aint *displs, enum type_unit unit,
                        MPI_Datatype oldtype)
{
    struct wide wl, wd = {NULL, {0}};
    const int64_t *l = lens ? wide_ints(&wl, n, lens) : NULL;
    const int64_t *d = ints ? wide_ints(&wd, n, ints) : displs;
    int rc = (lens && !l) || (ints && !d) ? no_memory(&m, n) : indexed(m, n, l, d, unit, oldtype);
    if (lens) wide_close(&wl);
    wide_close(&wd);
    return rc;
}

MPI_ALIAS(Type_indexed);
int PMPI_Type_indexed(int count, const int array_of_blocklengths[], const int array_of_displacements[], MPI_Datatype oldtype,
                      MPI_Datatype *newtype)
{
    return indexed_ints(making("MPI_Type_indexed", newtype, false), count, array_of_blocklengths,
                        array_of_displacements, NULL, TYPE_ELEMENTS, oldtype);
}

MPI_ALIAS(Type_indexed_c);
int PMPI_Type_indexed_c(MPI_Count count, const MPI_Count array_of_blocklengths[], const MPI_Count array_of_displacements[],
                        MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return indexed(making("MPI_Type_indexed_c", newtype, true), count, array_of_blocklengths, array_of_displacements,
                   TYPE_ELEMENTS, oldtype);
}

MPI_ALIAS(Type_create_hindexed);
int PMPI_Type_create_hindexed(int count, const int array_of_blocklengths[], const MPI_Aint array_of_displacements[],
                              MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return indexed_ints(making("MPI_Type_create_hindexed", newtype, false), count, array_of_blocklengths, NULL,
                        array_of_displacements, TYPE_BYTES, oldtype);
}

MPI_ALIAS(Type_create_hindexed_c);
int PMPI_Type_create_hindexed_c(MPI_Count count, const MPI_Count array_of_blocklengths[], const MPI_Count array_of_displacements[],
                                MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return indexed(making("MPI_Type_create_hindexed_c", newtype, true), count, array_of_blocklengths,
                   array_of_displacements, TYPE_BYTES, oldtype);
}

static int blocks(struct making m, int64_t n, int64_t len, const int64_t *displs, enum type_unit unit, MPI_Datatype oldtype)
{
    struct type *made;
    int rc;
    struct type *old = old_type(&m, oldtype, &rc);
    if (!old) return rc;
    if ((rc = check_array(&m, n, displs, "array_of_displacements"))) return rc;
    return give(&m, type_indexed_block(n, len, displs, unit, old, &made), &made);
}

MPI_ALIAS(Type_create_indexed_block);
int PMPI_Type_create_indexed_block(int count, int blocklength, const int array_of_displacements[], MPI_Datatype oldtype,
                                   MPI_Datatype *newtype)
{
    struct making m = making("MPI_Type_create_indexed_block", newtype, false);
    struct wide w = {NULL, {0}};
    const int64_t *d = array_of_displacements ? wide_ints(&w, count, array_of_displacements) : NULL;
    int rc = array_of_displacements && !d ? no_memory(&m, count) : blocks(m, count, blocklength, d, TYPE_ELEMENTS, oldtype);
    wide_close(&w);
    return rc;
}

MPI_ALIAS(Type_create_indexed_block_c);
int PMPI_Type_create_indexed_block_c(MPI_Count count, MPI_Count blocklength, const MPI_Count array_of_displacements[],
                                     MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return blocks(making("MPI_Type_create_indexed_block_c", newtype, true), count, blocklength, array_of_displacements,
                  TYPE_ELEMENTS, oldtype);
}

MPI_ALIAS(Type_create_hindexed_block);
int PMPI_Type_create_hindexed_block(int count, int blocklength, const MPI_Aint array_of_displacements[], MPI_Datatype oldtype,
                                    MPI_Datatype *newtype)
{
    return blocks(making("MPI_Type_create_hindexed_block", newtype, false), count, blocklength, array_of_displacements,
                  TYPE_BYTES, oldtype);
}

MPI_ALIAS(Type_create_hindexed_block_c);
int PMPI_Type_create_hindexed_block_c(MPI_Count count, MPI_Count blocklength, const MPI_Count array_of_displacements[],
                                      MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return blocks(making("MPI_Type_create_hindexed_block_c", newtype, true), count, blocklength, array_of_displacements,
                  TYPE_BYTES, oldtype);
}

/* ---- struct ---- */

/* The members' types, checked; on success *types is to be freed. */
static int member_types(const struct making *m, int64_t n, const MPI_Datatype h[], struct type ***types)
{
    struct type **t = malloc((size_t)(n + 1) * sizeof(struct type *));
    if (!t) return no_memory(m, n);
    for (int64_t i = 0; i < n; i++) {
        t[i] = type_of(h[i]);
        if (t[i]) continue;
        free(t);
        return bad_type(NULL, m->call, h[i], "array_of_types");
    }
    *types = t;
    return MPI_SUCCESS;
}

static int structure(struct making m, int64_t n, const int64_t *lens, const int64_t *displs, const MPI_Datatype h[])
{
    struct type **types = NULL, *made;
    int rc;
    check_running(m.call);
    if (n < 0) return bad_count(NULL, m.call, n);
    if (!m.newtype) return bad_null(NULL, m.call, "newtype");
    if ((rc = check_array(&m, n, lens, "array_of_blocklengths"))) return rc;
    if ((rc = check_array(&m, n, displs, "array_of_displacements"))) return rc;
    if ((rc = check_array(&m, n, h, "array_of_types"))) return rc;
    rc = member_types(&m, n, h, &types);
    if (rc) return rc;
    rc = give(&m, type_struct(n, lens, displs, types, &made), &made);
    free(types);
    return rc;
}

MPI_ALIAS(Type_create_struct);
int PMPI_Type_create_struct(int count, const int array_of_blocklengths[], const MPI_Aint array_of_displacements[],
                            const MPI_Datatype array_of_types[], MPI_Datatype *newtype)
{
    struct making m = making("MPI_Type_create_struct", newtype, false);
    struct wide w = {NULL, {0}};
    const int64_t *l = array_of_blocklengths ? wide_ints(&w, count, array_of_blocklengths) : NULL;
    int rc = array_of_blocklengths && !l ? no_memory(&m, count)
                                         : structure(m, count, l, array_of_displacements, array_of_types);
    wide_close(&w);
    return rc;
}

MPI_ALIAS(Type_create_struct_c);
int PMPI_Type_create_struct_c(MPI_Count count, const MPI_Count array_of_blocklengths[], const MPI_Count array_of_displacements[],
                              const MPI_Datatype array_of_types[], MPI_Datatype *newtype)
{
    return structure(making("MPI_Type_create_struct_c", newtype, true), count, array_of_blocklengths,
                     array_of_displacements, array_of_types);
}

/* ---- resized ---- */

static int resized(struct making m, MPI_Datatype oldtype, int64_t lb, int64_t extent)
{
    struct type *made;
    int rc;
    struct type *old = old_type(&m, oldtype, &rc);
    return old ? give(&m, type_resized(old, lb, extent, &made), &made) : rc;
}

MPI_ALIAS(Type_create_resized);
int PMPI_Type_create_resized(MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent, MPI_Datatype *newtype)
{
    return resized(making("MPI_Type_create_resized", newtype, false), oldtype, lb, extent);
}

MPI_ALIAS(Type_create_resized_c);
int PMPI_Type_create_resized_c(MPI_Datatype oldtype, MPI_Count lb, MPI_Count extent, MPI_Datatype *newtype)
{
    return resized(making("MPI_Type_create_resized_c", newtype, true), oldtype, lb, extent);
}

/* ---- parts of arrays ---- */

static int subarray(struct making m, int ndims, const int64_t *sizes, const int64_t *subsizes, const int64_t *starts, int order,
                    MPI_Datatype oldtype)
{
    struct type *made;
    int rc;
    struct type *old = old_type(&m, oldtype, &rc);
    if (!old) return rc;
    if ((rc = check_array(&m, ndims, sizes, "array_of_sizes"))) return rc;
    if ((rc = check_array(&m, ndims, subsizes, "array_of_subsizes"))) return rc;
    if ((rc = check_array(&m, ndims, starts, "array_of_starts"))) return rc;
    return give(&m, type_subarray(ndims, sizes, subsizes, starts, order, old, &made), &made);
}

MPI_ALIAS(Type_create_subarray);
int PMPI_Type_create_subarray(int ndims, const int array_of_sizes[], const int array_of_subsizes[], const int array_of_starts[],
                              int order, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    struct making m = making("MPI_Type_create_subarray", newtype, false);
    const int *from[3] = {array_of_sizes, array_of_subsizes, array_of_starts};
    const int64_t *to[3];
    struct wide w[3] = {{.many = NULL}};
    bool enough = true;
    for (int i = 0; i < 3; i++) {
        to[i] = from[i] ? wide_ints(&w[i], ndims, from[i]) : NULL;
        enough = enough && (to[i] || !from[i]);
    }
    int rc = enough ? subarray(m, ndims, to[0], to[1], to[2], order, oldtype) : no_memory(&m, ndims);
    for (int i = 0; i < 3; i++) wide_close(&w[i]);
    return rc;
}

MPI_ALIAS(Type_create_subarray_c);
int PMPI_Type_create_subarray_c(int ndims, const MPI_Count array_of_sizes[], const MPI_Count array_of_subsizes[],
                                const MPI_Count array_of_starts[], int order, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return subarray(making("MPI_Type_create_subarray_c", newtype, true), ndims, array_of_sizes, array_of_subsizes,
                    array_of_starts, order, oldtype);
}

/* The arguments of darray that are ints in both forms. */
struct grid {
    int size, rank, ndims;
    const int *distribs, *dargs, *psizes;
    int order;
};

static int darray(struct making m, const struct grid *g, const int64_t *gsizes, MPI_Datatype oldtype)
{
    struct type *made;
    int rc;
    struct type *old = old_type(&m, oldtype, &rc);
    if (!old) return rc;
    if ((rc = check_array(&m, g->ndims, gsizes, "array_of_gsizes"))) return rc;
    if ((rc = check_array(&m, g->ndims, g->distribs, "array_of_distribs"))) return rc;
    if ((rc = check_array(&m, g->ndims, g->dargs, "array_of_dargs"))) return rc;
    if ((rc = check_array(&m, g->ndims, g->psizes, "array_of_psizes"))) return rc;
    rc = type_darray(g->size, g->rank, g->ndims, gsizes, g->distribs, g->dargs, g->psizes, g->order, old, &made);
    return give(&m, rc, &made);
}

MPI_ALIAS(Type_create_darray);
int PMPI_Type_create_darray(int size, int rank, int ndims, const int array_of_gsizes[], const int array_of_distribs[],
                            const int array_of_dargs[], const int array_of_psizes[], int order, MPI_Datatype oldtype,
                            MPI_Datatype *newtype)
{
    struct making m = making("MPI_Type_create_darray", newtype, false);
    struct grid g = {size, rank, ndims, array_of_distribs, array_of_dargs, array_of_psizes, order};
    struct wide w = {NULL, {0}};
    const int64_t *gsizes = array_of_gsizes ? wide_ints(&w, ndims, array_of_gsizes) : NULL;
    int rc = array_of_gsizes && !gsizes ? no_memory(&m, ndims) : darray(m, &g, gsizes, oldtype);
    wide_close(&w);
    return rc;
}

MPI_ALIAS(Type_create_darray_c);
int PMPI_Type_create_darray_c(int size, int rank, int ndims, const MPI_Count array_of_gsizes[], const int array_of_distribs[],
                              const int array_of_dargs[], const int array_of_psizes[], int order, MPI_Datatype oldtype,
                              MPI_Datatype *newtype)
{
    struct grid g = {size, rank, ndims, array_of_distribs, array_of_dargs, array_of_psizes, order};
    return darray(making("MPI_Type_create_darray_c", newtype, true), &g, array_of_gsizes, oldtype);
}
