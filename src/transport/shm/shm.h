/*
 * shm.h - what the files of the shared-memory transport share:
 *
 *   shm.c         opening, closing, cards, endpoints
 *   memory.c      where segments lie, and how those of peers are mapped
 *   senders.c     entries of senders in a segment, and closing a peer
 *   ring.c        sending and receiving messages
 *   writers.c     sending by several threads
 *   kept.c        messages that are kept beyond their handlers
 *   trim.c        giving the pages of rings back
 *   cma.c         single copies between processes (cross-memory attach)
 *   arena_map.c   mapping the arenas of peers
 *   keys.c        registered memory
 *   neighbours.c  the ends of processes of this node
 *
 * segment.h draws the shared memory.
 *
 * Threads: one at a time, until `share` is called. From then on (tp_ops.threads):
 *
 *   any thread    am_short, am_bcopy, get, put, map, nudge, left, helped, sees: what they read of a shm_ep does not change, but
 *                 for `reserved`, `allowed` and the atomic marks
 *   poll lock     the receiving side: shm_rx, entries of senders, kept records, `leaving`, what has been said last
 *   call lock     connecting, mapping, neighbours
 *   eps_lock      the list of endpoints, which idle walks and connecting changes; a leaf
 */
#ifndef TERN_TRANSPORT_SHM_H
#define TERN_TRANSPORT_SHM_H

#include "base/lock.h"
#include "transport/peer.h"
#include "transport/remote.h"
#include "transport/shm/segment.h"

/* What peers are told about this process. */
struct shm_card {
    uint64_t host;          /* equal if each of two processes may open the other's descriptors, 0: nobody may */
    uint64_t file;          /* the memfd that the segment lies in: equal on processes of one host that have the same */
    uint64_t offset, bytes; /* of the segment in it */
    uint32_t pid, fd;
    uint64_t probe_at, probe; /* private address and the value found there */
    uint64_t near; /* equal if each of two processes can be handed descriptors by the other's launcher, 0: nobody can */
};
static_assert(sizeof(struct shm_card) == 64, "wire format");

/* The sending side towards one peer (tp_ep.priv). */
struct shm_ep {
    union { /* one writer; or several threads: bytes since the beginning (writers.c) */
        char *next;                /* where the next record goes ... */
        _Atomic uint64_t reserved; /* what threads have taken to write to */
    };
    union {
        char *stop;               /* ... if it ends here at the latest: the head last seen, or the end of the ring */
        _Atomic uint64_t allowed; /* up to where they may: with the head last seen */
    };
    uint64_t from;  /* the entry of this process there in the upper half, as in the word of a record */
    struct bell *bell;
    bool fence; /* what bell_check is told */
    bool common;
    _Atomic bool full;     /* the last send found no room; threads: one did since idle looked last */
    _Atomic bool admitted; /* common: it may be written to */
    bool leaving;   /* the last record waits for room; counted in shm_dom.leaving ... */
    bool said_last; /* ... or has been written */
    bool open_to_us; /* pid is its number here too, and we may open its descriptors */
    bool near;       /* its launcher hands them out */
    uint32_t mask;  /* ring bytes - 1 */
    uint32_t lap;   /* bytes sent before this lap of the ring began, modulo 2^32; one writer, as `limit` */
    char *ring;
    uint32_t limit; /* bytes that may have been sent with the head last seen */
    pid_t pid;
    struct shm_box *box;
    struct peer *peer;
    struct shm_segment *segment;
    size_t mapped;
    struct shm_arena_map *arena_map; /* the peer's arena mapped (arena_map.c), NULL until it is needed */
    struct link in_all;   /* in shm_dom.eps */
    uint32_t laps;    /* that were ended; one writer */
    uint32_t trimmed; /* bytes sent when the ring was emptied of pages last (shm_trim) */
};

static_assert(offsetof(struct shm_ep, mask) < CACHE_LINE, "a message with room before `stop` reads the first line only");
static_assert(sizeof(struct shm_ep) <= 2 * CACHE_LINE, "there is one for each process of a node that this one sends to");

