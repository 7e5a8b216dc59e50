/*
 * schedule_compile.c - the end of the building of a user's schedule, and schedules that
 * come as a block or a text; what is checked of both.
 */
#include "coll/schedule.h"

#include "base/err.h"
#include "base/var.h"
#include "coll/goal/check.h"
#include "coll/coll.h"
#include "coll/goal/optimise.h"
#include <stdlib.h>
#include <string.h>

/* Offsets in user space shall count from the lowest address, not from the one named first. The program is not shared yet. */
static int rebase(struct schedule *s, struct goal_prog *prog)
{
    struct goal_head *h = &prog->head;
    if (h->slot_count <= GOAL_SLOT_USER) return 0;
    struct goal_range *r = (struct goal_range *)(uintptr_t)goal_ranges(h) + GOAL_SLOT_USER;
    struct schedule_place *place = schedule_place(s, GOAL_SLOT_USER);
    if (!place) return TERN_ERR_NOMEM;
    if (!r->flags) return 0;
    int64_t low = r->lo;
    const struct goal_op *op = goal_op_at(h, h->first_op);
    for (uint32_t i = 0; i < h->op_count; i++, op = goal_op_next(op))
        for (unsigned k = 0; k < (unsigned)op->n_in + op->n_out; k++)
            if (goal_piece_slot(&op->piece[k]) == GOAL_SLOT_USER) ((struct goal_op *)(uintptr_t)op)->piece[k].off -= low;
    char *lowest = (char *)((uintptr_t)s->anchor + (uintptr_t)low); /* whatever the user says is an address */
    *place = (struct schedule_place){lowest, r->hi - low, true};
    r->hi -= low;
    r->lo = 0;
    return 0;
}

/* The blocks of a group's ranks, one behind the other, and how long each is. A rank that has none gives 0 bytes. */
struct group {
    int n;
    int64_t *len;
    char *blocks;
};

/* Those of the ranks that `c` leads to: its own, or those of the other group. To be closed whether it succeeded or not. */
static int exchange(struct comm *c, const struct goal_head *own, struct group *g)
{
    struct type *byte = type_of(MPI_BYTE);
    int64_t n = own ? own->bytes : 0, sum = 0;
    *g = (struct group){comm_peers(c), calloc((size_t)comm_peers(c), sizeof *g->len), NULL};
    int rc = g->len ? coll_allgather(c, &n, sizeof n, byte, g->len, sizeof n, byte) : err_set(TERN_ERR_NOMEM, "no memory to check a schedule");
    if (rc) return rc;
    int64_t *off = malloc((size_t)g->n * sizeof *off);
    for (int r = 0; off && r < g->n; sum += g->len[r++]) off[r] = sum;
    g->blocks = off ? malloc((size_t)sum + 1) : NULL;
    if (g->blocks)
        rc = coll_run(c, &(struct coll_call){.kind = COLL_ALLGATHERV, .sendbuf = own ? (const void *)own : g->blocks, .scount = n,
                                             .stype = byte, .recvbuf = g->blocks, .rcounts = g->len, .rdispls = off, .rtype = byte});
    else rc = err_set(TERN_ERR_NOMEM, "no memory for %lld bytes of the other ranks' schedules", (long long)sum);
    free(off);
    return rc;
}

static void close_group(struct group *g)
{
    free(g->blocks);
    free(g->len);
}

/* Looks at each block of a group by itself. */
static int judge(const struct group *g, const char *whose, const struct goal_head *block[])
{
    int64_t at = 0;
    for (int r = 0; r < g->n; at += g->len[r++]) {
        block[r] = (const struct goal_head *)(g->blocks + at);
        if (!g->len[r]) return err_set(TERN_ERR_PROGRAM, "the part of rank %d%s of the schedule is wrong", r, whose);
        int rc = goal_verify(block[r], (size_t)g->len[r]);
        if (rc) return rc;
    }
    return 0;
}

/* All ranks do the same for all, and keep their own. */
static int coalesce(struct comm *c, const struct goal_head *const block[], struct goal_prog **own_p)
{
    struct goal_prog **all = calloc((size_t)c->size, sizeof *all);
    int rc = all ? goal_coalesce(c->size, block, GOAL_COALESCED_MAX, all) : err_set(TERN_ERR_NOMEM, "no memory to improve a schedule");
    for (int r = 0; !rc && r < c->size; r++)
        if (r != c->rank) goal_unref(all[r]);
    if (!rc) {
        goal_unref(*own_p);
        *own_p = all[c->rank];
    }
    free(all);
    return rc;
}

/* Looks at all blocks together: those of the own group, and behind them those of the other one, if there is one. */
static int judge_all(struct comm *c, const struct group group[2], struct goal_prog **own_p, bool merge)
{
    int n = group[0].n + group[1].n;
    const struct goal_head **block = calloc((size_t)n, sizeof *block);
    if (!block) return err_set(TERN_ERR_NOMEM, "no memory to check a schedule");
    int rc = judge(&group[0], c->inter ? " of the own group" : "", block);
    if (!rc) rc = judge(&group[1], " of the other group", block + group[0].n);
    if (!rc) rc = goal_check_all(n, group[0].n, block, NULL);
    if (!rc && merge && !c->inter) rc = coalesce(c, block, own_p);
    free(block);
    return rc;
}

