/* places_test.c - nodes and domains of a communicator's ranks, from what the launcher says and TERN_COLL_DOMAINS. */
#include "coll/places.h"

#include "base/err.h"
#include "base/var.h"
#include "proc/job_block.h"
#include "proc/machine.h"
#include "proc/proc.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 8 };

/* Node, cache and NUMA domain of each rank, as the launcher tells them to rank 0: '-' is not known. */
struct seats {
    const char *node, *l3, *numa;
};

static int fd;
static struct comm comm;
static struct coll_comm got;

static int32_t digit(char c) { return c == '-' ? -1 : c - '0'; }

static void open_job(const struct seats *seats)
{
    char text[16];
    uint64_t place, card, bytes = job_layout(RANKS, &place, &card);
    fd = memfd_create("block", 0);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    struct job_head *h = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(h != MAP_FAILED);
    *h = (struct job_head){.magic = JOB_MAGIC,
                           .version = JOB_VERSION,
                           .bytes = bytes,
                           .size = RANKS,
                           .nodes = 1,
                           .local_size = RANKS,
                           .usable_cpus = 2,
                           .place_off = place,
                           .card_off = card,
                           .name = "job"};
    for (uint32_t r = 0; r < RANKS; r++)
        job_places(h)[r] = (struct job_place){.node = (uint32_t)digit(seats->node[r]),
                                              .local_rank = r,
                                              .l3 = digit(seats->l3[r]),
                                              .numa = digit(seats->numa[r])};
    munmap(h, bytes);
    snprintf(text, sizeof text, "%d", fd);
    setenv(JOB_ENV_FD, text, 1);
    setenv(JOB_ENV_RANK, "0", 1);
    setenv("TERN_BOOTSTRAP", "native", 1);
    assert_int_equal(var_open() || proc_open(), 0);
    comm = (struct comm){.size = RANKS, .local = rankmap_line(RANKS, 0, 1)};
    comm.map = comm.local;
}

static void close_job(void)
{
    coll_places_drop(&got);
    got = (struct coll_comm){0};
    rankmap_unref(comm.local);
    machine_close();
    proc_close();
    var_close();
    close(fd);
}

/* The domains of all ranks shall be those of the text, "" for none but the nodes. */
static void expect(const struct seats *seats, const char *variable, const char *domains)
{
    setenv("TERN_COLL_DOMAINS", variable, 1);
    open_job(seats);
    got = (struct coll_comm){0};
    assert_int_equal(coll_places_open(), 0);
    assert_true(coll_places_find(&comm, &got));
    if (!*domains) assert_null(got.domain_of);
    if (!*domains) assert_int_equal(got.domains, got.nodes);
    bool shuffled = false;
    int32_t most = 0;
    for (int r = 0; r < RANKS && *domains; r++) {
        assert_non_null(got.domain_of);
        assert_int_equal(got.domain_of[r], digit(domains[r]));
        shuffled |= r && domains[r] < domains[r - 1];
        if (got.domain_of[r] > most) most = got.domain_of[r];
    }
    if (*domains) assert_int_equal(got.domains, most + 1);
    assert_int_equal(got.shuffled, shuffled);
    close_job();
}

#define ONE "00000000"
#define UNKNOWN "--------"

static void what_the_launcher_says(void **state)
{
    (void)state;
    expect(&(struct seats){ONE, UNKNOWN, UNKNOWN}, "auto", "");
    expect(&(struct seats){ONE, "22223333", "00001111"}, "auto", "00001111");
    expect(&(struct seats){ONE, "23232323", ONE}, "auto", "01010101");
    expect(&(struct seats){ONE, "00112233", "00001111"}, "auto", "00112233");
    expect(&(struct seats){ONE, "00112233", "00001111"}, "numa", "00001111");
    expect(&(struct seats){ONE, ONE, "00001111"}, "auto", "00001111"); /* one cache for two NUMA domains */
    expect(&(struct seats){ONE, ONE, "00001111"}, "l3", "");
    expect(&(struct seats){ONE, "00112233", "00001111"}, "none", "");
}

/* A rank that may run in several caches makes them useless; the NUMA domains may still be known. */
static void not_all_is_known(void **state)
{
    (void)state;
    expect(&(struct seats){ONE, "00-12233", "00001111"}, "auto", "00001111");
    expect(&(struct seats){ONE, "00-12233", "00001111"}, "l3", "");
    expect(&(struct seats){ONE, "00-12233", "0000-111"}, "auto", "");
}

