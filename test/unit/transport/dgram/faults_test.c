/* faults_test.c - rules of src/transport/dgram/faults.h. */
#include "net.h"
#include "circle.h"

#include "base/err.h"
#include "transport/dgram/faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

static void shim_words(void **state)
{
    static const char *const bad[] = {"loss",   "loss=",  "loss=101",  "loss=-1", "loss=1x",
                                      "lost=1", "types=", "types=dat", ",",       "seed=1,,loss=1"};
    struct dgram_wire *bare = net_open(0, CIRCLE_MTU), *w = bare;
    (void)state;
    for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(faults_wrap(&w, bad[i]), TERN_ERR_ARG);
        assert_non_null(strstr(err_words(), "TERN_DGRAM_FAULTS"));
        assert_ptr_equal(w, bare);
    }
    assert_int_equal(faults_wrap(&w, ""), 0);
    assert_ptr_equal(w, bare);
    assert_int_equal(faults_wrap(&w, "seed=1,loss=20,dup=20,reorder=20,corrupt=1,delay_us=100,types=data|ack"), 0);
    assert_ptr_not_equal(w, bare);
    w->ops->close(w);
}

/* The same seed, the same faults; and as many as were asked for. */
static struct faults_count shim_run(const char *words)
{
    struct dgram_wire *w = net_open(0, CIRCLE_MTU);
    assert_int_equal(faults_wrap(&w, words), 0);
    for (unsigned i = 0; i < 10000; i++) {
        memset(w->ops->room(w), 0, 100);
        w->ops->send(w, &(struct dgram_addr){1, {1}}, 100);
        w->ops->flush(w, net_now++);
    }
    struct faults_count c = faults_count(w);
    w->ops->close(w);
    return c;
}

static void shim_faults(void **state)
{
    (void)state;
    struct faults_count a = shim_run("seed=5,loss=20,dup=10,reorder=5,corrupt=1"),
                        b = shim_run("seed=5,loss=20,dup=10,reorder=5,corrupt=1"), c = shim_run("seed=6,loss=20");
    assert_memory_equal(&a, &b, sizeof a);
    assert_int_not_equal(a.lost, c.lost);
    assert_int_equal(a.sent, 10000);
    assert_in_range(a.lost, 1800, 2200);
    assert_in_range(a.doubled, 700, 900);
    assert_in_range(a.damaged, 50, 120);
    assert_in_range(a.reordered, 350, 550);
    assert_int_equal(shim_run("loss=100").lost, 10000);
    assert_int_equal(shim_run("loss=100,types=data").lost, 0); /* they are of no type */
    assert_int_equal(c.doubled + c.damaged + c.reordered, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CIRCLE_RULE(shim_words),
        CIRCLE_RULE(shim_faults),
    };
    circle_read_seed();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
