/*
 * pack_external.c - entry points: packing in the portable representation "external32"
 * (MPI-5.0 section 5.3). They have no communicator; the error handler is that of
 * MPI_COMM_SELF.
 */
#include "mpi/packing.h"
#include "type/external.h"

#include <string.h>

static int check_datarep(const char *call, const char *datarep)
{
    if (!datarep) return bad_null(NULL, call, "datarep");
    if (!strcmp(datarep, "external32")) return MPI_SUCCESS;
    return report(NULL, call, MPI_ERR_ARG, "argument datarep is \"%s\"; there is \"external32\" only", datarep);
}

static int check(const char *call, const char *datarep, const struct packing *p, const int64_t *position,
                 struct external_cursor *cursor)
{
    check_running(call);
    int rc = check_datarep(call, datarep);
    if (!rc) rc = packing_check(NULL, call, p);
    if (rc) return rc;
    if (!position) return bad_null(NULL, call, "position");
    rc = external_open(cursor, type_of(p->datatype), p->count, p->typed);
    return rc ? report_code(NULL, call, rc) : packing_room(NULL, call, p, *position, cursor->total);
}

static int pack(const char *call, const char *datarep, const struct packing *p, int64_t *position)
{
    struct external_cursor cursor;
    size_t n;
    int rc = check(call, datarep, p, position, &cursor);
    if (rc) return rc;
    rc = external_pack(&cursor, (char *)(uintptr_t)p->packed + *position, cursor.total, &n);
    if (!rc) *position += (int64_t)n;
    return report_if(NULL, call, rc);
}

static int unpack(const char *call, const char *datarep, const struct packing *p, int64_t *position)
{
    struct external_cursor cursor;
    size_t n;
    int rc = check(call, datarep, p, position, &cursor);
    if (rc) return rc;
    rc = external_unpack(&cursor, (const char *)p->packed + *position, cursor.total, &n);
    if (!rc) *position += (int64_t)n;
    return report_if(NULL, call, rc);
}

MPI_ALIAS(Pack_external);
int PMPI_Pack_external(const char datarep[], const void *inbuf, int incount, MPI_Datatype datatype, void *outbuf,
                       MPI_Aint outsize, MPI_Aint *position)
{
    struct packing p = {inbuf, "inbuf", incount, "incount", datatype, outbuf, "outbuf", outsize, "outsize"};
    return pack("MPI_Pack_external", datarep, &p, position);
}

MPI_ALIAS(Pack_external_c);
int PMPI_Pack_external_c(const char datarep[], const void *inbuf, MPI_Count incount, MPI_Datatype datatype, void *outbuf,
                         MPI_Count outsize, MPI_Count *position)
{
    struct packing p = {inbuf, "inbuf", incount, "incount", datatype, outbuf, "outbuf", outsize, "outsize"};
    return pack("MPI_Pack_external_c", datarep, &p, position);
}

MPI_ALIAS(Unpack_external);
int PMPI_Unpack_external(const char datarep[], const void *inbuf, MPI_Aint insize, MPI_Aint *position, void *outbuf, int outcount,
                         MPI_Datatype datatype)
{
    struct packing p = {outbuf, "outbuf", outcount, "outcount", datatype, inbuf, "inbuf", insize, "insize"};
    return unpack("MPI_Unpack_external", datarep, &p, position);
}

MPI_ALIAS(Unpack_external_c);
int PMPI_Unpack_external_c(const char datarep[], const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf,
                           MPI_Count outcount, MPI_Datatype datatype)
{
    struct packing p = {outbuf, "outbuf", outcount, "outcount", datatype, inbuf, "inbuf", insize, "insize"};
    return unpack("MPI_Unpack_external_c", datarep, &p, position);
}

static int external_size(const char *call, const char *datarep, int64_t incount, MPI_Datatype datatype, int64_t *size)
{
    check_running(call);
    int rc = check_datarep(call, datarep);
    if (rc) return rc;
    if (incount < 0) return report(NULL, call, MPI_ERR_COUNT, "argument incount is %lld, which is negative", (long long)incount);
    struct type *t = type_of(datatype);
    if (!t || t->size < 0) return bad_type(NULL, call, datatype, "datatype");
    if (!size) return bad_null(NULL, call, "size");
    int64_t bytes;
    if (__builtin_mul_overflow(incount, t->external, &bytes)) return too_many(NULL, call, "incount", incount, 1, t);
    *size = bytes;
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
