/*
 * ask.h - questions of a process to its launcher and their answers: what both sides must know of them.
 *
 *     rank --- hello: the job's secret ---> mpiexec or daemon of its node      a Unix stream socket; its abstract name
 *          --- question ------------------>                                    is in the job block (job_head.socket_id)
 *          <-- answer ---------------------
 *
 * The connection is made when a process has something to ask, so a job that asks nothing pays nothing. A daemon passes
 * a question on to the root, the root of a spawned job to the mpiexec that spawned it; answers come back the same way.
 *
 *      0        4      6        8    12     16
 *      | length | type | status | id | rank | bytes [length]
 *
 * All numbers are in network order. `id` is the asker's number of the question, which its answer repeats; `rank` is the
 * process that asks. An answer has a status: 0, or a code of base/err.h, and then its bytes are a text that says why.
 *
 * Contents are numbers of 32 bits, or of 64 where the list below says (2), and texts: their length with the final zero,
 * then the bytes. A list of texts is their number and then the texts; infos are a list of keys and values in turn. A
 * reader (struct ask_in) never reads beyond its bytes: a field that is missing reads as 0 or "", and `bad` stays set,
 * so that one look at the end is enough.
 *
 * Words (root, daemon, spawned job, line) and who answers what: doc/decisions/asking-the-launcher.md.
 *
 * Threads: plain functions on the caller's memory.
 */
#ifndef TERN_PROC_ASK_H
#define TERN_PROC_ASK_H

#include "base/compiler.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ASK_BYTES_MAX (1u << 20) /* of one question or answer */
#define ASK_NAME_MAX 256         /* a published name, with its final zero */
#define ASK_VALUE_MAX 4096       /* what it stands for, with its final zero */
#define ASK_PAIR_KEY 32          /* bytes: of the key of the connections between two jobs */
#define ASK_TICKET 16            /* bytes */
#define ASK_WHOLE_ENV "tern_whole_env" /* info of ASK_SPAWN, of any value: the variables are all that the processes get */
#define ASK_OFFER_BYTES 16       /* of the question ASK_OFFER */

/* The name of the key of two jobs for PMIx_Get, from the PMIx server of Tern's launcher. */
#define ASK_PAIR_NAME "tern.pair"

/*
 * A process that was started without a launcher starts an mpiexec for itself, with ASK_ALONE_OPTION as its only word. Their
 * line, whose other end has the number ASK_ALONE_LINE there, is a pair of sockets that keep the borders of messages:
 *
 *      process                                                        mpiexec
 *         | the name of the job, with its final zero ------------------> |
 *         | <--- an empty text, with a descriptor of the job block ----- |       or a text that says why there is none
 *         | hello, questions, by the socket that the block names ------> |
 *         | end of file: the process has left MPI, or has ended -------> |
 */
#define ASK_ALONE_OPTION "--tern-singleton"
#define ASK_ALONE_LINE 3
#define ASK_ALONE_TEXT 2048 /* bytes at most, with the final zero */

/* Contents of the question -> contents of the answer. */
enum ask_type {
    ASK_NONE,
    ASK_HELLO,      /* secret[32]: the first message of a process; no answer */
    ASK_ANSWER,     /* with a status */
    ASK_CANCEL,     /* the question `id` needs no answer any more */
    ASK_LOOK,       /* the asking rank has put its card, which a process of another job waits for -> nothing */
    ASK_PUBLISH,    /* name, value -> nothing */
    ASK_UNPUBLISH,  /* name -> nothing */
    ASK_LOOKUP,     /* wait (0 or 1), name -> value, rank and job of the process that has published it */
    ASK_CONNECT,    /* job -> size, key[32] */
    ASK_DISCONNECT, /* job -> nothing */
    ASK_CARD,       /* rank, job -> the card's bytes */
    ASK_SPAWN,      /* apps, and for each: n, directory ("" = none), arguments, variables, infos -> size, job, ns of the
                       scheduling (2), curious (0 or 1) */
    ASK_CONNECTED,  /* job, ns (2): to a launcher that is curious: how long it took to connect to that job -> nothing */
    ASK_WATCH, /* seen, job -> ended (0 or 1), n, n times: rank, status, clean (0 or 1): the processes that have ended
                  after the first `seen` ones. The launcher answers when there is something to tell */
    ASK_FILE,  /* rank, descriptor, key (2), job ("" = the own one): a file of memory that the rank has open
                  -> socket_id (2), ticket[16], for ASK_TAKE at that socket */
    ASK_TAKE,  /* ticket[16]: in place of ASK_HELLO -> nothing, with a descriptor (SCM_RIGHTS) */
    ASK_OF_RANKS, /* not a question: ranks ask those above, the ones below are between launchers only */
    ASK_FETCH,    /* rank, of the job of the launcher that is asked -> the bytes of its card */
    ASK_OFFER,    /* as ASK_FILE, without the job: that of the launcher that is asked */
    ASK_RUN,      /* job that spawns, limit of descriptors (2), command line: the first mpiexec tells the launcher of a spawned
                     job what to start; the first frame on their line; no answer */
    ASK_LAUNCHER, /* its process number: the same launcher says that it has taken the order; its first frame; no answer */
    ASK_STARTED,  /* size, job: the mpiexec of a spawned job tells the first mpiexec that its ranks run -> nothing */
    ASK_FAILED,   /* words: the same, that it cannot start the job; no answer */
    ASK_ENDED,    /* rank, status, clean: the same, that a process of its job has ended -> nothing */
    ASK_STANDING, /* host, what a daemon is told: the root of a spawned job wants a daemon there -> nothing (standing.h) */
    ASK_DAEMON,   /* salt, the same sealed: to the daemon there -> nothing */
    ASK_WITHDRAW, /* name ("" = all that this rank has published) -> nothing, also if it has published no such name */
    ASK_MODEX,    /* rank, job -> the bytes that the rank has put and committed at the PMIx server of its node; answered
                     when they are there */
    ASK_MODEX_OF, /* rank, of the job of the launcher that is asked: otherwise as ASK_MODEX */
    ASK_TYPES
};

