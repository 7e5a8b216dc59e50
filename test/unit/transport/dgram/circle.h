/*
 * circle.h - processes that talk by datagrams, all in this one: each sends numbered
 * messages whose contents follow from sender and number, and checks what it receives.
 */
#ifndef TEST_DGRAM_CIRCLE_H
#define TEST_DGRAM_CIRCLE_H

#include "transport/dgram/dgram.h"

#define CIRCLE 64

struct member {
    struct dgram *ep;
    struct dgram_peer *peers[CIRCLE]; /* by member; NULL: none yet */
    uint64_t sent[CIRCLE], done[CIRCLE], failed[CIRCLE], came[CIRCLE];
    uint64_t lost;      /* peers given up */
    uint64_t wrong;     /* messages that were not what was to come */
    uint64_t strangers; /* messages of a peer that introduced itself; they count in `came` as well */
    bool full;          /* takes nothing now */
    char words[256];    /* of the last failure */
};

extern struct member members[CIRCLE];
extern const uint8_t circle_key[CRYPTO_KEY];
extern uint64_t circle_seed; /* what sizes and contents of messages follow from */

/* Opens member i over that wire, with faults in words. params: NULL: the usual ones. */
void member_open(unsigned i, struct dgram_wire *, const char *faults, const struct dgram_params *params);
struct dgram_params circle_params(void); /* the usual ones: patience 20 s */
void member_close(unsigned i);          /* and all it knows */
void member_meet(unsigned i, unsigned j); /* i gets j's card */

/* Sends one message of n bytes, or of a size that follows from its number (0 .. most). */
void member_send(unsigned i, unsigned j, size_t n);
void member_send_some(unsigned i, unsigned j, unsigned count, size_t most);

/* Did all that any member sent arrive in order, unhurt and once, and do the senders know? */
bool circle_right(void);
uint64_t circle_under_way(void); /* messages that are not done */

/* Progress of all for `limit` ns of simulated time (net.h). */
void circle_run(uint64_t limit);

/* ---- for the tests in simulated time ---- */

#define SECOND ((uint64_t)1000000000)
#define CIRCLE_MTU 2048

/* Members 0 and 1, each knowing the other, with these faults (and the seed) and parameters. */
void circle_pair(const char *faults, const struct dgram_params *params);
void member_forget(unsigned i, unsigned j);
struct dgram_stats member_stats(unsigned i);

/* circle_seed from TERN_TEST_SEED, or the time; printed. */
void circle_read_seed(void);

/* Before and after each test. */
int circle_start(void **state);
int circle_stop(void **state);
#define CIRCLE_RULE(name) cmocka_unit_test_setup_teardown(name, circle_start, circle_stop)

#endif
