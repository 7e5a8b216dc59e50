/*
 * protocol_test.c - random traffic over a wire that lacks this and refuses that: every message arrives once, whole,
 * and none overtakes another that the same receive could have taken (MPI-5.0 3.5).
 */
#include "mock_job.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

enum { MESSAGES = 60, TAGS = 3, LONGEST = 30000 };

static struct sent {
    struct request *req;
    char *buf;
    size_t n;
    int tag;
} sent[MESSAGES];

/* Receives in the order of posting. Those that no message was for are cancelled, and others posted for the rest. */
static struct receipt {
    struct request *req;
    char *buf;
    int tag; /* wanted; TAGS: any */
    bool gaps;
} receipt[2 * MESSAGES];
static int nsent, nreceipts;

static struct type *gaps;

static struct mock_script random_script(uint64_t *seed)
{
    struct mock_script s = MOCK_SCRIPT;
    s.caps = (uint32_t)random_next(seed) & (TP_CAP_BCOPY | TP_CAP_GETPUT | TP_CAP_MAP | TP_CAP_ZCOPY | TP_CAP_BULK);
    s.max_short = 64 + (uint32_t)(random_next(seed) % 3) * 3000;
    s.room = 1 + (uint32_t)(random_next(seed) % 30);
    s.deliver = (uint32_t)(random_next(seed) % 4);
    s.again_percent = (uint32_t)(random_next(seed) % 3) * 30;
    s.seed = random_next(seed);
    s.sink_min = (uint32_t)(random_next(seed) % 3) * 100;
    s.done_late = random_next(seed) % 2;
    s.bulk_at_once = random_next(seed) % 2;
    if (random_next(seed) % 4 == 0) {
        s.fail_copy = 1 + (uint32_t)(random_next(seed) % 10);
        s.error = TERN_ERR_UNSUPPORTED;
    }
    return s;
}

static size_t random_size(uint64_t *seed)
{
    static const size_t limits[] = {1, 20, 3000, LONGEST};
    return random_next(seed) % limits[random_next(seed) % ARRAY_LEN(limits)] & ~(size_t)1;
}

/* The number of the message is in its first bytes; one too short for that says nothing but its tag. */
static void send_one(struct comm *c, uint64_t *seed)
{
    int number = nsent;
    struct sent *m = &sent[nsent++];
    bool with_gaps = random_next(seed) % 3 == 0;
    m->n = random_size(seed);
    m->tag = (int)(random_next(seed) % TAGS);
    m->buf = calloc(2, LONGEST + 4);
    char *packed = malloc(m->n + sizeof number);
    assert_true(m->buf && packed);
    fill(packed, m->n, (uint64_t)number);
    if (m->n >= sizeof number) memcpy(packed, &number, sizeof number);
    for (size_t k = 0; k < m->n; k++) m->buf[gaps_place(k, with_gaps)] = packed[k];
    free(packed);
    assert_int_equal(pt_isend(c, m->buf, (int64_t)(with_gaps ? m->n / 2 : m->n), with_gaps ? gaps : type_of(MPI_BYTE), 0,
                              m->tag, random_next(seed) % 3 ? PT_STANDARD : PT_SYNC, &m->req),
                     0);
}

static void receive_one(struct comm *c, int tag, bool with_gaps)
{
    struct receipt *m = &receipt[nreceipts++];
    m->tag = tag;
    m->gaps = with_gaps;
    m->buf = calloc(2, LONGEST + 4);
    assert_non_null(m->buf);
    assert_int_equal(pt_irecv(c, m->buf, with_gaps ? LONGEST / 2 : LONGEST, with_gaps ? gaps : type_of(MPI_BYTE),
                              MPI_ANY_SOURCE, tag == TAGS ? MPI_ANY_TAG : tag, &m->req),
                     0);
}

