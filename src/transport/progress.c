/*
 * progress.c - sets of steps: turns, and what waits and ends ask them. Open steps are in progress_open.c.
 *
 * A callback may turn any step on or off, and may add and remove steps. So a walk keeps its place by a step of its own in
 * the list, which does nothing: other walks may find it there.
 */
#include "transport/progress.h"
#include "transport/wires.h"

struct progress progress_process = {.active = LIST_INIT(progress_process.active),
                                    .known = LIST_INIT(progress_process.known),
                                    .watched = LIST_INIT(progress_process.watched)};

static int poll_nothing(struct step *s)
{
    (void)s;
    return 0;
}

static const struct step_ops place_ops = {.name = "a place in a walk", .poll = poll_nothing};

static struct step *step_of(struct link *l) { return container_of(l, struct step, link); }
static struct step *known_of(struct link *l) { return container_of(l, struct step, known_link); }

void progress_init(struct progress *p)
{
    *p = (struct progress){.turning = false};
    list_init(&p->active);
    list_init(&p->known);
    list_init(&p->watched);
}

/* ---- in and out ---- */

void step_add(struct progress *p, struct step *s)
{
    if (s->known) return;
    s->known = true;
    s->of = p;
    list_push(&p->known, &s->known_link);
    if (s->word) list_push(&p->watched, &s->link);
}

void step_remove(struct step *s)
{
    step_off(s);
    if (!s->known) return;
    s->known = false;
    list_remove(&s->known_link);
    if (s->word) list_remove(&s->link);
}

static void leave_gates(struct step *s)
{
    for (int i = 0; i < 2 && s->gate[i]; i++) {
        gate_leave(s->gate[i], s->counted[i]);
        s->counted[i] = 0;
    }
}

void step_off(struct step *s)
{
    if (!s->on) return;
    s->on = false;
    list_remove(&s->link);
    leave_gates(s);
}

void step_tell(struct step *s)
{
    /* release: pairs with the acquire in hear_one, that of `news` with progress_hear */
    atomic_store_explicit(&s->told, 1, memory_order_release);
    atomic_fetch_add_explicit(&s->of->news, 1, memory_order_release);
}

bool step_waits(struct step *s)
{
    (void)s;
    return true;
}

bool step_is_off(const struct step *s) { return !s->on; }

/* ---- turns ---- */

/* A step is polled once a turn. Those that are turned on meanwhile are polled in the next one. */
static int poll_all(struct progress *p, bool only_without_idle)
{
    struct step place = {.ops = &place_ops};
    int n = 0;
    p->turn++;
    list_insert(&p->active, &place.link);
    while (place.link.next != &p->active) {
        struct step *s = step_of(place.link.next);
        list_remove(&place.link);
        list_insert(&s->link, &place.link);
        if (s->turn == p->turn || (only_without_idle && s->ops->idle)) continue;
        s->turn = p->turn;
        n += s->ops->poll(s);
    }
    list_remove(&place.link);
    return n;
}

int progress_run(struct progress *p)
{
    struct link *first = p->active.next;
    if (unlikely(p->turning || first == &p->active)) return 0;
    p->turning = true;
    int n = likely(first->next == &p->active) ? step_of(first)->ops->poll(step_of(first)) : poll_all(p, false);
    p->turning = false;
    return n;
}

/* acquire: pairs with the release of whoever told the step, or changed its word */
static int hear_one(struct step *s)
{
    bool told = atomic_exchange_explicit(&s->told, 0, memory_order_acquire);
    uint32_t now = s->word ? atomic_load_explicit(s->word, memory_order_acquire) : s->seen;
    if (!told && now == s->seen) return 0;
    s->seen = now;
    return s->ops->poll(s);
}

/* Calls `visit` for every known step until it says true. */
static bool each_known(struct progress *p, bool (*visit)(struct step *, void *), void *arg)
{
    struct step place = {.ops = &place_ops};
    bool over = false;
    list_insert(&p->known, &place.known_link);
    while (!over && place.known_link.next != &p->known) {
        struct step *s = known_of(place.known_link.next);
        list_remove(&place.known_link);
        list_insert(&s->known_link, &place.known_link);
        over = visit(s, arg);
    }
    list_remove(&place.known_link);
    return over;
}