struct ask_head {
    uint32_t length;
    uint16_t type;
    int16_t status;
    uint32_t id, rank;
};
static_assert(sizeof(struct ask_head) == 16, "wire format");

/* Between the host's order and the network's, both ways. */
static inline struct ask_head ask_swap(struct ask_head h)
{
    return (struct ask_head){.length = htobe32(h.length),
                             .type = htobe16(h.type),
                             .status = (int16_t)htobe16((uint16_t)h.status),
                             .id = htobe32(h.id),
                             .rank = htobe32(h.rank)};
}

/* The address of the launcher's socket. A name that begins with a zero byte is no file. */
static inline socklen_t ask_address(struct sockaddr_un *a, uint64_t socket_id)
{
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(a->sun_path + 1, sizeof a->sun_path - 1, "tern-ask-%016llx", (unsigned long long)socket_id);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* ---- contents ---- */

struct ask_out {
    uint8_t *bytes;
    size_t n, room;
    bool bad; /* there was no room for all */
};

static inline void ask_put(struct ask_out *o, const void *bytes, size_t n)
{
    if (o->bad || n > o->room - o->n) {
        o->bad = true;
        return;
    }
    if (n) memcpy(o->bytes + o->n, bytes, n);
    o->n += n;
}

static inline void ask_put32(struct ask_out *o, uint32_t v)
{
    v = htobe32(v);
    ask_put(o, &v, sizeof v);
}

static inline void ask_put64(struct ask_out *o, uint64_t v)
{
    v = htobe64(v);
    ask_put(o, &v, sizeof v);
}

static inline void ask_put_text(struct ask_out *o, const char *s)
{
    size_t n = strlen(s) + 1;
    ask_put32(o, (uint32_t)n);
    ask_put(o, s, n);
}

struct ask_in {
    const uint8_t *at, *end;
    bool bad;
};

static inline struct ask_in ask_of(const void *bytes, size_t n)
{
    return (struct ask_in){.at = bytes, .end = (const uint8_t *)bytes + n};
}

static inline const void *ask_get(struct ask_in *in, size_t n)
{
    if (in->bad || (size_t)(in->end - in->at) < n) {
        in->bad = true;
        return NULL;
    }
    in->at += n;
    return in->at - n;
}

static inline uint32_t ask_get32(struct ask_in *in)
{
    uint32_t v = 0;
    const void *at = ask_get(in, sizeof v);
    if (at) memcpy(&v, at, sizeof v);
    return be32toh(v);
}

static inline uint64_t ask_get64(struct ask_in *in)
{
    uint64_t v = 0;
    const void *at = ask_get(in, sizeof v);
    if (at) memcpy(&v, at, sizeof v);
    return be64toh(v);
}

/* Of at most `most` bytes, the final zero among them. It lies in the reader's bytes. */
static inline const char *ask_get_text(struct ask_in *in, size_t most)
{
    uint32_t n = ask_get32(in);
    const char *s = n && n <= most ? ask_get(in, n) : NULL;
    if (s && !s[n - 1] && strlen(s) == n - 1) return s;
    in->bad = true;
    return "";
}

/* Was all there, and is nothing left? */
static inline bool ask_done(const struct ask_in *in) { return !in->bad && in->at == in->end; }

#endif
