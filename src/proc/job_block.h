/*
 * job_block.h - the job block: what the launcher tells the ranks of one node, and where
 * they leave their cards (wire-up addresses) for each other.
 *
 * It is one memfd made by mpiexec and inherited by every rank (descriptor number
 * in TERN_JOB_FD), so there is no file to clean up and no round trip at start:
 * a rank maps it, reads its place, writes its card, and goes on. A process that needs a
 * card that is not there yet sleeps on the card's state word.
 *
 *   +------------------+  0
 *   | struct job_head  |  written by the launcher before the first fork, then read-only
 *   +------------------+  place_off
 *   | struct job_place |  one a rank of the job: node, local rank, cpus, application number
 *   |   ... [size]     |  written by the launcher before the first fork
 *   +------------------+  behind the places
 *   | wanted           |  one bit a rank: "launcher, look at the state of this card", see below
 *   | bells            |  struct job_bell [size]; used is one a rank of the node, by its local rank, written by the
 *   |                  |  owner, see below
 *   | died             |  the ranks that have died while the job goes on, in the order of their deaths: `deaths` many
 *   +------------------+  card_off
 *   | struct job_card  |  one a rank of the job; the owner writes data, then state (release);
 *   |   ... [size]     |  readers load state (acquire), or sleep on it with futex
 *   +------------------+  pset_off
 *   | process sets     |  one text a program of the job, in their order, each with a final zero: the name of the set
 *   |                  |  that its ranks belong to (mpiexec --pset), "" for none. Nothing at all without sets.
 *   +------------------+  bytes
 *
 * A job on several nodes has a block on each. All describe the whole job and have the same secret; a card comes from
 * one to the other when somebody there asks for it first:
 *
 *     node of the reader                                      node of the owner
 *
 *     reader: state is EMPTY: wanted bit, a byte
 *             into the pipe, sleeps
 *     launcher: takes the bit; if the state is EMPTY:
 *               WANTED, and ----------- "card of r?" -------> launcher: state EMPTY -> WANTED, remembers who asks;
 *                                                             it is HERE already: answers at once
 *                                                             owner: data, state -> HERE; it was WANTED: its own
 *                                                             wanted bit, a byte into the pipe
 *     launcher: data, state -> HERE, <------- card ---------- launcher: takes the bit, answers all who asked
 *             wakes the sleepers
 *
 * The launcher reads the pipe (wanted_pipe), and every rank has inherited its other end. So no process polls, and a
 * card that is not asked for costs nothing. In a job of one node there is no pipe: only other jobs want cards then, by
 * a question to the launcher (ask.h, ASK_LOOK).
 *
 * Death. When a process has ended without MPI_Finalize and the job goes on, the launcher of each node adds its rank to
 * `died`, counts `deaths` up (release), and rings the bells of all ranks of the node:
 *
 *     launcher                                      rank
 *     died[n] = r; deaths = n + 1 (release)         every turn of progress compares `deaths` with what it has seen
 *     rings the bell of each rank                   looks once more before it sleeps (base/sleep.h)
 *
 * A bell is known by its place in `memory`, or, if it lies in private memory, by the name of its socket.
 *
 * A second memfd, `memory`, has a slot for the shared segment of each rank of the node (transport/shm/memory.c). As
 * every rank has inherited it, a rank reaches the segments of all others whatever the system lets it see of their
 * processes.
 *
 * TERN_JOB_RANK in the environment of a process says which rank it is. The process claims the rank by a lock on
 * the byte of the block whose offset is the rank, so two processes cannot be one rank at the same time. Processes may
 * be one rank in turn (sh -c './a; ./b'): each increments `turns`, and a reader waits for a card of its own turn.
 *
 * A rank marks the descriptors close-on-exec when it has found them, so that programs that it starts do not get the
 * job's key. Where a program between mpiexec and the rank has closed them, the rank takes them from the launcher
 * (/proc/<pid>/fd, JOB_ENV_ID).
 * The page-rounded block is sparse: a card slot that was never written costs
 * nothing but address space.
 */
#ifndef TERN_PROC_JOB_BLOCK_H
#define TERN_PROC_JOB_BLOCK_H

#include "base/compiler.h"
#include <stdatomic.h>

#define JOB_MAGIC   0x544a4f42u /* "TJOB" */
#define JOB_VERSION 8
#define JOB_ENV_FD   "TERN_JOB_FD"
#define JOB_ENV_RANK "TERN_JOB_RANK"
#define JOB_ENV_ID "TERN_JOB_ID" /* "launcher's pid:id of the block's memfd (memfile_id_of)" */
#define JOB_CARD_MAX 496 /* bytes of one card */

