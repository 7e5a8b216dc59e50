/* comm_test.c - communicators as objects: world and self, contexts, hooks that fail, references, the list of all. */
#include "obj/comm.h"
#include "base/err.h"
#include "obj/group.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

static int made_count[3], gone_count[3], failing = -1;

static int made(int layer)
{
    if (layer == failing) return err_set(TERN_ERR_NOMEM, "layer %d fails", layer);
    made_count[layer]++;
    return 0;
}
static int made0(struct comm *c) { return c ? made(0) : -1; }
static int made1(struct comm *c) { return c ? made(1) : -1; }
static int made2(struct comm *c) { return c ? made(2) : -1; }
static void gone0(struct comm *c) { gone_count[0] += c != NULL; }
static void gone1(struct comm *c) { gone_count[1] += c != NULL; }
static void gone2(struct comm *c) { gone_count[2] += c != NULL; }
static const struct comm_hooks hooks[3] = {{made0, gone0}, {made1, gone1}, {made2, gone2}};

static int open_comms(void **state)
{
    (void)state;
    memset(made_count, 0, sizeof made_count);
    memset(gone_count, 0, sizeof gone_count);
    failing = -1;
    errh_open();
    group_open(2);
    for (int i = 0; i < 3; i++) comm_set_hooks(i, &hooks[i]);
    int rc = comm_open(2);
    return rc ? rc : comm_world_open(5);
}

static int close_comms(void **state)
{
    (void)state;
    comm_close();
    for (int i = 0; i < 3; i++) comm_set_hooks(i, NULL);
    group_close();
    handle_close();
    return 0;
}

static int live(void)
{
    int n = 0;
    list_each(l, next, comm_all()) n++;
    return n;
}

static void world_and_self(void **state)
{
    (void)state;
    struct comm *w = comm_of(MPI_COMM_WORLD), *s = comm_of(MPI_COMM_SELF);
    assert_ptr_equal(w, comm_world());
    assert_ptr_equal(s, comm_self());
    assert_ptr_equal(comm_handle(w), MPI_COMM_WORLD);
    assert_ptr_equal(comm_handle(s), MPI_COMM_SELF);
    assert_int_equal(w->rank, 2);
    assert_int_equal(w->size, 5);
    assert_int_equal(s->rank, 0);
    assert_int_equal(s->size, 1);
    assert_int_equal(comm_index(w, 4), 4);
    assert_int_equal(comm_index(s, 0), 2);
    assert_string_equal(w->name, "MPI_COMM_WORLD");
    assert_string_equal(s->name, "MPI_COMM_SELF");
    assert_int_equal(live(), 2);
    assert_null(comm_of(MPI_COMM_NULL));
}

/* Contexts of one process never repeat, nor meet those of world, self or other leaders; the low bit is the collective's. */
static void contexts_differ(void **state)
{
    enum { N = 5000 };
    static uint64_t ctx[N];
    (void)state;
    for (int i = 0; i < N; i++) {
        ctx[i] = comm_fresh_ctx();
        assert_int_equal(ctx[i] & CTX_COLL, 0);
        assert_int_equal(ctx[i] >> 28, 2);
        assert_false(comm_ctx_is_wide(ctx[i]));
        assert_true(ctx[i] != comm_world()->ctx && ctx[i] != comm_self()->ctx);
        if (i) assert_true(ctx[i] > ctx[i - 1]);
    }
    assert_true(comm_world()->ctx != comm_self()->ctx);
    uint64_t wide = comm_fresh_wide_ctx();
    assert_true(comm_ctx_is_wide(wide) && comm_fresh_wide_ctx() != wide && !(wide & CTX_COLL));
    assert_false(comm_ctx_is_wide(comm_fresh_ctx_of(comm_world()))); /* all of one job */
}

