/*
 * doubt_test.c - waits that last: who is asked, what the answer ends, and what it leaves alone (pt2pt/doubt.h). The
 * other side is a process of another job, whose part the test plays: what it says is handed to the handlers, and what
 * is sent to it stays in the queue of the mock transport.
 */
#include "base/err.h"
#include "mock_job.h"
#include "proc/watcher.h"
#include "pt2pt/doubt.h"
#include "pt2pt/lost.h"

#include <stdlib.h>
#include <string.h>

enum { OTHER = 1, LATE = 2, ANY = 5 }; /* ranks, and indices: the late one has no card at first. A tag */

static const uint8_t key[JOBS_KEY] = "of the other job";
static struct job_entry *job;
static struct comm *comm; /* this process, the other, the late one */
static struct peer *other;
static uint8_t card[PEER_CARD_MAX];
static size_t card_bytes;

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
static bool no_memory;
void *__wrap_malloc(size_t n) { return no_memory ? NULL : __real_malloc(n); }

static int open_other(void **state)
{
    static const uint32_t members[] = {0, OTHER, LATE};
    struct comm *world = job_open(NULL);
    uint32_t index;
    (void)state;
    int n = peer_card(card, sizeof card);
    assert_true(n > 0);
    card_bytes = (size_t)n;
    job = job_add("the other one", 2, key, NULL);
    assert_non_null(job);
    assert_int_equal(peer_add(job, 0, card, card_bytes, &index),
                     0); /* by a card of ours: the mock reaches nobody else */
    assert_int_equal(index, OTHER);
    other = peer_get(OTHER);
    assert_non_null(other);
    assert_int_equal(comm_new(comm_fresh_ctx(), rankmap_list(3, members), NULL, world, &comm), 0);
    return 0;
}

static int close_other(void **state)
{
    comm_unref(comm);
    job_unref(job);
    job_abandon();
    return job_clean(state);
}

static void is_over(void) { pt_on_over(other, 0, 0, NULL, 0); }
static uint64_t asked(void) { return mock_count.sent[AM_ASK]; }
static uint64_t answered(void) { return mock_count.sent[AM_OVER]; }

static void dies(void)
{
    err_set(TERN_ERR_PEER, "the other has died");
    pt_lose(other);
    lane_progress(lanes_first());
}

static struct request *receive(int rank, int tag)
{
    static char there[8];
    struct request *r = NULL;
    assert_int_equal(pt_irecv(comm, there, sizeof there, type_of(MPI_BYTE), rank, tag, &r), 0);
    return r;
}

static struct request *send(size_t n, enum pt_mode mode)
{
    static char data[100000];
    struct request *r = NULL;
    assert_true(n <= sizeof data);
    assert_int_equal(pt_isend(comm, data, (int64_t)n, type_of(MPI_BYTE), OTHER, ANY, mode, &r), 0);
    return r;
}

static void doubt(struct request *r) { pt_doubt_requests(1, &r, true); }

static void assert_ended(struct request *r, const char *words)
{
    assert_true(request_is_complete(r));
    assert_int_equal(r->result.error, TERN_ERR_ABSENT);
    err_clear();
    pt_recall(r);
    assert_non_null(strstr(err_words(), words));
    pt_release(r);
}

static void drop(struct request *r)
{
    assert_false(request_is_complete(r));
    pt_cancel(r);
    assert_true(request_is_complete(r));
    pt_release(r);
}

/* ---- asking ---- */

static void it_is_asked_once_until_it_answers(void **state)
{
    (void)state;
    assert_null(pt_gone_by(lanes_first(), OTHER));
    assert_null(pt_gone_by(lanes_first(), OTHER));
    assert_int_equal(asked(), 1);
    is_over();
    assert_ptr_equal(pt_gone_by(lanes_first(), OTHER), other);
    assert_int_equal(asked(), 1);
}

static void this_process_is_not_asked(void **state)
{
    (void)state;
    assert_null(pt_gone_by(lanes_first(), 0));
    assert_int_equal(asked(), 0);
}

static void a_peer_that_is_closed_is_not_asked(void **state)
{
    (void)state;
    other->flags |= PEER_CLOSING;
    assert_null(pt_gone_by(lanes_first(), OTHER));
    assert_int_equal(asked(), 0);
    other->flags &= ~(uint32_t)PEER_CLOSING;
}

