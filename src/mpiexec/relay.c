/* relay.c - see relay.h. */
#include "mpiexec/relay.h"
#include "mpiexec/input.h"
#include "mpiexec/tree.h"
#include "mpiexec/wire.h"

#include <stdlib.h>

static struct {
    struct job *job;
    size_t out;                    /* daemon: bytes of output under way */
    struct reader {                /* root: by node */
        size_t owed;               /* bytes of output not acknowledged */
        const struct stream *held; /* for this one's sink is full */
        size_t in;                 /* bytes of input under way */
        bool reads;                /* has a rank that reads standard input */
        bool told_broken;
    } * nodes;
} self;

/* --- output ------------------------------------------------------------------------------------------------------ */

void relay_output(const struct stream *st, const char *data, size_t n)
{
    struct wire_out w = {0};
    wire_put32(&w, (uint32_t)st->rank);
    wire_put8(&w, st == &self.job->ranks[st->rank].err);
    wire_put_raw(&w, data, n);
    tree_send(TREE_ROOT, TREE_OUTPUT, w.bytes, w.n);
    wire_free(&w);
    self.out += n;
}

bool relay_output_full(void) { return self.out >= RELAY_WINDOW; }

static void acknowledge(int node)
{
    struct reader *r = &self.nodes[node];
    bool broken = output_broken() && !r->told_broken;
    if (r->held && output_is_full(r->held)) return;
    r->held = NULL;
    if (r->owed < RELAY_WINDOW / 4 && !broken) return;
    struct wire_out w = {0};
    wire_put32(&w, (uint32_t)r->owed);
    wire_put8(&w, broken);
    tree_send(node, TREE_OUTPUT_ACK, w.bytes, w.n);
    wire_free(&w);
    r->owed = 0;
    r->told_broken |= broken;
}

static bool take_output(int from, const void *bytes, size_t n)
{
    struct wire_in w = wire_of(bytes, n);
    uint32_t rank = wire_get32(&w);
    bool err = wire_get8(&w);
    if (w.bad || from < 0 || rank >= (uint32_t)self.job->size || self.job->ranks[rank].node != from) return false;
    struct stream *st = err ? &self.job->ranks[rank].err : &self.job->ranks[rank].out;
    self.nodes[from].owed += wire_left(&w);
    output_take(st, (const char *)w.at, wire_left(&w));
    if (output_is_full(st)) self.nodes[from].held = st;
    acknowledge(from);
    return true;
}

void relay_resume(void)
{
    if (!self.nodes) return;
    for (int i = 0; i < self.job->nnodes; i++)
        if (i != self.job->node) acknowledge(i);
}

static bool take_output_ack(int from, const void *bytes, size_t n)
{
    struct wire_in w = wire_of(bytes, n);
    uint32_t taken = wire_get32(&w);
    bool broken = wire_get8(&w);
    if (!wire_done(&w) || from != TREE_ROOT || taken > self.out) return false;
    self.out -= taken;
    if (broken) output_break();
    if (!relay_output_full()) output_resume();
    return true;
}

/* --- input ------------------------------------------------------------------------------------------------------- */

static bool reads(const struct rank *r)
{
    const struct in_spec *in = &self.job->spec->in;
    return in->kind == IN_ALL || (in->kind == IN_RANK && in->rank == r->rank);
}

bool relay_has_readers(void)
{
    for (int i = 0; self.nodes && i < self.job->nnodes; i++)
        if (self.nodes[i].reads) return true;
    return false;
}

bool relay_input_full(void)
{
    for (int i = 0; self.nodes && i < self.job->nnodes; i++)
        if (self.nodes[i].reads && self.nodes[i].in >= RELAY_WINDOW) return true;
    return false;
}

void relay_input(const char *data, size_t n)
{
    for (int i = 0; self.nodes && i < self.job->nnodes; i++) {
        if (!self.nodes[i].reads) continue;
        self.nodes[i].in += n;
        tree_send(i, TREE_INPUT, data, n);
    }
}

void relay_input_taken(size_t n, bool gone)
{
    struct wire_out w = {0};
    wire_put32(&w, (uint32_t)n);
    wire_put8(&w, gone);
    tree_send(TREE_ROOT, TREE_INPUT_ACK, w.bytes, w.n);
    wire_free(&w);
}

static bool take_input(int from, const void *bytes, size_t n)
{
    if (from != TREE_ROOT) return false;
    input_take(bytes, n);
    return true;
}

static bool take_input_ack(int from, const void *bytes, size_t n)
{
    struct wire_in w = wire_of(bytes, n);
    uint32_t taken = wire_get32(&w);
    bool gone = wire_get8(&w);
    if (!wire_done(&w) || from < 0 || taken > self.nodes[from].in) return false;
    self.nodes[from].in -= taken;
    if (gone) self.nodes[from].reads = false;
    input_resume();
    return true;
}

/* --- start ------------------------------------------------------------------------------------------------------- */

void relay_open(struct job *j)
{
    self.job = j;
    if (!j->root) {
        tree_handlers[TREE_OUTPUT_ACK] = take_output_ack;
        tree_handlers[TREE_INPUT] = take_input;
        return;
    }
    tree_handlers[TREE_OUTPUT] = take_output;
    tree_handlers[TREE_INPUT_ACK] = take_input_ack;
    if (j->nnodes == 1 && j->node != NODE_NONE) return;
    self.nodes = xcalloc((size_t)j->nnodes, sizeof *self.nodes);
    for (int r = 0; r < j->size; r++)
        if (j->ranks[r].node != j->node) self.nodes[j->ranks[r].node].reads |= reads(&j->ranks[r]);
}
