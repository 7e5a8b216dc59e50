/* mail.c - see mail.h. */
#include "rma/mail.h"
#include "base/clock.h"
#include "base/err.h"
#include "rma/apply.h"
#include "rma/op.h"
#include "transport/peer.h"

#include <mpi.h>
#include <string.h>

enum mail_state { FREE, POSTED, TAKEN, DONE, REFUSED };

/* Operations in vain until the target is woken; and, if it does not come then, how many are not tried. */
enum { VAIN_WAKES = 3, VAIN_PAUSE = 8192 };

#define WAKE_NS 200000u /* until a target that was woken has come, at most */

/* ---- the target ---- */

/* The type's elements, as they lie in memory; or bytes. */
static size_t bytes_of(const struct type *basic, int64_t n) { return (size_t)(basic ? n * basic->extent : n); }

static const struct type *type_of_slot(const struct win_slot *s)
{
    const struct type *t = s->type ? type_of((MPI_Datatype)(uintptr_t)s->type) : NULL;
    return t && t->predefined && t->committed && t->size > 0 ? t : NULL;
}

/* Where it is in this process; NULL: not in the window. */
static char *place(const struct win *w, uint64_t address, size_t n)
{
    uint64_t base = (uint64_t)(uintptr_t)w->base;
    if (w->given_up) return NULL;
    if (w->flavor == MPI_WIN_FLAVOR_DYNAMIC) return memory_of_own(w, address, n) ? (char *)(uintptr_t)address : NULL;
    bool inside = address >= base && address - base <= (uint64_t)w->bytes && n <= (uint64_t)w->bytes - (address - base);
    return inside ? (char *)(uintptr_t)address : NULL;
}

static bool change(const struct win_slot *s, struct win_slot *out, char *at)
{
    const struct type *basic = type_of_slot(s);
    const struct op *op = s->kind != WIN_COMPARE_AND_SWAP && op_name_of(s->op) ? op_by_index(s->op) : NULL;
    char before[MAIL_MOST];
    if (s->kind == WIN_COMPARE_AND_SWAP) swap_alone(basic, at, s->data, s->data + basic->size, before);
    else if (op && op_valid(op, basic)) apply_alone(op, basic, at, op->index == OP_NO_OP ? NULL : s->data, before, s->count);
    else return false;
    memcpy(out->data, before, bytes_of(basic, s->count));
    return true;
}

/* Of a copy of the slot, as a process that breaks the rules may change it meanwhile. */
static bool serve(const struct win *w, struct win_slot *slot)
{
    struct win_slot s = *slot;
    const struct type *basic = s.kind >= WIN_ACCUMULATE ? type_of_slot(&s) : NULL;
    if (s.kind > WIN_COMPARE_AND_SWAP || (s.kind >= WIN_ACCUMULATE && !basic) || s.count > MAIL_MOST) return false;
    if (s.kind == WIN_COMPARE_AND_SWAP && (s.count != 1 || 2 * basic->size > MAIL_MOST)) return false;
    size_t n = bytes_of(basic, s.count);
    char *at = n <= MAIL_MOST ? place(w, s.address, n) : NULL;
    if (!at) return false;
    if (s.kind == WIN_PUT) memcpy(at, s.data, n);
    else if (s.kind == WIN_GET) memcpy(slot->data, at, n);
    else return change(&s, slot, at);
    return true;
}

void mail_serve(struct win *w)
{
    struct win_mail *m = w->near.mail;
    for (int32_t seat = 0; seat < w->near.n; seat++) {
        struct win_slot *s = &m->slots[seat];
        uint32_t posted = POSTED;
        if (likely(atomic_load_explicit(&s->state, memory_order_relaxed) != POSTED)) continue;
        /* acquire: the operation is there */
        if (!atomic_compare_exchange_strong_explicit(&s->state, &posted, TAKEN, memory_order_acquire, memory_order_relaxed)) continue;
        bool done = serve(w, s);
        atomic_store_explicit(&s->state, done ? DONE : REFUSED, memory_order_release); /* with its result */
    }
}

static int poll(struct step *s)
{
    mail_serve(container_of(s, struct win, mail));
    return 1;
}

const struct step_ops mail_ops = {.name = "small operations on a window", .poll = poll};

/* ---- the origin ---- */

