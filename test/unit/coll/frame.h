/* frame.h - what tests of the interpreter share: a frame of what they have built. */
#ifndef TERN_TEST_FRAME_H
#define TERN_TEST_FRAME_H

#include "coll/goal/build.h"
#include "coll/goal/exec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Closes the builder; the program goes with the frame. */
static inline struct goal_frame *frame_of(struct goal_build *b, const struct goal_port *port, void *ctx, void (*done)(struct goal_frame *))
{
    struct goal_prog *prog;
    assert_int_equal(goal_seal(b, &prog), 0);
    goal_build_close(b);
    assert_int_equal(goal_verify(&prog->head, prog->head.bytes), 0);
    struct goal_frame *f = goal_frame_new(prog, port);
    goal_unref(prog);
    f->ctx = ctx;
    f->done = done;
    return f;
}

#endif