static void the_lost_are_gone_and_not_asked(void **state)
{
    (void)state;
    dies();
    assert_ptr_equal(pt_gone_by(lanes_first(), OTHER), other);
    assert_int_equal(asked(), 0);
}

static void without_a_card_it_is_asked_when_that_is_there(void **state)
{
    uint32_t index;
    (void)state;
    assert_null(pt_gone_by(lanes_first(), LATE));
    assert_int_equal(asked(), 0);
    assert_int_equal(peer_add(job, 1, card, card_bytes, &index), 0);
    assert_null(pt_gone_by(lanes_first(), LATE));
    assert_int_equal(asked(), 1);
}

static void out_of_reach_it_is_gone(void **state)
{
    uint32_t index;
    (void)state;
    assert_int_equal(peer_add(job, 1, "no card", 7, &index), 0);
    struct peer *late = pt_gone_by(lanes_first(), LATE);
    assert_non_null(late);
    assert_non_null(late->lost);
    assert_non_null(strstr(late->lost, "rank 1 of job the other one"));
    assert_int_equal(asked(), 0);
}

/* What this process lacks says nothing of the other. */
static void without_memory_to_connect_nothing_is_known(void **state)
{
    uint32_t index;
    (void)state;
    assert_int_equal(peer_add(job, 1, card, card_bytes, &index), 0);
    assert_non_null(peer_of_sender(LATE));
    no_memory = true;
    struct peer *late = pt_gone_by(lanes_first(), LATE);
    no_memory = false;
    assert_null(late);
    assert_null(pt_gone_by(lanes_first(), LATE));
    assert_int_equal(asked(), 0);
    assert_null(peer_of_sender(LATE)->lost);
}

/* ---- being asked ---- */

static void who_asks_is_answered_at_the_end(void **state)
{
    (void)state;
    pt_on_ask(other, 0, 0, NULL, 0);
    pt_on_ask(other, 0, 0, NULL, 0);
    assert_int_equal(answered(), 0);
    pt_finalize_begin(true);
    assert_int_equal(answered(), 1);
    pt_on_ask(other, 0, 0, NULL, 0); /* in the middle of it: at once */
    assert_int_equal(answered(), 2);
    pt_finalize_end();
    pt_finalize_begin(true); /* the next session's end: nobody has asked since */
    assert_int_equal(answered(), 2);
    pt_finalize_end();
}

static void the_lost_get_no_answer(void **state)
{
    (void)state;
    dies();
    pt_on_ask(other, 0, 0, NULL, 0);
    assert_false(other->flags & PEER_ASKS);
    pt_finalize_begin(true);
    pt_finalize_end();
    assert_int_equal(answered(), 0);
}

/* Words, lengths and data that a question does not have are not looked at. */
static void a_question_with_data_is_a_question(void **state)
{
    (void)state;
    pt_on_ask(other, UINT64_MAX, UINT64_MAX, "data", 4);
    pt_on_over(other, UINT64_MAX, UINT64_MAX, "data", 4);
    assert_ptr_equal(pt_gone_by(lanes_first(), OTHER), other);
    pt_finalize_begin(true);
    assert_int_equal(answered(), 1);
    pt_finalize_end();
}

/* It may open a session afterwards, as this process may. */
static void what_others_said_is_forgotten_at_the_own_end(void **state)
{
    (void)state;
    is_over();
    pt_finalize_begin(true);
    is_over(); /* too late to mean anything */
    pt_finalize_end();
    assert_null(pt_gone_by(lanes_first(), OTHER));
    assert_int_equal(asked(), 1);
}

/* ---- what is waited for ---- */

static void a_receive_ends_when_its_source_is_over(void **state)
{
    (void)state;
    struct request *r = receive(OTHER, ANY);
    doubt(r);
    assert_false(request_is_complete(r));
    assert_int_equal(asked(), 1);
    is_over();
    doubt(r);
    assert_int_equal(match_posted_count(&comm->pt->match[PT_USER]), 0);
    assert_ended(r, "rank 0 of job the other one is in MPI_Finalize, and a message with tag 5 is awaited from it");
}

