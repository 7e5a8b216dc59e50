/*
 * ahead_test.c - large messages that go before they are asked for, step by step: the test plays the other process (mock.h), first the
 * receiver of what is sent so, then the sender (PRO-18, PRO-26). What is no message of the protocol is in hostile_test.c.
 *
 * ahead.c is part of this program, so that the numbers of messages can begin where they wrap. (Linked with --wrap for malloc, calloc and
 * free.)
 */
#include "pt2pt/rndv/ahead.c"

#include "../mock_job.h"
#include "base/err.h"

enum { BYTES = 600000, HALF = 300000, SMALL = 100, TAG = 5, LARGEST = 1 << 20 };
static char out[2][BYTES], in[2][2 * BYTES];
static struct comm *world;
static struct peer *other;

static enum { NOTHING, MALLOC, CALLOC } fails; /* of the data of a message; of a small struct */
static void *large[16];                        /* memory for data that has not been freed */
void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void __real_free(void *);
void __wrap_free(void *);

/* The place of p in `large`. */
static int large_at(const void *p)
{
    int i = 0;
    while (i < 16 && large[i] != p) i++;
    return i;
}

void *__wrap_malloc(size_t n)
{
    if (fails == MALLOC && n == BYTES) return NULL;
    void *p = __real_malloc(n);
    if (n == BYTES || n == HALF) large[large_at(NULL)] = p;
    return p;
}

void *__wrap_calloc(size_t n, size_t size) { return fails == CALLOC && n * size < 1000 ? NULL : __real_calloc(n, size); }

void __wrap_free(void *p)
{
    int i = p ? large_at(p) : 16;
    if (i < 16) large[i] = NULL;
    __real_free(p);
}

/* Over a wire that carries a stream, and for which TERN_AHEAD_TCP is LARGEST. */
static void open_job(uint32_t caps, bool done_late)
{
    static struct limits limits;
    struct mock_script script = MOCK_SCRIPT;
    script.caps = caps;
    script.done_late = done_late;
    world = job_open_played(&script);
    other = job_peer();
    limits = *limits_of(other);
    limits.ahead_max = LARGEST;
    other->limits = &limits;
    memset(in, 0, sizeof in);
    for (int i = 0; i < 2; i++) fill(out[i], BYTES, (uint64_t)i);
}

/* No memory of messages is left. */
static void close_job(bool checked)
{
    if (checked) job_close();
    else job_abandon();
    for (int i = 0; i < 16; i++) assert_null(large[i]);
}

static void open_stream(void) { open_job(TP_CAP_BCOPY | TP_CAP_ZCOPY, false); }

/* ---- the test is the receiver ---- */

static struct request *start(int i, int64_t n) { return job_isend(world, out[i], n, TAG, PT_STANDARD); }

static struct pt_rts next_rts(int64_t n)
{
    struct pt_rts rts;
    struct mock_message m = job_sent(&rts, sizeof rts);
    assert_true(m.id == AM_RTS && m.h0 == world->ctx && m.h1 == env_pack(1, TAG) && rts.bytes == (uint64_t)n);
    return rts;
}

/* The next message is data of that one, which come here: bytes. */
static size_t next_data(uint64_t number, size_t at)
{
    struct mock_message m;
    if (!mock_take(&m, in[0] + at, BYTES)) return 0;
    assert_true(m.id == AM_AHEAD && m.h0 == world->ctx && m.h1 == (number << 32 | at));
    return m.n;
}

static void goes_ahead(uint64_t number, int64_t n, uint64_t seed)
{
    struct pt_rts rts = next_rts(n);
    size_t got = 0;
    assert_int_equal(rts.offer, RTS_AHEAD);
    assert_int_equal(rts.send, number);
    for (size_t more; (more = next_data(number, got));) got += more;
    assert_int_equal(got, n);
    assert_true(filled(in[0], (size_t)n, seed));
}

