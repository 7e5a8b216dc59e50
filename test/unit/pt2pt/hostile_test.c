/*
 * hostile_test.c - messages that cannot be: whatever comes, memory stays whole (built with sanitizers this test means
 * most), and the sender is given up with words.
 */
#include "base/err.h"
#include "mock_job.h"
#include "pt2pt/lost.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REQUESTS = 6, BYTES = 20000, RANDOM_MESSAGES = 100000 };

static struct comm *world;
static struct peer *from;
static struct request *req[REQUESTS];
static char *buf[REQUESTS];
static uint64_t was_id; /* of an operation that is over */

/* ---- a message of a layer above ---- */

enum { AM_ABOVE = TP_AM_TESTS };
static unsigned heard;
static volatile unsigned char sum; /* every byte is read */

static void hear(struct peer *p, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    (void)p, (void)h0, (void)h1;
    for (size_t i = 0; i < n; i++) sum = (unsigned char)(sum + ((const unsigned char *)data)[i]);
    heard++;
}

static const struct tp_am above = {AM_ABOVE, "of a layer above", hear, NULL, false, 0};

/* ---- operations for messages to be about ---- */

static void start_requests(void)
{
    for (int i = 0; i < REQUESTS; i++) {
        if (!buf[i]) buf[i] = calloc(1, BYTES);
        assert_non_null(buf[i]);
    }
    assert_int_equal(pt_irecv(world, buf[0], BYTES, type_of(MPI_BYTE), 0, 1, &req[0]), 0);
    assert_int_equal(pt_irecv(world, buf[1], 100, type_of(MPI_BYTE), MPI_ANY_SOURCE, MPI_ANY_TAG, &req[1]), 0);
    assert_int_equal(pt_isend(world, buf[2], BYTES, type_of(MPI_BYTE), 0, 1, PT_STANDARD, &req[2]),
                     0); /* meets the first */
    assert_int_equal(pt_isend(world, buf[3], BYTES, type_of(MPI_BYTE), 0, 3, PT_STANDARD, &req[3]), 0);
    assert_int_equal(pt_isend(world, buf[4], 50, type_of(MPI_BYTE), 0, 4, PT_SYNC, &req[4]), 0);
    assert_int_equal(pt_isend(world, buf[5], BYTES, type_of(MPI_BYTE), 0, 5, PT_SYNC, &req[5]), 0);
}

static void end_requests(void)
{
    err_set(TERN_ERR_PEER, "the test ends this");
    pt_lose(from);
    job_settle(); /* fragments under way come back */
    pt_wait_many(REQUESTS, req, true);
    for (int i = 0; i < REQUESTS; i++) {
        pt_release(req[i]);
        req[i] = NULL;
    }
}

/* The peer is as new. */
static void forgive(void)
{
    end_requests();
    assert_int_equal(lanes_first()->ids.used, 0);
    assert_true(list_empty(&lanes_first()->steps.active));
    pt_lost_close();
    losses.count = 0;
    world->pt->lost = NULL;
    world->pt->gone = 0;
    from->credit = from->quota_there;
    from->due = from->quota / 2;
    for (struct match_body *b; (b = match_take(&world->pt->match[PT_USER], MATCH_ANY_SOURCE, MATCH_ANY_TAG));)
        pt_drop_body(lanes_first(), b);
}

/* ---- made-up messages ---- */

static uint64_t some_id(uint64_t *seed)
{
    uint64_t what = random_next(seed) % 8;
    const struct request *r = req[random_next(seed) % REQUESTS];
    if (what == 0) return random_next(seed);
    if (what == 1) return was_id;
    if (what == 2) return r && r->id ? r->id + random_next(seed) % 3 - 1 : 0;
    if (what == 3) return random_next(seed) % 100;
    return r ? r->id : 0;
}

static uint64_t some_number(uint64_t *seed)
{
    static const uint64_t numbers[] = {0,         1, 8, 50, 4096, BYTES, BYTES + 1, INT64_MAX, (uint64_t)INT64_MAX + 1,
                                       UINT64_MAX};
    uint64_t what = random_next(seed) % 4;
    if (what == 0) return random_next(seed);
    if (what == 1) return random_next(seed) % BYTES;
    return numbers[random_next(seed) % ARRAY_LEN(numbers)];
}

