/*
 * err.h - error codes and words of everything below the entry points.
 *
 * A function that can fail returns 0 or one of the negative codes below. Where
 * the failure is detected it is put in words with err_set (who, what, why, what
 * to do); callers just pass the code up. Only src/mpi turns codes into MPI error
 * classes and prints or hands out the words.
 *
 * Threads: the words are per thread. Those of an operation that one thread has found to fail, and another one reports, are kept
 * in between (err_keep).
 */
#ifndef TERN_BASE_ERR_H
#define TERN_BASE_ERR_H

#include "base/compiler.h"

enum tern_err {
    TERN_DONE = 1, /* no error: complete on return, of calls that may also complete later */
    TERN_OK = 0,
    TERN_AGAIN = -1,        /* not now: nothing reserved, nothing sent; try later */
    TERN_ERR_NOMEM = -2,    /* memory or another resource is exhausted */
    TERN_ERR_ARG = -3,      /* an argument is wrong in a way no other code names */
    TERN_ERR_TRUNCATE = -4, /* message longer than the receive buffer */
    TERN_ERR_TYPE = -5,     /* datatype unusable here */
    TERN_ERR_OP = -6,       /* operator unusable here (with this type) */
    TERN_ERR_COUNT = -7,
    TERN_ERR_RANK = -8,
    TERN_ERR_TAG = -9,
    TERN_ERR_COMM = -10,
    TERN_ERR_GROUP = -11,
    TERN_ERR_BUFFER = -12,  /* attached buffer too small, null buffer, overlap */
    TERN_ERR_REQUEST = -13,
    TERN_ERR_PEER = -14,    /* the other process has died, or the connection to it broke */
    TERN_ERR_SYSTEM = -15,  /* a system call failed; the words have its reason */
    TERN_ERR_UNSUPPORTED = -16,
    TERN_ERR_INTERN = -17,  /* an invariant of the library does not hold */
    TERN_ERR_NOT_FOUND = -18,
    TERN_ERR_PENDING = -19,
    TERN_ERR_INFO = -20,
    TERN_ERR_ROOT = -21,
    TERN_ERR_TOPOLOGY = -22,
    TERN_ERR_KEYVAL = -23,
    TERN_ERR_DIMS = -24,
    TERN_ERR_PROGRAM = -25, /* a collective schedule is malformed */
    TERN_ERR_CONVERSION = -26, /* a value does not fit into another representation */
    TERN_ERR_DISAGREE = -27, /* the ranks of a communicator do not call the same collectives */
    TERN_ERR_DUPLICATE = -28, /* a name is published already */
    TERN_ERR_SPAWN = -29, /* processes could not be started */
    TERN_ERR_ABSENT = -30,  /* the other process has left in order, or was never to be reached */
    TERN_ERR_WIN_SYNC = -31,   /* calls on a window in the wrong order */
    TERN_ERR_WIN_RANGE = -32,  /* an operation outside of the window's memory */
    TERN_ERR_WIN_SHARED = -33, /* the memory of a window cannot be shared */
    TERN_ERR_WIN_ATTACH = -34, /* memory cannot be attached to a window, or is not attached */
    TERN_ERR_WIN_CONFLICT = -35, /* two operations on a window that must not be concurrent */
    TERN_ERR_PORT = -36, /* no name of a port, or nobody is there */
    TERN_ERR_NAME = -37, /* a name is not published */
    TERN_ERR_SERVICE = -38, /* a name cannot be withdrawn */
    TERN_ERR_LAST = -39
};

/* Another process is not there, for whatever reason. */
static inline bool err_is_of_peer(int code) { return code == TERN_ERR_PEER || code == TERN_ERR_ABSENT; }

/* Records the words of a failure and returns `code`. The words recorded before may be among the arguments. */
int err_set(int code, const char *fmt, ...) TERN_PRINTF(2, 3) TERN_COLD;

/* err_set(TERN_ERR_SYSTEM, ...) with ": <strerror(errno)>" added. */
int err_sys(const char *fmt, ...) TERN_PRINTF(1, 2) TERN_COLD;

/* The words recorded last by this thread ("" if none), and forgetting them. */
const char *err_words(void);
int err_code(void); /* the code they belong to; 0: there are none */
void err_clear(void);

/* Do the words recorded last say why a call fails with `code`? Not if they are of an earlier failure of another kind, which
 * the library has dealt with, or if another thread has met the failure. */
bool err_explains(int code);

/*
 * err_keep keeps the words that this thread recorded last for the operation `of`, which fails with `code`; if they are of
 * another failure, none are kept for it. Returns `code`. err_recall makes the words that are kept for `of` and `code` those that
 * the calling thread recorded last, and keeps them no longer; nothing changes where none are. Only the last ERR_KEPT are kept, so
 * those of an operation that nobody asks for take no memory. Any thread; `of` is a name only.
 */
enum { ERR_KEPT = 32 };
int err_keep(const void *of, int code) TERN_COLD;
void err_recall(const void *of, int code) TERN_COLD;

#endif