/* Waits for the sends and receives; receives that nothing is left for are replaced by some that take what is left. */
static void end_all(struct comm *c)
{
    struct request *all[2 * MESSAGES];
    int received = 0;
    job_settle();
    for (int i = 0; i < nreceipts; i++) pt_cancel(receipt[i].req);
    for (int i = 0; i < nreceipts; i++) received += !receipt[i].req->result.cancelled;
    while (received++ < MESSAGES) receive_one(c, TAGS, false);
    for (int i = 0; i < nreceipts; i++) all[i] = receipt[i].req;
    pt_wait_many(nreceipts, all, true);
    for (int i = 0; i < nsent; i++) all[i] = sent[i].req;
    pt_wait_many(nsent, all, true);
}

/* The number of the message in a receipt, -1 if it is too short to say. */
static int check_content(const struct receipt *m)
{
    size_t n = (size_t)m->req->result.bytes;
    int number = -1;
    char *packed = malloc(n + sizeof number), *expected = malloc(n + sizeof number);
    assert_true(packed && expected);
    for (size_t k = 0; k < n; k++) packed[k] = m->buf[gaps_place(k, m->gaps)];
    if (n >= sizeof number) {
        memcpy(&number, packed, sizeof number);
        assert_in_range(number, 0, MESSAGES - 1);
        assert_int_equal(sent[number].n, n);
        assert_int_equal(sent[number].tag, m->req->result.tag);
        fill(expected, n, (uint64_t)number);
        memcpy(expected, &number, sizeof number);
        assert_memory_equal(packed, expected, n);
    }
    free(packed);
    free(expected);
    return number;
}

static void check_all(void)
{
    int last[TAGS] = {-1, -1, -1}, count[TAGS] = {0};
    for (int i = 0; i < nreceipts; i++) {
        const struct request *r = receipt[i].req;
        if (r->result.cancelled) continue;
        assert_int_equal(r->result.error, 0);
        if (receipt[i].tag < TAGS) assert_int_equal(r->result.tag, receipt[i].tag);
        int number = check_content(&receipt[i]);
        count[r->result.tag]++;
        if (number < 0) continue;
        assert_true(number > last[r->result.tag]);
        last[r->result.tag] = number;
    }
    for (int i = 0; i < nsent; i++) count[sent[i].tag]--;
    for (int t = 0; t < TAGS; t++) assert_int_equal(count[t], 0);
}

static void drop_all(void)
{
    for (int i = 0; i < nsent; i++) {
        pt_release(sent[i].req);
        free(sent[i].buf);
    }
    for (int i = 0; i < nreceipts; i++) {
        pt_release(receipt[i].req);
        free(receipt[i].buf);
    }
    nsent = nreceipts = 0;
}

static void play(uint64_t *seed)
{
    static const char *const eager[] = {"0", "64", "8K"}, *const credit[] = {"1K", "10K", "1M"};
    setenv("TERN_EAGER_SHM", eager[random_next(seed) % 3], 1);
    setenv("TERN_EAGER_CREDIT", credit[random_next(seed) % 3], 1);
    setenv("TERN_CHUNK_CMA", "8K", 1);
    setenv("TERN_CHUNK_STREAM", "5000", 1);
    struct mock_script script = random_script(seed);
    struct comm *c = job_open(&script);
    gaps = gaps_type();
    while (nsent < MESSAGES || nreceipts < MESSAGES) {
        uint64_t what = random_next(seed) % 5;
        if (what < 2 && nsent < MESSAGES) send_one(c, seed);
        else if (what < 4 && nreceipts < MESSAGES)
            receive_one(c, (int)(random_next(seed) % (TAGS + 1)), random_next(seed) % 3 == 0);
        else lane_progress(lanes_first());
    }
    end_all(c);
    check_all();
    drop_all();
    type_unref(gaps);
    job_close();
}

static void random_traffic(void **state)
{
    uint64_t seed = random_open();
    (void)state;
    for (int i = 0; i < 300; i++) play(&seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(random_traffic, job_clean)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
