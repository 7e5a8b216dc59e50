/*
 * doubt.h - waits that last: can what they wait for still happen?
 *
 * A program may wait for what its peer never does: one message less is sent than received, and the peer is in
 * MPI_Finalize, or has ended its last session and exited. Nothing is wrong with the peer, so no transport reports
 * anything. A process that has waited for half a second asks the peer. The peer remembers the question, and answers it
 * when it is in MPI_Finalize:
 *
 *     waits                                         waited for
 *     0.5 s: AM_ASK ------------------------------> computes; looks now and then
 *     1, 2, 4, 8, 16 ... s: looks again                 |
 *                                   <------ AM_OVER  in MPI_Finalize, where it waits for the others
 *     ends what can never happen: TERN_ERR_ABSENT,      |
 *     in words that say what to look for                v
 *                                                   exits: a transport hears of it (tp_left), or is asked (tp_ops.left)
 *
 * The answer comes after all messages that the peer sent before, so a receive that is still not matched then never will
 * be. Messages that had been matched go on. The question costs one small message to each process that is waited for,
 * once.
 *
 * Only requests that a thread waits for are failed. Receives that the program will cancel later are legal and stay
 * posted. If a call waits for any one of several requests, they are failed only when none of them can complete.
 * Messages of collectives cannot be cancelled, so they are failed whether a thread waits for them or not.
 *
 * A wait for a collective asks which one the peer has called, and the two compare (call_log.h). This is also done for
 * collectives that go through the shared slots of a node.
 *
 * A program that looks again and again (MPI_Test, MPI_Iprobe in a loop) waits for nothing that is known here, and nobody is asked.
 * But of a process of another job nobody tells how it ends before there is a connection. So the processes of other jobs that posted
 * receives, or the last probe, name are connected, one look in half a second: those that have died are found by that, and those
 * that die later by their connection.
 *
 * Not found out: receives from any source that will never be matched; by calls that look without waiting, that a process has left in
 * order; that a process has ended its last session and lives on.
 *
 * Threads: under the lane's lock.
 */
#ifndef TERN_PT2PT_DOUBT_H
#define TERN_PT2PT_DOUBT_H

#include "pt2pt/lane.h"

/* Registers what is done when any wait has lasted (progress_doubt). In each lane: asks on behalf of collectives, and ends
 * their receives whose messages will not come, and sends to peers that have left. For the process, and before that: finds
 * out which peers have left. */
void doubt_open_process(struct lane *first);
void doubt_open(struct lane *);

/* Fewer lanes have something waiting for a peer that has asked: a later turn looks whether it can be answered. By any
 * thread. */
void pt_answer_asked(void) TERN_COLD;

/* This process is in MPI_Finalize, and others may have left (lost.h). */
bool pt_is_leaving(void) TERN_COLD;

/* Nothing that is awaited of a peer that pt_gone_by returns will come. In the last barrier of MPI_Finalize all others
 * are over as well, and what they have sent before may be on its way. */
bool pt_is_final(const struct peer *) TERN_COLD;

/* The peer if it has left, is lost or is over: it begins nothing more. NULL: that is not known, and it is asked.
 * The caller has just seen that something is awaited of it. Delivers nothing. */
struct peer *pt_gone_by(struct lane *, uint32_t index) TERN_COLD;

/* A thread waits for these requests (NULL: no entry), for all or for one of them: asks their peers, and ends those
 * requests that can never complete. The caller is in no lane, or all of them are in one. */
void pt_doubt_requests(int n, struct request *const req[], bool all) TERN_COLD;

/* A probe waits for a message from this rank: 0, or TERN_ERR_PEER or TERN_ERR_ABSENT in words when none will come. */
int pt_doubt_rank(struct comm *, int source, int tag) TERN_COLD;

/* A program looks, as above. pt_doubt_looks: and finds nothing, while other jobs are known; in the first lane, in which all
 * communicators with processes of other jobs are. pt_looks_for: for a message from this process. */
void pt_doubt_looks(void) TERN_COLD;
void pt_looks_for(uint32_t index) TERN_COLD;

#endif
