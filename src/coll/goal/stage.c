/* stage.c - programs of some ranks as parts of larger ones; see build.h. */
#include "coll/goal/build_in.h"

#include "base/err.h"
#include <stdlib.h>

void goal_stage_open(struct goal_build *b, const struct goal_stage *stage)
{
    b->staged = true;
    b->stage = *stage;
    b->stage_op = b->ops;
    b->stage_edge = b->edges;
}

goal_id goal_stage_close(struct goal_build *b, goal_id before)
{
    enum { HAS_BEFORE = 1, HAS_AFTER = 2 };
    size_t first = b->stage_op, n = b->ops - first;
    b->staged = false;
    char *has = calloc(n + 1, 1);
    if (!has) {
        goal_build_fail(b, err_set(TERN_ERR_NOMEM, "no memory to build a stage of %zu operations", n));
        return GOAL_NONE;
    }
    for (size_t i = b->stage_edge; i < b->edges; i++) {
        const struct edge *e = &b->edge[i];
        has[(size_t)e->to - first] |= HAS_BEFORE;
        if (!e->start) has[(size_t)e->from - first] |= HAS_AFTER;
    }
    goal_id end = goal_join(b);
    goal_after(b, end, before);
    for (size_t i = 0; i < n; i++) {
        if (!(has[i] & HAS_BEFORE)) goal_after(b, (goal_id)(first + i), before);
        if (!(has[i] & HAS_AFTER)) goal_after(b, end, (goal_id)(first + i));
    }
    free(has);
    return end;
}
