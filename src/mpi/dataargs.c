/* dataargs.c - words for wrong data arguments; see dataargs.h. */
#include "mpi/dataargs.h"

#include <stdio.h>

const struct data_names data_plain = {"buf", "count", "datatype"};
const struct data_names data_buffer = {"buffer", "count", "datatype"};
const struct data_names data_sent = {"sendbuf", "sendcount", "sendtype"};
const struct data_names data_received = {"recvbuf", "recvcount", "recvtype"};

bool null_buffer_ok(int64_t count, const struct type *t) { return !count || !t->predefined || !t->size; }

bool data_of_nobody(int64_t count, MPI_Datatype h, int rank)
{
    return !count && h == MPI_DATATYPE_NULL && rank == MPI_PROC_NULL;
}

int too_many(const void *on, const char *call, const char *argument, int64_t count, int64_t n, const struct type *t)
{
    char each[40] = "";
    long long step = (long long)(t->extent > t->size ? t->extent : t->size);
    if (n > 1) snprintf(each, sizeof each, " in each of %lld blocks", (long long)n);
    return report(on, call, MPI_ERR_COUNT,
                  "argument %s is %lld%s, of a datatype of %lld bytes: more than can be addressed", argument,
                  (long long)count, each, step);
}

int bad_amount(const void *on, const char *call, const struct data_names *names, int64_t count, int64_t n,
               MPI_Datatype h)
{
    struct type *t = type_of(h);
    int64_t total;
    if (count < 0) return bad_count_named(on, call, count, names->count);
    if (!type_ready(t)) return bad_type(on, call, h, names->type);
    if (__builtin_mul_overflow(count, n, &total) || !type_takes(t, total))
        return too_many(on, call, names->count, count, n, t);
    return MPI_SUCCESS;
}

int bad_blocks(const void *on, const char *call, const struct data_names *names, const void *buf, int64_t count,
               int64_t n, MPI_Datatype h)
{
    int rc = bad_amount(on, call, names, count, n, h);
    if (rc) return rc;
    return buffer_ok(buf, count, type_of(h)) ? MPI_SUCCESS : bad_buffer(on, call, buf, names->buf);
}

/* In place is of collectives, and not between two groups. */
static const char *where_not(const void *on)
{
    const struct comm *c = on;
    return c && handle_is(on, HANDLE_COMM) && c->inter ? "on an intercommunicator" : "here";
}

int bad_buffer(const void *on, const char *call, const void *buf, const char *argument)
{
    if (buf == MPI_IN_PLACE)
        return report(on, call, MPI_ERR_BUFFER, "argument %s is MPI_IN_PLACE, which is not allowed %s", argument,
                      where_not(on));
    return report(on, call, MPI_ERR_BUFFER, "argument %s is NULL though there is data to move", argument);
}

int bad_aliases(const void *on, const char *call, const char *a, const char *b)
{
    return report(on, call, MPI_ERR_BUFFER,
                  "arguments %s and %s have data at the same address; buffers must not overlap", a, b);
}
