/*
 * mail_test.c - letters to a target, explored: in every order of what origins and target do with them, each operation is done once,
 * by the target or by its origin, who sees its result. Where an origin dies anywhere within, nothing that it has asked for is done
 * after others have been told of its death, and another one takes the dock.
 */
#include "explore.h"

#include "base/clock.h"
#include "base/var.h"
#include "pt2pt/lane.h"
#include "transport/endpoint.h"
#include "transport/peer.h"

#include <sched.h>

/* By-hand operations of the origins, below; and a clock by which a look that finds nothing lasts too long. */
static int put_by_hand(const struct iovec *here, const struct iovec *there, int n);
static uint64_t time_goes_by(void);
#define cpu_relax explore_pause
#define sched_yield explore_pause
#define clock_ns time_goes_by
#define peer_wake(index) ((void)(index))
#define ep_put(ep, here, nh, there, nt) ((void)(ep), (void)(nt), put_by_hand(here, there, nh))
#define ep_get(ep, here, nh, there, nt) ((void)(ep), (void)(nt), put_by_hand(there, here, nh))
#include "rma/mail.c"
#include "rma/dock.c"
#include "rma/letters.c"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { SEATS = 3, TARGET = 1, WORDS = 6 };

static uint64_t memory[WORDS]; /* of the target */
static struct win win[SEATS];  /* as the process of this seat has it */
static struct comm comm = {.rank = -1};
static struct peer peer;
static struct win_exposure exposure; /* of the target */
static struct win_target target[SEATS]; /* as the origin of this seat has it */
static uint64_t now;
TERN_ALIGNED(CACHE_LINE) static char room[SEATS][256 << 10];

static bool has_died(void *arg, uint32_t seat)
{
    (void)arg;
    return (int)seat == explore_dead();
}
static const struct win_lock_ops ops = {.is_dead = has_died};

static uint64_t time_goes_by(void) { return now += MAIL_PATIENCE_NS; }

static int put_by_hand(const struct iovec *here, const struct iovec *there, int n)
{
    for (int i = 0; i < n; i++) {
        explore_step();
        memcpy(there[i].iov_base, here[i].iov_base, here[i].iov_len);
    }
    explore_changed(true);
    return 0;
}

static void begin(void)
{
    memset(memory, 0, sizeof memory);
    now = 0;
    for (int i = 0; i < SEATS; i++) {
        memset(room[i], 0, mail_head_bytes(SEATS));
        win[i] = (struct win){.comm = &comm, .base = memory, .bytes = sizeof memory, .flavor = MPI_WIN_FLAVOR_CREATE};
        win[i].near.n = SEATS;
        win[i].near.mail = (struct win_mail *)room[i];
        letters_close(&target[i]);
        dock_close(&target[i]);
        target[i] = (struct win_target){.win = &win[i], .peer = &peer, .exposure = &exposure, .mail = (struct win_mail *)room[TARGET], .seat = TARGET};
        target[i].lock = (struct win_locking){.own = (uint32_t)i, .ops = &ops};
    }
}

static void serve_now_and_then(void)
{
    for (int i = 0; i < 3; i++) {
        explore_step();
        mail_serve(&win[TARGET]);
    }
}

static uint64_t address(int word) { return (uint64_t)(uintptr_t)&memory[word]; }

/* In one letter: a put to one word, and one is added to another, which is done once. */
static void by_letter(uint32_t seat)
{
    struct win_target *t = &target[seat];
    struct win_op add = {.kind = WIN_GET_ACCUMULATE, .op = op_of(MPI_SUM), .basic = type_of(MPI_UINT64_T)};
    uint64_t value = 10 + seat, one = 1, before = 0;
    memory[seat + SEATS] = 20 + seat;
    assert_int_equal(letters_put(t, address((int)seat), &value, 8), 0);
    assert_int_equal(letters_change(t, &add, address((int)seat + SEATS), &one, &before, 1), 0);
    assert_int_equal(memory[seat], value);
    assert_int_equal(before, 20 + seat);
    assert_int_equal(memory[seat + SEATS], 21 + seat);
}

/* One put after the other by the dock; where it is taken, or the target is away, by hand. */
static void by_dock(uint32_t seat)
{
    struct win_target *t = &target[seat];
    struct win_op put = {.kind = WIN_PUT};
    for (uint64_t value = 1; value <= 2; value++) {
        struct type_cursor from;
        int64_t n = 0;
        type_cursor_init(&from, type_of(MPI_BYTE), 8, &value);
        assert_int_equal(dock_do(t, &put, address((int)seat), 8, &from, NULL, &n), 0);
        assert_true(n == 0 || n == 8);
        if (!n) memory[seat] = value;
        assert_int_equal(dock_flush(t), 0);
        assert_int_equal(memory[seat], value);
    }
}

/* A target that will not have it, as it has given up its memory: an error, and nothing is done by hand. */
static void put_refused(void)
{
    uint64_t value = 1;
    win[TARGET].given_up = true;
    assert_int_equal(letters_put(&target[0], address(0), &value, 8), 0);
    int rc = letters_flush(&target[0]);
    assert_true(rc == TERN_ERR_WIN_RANGE || (!rc && memory[0] == value)); /* or the target has not looked */
    assert_true(!rc || !memory[0]);
}

/* Behind the death of origin 0, which others are told of, its word is another one's. */
static void heir_of_letters(void)
{
    mail_forget(&target[2], 0);
    dock_forget(&target[2], 0);
    memory[0] = memory[SEATS] = 99;
    explore_changed(true);
}

static void letters_0(void) { by_letter(0); }
static void letters_2(void) { by_letter(2); }
static void dock_0(void) { by_dock(0); }
static void dock_2(void) { by_dock(2); }

static void dock_is_free(void) { assert_int_equal(__atomic_load_n(&win[TARGET].near.mail->docked, __ATOMIC_RELAXED), 0); }

static long all_orders(void (*a)(void), void (*c)(void), int mortal)
{
    struct explore e = {.n = 3, .begin = begin, .run = {a, serve_now_and_then, c}, .end = dock_is_free, .mortal = mortal, .switches = 2};
    return explore(&e);
}

static void each_operation_is_done_once(void **state)
{
    (void)state;
    assert_true(all_orders(letters_0, letters_2, -1) > 1000);
    assert_true(all_orders(dock_0, dock_2, -1) > 1000);
}

static void nothing(void) {}

static void a_refusal_is_an_error(void **state)
{
    (void)state;
    assert_true(all_orders(put_refused, nothing, -1) > 10);
}

static void the_dock_of_the_dead_is_taken(void **state)
{
    (void)state;
    assert_true(all_orders(dock_0, dock_2, 0) > 100);
}

static void heir_has_the_last_word(void)
{
    dock_is_free();
    if (explore_dead() == 0) assert_true(memory[0] == 99 && memory[SEATS] == 99);
}

static void the_dead_change_nothing(void **state)
{
    (void)state;
    struct explore e = {.n = 3, .begin = begin, .run = {letters_0, serve_now_and_then, heir_of_letters}, .end = heir_has_the_last_word,
                        .mortal = 0, .switches = 2};
    assert_true(explore(&e) > 100);
    e.run[0] = dock_0;
    assert_true(explore(&e) > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_operation_is_done_once),
        cmocka_unit_test(a_refusal_is_an_error),
        cmocka_unit_test(the_dock_of_the_dead_is_taken),
        cmocka_unit_test(the_dead_change_nothing),
    };
    if (!explore_works()) return 0;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (var_open() || type_open() || op_open()) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
