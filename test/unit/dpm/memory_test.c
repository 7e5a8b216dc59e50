/*
 * memory_test.c - rules of src/dpm/members.h, connect.h and talk_spread_new (comm/talk.h) where memory is out in one process: that
 * process fails, with words, no other one waits for it, and the next call finds no message of the failed one. So does a process that
 * cannot be reached.
 *
 * The linker puts __wrap_malloc and so on in the place of malloc, which fail from a length on.
 */
#include "../transport/party.h"
#include "base/err.h"
#include "comm/create.h"
#include "comm/talk.h"
#include "dpm/connect.h"
#include "dpm/members.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 8, BYTES = 300000 };

/* ---- memory that is out ---- */

static size_t fails_from = SIZE_MAX; /* bytes: a block of so many or more cannot be had */

void *__real_malloc(size_t n);
void *__real_calloc(size_t k, size_t n);
void *__real_realloc(void *old, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t k, size_t n);
void *__wrap_realloc(void *old, size_t n);
void *__wrap_malloc(size_t n) { return n >= fails_from ? NULL : __real_malloc(n); }
void *__wrap_calloc(size_t k, size_t n) { return k * n >= fails_from ? NULL : __real_calloc(k, n); }
void *__wrap_realloc(void *old, size_t n) { return n >= fails_from ? NULL : __real_realloc(old, n); }

/* ---- a process that cannot be reached ---- */

static bool has_no_card;

int __real_peer_card(void *card, size_t most);
int __wrap_peer_card(void *card, size_t most);
int __wrap_peer_card(void *card, size_t most)
{
    return has_no_card ? err_set(TERN_ERR_SYSTEM, "this process has no card") : __real_peer_card(card, most);
}

/* ---- spreading ---- */

/* Does `rank` have it by way of `by`? Both counted from the root's. */
static bool is_below(int32_t rank, int32_t by)
{
    while (rank > by) rank -= talk_lowest_bit(rank, SIZE);
    return rank == by;
}

static bool spread(int root, int poor, bool *got)
{
    void *bytes = NULL;
    int me = (int)party_rank;
    if (me == root) PARTY_CHECK((bytes = calloc(1, BYTES)));
    if (me == root) memset(bytes, root + 1, BYTES);
    if (me == poor) fails_from = BYTES;
    int rc = talk_spread_new(comm_world(), &bytes, BYTES, root);
    fails_from = SIZE_MAX;
    *got = !rc;
    if (rc) PARTY_CHECK(rc == TERN_ERR_NOMEM && strstr(err_words(), "no memory"));
    if (rc) PARTY_CHECK(me != root && !bytes);
    if (!rc) PARTY_CHECK(bytes && ((char *)bytes)[0] == root + 1 && !memcmp(bytes, (char *)bytes + 1, BYTES - 1));
    free(bytes);
    return true;
}

/* Those that have it by way of the poor one get nothing either, all others get it. */
static bool spread_all(void)
{
    bool got;
    for (int root = 0; root < SIZE; root += 3) {
        for (int poor = 0; poor < SIZE; poor++) {
            int32_t mine = ((int)party_rank - root + SIZE) % SIZE, its = (poor - root + SIZE) % SIZE;
            PARTY_CHECK(spread(root, poor, &got));
            PARTY_CHECK(got == (!its || !is_below(mine, its)));
        }
        PARTY_CHECK(spread(root, -1, &got) && got);
    }
    return true;
}

/* ---- tables of members ---- */

static bool table(int root, int code)
{
    void *bytes;
    size_t n;
    int rc = members_table(comm_world(), root, &bytes, &n);
    fails_from = SIZE_MAX;
    PARTY_CHECK(rc == code && (!rc || strstr(err_words(), "no memory")));
    PARTY_CHECK(!bytes == ((int)party_rank != root || code));
    free(bytes);
    return true;
}

/* The least blocks that the root takes are for one process each, the largest for all that is told. */
static bool tables_of_poor_roots(void)
{
    static const size_t blocks[] = {SIZE * sizeof(size_t), SIZE * 32, 65536};
    for (int root = 0; root < SIZE; root += SIZE - 1) {
        PARTY_CHECK(table(root, 0)); /* all are connected, and blocks for that are there */
        for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
            bool poor = (int)party_rank == root;
            if (poor) fails_from = blocks[i];
            PARTY_CHECK(table(root, poor ? TERN_ERR_NOMEM : 0));
            PARTY_CHECK(table(root, 0));
        }
    }
    return true;
}

/* ---- a whole call ---- */

