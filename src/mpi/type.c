/*
 * type.c - entry points: the life of datatypes, and facts about them (MPI-5.0
 * sections 5.1.1, 5.1.5 to 5.1.9, 5.1.13, 7.8).
 */
#include "mpi/attr.h"
#include "mpi/report.h"
#include "type/envelope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

MPI_ALIAS(Type_commit);
int PMPI_Type_commit(MPI_Datatype *datatype)
{
    const char *call = "MPI_Type_commit";
    if (!datatype) return bad_null(NULL, call, "datatype");
    struct type *t = type_of(*datatype);
    if (!t) return bad_type(NULL, call, *datatype, "datatype");
    return report_if(NULL, call, type_commit(t));
}

MPI_ALIAS(Type_free);
int PMPI_Type_free(MPI_Datatype *datatype)
{
    const char *call = "MPI_Type_free";
    if (!datatype) return bad_null(NULL, call, "datatype");
    struct type *t = type_of(*datatype);
    if (!t) return bad_type(NULL, call, *datatype, "datatype");
    if (t->predefined)
        return report(NULL, call, MPI_ERR_TYPE, "argument datatype is %s, which is predefined and cannot be freed",
                      t->envelope ? "of a selected kind" : type_name(t));
    int rc = type_attrs_delete(t);
    if (rc) return report_attr(NULL, call, rc);
    type_unref(t);
    *datatype = MPI_DATATYPE_NULL;
    return MPI_SUCCESS;
}

MPI_ALIAS(Type_dup);
int PMPI_Type_dup(MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    const char *call = "MPI_Type_dup";
    struct type *t = type_of(oldtype), *made;
    no_type_yet(newtype);
    if (!t) return bad_type(NULL, call, oldtype, "oldtype");
    if (!newtype) return bad_null(NULL, call, "newtype");
    int rc = type_dup(t, &made);
    if (rc) return report_code(NULL, call, rc);
    rc = type_attrs_copy(t, made);
    if (rc) type_unref(made);
    else
        *newtype = type_handle(made);
    return report_attr(NULL, call, rc);
}

MPI_ALIAS(Type_set_name);
int PMPI_Type_set_name(MPI_Datatype datatype, const char *type_name)
{
    const char *call = "MPI_Type_set_name";
    char name[MPI_MAX_OBJECT_NAME];
    struct type *t = type_of(datatype);
    if (!t) return bad_type(NULL, call, datatype, "datatype");
    if (!type_name) return bad_null(NULL, call, "type_name");
    snprintf(name, sizeof name, "%s", type_name); /* the standard cuts what is longer */
    return report_if(NULL, call, type_set_name(t, name));
}

MPI_ALIAS(Type_get_name);
int PMPI_Type_get_name(MPI_Datatype datatype, char *name, int *resultlen)
{
    const char *call = "MPI_Type_get_name";
    struct type *t = type_of(datatype);
    if (!name || !resultlen) return bad_null(NULL, call, name ? "resultlen" : "type_name");
    if (!t && datatype != MPI_DATATYPE_NULL) return bad_type(NULL, call, datatype, "datatype");
    *resultlen = snprintf(name, MPI_MAX_OBJECT_NAME, "%s", t ? type_name(t) : "MPI_DATATYPE_NULL");
    return MPI_SUCCESS;
}

/* ---- size and extents: what does not fit into the user's int or address is MPI_UNDEFINED ---- */

MPI_ALIAS(Type_size);
int PMPI_Type_size(MPI_Datatype datatype, int *size)
{
    struct type *t = type_of(datatype);
    if (!t) return bad_type(NULL, "MPI_Type_size", datatype, "datatype");
    if (!size) return bad_null(NULL, "MPI_Type_size", "size");
    *size = t->size > INT32_MAX ? MPI_UNDEFINED : (int)t->size;
    return MPI_SUCCESS;
}

static int size_large(const char *call, MPI_Datatype datatype, MPI_Count *size)
{
    struct type *t = type_of(datatype);
    if (!t) return bad_type(NULL, call, datatype, "datatype");
    if (!size) return bad_null(NULL, call, "size");
    *size = t->size;
    return MPI_SUCCESS;
}

