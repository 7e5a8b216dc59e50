/*
 * dynamic.h - what a launcher does for its processes while they run: published names, connections to other jobs and
 * their cards, new jobs, news of other jobs' ends, descriptors of memory. A launcher does these for all jobs that it
 * runs: the one it was started for, and those spawned from it. A rank asks Tern's mpiexec by a socket (ask.h,
 * native_dynamic.c), others by PMIx (pmix/pmix_dynamic.c). A process that was started without a launcher starts an mpiexec
 * for itself when it first needs one (own_launcher.h): in proc_publish, _unpublish, _lookup, _connect, _job_card, _watch
 * and _spawn.
 *
 * A function returns 0 or a code with words. Besides those that it names, each may return
 *
 *     TERN_ERR_UNSUPPORTED  the launcher of this process has no such service, or there is no launcher
 *     TERN_ERR_ARG          a text is empty or too long
 *     TERN_ERR_PEER         the launcher has ended, or has closed the connection
 *     TERN_ERR_SYSTEM       the launcher cannot be reached, does not answer in time, or answers what cannot be
 *     TERN_ERR_NOMEM        memory is out, here or at the launcher
 *
 * Threads: any, after proc_open. A call that waits makes no progress in communication.
 */
#ifndef TERN_PROC_DYNAMIC_H
#define TERN_PROC_DYNAMIC_H

#include "base/compiler.h"
#include <stdatomic.h>

#define PROC_KEY 32         /* bytes of a pair's key */
#define PROC_NAME_MAX 256   /* bytes of a published name, and of a job's name, with the final zero */
#define PROC_VALUE_MAX 4096 /* bytes of what a name stands for, with the final zero */

/* Another job, as proc_connect learns of it. */
struct proc_job {
    uint32_t size;
    uint8_t key[PROC_KEY]; /* known to the processes of the two jobs that are connected, and to the launcher */
};

/* An event of a job that this process watches (proc_watch). */
struct proc_event {
    char job[PROC_NAME_MAX];
    bool ended; /* true: the whole job has ended, and this is its last event. False: one process has, with: */
    bool clean; /* it ended as it should: with exit code 0, and as an MPI process after MPI_Finalize */
    uint32_t rank;
    int status; /* as of waitpid */
};

/* How a process learns that there are events: `word` changes (futex, in the job block), and `fd` becomes readable. */
struct proc_signal {
    _Atomic uint32_t *word; /* NULL: none */
    int fd;                 /* -1: none */
};

/* A program of a job to be spawned. The lists end with NULL; NULL instead of a list: nothing in it. */
struct proc_app {
    uint32_t n;              /* processes */
    const char *const *argv; /* [0] is the program */
    const char *const *env;  /* "NAME=value": in addition to what the launcher has, or, with the info ASK_WHOLE_ENV (ask.h), all there is */
    const char *wdir;        /* NULL: that of the launcher */
    const char *const *info; /* key, value, key, value ...: host, hostfile, path, map_by, bind_to ...; others mean nothing */
};

/* A job that was spawned. */
struct proc_spawned {
    char job[PROC_NAME_MAX];
    uint32_t size;
    uint64_t scheduling_ns; /* the launcher's choice of places; 0: not known */
    bool curious;           /* the launcher wants to hear how long it takes to connect (proc_connected) */
};

/* What a bootstrap has for the functions below, proc_NAME for each member; NULL: not supported. */
struct proc_dynamic {
    int (*publish)(const char *name, const char *value);
    int (*unpublish)(const char *name);
    int (*lookup)(const char *name, int wait_ms, char *value, size_t cap);
    int (*connect)(const char *job, struct proc_job *);
    int (*disconnect)(const char *job);
    int (*job_card)(const char *job, uint32_t rank, void *buf, size_t cap);
    int (*open_file)(const char *job, uint32_t rank, uint32_t fd, uint64_t key, int *own);
    int (*watch)(const char *job);
    int (*unwatch)(const char *job);
    int (*event)(struct proc_event *);
    void (*event_signal)(struct proc_signal *);
    int (*spawn)(const struct proc_app *, int napps, struct proc_spawned *);
    int (*connected)(const char *job, uint64_t ns);
};

