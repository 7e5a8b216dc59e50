/* credit_test.c - quotas of eager credit (pt2pt/credit.c): their sum is bounded, and a receiver that keeps up widens
 * them. */
#include "mock_job.h"

#include <stdlib.h>
#include <string.h>

static char out[8192], in[8192];

/* Nothing of TERN_EAGER_STORE is lost or found: what is in no quota is spare. */
static void check_sum(void)
{
    const struct peer *p = job_peer();
    assert_int_equal(p->quota + eager_store.spare, eager_store.bytes);
    assert_true(p->quota <= eager_store.credit && p->credit <= p->quota_there);
}

static void exchange(struct comm *c, size_t n, uint64_t seed)
{
    fill(out, n, seed);
    struct request *r = job_irecv(c, in, (int64_t)n, 1), *s = job_isend(c, out, (int64_t)n, 1, PT_STANDARD);
    job_end(s, 0);
    job_end(r, 0);
    assert_true(filled(in, n, seed));
    check_sum();
}

static struct comm *open_with(const char *credit, const char *store)
{
    setenv("TERN_EAGER_CREDIT", credit, 1);
    setenv("TERN_EAGER_STORE", store, 1);
    return job_open(NULL);
}

/* One peer alone has half of the bound at once, but not more than TERN_EAGER_CREDIT. */
static void first_quota(void **state)
{
    static const struct {
        const char *credit, *store;
        int64_t quota;
    } cases[] = {
        {"32M", "64M", 32 << 20}, {"32M", "8M", 4 << 20}, {"1M", "64M", 1 << 20}, {"0", "64M", 0}, {"32M", "0", 0}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct comm *c = open_with(cases[i].credit, cases[i].store);
        assert_int_equal(job_peer()->credit, cases[i].quota);
        for (uint64_t k = 0; k < 100; k++) exchange(c, 100, k);
        assert_int_equal(mock_count.sent[AM_RTS], cases[i].quota ? 0 : 100);
        job_close();
    }
}

/* What is received as it comes widens the quota until nothing is spare, or to TERN_EAGER_CREDIT. */
static void quota_grows_while_the_receiver_keeps_up(void **state)
{
    struct comm *c = open_with("1M", "128K");
    (void)state;
    for (uint64_t k = 0; k < 1000; k++) exchange(c, 1000, k);
    assert_true(job_peer()->quota > 100 << 10);
    assert_int_equal(job_peer()->quota_there, job_peer()->quota);
    assert_int_equal(mock_count.sent[AM_RTS], 0);
    job_close();
    c = open_with("70K", "128K");
    for (uint64_t k = 0; k < 1000; k++) exchange(c, 1000, k);
    assert_int_equal(job_peer()->quota, 70 << 10);
    job_close();
}

/* Messages longer than the whole quota are offered, each of which widens it: soon they go eagerly. */
static void offers_for_want_of_credit_widen_the_quota(void **state)
{
    struct comm *c = open_with("32M", "64K");
    (void)state;
    job_peer()->credit = job_peer()->quota = job_peer()->quota_there = 2048;
    job_peer()->due = 1024;
    eager_store.spare = eager_store.bytes - 2048;
    for (uint64_t k = 0; k < 50; k++) exchange(c, 8000, k);
    assert_in_range(mock_count.sent[AM_RTS], 1, 5);
    assert_in_range(mock_count.sent[AM_EAGER], 45, 49);
    job_close();
}

/* What lies here unreceived never exceeds the quota, and widens nothing. */
static void quota_stays_while_messages_lie_here(void **state)
{
    enum { N = 300 };
    struct comm *c = open_with("32M", "128K");
    struct request *r[N];
    (void)state;
    fill(out, 1000, 5);
    for (int i = 0; i < N; i++)
        r[i] = job_isend(c, out, 1000, 9, PT_STANDARD);
    job_settle();
    assert_int_equal(job_peer()->quota, 64 << 10);
    assert_in_range(job_peer()->stored, 63 << 10, 64 << 10);
    for (int i = 0; i < N; i++) {
        struct request_result res;
        assert_int_equal(pt_recv(c, in, 1000, type_of(MPI_BYTE), 0, 9, &res), 0);
        assert_true(filled(in, 1000, 5));
        check_sum();
    }
    pt_wait_many(N, r, true);
    for (int i = 0; i < N; i++) pt_release(r[i]);
    job_close();
}

/* Where threads share the library lanes count before the peer does: the credit comes back all the same, to the last byte
 * (job_close), and soon enough for the sender. */
static void lanes_of_threads_give_back_all_credit(void **state)
{
    (void)state;
    setenv("TERN_EAGER_CREDIT", "70K", 1);
    setenv("TERN_EAGER_STORE", "128K", 1);
    struct comm *c = job_open_threaded();
    for (uint64_t k = 0; k < 1000; k++) exchange(c, k % 1000, k);
    assert_int_equal(mock_count.sent[AM_RTS], 0);
    assert_int_equal(job_peer()->quota, 70 << 10);
    job_close();
}

/* Where nothing is spare a wide quota becomes narrower, down to twice a new peer's. */
static void wide_quotas_shrink_when_little_is_spare(void **state)
{
    struct comm *c = open_with("1M", "128K");
    struct peer *p = job_peer();
    (void)state;
    p->credit = p->quota = p->quota_there = 1 << 20;
    p->due = p->quota / 2;
    eager_store.spare = 0; /* all is in quotas */
    eager_store.bytes = p->quota;
    for (uint64_t k = 0; k < 2000; k++) exchange(c, 1000, k);
    assert_true(eager_store.spare >= eager_store.bytes / 16);
    assert_true(p->quota < 1 << 20 && p->quota >= 2 * peer_first_quota());
    assert_int_equal(mock_count.sent[AM_RTS], 0);
    job_close();
}

/* A rank whose variables are other ones: what it is given beyond its own TERN_EAGER_CREDIT it does not use. */
static void more_than_the_sender_wants(void **state)
{
    open_with("64K", "1M");
    struct peer *p = job_peer();
    (void)state;
    tp_handlers[AM_CREDIT](p, 0, 1 << 20, NULL, 0);
    assert_null(p->lost);
    assert_int_equal(p->credit, 64 << 10);
    assert_int_equal(p->quota_there, 64 << 10);
    tp_handlers[AM_CREDIT](p, 1, 0, NULL, 0);
    assert_non_null(strstr(p->lost, "more than was taken"));
    job_abandon();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(first_quota, job_clean),
        cmocka_unit_test_teardown(quota_grows_while_the_receiver_keeps_up, job_clean),
        cmocka_unit_test_teardown(offers_for_want_of_credit_widen_the_quota, job_clean),
        cmocka_unit_test_teardown(quota_stays_while_messages_lie_here, job_clean),
        cmocka_unit_test_teardown(lanes_of_threads_give_back_all_credit, job_clean),
        cmocka_unit_test_teardown(wide_quotas_shrink_when_little_is_spare, job_clean),
        cmocka_unit_test_teardown(more_than_the_sender_wants, job_clean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
