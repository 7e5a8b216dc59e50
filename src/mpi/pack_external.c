/*
 * pack_external.c - entry points: packing in the portable representation "external32"
 * (MPI-5.0 section 5.3). They have no communicator; the error handler is that of
 * MPI_COMM_SELF.
 */
#include "mpi/report.h"
#include "type/external.h"

#include <string.h>

/* What packing and unpacking have in common: (count x datatype) at `typed`, and the external buffer. */
struct packing {
    const char *datarep;
    const void *typed;
    const char *typed_name;
    int64_t count;
    const char *count_name;
    MPI_Datatype datatype;
    const void *packed;
    const char *packed_name;
    int64_t size;
    const char *size_name;
};

static int check_datarep(const char *call, const char *datarep)
{
    if (!datarep) return bad_null(NULL, call, "datarep");
    if (!strcmp(datarep, "external32")) return MPI_SUCCESS;
    return report(NULL, call, MPI_ERR_ARG, "argument datarep is \"%s\"; there is \"external32\" only", datarep);
}

static int check_negative(const char *call, const char *name, int64_t value, int klass)
{
    if (value >= 0) return MPI_SUCCESS;
    return report(NULL, call, klass, "argument %s is %lld, which is negative", name, (long long)value);
}

static int check_room(const char *call, const struct packing *p, int64_t position, size_t total)
{
    if (position < 0 || position > p->size)
        return report(NULL, call, MPI_ERR_ARG, "argument position is %lld, outside of the %lld bytes of %s", (long long)position,
                      (long long)p->size, p->packed_name);
    if ((int64_t)total > p->size - position)
        return report(NULL, call, MPI_ERR_TRUNCATE, "argument %s is %lld, but the data are %zu bytes, from position %lld on",
                      p->size_name, (long long)p->size, total, (long long)position);
    return p->packed || !total ? MPI_SUCCESS : bad_buffer(NULL, call, p->packed_name);
}

static int check(const char *call, const struct packing *p, const int64_t *position, struct external_cursor *cursor)
{
    check_running(call);
    int rc = check_datarep(call, p->datarep);
    if (!rc) rc = check_negative(call, p->count_name, p->count, MPI_ERR_COUNT);
    if (!rc) rc = check_negative(call, p->size_name, p->size, MPI_ERR_ARG);
    if (rc) return rc;
    if (!position) return bad_null(NULL, call, "position");
    struct type *t = type_of(p->datatype);
    if (!type_ready(t)) return bad_type(NULL, call, p->datatype, "datatype");
    if (!buffer_ok(p->typed, p->count, t)) return bad_buffer(NULL, call, p->typed_name);
    rc = external_open(cursor, t, p->count, p->typed);
    return rc ? report_code(NULL, call, rc) : check_room(call, p, *position, cursor->total);
}

static int pack(const char *call, const struct packing *p, int64_t *position)
{
    struct external_cursor cursor;
    size_t n;
    int rc = check(call, p, position, &cursor);
    if (rc) return rc;
    rc = external_pack(&cursor, (char *)(uintptr_t)p->packed + *position, cursor.total, &n);
    if (!rc) *position += (int64_t)n;
    return report_if(NULL, call, rc);
}

static int unpack(const char *call, const struct packing *p, int64_t *position)
{
    struct external_cursor cursor;
    size_t n;
    int rc = check(call, p, position, &cursor);
    if (rc) return rc;
    rc = external_unpack(&cursor, (const char *)p->packed + *position, cursor.total, &n);
    if (!rc) *position += (int64_t)n;
    return report_if(NULL, call, rc);
}

MPI_ALIAS(Pack_external);
int PMPI_Pack_external(const char datarep[], const void *inbuf, int incount, MPI_Datatype datatype, void *outbuf,
                       MPI_Aint outsize, MPI_Aint *position)
{
    struct packing p = {datarep, inbuf, "inbuf", incount, "incount", datatype, outbuf, "outbuf", outsize, "outsize"};
    return pack("MPI_Pack_external", &p, position);
}

MPI_ALIAS(Pack_external_c);
int PMPI_Pack_external_c(const char datarep[], const void *inbuf, MPI_Count incount, MPI_Datatype datatype, void *outbuf,
                         MPI_Count outsize, MPI_Count *position)
{
    struct packing p = {datarep, inbuf, "inbuf", incount, "incount", datatype, outbuf, "outbuf", outsize, "outsize"};
    return pack("MPI_Pack_external_c", &p, position);
}

MPI_ALIAS(Unpack_external);
int PMPI_Unpack_external(const char datarep[], const void *inbuf, MPI_Aint insize, MPI_Aint *position, void *outbuf, int outcount,
                         MPI_Datatype datatype)
{
    struct packing p = {datarep, outbuf, "outbuf", outcount, "outcount", datatype, inbuf, "inbuf", insize, "insize"};
    return unpack("MPI_Unpack_external", &p, position);
}

MPI_ALIAS(Unpack_external_c);
int PMPI_Unpack_external_c(const char datarep[], const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf,
                           MPI_Count outcount, MPI_Datatype datatype)
{
    struct packing p = {datarep, outbuf, "outbuf", outcount, "outcount", datatype, inbuf, "inbuf", insize, "insize"};
    return unpack("MPI_Unpack_external_c", &p, position);
}

static int external_size(const char *call, const char *datarep, int64_t incount, MPI_Datatype datatype, int64_t *size)
{
    check_running(call);
    int rc = check_datarep(call, datarep);
    if (!rc) rc = check_negative(call, "incount", incount, MPI_ERR_COUNT);
    if (rc) return rc;
    struct type *t = type_of(datatype);
    if (!t || t->size < 0) return bad_type(NULL, call, datatype, "datatype");
    if (!size) return bad_null(NULL, call, "size");
    if (__builtin_mul_overflow(incount, t->external, size))
        return report(NULL, call, MPI_ERR_COUNT, "argument incount is %lld: the data are too large to be addressed", (long long)incount);
    return MPI_SUCCESS;
}

MPI_ALIAS(Pack_external_size);
int PMPI_Pack_external_size(const char datarep[], int incount, MPI_Datatype datatype, MPI_Aint *size)
{
    return external_size("MPI_Pack_external_size", datarep, incount, datatype, size);
}

MPI_ALIAS(Pack_external_size_c);
int PMPI_Pack_external_size_c(const char datarep[], MPI_Count incount, MPI_Datatype datatype, MPI_Count *size)
{
    return external_size("MPI_Pack_external_size_c", datarep, incount, datatype, size);
}
