/*
 * goal_dot.c - see goal_dot.h. Operations are boxes, a rank's in a frame; full lines lead to what waits for an end,
 * dashed ones to what waits for a start. A message is a dot named by its ranks and tag, to which its send leads and
 * from which its receive comes: so nobody has to look for the other side, and a message that has none is seen.
 */
#include "tool/goal_dot.h"

#include <stdio.h>
#include <stdlib.h>

static const char *color_of(unsigned type)
{
    static const char *const color[GOAL_OP_END] = {
        [GOAL_OP_SEND] = "lightblue", [GOAL_OP_RECV] = "lightcyan",  [GOAL_OP_COPY] = "lightyellow",
        [GOAL_OP_JOIN] = "lightgray", [GOAL_OP_STAMP] = "lightgray",
    };
    return color[type] ? color[type] : "palegreen"; /* arithmetic */
}

static bool box(int place, const struct goal_op *op)
{
    char *work = goal_print_op(op);
    if (!work) return false;
    printf("    r%d_%u [label=\"%u %s\", fillcolor=%s];\n", place, op->index, op->index, work, color_of(op->type));
    free(work);
    return true;
}

static void edges(int place, const struct goal_head *h, const struct goal_op *op)
{
    const uint32_t *to = goal_edges(op);
    for (unsigned k = 0; k < (unsigned)op->n_finish + op->n_start; k++)
        printf("    r%d_%u -> r%d_%u%s;\n", place, op->index, place, goal_op_at(h, to[k])->index,
               k < op->n_finish ? "" : " [style=dashed]");
}

static bool rank(const struct goal_texts *t, int i)
{
    const struct goal_head *h = &t->all[i].prog->head;
    const struct goal_op *op = goal_op_at(h, h->first_op);
    int place = goal_texts_place(t, i);
    printf("  subgraph cluster_%d {\n    label=\"rank %d of %d%s\";\n", place, h->rank, h->size,
           t->near == t->ranks ? ""
           : i < t->near       ? ", first group"
                               : ", second group");
    bool good = true;
    for (uint32_t k = 0; k < h->op_count && good; k++, op = goal_op_next(op)) {
        good = box(place, op);
        if (good) edges(place, h, op);
    }
    puts("  }");
    return good;
}

/* Where the peer of a program at that place is. */
static int place_of_peer(const struct goal_texts *t, int place, int peer)
{
    int own = t->ranks - t->near; /* of the second group, which names itself first */
    if (place < t->near) return peer;
    return peer < own ? t->near + peer : peer - own;
}

static void messages(const struct goal_texts *t, int i)
{
    const struct goal_head *h = &t->all[i].prog->head;
    const struct goal_op *op = goal_op_at(h, h->first_op);
    int me = goal_texts_place(t, i);
    for (uint32_t k = 0; k < h->op_count; k++, op = goal_op_next(op)) {
        int peer = place_of_peer(t, me, op->peer);
        if (op->type == GOAL_OP_SEND)
            printf("  r%d_%u -> m%d_%d_%u [color=blue, arrowhead=none];\n", me, op->index, me, peer, op->tag);
        if (op->type == GOAL_OP_RECV) printf("  m%d_%d_%u -> r%d_%u [color=blue];\n", peer, me, op->tag, me, op->index);
        if (op->type <= GOAL_OP_RECV)
            printf("  m%d_%d_%u [shape=point, color=blue];\n", op->type == GOAL_OP_SEND ? me : peer,
                   op->type == GOAL_OP_SEND ? peer : me, op->tag);
    }
}

bool goal_dot(const struct goal_texts *t)
{
    puts("digraph schedule {\n  node [shape=box, style=filled, fontsize=10];");
    for (int i = 0; i < t->n; i++)
        if (!rank(t, i)) return false;
    for (int i = 0; i < t->n; i++) messages(t, i);
    puts("}");
    return true;
}