static uint64_t some_word(uint64_t *seed)
{
    switch (random_next(seed) % 4) {
    case 0:
        return some_id(seed);
    case 1:
        return env_pack((int32_t)(random_next(seed) % 3) - 1, (int32_t)(random_next(seed) % 6) - 2);
    case 2:
        return world->ctx | random_next(seed) % 2;
    default:
        return some_number(seed);
    }
}

struct made {
    unsigned id;
    uint64_t h0, h1;
    size_t n;
    uint64_t *data; /* exactly n bytes are allocated */
};

static const unsigned ids[] = {AM_EAGER, AM_EAGER_SYNC, AM_RTS,    AM_CTS,      AM_FRAG,
                               AM_ACK,   AM_CREDIT,     AM_CANCEL, AM_CANCELLED, AM_ASK, AM_OVER,
                               AM_CLOSING, AM_PART, AM_AHEAD, AM_AHEAD};

/* A part that may be the next one of a long message: of one that has begun, the sizes of which the last part said. */
static void make_part(struct made *m, uint64_t *seed)
{
    static uint64_t bytes, there;
    if (!from->gather || !bytes) {
        bytes = sizeof(struct pt_long) + random_next(seed) % 5000;
        there = 0;
    }
    m->h0 = bytes;
    m->h1 = there;
    m->n = m->n < bytes - there ? m->n : (size_t)(bytes - there);
    there += m->n;
}

/* The data of a large message that nobody has asked for, or the RTS of one; true: it is that. */
static bool make_ahead(struct made *m, uint64_t *seed, struct pt_rts *rts)
{
    static uint64_t there;
    if (!from->ahead || !rts->bytes || there == rts->bytes) {
        *rts = (struct pt_rts){random_next(seed) % 4, random_next(seed) % 5000, RTS_AHEAD};
        there = 0;
        m->id = AM_RTS;
        m->h1 = env_pack(0, (int32_t)(random_next(seed) % 6));
        m->n = sizeof *rts;
    } else {
        m->h1 = rts->send << 32 | there;
        m->n = m->n < rts->bytes - there ? m->n : (size_t)(rts->bytes - there);
        there += m->n;
    }
    m->h0 = world->ctx;
    return m->id == AM_RTS;
}

/* Some are nearly right: the envelope, the id or the length that they should have. */
static struct made make(uint64_t *seed)
{
    static struct pt_rts rts;
    bool whole = false;
    struct made m = {.id = ids[random_next(seed) % ARRAY_LEN(ids)], .h0 = some_word(seed), .h1 = some_word(seed)};
    static const size_t lengths[] = {0, 7, 8, 16, 24, 25, 100, 3000};
    m.n = lengths[random_next(seed) % ARRAY_LEN(lengths)];
    if (random_next(seed) % 4) {
        bool matched = m.id <= AM_RTS || m.id == AM_CANCEL;
        m.h0 = matched ? world->ctx | random_next(seed) % 2 : some_id(seed);
        if (matched) m.h1 = env_pack(0, (int32_t)(random_next(seed) % 6));
        if (m.id == AM_RTS) m.n = sizeof(struct pt_rts);
        if (m.id == AM_CTS) m.n = sizeof(struct pt_cts);
        if (m.id == AM_CANCEL) m.n = 8;
        if (m.id == AM_CTS) m.h1 = random_next(seed) % 8 == 0;
        if (m.id == AM_CANCELLED) m.h1 = random_next(seed) % 2;
        if (m.id == AM_CREDIT) m.h0 = random_next(seed) % 100;
        if (m.id == AM_PART) make_part(&m, seed);
        if (m.id == AM_AHEAD) whole = make_ahead(&m, seed, &rts);
    }
    m.data = malloc(m.n + !m.n);
    assert_non_null(m.data);
    for (size_t i = 0; i < m.n / 8; i++) m.data[i] = i < 3 ? some_word(seed) : 0;
    const struct pt_long head = {1, 2, AM_ABOVE, 0};
    if (m.id == AM_PART && m.n >= sizeof head && random_next(seed) % 4) memcpy(m.data, &head, sizeof head);
    if (whole) memcpy(m.data, &rts, sizeof rts);
    if (m.n % 8) memset((char *)m.data + m.n / 8 * 8, 1, m.n % 8);
    return m;
}

/* As a transport would: the payload goes to the sink, if there is one. */
static void deliver(const struct made *m, bool ask)
{
    void *sink = ask && m->n && tp_sinks[m->id] ? tp_sinks[m->id](from, m->h0, m->h1, m->n) : NULL;
    if (sink) memcpy(sink, m->data, m->n);
    tp_handlers[m->id](from, m->h0, m->h1, sink ? sink : m->data, m->n);
}

