/*
 * shm_test.c - what is particular to shared memory: sleeping receivers and senders are always woken, by either barrier;
 * boxes that many senders share; sizes of rings; single copies that the system forbids.
 */
#include "../party.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/memfile.h"
#include "base/sleep.h"
#include "base/var.h"
#include "transport/peer.h"
#include "transport/wires.h"
#include "transport/shm/shm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t seed;
static uint64_t came[PARTY_MAX], wrong; /* by sender */

/* h0: number of the message of its sender; h1: length; payload: number in every word. */
static void take(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    const uint64_t *w = data;
    wrong += h0 != came[from->index]++ || h1 != n;
    for (size_t i = 0; i < n / 8; i++) wrong += w[i] != h0;
}

static int send_number(struct peer *p, uint64_t number, size_t n)
{
    static uint64_t words[1 << 17];
    for (size_t i = 0; i < n / 8; i++) words[i] = number;
    return p->ep.am_short(&p->ep, AM_NUMBER, number, n, words, n);
}

static bool open_shm(void)
{
    memset(came, 0, sizeof came);
    wrong = 0;
    return party_takes(take, NULL) && party_open("self,shm");
}

/* One look; sleeps if nothing came and nothing can. How the protocol waits (wait.c), without polling. */
static void look_or_sleep(bool want_room)
{
    struct bell *b = wires_bell();
    if (wires_progress(64)) return;
    uint32_t ticket = bell_announce(b);
    if (wires_idle(want_room)) bell_wait(b, ticket, NULL, 60000000000u);
    bell_stay(b);
}

/* Sends, asleep while there is no room. */
static bool send_patiently(struct peer *p, uint64_t number, size_t n)
{
    int rc;
    while ((rc = send_number(p, number, n)) == TERN_AGAIN) look_or_sleep(true);
    PARTY_CHECK(rc == 0);
    return true;
}

static void doze(uint64_t *state)
{
    uint64_t r = party_random(state);
    if (r % 64 == 0) usleep((useconds_t)(r >> 8) % 50);
    for (uint64_t i = (r >> 20) % 300; i; i--) cpu_relax();
}

/* ---- a sleeping receiver ---- */

static bool ping_pong(void)
{
    enum { ROUNDS = 20000 };
    uint64_t state = seed + party_rank;
    PARTY_CHECK(open_shm());
    struct peer *p = peer_get(1 - party_rank);
    PARTY_CHECK(p != NULL);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        if (party_rank == 0) PARTY_CHECK(send_patiently(p, i, 8));
        while (came[p->index] <= i) look_or_sleep(false);
        doze(&state);
        if (party_rank == 1) PARTY_CHECK(send_patiently(p, i, 8));
    }
    PARTY_CHECK(wrong == 0);
    return true;
}

/* ---- a sleeping sender ---- */

/* The receiver now sleeps, now dawdles, so that the ring is full most of the time and empty at others. */
static bool full_ring(void)
{
    enum { MESSAGES = 60000 };
    uint64_t state = seed + party_rank;
    PARTY_CHECK(open_shm());
    struct peer *p = peer_get(1 - party_rank);
    PARTY_CHECK(p != NULL);
    if (party_rank == 0) {
        for (uint64_t i = 0; i < MESSAGES; i++) PARTY_CHECK(send_patiently(p, i, party_random(&state) % 200 & ~7ul));
    } else {
        while (came[0] < MESSAGES) {
            look_or_sleep(false);
            if (party_random(&state) % 32 == 0) doze(&state);
        }
    }
    PARTY_CHECK(wrong == 0);
    return true;
}

/* Both at once, in both directions: who is full and asleep must also be woken by messages. */
static bool full_both_ways(void)
{
    enum { MESSAGES = 30000 };
    uint64_t state = seed + party_rank;
    PARTY_CHECK(open_shm());
    struct peer *p = peer_get(1 - party_rank);
    PARTY_CHECK(p != NULL);
    for (uint64_t i = 0; i < MESSAGES; i++) PARTY_CHECK(send_patiently(p, i, party_random(&state) % 1500 & ~7ul));
    while (came[p->index] < MESSAGES) look_or_sleep(false);
    PARTY_CHECK(wrong == 0);
    return true;
}

static void with_both_barriers(bool (*member)(void))
{
    setenv("TERN_SHM_BOX", "4K", 1);
    setenv("TERN_SPIN", "never", 1); /* sleeps often: wakers pay for the barrier */
    assert_true(party_run(2, member));
    setenv("TERN_SPIN", "auto", 1); /* membarrier, where there are cores enough */
    assert_true(party_run(2, member));
    unsetenv("TERN_SPIN");
    unsetenv("TERN_SHM_BOX");
}

