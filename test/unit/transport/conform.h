/*
 * conform.h - what the files of conform_test share: the wire that is tested, and the other process.
 */
#ifndef TERN_TEST_CONFORM_H
#define TERN_TEST_CONFORM_H

#include "party.h"
#include "transport/peer.h"

struct tested {
    const char *name;
    uint32_t processes;
    uint64_t messages; /* of random sizes: more where they cost no system call */
};
extern const struct tested *conform_wire;
extern uint64_t conform_seed; /* the same in all processes */

struct peer *conform_other(void); /* the other process, or this one where there is no other */
void conform_meet(void);          /* as party_meet; what was sent before goes its way meanwhile */

/* conform_keep.c: cases. */
bool kept_bytes_stay(void);
bool kept_for_long_stops_nobody(void);
bool release_wakes(void);

/* conform_bulk.c: cases. */
bool bulk_flag_and_members(void);
bool bulk_sizes(void);
bool bulk_many(void);
bool bulk_at_once(void);
bool bulk_of_another_length(void);
bool bulk_sudden_death(void);
bool bulk_then_leave(void);
bool bulk_severed(void);

/* conform_threads.c: cases. */
bool threads_send(void);
bool threads_connect(void);
bool threads_answer(void);
bool threads_send_from_memory(void);
bool threads_copy(void);

/* conform_remote.c: cases. Each is run by all processes of a party. */
bool remote_model(void);
bool remote_rights_and_ranges(void);
bool remote_deregistered(void);
bool remote_peer_ends(void);
bool remote_memory_grows(void);
bool remote_many_origins(void); /* by 3 processes where there may be more than one */

#endif
