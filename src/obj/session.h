/*
 * session.h - sessions (MPI-5.0 section 11.3): a handle with an error handler, a level
 * of thread support, hints and a buffer for buffered sends. What sessions share - the
 * library itself - is opened and closed in src/mpi/life.c.
 *
 * Groups and communicators made from a session refer to it (struct comm.session), so
 * that its memory outlives MPI_Session_finalize as long as they do; the handle does not.
 *
 * Threads: any; immutable but for the error handler, the buffer and the references.
 */
#ifndef TERN_OBJ_SESSION_H
#define TERN_OBJ_SESSION_H

#include "obj/errhandler.h"
#include "obj/info.h"

struct session {
    struct handle h;
    struct errhandler *errh;
    int level;          /* MPI_THREAD_..., what was asked for and is given */
    bool over;          /* finalised: no longer a handle for users */
    struct info *hints; /* what MPI_Session_get_info tells, owned */
    void *bsend;        /* buffer attached to this session (src/pt2pt/bsend) */
};

static inline struct session *session_of(MPI_Session h)
{
    struct session *s = handle_get(h, HANDLE_SESSION);
    return s && !s->over ? s : NULL;
}
static inline MPI_Session session_handle(struct session *s) { return (MPI_Session)s; }

/* NULL with words when memory is out. */
struct session *session_new(struct errhandler *, int level, const struct info *asked);
struct session *session_ref(struct session *);
void session_unref(struct session *); /* NULL is ignored */

/* The level of thread support that `asked` names (key "thread_level"); MPI_THREAD_SINGLE - 1 for a word that is none. */
int session_level(const struct info *asked, int otherwise);
const char *session_level_name(int level);

#endif
