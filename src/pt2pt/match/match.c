/* match.c - the two sides of a matcher: one queue, with an index by source when deep. */
#include "pt2pt/match/match.h"
#include "base/err.h"
#include "base/var.h"
#include "pt2pt/match/groups.h"
#include "pt2pt/match/scan.h"

#include <stdlib.h>

/* Largest block kept by a side that has run empty: 1 MB. */
#define KEEP_CAP 65536

static unsigned group_bits = 6;

int match_open(void)
{
    int64_t groups = var_int(VAR_MATCH_GROUPS);
    if (groups < 1 || groups > MATCH_GROUPS_MAX || (groups & (groups - 1)))
        return err_set(TERN_ERR_ARG, "variable TERN_MATCH_GROUPS: %lld is not one of 1, 2, 4, 8, 16, 32, 64",
                       (long long)groups);
    group_bits = (unsigned)__builtin_ctzll((unsigned long long)groups);
    return match_scan_choose(var_text(VAR_MATCH_VECTOR));
}

void match_init(struct match *m)
{
    match_queue_init(&m->posted.all, m->posted_home);
    match_queue_init(&m->unexpected.all, m->unexpected_home);
    m->posted.groups = m->unexpected.groups = NULL;
}

static void side_fini(struct match_side *s)
{
    match_queue_fini(&s->all);
    match_groups_free(s->groups);
    s->groups = NULL;
}

void match_fini(struct match *m)
{
    side_fini(&m->posted);
    side_fini(&m->unexpected);
}

/* Indexes a side by groups if they shorten its searches. That is judged at lengths each twice the one before, once each
 * until the side runs empty. If memory is out it stays without, which is slower but right. */
static TERN_COLD void try_groups(struct match_side *s)
{
    uint32_t due = match_scan->group_from << s->all.judged; /* beyond MATCH_CAP_MAX before `judged` can overflow */
    if (s->all.tail < due || s->all.live < s->all.tail / 2 || !group_bits) return;
    s->all.judged++;
    if (!match_groups_pay(&s->all, group_bits)) return;
    if (!s->groups) s->groups = match_groups_new(group_bits);
    if (s->groups && match_queue_widen(&s->all)) s->all.grouped = match_groups_fill(s->groups, &s->all);
}

static TERN_COLD void leave_groups(struct match_side *s)
{
    match_groups_clear(s->groups);
    s->all.grouped = 0;
}

static bool side_push(struct match_side *s, int src, int tag, void *what)
{
    uint64_t key = match_key(src, tag);
    uint32_t length = s->all.tail;
    if (unlikely(length >= match_scan->group_from && !(length & (length - 1)) && !s->all.grouped)) try_groups(s);
    if (unlikely(!match_queue_push(&s->all, key, what))) return false;
    if (likely(!s->all.grouped)) return true;
    match_queue_order(&s->all)[s->all.tail - 1] = s->groups->next;
    if (!match_groups_push(s->groups, key)) leave_groups(s);
    return true;
}

/* A side that was deep has run empty: it is one queue again, and a large block is given back. */
static TERN_COLD void side_empty(struct match_side *s, uint64_t *home)
{
    if (s->all.grouped) leave_groups(s);
    s->all.judged = 0;
    if (s->all.cap <= KEEP_CAP) return;
    match_queue_fini(&s->all);
    match_queue_init(&s->all, home);
}

static void *side_remove(struct match_side *s, uint64_t *home, uint32_t at)
{
    if (unlikely(s->all.grouped)) match_groups_remove(s->groups, s->all.keys[at], match_queue_order(&s->all)[at]);
    void *what = match_queue_remove(&s->all, at);
    if (!s->all.live && unlikely(s->all.judged || s->all.cap > KEEP_CAP)) side_empty(s, home);
    return what;
}

int match_store(struct match *m, int src, int tag, void *body)
{
    if (likely(side_push(&m->unexpected, src, tag, body))) return 0;
    return err_set(TERN_ERR_NOMEM,
                   "no memory to queue one more unexpected message beside %u; "
                   "post receives earlier or have senders wait",
                   m->unexpected.all.live);
}

