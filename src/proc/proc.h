/*
 * proc.h - who this process is and who the others are: rank, size, nodes, and the
 * exchange of cards. A card is the bytes by which others can reach a process; the
 * transports write it and read it (transport/wires.h).
 *
 * A bootstrap finds this out: `native` (from the job block inherited from
 * Tern's mpiexec), `pmix` (from any PMIx launcher, through a module loaded on demand),
 * `pmi2` and `pmi1` (from launchers that speak the older protocols), or `single`
 * (a process started alone). The first that finds its launcher is taken
 * (doc/decisions/launchers.md).
 *
 * Threads: proc_open and proc_close by one thread; the others may be called by
 * any thread after proc_open.
 */
#ifndef TERN_PROC_PROC_H
#define TERN_PROC_PROC_H

#include "base/compiler.h"
#include <stdatomic.h>

#include <sys/types.h>

#define PROC_NO_APPNUM UINT32_MAX

struct proc_info {
    const char *bootstrap; /* "native", "pmix", "pmi2", "pmi1", "single" */
    char job[256];         /* the job's name (PMIx namespace), the same on all ranks */
    char parent[256];      /* the job that spawned this one; "" = none, or: */
    bool parent_unknown;   /* the launcher does not say whether a job has spawned this one */
    uint32_t rank, size;
    uint32_t local_rank, local_size; /* among the ranks of this node */
    uint32_t node, nodes;
    uint32_t universe;    /* processes that may be started in all, 0 = unknown */
    uint32_t appnum;      /* PROC_NO_APPNUM: no launcher has counted programs */
    uint32_t usable_cpus; /* that the ranks of this node share; >= 1; all of them find the same number (usable.h) */
    uint32_t bound;       /* cpus that the launcher bound this rank to, 0 = not bound */
    bool oversubscribed;  /* more ranks than cpus on this node; alike on all of them */
    int launcher; /* process id of the launcher, an ancestor of all ranks of this node; 0: not to be seen from here */
};

/* Where the launcher put a rank on its node. */
struct proc_seat {
    uint32_t local_rank;
    int32_t l3, numa; /* logical index of the cache / NUMA domain that it is bound into, -1: several, or not known */
};

/* The deaths of processes of the job that the launcher has told this process of: rank[0 .. *count - 1], in the order of
 * the deaths. `count` grows by release, after the rank has been written. `sure`: the launcher tells of each death at
 * once, and wakes sleepers. */
struct proc_deaths {
    const _Atomic uint32_t *count, *rank;
    bool sure;
};

/* The node memory: a memfd that all processes of this node have, with a slot and room for an arena for each. Only
 * touched pages cost memory. */
struct proc_shared {
    int fd;
    uint64_t slot_bytes, arenas, arena_bytes; /* slots lie at the front, arenas from the offset `arenas` on */
    /* For the transport (shm/memory.c): two words that all processes of the node share, zero at first. */
    _Atomic uint64_t *host;
    _Atomic uint32_t *apart;
    uint32_t own, slots; /* slots by local rank: that of this process, and how many there are */
    bool fresh;          /* no process has used the own one before */
};

struct proc_dynamic;

/* A bootstrap. A function that returns an int returns 0 or a code with words, unless something else is said. Only the
 * functions of this file call them: open and close by one thread, the others by any. */
struct proc_boot {
    const char *name;
    /* A module cannot see the library's err_set: the library stores its address here. NULL inside the library. */
    int (**fail)(int code, const char *fmt, ...);
    void (**ring)(uint64_t name); /* the same for bell_ring_name; may be NULL */
    /* TERN_ERR_NOT_FOUND: no launcher of this kind here (not an error). Fills everything but `bootstrap`. */
    int (*open)(struct proc_info *);
    /* Leaves this process's card for all others. Called once. */
    int (*card_put)(const void *card, size_t len);
    /* The card of `rank` into buf (cap bytes); waits until it is there. Returns its length, or a code: TERN_ERR_RANK
     * (no such rank), TERN_ERR_PEER (the process has ended without a card), or that of the launcher's failure. */
    int (*card_get)(uint32_t rank, void *buf, size_t cap);
    /* True: card_get would not wait, since the card is there or never will be. False: it would; the card has been
     * requested from the launcher. NULL: that is not known. */
    bool (*card_there)(uint32_t rank);
    /* Has the rank ended without a card? It never was a process of MPI. NULL: that is not known. */
    bool (*never_came)(uint32_t rank);
    /* A number less than twice the job's size, the same whoever asks. */
    uint32_t (*node_of)(uint32_t rank);
    /* The seat of a rank; cache and NUMA domain are known of ranks of this node only, and alike to all of them. NULL: the
     * launcher does not say. */
    void (*seat_of)(uint32_t rank, struct proc_seat *);
    /* The job's secret, the same in all its processes and known to nobody else. May wait until the first process has put
     * its card; so not to be asked for before the own card is put, but by the first process, which gets it or an error. Several
     * threads may ask at once. */
    int (*secret)(uint8_t key[32]);
    /* What the launcher has made for the processes of this node to share, NULL: nothing. */
    const struct proc_shared *(*shared)(void);
    /* Does the launcher end the job at once, and without a word about why? Then the words are printed before `abort` tells
     * it to. NULL: it does not. */
    bool (*mute)(void);
    /* Tells the launcher that the job must end with `code`. True if this process is the first to say so, and the words are
     * still to be printed; `aborted` follows them, unless it is NULL. */
    bool (*abort)(int code, const char *words);
    void (*aborted)(int code);
    /* Sleeps until the launcher is ending the job, which it will if `lost` has died; at most 1.5 s. NULL: it does not
     * tell its ranks. */
    void (*await_end)(uint32_t lost);
    /* Where it tells of deaths. NULL, or count NULL: it does not. */
    struct proc_deaths (*deaths)(void);
    /* Tells the launcher how it can wake this process after a death: `place` is 1 + the offset of its struct bell in
     * `shared`; or, if place is 0, `name` is that of its bell's socket (base/sleep.h), 0: it has none. NULL: the
     * launcher wakes nobody. */
    void (*bell)(uint64_t place, uint64_t name);
    void (*state)(int state); /* enum job_life: tells the launcher that MPI is initialised or finalised, in turns */
    /* The program has called MPI_Finalize, and all sessions are closed: it may end in any way from now on. Cards that
     * have not been got by now may be out of reach from then on. `state` tells of a session that comes later. NULL: the
     * launcher need not be told. */
    void (*leave)(void);
    /* Calls `each` with the name of every process set of the launcher. NULL: it knows none. */
    int (*psets)(void (*each)(void *arg, const char *name), void *arg);
    /* The ranks of a set, ascending, into ranks (room for all of the job): how many, or TERN_ERR_NOT_FOUND. */
    int (*pset_ranks)(const char *name, uint32_t *ranks);
    /* What the launcher does for processes that run (dynamic.h). NULL: nothing. */
    const struct proc_dynamic *dynamic;
    /* Starts the launcher whose services those are, unless it runs already; by any thread. NULL: it has started this
     * process. */
    int (*start_launcher)(void);
    void (*close)(void);
};

