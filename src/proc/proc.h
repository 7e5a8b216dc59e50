/*
 * proc.h - who this process is and who the others are: rank, size, nodes, and the
 * exchange of cards (wire-up addresses).
 *
 * Where that comes from is a bootstrap: `native` (the job block inherited from
 * Tern's mpiexec), `pmix` (any PMIx launcher, through a module loaded on demand),
 * `pmi2` and `pmi1` (launchers that speak the older protocols), or `single`
 * (started alone). The first that finds its launcher is taken.
 *
 * Threads: proc_open and proc_close by one thread; the others may be called by
 * any thread after proc_open.
 */
#ifndef TERN_PROC_PROC_H
#define TERN_PROC_PROC_H

#include "base/compiler.h"
#include <stdatomic.h>

#include <sys/types.h>

struct proc_info {
    const char *bootstrap; /* "native", "pmix", "pmi2", "pmi1", "single" */
    char job[256];         /* the job's name (PMIx namespace), the same on all ranks */
    char parent[256];      /* the job that spawned this one; "" = none */
    uint32_t rank, size;
    uint32_t local_rank, local_size; /* among the ranks of this node */
    uint32_t node, nodes;
    uint32_t universe;    /* processes that may be started in all, 0 = unknown */
    uint32_t appnum;
    uint32_t usable_cpus; /* that the ranks of this node share; >= 1 */
    uint32_t bound;       /* cpus that the launcher bound this rank to, 0 = not bound */
    bool oversubscribed;  /* more ranks than cpus on this node */
    int launcher; /* process id of the launcher, an ancestor of all ranks of this node; 0: not to be seen from here */
};

/* Where the launcher put a rank on its node. */
struct proc_seat {
    uint32_t local_rank;
    int32_t l3, numa; /* logical index of the cache / NUMA domain that it is bound into, -1: several, or not known */
};

/* Deaths of processes of the job that this one is told of: their ranks, in their order. `count` grows by release, after
 * the rank has been written. `sure`: each one is told at once, and wakes whoever sleeps. */
struct proc_deaths {
    const _Atomic uint32_t *count, *rank;
    bool sure;
};

/* A memfd that all processes of this node have: a slot and room for an arena for each, of which only what is touched
 * costs memory. */
struct proc_shared {
    int fd;
    uint64_t slot_bytes, arenas, arena_bytes; /* slots lie at the front, arenas from `arenas` on */
    _Atomic uint64_t *host;                   /* for the transport: words that are zero at first, the same for all */
    _Atomic uint32_t *apart;
    uint32_t own, slots; /* slots by local rank: that of this process, and how many there are */
    bool fresh;          /* no process has used the own one before */
};

struct proc_dynamic;

