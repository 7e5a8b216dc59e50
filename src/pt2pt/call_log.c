/* call_log.c - see call_log.h. */
#include "pt2pt/call_log.h"
#include "base/err.h"
#include "base/lock.h"
#include "proc/jobs.h"
#include "proc/proc.h"
#include "pt2pt/dispatch.h"
#include "pt2pt/doubt.h"
#include "pt2pt/early.h"
#include "pt2pt/lost.h"
#include "pt2pt/protocol.h"
#include "pt2pt/say.h"

#include <stdio.h>
#include <string.h>

void (*pt_call_words)(uint64_t what, int64_t bytes, char *text, size_t n);
int64_t (*pt_call_bytes)(uint64_t what, int64_t bytes);

/* ---- what has been called here ---- */

/* Call k, if it is still kept: entries are replaced without a lock. */
static bool read_call(struct pt_call_log *s, uint32_t k, struct wire_call *out)
{
    const struct pt_call *c = &s->call[k % CALL_LOG_KEPT], *before = &s->call[(k - 1) % CALL_LOG_KEPT];
    out->what = atomic_load_explicit(&c->what, memory_order_acquire);
    out->history = atomic_load_explicit(&c->history, memory_order_acquire);
    out->bytes = pt_call_bytes(out->what, atomic_load_explicit(&c->bytes, memory_order_acquire));
    out->before = k > 1 ? atomic_load_explicit(&before->history, memory_order_acquire) : 0;
    uint32_t count = atomic_load_explicit(&s->count, memory_order_acquire);
    return k > 0 && k <= count && count - k < CALL_LOG_KEPT - 2;
}

int pt_call_log_failed(const struct comm *c)
{
    int error = atomic_load_explicit(&c->call_log->error, memory_order_acquire); /* pairs with finish: the words are there */
    return error ? err_set(error, "%s", c->call_log->words) : 0;
}

/* ---- the end of a communicator's collectives ---- */

static void send_clash(struct lane *l, uint64_t ctx, const struct pt_clash *k, struct peer *p)
{
    struct wire_clash out = {{k->what[0], k->what[1]}, {k->bytes[0], k->bytes[1]}};
    lane_say(l, p, AM_CLASH, ctx, (uint64_t)k->rank[0] << 32 | k->rank[1], &out, sizeof out);
}

/* The one that asked, and the members that there is a connection to. The others find out when they wait. */
static void tell_all(const struct comm *c, struct peer *from)
{
    send_clash(c->lane, c->ctx, &c->call_log->clash, from);
    for (int r = 0; r < comm_peers(c); r++) {
        uint32_t index = comm_index(c, r);
        struct peer *p = peer_known(index);
        if (p && p != from && !p->lost && peer_is_connected(p) && index != proc_self()->rank)
            send_clash(c->lane, c->ctx, &c->call_log->clash, p);
    }
}

static void finish(struct comm *c, int error)
{
    atomic_store_explicit(&c->call_log->error, error, memory_order_release); /* pairs with pt_call_log_failed */
    atomic_store_explicit(&c->collective, false, memory_order_relaxed);
    step_tell(&c->lane->over);
    lane_changed(c->lane);
}

void pt_call_log_give_up(struct comm *c, int error)
{
    if (atomic_load_explicit(&c->call_log->error, memory_order_relaxed)) return;
    snprintf(c->call_log->words, sizeof c->call_log->words, "%s", err_words());
    finish(c, error);
}

/* `from` says so, or has called one of the two. */
static void clash(struct comm *c, struct peer *from, const struct pt_clash *k)
{
    struct pt_call_log *s = c->call_log;
    char a[80], b[80];
    const char *name = comm_name(c);
    if (atomic_load_explicit(&s->error, memory_order_relaxed)) return;
    s->clash = *k;
    pt_call_words(k->what[0], k->bytes[0], a, sizeof a);
    pt_call_words(k->what[1], k->bytes[1], b, sizeof b);
    snprintf(s->words, sizeof s->words,
             "the ranks do not call the same collectives in the same order on '%.60s': rank %u of the job has called %s "
             "where rank %u has called %s. No collective can be done on it any more",
             *name ? name : "a communicator", k->rank[0], a, k->rank[1], b);
    finish(c, TERN_ERR_DISAGREE);
    tell_all(c, from);
}