struct job_head {
    uint32_t magic, version;
    uint64_t bytes;           /* of the whole block */
    uint32_t size;            /* ranks in the job */
    uint32_t nodes;           /* nodes in the job */
    uint32_t node;            /* the node this block serves */
    uint32_t local_size;      /* ranks on this node */
    uint32_t universe;        /* MPI_UNIVERSE_SIZE, 0 = unknown */
    uint32_t usable_cpus;     /* cpus that the ranks of this node share (mask, cgroup quota, --cpu-set), at least 1 */
    uint64_t place_off, card_off;
    char name[64];            /* the job's name = PMIx namespace */
    uint8_t secret[32];       /* the job's key; never in argv or environment */
    /* MPI_Abort: the first rank to change `aborting` from 0 to 1 prints the message, then changes `aborted` from 0 to 1 + exit
     * code; later callers wait for that before they exit, and are silent, unless it takes too long. The launcher reads `aborted` when a rank
     * ends, and ends the others: by then the message is out. The launcher sets it too, before it ends the ranks for another reason. `aborted` is a
     * futex word: a change is followed by a wake of all sleepers. */
    _Atomic uint32_t aborted, aborting;
    uint32_t pset_bytes; /* of the names of process sets, 0: there are none */
    uint64_t pset_off;
    int32_t wanted_pipe; /* the descriptor that ranks write into after they have set a wanted bit; 0: none */
    int32_t memory; /* the descriptor of the memfd with a slot for each rank of the node, by its local rank; 0: none */
    uint64_t memory_id, wanted_pipe_id; /* what is behind the two (memfile_id_of) */
    /* Written by the ranks: whether they may open each other's descriptors (transport/shm/memory.c). */
    _Atomic uint64_t host;
    _Atomic uint32_t apart;
    _Atomic uint32_t deaths; /* how many ranks `died` has; written by the launcher */
    /* The socket by which ranks ask the launcher (ask.h): enum job_socket, a futex word; the launcher writes `socket_id`,
     * then the state (release). */
    _Atomic uint32_t socket_state;
    /* The number of answers about watched jobs (ASK_WATCH) that the launcher has given to processes of this node. A
     * futex word. */
    _Atomic uint32_t events;
    uint64_t socket_id; /* in the socket's name (ask_address) */
    char parent[64]; /* the job that spawned this one, "" = none */
    uint64_t boot; /* memfile_boot of the node */
};
static_assert(sizeof(struct job_head) == 304, "job block layout");

/* COMING: the launcher still starts the ranks. CLOSED: there is no socket and will be none. */
enum job_socket { JOB_SOCKET_COMING, JOB_SOCKET_OPEN, JOB_SOCKET_CLOSED };

/* How the launcher wakes a rank. */
struct job_bell {
    _Atomic uint64_t place; /* of the struct bell in `memory`, plus 1; 0: it does not lie there */
    _Atomic uint64_t name;  /* of its socket (bell.name), 0: none. Written before `place` */
};
static_assert(sizeof(struct job_bell) == 16, "job block layout");

/* A slot of `memory`: as much as a segment has with the defaults of TERN_SHM_BOX and TERN_SHM_BOXES, and some more. */
#define JOB_SLOT_BYTES ((uint64_t)96 << 20)
/* Room behind the slots, for the arena of each rank (transport/arena.h). */
#define JOB_ARENA_BYTES ((uint64_t)1 << 38)

struct job_place {
    uint32_t node, local_rank, appnum;
    uint32_t bound;   /* number of cpus this rank is bound to, 0 = not bound by the launcher */
    int32_t l3, numa; /* logical index of the cache / NUMA domain it is bound into, -1 = several or unknown */
};
static_assert(sizeof(struct job_place) == 24, "job block layout");

/* The rank's life as an MPI process: the launcher judges an exit by it (a rank that initialised and never finalised
 * has failed whatever its exit code). Written by the owner (release), read by the launcher after the exit (acquire). */
enum job_life { JOB_LIFE_NONE, JOB_LIFE_INITIALISED, JOB_LIFE_FINALISED };

/* Added to job_card.life by the launcher of the node when the process that it started has ended: no card will come any
 * more. In the blocks of other nodes it is added for ranks that have ended without a card, once the card is wanted
 * there. */
#define JOB_ENDED 0x100u

/* Of a card. WANTED is set by launchers alone, as ranks may be killed at any moment: the launcher is to be told when the card
 * comes, or is on its way to get it. */
enum job_card_state { JOB_CARD_EMPTY, JOB_CARD_HERE, JOB_CARD_WANTED };

struct job_card {
    _Atomic uint32_t state; /* enum job_card_state; a futex word: the writer wakes all sleepers */
    uint32_t len;
    uint8_t data[JOB_CARD_MAX];
    _Atomic uint32_t life;  /* enum job_life, and JOB_ENDED */
    _Atomic uint32_t turns; /* processes that have been this rank, the present one included */
};
static_assert(sizeof(struct job_card) == 512, "job block layout");

static inline struct job_place *job_places(struct job_head *j) { return (struct job_place *)((char *)j + j->place_off); }
static inline struct job_card *job_cards(struct job_head *j) { return (struct job_card *)((char *)j + j->card_off); }

/* In words of 64 ranks. Set with release by ranks, taken (exchanged for 0) with acquire by the launcher. */
static inline uint64_t job_wanted_words(uint32_t size) { return ((uint64_t)size + 63) / 64; }
static inline _Atomic uint64_t *job_wanted(struct job_head *j)
{
    return (_Atomic uint64_t *)((char *)j + j->place_off + j->size * sizeof(struct job_place));
}
static_assert(sizeof(struct job_place) % sizeof(uint64_t) == 0, "the wanted bits are aligned");

static inline struct job_bell *job_bells(struct job_head *j)
{
    return (struct job_bell *)(job_wanted(j) + job_wanted_words(j->size));
}
static inline _Atomic uint32_t *job_died(struct job_head *j) { return (_Atomic uint32_t *)(job_bells(j) + j->size); }

static inline char *job_psets(struct job_head *j) { return (char *)j + j->pset_off; }

/* Bytes needed for `size` ranks, and the offsets of places and cards. The names of process sets come behind. */
static inline uint64_t job_layout(uint32_t size, uint64_t *place_off, uint64_t *card_off)
{
    *place_off = round_up(sizeof(struct job_head), CACHE_LINE);
    uint64_t a_rank = sizeof(struct job_place) + sizeof(struct job_bell) + sizeof(uint32_t);
    *card_off = round_up(*place_off + size * a_rank + job_wanted_words(size) * sizeof(uint64_t), 4096);
    return round_up(*card_off + (uint64_t)size * sizeof(struct job_card), 4096);
}

#endif