extern const struct proc_boot proc_native, proc_pmi1, proc_pmi2, proc_single;
const struct proc_boot *pmi_guess(void); /* the one of the two that the environment speaks of, NULL: none */
#define PROC_BOOT_SYMBOL "tern_proc_pmix" /* the struct proc_boot that the module exports */

/* Chooses the bootstrap. 0, or a code with words: no launcher of the kind that TERN_BOOTSTRAP names has started this
 * process (TERN_ERR_NOT_FOUND), or the one that has cannot be used. */
int proc_open(void);
void proc_close(void);
const struct proc_info *proc_self(void);
const struct proc_boot *proc_booted(void); /* the one that was taken; NULL before proc_open */

int proc_card_put(const void *card, size_t len);         /* see proc_boot */
int proc_card_get(uint32_t rank, void *buf, size_t cap); /* see proc_boot */
bool proc_never_came(uint32_t rank); /* see proc_boot; false also where that is not known */
bool proc_card_there(uint32_t rank); /* see proc_boot; false also where that is not known */
uint32_t proc_node_of(uint32_t rank);                 /* see proc_boot */
bool proc_seat_of(uint32_t rank, struct proc_seat *); /* see proc_boot; false: the launcher does not say */
int proc_secret(uint8_t key[32]); /* see proc_boot; the caller wipes it when done */
const struct proc_shared *proc_shared(void); /* see proc_boot; NULL also where the launcher makes none */
void proc_state(int state);                  /* see proc_boot */
void proc_leave(void);            /* see proc_boot */
int proc_psets(void (*each)(void *arg, const char *name), void *arg); /* see proc_boot */
int proc_pset_ranks(const char *name, uint32_t *ranks);               /* see proc_boot */

/* Has the process ended, or begun to: is its memory gone? By its pid as seen here; needs neither /proc nor permission.
 */
bool proc_has_ended(pid_t);

struct proc_deaths proc_deaths(void);        /* see proc_boot; a count that stays 0 where the launcher does not tell */
bool proc_tells_deaths(void);                /* does the launcher tell of each death at once (proc_deaths.sure)? */
bool proc_has_died(uint32_t rank) TERN_COLD; /* has the launcher told of the death of this rank? */
void proc_bell(uint64_t place, uint64_t name); /* see proc_boot */

/* For proc_await_end: the process of this rank has ended, or the connection to it broke, which most often means the
 * same. */
void proc_note_loss(uint32_t rank);

/*
 * This process is about to fail. If a peer has died, that is the cause, and the launcher, which watches over the job,
 * reports it and ends the other ranks. So if a loss was noted before, and the launcher is one that tells its ranks when
 * it ends the job, this function lets the launcher report first: it sleeps until the launcher has noted that it ends
 * the job. That takes about a millisecond; at most 1.5 s, for a connection that broke between processes that live.
 * Otherwise the function returns at once.
 */
void proc_await_end(void);

/* Ends the whole job with exit code `code`: tells the launcher, prints `words` as one line on stderr unless another
 * process did so before, leaves. */
_Noreturn void proc_abort(int code, const char *words);
_Noreturn void proc_abort_by(const struct proc_boot *, int code, const char *words); /* the same by this bootstrap; NULL: none */

/* A plain number that a launcher has put into the environment; -1: the variable is absent, or says something else. */
long proc_env_number(const char *name);

#endif