static void receives_that_another_may_serve_stay(void **state)
{
    (void)state;
    is_over();
    struct request *r[] = {receive(MPI_ANY_SOURCE, ANY), receive(0, ANY)};
    for (size_t i = 0; i < ARRAY_LEN(r); i++) {
        doubt(r[i]);
        drop(r[i]);
    }
}

/* As programs have receives that they will cancel. */
static void what_nobody_waits_for_stays(void **state)
{
    (void)state;
    struct request *control = receive(OTHER, 1), *r = receive(OTHER, 2);
    is_over();
    doubt(r);
    assert_ended(r, "tag 2");
    lanes_doubt();
    drop(control);
}

static void one_of_several_may_still_be(void **state)
{
    (void)state;
    struct request *r[] = {NULL, receive(OTHER, 1), receive(0, 2), receive(OTHER, 3)};
    is_over();
    pt_doubt_requests(4, r, false);
    assert_false(request_is_complete(r[1]) || request_is_complete(r[3]));
    pt_cancel(r[2]); /* it is complete: it is no hope for the others */
    pt_doubt_requests(4, r, false);
    pt_release(r[2]);
    assert_ended(r[1], "tag 1");
    assert_ended(r[3], "tag 3");
}

static void of_all_that_are_awaited_those_end_that_must(void **state)
{
    (void)state;
    struct request *r[] = {receive(OTHER, 1), NULL, receive(0, 2)};
    is_over();
    pt_doubt_requests(3, r, true);
    assert_ended(r[0], "tag 1");
    drop(r[2]);
}

/* Its data are on the way. */
static void a_receive_that_met_its_message_stays(void **state)
{
    struct pt_rts rts = {.send = 1, .bytes = 6};
    (void)state;
    struct request *r = receive(OTHER, ANY);
    pt_on_rts(other, comm->ctx, env_pack(OTHER, ANY), &rts, sizeof rts);
    assert_int_equal(mock_count.sent[AM_CTS], 1);
    doubt(r);
    assert_int_equal(asked(), 0);
    is_over();
    doubt(r);
    assert_false(request_is_complete(r));
    dies();
    assert_int_equal(pt_wait(r), TERN_ERR_PEER);
    pt_release(r);
}

static void a_send_that_is_not_received_ends(void **state)
{
    static const size_t bytes[] = {8, 100000}; /* eager and synchronous; an offer */
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bytes); i++) {
        struct request *r = send(bytes[i], PT_SYNC);
        if (i == 0) {
            doubt(r);
            assert_false(request_is_complete(r));
            is_over();
        }
        doubt(r);
        assert_ended(r, "rank 0 of job the other one is in MPI_Finalize, and does not receive a message with tag 5");
    }
}

static void a_send_that_is_being_received_goes_on(void **state)
{
    (void)state;
    struct request *r = send(100000, PT_STANDARD);
    struct pt_offer *offer = r->xfer;
    assert_non_null(offer);
    is_over();
    atomic_store(&offer->transfer.end[TRANSFER_TO].said, OFFER_NUMBER);
    doubt(r);
    assert_false(request_is_complete(r));
    atomic_store(&offer->transfer.end[TRANSFER_TO].said, 0);
    doubt(r);
    assert_ended(r, "does not receive");
}

/* The receiver is asked to give it back, and answers. */
static void a_send_that_is_being_cancelled_goes_on(void **state)
{
    (void)state;
    struct request *r = send(8, PT_SYNC);
    uint64_t id = r->id;
    pt_cancel(r);
    is_over();
    doubt(r);
    assert_false(request_is_complete(r));
    pt_on_cancelled(other, id, 1, NULL, 0);
    assert_true(request_is_complete(r) && r->result.cancelled);
    pt_release(r);
}

static void a_probe_ends_unless_the_message_is_there(void **state)
{
    struct request_result res;
    char byte = 0;
    (void)state;
    assert_int_equal(pt_doubt_rank(comm, OTHER, 3), 0);
    pt_on_eager(other, comm->ctx, env_pack(OTHER, 3), "m", 1);
    is_over();
    assert_int_equal(pt_doubt_rank(comm, OTHER, 3), 0);
    assert_int_equal(pt_doubt_rank(comm, OTHER, MPI_ANY_TAG), 0);
    assert_int_equal(pt_doubt_rank(comm, OTHER, 4), TERN_ERR_ABSENT);
    assert_non_null(strstr(err_words(), "a message with tag 4 is awaited"));
    assert_int_equal(pt_recv(comm, &byte, 1, type_of(MPI_BYTE), OTHER, 3, &res), 0);
    assert_int_equal(byte, 'm');
    assert_int_equal(pt_doubt_rank(comm, OTHER, 3), TERN_ERR_ABSENT);
    dies();
    assert_int_equal(pt_doubt_rank(comm, OTHER, 3), TERN_ERR_PEER);
    assert_string_equal(err_words(), "the other has died");
}