MPI_ALIAS(Type_size_x);
int PMPI_Type_size_x(MPI_Datatype datatype, MPI_Count *size) { return size_large("MPI_Type_size_x", datatype, size); }

MPI_ALIAS(Type_size_c);
int PMPI_Type_size_c(MPI_Datatype datatype, MPI_Count *size) { return size_large("MPI_Type_size_c", datatype, size); }

/* Addresses and counts are both 64 bits wide (widen.h), so one function serves all. */
static int bounds(const char *call, MPI_Datatype datatype, bool true_ones, int64_t *lb, int64_t *extent)
{
    struct type *t = type_of(datatype);
    if (!t) return bad_type(NULL, call, datatype, "datatype");
    if (!lb || !extent) return bad_null(NULL, call, true_ones ? (lb ? "true_extent" : "true_lb") : lb ? "extent" : "lb");
    *lb = true_ones ? t->true_lb : t->lb;
    *extent = t->size == MPI_UNDEFINED ? MPI_UNDEFINED : true_ones ? t->true_extent : t->extent;
    return MPI_SUCCESS;
}

MPI_ALIAS(Type_get_extent);
int PMPI_Type_get_extent(MPI_Datatype datatype, MPI_Aint *lb, MPI_Aint *extent)
{
    return bounds("MPI_Type_get_extent", datatype, false, lb, extent);
}

MPI_ALIAS(Type_get_extent_x);
int PMPI_Type_get_extent_x(MPI_Datatype datatype, MPI_Count *lb, MPI_Count *extent)
{
    return bounds("MPI_Type_get_extent_x", datatype, false, lb, extent);
}

MPI_ALIAS(Type_get_extent_c);
int PMPI_Type_get_extent_c(MPI_Datatype datatype, MPI_Count *lb, MPI_Count *extent)
{
    return bounds("MPI_Type_get_extent_c", datatype, false, lb, extent);
}

MPI_ALIAS(Type_get_true_extent);
int PMPI_Type_get_true_extent(MPI_Datatype datatype, MPI_Aint *true_lb, MPI_Aint *true_extent)
{
    return bounds("MPI_Type_get_true_extent", datatype, true, true_lb, true_extent);
}

MPI_ALIAS(Type_get_true_extent_x);
int PMPI_Type_get_true_extent_x(MPI_Datatype datatype, MPI_Count *true_lb, MPI_Count *true_extent)
{
    return bounds("MPI_Type_get_true_extent_x", datatype, true, true_lb, true_extent);
}

MPI_ALIAS(Type_get_true_extent_c);
int PMPI_Type_get_true_extent_c(MPI_Datatype datatype, MPI_Count *true_lb, MPI_Count *true_extent)
{
    return bounds("MPI_Type_get_true_extent_c", datatype, true, true_lb, true_extent);
}

/* ---- envelope and contents ---- */

MPI_ALIAS(Type_get_envelope_c);
int PMPI_Type_get_envelope_c(MPI_Datatype datatype, MPI_Count *num_integers, MPI_Count *num_addresses, MPI_Count *num_large_counts,
                             MPI_Count *num_datatypes, int *combiner)
{
    const char *call = "MPI_Type_get_envelope_c";
    struct type_envelope e;
    struct type *t = type_of(datatype);
    if (!t) return bad_type(NULL, call, datatype, "datatype");
    const void *results[] = {num_integers, num_addresses, num_large_counts, num_datatypes, combiner};
    static const char *const names[] = {"num_integers", "num_addresses", "num_large_counts", "num_datatypes", "combiner"};
    for (size_t i = 0; i < ARRAY_LEN(results); i++)
        if (!results[i]) return bad_null(NULL, call, names[i]);
    type_get_envelope(t, &e);
    *num_integers = e.ints;
    *num_addresses = e.addresses;
    *num_large_counts = e.counts;
    *num_datatypes = e.types;
    *combiner = e.combiner;
    return MPI_SUCCESS;
}

/* A type made with large counts cannot be told by the functions that have no place for them (5.1.13). */
static int made_large(const char *call)
{
    return report(NULL, call, MPI_ERR_TYPE, "argument datatype was made by a large-count call; use %s_c", call);
}

