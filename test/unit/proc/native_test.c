/* native_test.c - the job block: places and cards of all ranks, waiting for a card, and blocks that are none. */
#include "../transport/party.h"
#include "base/err.h"
#include "base/var.h"
#include "proc/job.h"
#include "proc/proc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool exchange(void)
{
    char card[64], got[JOB_CARD_MAX];
    PARTY_CHECK(var_open() == 0 && proc_open() == 0);
    const struct proc_info *me = proc_self();
    PARTY_CHECK(!strcmp(me->bootstrap, "native") && !strcmp(me->job, "party"));
    PARTY_CHECK(me->rank == party_rank && me->size == party->size && me->local_rank == party_rank);
    PARTY_CHECK(me->local_size == party->size && me->nodes == 1 && me->node == 0 && me->usable_cpus >= 1);
    PARTY_CHECK(me->oversubscribed == (party->size > me->usable_cpus));
    if (party_rank == 1) usleep(50000); /* its card is waited for */
    snprintf(card, sizeof card, "card of %u", party_rank);
    PARTY_CHECK(proc_card_put(card, strlen(card) + 1 + party_rank) == 0);
    for (uint32_t r = 0; r < party->size; r++) {
        snprintf(card, sizeof card, "card of %u", r);
        PARTY_CHECK(proc_card_get(r, got, sizeof got) == (int)(strlen(card) + 1 + r));
        PARTY_CHECK(!strcmp(got, card));
        PARTY_CHECK(proc_node_of(r) == 0);
    }
    PARTY_CHECK(proc_card_get(party->size, got, sizeof got) == TERN_ERR_RANK);
    PARTY_CHECK(proc_card_get(0, got, 3) < 0);
    proc_state(JOB_LIFE_INITIALISED);
    proc_close();
    return true;
}

static bool too_large_a_card(void)
{
    static char card[JOB_CARD_MAX + 1];
    PARTY_CHECK(var_open() == 0 && proc_open() == 0);
    PARTY_CHECK(proc_card_put(card, sizeof card) < 0);
    PARTY_CHECK(proc_card_put(card, JOB_CARD_MAX) == 0);
    return true;
}

static void cards_are_exchanged(void **state)
{
    (void)state;
    assert_true(party_run(4, exchange));
    assert_true(party_run(1, too_large_a_card));
}

/* ---- descriptors that are no job block: words, and never a fault ---- */

static int with_descriptor(int fd, const char *rank)
{
    char text[16];
    snprintf(text, sizeof text, "%d", fd);
    setenv(JOB_ENV_FD, text, 1);
    setenv(JOB_ENV_RANK, rank, 1);
    setenv("TERN_BOOTSTRAP", "native", 1);
    err_clear();
    assert_int_equal(var_open(), 0);
    int rc = proc_open();
    proc_close();
    var_close();
    return rc;
}

static void strange_descriptors_are_refused_in_words(void **state)
{
    (void)state;
    assert_int_equal(with_descriptor(900, "0"), TERN_ERR_SYSTEM);
    assert_non_null(strstr(err_words(), "900"));
    int fd = open("/dev/null", O_RDWR);
    assert_int_equal(with_descriptor(fd, "0"), TERN_ERR_SYSTEM);
    close(fd);
    fd = memfd_create("short", 0);
    assert_int_equal(ftruncate(fd, 100), 0);
    assert_int_equal(with_descriptor(fd, "0"), TERN_ERR_SYSTEM);
    assert_int_equal(ftruncate(fd, 100000), 0); /* zeros */
    assert_int_equal(with_descriptor(fd, "0"), TERN_ERR_SYSTEM);
    assert_non_null(strstr(err_words(), "version"));
    close(fd);
}

/* Every field that is believed is checked. */
static void damaged_blocks_are_refused(void **state)
{
    uint64_t place, card, bytes = job_layout(3, &place, &card);
    int fd = memfd_create("block", 0);
    (void)state;
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    struct job_head *h = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(h != MAP_FAILED);
    const struct job_head good = {.magic = JOB_MAGIC, .version = JOB_VERSION, .bytes = bytes, .size = 3, .nodes = 1,
                                  .local_size = 3, .usable_cpus = 2, .place_off = place, .card_off = card, .name = "job"};
    memcpy(h, &good, sizeof good);
    assert_int_equal(with_descriptor(fd, "2"), 0);
    assert_int_equal(with_descriptor(fd, "3"), TERN_ERR_SYSTEM);
    assert_int_equal(with_descriptor(fd, "-1"), TERN_ERR_NOT_FOUND);
    assert_int_equal(with_descriptor(fd, "2x"), TERN_ERR_NOT_FOUND);
    for (int damage = 0; damage < 6; damage++) {
        memcpy(h, &good, sizeof good);
        if (damage == 0) h->magic++;
        if (damage == 1) h->version++;
        if (damage == 2) h->bytes += 4096;
        if (damage == 3) h->size = 1u << 30;
        if (damage == 4) h->place_off += 64;
        if (damage == 5) h->card_off = bytes;
        assert_int_equal(with_descriptor(fd, "2"), TERN_ERR_SYSTEM);
    }
    munmap(h, bytes);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cards_are_exchanged),
        cmocka_unit_test(strange_descriptors_are_refused_in_words),
        cmocka_unit_test(damaged_blocks_are_refused),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