/* The call ends with all of it in the wire; it costs credit. With no memory for the stream it is copied into the wire. */
static void a_large_send_goes_ahead(void **state)
{
    (void)state;
    for (int copied = 0; copied < 2; copied++) {
        open_stream();
        atomic_store(&numbers, 70);
        int64_t credit = other->credit;
        mock_script.room = UINT32_MAX;
        fails = copied ? CALLOC : NOTHING;
        struct request *s = start(0, BYTES);
        fails = NOTHING;
        assert_true(request_is_complete(s));
        assert_int_equal(other->credit, credit - eager_cost(BYTES));
        goes_ahead(70, BYTES, 0);
        assert_true(copied ? mock_count.sent[AM_AHEAD] > 100 : mock_count.sent[AM_AHEAD] <= 3);
        job_end(s, 0);
        close_job(true);
    }
}

static void is_offered(struct request *s) { assert_int_equal(job_offered_in_vain(s), 0); }

/* Its memory is free when the wire has taken the last part; the next message is offered meanwhile. */
static void one_at_a_time(void **state)
{
    (void)state;
    open_job(TP_CAP_BCOPY | TP_CAP_ZCOPY, true);
    struct request *s[2] = {start(0, BYTES), start(1, BYTES)};
    struct pt_rts rts = next_rts(BYTES);
    size_t got = next_data(rts.send, 0);
    assert_int_equal(rts.offer, RTS_AHEAD);
    got += next_data(rts.send, got);
    is_offered(s[1]);
    assert_false(request_is_complete(s[0]));
    job_settle();
    for (size_t more; (more = next_data(rts.send, got)); job_settle()) {
        got += more;
        assert_int_equal(request_is_complete(s[0]), got == BYTES);
    }
    assert_true(filled(in[0], BYTES, 0));
    job_end(s[0], 0);
    s[1] = start(1, BYTES);
    assert_int_equal(next_rts(BYTES).offer, RTS_AHEAD);
    for (struct mock_message m; mock_take(&m, NULL, 0);) job_settle();
    job_end(s[1], 0);
    close_job(true);
}

static void messages_that_are_offered(void **state)
{
    struct request *s;
    (void)state;
    open_stream();
    struct type *gaps = gaps_type();
    is_offered(job_isend(world, out[0], BYTES, TAG, PT_SYNC));
    static char larger[LARGEST + 1];
    is_offered(job_isend(world, larger, LARGEST + 1, TAG, PT_STANDARD));
    assert_int_equal(pt_isend(world, out[0], BYTES / 4, gaps, 0, TAG, PT_STANDARD, &s), 0);
    is_offered(s);
    mock_script.room = 0; /* behind another one */
    struct request *small = job_isend(world, out[0], SMALL, TAG, PT_STANDARD);
    mock_script.room = 64;
    s = start(0, BYTES);
    job_settle();
    assert_int_equal(job_sent(in[0], SMALL).id, AM_EAGER);
    is_offered(s);
    job_end(small, 0);
    type_unref(gaps);
    close_job(true);
    open_job(TP_CAP_BCOPY, false); /* no stream */
    is_offered(start(0, BYTES));
    close_job(true);
    open_job(TP_CAP_BCOPY | TP_CAP_ZCOPY | TP_CAP_MAP | TP_CAP_GETPUT, false); /* there is a better way */
    uint64_t offer = job_offered_in_vain(start(0, BYTES));
    assert_true(offer && offer % CACHE_LINE == 0);
    close_job(true);
}

/* A part of the credit is left to small messages; what a refused message has taken is back. */
static void credit_bounds_what_goes_ahead(void **state)
{
    (void)state;
    open_stream();
    int64_t least = eager_cost(BYTES) + other->quota_there / AHEAD_LEAVES;
    other->credit = least - 1;
    is_offered(start(0, BYTES));
    assert_int_equal(other->credit, least - 1);
    tp_handlers[AM_CREDIT](other, 1, 0, NULL, 0);
    mock_script.room = 0;
    struct request *s = start(0, BYTES);
    assert_int_equal(other->credit, least);
    mock_script.room = 64;
    job_settle();
    is_offered(s);
    uint64_t number = atomic_load(&numbers);
    s = start(1, BYTES);
    goes_ahead(number, BYTES, 1);
    assert_int_equal(other->credit, least - eager_cost(BYTES));
    job_end(s, 0);
    close_job(true);
}

/* ---- the test is the sender ---- */

static void says_ahead(int tag, uint64_t number, uint64_t n)
{
    struct pt_rts rts = {number, n, RTS_AHEAD};
    tp_handlers[AM_RTS](other, world->ctx, env_pack(0, tag), &rts, sizeof rts);
}