/* The receiving side of one box; all zeros until the box is given out (shm_boxes_more). */
struct shm_rx {
    char *ring;
    uint32_t head;  /* consumed */
    uint32_t given; /* head as last told to the sender */
    struct shm_box *box;
    struct peer *peer; /* the sender, NULL until its first record */
    uint32_t unknown;  /* the sender's job was not known when jobs_news was this */
    uint32_t keeps;       /* records that are kept (kept.c): the head given back is not beyond the first */
    struct link kept;     /* struct shm_kept, in the order of the ring; while `keeps` */
    uint32_t kept_bytes;
    bool ends;            /* its entry is to be free when nothing is kept */
};
static_assert(sizeof(struct shm_rx) <= CACHE_LINE, "each look at a ring reads one of them, and they are aligned");

struct shm_dom {
    struct shm_segment *segment; /* of this process */
    int fd;                      /* of the file that it lies in ... */
    bool own_file;               /* ... which this process has made for itself */
    uint64_t offset, file, host, near; /* as on the card */
    uint32_t mask;
    struct shm_rx *rx; /* boxes + 1 */
    uint32_t boxes, senders; /* as in the segment, which others can write to */
    uint32_t ready;          /* boxes whose rx is filled in */
    uint32_t leaving;
    uint32_t keeps; /* of all boxes */
    uint32_t asked, news; /* when shm_senders_admit looked last: shm_segment.asked, jobs_news */
    struct link eps;
    struct lock eps_lock; /* taken once threads use this */
    bool threads;         /* they do, see tp_ops.share */
};

extern TERN_HIDDEN struct shm_dom shm_dom;

static inline void shm_eps_lock(void)
{
    if (unlikely(shm_dom.threads)) lock_take(&shm_dom.eps_lock);
}
static inline void shm_eps_unlock(void)
{
    if (unlikely(shm_dom.threads)) lock_give(&shm_dom.eps_lock);
}

/* memory.c: makes the segment (shm_dom.segment, file, offset, host). 0, or a code with words. */
int shm_memory_open(void);
void shm_memory_close(void);
bool shm_memory_reaches(const struct shm_card *);

/* The segment of the process with this index, which says so itself; shm_memory_unmap ends that. 0, or a code with words;
 * if the process has ended, that is noted (shm_note_end). */
int shm_memory_map(const struct shm_card *, uint32_t index, struct shm_segment **);
void shm_memory_unmap(void *, size_t bytes);

/* The same for its first SHM_HEAD_BYTES alone. An end is not noted. */
#define SHM_HEAD_BYTES ((size_t)4096)
int shm_memory_map_head(const struct shm_card *, uint32_t index, struct shm_segment **);

void *shm_memory_mmap(int fd, uint64_t offset, uint64_t bytes); /* NULL with errno */

/* A new descriptor of the file of the own segment; -1 with errno if the program has closed ours. */
int shm_open_node(void);

static inline bool shm_is_open_to(const struct shm_card *c) { return c->host && c->host == shm_dom.host; }
static inline bool shm_is_near(const struct shm_card *c) { return c->near && c->near == shm_dom.near; }

/* A new descriptor of a peer's `fd`, by its launcher if it is `near`, else or after that by /proc if its process id is not
 * 0: open to us. -1 with words if it is not the file `file` (as on the card), which is seen before it is opened. */
int shm_open_foreign(uint32_t index, uint32_t pid, uint32_t fd, uint64_t file, bool near);

/* The process cannot be reached: if it has ended, the layers above hear of that in the next turn of progress, unless
 * its launcher tells of deaths. `pid` 0: it is not known. */
void shm_note_end(uint32_t index, uint32_t pid) TERN_COLD;

/* ---- senders.c ---- */

/* Takes an entry in the peer's segment: e->box, ring and so on; e->segment and e->bell are set. 0, or a code with words. */
int shm_sender_enter(struct shm_ep *);
bool shm_sender_admitted(struct shm_ep *); /* common ring: may it be written to? */

/* Common ring: its lock, by the sender. False: another sender has it. */
bool shm_common_lock(struct shm_ep *);
void shm_common_unlock(struct shm_ep *);

/* True: the sender of this entry is lost or is being closed, and has died, so it writes no more. */
bool shm_sender_is_dead(uint32_t entry) TERN_COLD;

/* The peer that has this entry here; NULL: the entry is free, its sender's job is not known here, or its sender has
 * connected anew and the old connection is not closed yet. */
