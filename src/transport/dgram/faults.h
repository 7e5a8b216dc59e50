/*
 * faults.h - a wire around another wire that loses, doubles, reorders, damages and delays
 * what is sent, so that the datagram layer can be tested anywhere, without the system's
 * help. Deterministic: the same seed and the same packets give the same faults.
 *
 * What to do is a list of words, as in TERN_DGRAM_FAULTS:
 *
 *     seed=N                 of the random numbers (1)
 *     loss=P dup=P corrupt=P reorder=P    in percent of the datagrams, 0 .. 100 (0)
 *     delay_us=N             each datagram is held back by 0 .. N us, without changing their order (0)
 *     types=data|ack|probe|door|gone|all  the packets concerned (all)
 *
 * A reordered datagram is held back until 1 to 8 others have gone, or 2 ms have passed.
 *
 * Threads: as the wire's.
 */
#ifndef TERN_TRANSPORT_FAULTS_H
#define TERN_TRANSPORT_FAULTS_H

#include "transport/dgram/wire.h"

/* Puts a fault shim around *wire, which is the shim's from then on; none if `words` is "". 0, or a code with words, and
 * *wire is as it was: TERN_ERR_ARG (no such word, or a number out of its range), TERN_ERR_NOMEM. */
int faults_wrap(struct dgram_wire **wire, const char *words);

struct faults_count {
    uint64_t sent, lost, doubled, damaged, reordered;
};
struct faults_count faults_count(const struct dgram_wire *); /* zeros if it is no shim */

#endif