/* Part of message i, by way of where this process wants it: which is returned. */
static char *data_come(int i, uint64_t number, size_t at, size_t n)
{
    uint64_t h1 = number << 32 | at;
    char *to = tp_sinks[AM_AHEAD](other, world->ctx, h1, n);
    if (to) memcpy(to, out[i] + at, n);
    tp_handlers[AM_AHEAD](other, world->ctx, h1, to ? to : out[i] + at, n);
    return to;
}

static struct request *post(int i, int64_t room) { return job_irecv(world, in[i], room, TAG); }

/* The receive ends with n bytes of message i. */
static void gets(struct request *r, int into, int i, size_t n, int code)
{
    assert_true(request_is_complete(r));
    assert_true(r->result.source == 0 && r->result.tag == TAG && (size_t)r->result.bytes == n);
    assert_true(filled(in[into], n, (uint64_t)i));
    assert_int_equal(in[into][n], 0);
    job_end(r, code);
    assert_null(other->ahead);
}

/* The receive is posted before all, when the message is known, when half of it is there, when all is: it always gets it, without a copy
 * if it was first. Credit is given back when it is there, not when the data are. */
static void a_receive_at_each_point(void **state)
{
    (void)state;
    for (int point = 0; point < 4; point++) {
        open_stream();
        int64_t due = other->due;
        struct request *r = point == 0 ? post(0, BYTES) : NULL;
        if (r) r->result.source = MPI_ANY_SOURCE;
        says_ahead(TAG, 7, BYTES);
        assert_int_equal(other->stored, r ? 0 : eager_cost(BYTES));
        if (point == 1) r = post(0, BYTES);
        data_come(0, 7, 0, HALF);
        if (point == 0) assert_true(filled(in[0], HALF, 0));
        if (point == 2) r = post(0, BYTES);
        if (r) assert_false(request_is_complete(r));
        assert_int_equal(other->due, r ? due - eager_cost(BYTES) : due);
        data_come(0, 7, HALF, BYTES - HALF);
        if (point == 3) r = post(0, BYTES);
        gets(r, 0, 0, BYTES, 0);
        assert_int_equal(other->due, due - eager_cost(BYTES));
        close_job(true);
    }
}

static void rooms_of_other_lengths_and_kinds(void **state)
{
    struct request *r;
    (void)state;
    open_stream();
    struct type *gaps = gaps_type();
    static const int64_t room[] = {BYTES - 1000, BYTES + 1000, SMALL};
    for (size_t i = 0; i < ARRAY_LEN(room); i++) {
        memset(in, 0, sizeof in);
        r = post(0, room[i]);
        says_ahead(TAG, i, BYTES);
        data_come(0, i, 0, HALF);
        data_come(0, i, HALF, BYTES - HALF);
        gets(r, 0, 0, (size_t)min_int64(room[i], BYTES), room[i] < BYTES ? TERN_ERR_TRUNCATE : 0);
    }
    memset(in, 0, sizeof in);
    assert_int_equal(pt_irecv(world, in[0], BYTES / 2, gaps, 0, TAG, &r), 0);
    says_ahead(TAG, 9, BYTES);
    data_come(0, 9, 0, BYTES);
    job_end(r, 0);
    for (size_t k = 0; k < BYTES; k++) assert_true(in[0][gaps_place(k, true)] == out[0][k] && !in[0][k / 2 * 4 + 2]);
    type_unref(gaps);
    close_job(true);
}

/* A small message behind one that goes ahead is the second receive's, though it is there first. */
static void a_small_message_overtakes_nothing(void **state)
{
    (void)state;
    for (int posted = 0; posted < 2; posted++) {
        open_stream();
        struct request *r[2] = {NULL};
        for (int i = 0; posted && i < 2; i++) r[i] = post(i, BYTES);
        says_ahead(TAG, 7, BYTES);
        tp_handlers[AM_EAGER](other, world->ctx, env_pack(0, TAG), "small", 6);
        for (int i = 0; !posted && i < 2; i++) r[i] = post(i, BYTES);
        assert_true(!request_is_complete(r[0]) && request_is_complete(r[1]));
        assert_string_equal(in[1], "small");
        data_come(0, 7, 0, BYTES);
        gets(r[0], 0, 0, BYTES, 0);
        job_end(r[1], 0);
        close_job(true);
    }
}