/* And for those that are on, but not known. */
static bool each(struct progress *p, bool (*visit)(struct step *, void *), void *arg)
{
    struct step place = {.ops = &place_ops};
    bool over = each_known(p, visit, arg);
    list_insert(&p->active, &place.link);
    while (!over && place.link.next != &p->active) {
        struct step *s = step_of(place.link.next);
        list_remove(&place.link);
        list_insert(&s->link, &place.link);
        if (!s->known) over = visit(s, arg);
    }
    list_remove(&place.link);
    return over;
}

static bool hear_visited(struct step *s, void *n)
{
    *(int *)n += hear_one(s);
    return false;
}

int progress_hear(struct progress *p)
{
    int n = 0;
    atomic_exchange_explicit(&p->news, 0, memory_order_acquire); /* what is told from now on is heard in the next turn */
    each_known(p, hear_visited, &n);
    return n;
}

/* ---- waits ---- */

bool progress_still(const struct progress *p)
{
    if (progress_has_news(p)) return false;
    list_each(a, next, &p->active)
    {
        struct step *s = step_of(a);
        if (s->ops->idle && !s->ops->idle(s)) return false;
    }
    return true;
}

bool progress_idle(struct progress *p)
{
    int n = 0;
    if (!list_empty(&p->active) && !p->turning) {
        p->turning = true;
        n = poll_all(p, true);
        p->turning = false;
    }
    return !n && progress_still(p);
}

bool progress_waits(const struct progress *p)
{
    bool some = false;
    list_each(a, next, &p->active) some |= step_of(a)->ops->room;
    return some;
}

bool progress_follows(const struct progress *p)
{
    bool some = false;
    list_each(a, next, &p->active) some |= step_of(a)->ops->room || step_of(a)->ops->follows;
    return some;
}

bool progress_has_own(const struct progress *p)
{
    bool some = false;
    list_each(a, next, &p->active) some |= step_of(a)->ops->idle != NULL;
    return some;
}

void progress_sleep(struct progress *p, struct sleep_words *words)
{
    list_each(a, next, &p->active)
    {
        struct step *s = step_of(a);
        for (int i = 0; i < 2 && s->gate[i]; i++) s->counted[i] = gate_enter(s->gate[i], wires_bell(), s->counted[i], words);
    }
}

bool progress_is_counted(const struct progress *p)
{
    bool all = true;
    list_each(a, next, &p->active)
    {
        const struct step *s = step_of(a);
        for (int i = 0; i < 2 && s->gate[i]; i++) all &= s->counted[i] != 0;
    }
    return all;
}

void progress_wake(struct progress *p)
{
    list_each(a, next, &p->active) leave_gates(step_of(a));
}

bool progress_armed(struct progress *p)
{
    bool now = false;
    list_each(a, next, &p->active)
    {
        struct step *s = step_of(a);
        if (s->ops->armed) now |= s->ops->armed(s);
    }
    return now;
}

static bool doubt(struct step *s, void *none)
{
    (void)none;
    if (s->ops->doubt) s->ops->doubt(s);
    return false;
}

void progress_doubt(struct progress *p) { each(p, doubt, NULL); }

/* ---- ends ---- */

static bool is_held(struct step *s, void *none)
{
    (void)none;
    return s->ops->drained && !s->ops->drained(s);
}

bool progress_drained(struct progress *p) { return !each(p, is_held, NULL); }

static bool is_busy(struct step *s, void *peer) { return s->ops->busy_with && s->ops->busy_with(s, peer); }

bool progress_busy_with(struct progress *p, const struct peer *peer) { return each(p, is_busy, (void *)(uintptr_t)peer); }

static bool end_peer(struct step *s, void *peer)
{
    if (s->ops->peer_end) s->ops->peer_end(s, peer);
    return false;
}

void progress_peer_end(struct progress *p, struct peer *peer) { each(p, end_peer, peer); }