int match_post(struct match *m, int src, int tag, void *req)
{
    if (likely(side_push(&m->posted, src, tag, req))) return 0;
    return err_set(TERN_ERR_NOMEM, "no memory to queue one more receive beside %u posted ones", m->posted.all.live);
}

static uint32_t at_order(const struct match_side *s, uint64_t order)
{
    return order == MATCH_NO_ORDER ? MATCH_NONE : match_queue_find_order(&s->all, order);
}

static uint32_t find_receive(const struct match_side *s, int src, int tag)
{
    if (unlikely(s->all.grouped)) return at_order(s, match_groups_find_receive(s->groups, src, tag));
    return match_queue_find_either(&s->all, match_key(src, tag), match_wild_key(tag));
}

static uint32_t find_message(const struct match_side *s, int src, int tag)
{
    if (unlikely(s->all.grouped) && src != MATCH_ANY_SOURCE)
        return at_order(s, match_groups_find_message(s->groups, src, tag));
    return match_queue_find_masked(&s->all, match_sought_key(src, tag), match_sought_mask(src, tag));
}

void *match_arrive_queued(struct match *m, int src, int tag)
{
    uint32_t at = find_receive(&m->posted, src, tag);
    return at == MATCH_NONE ? NULL : side_remove(&m->posted, m->posted_home, at);
}

void *match_take_queued(struct match *m, int src, int tag)
{
    uint32_t at = find_message(&m->unexpected, src, tag);
    return at == MATCH_NONE ? NULL : side_remove(&m->unexpected, m->unexpected_home, at);
}

void *match_peek_queued(const struct match *m, int src, int tag)
{
    uint32_t at = find_message(&m->unexpected, src, tag);
    return at == MATCH_NONE ? NULL : match_queue_whats(&m->unexpected.all)[at];
}

static bool side_drop(struct match_side *s, uint64_t *home, const void *what)
{
    uint32_t at = match_queue_find_what(&s->all, what);
    return at != MATCH_NONE && side_remove(s, home, at);
}

bool match_cancel(struct match *m, const void *req) { return side_drop(&m->posted, m->posted_home, req); }

bool match_withdraw(struct match *m, const void *body) { return side_drop(&m->unexpected, m->unexpected_home, body); }

typedef void visit_fn(void *what, int src, int tag, void *arg);

/* Single removals would close gaps in between, and so move what has not been looked at: gaps are closed once, at the end. */
static uint32_t side_take(struct match_side *s, uint64_t *home, const int *src, visit_fn *visit, void *arg)
{
    struct match_queue *q = &s->all;
    uint32_t n = 0;
    for (uint32_t i = q->head; i < q->tail; i++) {
        uint64_t key = q->keys[i];
        if (key == MATCH_HOLE || (src && match_key_src(key) != *src)) continue;
        if (q->grouped) match_groups_remove(s->groups, key, match_queue_order(q)[i]);
        visit(match_queue_whats(q)[i], match_key_src(key), match_key_tag(key), arg);
        q->keys[i] = MATCH_HOLE;
        match_queue_whats(q)[i] = NULL;
        n++;
    }
    q->live -= n;
    if (n) match_queue_close_gaps(q);
    if (n && !q->live && (q->judged || q->cap > KEEP_CAP)) side_empty(s, home);
    return n;
}

uint32_t match_take_posted(struct match *m, const int *src, visit_fn *visit, void *arg)
{
    return side_take(&m->posted, m->posted_home, src, visit, arg);
}

uint32_t match_take_unexpected(struct match *m, visit_fn *visit, void *arg)
{
    return side_take(&m->unexpected, m->unexpected_home, NULL, visit, arg);
}

void match_each(const struct match_side *s, void (*visit)(void *what, int src, int tag, void *arg), void *arg)
{
    const struct match_queue *q = &s->all;
    for (uint32_t i = q->head; i < q->tail; i++)
        if (q->keys[i] != MATCH_HOLE)
            visit(match_queue_whats(q)[i], match_key_src(q->keys[i]), match_key_tag(q->keys[i]), arg);
}
