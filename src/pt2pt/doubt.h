/*
 * doubt.h - waits that last: will it come at all?
 *
 * A program may wait for what its peer never does: a message less is sent than received, and the peer is in
 * MPI_Finalize, or has ended its last session and exited. Nothing of that is wrong with the peer, so nothing is said by
 * itself. Who has waited for half a second asks; who is asked remembers it, and answers when it knows:
 *
 *     waits                                         waited for
 *     0.5 s: AM_ASK ------------------------------> computes; looks now and then
 *     1, 2, 4, 8, 16 ... s: looks again                 |
 *                                   <------ AM_OVER  in MPI_Finalize, where it waits for the others
 *     ends what can never happen: TERN_ERR_ABSENT,      |
 *     in words that say what to look for                v
 *                                                   exits: a transport hears of it (tp_left), or is asked (tp_ops.left)
 *
 * The answer comes behind all that was sent before, so what is still not matched then never will be. What had been
 * matched goes on. A question costs nobody anything else: it is one small message to each process that is waited for,
 * once.
 *
 * Only requests that a thread waits for are failed. Receives that the program will cancel later are legal and stay
 * posted. If a call waits for any one of several requests, they are failed only when none of them can complete.
 * Messages of collectives cannot be cancelled, so they are failed whether a thread waits for them or not.
 *
 * Where a collective is awaited, the question says which one, and who is asked compares (call_log.h); that is so for what
 * goes through the shared slots of a node, too.
 *
 * Not found out: receives from any source; calls that look without waiting (MPI_Test in a loop); a process that has
 * ended its last session and lives on.
 *
 * Threads: under the lane's lock.
 */
#ifndef TERN_PT2PT_DOUBT_H
#define TERN_PT2PT_DOUBT_H

#include "pt2pt/lane.h"

/* A wait lasts, whatever for: finds out who has left, which ends sends to them; asks on behalf of collectives, and ends
 * those messages of theirs that will not come. */
void pt_doubt(struct lane *) TERN_COLD;

/* The peer if it has begun all that it ever will. NULL: that is not known, and it is asked. Delivers nothing. */
struct peer *pt_gone_by(uint32_t index) TERN_COLD;

/* Somebody waits for these (NULL: no entry), all or one of them: asks, and ends what will never be. */
void pt_doubt_requests(int n, struct request *const req[], bool all) TERN_COLD;

/* A probe waits for a message from this rank: 0, or TERN_ERR_PEER or TERN_ERR_ABSENT in words when none will come. */
int pt_doubt_rank(struct comm *, int source, int tag) TERN_COLD;

#endif