/* Of ranks of other nodes the launcher's word does not reach this one; numbers hold for all. */
static void several_nodes(void **state)
{
    (void)state;
    expect(&(struct seats){"00001111", "0011----", "0000----"}, "auto", "");
    expect(&(struct seats){"00001111", "00112233", "00001111"}, "auto", "");
    expect(&(struct seats){"00001111", UNKNOWN, UNKNOWN}, "2", "00112233");
    expect(&(struct seats){"00001111", UNKNOWN, UNKNOWN}, "3", "00012223");
    expect(&(struct seats){"01010101", UNKNOWN, UNKNOWN}, "2", "01012323");
    expect(&(struct seats){"00001111", UNKNOWN, UNKNOWN}, "4", "");
    expect(&(struct seats){ONE, UNKNOWN, UNKNOWN}, "1", "01234567");
}

static void a_machine_that_is_made_up(void **state)
{
    (void)state;
    const struct seats unknown = {ONE, UNKNOWN, UNKNOWN};
    char dir[4096];
    const char *top = getenv("top_builddir");
    snprintf(dir, sizeof dir, "%s/lib/tern", top ? top : ".");
    setenv("TERN_MODULE_DIR", dir, 1);
    setenv("TERN_MACHINE", "pack:2 [numa] l3:2 core:2 pu:1", 1);
    open_job(&unknown);
    bool hwloc = machine_open() != TERN_ERR_NOT_FOUND;
    close_job();
    if (hwloc) expect(&unknown, "auto", "00112233");
    if (hwloc) expect(&unknown, "numa", "00001111");
    setenv("TERN_MACHINE_CPUS", "0,4,1,5,2,6,3,7", 1);
    if (hwloc) expect(&unknown, "auto", "01012323");
    setenv("TERN_MACHINE_CPUS", "0-3,4-7", 1);
    if (hwloc) expect(&unknown, "auto", "01010101"); /* caches are not known, NUMA domains are */
    unsetenv("TERN_MACHINE");
    unsetenv("TERN_MACHINE_CPUS");
    if (hwloc) return;
    print_message("# the library was built without hwloc; the rest was right\n");
    skip();
}

/* What grows with the ranks is there once for a communicator and its duplicates, until the last of them goes. */
static void duplicates_share(void **state)
{
    (void)state;
    struct comm other;
    struct coll_comm second = {0}, third = {0};
    setenv("TERN_COLL_DOMAINS", "2", 1);
    open_job(&(struct seats){"00001111", UNKNOWN, UNKNOWN});
    assert_int_equal(coll_places_open(), 0);
    assert_true(coll_places_find(&comm, &got) && coll_places_find(&comm, &second));
    assert_true(got.node_of && got.domain_of);
    assert_ptr_equal(second.node_of, got.node_of);
    assert_ptr_equal(second.domain_of, got.domain_of);
    assert_int_equal(second.nodes, 2);
    assert_int_equal(second.domains, 4);
    assert_true(second.far);
    other = comm;
    other.local = other.map = rankmap_line(RANKS, 0, 1);
    assert_true(coll_places_find(&other, &third));
    assert_ptr_not_equal(third.node_of, got.node_of);
    coll_places_drop(&third);
    rankmap_unref(other.local);
    coll_places_drop(&got);
    assert_int_equal(second.node_of[RANKS - 1], 1);
    coll_places_drop(&second);
    close_job();
}

static void nonsense(void **state)
{
    static const char *const bad[] = {"", "0", "-2", "4x", "core", "99999999999999999999"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(var_set(VAR_COLL_DOMAINS, bad[i]), 0);
        assert_int_equal(coll_places_open(), TERN_ERR_ARG);
        assert_non_null(strstr(err_words(), "TERN_COLL_DOMAINS"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_launcher_says),
        cmocka_unit_test(not_all_is_known),
        cmocka_unit_test(several_nodes),
        cmocka_unit_test(a_machine_that_is_made_up),
        cmocka_unit_test(duplicates_share),
        cmocka_unit_test(nonsense),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("where the ranks are", tests, NULL, NULL);
}
