/* match.c - the two sides of a matcher: one queue while short, groups by source when deep. */
#include "pt2pt/match.h"
#include "base/err.h"
#include "base/var.h"
#include "pt2pt/match_groups.h"
#include "pt2pt/match_scan.h"

#include <stdlib.h>

/* A side is spread over groups, if that pays, when it needs room beyond so many entries. */
#define GROUP_FROM 256

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
    match_queue_init(&m->posted.all, m->posted_home, 2);
    match_queue_init(&m->unexpected.all, m->unexpected_home, 2);
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

/* Spreads a side over groups if they shorten its searches. If memory is out it stays as it is, which is slower but
 * right. */
static TERN_COLD void try_groups(struct match_side *s)
{
    uint32_t live = s->all.live;
    if (live <= GROUP_FROM / 2 || !group_bits || !match_groups_pay(&s->all, group_bits)) return;
    if (!s->groups) s->groups = match_groups_new(group_bits);
    if (!s->groups || !match_groups_fill(s->groups, &s->all)) return;
    match_queue_clear(&s->all);
    s->all.live = live;
    s->all.grouped = 1;
}

static bool side_push(struct match_side *s, int src, int tag, void *what)
{
    uint64_t key = match_key(src, tag);
    if (unlikely(s->all.tail == s->all.cap && s->all.cap >= GROUP_FROM && !s->all.grouped)) try_groups(s);
    if (likely(!s->all.grouped)) return match_queue_push(&s->all, key, what);
    if (!match_groups_push(s->groups, key, what)) return false;
    s->all.live++;
    return true;
}

/* The side has run empty: it is one queue again, and large blocks are given back. */
static TERN_COLD void side_empty(struct match_side *s, uint64_t *home)
{
    if (s->all.grouped) match_groups_clear(s->groups);
    s->all.grouped = 0;
    if (s->all.cap <= KEEP_CAP) return;
    match_queue_fini(&s->all);
    match_queue_init(&s->all, home, 2);
}

static void *side_remove(struct match_side *s, uint64_t *home, struct match_spot spot)
{
    void *what;
    if (likely(!s->all.grouped)) {
        what = match_queue_remove(&s->all, spot.at);
    } else {
        what = match_groups_remove(s->groups, spot);
        s->all.live--;
    }
    if (!s->all.live && unlikely(s->all.grouped || s->all.cap > KEEP_CAP)) side_empty(s, home);
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

static struct match_spot find_receive(struct match_side *s, int src, int tag)
{
    if (unlikely(s->all.grouped)) return match_groups_find_receive(s->groups, src, tag);
    return (struct match_spot){&s->all, match_queue_find_either(&s->all, match_key(src, tag), match_wild_key(tag))};
}

static struct match_spot find_message(struct match_side *s, int src, int tag)
{
    if (unlikely(s->all.grouped)) return match_groups_find_message(s->groups, src, tag);
    return (struct match_spot){
        &s->all, match_queue_find_masked(&s->all, match_sought_key(src, tag), match_sought_mask(src, tag))};
}

void *match_arrive_queued(struct match *m, int src, int tag)
{
    struct match_spot spot = find_receive(&m->posted, src, tag);
    return spot.at == MATCH_NONE ? NULL : side_remove(&m->posted, m->posted_home, spot);
}

void *match_take_queued(struct match *m, int src, int tag)
{
    struct match_spot spot = find_message(&m->unexpected, src, tag);
    return spot.at == MATCH_NONE ? NULL : side_remove(&m->unexpected, m->unexpected_home, spot);
}

void *match_peek_queued(struct match *m, int src, int tag)
{
    struct match_spot spot = find_message(&m->unexpected, src, tag);
    return spot.at == MATCH_NONE ? NULL : match_queue_whats(spot.queue)[spot.at];
}

static bool side_drop(struct match_side *s, uint64_t *home, const void *what, int src)
{
    struct match_queue *q = s->all.grouped ? match_groups_of(s->groups, src) : &s->all;
    struct match_spot spot = {q, match_queue_find_what(q, what)};
    return spot.at != MATCH_NONE && side_remove(s, home, spot);
}

bool match_cancel(struct match *m, const void *req, int src) { return side_drop(&m->posted, m->posted_home, req, src); }

bool match_withdraw(struct match *m, const void *body, int src)
{
    return side_drop(&m->unexpected, m->unexpected_home, body, src);
}

static void queue_each(const struct match_queue *q, void (*visit)(void *, int, int, void *), void *arg)
{
    for (uint32_t i = q->head; i < q->tail; i++)
        if (q->keys[i] != MATCH_HOLE)
            visit(match_queue_whats(q)[i], match_key_src(q->keys[i]), match_key_tag(q->keys[i]), arg);
}

void match_each(const struct match_side *s, void (*visit)(void *what, int src, int tag, void *arg), void *arg)
{
    queue_each(&s->all, visit, arg);
    if (!s->all.grouped) return;
    for (size_t i = 0; i < ARRAY_LEN(s->groups->queue); i++) queue_each(&s->groups->queue[i], visit, arg);
}
