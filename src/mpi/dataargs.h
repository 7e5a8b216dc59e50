/*
 * dataargs.h - the check of the data arguments of a call: `count` elements of a datatype at an address. All calls that have
 * such arguments use it.
 *
 * A correct call costs two comparisons, which are inlined. The first finds a negative count, data beyond the address space
 * and a datatype that is not committed (type_takes). The second finds MPI_BOTTOM and MPI_IN_PLACE. Errors are worded out of
 * line, in dataargs.c.
 */
#ifndef TERN_MPI_DATAARGS_H
#define TERN_MPI_DATAARGS_H

#include "mpi/report.h"

/* The names of such arguments, for the words. */
struct data_names {
    const char *buf, *count, *type;
};
extern const struct data_names data_plain;    /* buf, count, datatype */
extern const struct data_names data_buffer;   /* buffer, count, datatype: of a broadcast */
extern const struct data_names data_sent;     /* sendbuf, sendcount, sendtype */
extern const struct data_names data_received; /* recvbuf, recvcount, recvtype */

/* At NULL, which is MPI_BOTTOM, a predefined type has no data; a derived one may have some at absolute addresses. */
bool null_buffer_ok(int64_t count, const struct type *);

/* Not for a buffer that may be MPI_IN_PLACE, which is 1. */
static inline bool buffer_ok(const void *buf, int64_t count, const struct type *t)
{
    return likely((uintptr_t)buf > (uintptr_t)MPI_IN_PLACE) || (!buf && null_buffer_ok(count, t));
}

static inline bool data_ok(const void *buf, int64_t count, const struct type *t)
{
    return likely(t && type_takes(t, count)) && buffer_ok(buf, count, t);
}

/* The same for n >= 1 such blocks one behind the other. */
static inline bool blocks_ok(const void *buf, int64_t count, int64_t n, const struct type *t)
{
    int64_t total;
    return likely(t && !__builtin_mul_overflow(count, n, &total) && type_takes(t, total)) && buffer_ok(buf, total, t);
}

/*
 * Each reports what is wrong with the arguments that it is given, and returns the class; MPI_SUCCESS if nothing is.
 * `on`: see report.h. bad_amount looks at all but the buffer.
 */
int bad_amount(const void *on, const char *call, const struct data_names *, int64_t count, int64_t n,
               MPI_Datatype) TERN_COLD;
int bad_blocks(const void *on, const char *call, const struct data_names *, const void *buf, int64_t count, int64_t n,
               MPI_Datatype) TERN_COLD;
static inline int bad_data(const void *on, const char *call, const struct data_names *names, const void *buf,
                           int64_t count, MPI_Datatype type)
{
    return bad_blocks(on, call, names, buf, count, 1, type);
}

/*
 * No data for, or from, MPI_PROC_NULL: its datatype may be MPI_DATATYPE_NULL, since nothing is ever looked at. (The
 * standard does not say so; MPICH takes it, and programs rely on it.) Asked when data_ok has said no; MPI_BYTE then
 * stands for it.
 */
bool data_of_nobody(int64_t count, MPI_Datatype, int rank) TERN_COLD;

/* These report, whatever the arguments. `n`: how many such blocks there are, 1 where that means nothing. */
int bad_buffer(const void *on, const char *call, const void *buf,
               const char *argument) TERN_COLD; /* NULL or MPI_IN_PLACE */
int bad_aliases(const void *on, const char *call, const char *a, const char *b) TERN_COLD;
int too_many(const void *on, const char *call, const char *argument, int64_t count, int64_t n,
             const struct type *) TERN_COLD;

/* Where the first element of (count x t) at buf + off has its first byte; 0 if there is no data. */
static inline uintptr_t first_byte(const void *buf, int64_t off, int64_t count, const struct type *t)
{
    return count && t->size ? (uintptr_t)buf + (uintptr_t)off + (uintptr_t)t->true_lb : 0;
}

#endif