/* Every rank looks at all, and finds the same. *own_p NULL: something is wrong with it already. */
static int look_at_all(struct comm *c, struct goal_prog **own_p, bool merge)
{
    struct group group[2] = {{0, NULL, NULL}, {0, NULL, NULL}};
    const struct goal_head *own = *own_p ? &(*own_p)->head : NULL;
    int rc = exchange(c->inter ? c->within : c, own, &group[0]);
    if (!rc && c->inter) rc = exchange(c, own, &group[1]);
    if (!rc) rc = judge_all(c, group, own_p, merge);
    close_group(&group[0]);
    close_group(&group[1]);
    return rc;
}

/* The last words, kept from those of what follows. */
static void copy_words(char *to, size_t room)
{
    strncpy(to, err_words(), room - 1);
    to[room - 1] = 0;
}

/* The last look at a program, which another one may replace; rc: what was wrong before. */
static int finish(struct schedule *s, struct goal_prog **prog_p, int rc)
{
    char words[200];
    struct goal_prog *none = NULL, *better;
    bool merge = !strcmp(var_text(VAR_GOAL_OPTIMISE), "all");
    if (!rc) rc = goal_verify(&(*prog_p)->head, (*prog_p)->head.bytes);
    if (!rc) rc = goal_check_tags(&(*prog_p)->head, NULL);
    if (merge || strcmp(var_text(VAR_GOAL_CHECK), "off")) {
        copy_words(words, sizeof words);
        int all = look_at_all(s->comm, rc ? &none : prog_p, merge);
        rc = rc ? err_set(rc, "%s", words) : all; /* what is wrong here is told here */
    }
    if (rc || !strcmp(var_text(VAR_GOAL_OPTIMISE), "off")) return rc;
    rc = goal_optimise(&(*prog_p)->head, GOAL_PASSES, &better);
    if (rc) return rc;
    goal_unref(*prog_p);
    *prog_p = better;
    return 0;
}

int schedule_compile(struct schedule *s)
{
    struct goal_prog *prog = NULL;
    int rc = schedule_building(s);
    if (rc) return rc;
    rc = goal_seal(s->build, &prog);
    if (!rc) rc = rebase(s, prog);
    rc = finish(s, &prog, rc);
    if (rc) {
        goal_unref(prog);
        return rc;
    }
    goal_build_close(s->build);
    s->build = NULL;
    s->prog = prog;
    return 0;
}

/* ---- from elsewhere ------------------------------------------------------------------ */

/* Can users give what the operation needs, and is its message one that they can have? */
static int usable_op(const struct comm *c, const struct goal_head *h, const struct goal_op *op)
{
    if (op->type == GOAL_OP_REDUCE || op->type == GOAL_OP_REDUCE3 || h->flags)
        return err_set(TERN_ERR_PROGRAM, "operation %u needs an operator of MPI, which only MPI's collectives have", op->index);
    if (c->inter && op->type <= GOAL_OP_RECV && op->peer < c->size)
        return err_set(TERN_ERR_PROGRAM, "operation %u names rank %d, which is of the own group; those of the other one are %d to %d",
                       op->index, op->peer, c->size, h->size - 1);
    return 0;
}

static int usable(const struct comm *c, const struct goal_head *h)
{
    const struct goal_op *op = goal_op_at(h, h->first_op);
    int size = schedule_ranks(c), rc = 0;
    if (h->rank != c->rank || h->size != size)
        return err_set(TERN_ERR_PROGRAM, "the schedule is for rank %d of %d, and this is rank %d of %d", h->rank, h->size, c->rank,
                       size);
    for (uint32_t i = 0; i < h->op_count && !rc; i++, op = goal_op_next(op)) rc = usable_op(c, h, op);
    return rc;
}

/* Makes a schedule of a program, which it takes, or of the failure rc to get one: the other ranks may wait for what this one
 * has. */
static int adopt(struct comm *c, struct goal_prog *prog, int rc, struct schedule **schedule_p)
{
    struct schedule *s;
    char words[200];
    copy_words(words, sizeof words);
    int made = schedule_new(c, &s);
    if (made) {
        goal_unref(prog);
        return made;
    }
    if (rc) err_set(rc, "%s", words);
    else rc = usable(c, &prog->head);
    rc = finish(s, &prog, rc);
    if (rc) {
        goal_unref(prog);
        schedule_drop(s);
        return rc;
    }
    s->prog = prog;
    s->scratch = prog->head.scratch;
    *schedule_p = s;
    return 0;
}

int schedule_import(struct comm *c, const void *block, size_t bytes, struct schedule **schedule_p)
{
    struct goal_prog *prog = NULL;
    void *copy = malloc(bytes + 1); /* the user's may lie at any address */
    if (!copy) return err_set(TERN_ERR_NOMEM, "no memory for a schedule of %zu bytes", bytes);
    memcpy(copy, block, bytes);
    int rc = goal_import(copy, bytes, &prog);
    free(copy);
    return adopt(c, prog, rc, schedule_p);
}

int schedule_parse(struct comm *c, const char *text, struct schedule **schedule_p)
{
    struct goal_prog *prog = NULL;
    int rc = goal_parse(text, &prog);
    return adopt(c, prog, rc, schedule_p);
}