static void post(struct win_target *t, struct win_slot *s, const struct win_op *a, uint64_t address, const void *data, int64_t n)
{
    static uint32_t number;
    size_t size = a->basic ? (size_t)a->basic->size : 0;
    s->kind = (uint8_t)a->kind;
    s->op = a->op ? (uint8_t)a->op->index : 0;
    s->type = a->basic ? (uint16_t)(uintptr_t)a->basic->self : 0;
    s->address = address;
    s->count = (uint32_t)n;
    if (a->kind == WIN_COMPARE_AND_SWAP) {
        memcpy(s->data, a->compare, size);
        memcpy(s->data + size, data, size);
    } else if (data && a->kind != WIN_GET) {
        memcpy(s->data, data, bytes_of(a->basic, n));
    }
    /* release: who sees it posted sees all of it; who sees the bell sees it posted */
    atomic_store_explicit(&s->state, POSTED, memory_order_release);
    atomic_store_explicit(&t->mail->bell, (t->lock.own + 1) << 22 | (++number & 0x3fffff), memory_order_release);
}

static bool is_over(uint32_t state) { return state == DONE || state == REFUSED; }
static uint32_t look(const struct win_slot *s) { return atomic_load_explicit(&s->state, memory_order_acquire); }

/* Until it is over, or has lasted too long. Two processes that post to each other both serve meanwhile. */
static bool watch(struct win *w, const struct win_slot *s, uint64_t patience)
{
    uint64_t since = 0;
    for (unsigned looks = 1; !is_over(look(s)); looks++) {
        cpu_relax();
        if (looks % 8) continue;
        if (atomic_load_explicit(&w->near.mail->bell, memory_order_relaxed) != w->mail.seen) mail_serve(w);
        uint64_t now = clock_ns();
        if (!since) since = now;
        else if (now - since > patience) return false;
        else if (now - since > MAIL_PATIENCE_NS) sched_yield(); /* it may need this core to wake up */
    }
    return true;
}

/* The target has begun: some instructions, unless it loses its core, or dies. */
static int await(struct win_target *t, const struct win_slot *s)
{
    for (unsigned looks = 1; !is_over(look(s)); looks++) {
        if (looks % 64) cpu_relax();
        else if (t->lock.ops->is_dead(t->lock.arg, t->seat))
            return err_set(TERN_ERR_PEER, "rank %d has died in an operation on its window", t->rank);
        else sched_yield();
    }
    return 0;
}

/* A target that sleeps is woken when a few operations have found it so, as more will come: each of those finds it awake. False: it
 * has not come, so it is not in the library. */
static bool wake(struct win_target *t, const struct win_slot *s)
{
    peer_wake(t->peer->index);
    return watch(t->win, s, WAKE_NS);
}

static bool is_done(struct win_target *t, const struct win_slot *s)
{
    if (likely(watch(t->win, s, MAIL_PATIENCE_NS)) || (++t->vain == VAIN_WAKES && wake(t, s))) {
        t->vain = 0;
        return true;
    }
    t->not_now = t->vain < VAIN_WAKES ? 1u << t->vain : VAIN_PAUSE;
    if (t->vain == VAIN_WAKES) t->vain--;
    return false;
}

int mail_do(struct win_target *t, const struct win_op *a, uint64_t address, const void *data, void *back, int64_t n)
{
    if (!t->mail || t->rank == t->win->comm->rank) return TERN_ERR_UNSUPPORTED;
    if (t->not_now) {
        t->not_now--;
        return TERN_ERR_UNSUPPORTED;
    }
    struct win_slot *s = &t->mail->slots[t->lock.own];
    uint32_t posted = POSTED;
    int rc = 0;
    post(t, s, a, address, data, n);
    if (!is_done(t, s)) {
        if (atomic_compare_exchange_strong_explicit(&s->state, &posted, FREE, memory_order_relaxed, memory_order_relaxed))
            return TERN_ERR_UNSUPPORTED;
        rc = await(t, s);
    }
    bool done = look(s) == DONE;
    if (!rc && done && back) memcpy(back, s->data, bytes_of(a->basic, n));
    atomic_store_explicit(&s->state, FREE, memory_order_relaxed);
    return rc ? rc : done ? 0 : TERN_ERR_UNSUPPORTED;
}
