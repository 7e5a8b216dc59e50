/*
 * dynamic.h - what a launcher does for its processes while they run: published names, connections to other jobs, and
 * their cards. A launcher does these for all jobs that it runs: the one it was started for, and those spawned from it.
 *
 * A function returns 0 or a code with words; TERN_ERR_UNSUPPORTED where the launcher of this process has no such service.
 *
 * Threads: any, after proc_open. A call that waits makes no progress in communication.
 */
#ifndef TERN_PROC_DYNAMIC_H
#define TERN_PROC_DYNAMIC_H

#include "base/compiler.h"

#define PROC_KEY 32          /* bytes of a pair's key */
#define PROC_NAME_MAX 256    /* bytes of a published name, and of a job's name, with the final zero */
#define PROC_VALUE_MAX 4096  /* bytes of what a name stands for, with the final zero */

/* Another job, as proc_connect learns of it. */
struct proc_job {
    uint32_t size;
    uint8_t key[PROC_KEY]; /* known to the processes of the two jobs that are connected, and to the launcher */
};

/* A program of a job to be spawned. The lists end with NULL; NULL instead of a list: nothing in it. */
struct proc_app {
    uint32_t n;              /* processes */
    const char *const *argv; /* [0] is the program */
    const char *const *env;  /* "NAME=value": in addition to what the launcher's own job got */
    const char *wdir;        /* NULL: that of the launcher */
    const char *const *info; /* key, value, key, value ...: host, hostfile, path, map_by, bind_to ...; others mean nothing */
};

/* Members that are NULL: not supported. */
struct proc_dynamic {
    int (*publish)(const char *name, const char *value);
    int (*unpublish)(const char *name);
    int (*lookup)(const char *name, int wait_ms, char *value, size_t cap);
    int (*connect)(const char *job, struct proc_job *);
    int (*disconnect)(const char *job);
    int (*job_card)(const char *job, uint32_t rank, void *buf, size_t cap);
    int (*spawn)(const struct proc_app *, int napps, char job[PROC_NAME_MAX], uint32_t *size);
};

/* Publishes `value` under `name` until the job ends. TERN_ERR_DUPLICATE: the name is taken. */
int proc_publish(const char *name, const char *value);

/* By a process of the job that published it; TERN_ERR_NOT_FOUND: nobody did. */
int proc_unpublish(const char *name);

/* What the name stands for, into value (cap bytes). Waits for it at most wait_ms: 0 = not at all, -1 = without end.
 * TERN_ERR_NOT_FOUND: nobody has published it by then. */
int proc_lookup(const char *name, int wait_ms, char *value, size_t cap);

/* Connects this process to another job of this launcher, by its name (proc_info.job). The key is the same for the
 * processes of both jobs from the first connect of any of them until the last disconnect; the next one is another. */
int proc_connect(const char *job, struct proc_job *);

/* The launcher forgets that this process is connected; so it does when the process ends. The caller wipes the key. */
int proc_disconnect(const char *job);

/* The card of a rank of another job, as proc_card_get: waits until it is there. Returns its length or a code. */
int proc_job_card(const char *job, uint32_t rank, void *buf, size_t cap);

/* Has the launcher start the programs together as a new job, and returns when its processes have been started, or none
 * could be: nothing is left then. The name of the new job connects to it (proc_connect); its processes know ours as
 * proc_info.parent. TERN_ERR_SPAWN: the launcher could not start it, and the words say why. */
int proc_spawn(const struct proc_app *, int napps, char job[PROC_NAME_MAX], uint32_t *size);

#endif
