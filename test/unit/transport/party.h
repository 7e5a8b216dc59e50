/*
 * party.h - tests of several processes without a launcher: a party is a job of n
 * processes forked by the test, with a job block as mpiexec makes it, so that the
 * native bootstrap works; or two such jobs. They share memory for signs, barriers and cards.
 */
#ifndef TERN_TEST_PARTY_H
#define TERN_TEST_PARTY_H

#include "base/clock.h"
#include "base/compiler.h"
#include "transport/am.h"
#include <stdatomic.h>

/* A sanitizer keeps freed memory for a while and needs the address space: what a test says of pages does not hold then. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PARTY_SANITIZED true
#else
#define PARTY_SANITIZED false
#endif

#define PARTY_MAX 8

struct party_card {
    uint32_t n;
    unsigned char bytes[512];
};

struct party {
    uint32_t size;        /* all processes */
    uint32_t job_size[2]; /* of each job; the second has none in a party of one */
    _Atomic uint32_t arrived, round; /* of party_meet */
    _Atomic uint64_t sign[64];       /* for the tests, zero at the start */
    struct party_card card[2][PARTY_MAX]; /* of party_connect */
};
extern struct party *party;
extern uint32_t party_rank; /* in a member: in its job */
extern uint32_t party_job;  /* 0 or 1 */

/* Runs `member` in n new processes of one job and waits for them; true if all returned true in 60 s. What they print of
 * failures goes to stderr. Variables of the environment that the test has set are theirs too. */
bool party_run(uint32_t n, bool (*member)(void));

/* The same with two jobs, of n[0] and n[1] processes. */
bool party_run_two(const uint32_t n[2], bool (*member)(void));

/*
 * In a member of one of two jobs, what a connecting layer does: leaves the card for the other job, and learns of that:
 * its name, key and cards. The reference is the caller's; NULL: it failed, which has been said.
 */
struct job_entry *party_connect(void);

/* The two halves of that. */
void party_put_card(void);
struct job_entry *party_learn(void);

/* In a member: opens variables, bootstrap and transports; the end of a member closes them. */
bool party_open(const char *transports);

/* In a member, before party_open: the messages of the test, with their handler and perhaps a sink. */
enum { AM_NUMBER = TP_AM_TESTS };
bool party_takes(tp_handler_fn, tp_sink_fn);

/* Until all members are here. Sleeps, does not communicate by transports. */
void party_meet(void);

/* One look at the transports. There are more processes than cores: a member that finds nothing lets others go on. */
void party_look(void);

/* As party_meet, but the transports are looked at until all are here. */
void party_meet_looking(void);

/* In a member: looks at the transports until cond holds, 20 seconds at most; false, with words, if it does not. */
#define PARTY_AWAIT(cond)                                                                                              \
    do {                                                                                                               \
        uint64_t end_ = clock_ns() + 20000000000u;                                                                     \
        while (!(cond) && clock_ns() < end_) party_look();                                                             \
        PARTY_CHECK(cond);                                                                                             \
    } while (0)

/* What this process has of memory, mappings and descriptors, while no member connects or closes anything: all of them
 * call it. Connections that others have made superfluous have ended by then. */
struct party_usage {
    long pages, maps, files;
};
struct party_usage party_usage_at_rest(void);

/* In a member: false, with words on stderr, if cond does not hold. */
#define PARTY_CHECK(cond)                                                                                              \
    do {                                                                                                               \
        if (!(cond)) return party_failed(__FILE__, __LINE__, #cond);                                                   \
    } while (0)
bool party_failed(const char *file, int line, const char *cond);

uint64_t party_seed(void); /* TERN_TEST_SEED or the clock; printed; to be called before party_run */
uint64_t party_random(uint64_t *state);

#endif
