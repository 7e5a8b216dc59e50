/* mail.c - see mail.h. */
#include "rma/mail.h"
#include "base/clock.h"
#include "base/err.h"
#include "pt2pt/lane.h"
#include "rma/apply.h"
#include "rma/op.h"
#include "transport/arena.h"
#include "transport/endpoint.h"
#include "transport/peer.h"

#include <mpi.h>
#include <sched.h>
#include <string.h>

enum mail_state { FREE, POSTED, TAKEN, DONE, REFUSED };

/* Letters in vain from which on the target is woken each time, as it may sleep. */
#define VAIN_WAKES 3

/* So long no letter is posted after the first one in vain, twice as long after the next, and so on; at most. To wait in vain takes 2 us
 * and perhaps a call of the system. */
#define AWAY_NS ((uint64_t)8000)
#define AWAY_MOST_NS ((uint64_t)1000000)

#define PIECES 64       /* puts in one call of the system */
#define BLOCK 512       /* bytes of elements that are changed at a time */

/* ---- the mail of a window ---- */

void mail_make(struct win *w, struct win_region *r)
{
    struct win_near *n = &w->near;
    struct win_memory *m = &n->mailbox;
    *m = (struct win_memory){.at = arena_alloc(mail_bytes(n->n), CACHE_LINE), .bytes = mail_bytes(n->n)};
    m->address = (uint64_t)(uintptr_t)m->at;
    if (m->at && !memory_show(m, true, r) && m->mem) {
        n->mail = (struct win_mail *)m->at;
        memset(n->mail, 0, mail_head_bytes(n->n));
        return;
    }
    *r = (struct win_region){0};
    memory_hide(m);
    if (m->at) arena_free(m->at);
}

void mail_take_away(struct win *w)
{
    if (!w->near.mail) return;
    memory_hide(&w->near.mailbox);
    arena_free(w->near.mail);
    w->near.mail = NULL;
}

void mail_find(struct win_target *t, const struct win_region *r)
{
    if (t->rank == t->win->comm->rank) t->mail = t->win->near.mail; /* nobody writes to himself, but to take back what others have (mail_forget) */
    else if (r->bytes >= mail_bytes(t->win->near.n) && !memory_open(t, r, &t->mailbox)) t->mail = (struct win_mail *)t->mailbox.at;
}

/* ---- an operation ---- */

/* The type of the elements; NULL: there is none, or they are not such. */
static const struct type *type_of_op(const struct mail_head *h)
{
    const struct type *t = h->type ? type_of((MPI_Datatype)(uintptr_t)h->type) : NULL;
    return t && t->predefined && t->committed && t->size > 0 ? t : NULL;
}

/* The elements, as they lie in memory; or bytes. */
static size_t bytes_of(const struct mail_head *h, const struct type *basic)
{
    return basic ? (size_t)h->count * (size_t)basic->extent : (size_t)h->count;
}

/* Its data and its result, one of which lies where the other does. */
static size_t data_of(const struct mail_head *h, size_t bytes) { return h->kind == WIN_COMPARE_AND_SWAP ? 2 * bytes : bytes; }

/* Elements at `at` by those in `data`, which gets what was there. */
static void change(const struct op *op, const struct type *basic, char *at, char *data, int64_t n)
{
    char before[BLOCK];
    int64_t most = BLOCK / basic->extent;
    for (int64_t now; n; n -= now) {
        now = min_int64(n, most);
        size_t bytes = (size_t)(now * basic->extent);
        apply_alone(op, basic, at, op->index == OP_NO_OP ? NULL : data, before, now);
        memcpy(data, before, bytes);
        at += bytes;
        data += bytes;
    }
}

static bool is_change(const struct mail_head *h, const struct type *basic)
{
    if (!basic || basic->extent > BLOCK) return false;
    if (h->kind == WIN_COMPARE_AND_SWAP) return h->count == 1 && apply_can_compare(basic);
    const struct op *op = op_name_of(h->op) ? op_by_index(h->op) : NULL;
    return op && op_valid(op, basic);
}

