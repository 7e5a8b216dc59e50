/*
 * pmix_module.h - what the files of the PMIx module share: who this process is to PMIx, and the parts of its bootstrap
 * (proc.h) and of its services (dynamic.h).
 *
 * Functions that can fail return 0 or a code, whose words go through pmix_fail.
 *
 * Threads: any after the bootstrap is open. The PMIx library calls pmix_events.c on a thread of its own.
 */
#ifndef TERN_PROC_PMIX_PMIX_MODULE_H
#define TERN_PROC_PMIX_PMIX_MODULE_H

#include "base/compiler.h"
#include "proc/dynamic.h"

#include <pmix.h>

#define CARD_KEY "tern.card"
#define HALF_KEY "tern.half" /* of rank 0: its job's part of the keys of two jobs, where the launcher has none */

extern TERN_HIDDEN int (*pmix_fail)(int code, const char *fmt, ...); /* err_set */
extern TERN_HIDDEN void (*pmix_ring)(uint64_t name);                 /* bell_ring_name */
extern TERN_HIDDEN pmix_proc_t pmix_me;
extern TERN_HIDDEN uint32_t pmix_job_size;

/* As proc_boot.secret and proc_boot.card_get: of the own job. */
TERN_HIDDEN int pmix_own_secret(uint8_t key[32]);
TERN_HIDDEN int pmix_own_card(uint32_t rank, void *buf, size_t cap);

/* The card that PMIx has of the process: its length or a code, as proc_boot.card_get. Destructs the value. */
TERN_HIDDEN int pmix_take_card(pmix_value_t *, const pmix_proc_t *, void *buf, size_t cap);

/* A number of whatever type the launcher has given it. False: it is none, or beyond 32 bits. */
TERN_HIDDEN bool pmix_to_u32(const pmix_value_t *, uint32_t *);

/* Is it Tern's mpiexec that has started this process? */
TERN_HIDDEN bool pmix_by_tern(void);

/* ---- questions (pmix_get.c): the value is a copy, to be destructed, and set on success only ---- */

#define PMIX_PUT_S 3600 /* seconds that a process may take to put what is asked for */
#define PMIX_JOB_S 10   /* seconds that a launcher may take to find out about another job */

/* What the process has put; waits until it has. PMIX_ERR_PROC_TERM_WO_SYNC: the process has ended before.
 * PMIX_ERR_TIMEOUT: neither is known within PMIX_PUT_S. Any thread. */
TERN_HIDDEN pmix_status_t pmix_get_put(const pmix_proc_t *, const char *key, pmix_value_t *);

/* What the launcher knows of a job as a whole; it is asked each time, as this process may remember a job that has ended.
 * PMIX_ERR_TIMEOUT: it has not answered within PMIX_JOB_S. Any thread. */
TERN_HIDDEN pmix_status_t pmix_get_of_job(const char *job, const char *key, pmix_value_t *);

/* pmix_gone has become true of a process. */
TERN_HIDDEN void pmix_get_wake(void);

/* Does this status say that the launcher has no such service? */
TERN_HIDDEN bool pmix_has_none(pmix_status_t);

extern TERN_HIDDEN const struct proc_dynamic pmix_dynamic;
TERN_HIDDEN void pmix_dynamic_close(void);

/* ---- events (pmix_events.c) ---- */

/* After each PMIx_Init: has PMIx tell of the ends of processes and jobs. Sends a message, and waits for nothing. */
TERN_HIDDEN void pmix_events_join(void);
/* After PMIx_Finalize. The program may use PMIx as well: then its thread, and the handler, live on. */
TERN_HIDDEN void pmix_events_part(void);
TERN_HIDDEN void pmix_events_close(void);

/* As the functions of dynamic.h. */
TERN_HIDDEN int pmix_watch(const char *job);
TERN_HIDDEN int pmix_unwatch(const char *job);
TERN_HIDDEN int pmix_event(struct proc_event *);
TERN_HIDDEN void pmix_event_signal(struct proc_signal *);

/* Is it a process of the own job that has ended, as far as PMIx has told? Any thread. */
TERN_HIDDEN bool pmix_gone(const pmix_proc_t *);

/* As proc_boot.deaths and proc_boot.bell. */
struct proc_deaths;
TERN_HIDDEN struct proc_deaths pmix_deaths(void);
TERN_HIDDEN void pmix_bell(uint64_t place, uint64_t name);

#endif