static void random_messages(void **state)
{
    uint64_t seed = random_open();
    struct mock_script script = MOCK_SCRIPT;
    unsigned given_up = 0, borne = 0;
    (void)state;
    script.caps = TP_CAP_BCOPY | TP_CAP_ZCOPY;
    script.room = 1000;
    script.sever_counts = true;
    assert_int_equal(tp_am_register(&above, 1), 0);
    world = job_open(&script);
    from = job_peer();
    start_requests();
    for (int i = 0; i < RANDOM_MESSAGES; i++) {
        struct made m = make(&seed);
        const struct request *r = req[random_next(&seed) % REQUESTS];
        if (r->id) was_id = r->id;
        deliver(&m, random_next(&seed) % 2);
        free(m.data);
        if (random_next(&seed) % 4 == 0) lane_progress(lanes_first());
        if (from->lost) assert_non_null(strstr(from->lost, "cannot be"));
        given_up += from->lost != NULL;
        borne += !from->lost;
        if (!from->lost && random_next(&seed) % 50) continue;
        forgive();
        start_requests();
    }
    printf("# %u messages borne, %u the end of a peer\n", borne, given_up);
    assert_true(borne > 1000 && given_up > 1000 && heard > 10);
    assert_int_equal(mock_count.severed >= given_up / 2, 1);
    forgive();
    for (int i = 0; i < REQUESTS; i++) {
        free(buf[i]);
        buf[i] = NULL;
    }
    job_abandon();
    tp_am_unregister(&above, 1);
}

/* ---- one of each kind, with its words ---- */

static void expect_given_up(unsigned id, uint64_t h0, uint64_t h1, const void *data, size_t n, const char *words)
{
    struct mock_script script = MOCK_SCRIPT;
    script.caps = TP_CAP_BCOPY;
    world = job_open(&script);
    from = job_peer();
    if ((id <= AM_RTS || id == AM_AHEAD) && !h0) h0 = world->ctx;
    tp_handlers[id](from, h0, h1, data, n);
    if (!from->lost) fail_msg("message %u was taken", id);
    if (!strstr(from->lost, words)) fail_msg("'%s' is not in '%s'", words, from->lost);
    assert_non_null(strstr(from->lost, "rank 0 of the job sent a message that cannot be"));
    assert_int_equal(mock_count.severed, 1);
    job_settle();
    job_abandon();
}

static void each_in_words(void **state)
{
    static const uint64_t zero[8];
    static const struct pt_rts unasked[] = {{1, 0, RTS_AHEAD}, {1, (33 << 20), RTS_AHEAD}, {1ull << 31, 100, RTS_AHEAD}};
    (void)state;
    expect_given_up(AM_EAGER, 0, env_pack(1, 0), zero, 8, "as if from rank 1 of a communicator");
    expect_given_up(AM_EAGER, 0, env_pack(-1, 0), zero, 8, "as if from rank -1");
    expect_given_up(AM_EAGER, 0, env_pack(0, MPI_ANY_TAG), zero, 8, "with tag -2");
    expect_given_up(AM_EAGER_SYNC, 0, env_pack(0, 0), zero, 7, "a synchronous message of 7 bytes");
    expect_given_up(AM_RTS, 0, env_pack(0, 0), zero, 23, "the offer of a large message, of 23 bytes");
    for (size_t i = 0; i < ARRAY_LEN(unasked); i++)
        expect_given_up(AM_RTS, 0, env_pack(0, 0), &unasked[i], sizeof unasked[i], "that nobody has asked for");
    expect_given_up(AM_AHEAD, 0, 5ull << 32, zero, 16, "16 bytes at 0 of a message that nobody has asked for");
    expect_given_up(AM_CTS, 5, 0, zero, 24, "a message that was not offered");
    expect_given_up(AM_FRAG, 5, 0, zero, 16, "not the next ones");
    expect_given_up(AM_ACK, 5, 0, zero, 0, "of which there is none");
    expect_given_up(AM_CREDIT, 1, 0, zero, 0, "gives back 1 bytes");
    expect_given_up(AM_CANCEL, 0, 0, zero, 9, "a cancel of 9 bytes");
    expect_given_up(AM_CANCELLED, 5, 0, zero, 0, "not asked for");
    expect_given_up(AM_CLOSING, 1, 0, zero, 0, "a word about the end of the connection that cannot be now: 1");
    expect_given_up(AM_PART, sizeof(struct pt_long) - 1, 0, zero, 8, "8 bytes at 0 of 23 of a long message");
    expect_given_up(AM_PART, sizeof(struct pt_long) + PT_MESSAGE_LARGEST + 1, 0, zero, 8, "8 bytes at 0 of 1048601 of");
    expect_given_up(AM_PART, UINT64_MAX, 0, zero, 8, "of a long message");
    expect_given_up(AM_PART, 0, 0, zero, 0, "of a long message");
    expect_given_up(AM_PART, 100, 8, zero, 8, "8 bytes at 8 of 100 of a long message, which are not the next ones");
    expect_given_up(AM_PART, 24, 0, zero, 25, "25 bytes at 0 of 24");
    expect_given_up(AM_PART, 24, 0, zero, 24, "a long message with the id 0");
}