static void do_change(const struct mail_head *h, const struct type *basic, char *at, char *data)
{
    char before[BLOCK];
    if (h->kind == WIN_COMPARE_AND_SWAP) {
        swap_alone(basic, at, data, data + basic->size, before);
        memcpy(data, before, (size_t)basic->size);
    } else if (h->kind == WIN_ACCUMULATE) {
        apply_alone(op_by_index(h->op), basic, at, data, NULL, h->count);
    } else {
        change(op_by_index(h->op), basic, at, data, h->count);
    }
}

/* ---- the target ---- */

/* Where it is in this process; NULL: not in the window. */
static char *place(const struct win *w, uint64_t address, size_t n)
{
    uint64_t base = (uint64_t)(uintptr_t)w->base;
    if (w->given_up) return NULL;
    if (w->flavor == MPI_WIN_FLAVOR_DYNAMIC) return memory_of_own(w, address, n) ? (char *)(uintptr_t)address : NULL;
    bool inside = address >= base && address - base <= (uint64_t)w->bytes && n <= (uint64_t)w->bytes - (address - base);
    return inside ? (char *)(uintptr_t)address : NULL;
}

/* By a copy of the head, as a process that breaks the rules may change it meanwhile. Returns the bytes that it has in the letter;
 * 0: it is not to be done. */
static size_t serve_op(const struct win *w, char *op, size_t room)
{
    struct mail_head h;
    if (room < sizeof h) return 0;
    memcpy(&h, op, sizeof h);
    const struct type *basic = h.kind >= WIN_ACCUMULATE ? type_of_op(&h) : NULL;
    if (h.kind > WIN_COMPARE_AND_SWAP || (h.kind >= WIN_ACCUMULATE && !is_change(&h, basic))) return 0;
    size_t n = bytes_of(&h, basic), all = sizeof h + mail_padded(data_of(&h, n));
    char *data = op + sizeof h, *at = all <= room ? place(w, h.address, n) : NULL;
    if (!at) return 0;
    if (h.kind == WIN_PUT) memcpy(at, data, n);
    else if (h.kind == WIN_GET) memcpy(data, at, n);
    else do_change(&h, basic, at, data);
    return all;
}

static bool serve_ops(const struct win *w, struct win_letter *l, size_t room)
{
    size_t bytes = l->bytes;
    if (bytes > room) return false;
    for (size_t done = 0, n; done < bytes; done += n) {
        n = serve_op(w, l->ops + done, bytes - done);
        if (!n) return false;
    }
    return true;
}

static void serve(const struct win *w, struct win_letter *l, size_t room)
{
    uint32_t posted = POSTED;
    if (atomic_load_explicit(&l->state, memory_order_relaxed) != POSTED) return;
    /* acquire: the operations are there */
    if (!atomic_compare_exchange_strong_explicit(&l->state, &posted, TAKEN, memory_order_acquire, memory_order_relaxed)) return;
    bool done = serve_ops(w, l, room);
    atomic_store_explicit(&l->state, done ? DONE : REFUSED, memory_order_release); /* with its results */
}

/* acquire: pairs with the release of who has opened them */
static bool is_opened(struct win_mail *m, uint32_t seat) { return atomic_load_explicit(&m->opened[seat], memory_order_acquire); }

void mail_serve(struct win *w)
{
    struct win_mail *m = w->near.mail;
    int32_t n = w->near.n;
    w->mail.seen = atomic_load_explicit(&m->bell, memory_order_acquire);
    for (uint32_t seat = 0; seat < (uint32_t)n; seat++)
        for (uint32_t i = 0; i < MAIL_LETTERS && is_opened(m, seat); i++) serve(w, mail_letter(m, n, seat, i), MAIL_LETTER_ROOM);
    for (uint32_t i = 0; i < MAIL_DOCKED && is_opened(m, (uint32_t)n); i++) serve(w, mail_docked(m, n, i), MAIL_DOCKED_ROOM);
}

