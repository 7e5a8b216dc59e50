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
#define PAIR_KEY "tern.pair" /* of another job: the key of its connections to ours, from Tern's launcher */
#define HALF_KEY "tern.half" /* of rank 0: its job's part of the keys of two jobs, where the launcher has none */

extern TERN_HIDDEN int (*pmix_fail)(int code, const char *fmt, ...); /* err_set */
extern TERN_HIDDEN void (*pmix_ring)(uint64_t name);                 /* bell_ring_name */
extern TERN_HIDDEN pmix_proc_t pmix_me;
extern TERN_HIDDEN uint32_t pmix_job_size;

/* As proc_boot.secret and proc_boot.card_get: of the own job. */
TERN_HIDDEN int pmix_own_secret(uint8_t key[32]);
TERN_HIDDEN int pmix_own_card(uint32_t rank, void *buf, size_t cap);

/* Is it Tern's mpiexec that has started this process? */
TERN_HIDDEN bool pmix_by_tern(void);

/* Does this status say that the launcher has no such service? */
TERN_HIDDEN bool pmix_has_none(pmix_status_t);

extern TERN_HIDDEN const struct proc_dynamic pmix_dynamic;

/* ---- events (pmix_events.c) ---- */

/* After each PMIx_Init: has PMIx tell of the ends of processes and jobs. Sends a message, and waits for nothing. */
TERN_HIDDEN void pmix_events_join(void);
TERN_HIDDEN void pmix_events_close(void);

/* As the functions of dynamic.h. */
TERN_HIDDEN int pmix_watch(const char *job);
TERN_HIDDEN int pmix_unwatch(const char *job);
TERN_HIDDEN int pmix_event(struct proc_event *);
TERN_HIDDEN void pmix_event_signal(struct proc_signal *);

/* As proc_boot.deaths and proc_boot.bell. */
struct proc_deaths;
TERN_HIDDEN struct proc_deaths pmix_deaths(void);
TERN_HIDDEN void pmix_bell(uint64_t place, uint64_t name);

#endif