/* The way that is asked for is one that the sender has offered. */
static void ways_that_were_not_offered(void **state)
{
    static char data[BYTES];
    static const struct {
        uint32_t caps;
        uint64_t way, bytes;
        bool good;
    } asked[] = {{TP_CAP_BULK, BY_BULK, 100, true}, {TP_CAP_BULK, 2, 100, false},    {TP_CAP_BULK, BY_BULK, 0, false},
                 {0, BY_BULK, 100, false},          {TP_CAP_BULK, 0, 100, true}, {TP_CAP_GETPUT | TP_CAP_MAP, BY_BULK, 100, false}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        struct mock_script script = MOCK_SCRIPT;
        struct pt_cts cts = {5, asked[i].bytes, 100};
        struct request *r;
        script.sever_counts = true;
        script.caps = asked[i].caps;
        world = job_open(&script);
        from = job_peer();
        assert_int_equal(pt_isend(world, data, BYTES, type_of(MPI_BYTE), 0, 1, PT_STANDARD, &r), 0);
        tp_handlers[AM_CTS](from, r->id, asked[i].way, &cts, sizeof cts);
        assert_int_equal(from->lost == NULL, asked[i].good);
        if (!asked[i].good) assert_non_null(strstr(from->lost, "by a way that was not offered"));
        mock_script.sever_counts = false;
        err_set(TERN_ERR_PEER, "the test ends");
        pt_lose(from);
        job_settle();
        assert_int_equal(pt_wait(r), TERN_ERR_PEER);
        job_abandon();
    }
}

/* Fragments follow each other: none twice, none with a gap, none too long. */
static void fragments_in_order(void **state)
{
    static const struct {
        uint64_t at, n;
        bool good;
    } second[] = {
        {100, 100, true}, {0, 100, false},     {101, 10, false},   {99, 10, false},
        {100, 0, false},  {100, 19901, false}, {100, 19900, true},
    };
    static char data[BYTES], to[BYTES];
    struct mock_script script = MOCK_SCRIPT;
    script.caps = 0;
    script.sever_counts = true;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(second); i++) {
        struct request *r = NULL;
        struct pt_rts rts = {77, BYTES, 0};
        world = job_open(&script);
        from = job_peer();
        mock_script.room = 0; /* answers stay here */
        assert_int_equal(pt_irecv(world, to, BYTES, type_of(MPI_BYTE), 0, 1, &r), 0);
        tp_handlers[AM_RTS](from, world->ctx, env_pack(0, 1), &rts, sizeof rts);
        assert_true(r->id != 0);
        tp_handlers[AM_FRAG](from, r->id, 0, data, 100);
        assert_null(from->lost);
        void *sink = tp_sinks[AM_FRAG](from, r->id, second[i].at, second[i].n);
        assert_ptr_equal(sink, second[i].good ? to + second[i].at : NULL);
        tp_handlers[AM_FRAG](from, r->id, second[i].at, data, second[i].n);
        assert_int_equal(from->lost == NULL, second[i].good);
        if (second[i].good) { /* the answer that waits here goes with the peer */
            mock_script.sever_counts = false;
            err_set(TERN_ERR_PEER, "the test ends");
            pt_lose(from);
        }
        job_settle();
        assert_int_equal(pt_wait(r), second[i].at + second[i].n == BYTES && second[i].good ? 0 : TERN_ERR_PEER);
        job_abandon();
    }
}