void mail_look(struct win *w)
{
    const struct win_mail *m = w->near.mail;
    if (m && unlikely(atomic_load_explicit(&m->bell, memory_order_relaxed) != w->mail.seen)) mail_serve(w);
}

static int poll(struct step *s)
{
    mail_serve(container_of(s, struct win, mail));
    return 1;
}

const struct step_ops mail_ops = {.name = "operations on a window, by mail", .poll = poll};

/* ---- the origin: by the target ---- */

bool mail_is_read(struct win_target *t)
{
    if (likely(!t->away_until)) return true;
    if (clock_ns() < t->away_until) return false;
    t->away_until = 0;
    return true;
}

void mail_open(struct win_letter *l) { atomic_store_explicit(&l->state, FREE, memory_order_relaxed); }

void mail_post(struct win_target *t, struct win_letter *l, size_t bytes)
{
    l->bytes = (uint32_t)bytes;
    /* release: who sees it posted sees all of it; who sees the bell, by whomever it was changed last, sees it posted */
    atomic_store_explicit(&l->state, POSTED, memory_order_release);
    atomic_fetch_add_explicit(&t->mail->bell, 1, memory_order_release);
}

static bool is_over(uint32_t state) { return state == DONE || state == REFUSED; }
static uint32_t look(const struct win_letter *l) { return atomic_load_explicit(&l->state, memory_order_acquire); }

/* Until the target has begun with it, or has not for too long. Two processes that post to each other both serve meanwhile. */
static bool watch(struct win *w, const struct win_letter *l)
{
    uint64_t since = 0;
    for (unsigned looks = 1; look(l) == POSTED; looks++) {
        cpu_relax();
        if (looks % 8) continue;
        mail_look(w);
        uint64_t now = clock_ns();
        if (!since) since = now;
        else if (now - since > MAIL_PATIENCE_NS) return false;
    }
    return true;
}

/* A target that sleeps is woken when a few letters have found it so, as more will come: one of those finds it awake. */
static void is_away(struct win_target *t)
{
    if (++t->vain >= VAIN_WAKES) peer_wake(t->peer->index);
    t->away_until = clock_ns() + (t->vain < 8 ? AWAY_NS << (t->vain - 1) : AWAY_MOST_NS);
}

/* Those that were posted with one in vain are not waited for. */
static bool has_begun(struct win_target *t, const struct win_letter *l)
{
    if (t->away_until) return look(l) != POSTED;
    bool begun = watch(t->win, l);
    if (likely(begun)) t->vain = 0;
    else is_away(t);
    return begun;
}

/* The target has begun with it: it has to copy 32 KB at most, unless it loses its core, or dies. */
static int await(struct win_target *t, const struct win_letter *l)
{
    for (unsigned looks = 1; !is_over(look(l)); looks++) {
        mail_look(t->win); /* it may have begun because it waits for this process */
        if (looks % 64) cpu_relax();
        else if (t->lock.ops->is_dead(t->lock.arg, t->seat))
            return err_set(TERN_ERR_PEER, "rank %d has died in an operation on its window", t->rank);
        else sched_yield();
    }
    return 0;
}

/* ---- the origin: by itself ---- */

/* Elements through a copy of them here. */
static int change_there(struct win_target *t, const struct mail_head *h, char *data)
{
    const struct type *basic = type_of_op(h);
    char copy[BLOCK];
    struct mail_head part = *h;
    int64_t most = BLOCK / basic->extent;
    for (int64_t left = h->count; left; left -= part.count, part.address += bytes_of(&part, basic)) {
        part.count = (uint32_t)min_int64(left, most);
        struct iovec here = {copy, bytes_of(&part, basic)}, there = {(void *)(uintptr_t)part.address, here.iov_len};
        int rc = ep_get(&t->peer->ep, &here, 1, &there, 1);
        if (rc) return rc;
        do_change(&part, basic, copy, data);
        data += here.iov_len;
        if (h->op != OP_NO_OP || h->kind == WIN_COMPARE_AND_SWAP) rc = ep_put(&t->peer->ep, &here, 1, &there, 1);
        if (rc) return rc;
    }
    return 0;
}

