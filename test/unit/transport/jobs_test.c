/*
 * jobs_test.c - processes of two jobs: each knows the other's by indices of its own, messages go both ways over every
 * wire, and a peer that both sides close leaves nothing behind, here and there, however often.
 * Takes the arguments of party_cycles.h.
 */
#include "party_cycles.h"
#include "base/err.h"
#include "base/var.h"
#include "proc/jobs.h"
#include "proc/proc.h"
#include "transport/keep.h"
#include "transport/peer.h"
#include "transport/wires.h"
#include "transport/shm/shm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const uint32_t sizes[2] = {2, 3};
static const char *wires;
static uint64_t came[2][PARTY_MAX], wrong;

/* h0: the sender's job and rank as it knows them; h1: how many it has sent before. */
static void take(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    uint32_t job = (uint32_t)(h0 >> 32), rank = (uint32_t)h0;
    const unsigned char *bytes = data;
    struct proc_name name;
    bool sane = job < 2 && rank < sizes[job] && jobs_name_of(from->index, &name) && name.rank == rank &&
                (job == party_job) == jobs_is_own(from->index);
    wrong += !sane || came[job][rank]++ != h1;
    for (size_t i = 0; i < n; i++) wrong += bytes[i] != (unsigned char)(h1 + i);
}

static bool open_wires(void)
{
    memset(came, 0, sizeof came);
    wrong = 0;
    PARTY_CHECK(party_takes(take, NULL));
    return party_open(wires);
}

static bool send_to(uint32_t index, uint64_t number, size_t n)
{
    static unsigned char bytes[65536];
    struct peer *p = peer_get(index);
    int rc = TERN_AGAIN;
    for (size_t i = 0; i < n; i++) bytes[i] = (unsigned char)(number + i);
    while (p && (rc = p->ep.am_short(&p->ep, AM_NUMBER, (uint64_t)party_job << 32 | party_rank, number, bytes, n)) == TERN_AGAIN)
        party_look();
    PARTY_CHECK(p && rc == 0);
    return true;
}

static bool close_job(const struct job_entry *job)
{
    for (uint32_t r = 0; r < job_entry_size(job); r++) {
        int rc = TERN_AGAIN;
        PARTY_AWAIT((rc = peer_close(job_index(job, r))) != TERN_AGAIN);
        PARTY_CHECK(rc == 0 && !peer_table[job_index(job, r)]);
    }
    return true;
}

/* ---- messages ---- */

static bool both_ways(void)
{
    enum { MESSAGES = 300 };
    uint32_t other = 1 - party_job;
    PARTY_CHECK(open_wires());
    struct job_entry *job = party_connect();
    PARTY_CHECK(job && job_index(job, 0) == sizes[party_job]); /* behind the own ones */
    for (uint64_t i = 0; i < MESSAGES; i++) {
        for (uint32_t r = 0; r < sizes[other]; r++) PARTY_CHECK(send_to(job_index(job, r), i, (size_t)i * 7 % 1500));
        for (uint32_t r = 0; r < sizes[party_job]; r++)
            if (r != party_rank) PARTY_CHECK(send_to(r, i, (size_t)i % 90));
    }
    for (uint32_t r = 0; r < sizes[other]; r++) PARTY_AWAIT(came[other][r] == MESSAGES);
    for (uint32_t r = 0; r < sizes[party_job]; r++) PARTY_AWAIT(came[party_job][r] == (r == party_rank ? 0 : MESSAGES));
    PARTY_CHECK(wrong == 0);
    party_meet_looking();
    PARTY_CHECK(close_job(job));
    job_unref(job);
    PARTY_CHECK(jobs_others() == 0 && peer_count == sizes[party_job]);
    PARTY_CHECK(send_to(1 - party_rank % 2, MESSAGES, 8)); /* the own job is as it was */
    party_meet_looking();
    PARTY_AWAIT(wires_drained());
    PARTY_CHECK(wrong == 0);
    return true;
}

static void messages_go_both_ways(void **state)
{
    static const char *const boxes[] = {"128", "1", "0"}; /* rings of their own; some; the common one for all */
    (void)state;
    wires = "self,shm";
    for (size_t i = 0; i < ARRAY_LEN(boxes); i++) {
        setenv("TERN_SHM_BOXES", boxes[i], 1);
        assert_true(party_run_two(sizes, both_ways));
    }
    unsetenv("TERN_SHM_BOXES");
    wires = "self,tcp";
    assert_true(party_run_two(sizes, both_ways));
    wires = "self,unix";
    assert_true(party_run_two(sizes, both_ways));
}