/* PRO-26: numbers wrap, on both sides. Those of two messages that come side by side, from two lanes of the sender, differ. */
static void numbers_wrap(void **state)
{
    uint64_t number[2];
    struct request *r[2];
    (void)state;
    open_stream();
    for (int lap = 0; lap < 2; lap++) { /* of the counter, whose bits are more */
        atomic_store(&numbers, lap ? UINT32_MAX : INT32_MAX);
        for (int i = 0; i < 2; i++) {
            struct request *s = start(i, HALF);
            number[i] = i ? 0 : INT32_MAX;
            goes_ahead(number[i], HALF, (uint64_t)i);
            job_end(s, 0);
        }
    }
    memset(in, 0, sizeof in);
    for (int i = 0; i < 2; i++) {
        r[i] = post(i, BYTES);
        says_ahead(TAG, number[i], BYTES);
    }
    for (size_t at = 0; at < BYTES; at += HALF)
        for (int i = 1; i >= 0; i--) assert_ptr_equal(data_come(i, number[i], at, HALF), in[i] + at);
    assert_null(other->lost);
    assert_true(request_is_complete(r[1]) && filled(in[1], BYTES, 1));
    job_end(r[1], 0);
    gets(r[0], 0, 0, BYTES, 0);
    close_job(true);
}

/* A receive that has met its message cannot be cancelled any more. */
static void a_cancelled_receive(void **state)
{
    (void)state;
    open_stream();
    for (int met = 0; met < 2; met++) {
        struct request *r = post(0, BYTES);
        if (met) says_ahead(TAG, 7, BYTES);
        assert_int_equal(pt_cancel(r), 0);
        assert_true(request_is_complete(r) == !met && r->result.cancelled == !met);
        if (met) data_come(0, 7, 0, BYTES);
        if (met) gets(r, 0, 0, BYTES, 0);
        else job_end(r, 0);
    }
    close_job(true);
}

/* A message can be found, and taken, before its data are there. */
static void probes(void **state)
{
    struct request_result res;
    struct pt_message *m = NULL;
    struct request *r;
    bool found = false;
    (void)state;
    open_stream();
    says_ahead(TAG, 7, BYTES);
    assert_int_equal(pt_probe(world, 0, TAG, false, &found, &res), 0);
    assert_true(found && res.bytes == BYTES && res.tag == TAG && res.source == 0);
    data_come(0, 7, 0, HALF);
    assert_int_equal(pt_mprobe(world, 0, TAG, false, &found, &m, &res), 0);
    assert_true(found && res.bytes == BYTES);
    assert_int_equal(pt_probe(world, 0, TAG, false, &found, &res), 0);
    assert_false(found);
    assert_int_equal(pt_imrecv(m, in[0], BYTES, type_of(MPI_BYTE), &r), 0);
    assert_false(request_is_complete(r));
    data_come(0, 7, HALF, BYTES - HALF);
    gets(r, 0, 0, BYTES, 0);
    close_job(true);
}

/* For a communicator that has not been made here: all of it waits. */
static void a_message_before_its_communicator(void **state)
{
    struct comm *c = NULL, *before;
    (void)state;
    open_stream();
    before = world;
    struct comm unmade = {.ctx = comm_fresh_ctx()};
    world = &unmade; /* of what comes */
    says_ahead(TAG, 7, BYTES);
    data_come(0, 7, 0, HALF);
    assert_null(other->ahead);
    assert_int_equal(comm_new(unmade.ctx, rankmap_ref(before->map), NULL, before, &c), 0);
    world = c;
    assert_non_null(other->ahead);
    struct request *r = post(0, BYTES);
    data_come(0, 7, HALF, BYTES - HALF);
    gets(r, 0, 0, BYTES, 0);
    comm_unref(c);
    close_job(true);
}