static void sleeping_receiver_is_woken(void **state)
{
    (void)state;
    with_both_barriers(ping_pong);
}

static void sleeping_sender_is_woken(void **state)
{
    (void)state;
    with_both_barriers(full_ring);
    with_both_barriers(full_both_ways);
}

/* Regression: the receiver, late in answering one "blocked", wiped out the next, and the sender slept for ever. */
static bool wiped_mark(void)
{
    PARTY_CHECK(open_shm());
    struct peer *p = peer_get(1 - party_rank);
    PARTY_CHECK(p != NULL);
    uint64_t n = 0;
    if (party_rank == 0) {
        struct shm_ep *e = p->ep.priv;
        while (send_number(p, n, 64) == 0) n++;
        PARTY_CHECK(atomic_load(&e->box->blocked) == 1);
        PARTY_CHECK(wires_idle(true));
        atomic_store(&e->box->blocked, 0); /* as the receiver would */
        PARTY_CHECK(!wires_idle(true));
        PARTY_CHECK(atomic_load(&e->box->blocked) == 1);
        PARTY_CHECK(wires_idle(true));
    }
    party_meet();
    return true;
}

static void wiped_mark_is_noticed(void **state)
{
    (void)state;
    assert_true(party_run(2, wiped_mark));
}

/* Regression: the ring of a peer that was lost while it was full kept all others from sleeping. */
static bool full_ring_of_lost(void)
{
    PARTY_CHECK(open_shm());
    struct peer *p = peer_get(1 - party_rank);
    PARTY_CHECK(p != NULL);
    for (uint64_t n = 0; party_rank == 0 && send_number(p, n, 64) == 0;) n++;
    if (party_rank == 0) {
        struct shm_ep *e = p->ep.priv;
        PARTY_CHECK(wires_idle(true));
        atomic_fetch_add(&e->box->head, 128); /* it has read a message, and dies */
        PARTY_CHECK(!wires_idle(true));
        p->lost = (char *)"it has died";
        PARTY_CHECK(wires_idle(true));
    }
    party_meet();
    return true;
}

static void full_ring_of_a_lost_peer_keeps_nobody_awake(void **state)
{
    (void)state;
    assert_true(party_run(2, full_ring_of_lost));
}

/* ---- many senders ---- */

/* All send to 0, some through boxes of their own, the rest through the common one. */
static bool many_to_one(void)
{
    enum { MESSAGES = 20000 };
    uint64_t state = seed + party_rank;
    PARTY_CHECK(open_shm());
    if (party_rank) {
        struct peer *p = peer_get(0);
        PARTY_CHECK(p != NULL);
        bool common = !(p->ep.caps & TP_CAP_BCOPY);
        if (common) atomic_fetch_add(&party->sign[0], 1);
        for (uint64_t i = 0; i < MESSAGES; i++) {
            int rc;
            while ((rc = send_number(p, i, party_random(&state) % 600 & ~7ul)) == TERN_AGAIN) usleep(20);
            PARTY_CHECK(rc == 0);
        }
    } else {
        for (uint32_t r = 1; r < party->size; r++)
            while (came[r] < MESSAGES) wires_progress(64);
        PARTY_CHECK(wires_progress(64) == 0);
        for (uint32_t r = 1; r < party->size; r++) PARTY_CHECK(came[r] == MESSAGES);
    }
    PARTY_CHECK(wrong == 0);
    party_meet();
    uint32_t boxes = (uint32_t)var_int(VAR_SHM_BOXES);
    PARTY_CHECK(atomic_load(&party->sign[0]) == (boxes < party->size - 1 ? party->size - 1 - boxes : 0));
    return true;
}

static void boxes_are_shared_when_they_run_out(void **state)
{
    static const char *const boxes[] = {"0", "1", "2", "128"};
    (void)state;
    setenv("TERN_SHM_BOX", "4K", 1);
    for (size_t i = 0; i < ARRAY_LEN(boxes); i++) {
        setenv("TERN_SHM_BOXES", boxes[i], 1);
        assert_true(party_run(5, many_to_one));
    }
    unsetenv("TERN_SHM_BOXES");
    unsetenv("TERN_SHM_BOX");
}

/* ---- a sender that dies while it has the lock of the common ring ---- */

static uint64_t sent_before;  /* messages, which move the place of the death along the ring */
static bool dies_before_word; /* the record is not published; else the lock is all that is left behind */