static void messages_are_sealed(void **state)
{
    (void)state;
    wires = "self,tcp";
    setenv("TERN_TCP_SEAL", "1", 1);
    assert_true(party_run_two(sizes, both_ways));
    unsetenv("TERN_TCP_SEAL");
}

/* ---- one side is early ---- */

/* Job 0 sends before job 1 knows of it: nothing is lost, nothing comes before its sender is known. */
static bool early(void)
{
    PARTY_CHECK(open_wires());
    party_put_card();
    party_meet_looking();
    struct job_entry *job = party_job == 0 ? party_learn() : NULL;
    if (party_job == 0) {
        PARTY_CHECK(job);
        struct peer *p = peer_get(job_index(job, party_rank));
        PARTY_CHECK(p);
        atomic_fetch_add(&party->sign[0], 1);
        PARTY_CHECK(send_to(p->index, 0, 100)); /* in the common ring: not before it is known */
    } else {
        while (atomic_load(&party->sign[0]) < sizes[0]) wires_progress(64);
        for (int i = 0; i < 1000; i++) wires_progress(64);
        PARTY_CHECK(came[0][0] + came[0][1] == 0 && wires_idle(false)); /* it may sleep meanwhile */
        job = party_learn();
        PARTY_CHECK(job);
        if (party_rank < 2) PARTY_AWAIT(came[0][party_rank] == 1);
    }
    PARTY_CHECK(wrong == 0);
    party_meet_looking();
    PARTY_CHECK(close_job(job));
    job_unref(job);
    return true;
}

static void the_unknown_wait(void **state)
{
    (void)state;
    wires = "self,shm";
    assert_true(party_run_two(sizes, early));
    setenv("TERN_SHM_BOXES", "0", 1);
    assert_true(party_run_two(sizes, early));
    unsetenv("TERN_SHM_BOXES");
    wires = "self,tcp";
    assert_true(party_run_two(sizes, early));
    wires = "self,unix";
    assert_true(party_run_two(sizes, early));
}

/* ---- a different key, and refusals ---- */

static bool other_key(void)
{
    uint8_t key[JOBS_KEY] = "of two parties of the tests";
    uint32_t index;
    PARTY_CHECK(open_wires());
    struct job_entry *job = party_connect();
    PARTY_CHECK(job);
    struct proc_name name, nobody = {1234, 0, 0};
    PARTY_CHECK(jobs_name_of(job_index(job, 0), &name) && jobs_index_of(&name, &index) && index == job_index(job, 0));
    name.rank = job_entry_size(job);
    PARTY_CHECK(!jobs_index_of(&name, &index) && !jobs_index_of(&nobody, &index));
    PARTY_CHECK(!jobs_name_of(job_index(job, 0) + job_entry_size(job), &name));
    PARTY_CHECK(peer_of_sender(job_index(job, 0) + job_entry_size(job)) == NULL);
    PARTY_CHECK(strstr(jobs_words(job_index(job, 1)), party_job ? "rank 1 of job party0" : "rank 1 of job party1"));
    struct job_entry *third = job_add("a third one", 5, key, NULL);
    PARTY_CHECK(third && job_index(third, 0) == job_index(job, 0) + job_entry_size(job));
    PARTY_CHECK(job_add("a third one", 5, key, NULL) == third);
    PARTY_CHECK(!job_add("a third one", 6, key, NULL) && err_code() == TERN_ERR_ABSENT);
    PARTY_CHECK(!job_check("a third one", 5, key) && !job_check("a fourth one", 1, key));
    PARTY_CHECK(job_check("a third one", 6, key) == TERN_ERR_ABSENT && strstr(err_words(), "job a third one is known already"));
    PARTY_CHECK(job_check(proc_self()->job, sizes[party_job], key) == TERN_ERR_ARG && strstr(err_words(), "cannot be another job"));
    PARTY_CHECK(job_check("", 1, key) == TERN_ERR_ARG && job_check("a fourth one", UINT32_MAX, key) == TERN_ERR_ARG);
    PARTY_CHECK(job_check("fourth.secret", 0, key) == TERN_ERR_ARG && strstr(err_words(), "'fourth', of 0") && !strstr(err_words(), "secret"));
    key[0]++;
    PARTY_CHECK(!job_add("a third one", 5, key, NULL) && strstr(err_words(), "key"));
    PARTY_CHECK(job_check("a third one", 5, key) == TERN_ERR_ABSENT);
    PARTY_CHECK(!peer_get(job_index(third, 4)) && strstr(err_words(), "no card"));
    PARTY_CHECK(peer_close(job_index(third, 4)) == 0);
    job_unref(third);
    job_unref(third);
    PARTY_CHECK(jobs_others() == 1 && !jobs_name_of(job_index(job, 0) + job_entry_size(job), &name));
    party_meet();
    job_unref(job);
    return true;
}

