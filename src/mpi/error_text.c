/* error_text.c - names and sentences of the error classes (MPI-5.0 section 9.4). */
#include "mpi/report.h"

static const struct text {
    int klass;
    const char *name, *sentence;
} texts[] = {
#define TEXT(klass, sentence) {klass, #klass, sentence}
    TEXT(MPI_SUCCESS, "no error"),
    TEXT(MPI_ERR_BUFFER, "invalid buffer"),
    TEXT(MPI_ERR_COUNT, "invalid count"),
    TEXT(MPI_ERR_TYPE, "invalid datatype"),
    TEXT(MPI_ERR_TAG, "invalid tag"),
    TEXT(MPI_ERR_COMM, "invalid communicator"),
    TEXT(MPI_ERR_RANK, "invalid rank"),
    TEXT(MPI_ERR_REQUEST, "invalid request"),
    TEXT(MPI_ERR_ROOT, "invalid root"),
    TEXT(MPI_ERR_GROUP, "invalid group"),
    TEXT(MPI_ERR_OP, "invalid reduction operation"),
    TEXT(MPI_ERR_TOPOLOGY, "invalid topology"),
    TEXT(MPI_ERR_DIMS, "invalid dimensions"),
    TEXT(MPI_ERR_ARG, "invalid argument"),
    TEXT(MPI_ERR_UNKNOWN, "unknown error"),
    TEXT(MPI_ERR_TRUNCATE, "message longer than the receive buffer"),
    TEXT(MPI_ERR_OTHER, "error of another kind"),
    TEXT(MPI_ERR_INTERN, "internal error of the library"),
    TEXT(MPI_ERR_PENDING, "operation not complete"),
    TEXT(MPI_ERR_IN_STATUS, "error code is in the status"),
    TEXT(MPI_ERR_ACCESS, "permission denied"),
    TEXT(MPI_ERR_AMODE, "invalid access mode"),
    TEXT(MPI_ERR_ASSERT, "invalid assertion"),
    TEXT(MPI_ERR_BAD_FILE, "invalid file name"),
    TEXT(MPI_ERR_BASE, "invalid base of memory"),
    TEXT(MPI_ERR_CONVERSION, "error in a data conversion function"),
    TEXT(MPI_ERR_DISP, "invalid displacement"),
    TEXT(MPI_ERR_DUP_DATAREP, "data representation defined already"),
    TEXT(MPI_ERR_FILE_EXISTS, "file exists"),
    TEXT(MPI_ERR_FILE_IN_USE, "file is open in another process"),
    TEXT(MPI_ERR_FILE, "invalid file handle"),
    TEXT(MPI_ERR_INFO_KEY, "info key too long or empty"),
    TEXT(MPI_ERR_INFO_NOKEY, "no such info key"),
    TEXT(MPI_ERR_INFO_VALUE, "info value too long or empty"),
    TEXT(MPI_ERR_INFO, "invalid info object"),
    TEXT(MPI_ERR_IO, "input or output failed"),
    TEXT(MPI_ERR_KEYVAL, "invalid attribute key"),
    TEXT(MPI_ERR_LOCKTYPE, "invalid lock type"),
    TEXT(MPI_ERR_NAME, "service name is not published"),
    TEXT(MPI_ERR_NO_MEM, "memory is exhausted"),
    TEXT(MPI_ERR_NOT_SAME, "argument or order of calls differs between processes"),
    TEXT(MPI_ERR_NO_SPACE, "not enough space"),
    TEXT(MPI_ERR_NO_SUCH_FILE, "no such file"),
    TEXT(MPI_ERR_PORT, "invalid port name"),
    TEXT(MPI_ERR_QUOTA, "quota exceeded"),
    TEXT(MPI_ERR_READ_ONLY, "file or file system is read-only"),
    TEXT(MPI_ERR_RMA_CONFLICT, "conflicting accesses to a window"),
    TEXT(MPI_ERR_RMA_SYNC, "wrong synchronisation of one-sided calls"),
    TEXT(MPI_ERR_SERVICE, "invalid service name"),
    TEXT(MPI_ERR_SIZE, "invalid size"),
    TEXT(MPI_ERR_SPAWN, "processes could not be spawned"),
    TEXT(MPI_ERR_UNSUPPORTED_DATAREP, "data representation is not supported"),
    TEXT(MPI_ERR_UNSUPPORTED_OPERATION, "operation is not supported"),
    TEXT(MPI_ERR_WIN, "invalid window"),
    TEXT(MPI_ERR_RMA_RANGE, "target memory is not in the window"),
    TEXT(MPI_ERR_RMA_ATTACH, "memory cannot be attached"),
    TEXT(MPI_ERR_RMA_FLAVOR, "wrong flavor of window"),
    TEXT(MPI_ERR_RMA_SHARED, "memory cannot be shared"),
    TEXT(MPI_ERR_SESSION, "invalid session"),
    TEXT(MPI_ERR_PROC_ABORTED, "a process has aborted"),
    TEXT(MPI_ERR_VALUE_TOO_LARGE, "value too large for the type of the argument"),
    TEXT(MPI_ERR_ERRHANDLER, "invalid error handler"),
    TEXT(MPI_ERR_ABI, "invalid use of the binary interface calls"),
    TEXT(MPI_ERR_LASTCODE, "last error code"),
#undef TEXT
};

static const struct text *find(int klass)
{
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (texts[i].klass == klass) return &texts[i];
    return NULL;
}

const char *error_name(int klass)
{
    const struct text *t = find(klass);
    return t ? t->name : NULL;
}

const char *error_sentence(int klass)
{
    const struct text *t = find(klass);
    return t ? t->sentence : NULL;
}