/* So many of them, from the first on, are of its kind: they are done in one call. */
static unsigned alike(const struct mail_item *i, unsigned n)
{
    unsigned k = 1;
    while (k < n && k < PIECES && i[k].head.kind == i->head.kind) k++;
    return k;
}

static int move_there(struct win_target *t, struct win_letter *l, const struct mail_item *i, unsigned n)
{
    struct iovec here[PIECES], there[PIECES];
    for (unsigned k = 0; k < n; k++) {
        here[k] = (struct iovec){l->ops + i[k].at, i[k].head.count};
        there[k] = (struct iovec){(void *)(uintptr_t)i[k].head.address, i[k].head.count};
    }
    return i->head.kind == WIN_PUT ? ep_put(&t->peer->ep, here, (int)n, there, (int)n) : ep_get(&t->peer->ep, here, (int)n, there, (int)n);
}

static int by_system(struct win_target *t, struct win_letter *l, const struct mail_item *i, unsigned n)
{
    int rc = 0;
    for (unsigned k; !rc && n; i += k, n -= k) {
        k = i->head.kind <= WIN_GET ? alike(i, n) : 1;
        rc = i->head.kind <= WIN_GET ? move_there(t, l, i, k) : change_there(t, &i->head, l->ops + i->at);
    }
    return rc;
}

/* The target will not have it: the window has been given up there, or the memory is not attached any more. */
static int refused(const struct win_target *t)
{
    int rc = win_target_given_up(t);
    return rc ? rc : err_set(TERN_ERR_WIN_RANGE, "rank %d refuses an operation on its window, whose memory is not there any more", t->rank);
}

/* The system does not let this process do it any more: the target will come. */
static int insist(struct win_target *t, struct win_letter *l, const struct mail_item *i, unsigned n)
{
    const struct mail_item *last = &i[n - 1];
    mail_post(t, l, last->at + mail_padded(data_of(&last->head, bytes_of(&last->head, type_of_op(&last->head)))));
    peer_wake(t->peer->index);
    int rc = await(t, l);
    return rc || look(l) == DONE ? rc : refused(t);
}

int mail_by_hand(struct win_target *t, struct win_letter *l, const struct mail_item *i, unsigned n)
{
    int rc = by_system(t, l, i, n);
    return rc == TERN_ERR_UNSUPPORTED ? insist(t, l, i, n) : rc;
}

/* False: the target has begun with it, or is done. */
static bool withdraw(struct win_letter *l)
{
    uint32_t posted = POSTED;
    return atomic_compare_exchange_strong_explicit(&l->state, &posted, FREE, memory_order_relaxed, memory_order_relaxed);
}

int mail_finish(struct win_target *t, struct win_letter *l, const struct mail_item *i, unsigned n)
{
    int rc = has_begun(t, l) || !withdraw(l) ? await(t, l) : 0;
    uint32_t state = look(l);
    if (!rc && state == REFUSED) rc = refused(t);
    else if (!rc && state != DONE) rc = mail_by_hand(t, l, i, n);
    mail_open(l);
    return rc;
}

/* ---- an origin has died ---- */

void mail_clear(struct win_target *t, struct win_letter *l)
{
    if (look(l) != FREE && !withdraw(l)) (void)await(t, l); /* of a dead target there is nothing to be waited for */
    mail_open(l);
}

void mail_forget(struct win_target *t, uint32_t seat)
{
    int32_t n = t->win->near.n;
    for (uint32_t i = 0; i < MAIL_LETTERS && is_opened(t->mail, seat); i++) mail_clear(t, mail_letter(t->mail, n, seat, i));
}
