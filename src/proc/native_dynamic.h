/*
 * native_dynamic.h - the services of Tern's mpiexec (dynamic.h), by questions to it (channel.h, which native.c opens).
 *
 * Threads: any, between native.c's open and close.
 */
#ifndef TERN_PROC_NATIVE_DYNAMIC_H
#define TERN_PROC_NATIVE_DYNAMIC_H

#include "proc/dynamic.h"

extern const struct proc_dynamic native_dynamic;

/* native_events.c: as proc_watch and so on. native_events_close drops all watches and events. */
int native_watch(const char *job);
int native_unwatch(const char *job);
int native_event(struct proc_event *);
void native_events_close(void);

#endif