/* The group connects to a group that is told of only: a table of the right length for a root, no table for its group. */
static int bring_no_table(void *arg, const struct own_table *mine, struct outcome *o)
{
    (void)arg;
    (void)mine;
    *o = (struct outcome){.theirs = calloc(1, BYTES), .bytes = BYTES, .ctx = 1};
    return o->theirs ? 0 : TERN_ERR_NOMEM;
}

static bool connect_in_vain(int poor, int code)
{
    struct comm *made;
    int me = (int)party_rank;
    if (me == poor) fails_from = BYTES;
    int rc = connect_groups(comm_world(), 0, 0, bring_no_table, NULL, &made);
    fails_from = SIZE_MAX;
    PARTY_CHECK(!made && rc == code);
    return true;
}

/* All return: the poor ones since they are, the others as that is no table. */
static bool calls_with_poor_members(void)
{
    for (int poor = 1; poor < SIZE; poor++) {
        bool concerned = is_below((int)party_rank, poor);
        PARTY_CHECK(connect_in_vain(poor, concerned ? TERN_ERR_NOMEM : TERN_ERR_SYSTEM));
    }
    PARTY_CHECK(connect_in_vain(0, TERN_ERR_NOMEM)); /* the root tells of its own */
    PARTY_CHECK(connect_in_vain(-1, TERN_ERR_SYSTEM));
    return true;
}

static int bring_own_code(void *arg, const struct own_table *mine, struct outcome *o)
{
    (void)arg;
    (void)o;
    return mine->code;
}

/* The root points to a member that has the reason; that one has it, and the others are told where it is. */
static bool call_with_a_member_without_card(void)
{
    enum { MEMBER = 3 };
    int me = (int)party_rank;
    struct comm *made;
    const char *words = me == MEMBER ? "this process has no card" : me ? "at the root, rank 0, which has the reason" : "rank 3 cannot be reached";
    has_no_card = me == MEMBER;
    int rc = connect_groups(comm_world(), 0, 0, bring_own_code, NULL, &made);
    PARTY_CHECK(rc == TERN_ERR_SYSTEM && !made && strstr(err_words(), words));
    return true;
}

/* Two halves by a communicator: a root without memory for the table of its own group (block: from so many bytes on; 0: it has memory) fails
 * with its group, and the other group hears of it; the next call is as if nothing had been. */
static bool halves(struct comm *half, bool first, size_t block)
{
    struct comm *made;
    bool poor = (int)party_rank == 0;
    if (poor && block) fails_from = block;
    int rc = dpm_inter_create(half, 0, comm_world(), first ? SIZE / 2 : 0, TALK_INTER, &made);
    fails_from = SIZE_MAX;
    PARTY_CHECK(rc == (!block ? 0 : first ? TERN_ERR_NOMEM : TERN_ERR_PEER) && !made == (rc != 0));
    if (made) comm_unref(made);
    return true;
}

static bool halves_with_a_poor_root(void)
{
    bool first = (int)party_rank < SIZE / 2;
    struct comm *half;
    PARTY_CHECK(!comm_split(comm_world(), !first, 0, &half));
    PARTY_CHECK(halves(half, first, 0));
    PARTY_CHECK(halves(half, first, SIZE / 2 * 32));
    PARTY_CHECK(halves(half, first, 0));
    comm_unref(half);
    return true;
}

static bool run(bool (*part)(void))
{
    MPI_Init(NULL, NULL);
    PARTY_CHECK(part());
    party_meet();
    MPI_Finalize();
    exit(0);
}

static bool spreading(void) { return run(spread_all); }
static bool gathering(void) { return run(tables_of_poor_roots); }
static bool connecting(void) { return run(calls_with_poor_members); }
static bool reasoning(void) { return run(call_with_a_member_without_card); }
static bool swapping(void) { return run(halves_with_a_poor_root); }

static void nobody_waits_for_bytes(void **state)
{
    (void)state;
    assert_true(party_run(SIZE, spreading));
}

static void nobody_waits_for_a_root(void **state)
{
    (void)state;
    assert_true(party_run(SIZE, gathering));
}

static void nobody_waits_for_a_member(void **state)
{
    (void)state;
    assert_true(party_run(SIZE, connecting));
}

static void a_member_has_its_reason(void **state)
{
    (void)state;
    assert_true(party_run(SIZE, reasoning));
}

static void nobody_waits_for_the_other_group(void **state)
{
    (void)state;
    assert_true(party_run(SIZE, swapping));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nobody_waits_for_bytes), cmocka_unit_test(nobody_waits_for_a_root),
                                       cmocka_unit_test(nobody_waits_for_a_member), cmocka_unit_test(a_member_has_its_reason),
                                       cmocka_unit_test(nobody_waits_for_the_other_group)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
