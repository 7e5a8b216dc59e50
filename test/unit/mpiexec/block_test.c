/* block_test.c - the launcher tells the ranks of a node that one has died, and wakes those that sleep. */
#include "mpiexec/block.h"
#include "base/sleep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { SIZE = 5, LOCAL = 3 };

static struct block block;
static char *memory; /* of the slot of each rank a page */

static int set_up(void **state)
{
    uint8_t secret[32] = {0};
    (void)state;
    assert_int_equal(block_open(&block, "job", SIZE, secret, "", 0), 0);
    block.head->local_size = LOCAL;
    block_open_memory(&block, LOCAL);
    memory = mmap(NULL, LOCAL * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, block.memory, 0);
    return memory == MAP_FAILED;
}

static int tear_down(void **state)
{
    (void)state;
    munmap(memory, LOCAL * 4096);
    munmap(block.head, block.head->bytes);
    close(block.memory);
    close(block.fd);
    return 0;
}

static struct bell *bell_of(int local) { return (struct bell *)(memory + local * 4096 + 64); }

/* As native_bell of that rank does. */
static void put_bell(int local, uint64_t place, uint64_t name)
{
    atomic_store(&job_bells(block.head)[local].name, name);
    atomic_store(&job_bells(block.head)[local].place, place);
}

static void each_death_is_told_once(void **state)
{
    (void)state;
    assert_int_equal(atomic_load(&block.head->deaths), 0);
    block_tell_death(&block, 4);
    block_tell_death(&block, 1);
    block_tell_death(&block, 4);
    assert_int_equal(atomic_load(&block.head->deaths), 2);
    assert_int_equal(job_died(block.head)[0], 4);
    assert_int_equal(job_died(block.head)[1], 1);
    for (uint32_t r = 0; r < SIZE; r++) block_tell_death(&block, r);
    assert_int_equal(atomic_load(&block.head->deaths), SIZE);
    assert_int_equal(atomic_load(&job_cards(block.head)[0].state), JOB_CARD_EMPTY); /* the list has room for all */
}

static void all_bells_are_rung_once(void **state)
{
    (void)state;
    for (int r = 0; r < LOCAL; r++) put_bell(r, (uint64_t)r * 4096 + 64 + 1, 0);
    uint32_t ticket = bell_announce(bell_of(1));
    block_tell_death(&block, 0);
    block_tell_death(&block, 0);
    assert_int_equal(atomic_load(&bell_of(1)->ring), ticket + 1);
    assert_int_equal(atomic_load(&bell_of(0)->ring), 1);
    assert_int_equal(atomic_load(&bell_of(2)->ring), 1);
}

/* A waker withdraws the announcement, then makes the system call. */
static void waker_that_died_in_between_leaves_nobody_asleep(void **state)
{
    char byte;
    (void)state;
    put_bell(1, 4096 + 64 + 1, 0);
    bell_open(bell_of(1), true);
    assert_int_equal(bell_open_socket(bell_of(1)), 0);
    uint32_t ticket = bell_announce(bell_of(1));
    atomic_store(&bell_of(1)->asleep, BELL_AWAKE);
    block_tell_death(&block, 0);
    assert_int_equal(atomic_load(&bell_of(1)->ring), ticket + 1);
    assert_int_equal(read(bell_of(1)->socket, &byte, 1), 1);
    bell_close(bell_of(1));
}

/* A bell in private memory. */
static void a_socket_is_woken_by_its_name(void **state)
{
    struct bell own = {0};
    char byte;
    (void)state;
    bell_open(&own, true);
    assert_int_equal(bell_open_socket(&own), 0);
    put_bell(2, 0, own.name);
    block_tell_death(&block, 0);
    assert_int_equal(read(own.socket, &byte, 1), 1);
    bell_close(&own);
}

/* The word of a rank gone wrong ends nobody. */
static void places_that_cannot_be_are_passed_over(void **state)
{
    (void)state;
    put_bell(0, UINT64_MAX, 0);
    put_bell(1, 1 + LOCAL * (JOB_SLOT_BYTES + JOB_ARENA_BYTES), 0);
    put_bell(2, 2, 0);
    block_tell_death(&block, 0);
    assert_int_equal(atomic_load(&block.head->deaths), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_death_is_told_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(all_bells_are_rung_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(waker_that_died_in_between_leaves_nobody_asleep, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_socket_is_woken_by_its_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(places_that_cannot_be_are_passed_over, set_up, tear_down),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