static void jobs_are_told_apart(void **state)
{
    (void)state;
    wires = "self,shm";
    assert_true(party_run_two(sizes, other_key));
}

/* ---- what cannot be ---- */

/* Entries that say what is not so, and records that name entries that there are not. */
static bool liar(void)
{
    PARTY_CHECK(open_wires());
    struct job_entry *job = party_connect();
    PARTY_CHECK(job);
    if (party_job == 0 && party_rank == 0) {
        struct peer *p = peer_get(job_index(job, 0));
        PARTY_CHECK(p && p->ep.ops == &tp_shm);
        struct shm_ep *e = p->ep.priv;
        struct shm_sender *at = shm_sender_at(e->segment, (uint32_t)(e->from >> 32));
        const char *where = getenv("TERN_SHM_BOXES");
        if (where && !strcmp(where, "0")) {
            PARTY_AWAIT(shm_sender_admitted(e));
            e->from = (uint64_t)0xfffffff0 << 32;
            PARTY_CHECK(send_to(p->index, 0, 8));
            e->from = (uint64_t)(e->segment->senders - 1) << 32;
            PARTY_CHECK(send_to(p->index, 0, 8));
        } else {
            at->name.rank = 77;
            PARTY_CHECK(send_to(p->index, 0, 8));
        }
        atomic_store(&party->sign[0], 1);
        party_meet_looking();
        party_meet_looking();
        _exit(0); /* nothing is closed */
    }
    while (!atomic_load(&party->sign[0])) wires_progress(64);
    for (int i = 0; i < 1000; i++) wires_progress(64);
    PARTY_CHECK(came[0][0] == 0 && wrong == 0);
    party_meet_looking();
    if (party_job == 0) PARTY_CHECK(send_to(job_index(job, 0), 0, 8)); /* others are served as before */
    if (party_job == 1 && party_rank == 0) PARTY_AWAIT(came[0][1] == 1);
    PARTY_CHECK(wrong == 0);
    party_meet_looking();
    _exit(0); /* nothing is closed */
}

static void false_names_lead_nowhere(void **state)
{
    (void)state;
    wires = "self,shm";
    assert_true(party_run_two(sizes, liar));
    setenv("TERN_SHM_BOXES", "0", 1);
    assert_true(party_run_two(sizes, liar));
    unsetenv("TERN_SHM_BOXES");
}

/* ---- death ---- */

static uint32_t entries_of(uint32_t state)
{
    struct shm_segment *s = shm_dom.segment;
    uint32_t n = 0;
    for (uint32_t i = 0; i < atomic_load(&s->given); i++) n += atomic_load(&shm_sender_at(s, i)->state) == state;
    return n;
}

/* A process of job 0 dies; what it had at job 1 comes back when it is closed there. */
static bool dies(void)
{
    PARTY_CHECK(open_wires());
    struct job_entry *job = party_connect();
    PARTY_CHECK(job);
    if (party_job == 0) {
        PARTY_CHECK(send_to(job_index(job, 0), 0, 1000));
        PARTY_CHECK(send_to(job_index(job, 0), 1, 1000));
        atomic_store(&party->sign[0], (uint64_t)getpid());
        for (;;) pause();
    }
    while (!atomic_load(&party->sign[0])) sched_yield();
    pid_t dead = (pid_t)atomic_load(&party->sign[0]);
    struct peer *p = peer_get(job_index(job, 0)); /* nothing of what it has sent is read */
    PARTY_CHECK(p && entries_of(SHM_HELD) == 1);
    kill(dead, SIGKILL);
    while (!proc_has_ended(dead)) sched_yield();
    p->lost = (char *)"it was killed";
    PARTY_CHECK(peer_close(p->index) == 0 && entries_of(SHM_FREE) == 1 && entries_of(SHM_HELD) == 0);
    PARTY_CHECK(wires_progress(64) == 0 && wires_idle(false));
    _exit(0);
}

