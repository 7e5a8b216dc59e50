/*
 * pack.c - entry points: explicit packing (MPI-5.0 section 5.2). Packed data is the
 * bytes of the elements in order, so every position is also one inside a message.
 */
#include "mpi/packing.h"
#include "type/cursor.h"

/* ---- checks, of external packing too ---- */

int packing_check(const void *on, const char *call, const struct packing *p)
{
    struct type *t = type_of(p->datatype);
    struct data_names names = {p->typed_name, p->count_name, "datatype"};
    if (!data_ok(p->typed, p->count, t)) return bad_data(on, call, &names, p->typed, p->count, p->datatype);
    if (p->size >= 0) return MPI_SUCCESS;
    return report(on, call, MPI_ERR_ARG, "argument %s is %lld, which is negative", p->size_name, (long long)p->size);
}

int packing_room(const void *on, const char *call, const struct packing *p, int64_t position, size_t total)
{
    if (position < 0 || position > p->size)
        return report(on, call, MPI_ERR_ARG, "argument position is %lld, outside of the %lld bytes of %s", (long long)position,
                      (long long)p->size, p->packed_name);
    if ((int64_t)total > p->size - position)
        return report(on, call, MPI_ERR_TRUNCATE, "argument %s is %lld, but the data are %zu bytes, from position %lld on",
                      p->size_name, (long long)p->size, total, (long long)position);
    return !total || (p->packed && p->packed != MPI_IN_PLACE) ? MPI_SUCCESS
                                                              : bad_buffer(on, call, p->packed, p->packed_name);
}

/* ---- packing for messages ---- */

static int check(const char *call, const struct packing *p, MPI_Comm comm, int64_t position, struct type_cursor *cursor)
{
    struct comm *c = comm_of(comm);
    if (!c) return bad_comm(call, comm);
    int rc = packing_check(c, call, p);
    if (rc) return rc;
    type_cursor_init(cursor, type_of(p->datatype), p->count, p->typed);
    return packing_room(c, call, p, position, cursor->total);
}

static int pack(const char *call, const struct packing *p, MPI_Comm comm, int64_t *position)
{
    struct type_cursor cursor;
    int rc = check(call, p, comm, *position, &cursor);
    if (rc) return rc;
    *position += (int64_t)type_pack(&cursor, (char *)(uintptr_t)p->packed + *position, cursor.total);
    return MPI_SUCCESS;
}

static int unpack(const char *call, const struct packing *p, MPI_Comm comm, int64_t *position)
{
    struct type_cursor cursor;
    int rc = check(call, p, comm, *position, &cursor);
    if (rc) return rc;
    *position += (int64_t)type_unpack(&cursor, (const char *)p->packed + *position, cursor.total);
    return MPI_SUCCESS;
}

MPI_ALIAS(Pack);
int PMPI_Pack(const void *inbuf, int incount, MPI_Datatype datatype, void *outbuf, int outsize, int *position, MPI_Comm comm)
{
    struct packing p = {inbuf, "inbuf", incount, "incount", datatype, outbuf, "outbuf", outsize, "outsize"};
    if (!position) return bad_null(NULL, "MPI_Pack", "position");
    int64_t at = *position;
    int rc = pack("MPI_Pack", &p, comm, &at);
    if (!rc) *position = (int)at;
    return rc;
}

MPI_ALIAS(Pack_c);
int PMPI_Pack_c(const void *inbuf, MPI_Count incount, MPI_Datatype datatype, void *outbuf, MPI_Count outsize, MPI_Count *position,
                MPI_Comm comm)
{
    struct packing p = {inbuf, "inbuf", incount, "incount", datatype, outbuf, "outbuf", outsize, "outsize"};
    if (!position) return bad_null(NULL, "MPI_Pack_c", "position");
    return pack("MPI_Pack_c", &p, comm, position);
}

MPI_ALIAS(Unpack);
int PMPI_Unpack(const void *inbuf, int insize, int *position, void *outbuf, int outcount, MPI_Datatype datatype, MPI_Comm comm)
{
    struct packing p = {outbuf, "outbuf", outcount, "outcount", datatype, inbuf, "inbuf", insize, "insize"};
    if (!position) return bad_null(NULL, "MPI_Unpack", "position");
    int64_t at = *position;
    int rc = unpack("MPI_Unpack", &p, comm, &at);
    if (!rc) *position = (int)at;
    return rc;
}

MPI_ALIAS(Unpack_c);
int PMPI_Unpack_c(const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf, MPI_Count outcount, MPI_Datatype datatype,
                  MPI_Comm comm)
{
    struct packing p = {outbuf, "outbuf", outcount, "outcount", datatype, inbuf, "inbuf", insize, "insize"};
    if (!position) return bad_null(NULL, "MPI_Unpack_c", "position");
    return unpack("MPI_Unpack_c", &p, comm, position);
}

/* Bytes that (count x datatype) take when packed; < 0: the reported class, negated. */
static int64_t pack_size(const char *call, int64_t incount, MPI_Datatype datatype, MPI_Comm comm, const void *size)
{
    int64_t bytes;
    struct comm *c = comm_of(comm);
    if (!c) return -bad_comm(call, comm);
    if (incount < 0) return -report(c, call, MPI_ERR_COUNT, "argument incount is %lld, which is negative", (long long)incount);
    struct type *t = type_of(datatype);
    if (!t || t->size < 0) return -bad_type(c, call, datatype, "datatype");
    if (!size) return -bad_null(c, call, "size");
    if (__builtin_mul_overflow(incount, t->size, &bytes)) return -too_many(c, call, "incount", incount, 1, t);
    return bytes;
}

MPI_ALIAS(Pack_size);
int PMPI_Pack_size(int incount, MPI_Datatype datatype, MPI_Comm comm, int *size)
{
    int64_t bytes = pack_size("MPI_Pack_size", incount, datatype, comm, size);
    if (bytes < 0) return (int)-bytes;
    *size = bytes > INT32_MAX ? MPI_UNDEFINED : (int)bytes;
    return MPI_SUCCESS;
}

MPI_ALIAS(Pack_size_c);
int PMPI_Pack_size_c(MPI_Count incount, MPI_Datatype datatype, MPI_Comm comm, MPI_Count *size)
{
    int64_t bytes = pack_size("MPI_Pack_size_c", incount, datatype, comm, size);
    if (bytes < 0) return (int)-bytes;
    *size = bytes;
    return MPI_SUCCESS;
}