/* Never returns: half of the payload lies on a page that cannot be read, or the receiver's bell does. */
static void die_inside(struct peer *p)
{
    enum { BYTES = 1000 };
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct shm_ep *e = p->ep.priv;
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    prctl(PR_SET_DUMPABLE, 0);
    memset(pages, 0xff, 4096);
    mprotect(pages + 4096, 4096, PROT_NONE);
    if (!dies_before_word) e->bell = (struct bell *)(void *)(pages + 4096);
    p->ep.am_short(&p->ep, AM_NUMBER, sent_before, BYTES, pages + (dies_before_word ? 4096 - BYTES / 2 : 0), BYTES);
    _exit(1);
}

/* A process in the place of this one takes its entry, and dies. */
static bool send_until_death(struct peer *p)
{
    struct shm_ep *e = p->ep.priv;
    int status, rc;
    for (uint64_t i = 0; i < sent_before; i++)
        while ((rc = send_number(p, i, 200)) == TERN_AGAIN) usleep(20);
    while (atomic_load(&e->box->head) + 2048 < e->box->tail) usleep(20); /* room for one more */
    pid_t child = fork();
    if (!child) die_inside(p);
    shm_sender_at(e->segment, (uint32_t)(e->from >> 32))->pid = (uint32_t)child;
    PARTY_CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    PARTY_CHECK(atomic_load(&e->box->lock) == (uint32_t)(e->from >> 32) + 1);
    atomic_store(&party->sign[0], 1);
    return true;
}

static bool holder_dies(void)
{
    enum { MESSAGES = 300 };
    int rc;
    PARTY_CHECK(open_shm());
    if (party_rank == 0) {
        struct peer *dead = peer_get(1);
        PARTY_CHECK(dead != NULL);
        while (came[2] < MESSAGES) {
            wires_progress(64);
            if (atomic_load(&party->sign[0]) && !dead->lost) dead->lost = strdup("it has died");
        }
        PARTY_CHECK(came[1] == sent_before + !dies_before_word);
        PARTY_CHECK(wrong == (dies_before_word ? 0 : 125)); /* the words of the dead one's last message are no numbers */
        free(dead->lost);
        dead->lost = NULL;
    } else {
        struct peer *p = peer_get(0);
        PARTY_CHECK(p != NULL);
        if (party_rank == 1) PARTY_CHECK(send_until_death(p));
        while (!atomic_load(&party->sign[0])) usleep(100);
        for (uint64_t i = 0; party_rank == 2 && i < MESSAGES; i++)
            while ((rc = send_number(p, i, i * 8 % 1600)) == TERN_AGAIN) usleep(20);
    }
    party_meet();
    return true;
}

static void lock_of_a_dead_sender_is_taken_back(void **state)
{
    (void)state;
    setenv("TERN_SHM_BOXES", "0", 1);
    setenv("TERN_SHM_BOX", "4K", 1);
    for (sent_before = 0; sent_before < 16; sent_before++)
        for (int before = 0; before < 2; before++) {
            dies_before_word = before;
            assert_true(party_run(3, holder_dies));
        }
    unsetenv("TERN_SHM_BOXES");
    unsetenv("TERN_SHM_BOX");
}

/* ---- sizes of rings ---- */

static bool some_traffic(void)
{
    PARTY_CHECK(open_shm());
    struct peer *p = peer_get(1 - party_rank);
    PARTY_CHECK(p != NULL);
    uint64_t state = seed;
    size_t max = min_size(p->ep.max_short, 1 << 20);
    atomic_store(&party->sign[party_rank], p->ep.max_short);
    for (uint64_t i = 0; i < 3000; i++) {
        int rc;
        size_t n = i % 100 ? party_random(&state) % 2000 & ~7ul : max & ~7ul;
        while ((rc = send_number(p, i, min_size(n, max & ~7ul))) == TERN_AGAIN) wires_progress(64);
        PARTY_CHECK(rc == 0);
    }
    while (came[p->index] < 3000) look_or_sleep(false);
    PARTY_CHECK(wrong == 0);
    return true;
}

static void rings_of_all_sizes(void **state)
{
    static const char *const sizes[] = {"1", "4K", "5000", "1M", "1G"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        setenv("TERN_SHM_BOX", sizes[i], 1);
        assert_true(party_run(2, some_traffic));
    }
    unsetenv("TERN_SHM_BOX");
}

static bool refuses_boxes(void)
{
    setenv("TERN_TRANSPORTS", "self,shm", 1);
    PARTY_CHECK(var_open() == 0);
    PARTY_CHECK(peers_open() == TERN_ERR_ARG);
    PARTY_CHECK(strstr(err_words(), "TERN_SHM_BOXES"));
    exit(0);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    setenv("TERN_SHM_BOXES", "-1", 1);
    assert_true(party_run(1, refuses_boxes));
    setenv("TERN_SHM_BOXES", "2000000000", 1);
    assert_true(party_run(1, refuses_boxes));
    unsetenv("TERN_SHM_BOXES");
}