static void the_dead_leave_nothing(void **state)
{
    (void)state;
    wires = "self,shm";
    fprintf(stderr, "# a member is killed on purpose:\n");
    assert_false(party_run_two((const uint32_t[]){1, 1}, dies)); /* since one was killed */
}

/* ---- given up ---- */

static bool closes_first;

static bool close_one(uint32_t index)
{
    int rc = TERN_AGAIN;
    PARTY_AWAIT((rc = peer_close(index)) != TERN_AGAIN);
    PARTY_CHECK(rc == 0);
    return true;
}

/* Of a job, a process that is given up, and another one whose peer is closed later. */
static bool gives_up(void)
{
    PARTY_CHECK(open_wires());
    struct job_entry *job = party_connect();
    PARTY_CHECK(job);
    if (party_job == 0) {
        PARTY_CHECK(send_to(job_index(job, 0), 0, 1000) && send_to(job_index(job, 0), 1, 1000));
        if (party_rank == 0 && closes_first) peer_close(job_index(job, 0)); /* its last record is there */
        party_meet();
        party_meet();
        PARTY_CHECK(party_rank || close_one(job_index(job, 0)));
        party_meet();
        PARTY_CHECK(!party_rank || close_one(job_index(job, 0)));
        job_unref(job);
        return true;
    }
    struct peer *lost = peer_get(job_index(job, 0));
    PARTY_CHECK(lost);
    party_meet();
    PARTY_CHECK(entries_of(SHM_HELD) == 2);
    lost->lost = (char *)"it is given up";
    PARTY_CHECK(close_one(lost->index) && entries_of(SHM_HELD) == 1);
    PARTY_CHECK(entries_of(SHM_BARRED) == !closes_first && entries_of(SHM_FREE) == closes_first);
    party_meet();
    party_meet();
    PARTY_AWAIT(came[0][1] == 2);
    PARTY_CHECK(close_one(job_index(job, 1)) && came[0][0] == 0 && wrong == 0);
    PARTY_CHECK(entries_of(SHM_FREE) == 2 && wires_progress(64) == 0 && wires_idle(false));
    job_unref(job);
    return true;
}

static void rings_of_those_given_up_come_back(void **state)
{
    (void)state;
    wires = "self,shm";
    closes_first = false;
    assert_true(party_run_two((const uint32_t[]){2, 1}, gives_up));
    closes_first = true;
    assert_true(party_run_two((const uint32_t[]){2, 1}, gives_up));
}

/* Regression: an entry of the common ring that was barred before it was admitted could not be left: its sender waited
 * for ever to write a last record. */
static bool barred_unadmitted(void)
{
    PARTY_CHECK(open_wires());
    struct job_entry *job = party_connect();
    PARTY_CHECK(job);
    struct peer *p = peer_get(job_index(job, 0));
    PARTY_CHECK(p);
    party_meet();
    if (party_job == 0) {
        party_meet();
        PARTY_CHECK(close_one(p->index));
        party_meet();
    } else {
        PARTY_CHECK(entries_of(SHM_HELD) == 1); /* this process has not looked since */
        p->lost = (char *)"it is given up";
        PARTY_CHECK(close_one(p->index) && entries_of(SHM_BARRED) == 1);
        party_meet();
        party_meet();
        PARTY_CHECK(entries_of(SHM_FREE) == 1 && wires_progress(64) == 0 && wires_idle(false));
    }
    job_unref(job);
    return true;
}

static void an_entry_barred_before_it_was_admitted_comes_back(void **state)
{
    (void)state;
    wires = "self,shm";
    setenv("TERN_SHM_BOXES", "0", 1);
    assert_true(party_run_two((const uint32_t[]){1, 1}, barred_unadmitted));
    unsetenv("TERN_SHM_BOXES");
}

/* ---- asleep ---- */