static int end_comm(struct pt_comm *pt)
{
    struct pt_call_log *s = pt->comm ? __atomic_load_n(&pt->comm->call_log, __ATOMIC_ACQUIRE) : NULL;
    int error = s ? atomic_load_explicit(&s->error, memory_order_relaxed) : 0;
    if (!error || s->ended) return 0;
    s->ended = true;
    err_set(error, "%s", s->words);
    pt_end_collectives(pt, error);
    return 1;
}

/* Ends the messages of collectives that are over. */
static int end_messages(struct step *s)
{
    struct lane *l = lane_of_step(s);
    list_each(a, next, &l->contexts)
    {
        if (!end_comm(container_of(a, struct pt_comm, in_lane))) continue;
        step_tell(s); /* the list may have changed; the others come in the next turn */
        return 1;
    }
    return 0;
}

/* Something has been posted, or has come, behind the end. */
static void end_again(struct comm *c)
{
    c->call_log->ended = false;
    step_tell(&c->lane->over);
}

static const struct step_ops over_ops = {.name = "collectives that are over", .poll = end_messages};

void call_log_open(struct lane *l)
{
    l->over = (struct step){.ops = &over_ops};
    step_add(&l->steps, &l->over);
}

/* ---- asking ---- */

static void send_call(const struct comm *c, struct peer *p, uint32_t k, const struct wire_call *mine)
{
    lane_say(c->lane, p, AM_CALL, c->ctx, k, mine, sizeof *mine);
}

void pt_call_log_ask(struct comm *c, int rank)
{
    struct pt_call_log *s = c->call_log;
    struct wire_call mine;
    uint32_t index = comm_index(c, rank), k;
    struct peer *p = peer_known(index);
    if (s && atomic_load_explicit(&s->error, memory_order_relaxed)) end_again(c); /* posted by a run that was between two of its receives */
    if (!s || !p || p->lost || !peer_is_connected(p) || index == proc_self()->rank) return;
    k = atomic_load_explicit(&s->count, memory_order_relaxed);
    if (read_call(s, k, &mine)) send_call(c, p, k, &mine);
}

void pt_call_log_doubt(struct comm *c, int rank)
{
    struct peer *p = pt_gone_by(c->lane, comm_index(c, rank));
    struct request r = {.kind = REQ_RECV, .ctx = c->ctx | CTX_COLL, .tag = MPI_ANY_TAG};
    if (!p) {
        pt_call_log_ask(c, rank);
    } else if (pt_is_final(p)) {
        pt_call_log_give_up(c, pt_lost_words(&r, p));
    }
}

/* ---- communicators that are gone here ---- */

/* A rank that does not take part frees the communicator, while others wait for it. */
static struct gone {
    uint64_t ctx;
    uint32_t count;
    bool clashed; /* as `clash` says */
    struct pt_clash clash;
    struct wire_call last;
} gone[32];
static uint32_t gone_next;
static struct lock gone_lock; /* a leaf lock, of both: communicators may be in different lanes */

void pt_call_log_gone(const struct comm *c)
{
    struct gone g = {
        .ctx = c->ctx, .count = atomic_load_explicit(&c->call_log->count, memory_order_relaxed), .clash = c->call_log->clash};
    g.clashed = atomic_load_explicit(&c->call_log->error, memory_order_relaxed) == TERN_ERR_DISAGREE;
    if (!read_call(c->call_log, g.count, &g.last)) return;
    lock_take(&gone_lock);
    gone[gone_next++ % ARRAY_LEN(gone)] = g;
    lock_give(&gone_lock);
}

/* The one with this context; false: it is not known any more. */
static bool find_gone(uint64_t ctx, struct gone *found)
{
    const struct gone *g = gone;
    lock_take(&gone_lock);
    while (g < gone + ARRAY_LEN(gone) && g->ctx != ctx) g++;
    bool is_known = g < gone + ARRAY_LEN(gone);
    if (is_known) *found = *g;
    lock_give(&gone_lock);
    return is_known;
}

static bool is_same(const struct wire_call *a, const struct wire_call *b)
{
    return a->history == b->history && (a->bytes == b->bytes || a->bytes < 0 || b->bytes < 0);
}