/* ---- single copies ---- */

/* From now on the system refuses process_vm_readv and _writev, as containers do. */
static bool forbid_cma(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {ARRAY_LEN(code), code};
    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static bool without_cma(void)
{
    PARTY_CHECK(forbid_cma());
    PARTY_CHECK(some_traffic());
    struct peer *p = peer_get(1 - party_rank);
    PARTY_CHECK(p->ep.caps & TP_CAP_MAP);
    PARTY_CHECK(!(p->ep.caps & TP_CAP_GETPUT));
    return true;
}

/* Forbidden later: the copy says so, and the capability goes. */
static bool cma_withdrawn(void)
{
    uint64_t mine = 5, got = 0;
    PARTY_CHECK(open_shm());
    struct peer *p = peer_get(1 - party_rank);
    PARTY_CHECK(p != NULL);
    if (!(p->ep.caps & TP_CAP_GETPUT)) return true;
    atomic_store(&party->sign[party_rank], (uintptr_t)&mine);
    party_meet();
    struct iovec local = {&got, 8}, remote = {(void *)(uintptr_t)atomic_load(&party->sign[p->index]), 8};
    PARTY_CHECK(p->ep.ops->get(&p->ep, &local, 1, &remote, 1) == 0 && got == 5);
    party_meet();
    PARTY_CHECK(forbid_cma());
    PARTY_CHECK(p->ep.ops->get(&p->ep, &local, 1, &remote, 1) == TERN_ERR_UNSUPPORTED);
    PARTY_CHECK(!(p->ep.caps & TP_CAP_GETPUT));
    return true;
}

/* The peer is gone, or has nothing at the address: an error in words. */
static bool failing_copies(void)
{
    uint64_t got = 0;
    PARTY_CHECK(open_shm());
    struct peer *p = peer_get(1 - party_rank);
    PARTY_CHECK(p != NULL);
    if (!(p->ep.caps & TP_CAP_GETPUT)) return true;
    struct iovec local = {&got, 8}, remote = {(void *)64, 8};
    PARTY_CHECK(p->ep.ops->get(&p->ep, &local, 1, &remote, 1) == TERN_ERR_SYSTEM);
    PARTY_CHECK(strstr(err_words(), "Bad address"));
    struct shm_ep *e = p->ep.priv;
    pid_t pid = e->pid, child = fork();
    if (!child) _exit(0);
    e->pid = child;
    int status;
    PARTY_CHECK(waitpid(child, &status, 0) == child);
    PARTY_CHECK(p->ep.ops->put(&p->ep, &local, 1, &remote, 1) == TERN_ERR_PEER);
    PARTY_CHECK(strstr(err_words(), "has ended"));
    e->pid = pid;
    party_meet();
    return true;
}

static bool switched_off(void)
{
    PARTY_CHECK(some_traffic());
    PARTY_CHECK(!(peer_get(1 - party_rank)->ep.caps & TP_CAP_GETPUT));
    return true;
}

static void single_copies_may_be_forbidden(void **state)
{
    (void)state;
    assert_true(party_run(2, without_cma));
    assert_true(party_run(2, cma_withdrawn));
    setenv("TERN_CMA", "off", 1);
    assert_true(party_run(2, switched_off));
    unsetenv("TERN_CMA");
}

static void failing_copies_are_errors_in_words(void **state)
{
    (void)state;
    assert_true(party_run(2, failing_copies));
}

/* ---- descriptors of other processes ---- */

/* Only the file that the card speaks of is opened, whatever has its number now. */
static void foreign_descriptors_are_not_opened(void **state)
{
    struct stat st, other;
    (void)state;
    int fd = memfd_create("told", 0), foreign = memfd_create("foreign", 0);
    assert_true(fd >= 0 && foreign >= 0 && !fstat(fd, &st));
    uint64_t told = memfile_key(memfile_id_of(fd));
    int own = shm_open_foreign(0, (uint32_t)getpid(), (uint32_t)fd, told, false);
    assert_true(own >= 0 && !fstat(own, &other));
    assert_int_equal(other.st_ino, st.st_ino);
    close(own);
    assert_int_equal(shm_open_foreign(0, (uint32_t)getpid(), (uint32_t)foreign, told, false), -1);
    assert_non_null(strstr(err_words(), "by the launcher: does not hand it out; by /proc: Bad file descriptor"));
    assert_int_equal(shm_open_foreign(0, 0, (uint32_t)fd, told, false), -1);
    assert_non_null(strstr(err_words(), "by /proc: not possible between these two"));
    dup2(foreign, fd);
    assert_int_equal(shm_open_foreign(0, (uint32_t)getpid(), (uint32_t)fd, told, false), -1);
    close(fd);
    close(foreign);
}

/* ---- where peers run ---- */

static bool peer_is_on(int core)
{
    cpu_set_t cores, expected;
    CPU_ZERO(&cores);
    CPU_ZERO(&expected);
    if (core >= 0) CPU_SET((size_t)core, &expected);
    wires_cores(false, &cores);
    return CPU_EQUAL(&cores, &expected);
}

/* Rank 1 publishes core 5, is awake, announces a sleep, is awake again, and closes. */
static bool published_core(void)
{
    PARTY_CHECK(open_shm());
    PARTY_CHECK(peer_is_on(-1));
    PARTY_CHECK(peer_get(1 - party_rank) != NULL);
    if (party_rank == 1) atomic_store(&wires_bell()->core, 5 + 1);
    party_meet();
    if (party_rank == 0) PARTY_CHECK(peer_is_on(5));
    party_meet();
    if (party_rank == 1) bell_announce(wires_bell());
    party_meet();
    if (party_rank == 0) PARTY_CHECK(peer_is_on(-1));
    party_meet();
    if (party_rank == 1) bell_stay(wires_bell());
    party_meet();
    if (party_rank == 0) PARTY_CHECK(peer_is_on(5));
    party_meet();
    if (party_rank == 1) {
        peers_close();
        exit(0);
    }
    for (uint64_t start = clock_ns(); !peer_is_on(-1);) PARTY_CHECK(clock_ns() - start < 30000000000u);
    exit(0);
}

static bool peer_says_crowded(void)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    return wires_cores(false, &cores);
}