/* Regression: a sender of another job that came to the common ring did not wake its receiver, who had to let it in. */
static bool comes_to_a_sleeper(void)
{
    PARTY_CHECK(open_wires());
    struct job_entry *job = party_connect();
    PARTY_CHECK(job);
    if (party_job == 0) {
        party_meet();
        struct peer *p = peer_get(job_index(job, 0));
        PARTY_CHECK(p && !shm_sender_admitted(p->ep.priv));
        party_meet();
        PARTY_AWAIT(shm_sender_admitted(p->ep.priv));
    } else {
        struct bell *bell = wires_bell();
        bell_announce(bell);
        PARTY_CHECK(wires_idle(false) && atomic_load(&bell->asleep) == BELL_FUTEX);
        party_meet();
        party_meet();
        PARTY_CHECK(atomic_load(&bell->asleep) == BELL_AWAKE && entries_of(SHM_HELD) == 1);
        wires_progress(64);
        PARTY_CHECK(entries_of(SHM_ADMITTED) == 1);
    }
    party_meet_looking();
    PARTY_CHECK(close_job(job));
    job_unref(job);
    return true;
}

static void who_comes_to_the_common_ring_wakes_the_receiver(void **state)
{
    (void)state;
    wires = "self,shm";
    setenv("TERN_SHM_BOXES", "0", 1);
    assert_true(party_run_two((const uint32_t[]){1, 1}, comes_to_a_sleeper));
    unsetenv("TERN_SHM_BOXES");
}

/* ---- left ---- */

/* Regression: a sender that had left its ring, and waited for the end of the connection, gave the pages of the ring
 * back when the next sender had sent as much as itself: with what that had sent since. */
static bool leaves_ring(void)
{
    enum { MESSAGES = 40 };
    PARTY_CHECK(open_wires());
    struct job_entry *job = party_connect();
    PARTY_CHECK(job);
    uint32_t to = job_index(job, 0);
    if (party_job == 0 && party_rank == 0) {
        PARTY_AWAIT(came[1][0] == 1);
        for (uint64_t i = 0; i < MESSAGES; i++) PARTY_CHECK(send_to(to, i, 1000));
        PARTY_CHECK(peer_close(to) == TERN_AGAIN); /* its last record is there, that of the other side is not */
        const struct shm_ep *e = peer_table[to]->ep.priv;
        uint32_t sent = e->lap + (uint32_t)(e->next - e->ring);
        for (int i = 0; i < 3; i++) party_meet();
        PARTY_CHECK(e->said_last && atomic_load(&e->box->head) == sent);
        shm_trim(NULL);
        party_meet();
    } else if (party_job == 0) {
        party_meet();
        for (uint64_t i = 0; i <= MESSAGES; i++)
            PARTY_CHECK(send_to(to, i, i < MESSAGES ? 1000 : 8)); /* the same ring */
        party_meet();
        PARTY_CHECK(send_to(to, MESSAGES + 1, 100));
        party_meet();
        party_meet();
    } else {
        PARTY_CHECK(send_to(job_index(job, 0), 0, 8));
        PARTY_AWAIT(came[0][0] == MESSAGES && entries_of(SHM_FREE) == 1);
        party_meet();
        PARTY_AWAIT(came[0][1] == MESSAGES + 1);
        for (int i = 0; i < 3; i++) party_meet();
        PARTY_AWAIT(came[0][1] == MESSAGES + 2);
        PARTY_CHECK(wrong == 0 && close_one(job_index(job, 0)) && close_one(job_index(job, 1)));
    }
    PARTY_CHECK(party_job || close_one(to));
    job_unref(job);
    return true;
}

static void a_ring_that_was_left_is_the_next_senders(void **state)
{
    (void)state;
    wires = "self,shm";
    assert_true(party_run_two((const uint32_t[]){2, 1}, leaves_ring));
}

/* Regression: a sender that had left its ring, after a record that did not fit and was given up, did not sleep until
 * the connection was closed. */
static bool leaves_full_ring(void)
{
    static unsigned char bytes[2900]; /* so that the last record has room where this has none */
    PARTY_CHECK(open_wires());
    struct job_entry *job = party_connect();
    PARTY_CHECK(job);
    struct peer *p = peer_get(job_index(job, 0));
    PARTY_CHECK(p);
    party_meet();
    if (party_job == 0) {
        const struct shm_ep *e = p->ep.priv;
        while (!p->ep.am_short(&p->ep, AM_NUMBER, 0, 0, bytes, sizeof bytes)) continue;
        PARTY_CHECK(e->full && peer_close(p->index) == TERN_AGAIN && e->said_last);
        party_meet();
        party_meet();
        PARTY_CHECK(wires_progress(64) == 0 && wires_idle(true));
    } else {
        party_meet();
        PARTY_AWAIT(entries_of(SHM_FREE) == 1);
        party_meet();
    }
    party_meet();
    PARTY_CHECK(close_one(p->index));
    job_unref(job);
    return true;
}

