/*
 * pipe_step_test.c - what it takes to have progress look at something new: the lines up to the first test. A step reads
 * what others write into a pipe; no file but this one knows of it (doc/architecture.md).
 */
#include "../pt2pt/mock_job.h"

#include "base/clock.h"
#include "transport/progress.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct pipe_step {
    struct step step;
    _Atomic int bytes; /* that have come */
};

static int take(struct step *s)
{
    struct pipe_step *p = container_of(s, struct pipe_step, step);
    char bytes[64];
    ssize_t n = read(s->fd, bytes, sizeof bytes); /* never waits: pipe2 with O_NONBLOCK */
    if (n > 0) p->bytes += (int)n;
    return n > 0;
}

static const struct step_ops pipe_ops = {.name = "a pipe", .poll = take, .poll_ns = 300};

/* ---- the tests ---- */

static struct pipe_step reader;
static int ends[2];

static void open_pipe(void)
{
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    reader = (struct pipe_step){.step = {.ops = &pipe_ops, .fd = ends[0]}};
    assert_int_equal(pt_progress_open(&reader.step), 0);
}

static void close_pipe(void)
{
    pt_progress_close(&reader.step);
    close(ends[0]);
    close(ends[1]);
}

static bool is_complete(void *r) { return request_is_complete(r); }

static void *wait_for(void *r)
{
    lane_enter(lanes_first());
    lane_wait(lanes_first(), is_complete, r, NULL);
    lane_leave(lanes_first());
    return NULL;
}

static void await_sleeper(void)
{
    for (bool asleep = false; !asleep; usleep(100)) {
        lane_enter(lanes_first());
        asleep = waits.sleepers == 1;
        lane_leave(lanes_first());
    }
}

/* A thread that sleeps and is not woken gets up by itself after half a second. */
#define SOON_NS UINT64_C(250000000)

/* The thread waits for a message. What comes through the pipe meanwhile wakes it, and it sleeps again. */
static void a_thread_asleep_in_a_receive_reads_the_pipe(void **state)
{
    enum { ROUNDS = 10 };
    pthread_t t;
    int data = 17, room = 0;
    (void)state;
    setenv("TERN_SPIN", "never", 1);
    job_open_threaded();
    open_pipe();
    struct comm *c = comm_world();
    struct request *r = job_irecv(c, &room, sizeof room, 5);
    assert_int_equal(pthread_create(&t, NULL, wait_for, r), 0);
    uint64_t begin = clock_ns();
    for (int i = 1; i <= ROUNDS; i++) {
        await_sleeper();
        assert_int_equal(write(ends[1], "tern", 4), 4);
        while (reader.bytes < 4 * i) usleep(100);
    }
    assert_true(clock_ns() - begin < ROUNDS * SOON_NS);
    struct request *s = job_isend(c, &data, sizeof data, 5, PT_STANDARD);
    pthread_join(t, NULL);
    job_end(r, 0);
    job_end(s, 0);
    assert_int_equal(room, 17);
    close_pipe();
    job_close();
}

/* Turns of progress read it as often as a look pays; none does after it is closed. */
static void turns_read_the_pipe(void **state)
{
    (void)state;
    job_open(NULL);
    open_pipe();
    assert_int_equal(write(ends[1], "tern", 4), 4);
    lane_enter(lanes_first());
    for (int i = 0; i < 100 && !reader.bytes; i++) lane_progress(lanes_first());
    lane_leave(lanes_first());
    assert_int_equal(reader.bytes, 4);
    assert_int_equal(write(ends[1], "tern", 4), 4);
    pt_progress_close(&reader.step);
    lane_enter(lanes_first());
    for (int i = 0; i < 100; i++) lane_progress(lanes_first());
    lane_leave(lanes_first());
    assert_int_equal(reader.bytes, 4);
    close_pipe(); /* is closed already */
    job_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_thread_asleep_in_a_receive_reads_the_pipe, job_clean),
        cmocka_unit_test_teardown(turns_read_the_pipe, job_clean),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