struct peer *shm_sender_peer(uint32_t entry) TERN_COLD;

/* The last record of the sender of this entry has been read, or the sender has died: makes the entry and its ring free.
 */
void shm_sender_free(uint32_t entry) TERN_COLD;
void shm_sender_said_last(uint32_t entry) TERN_COLD; /* its last record has been read: notes that in the peer */

void shm_senders_admit(void) TERN_COLD; /* lets senders write into the common ring whose jobs have become known */
int shm_peer_close(struct tp_dom *, struct peer *);
void shm_leaving(struct shm_ep *, bool); /* keeps this process awake until there is room */
int shm_leave(struct tp_ep *); /* ring.c: writes the last record; 0 or TERN_AGAIN */

uint64_t shm_sent(struct tp_ep *);
uint64_t shm_handled(struct tp_ep *);
bool shm_await_handled(struct tp_ep *);
int shm_am_short(struct tp_ep *, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n);
int shm_am_common(struct tp_ep *, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n);
int shm_am_bcopy(struct tp_ep *, unsigned id, uint64_t h0, uint64_t h1, tp_pack_fn pack, void *arg, size_t n);
void shm_mark_full(struct shm_ep *, bool full) TERN_COLD; /* the receiver wakes this process when it gives space back */
int shm_progress(struct tp_dom *, int budget);
bool shm_idle(struct tp_dom *, bool want_room);
void shm_trim(struct tp_dom *);

/* More entries have been given out than `ready`: fills in the receiving sides of their boxes, and that of the common one
 * when they are more. */
void shm_boxes_more(uint32_t given) TERN_COLD;

/* ---- writers.c ---- */

/* The members of an endpoint for threads, and what makes it one of theirs, before any of them uses it. */
int shm_am_shared(struct tp_ep *, unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n);
int shm_am_bcopy_shared(struct tp_ep *, unsigned id, uint64_t h0, uint64_t h1, tp_pack_fn pack, void *arg, size_t n);
void shm_share_ep(struct shm_ep *);

/* How messages to it are sent now. */
static inline int (*shm_way_of(const struct shm_ep *e))(struct tp_ep *, unsigned, uint64_t, uint64_t, const void *, size_t)
{
    if (e->common) return shm_am_common;
    return shm_dom.threads ? shm_am_shared : shm_am_short;
}

/* ---- neighbours.c ---- */

/* A connection has been made: hands the peer to the watcher, if it is of another job. And it is closed. */
void shm_neighbour_open(const struct shm_ep *);
void shm_neighbour_close(uint32_t index);
void shm_neighbours_close(void);
bool shm_watch(struct tp_dom *) TERN_COLD; /* see tp_ops */
enum tp_end shm_how_ended(struct tp_dom *, uint32_t index) TERN_COLD;

/* ---- ring.c and kept.c ---- */

int shm_keep(struct tp_dom *, const void *data, size_t n, enum tp_keep_time, struct tp_kept *);
void shm_give_back(struct shm_rx *, uint32_t head); /* tells the sender that it may write up to a ring's length behind `head` */
void shm_zero_record(const struct shm_rx *, uint32_t head, uint32_t bytes); /* the starts of its lines */
void shm_kept_consume(struct shm_rx *, uint32_t need) TERN_COLD; /* the record at head, in a ring of which some are kept */
void shm_kept_look(void) TERN_COLD;      /* gives back what has been released */
bool shm_kept_waits(const struct shm_rx *) TERN_COLD; /* would shm_kept_look find something? */
void shm_kept_close(void);               /* the rings are unmapped next */

int shm_get(struct tp_ep *, const struct iovec *local, int nl, const struct iovec *remote, int nr);
int shm_put(struct tp_ep *, const struct iovec *local, int nl, const struct iovec *remote, int nr);

void *shm_map_arena(struct tp_ep *, uint64_t place, size_t n);
void shm_arena_unmap(struct shm_ep *);

extern TERN_HIDDEN const struct tp_remote shm_remote; /* keys.c */

/* Lets the other ranks copy from and to this process, where Yama forbids that unless it is asked for. */
void shm_cma_allow(void);

/* Can this process read the peer's memory at all? One word is tried. */
bool shm_cma_works(pid_t pid, uint64_t probe_at, uint64_t probe);

#endif