static void a_full_ring_that_was_left_keeps_nobody_awake(void **state)
{
    (void)state;
    wires = "self,shm";
    assert_true(party_run_two((const uint32_t[]){1, 1}, leaves_full_ring));
}

static struct tp_kept *in_ring;

static void keep(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    (void)from, (void)h0, (void)h1;
    in_ring = tp_keep_in_place(data, n, TP_KEEP_BRIEFLY);
}

/* Regression: a ring of which records were kept longer than the connection lasted named its peer, freed meanwhile, and
 * woke that when the records were given back. */
static bool keeps_longer(void)
{
    PARTY_CHECK(party_takes(party_job ? keep : take, NULL) && party_open(wires));
    struct job_entry *job = party_connect();
    PARTY_CHECK(job);
    uint32_t other = job_index(job, 0);
    if (party_job == 0) {
        PARTY_CHECK(send_to(other, 0, 2000));
        PARTY_CHECK(close_one(other));
        party_meet();
        party_meet();
    } else {
        PARTY_AWAIT(in_ring);
        PARTY_CHECK(close_one(other) && entries_of(SHM_FREE) == 0);
        atomic_store(&shm_dom.rx[0].box->blocked, 1); /* the sender has found no room, once */
        party_meet();
        tp_release(in_ring);
        wires_progress(64);
        PARTY_CHECK(!peer_table[other] && entries_of(SHM_FREE) == 1);
        party_meet();
    }
    job_unref(job);
    return true;
}

static void what_is_kept_outlives_the_connection(void **state)
{
    (void)state;
    wires = "self,shm";
    assert_true(party_run_two((const uint32_t[]){1, 1}, keeps_longer));
}

/* ---- again and again ---- */

static bool once(long number)
{
    struct job_entry *job = party_learn();
    PARTY_CHECK(job && job_index(job, 0) == sizes[party_job]);
    memset(came, 0, sizeof came);
    for (uint32_t r = 0; r < job_entry_size(job); r++) PARTY_CHECK(send_to(job_index(job, r), 0, (size_t)number % 3000));
    for (uint32_t r = 0; r < job_entry_size(job); r++) PARTY_AWAIT(came[1 - party_job][r] == 1);
    PARTY_CHECK(close_job(job));
    job_unref(job);
    PARTY_CHECK(wrong == 0 && jobs_others() == 0);
    party_meet_looking();
    return true;
}

static bool again(void)
{
    wires = getenv("TERN_TRANSPORTS");
    PARTY_CHECK(open_wires());
    party_put_card();
    party_meet_looking();
    PARTY_CHECK(cycles_go(&(struct cycles){.once = once}));
    PARTY_CHECK(peer_count == sizes[party_job] && peer_other_quotas == 0);
    return true;
}

static void cycles_leave_nothing(void **state)
{
    (void)state;
    assert_true(cycles_run(sizes, again));
    assert_true(cycles_run_by("self,unix", sizes, again));
}

int main(int argc, char **argv)
{
    bool alone = cycles_arguments(argc, argv, PARTY_SANITIZED ? 100 : 500);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_go_both_ways),
        cmocka_unit_test(messages_are_sealed),
        cmocka_unit_test(the_unknown_wait),
        cmocka_unit_test(jobs_are_told_apart),
        cmocka_unit_test(false_names_lead_nowhere),
        cmocka_unit_test(the_dead_leave_nothing),
        cmocka_unit_test(rings_of_those_given_up_come_back),
        cmocka_unit_test(an_entry_barred_before_it_was_admitted_comes_back),
        cmocka_unit_test(who_comes_to_the_common_ring_wakes_the_receiver),
        cmocka_unit_test(a_ring_that_was_left_is_the_next_senders),
        cmocka_unit_test(a_full_ring_that_was_left_keeps_nobody_awake),
        cmocka_unit_test(what_is_kept_outlives_the_connection),
        cmocka_unit_test(cycles_leave_nothing),
    };
    const struct CMUnitTest only_cycles[] = {cmocka_unit_test(cycles_leave_nothing)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (alone) return cmocka_run_group_tests(only_cycles, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
