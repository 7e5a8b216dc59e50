/*
 * status.c - entry points: what a status says and what may be put into it (MPI-5.0
 * sections 3.2.5, 5.1.11, 13.3).
 */
#include "mpi/dataargs.h"

/* A type whose elements can be counted. */
static inline bool countable(const struct type *t) { return likely(t && t->size >= 0); }

static TERN_COLD int bad_count_call(const char *call, const MPI_Status *status, MPI_Datatype datatype, const void *count)
{
    check_running(call);
    if (!status || !count) return bad_null(NULL, call, status ? "count" : "status");
    return bad_type(NULL, call, datatype, "datatype");
}

/* A count that does not fit into the user's variable is undefined (3.2.5). */
static int narrow(int64_t n) { return n > INT32_MAX ? MPI_UNDEFINED : (int)n; }

MPI_ALIAS(Get_count);
int PMPI_Get_count(const MPI_Status *status, MPI_Datatype datatype, int *count)
{
    struct type *t = type_of(datatype);
    if (unlikely(!status || !count || !countable(t))) return bad_count_call("MPI_Get_count", status, datatype, count);
    *count = narrow(type_count_whole(t, status_bytes(status)));
    return MPI_SUCCESS;
}

MPI_ALIAS(Get_count_c);
int PMPI_Get_count_c(const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count)
{
    struct type *t = type_of(datatype);
    if (unlikely(!status || !count || !countable(t))) return bad_count_call("MPI_Get_count_c", status, datatype, count);
    *count = type_count_whole(t, status_bytes(status));
    return MPI_SUCCESS;
}

MPI_ALIAS(Get_elements);
int PMPI_Get_elements(const MPI_Status *status, MPI_Datatype datatype, int *count)
{
    struct type *t = type_of(datatype);
    if (!status || !count || !countable(t)) return bad_count_call("MPI_Get_elements", status, datatype, count);
    *count = narrow(type_count_elements(t, status_bytes(status)));
    return MPI_SUCCESS;
}

static int get_elements(const char *call, const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count)
{
    struct type *t = type_of(datatype);
    if (!status || !count || !countable(t)) return bad_count_call(call, status, datatype, count);
    *count = type_count_elements(t, status_bytes(status));
    return MPI_SUCCESS;
}

MPI_ALIAS(Get_elements_x);
int PMPI_Get_elements_x(const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count)
{
    return get_elements("MPI_Get_elements_x", status, datatype, count);
}

MPI_ALIAS(Get_elements_c);
int PMPI_Get_elements_c(const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count)
{
    return get_elements("MPI_Get_elements_c", status, datatype, count);
}

/* ---- putting in ---- */

static int set_elements(const char *call, MPI_Status *status, MPI_Datatype datatype, int64_t count)
{
    struct type *t = type_of(datatype);
    if (!status || !countable(t)) return bad_count_call(call, status, datatype, &count);
    if (count < 0) return bad_count(NULL, call, count);
    int64_t bytes; /* of as many whole elements as these basic ones need */
    if (t->elements && __builtin_mul_overflow(count / t->elements + 1, t->size, &bytes))
        return too_many(NULL, call, "count", count, 1, t);
    status_set_bytes(status, type_bytes_of_elements(t, count));
    return MPI_SUCCESS;
}

MPI_ALIAS(Status_set_elements);
int PMPI_Status_set_elements(MPI_Status *status, MPI_Datatype datatype, int count)
{
    return set_elements("MPI_Status_set_elements", status, datatype, count);
}

MPI_ALIAS(Status_set_elements_x);
int PMPI_Status_set_elements_x(MPI_Status *status, MPI_Datatype datatype, MPI_Count count)
{
    return set_elements("MPI_Status_set_elements_x", status, datatype, count);
}

MPI_ALIAS(Status_set_elements_c);
int PMPI_Status_set_elements_c(MPI_Status *status, MPI_Datatype datatype, MPI_Count count)
{
    return set_elements("MPI_Status_set_elements_c", status, datatype, count);
}

MPI_ALIAS(Status_set_cancelled);
int PMPI_Status_set_cancelled(MPI_Status *status, int flag)
{
    if (!status) return bad_null(NULL, "MPI_Status_set_cancelled", "status");
    status_set_cancelled(status, flag != 0);
    return MPI_SUCCESS;
}

/* ---- the three public fields by function ---- */

static int null_argument(const char *call, const MPI_Status *status, const char *value)
{
    return bad_null(NULL, call, status ? value : "status");
}

MPI_ALIAS(Status_get_source);
int PMPI_Status_get_source(const MPI_Status *status, int *source)
{
    if (!status || !source) return null_argument("MPI_Status_get_source", status, "source");
    *source = status->MPI_SOURCE;
    return MPI_SUCCESS;
}

MPI_ALIAS(Status_get_tag);
int PMPI_Status_get_tag(const MPI_Status *status, int *tag)
{
    if (!status || !tag) return null_argument("MPI_Status_get_tag", status, "tag");
    *tag = status->MPI_TAG;
    return MPI_SUCCESS;
}

MPI_ALIAS(Status_get_error);
int PMPI_Status_get_error(const MPI_Status *status, int *error)
{
    if (!status || !error) return null_argument("MPI_Status_get_error", status, "error");
    *error = status->MPI_ERROR;
    return MPI_SUCCESS;
}

MPI_ALIAS(Status_set_source);
int PMPI_Status_set_source(MPI_Status *status, int source)
{
    if (!status) return bad_null(NULL, "MPI_Status_set_source", "status");
    status->MPI_SOURCE = source;
    return MPI_SUCCESS;
}

MPI_ALIAS(Status_set_tag);
int PMPI_Status_set_tag(MPI_Status *status, int tag)
{
    if (!status) return bad_null(NULL, "MPI_Status_set_tag", "status");
    status->MPI_TAG = tag;
    return MPI_SUCCESS;
}

MPI_ALIAS(Status_set_error);
int PMPI_Status_set_error(MPI_Status *status, int error)
{
    if (!status) return bad_null(NULL, "MPI_Status_set_error", "status");
    status->MPI_ERROR = error;
    return MPI_SUCCESS;
}