/* At the end of this process all others end as well, and what they have sent before may be on its way. */
static void nothing_is_doubted_at_the_own_end(void **state)
{
    (void)state;
    struct request *r = receive(OTHER, ANY);
    pt_finalize_begin(true);
    is_over();
    doubt(r);
    assert_int_equal(asked(), 0);
    assert_int_equal(pt_doubt_rank(comm, OTHER, ANY), 0);
    pt_finalize_end();
    drop(r);
}

/* ---- what has no waiter ---- */

static void messages_of_collectives_end(void **state)
{
    static char data[8];
    struct request in[3] = {{.tag = 0}}, out = {.tag = 0};
    (void)state;
    for (int i = 0; i < 3; i++) {
        pt_prepare(&in[i], REQ_RECV, comm, PT_COLL, data, 8, type_of(MPI_BYTE), i < 2 ? OTHER : 0, i, PT_STANDARD);
        pt_recv_start(&in[i]);
    }
    pt_prepare(&out, REQ_SEND, comm, PT_COLL, data, 8, type_of(MPI_BYTE), OTHER, 9, PT_SYNC);
    pt_send_start(&out);
    lanes_doubt();
    assert_false(request_is_complete(&in[0]) || request_is_complete(&in[1]) || request_is_complete(&out));
    assert_int_equal(asked(), 1);
    is_over();
    lanes_doubt();
    assert_int_equal(in[0].result.error, TERN_ERR_ABSENT);
    assert_int_equal(in[1].result.error, TERN_ERR_ABSENT);
    assert_int_equal(out.result.error, TERN_ERR_ABSENT);
    assert_true(request_is_complete(&in[0]) && request_is_complete(&in[1]) && request_is_complete(&out));
    assert_non_null(strstr(err_words(), "its part of a collective operation is awaited"));
    assert_false(request_is_complete(&in[2]));
    assert_true(match_cancel(&comm->pt->match[PT_COLL], &in[2]));
}

static bool has_left;
static bool left(struct tp_ep *ep)
{
    (void)ep;
    return has_left;
}

/* Of a transport that has to be asked. */
static void who_has_left_is_found_out(void **state)
{
    struct tp_ops leaving = *other->ep.ops;
    const struct tp_ops *were = other->ep.ops;
    (void)state;
    leaving.left = left;
    other->ep.ops = &leaving;
    has_left = false;
    struct request *r = receive(OTHER, ANY);
    lanes_doubt();
    assert_null(other->lost);
    has_left = true;
    lanes_doubt();
    assert_string_equal(other->lost, "rank 0 of job the other one has left the job");
    assert_true(other->flags & PEER_LEFT);
    other->ep.ops = were;
    doubt(r);
    assert_ended(r, "has left the job, and a message with tag 5 is awaited from it");
}

/* ---- ends that nobody can explain ---- */

/* The mock knows of no end how it was. */
static void ends(uint32_t index)
{
    watcher_note(index);
    lane_progress(lanes_first());
}

static void await_part(struct request *r, int rank)
{
    static char data[8];
    pt_prepare(r, REQ_RECV, comm, PT_COLL, data, 8, type_of(MPI_BYTE), rank, 0, PT_STANDARD);
    pt_recv_start(r);
}

static void an_end_before_the_last_barrier_is_a_death(void **state)
{
    (void)state;
    ends(OTHER);
    assert_string_equal(other->lost, "rank 0 of job the other one has died");
}

/* It has done its part, and left: nothing is awaited of it. */
static void an_end_in_the_last_barrier_is_no_news(void **state)
{
    struct request r = {.tag = 0};
    (void)state;
    pt_finalize_begin(true);
    await_part(&r, 0);
    ends(OTHER);
    lanes_doubt();
    assert_null(other->lost);
    assert_false(request_is_complete(&r));
    pt_finalize_end();
    assert_true(match_cancel(&comm->pt->match[PT_COLL], &r));
}