/* Publishes `value` under `name` until the job ends. TERN_ERR_DUPLICATE: the name is taken. TERN_ERR_NOMEM: the launcher
 * has as many names as it takes. */
int proc_publish(const char *name, const char *value);

/* Withdraws a published name. Any process of the job that published it may do so (PMIx: only the process that did).
 * TERN_ERR_NOT_FOUND: the name is not published. TERN_ERR_ARG: another job has published it. */
int proc_unpublish(const char *name);

/* What the name stands for, into value (cap bytes). Waits for it at most wait_ms: 0 = not at all, -1 = without end.
 * TERN_ERR_NOT_FOUND: it is not published by then. TERN_ERR_TRUNCATE: it has more than `cap` bytes. */
int proc_lookup(const char *name, int wait_ms, char *value, size_t cap);

/* Connects this process to another job of this launcher, by its name (proc_info.job). The key is the same for the
 * processes of both jobs from the first connect of any of them until the last disconnect; the next one is another.
 * TERN_ERR_NOT_FOUND: the launcher has no such job, or it has ended. The calls of MPI do not use this: they compute their keys
 * (dpm/keys.h), and tell cards in tables (dpm/table.h). It is for processes that connect jobs by hand (test/system/joined_rank.c). */
int proc_connect(const char *job, struct proc_job *);

/* The launcher forgets that this process is connected to the job; it also does so when the process or the job ends. The
 * caller wipes its copy of the key. TERN_ERR_NOT_FOUND: it is not connected, or that job has ended. */
int proc_disconnect(const char *job);

/* The card of a rank of another job, as that process wrote it at its start; transports may be missing on it that its
 * own job does not need (transport/peer.h, peers_meet_others). Waits until it is there. Returns its length or a code:
 * TERN_ERR_NOT_FOUND: the launcher has no such job, or it has ended. TERN_ERR_RANK: the job has no such rank.
 * TERN_ERR_PEER: the process has ended without a card. TERN_ERR_INTERN: the card has more than `cap` bytes. */
int proc_job_card(const char *job, uint32_t rank, void *buf, size_t cap);

/* A descriptor of the file of memory that a process of this node, of the own job ("") or another, has open as `fd`. The
 * launcher of that process hands it out by a socket, to its own user only; this process needs no right to look at the
 * other one, and no /proc. `key` is that of the file (memfile_key): nothing else is handed out. TERN_ERR_PEER: the process
 * has ended, or has no such file. TERN_ERR_NOT_FOUND, TERN_ERR_RANK: there is no such job, or no such rank in it.
 * TERN_ERR_INTERN: it is on another node. TERN_ERR_SYSTEM also if this process can open no more files. */
int proc_open_file(const char *job, uint32_t rank, uint32_t fd, uint64_t key, int *own);
bool proc_opens_files(void); /* the launcher has this service, from the start of this process on */

/* From now on proc_event gets the ends of the job's processes, those before this call included. If there is no such
 * job, that is no failure of this call: the event says that the job has ended. TERN_ERR_ARG also if it is watched
 * already. */
int proc_watch(const char *job);

/* No more events of that job come. TERN_ERR_NOT_FOUND: it is not watched. */
int proc_unwatch(const char *job);

/* Takes the next event: 1, 0 = there is none now, or a code (TERN_ERR_PEER: the launcher has ended, and no more come;
 * TERN_ERR_SYSTEM, TERN_ERR_NOMEM). Never waits. */
int proc_event(struct proc_event *);

/* What to wait for, from the first proc_watch on; one word and one descriptor for all jobs. Without this service, none. */
void proc_event_signal(struct proc_signal *);

/* Has the launcher start the programs together as a new job, and returns when its processes have been started, or none
 * could be: nothing is left then. The name of the new job connects to it (proc_connect); its processes know ours as
 * proc_info.parent. TERN_ERR_ARG: no program, none of its processes, or too much to tell. TERN_ERR_SPAWN: the launcher could
 * not start it, and the words say why. */
int proc_spawn(const struct proc_app *, int napps, struct proc_spawned *);

/* Tells a curious launcher how long it took to connect to a job that it has spawned. */
int proc_connected(const char *job, uint64_t ns);

#endif