static void last_reference_frees(void **state)
{
    struct comm *c = NULL;
    (void)state;
    assert_int_equal(comm_new(comm_fresh_ctx(), rankmap_line(3, 1, 1), NULL, comm_world(), &c), 0);
    assert_int_equal(c->rank, 1);
    assert_int_equal(c->size, 3);
    assert_false(c->inter);
    assert_ptr_equal(comm_of(comm_handle(c)), c);
    assert_int_equal(live(), 3);
    comm_ref(c);
    comm_unref(c);
    assert_int_equal(live(), 3);
    MPI_Comm h = comm_handle(c);
    comm_unref(c);
    assert_null(comm_of(h));
    assert_int_equal(live(), 2);
    for (int i = 0; i < 3; i++) assert_int_equal(gone_count[i], 1);
}

static void remote_group(void **state)
{
    struct comm *c = NULL;
    (void)state;
    assert_int_equal(comm_new(comm_fresh_ctx(), rankmap_line(2, 1, 1), rankmap_line(3, 10, 5), comm_world(), &c), 0);
    assert_true(c->inter);
    assert_int_equal(c->size, 2);
    assert_int_equal(c->rank, 1);
    assert_int_equal(comm_peers(c), 3);
    assert_int_equal(comm_index(c, 2), 20);
    comm_unref(c);
}

/* A layer that cannot undoes the making of those before it, and nothing is left. */
static void failing_layer_undoes_the_making(void **state)
{
    (void)state;
    for (failing = 0; failing < 3; failing++) {
        struct comm *c = NULL;
        memset(made_count, 0, sizeof made_count);
        memset(gone_count, 0, sizeof gone_count);
        assert_int_equal(comm_new(comm_fresh_ctx(), rankmap_line(3, 1, 1), NULL, comm_world(), &c), TERN_ERR_NOMEM);
        assert_null(c);
        assert_int_equal(live(), 2);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(made_count[i], i < failing);
            assert_int_equal(gone_count[i], i < failing);
        }
    }
    failing = -1;
    struct comm *c = NULL;
    assert_int_equal(comm_new(comm_fresh_ctx(), NULL, NULL, NULL, &c), TERN_ERR_NOMEM); /* a map that could not be made */
    assert_null(c);
}

/* In two steps: no layer and no user sees it before it has its context. */
static void reserved_is_no_communicator(void **state)
{
    struct comm *c = NULL;
    (void)state;
    memset(made_count, 0, sizeof made_count);
    memset(gone_count, 0, sizeof gone_count);
    assert_int_equal(comm_reserve(rankmap_line(3, 1, 1), NULL, comm_world(), &c), 0);
    assert_null(comm_of(comm_handle(c)));
    assert_int_equal(live(), 2);
    comm_discard(c);
    for (int i = 0; i < 3; i++) assert_int_equal(made_count[i] + gone_count[i], 0);
    assert_int_equal(comm_reserve(rankmap_line(3, 1, 1), NULL, comm_world(), &c), 0);
    uint64_t ctx = comm_fresh_ctx();
    assert_int_equal(comm_found(c, ctx), 0);
    assert_ptr_equal(comm_of(comm_handle(c)), c);
    assert_int_equal(c->ctx, ctx);
    assert_int_equal(live(), 3);
    for (int i = 0; i < 3; i++) assert_int_equal(made_count[i], 1);
    comm_unref(c);
}

static void what_is_left_goes_at_the_end(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        struct comm *c = NULL;
        assert_int_equal(comm_new(comm_fresh_ctx(), rankmap_line(5, 0, 1), NULL, comm_world(), &c), 0);
        comm_ref(c);
    }
    comm_close();
    assert_int_equal(live(), 0);
    assert_int_equal(gone_count[0], 12);
    assert_int_equal(gone_count[2], 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(world_and_self, open_comms, close_comms),
        cmocka_unit_test_setup_teardown(contexts_differ, open_comms, close_comms),
        cmocka_unit_test_setup_teardown(last_reference_frees, open_comms, close_comms),
        cmocka_unit_test_setup_teardown(remote_group, open_comms, close_comms),
        cmocka_unit_test_setup_teardown(failing_layer_undoes_the_making, open_comms, close_comms),
        cmocka_unit_test_setup_teardown(reserved_is_no_communicator, open_comms, close_comms),
        cmocka_unit_test_setup_teardown(what_is_left_goes_at_the_end, open_comms, close_comms),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