MPI_ALIAS(Type_get_envelope);
int PMPI_Type_get_envelope(MPI_Datatype datatype, int *num_integers, int *num_addresses, int *num_datatypes, int *combiner)
{
    const char *call = "MPI_Type_get_envelope";
    struct type_envelope e;
    struct type *t = type_of(datatype);
    if (!t) return bad_type(NULL, call, datatype, "datatype");
    const void *results[] = {num_integers, num_addresses, num_datatypes, combiner};
    static const char *const names[] = {"num_integers", "num_addresses", "num_datatypes", "combiner"};
    for (size_t i = 0; i < ARRAY_LEN(results); i++)
        if (!results[i]) return bad_null(NULL, call, names[i]);
    type_get_envelope(t, &e);
    if (e.counts) return made_large(call);
    *num_integers = (int)e.ints;
    *num_addresses = (int)e.addresses;
    *num_datatypes = (int)e.types;
    *combiner = e.combiner;
    return MPI_SUCCESS;
}

/* The room that the user has for contents, in either form. */
struct room {
    int64_t ints, addresses, counts, types;
};

static int contents(const char *call, MPI_Datatype datatype, const struct room *max, int *ints, MPI_Aint *addresses,
                    MPI_Count *counts, MPI_Datatype *types)
{
    struct type_envelope e;
    struct type *t = type_of(datatype);
    if (!t) return bad_type(NULL, call, datatype, "datatype");
    type_get_envelope(t, &e);
    if (e.combiner == MPI_COMBINER_NAMED)
        return report(NULL, call, MPI_ERR_TYPE, "argument datatype is %s, which is predefined and has no contents", type_name(t));
    if (e.counts && max->counts < 0) return made_large(call);
    const struct { const char *name; int64_t has, needs; } rooms[] = {{"max_integers", max->ints, e.ints},
                                                                      {"max_addresses", max->addresses, e.addresses},
                                                                      {"max_large_counts", e.counts ? max->counts : 0, e.counts},
                                                                      {"max_datatypes", max->types, e.types}};
    for (size_t i = 0; i < ARRAY_LEN(rooms); i++)
        if (rooms[i].has < rooms[i].needs)
            return report(NULL, call, MPI_ERR_ARG, "argument %s is %lld, but the type has %lld of them", rooms[i].name,
                          (long long)rooms[i].has, (long long)rooms[i].needs);
    if ((e.ints && !ints) || (e.addresses && !addresses) || (e.counts && !counts) || (e.types && !types))
        return bad_null(NULL, call, "array_of_integers, array_of_addresses or array_of_datatypes");
    return report_if(NULL, call, type_contents(t, ints, addresses, counts, types));
}

MPI_ALIAS(Type_get_contents);
int PMPI_Type_get_contents(MPI_Datatype datatype, int max_integers, int max_addresses, int max_datatypes, int array_of_integers[],
                           MPI_Aint array_of_addresses[], MPI_Datatype array_of_datatypes[])
{
    struct room max = {max_integers, max_addresses, -1, max_datatypes};
    return contents("MPI_Type_get_contents", datatype, &max, array_of_integers, array_of_addresses, NULL, array_of_datatypes);
}

MPI_ALIAS(Type_get_contents_c);
int PMPI_Type_get_contents_c(MPI_Datatype datatype, MPI_Count max_integers, MPI_Count max_addresses, MPI_Count max_large_counts,
                             MPI_Count max_datatypes, int array_of_integers[], MPI_Aint array_of_addresses[],
                             MPI_Count array_of_large_counts[], MPI_Datatype array_of_datatypes[])
{
    struct room max = {max_integers, max_addresses, max_large_counts < 0 ? 0 : max_large_counts, max_datatypes};
    return contents("MPI_Type_get_contents_c", datatype, &max, array_of_integers, array_of_addresses, array_of_large_counts,
                    array_of_datatypes);
}

/* ---- predefined types by what they are ---- */

static const MPI_Datatype reals[] = {MPI_REAL2, MPI_REAL4, MPI_REAL8, MPI_REAL16};
static const MPI_Datatype integers[] = {MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8, MPI_INTEGER16};
static const MPI_Datatype complexes[] = {MPI_COMPLEX4, MPI_COMPLEX8, MPI_COMPLEX16, MPI_COMPLEX32};
static const MPI_Datatype logicals[] = {MPI_LOGICAL1, MPI_LOGICAL2, MPI_LOGICAL4, MPI_LOGICAL8, MPI_LOGICAL16};