/* One source of all that; an operation returns 0 or a code with words. */
struct proc_boot {
    const char *name;
    /* In a module, which cannot see the library's err_set: where its address is put. NULL inside the library. */
    int (**fail)(int code, const char *fmt, ...);
    void (**ring)(uint64_t name); /* the same with bell_ring_name; may be NULL */
    /* TERN_ERR_NOT_FOUND: no launcher of this kind here (not an error). Fills everything but `bootstrap`. */
    int (*open)(struct proc_info *);
    /* Leaves this process's card for all others. Called once. */
    int (*card_put)(const void *card, size_t len);
    /* The card of `rank` into buf (cap bytes); waits until it is there. Returns its length or a code. */
    int (*card_get)(uint32_t rank, void *buf, size_t cap);
    /* Is it there, or will never be, so that card_get would not wait? It is sent for if it is not. NULL: not to be
     * known. */
    bool (*card_there)(uint32_t rank);
    /* Has the rank ended without a card? It never was a process of MPI. NULL: that is not known. */
    bool (*never_came)(uint32_t rank);
    /* A number less than twice the job's size, the same whoever asks. */
    uint32_t (*node_of)(uint32_t rank);
    /* The seat of a rank; cache and NUMA domain are known of ranks of this node only, and alike to all of them. NULL: the
     * launcher does not say. */
    void (*seat_of)(uint32_t rank, struct proc_seat *);
    /* The job's secret, the same in all its processes and known to nobody else. May wait until the first process has put
     * its card; so not to be asked for before the own card is put. */
    int (*secret)(uint8_t key[32]);
    /* What the launcher has made for the processes of this node to share, NULL: nothing. */
    const struct proc_shared *(*shared)(void);
    /* Tells the launcher that the job must end with `code`. True if this process is the first to say so, and the words are
     * still to be printed. */
    bool (*abort)(int code, const char *words);
    /* Sleeps until the launcher is ending the job, which it will if `lost` has died; at most 1.5 s. NULL: it does not
     * tell its ranks. */
    void (*await_end)(uint32_t lost);
    /* Where it tells of deaths. NULL, or count NULL: it does not. */
    struct proc_deaths (*deaths)(void);
    /* How it wakes this process when it has told of one: by the struct bell at `place` of `shared` plus 1, or, if that is
     * 0, by the socket of that name (base/sleep.h), 0: none. May be NULL. */
    void (*bell)(uint64_t place, uint64_t name);
    void (*state)(int state); /* enum job_life: MPI initialised or finalised, in turns; told to the launcher */
    /* The program has called MPI_Finalize, and all sessions are closed: it may end in any way from now on. NULL: the
     * launcher need not be told. What it has not been asked for by now may be lost; `state` tells
     * of a session that comes later. */
    void (*leave)(void);
    /* The launcher's process sets: `each` gets the name of every one. NULL: it knows none. */
    int (*psets)(void (*each)(void *arg, const char *name), void *arg);
    /* Their ranks, ascending, into ranks (room for all of the job): how many, or TERN_ERR_NOT_FOUND. */
    int (*pset_ranks)(const char *name, uint32_t *ranks);
    /* What the launcher does for processes that run (dynamic.h). NULL: nothing. */
    const struct proc_dynamic *dynamic;
    void (*close)(void);
};

extern const struct proc_boot proc_native, proc_pmi1, proc_pmi2, proc_single;
const struct proc_boot *pmi_guess(void); /* the one of the two that the environment speaks of, NULL: none */
#define PROC_BOOT_SYMBOL "tern_proc_pmix" /* the struct proc_boot that the module exports */

int proc_open(void);
void proc_close(void);
const struct proc_info *proc_self(void);
const struct proc_boot *proc_booted(void); /* the one that was taken; NULL before proc_open */

int proc_card_put(const void *card, size_t len);
int proc_card_get(uint32_t rank, void *buf, size_t cap);
bool proc_never_came(uint32_t rank); /* see proc_boot; false also where that is not known */
bool proc_card_there(uint32_t rank); /* see proc_boot; false also where that is not known */
uint32_t proc_node_of(uint32_t rank);
bool proc_seat_of(uint32_t rank, struct proc_seat *); /* see proc_boot; false: the launcher does not say */
int proc_secret(uint8_t key[32]); /* see proc_boot; the caller wipes it when done */
const struct proc_shared *proc_shared(void); /* see proc_boot; NULL also where the launcher makes none */
void proc_state(int state);
void proc_leave(void);            /* see proc_boot */
int proc_psets(void (*each)(void *arg, const char *name), void *arg); /* see proc_boot */
int proc_pset_ranks(const char *name, uint32_t *ranks);

/* Has the process ended, or begun to: is its memory gone? By its pid as seen here; needs neither /proc nor permission.
 */
bool proc_has_ended(pid_t);

/* See proc_boot; never changes where nobody tells. Can the process rely on that (proc_deaths.sure)? */
struct proc_deaths proc_deaths(void);
bool proc_tells_deaths(void);
bool proc_has_died(uint32_t rank) TERN_COLD; /* is the rank among them? */
void proc_bell(uint64_t place, uint64_t name);

/* The process of this rank has ended, or the connection to it broke, which most often means the same. */
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

/* A plain number that a launcher has put into the environment; -1: the variable is absent, or says something else. */
long proc_env_number(const char *name);

/* The cpus that this process may use: affinity mask, cut by the cgroup's quota; at least 1. */
uint32_t proc_usable_cpus(void);

#endif