static bool run_on(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    return !sched_setaffinity(0, sizeof one, &one);
}

/* Of two ranks; on one core, then, if there is another one, on two. Rank 1 says that it is crowded, also while it sleeps, and closes. */
static bool shared_cores(void)
{
    cpu_set_t all;
    int cpu[2] = {-1, -1};
    PARTY_CHECK(open_shm() && !sched_getaffinity(0, sizeof all, &all));
    for (int i = 0; i < CPU_SETSIZE && cpu[1] < 0; i++)
        if (CPU_ISSET((size_t)i, &all)) cpu[cpu[0] >= 0] = i;
    struct peer *p = peer_get(1 - party_rank);
    PARTY_CHECK(p && run_on(cpu[0]));
    party_meet();
    PARTY_CHECK(tp_shm.shares_cores(&p->ep));
    party_meet();
    PARTY_CHECK(party_rank == 0 || cpu[1] < 0 || run_on(cpu[1]));
    party_meet();
    PARTY_CHECK(cpu[1] < 0 || !tp_shm.shares_cores(&p->ep));
    PARTY_CHECK(!peer_says_crowded());
    party_meet();
    if (party_rank == 1) {
        atomic_fetch_or(&wires_bell()->core, BELL_CROWDED);
        bell_announce(wires_bell());
    }
    party_meet();
    if (party_rank == 0) PARTY_CHECK(peer_says_crowded());
    party_meet();
    if (party_rank == 1) {
        peers_close();
        exit(0);
    }
    for (uint64_t start = clock_ns(); peer_says_crowded();) PARTY_CHECK(clock_ns() - start < 30000000000u);
    exit(0);
}

static void cores_are_shared_with_those_who_may_run_there(void **state)
{
    (void)state;
    assert_true(party_run(2, shared_cores));
}

static void cores_are_those_of_peers_that_are_awake(void **state)
{
    (void)state;
    assert_true(party_run(2, published_core));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sleeping_receiver_is_woken),
        cmocka_unit_test(sleeping_sender_is_woken),
        cmocka_unit_test(wiped_mark_is_noticed),
        cmocka_unit_test(full_ring_of_a_lost_peer_keeps_nobody_awake),
        cmocka_unit_test(boxes_are_shared_when_they_run_out),
        cmocka_unit_test(lock_of_a_dead_sender_is_taken_back),
        cmocka_unit_test(rings_of_all_sizes),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(single_copies_may_be_forbidden),
        cmocka_unit_test(failing_copies_are_errors_in_words),
        cmocka_unit_test(foreign_descriptors_are_not_opened),
        cmocka_unit_test(cores_are_those_of_peers_that_are_awake),
        cmocka_unit_test(cores_are_shared_with_those_who_may_run_there),
    };
    seed = party_seed();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