/* So do the data of a message that nobody has asked for, whether its receive is posted before or afterwards. */
static void unasked_in_order(void **state)
{
    static const struct {
        uint64_t at, n;
        bool good;
    } second[] = {
        {100, 100, true}, {0, 100, false}, {101, 10, false}, {99, 10, false}, {100, 0, false}, {100, 19901, false}, {100, 19900, true},
    };
    static char data[BYTES], to[BYTES];
    struct mock_script script = MOCK_SCRIPT;
    script.sever_counts = true;
    (void)state;
    memset(data, 7, sizeof data);
    for (size_t i = 0; i < 2 * ARRAY_LEN(second); i++) {
        bool posted = i % 2, good = second[i / 2].good, whole = good && second[i / 2].at + second[i / 2].n == BYTES;
        uint64_t at = second[i / 2].at;
        struct request *r = NULL;
        struct pt_rts rts = {77, BYTES, RTS_AHEAD};
        memset(to, 0, sizeof to);
        world = job_open(&script);
        from = job_peer();
        if (posted) assert_int_equal(pt_irecv(world, to, BYTES, type_of(MPI_BYTE), 0, 1, &r), 0);
        tp_handlers[AM_RTS](from, world->ctx, env_pack(0, 1), &rts, sizeof rts);
        assert_int_equal(from->stored, posted ? 0 : eager_cost(BYTES));
        tp_handlers[AM_AHEAD](from, world->ctx, 77ull << 32, data, 100);
        assert_null(from->lost);
        void *sink = tp_sinks[AM_AHEAD](from, world->ctx, 77ull << 32 | at, second[i / 2].n);
        if (posted) assert_ptr_equal(sink, good ? to + at : NULL);
        else assert_int_equal(sink != NULL, good);
        tp_handlers[AM_AHEAD](from, world->ctx, 77ull << 32 | at, data, second[i / 2].n);
        assert_int_equal(from->lost == NULL, good);
        if (good && !whole) {
            mock_script.sever_counts = false;
            err_set(TERN_ERR_PEER, "the test ends");
            pt_lose(from);
        }
        job_settle();
        if (!posted) assert_int_equal(pt_irecv(world, to, BYTES, type_of(MPI_BYTE), 0, 1, &r), 0);
        assert_int_equal(pt_wait(r), whole ? 0 : TERN_ERR_PEER);
        if (whole) assert_memory_equal(to, data, BYTES);
        assert_int_equal(from->stored, 0);
        job_abandon();
    }
}

/* Parts of a long message follow each other, and say the same of it. */
static void parts_in_order(void **state)
{
    enum { WHOLE = 20000 };
    static const struct {
        uint64_t bytes, at;
        size_t n;
        bool good;
    } second[] = {{WHOLE, 100, 100, true},    {WHOLE, 100, WHOLE - 100, true}, {WHOLE, 0, 100, false},
                  {WHOLE, 99, 100, false},    {WHOLE, 101, 100, false},        {WHOLE, 100, 0, false},
                  {WHOLE, 100, WHOLE - 99, false}, {WHOLE + 1, 100, 100, false},    {WHOLE - 1, 100, 100, false},
                  {100, 0, 100, false},       {WHOLE, UINT64_MAX, 100, false}};
    static char data[WHOLE];
    (void)state;
    assert_int_equal(tp_am_register(&above, 1), 0);
    for (size_t i = 0; i < ARRAY_LEN(second); i++) {
        const struct pt_long head = {1, 2, AM_ABOVE, 0};
        memcpy(data, &head, sizeof head);
        world = job_open(NULL);
        from = job_peer();
        heard = 0;
        tp_handlers[AM_PART](from, WHOLE, 0, data, 100);
        assert_true(!from->lost && from->gather);
        tp_handlers[AM_PART](from, second[i].bytes, second[i].at, data + 100, second[i].n);
        assert_int_equal(from->lost == NULL, second[i].good);
        assert_int_equal(heard, second[i].good && second[i].n == WHOLE - 100);
        job_settle();
        assert_int_equal(from->gather != NULL, second[i].good && !heard); /* a lost peer keeps no memory */
        job_abandon();
    }
    tp_am_unregister(&above, 1);
}

