/*
 * stray.h - processes that somebody started as one job, but that cannot find each other: each would be a job of one
 * rank, silently, and compute the same N times.
 */
#ifndef TERN_PROC_STRAY_H
#define TERN_PROC_STRAY_H

/* For a process that goes on alone because no launcher that Tern understands started it. If the environment shows that
 * it is one of several all the same, the first of them says so on stderr; or it is an error: TERN_SINGLETON. */
int stray_check(void);

#endif