static void it_is_a_death_if_its_part_is_missing(void **state)
{
    struct request r = {.tag = 0};
    (void)state;
    pt_finalize_begin(true);
    await_part(&r, OTHER);
    ends(OTHER);
    assert_false(request_is_complete(&r));
    lanes_doubt();
    lane_progress(lanes_first());
    assert_true(request_is_complete(&r));
    assert_int_equal(r.result.error, TERN_ERR_PEER);
    assert_string_equal(other->lost, "rank 0 of job the other one has died");
    pt_finalize_end();
}

/* The other has left in order, without its part: its barrier had failed, by the death of the late one. */
static void it_is_a_death_if_others_left_without_their_part(void **state)
{
    struct request r = {.tag = 0};
    (void)state;
    pt_finalize_begin(true);
    await_part(&r, OTHER);
    ends(LATE);
    lanes_doubt();
    assert_null(peer_of_sender(LATE)->lost);
    assert_false(request_is_complete(&r));
    err_set(TERN_ERR_ABSENT, "the other has left");
    pt_leave(other);
    lanes_doubt();
    lane_progress(lanes_first());
    assert_true(request_is_complete(&r));
    assert_non_null(strstr(peer_of_sender(LATE)->lost, "has died"));
    assert_int_equal(r.result.error, TERN_ERR_PEER);
    pt_finalize_end();
}

static void assert_died(struct request *r)
{
    assert_true(request_is_complete(r));
    assert_int_equal(r->result.error, TERN_ERR_PEER);
    err_clear();
    pt_recall(r);
    assert_non_null(strstr(err_words(), "rank 0 of job the other one has died"));
    pt_release(r);
}

/* Sessions go on behind MPI_Finalize, and nobody tells of the end a second time. */
static void an_end_in_the_last_barrier_is_a_death_for_those_that_go_on(void **state)
{
    struct request *named = receive(OTHER, 1), *any = receive(MPI_ANY_SOURCE, 2), *other_one = receive(0, 3);
    (void)state;
    pt_finalize_begin(false);
    ends(OTHER);
    assert_null(other->lost);
    assert_false(request_is_complete(named) || request_is_complete(any));
    pt_finalize_end();
    lane_progress(lanes_first());
    assert_died(named);
    assert_died(any);
    assert_died(receive(OTHER, 1)); /* begun behind it */
    assert_died(receive(MPI_ANY_SOURCE, 2));
    drop(other_one);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_other, close_other)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_is_asked_once_until_it_answers),
        TEST(this_process_is_not_asked),
        TEST(a_peer_that_is_closed_is_not_asked),
        TEST(the_lost_are_gone_and_not_asked),
        TEST(without_a_card_it_is_asked_when_that_is_there),
        TEST(out_of_reach_it_is_gone),
        TEST(without_memory_to_connect_nothing_is_known),
        TEST(who_asks_is_answered_at_the_end),
        TEST(the_lost_get_no_answer),
        TEST(a_question_with_data_is_a_question),
        TEST(what_others_said_is_forgotten_at_the_own_end),
        TEST(a_receive_ends_when_its_source_is_over),
        TEST(receives_that_another_may_serve_stay),
        TEST(what_nobody_waits_for_stays),
        TEST(one_of_several_may_still_be),
        TEST(of_all_that_are_awaited_those_end_that_must),
        TEST(a_receive_that_met_its_message_stays),
        TEST(a_send_that_is_not_received_ends),
        TEST(a_send_that_is_being_received_goes_on),
        TEST(a_send_that_is_being_cancelled_goes_on),
        TEST(a_probe_ends_unless_the_message_is_there),
        TEST(nothing_is_doubted_at_the_own_end),
        TEST(messages_of_collectives_end),
        TEST(who_has_left_is_found_out),
        TEST(an_end_before_the_last_barrier_is_a_death),
        TEST(an_end_in_the_last_barrier_is_no_news),
        TEST(it_is_a_death_if_its_part_is_missing),
        TEST(it_is_a_death_if_others_left_without_their_part),
        TEST(an_end_in_the_last_barrier_is_a_death_for_those_that_go_on),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