static const struct size_class {
    int typeclass;
    const MPI_Datatype *types;
    size_t n;
} size_classes[] = {
    {MPI_TYPECLASS_REAL, reals, ARRAY_LEN(reals)},
    {MPI_TYPECLASS_INTEGER, integers, ARRAY_LEN(integers)},
    {MPI_TYPECLASS_COMPLEX, complexes, ARRAY_LEN(complexes)},
    {191, logicals, ARRAY_LEN(logicals)}, /* MPI_TYPECLASS_LOGICAL to be: the reference header has the value already */
};

MPI_ALIAS(Type_match_size);
int PMPI_Type_match_size(int typeclass, int size, MPI_Datatype *datatype)
{
    const char *call = "MPI_Type_match_size";
    check_running(call);
    if (!datatype) return bad_null(NULL, call, "datatype");
    const struct size_class *k = size_classes, *end = k + ARRAY_LEN(size_classes);
    while (k < end && k->typeclass != typeclass) k++;
    if (k == end) return report(NULL, call, MPI_ERR_ARG, "argument typeclass is %d, which is no MPI_TYPECLASS_", typeclass);
    for (size_t i = 0; i < k->n; i++)
        if (type_of(k->types[i])->size == size) {
            *datatype = k->types[i];
            return MPI_SUCCESS;
        }
    return report(NULL, call, MPI_ERR_ARG, "argument size is %d, and there is no such type of that size here", size);
}

/* The pair types, for MPI_MINLOC and MPI_MAXLOC; MPI_DATATYPE_NULL for pairs that the library does not have (5.1.12). */
static const struct pair {
    MPI_Datatype value, index, pair;
} pairs[] = {
    {MPI_FLOAT, MPI_INT, MPI_FLOAT_INT},   {MPI_DOUBLE, MPI_INT, MPI_DOUBLE_INT},
    {MPI_LONG, MPI_INT, MPI_LONG_INT},     {MPI_SHORT, MPI_INT, MPI_SHORT_INT},
    {MPI_INT, MPI_INT, MPI_2INT},          {MPI_LONG_DOUBLE, MPI_INT, MPI_LONG_DOUBLE_INT},
    {MPI_REAL, MPI_REAL, MPI_2REAL},       {MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, MPI_2DOUBLE_PRECISION},
    {MPI_INTEGER, MPI_INTEGER, MPI_2INTEGER},
};

MPI_ALIAS(Type_get_value_index);
int PMPI_Type_get_value_index(MPI_Datatype value_type, MPI_Datatype index_type, MPI_Datatype *pair_type)
{
    const char *call = "MPI_Type_get_value_index";
    if (!type_of(value_type)) return bad_type(NULL, call, value_type, "value_type");
    if (!type_of(index_type)) return bad_type(NULL, call, index_type, "index_type");
    if (!pair_type) return bad_null(NULL, call, "pair_type");
    *pair_type = MPI_DATATYPE_NULL;
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
        if (pairs[i].value == value_type && pairs[i].index == index_type) *pair_type = pairs[i].pair;
    return MPI_SUCCESS;
}

/* ---- addresses: may be called at any time ---- */

MPI_ALIAS(Get_address);
int PMPI_Get_address(const void *location, MPI_Aint *address)
{
    if (!address) return bad_null(NULL, "MPI_Get_address", "address");
    *address = (MPI_Aint)(uintptr_t)location;
    return MPI_SUCCESS;
}

/* Addresses wrap like the machine's; signed overflow would be undefined. */
MPI_ALIAS(Aint_add);
MPI_Aint PMPI_Aint_add(MPI_Aint base, MPI_Aint disp) { return (MPI_Aint)((uintptr_t)base + (uintptr_t)disp); }

MPI_ALIAS(Aint_diff);
MPI_Aint PMPI_Aint_diff(MPI_Aint addr1, MPI_Aint addr2) { return (MPI_Aint)((uintptr_t)addr1 - (uintptr_t)addr2); }