/* Its call k on a communicator that is not here: tells it if that was freed before that call, or behind another one.
 * What has come for it since is dropped, so that its sender does not wait for that. */
static void answer_gone(struct lane *l, struct peer *from, uint64_t ctx, uint32_t k, const struct wire_call *theirs)
{
    struct gone g;
    if (!find_gone(ctx, &g) || (!g.clashed && (k < g.count || (k == g.count && is_same(&g.last, theirs))))) return;
    struct pt_clash found = {{proc_self()->rank, jobs_rank_of(from->index)}, {0, theirs->what}, {-1, theirs->bytes}};
    if (k == g.count) found.what[0] = g.last.what, found.bytes[0] = g.last.bytes;
    send_clash(l, ctx, g.clashed ? &g.clash : &found, from);
    early_swallow(l, ctx);
}

/* ---- being asked ---- */

/* The communicator that a member speaks of, if it is known here and collectives have been called on it. */
static struct comm *comm_of_word(const struct pt_comm *pt, struct peer *from, size_t n, size_t size)
{
    if (n != size) {
        pt_violation(from, "a word about a collective of %zu bytes", n);
        return NULL;
    }
    struct comm *c = pt ? pt->comm : NULL;
    /* acquire: the thread that calls the first collective sets it, without the lane */
    return c && __atomic_load_n(&c->call_log, __ATOMIC_ACQUIRE) && rankmap_find(c->map, from->index) >= 0 ? c : NULL;
}

/* Call k differs, or an earlier one, which is looked for if it is still known. */
static void differs(struct comm *c, struct peer *from, uint32_t k, const struct wire_call *mine,
                    const struct wire_call *theirs)
{
    struct wire_call earlier;
    if (mine->before != theirs->before && read_call(c->call_log, k - 1, &earlier)) {
        send_call(c, from, k - 1, &earlier);
        return;
    }
    clash(
        c, from,
        &(struct pt_clash){{proc_self()->rank, jobs_rank_of(from->index)}, {mine->what, theirs->what}, {mine->bytes, theirs->bytes}});
}

static void on_call(struct lane *l, struct pt_comm *pt, struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    struct wire_call mine, theirs;
    uint32_t k = (uint32_t)h1;
    struct comm *c = comm_of_word(pt, from, n, sizeof theirs);
    if (n == sizeof theirs) memcpy(&theirs, data, sizeof theirs);
    if (!pt && n == sizeof theirs) answer_gone(l, from, h0, k, &theirs);
    if (!c) return;
    int error = atomic_load_explicit(&c->call_log->error, memory_order_relaxed);
    uint32_t count = atomic_load_explicit(&c->call_log->count, memory_order_acquire);
    if (error) {
        if (error == TERN_ERR_DISAGREE) send_clash(c->lane, c->ctx, &c->call_log->clash, from);
        end_again(c); /* what has come since then is dropped as well: the sender may wait for that */
    } else if (k > count) {
        if (read_call(c->call_log, count, &mine)) send_call(c, from, count, &mine);
    } else if (read_call(c->call_log, k, &mine)) {
        if (!is_same(&mine, &theirs)) differs(c, from, k, &mine, &theirs);
    }
}

static const struct pt_kind call = {AM_CALL, PT_ABOUT, on_call};

void pt_on_call(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    dispatch(&call, from, h0, h1, data, n);
}

static void on_clash(struct lane *l, struct pt_comm *pt, struct peer *from, uint64_t h0, uint64_t h1, const void *data,
                     size_t n)
{
    struct wire_clash in;
    (void)l, (void)h0;
    struct comm *c = comm_of_word(pt, from, n, sizeof in);
    if (!c) return;
    memcpy(&in, data, sizeof in);
    clash(
        c, from,
        &(struct pt_clash){{(uint32_t)(h1 >> 32), (uint32_t)h1}, {in.what[0], in.what[1]}, {in.bytes[0], in.bytes[1]}});
}

static const struct pt_kind clash_said = {AM_CLASH, PT_ABOUT, on_clash};

void pt_on_clash(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    dispatch(&clash_said, from, h0, h1, data, n);
}
