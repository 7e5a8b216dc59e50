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

struct proc_info {
    const char *bootstrap; /* "native", "pmix", "pmi2", "pmi1", "single" */
    char job[256];         /* the job's name (PMIx namespace), the same on all ranks */
    uint32_t rank, size;
    uint32_t local_rank, local_size; /* among the ranks of this node */
    uint32_t node, nodes;
    uint32_t universe;    /* processes that may be started in all, 0 = unknown */
    uint32_t appnum;
    uint32_t usable_cpus; /* that the ranks of this node share; >= 1 */
    uint32_t bound;       /* cpus that the launcher bound this rank to, 0 = not bound */
    bool oversubscribed;  /* more ranks than cpus on this node */
};

/* Where the launcher put a rank on its node. */
struct proc_seat {
    uint32_t local_rank;
    int32_t l3, numa; /* logical index of the cache / NUMA domain that it is bound into, -1: several, or not known */
};

/* One source of all that; an operation returns 0 or a code with words. */
struct proc_boot {
    const char *name;
    /* In a module, which cannot see the library's err_set: where its address is put. NULL inside the library. */
    int (**fail)(int code, const char *fmt, ...);
    /* TERN_ERR_NOT_FOUND: no launcher of this kind here (not an error). Fills everything but `bootstrap`. */
    int (*open)(struct proc_info *);
    /* Leaves this process's card for all others. Called once. */
    int (*card_put)(const void *card, size_t len);
    /* The card of `rank` into buf (cap bytes); waits until it is there. Returns its length or a code. */
    int (*card_get)(uint32_t rank, void *buf, size_t cap);
    /* Is it there, so that card_get would not wait? It is sent for if it is not. NULL: not to be known. */
    bool (*card_there)(uint32_t rank);
    /* A number less than twice the job's size, the same whoever asks. */
    uint32_t (*node_of)(uint32_t rank);
    /* The seat of a rank; cache and NUMA domain are known of ranks of this node only, and alike to all of them. NULL: the
     * launcher does not say. */
    void (*seat_of)(uint32_t rank, struct proc_seat *);
    /* The job's secret, the same in all its processes and known to nobody else. May wait until the first process has put
     * its card; so not to be asked for before the own card is put. */
    int (*secret)(uint8_t key[32]);
    /* Tells the launcher that the job must end with `code`. True if this process is the first to say so, and the words are
     * still to be printed. */
    bool (*abort)(int code, const char *words);
    void (*state)(int state); /* enum job_life: MPI initialised or finalised, in turns; told to the launcher */
    /* The program has called MPI_Finalize, and all sessions are closed: it may end in any way from now on. NULL: the
     * launcher need not be told. What it has not been asked for by now may be lost; `state` tells
     * of a session that comes later. */
    void (*leave)(void);
    /* The launcher's process sets: `each` gets the name of every one. NULL: it knows none. */
    int (*psets)(void (*each)(void *arg, const char *name), void *arg);
    /* Their ranks, ascending, into ranks (room for all of the job): how many, or TERN_ERR_NOT_FOUND. */
    int (*pset_ranks)(const char *name, uint32_t *ranks);
    void (*close)(void);
};

extern const struct proc_boot proc_native, proc_pmi1, proc_pmi2, proc_single;
const struct proc_boot *pmi_guess(void); /* the one of the two that the environment speaks of, NULL: none */
#define PROC_BOOT_SYMBOL "tern_proc_pmix" /* the struct proc_boot that the module exports */

int proc_open(void);
void proc_close(void);
const struct proc_info *proc_self(void);

int proc_card_put(const void *card, size_t len);
int proc_card_get(uint32_t rank, void *buf, size_t cap);
bool proc_card_there(uint32_t rank); /* see proc_boot; false also where that is not known */
uint32_t proc_node_of(uint32_t rank);
bool proc_seat_of(uint32_t rank, struct proc_seat *); /* see proc_boot; false: the launcher does not say */
int proc_secret(uint8_t key[32]); /* see proc_boot; the caller wipes it when done */
void proc_state(int state);
void proc_leave(void);            /* see proc_boot */
int proc_psets(void (*each)(void *arg, const char *name), void *arg); /* see proc_boot */
int proc_pset_ranks(const char *name, uint32_t *ranks);

/* A process of the job was found dead. Where a launcher watches over the job it will end this process too, and say what
 * happened; this waits for that, at most a second and a half, so that the first cause is what is said. */
void proc_await_end(void);

/* Ends the whole job with exit code `code`: tells the launcher, prints `words` as one line on stderr unless another
 * process did so before, leaves. */
_Noreturn void proc_abort(int code, const char *words);

/* The cpus that this process may use: affinity mask, cut by the cgroup's quota; at least 1. */
uint32_t proc_usable_cpus(void);

#endif