/* What has come whole can be received when its sender is lost; the rest is an error, and no more of it is written. */
static void a_lost_sender(void **state)
{
    (void)state;
    for (int point = 0; point < 6; point++) {
        bool posted = point % 2;
        size_t came = (size_t)(point / 2) * HALF;
        open_stream();
        struct request *r = posted ? post(0, BYTES) : NULL;
        says_ahead(TAG, 7, BYTES);
        if (came) data_come(0, 7, 0, came);
        job_lose_peer();
        assert_null(other->ahead);
        if (!posted) r = post(0, BYTES);
        if (came == BYTES) gets(r, 0, 0, BYTES, 0);
        else job_end(r, TERN_ERR_PEER);
        memset(in, 0, sizeof in);
        assert_null(data_come(1, 7, came, BYTES - came));
        assert_int_equal(in[0][came], 0);
        close_job(false);
    }
}

/* MPI_Finalize ends a communicator with a receive that waits for more, or with a message that nobody wants: the rest is read past. */
static void a_message_outlives_its_communicator(void **state)
{
    (void)state;
    for (int posted = 0; posted < 2; posted++) {
        struct comm *c = NULL;
        open_stream();
        struct comm *before = world;
        assert_int_equal(comm_new(comm_fresh_ctx(), rankmap_ref(world->map), NULL, world, &c), 0);
        world = c;
        struct request *r = posted ? post(0, BYTES) : NULL;
        says_ahead(TAG, 7, BYTES);
        data_come(0, 7, 0, HALF);
        ahead_forget(before); /* of which it is none */
        if (r) assert_ptr_equal(other->ahead->receive, r);
        if (r) pt_release(r);
        comm_drop_left();
        assert_non_null(other->ahead);
        memset(in, 0, sizeof in);
        struct comm gone = {.ctx = 4096};
        world = &gone;
        data_come(1, 7, HALF, BYTES - HALF);
        assert_null(other->ahead);
        assert_null(other->lost);
        assert_int_equal(in[0][HALF], 0);
        close_job(false);
    }
}

/* When the communicator is made, the sender is lost: what has come whole by then can be received. */
static void a_lost_sender_before_the_communicator(void **state)
{
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        struct comm *c = NULL, *before, unmade = {.ctx = 0};
        open_stream();
        unmade.ctx = comm_fresh_ctx();
        before = world;
        world = &unmade;
        says_ahead(TAG, 7, BYTES);
        data_come(0, 7, 0, HALF);
        if (whole) data_come(0, 7, HALF, HALF);
        job_lose_peer();
        assert_int_equal(comm_new(unmade.ctx, rankmap_ref(before->map), NULL, before, &c), 0);
        world = c;
        struct request *r = post(0, BYTES);
        if (whole) gets(r, 0, 0, BYTES, 0);
        else job_end(r, TERN_ERR_PEER);
        assert_null(other->ahead);
        comm_unref(c);
        close_job(false);
    }
}

/* MPI_Finalize: the rest is not awaited. */
static void a_message_at_the_end(void **state)
{
    (void)state;
    open_stream();
    says_ahead(TAG, 7, BYTES);
    data_come(0, 7, 0, HALF);
    close_job(false);
}

static void hear_without_malloc(void)
{
    fails = MALLOC;
    says_ahead(TAG, 7, BYTES);
}

static void hear_without_calloc(void)
{
    fails = CALLOC;
    says_ahead(TAG, 7, BYTES);
}

/* A message that comes cannot be dropped, and nobody can be told. */
static void without_memory_the_job_ends(void **state)
{
    (void)state;
    open_stream();
    job_dies(hear_without_malloc, "no memory for an unexpected message");
    job_dies(hear_without_calloc, "no memory for a message that is coming");
    close_job(true);
}

#define TEST(x) cmocka_unit_test_teardown(x, job_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_large_send_goes_ahead),
        TEST(one_at_a_time),
        TEST(messages_that_are_offered),
        TEST(credit_bounds_what_goes_ahead),
        TEST(a_receive_at_each_point),
        TEST(rooms_of_other_lengths_and_kinds),
        TEST(a_small_message_overtakes_nothing),
        TEST(numbers_wrap),
        TEST(a_cancelled_receive),
        TEST(probes),
        TEST(a_message_before_its_communicator),
        TEST(a_lost_sender),
        TEST(a_lost_sender_before_the_communicator),
        TEST(a_message_at_the_end),
        TEST(a_message_outlives_its_communicator),
        TEST(without_memory_the_job_ends),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