/* Only messages of layers above come in parts: those of this layer are short, and are counted against the credit. */
static void no_other_message_comes_in_parts(void **state)
{
    static const uint32_t wrong[][2] = {{AM_EAGER, 0}, {AM_PART, 0}, {TP_AM_TRANSPORT, 0}, {TP_AM_COLL, 0}, {TP_AM_MAX, 0}, {UINT32_MAX, 0}, {AM_ABOVE, 1}};
    (void)state;
    assert_int_equal(tp_am_register(&above, 1), 0);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct {
            struct pt_long head;
            char data[8];
        } whole = {{0, env_pack(0, 1), wrong[i][0], wrong[i][1]}, "1234567"};
        world = job_open(NULL);
        from = job_peer();
        whole.head.h0 = world->ctx;
        heard = 0;
        tp_handlers[AM_PART](from, sizeof whole, 0, &whole, sizeof whole);
        assert_non_null(strstr(from->lost, "a long message with the id"));
        assert_int_equal(heard + match_unexpected_count(&world->pt->match[PT_USER]), 0);
        job_settle();
        job_abandon();
    }
    tp_am_unregister(&above, 1);
}

/* Ids can be guessed: an answer to what still waits for room here must not end it, it is in a queue. */
static void answered_before_it_was_asked(void **state)
{
    static char data[BYTES];
    (void)state;
    for (int large = 0; large < 2; large++) {
        struct mock_script script = MOCK_SCRIPT;
        struct pt_cts cts = {5, 0, 100};
        struct request *r;
        script.sever_counts = true;
        world = job_open(&script);
        from = job_peer();
        mock_script.room = 0;
        assert_int_equal(pt_isend(world, data, large ? BYTES : 50, type_of(MPI_BYTE), 0, 1, PT_SYNC, &r), 0);
        assert_true(r->id && from->waiting);
        if (large) tp_handlers[AM_CTS](from, r->id, 0, &cts, sizeof cts);
        else tp_handlers[AM_ACK](from, r->id, 0, NULL, 0);
        assert_non_null(from->lost);
        assert_false(request_is_complete(r));
        job_settle();
        assert_int_equal(pt_wait(r), TERN_ERR_PEER);
        assert_false(from->waiting);
        job_abandon();
    }
}

/* Messages for a communicator that is not there yet are checked when it is. */
static void early_stranger(void **state)
{
    struct comm *d = NULL;
    world = job_open(NULL);
    from = job_peer();
    uint64_t ctx = comm_fresh_ctx();
    (void)state;
    tp_handlers[AM_EAGER](from, ctx, env_pack(5, 1), "x", 1);
    tp_handlers[AM_EAGER](from, ctx, env_pack(0, 1), "y", 1);
    assert_null(from->lost);
    assert_int_equal(comm_new(ctx, rankmap_ref(world->map), NULL, world, &d), 0);
    assert_non_null(strstr(from->lost, "as if from rank 5"));
    assert_int_equal(match_unexpected_count(&d->pt->match[PT_USER]), 1); /* the honest one */
    comm_unref(d);
    job_abandon();
}

/* A peer that heeds no credit, or makes up communicators, is stopped before memory is. */
static void memory_is_bounded(void **state)
{
    static char data[8192];
    (void)state;
    setenv("TERN_EAGER_CREDIT", "64K", 1);
    world = job_open(NULL);
    from = job_peer();
    for (int i = 0; i < 1000 && !from->lost; i++)
        tp_handlers[AM_EAGER](from, world->ctx, env_pack(0, 1), data, sizeof data);
    assert_non_null(strstr(from->lost, "nobody has received"));
    assert_true(lanes_first()->pool.used < 2 << 20);
    job_abandon();
    world = job_open(NULL);
    from = job_peer();
    struct pt_rts rts = {1, 1, 0};
    for (uint64_t i = 0; i < 100000 && !from->lost; i++)
        tp_handlers[AM_RTS](from, (i + 1000) << 1, env_pack(0, 1), &rts, sizeof rts);
    assert_non_null(strstr(from->lost, "unknown communicators"));
    job_abandon();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(each_in_words, job_clean),   cmocka_unit_test_teardown(ways_that_were_not_offered, job_clean),
        cmocka_unit_test_teardown(fragments_in_order, job_clean),
        cmocka_unit_test_teardown(unasked_in_order, job_clean),
        cmocka_unit_test_teardown(parts_in_order, job_clean),
        cmocka_unit_test_teardown(no_other_message_comes_in_parts, job_clean),
        cmocka_unit_test_teardown(answered_before_it_was_asked, job_clean),
        cmocka_unit_test_teardown(early_stranger, job_clean),  cmocka_unit_test_teardown(memory_is_bounded, job_clean),
        cmocka_unit_test_teardown(random_messages, job_clean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
