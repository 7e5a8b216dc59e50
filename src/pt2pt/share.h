/*
 * share.h - how lanes that one thread at a time used without their locks become shared by threads: drawn in share.c, done by
 * lanes_share (lanes.h). The caller is in no lane, nor is the helper; peer_short_prepare has been called.
 */
#ifndef TERN_PT2PT_SHARE_H
#define TERN_PT2PT_SHARE_H

struct lane;
struct quiet;

/* From now on threads share the lanes, and enter each by its lock. The caller has, or takes now, those of all. */
void share_begin(void);

/* Returns when other threads are out of the lanes that they were in without a lock. NULL: there are none. */
void share_await(struct quiet *others);

/* The caller has taken the lock of a lane, which nobody else is in any more. It leaves it by lane_out. */
void lane_was_shared(struct lane *);

/* Threads share the transports (wires_share): what comes is delivered by deliver.h. In all lanes, or before there are threads. */
void share_wires(void);

#endif
