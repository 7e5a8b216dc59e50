/* dock.c - see dock.h. */
#include "rma/dock.h"
#include "base/err.h"
#include "rma/mail.h"
#include "rma/runs.h"

#include <mpi.h>
#include <sched.h>
#include <stdlib.h>

/* What this process has in a target's dock. */
struct win_dock {
    bool held;
    uint32_t posted, over; /* pieces; letters that have been read are written again in turn */
    struct mail_item item[MAIL_DOCKED];
};

/* An operation whose pieces are posted. */
struct job {
    struct win_target *t;
    const struct type *basic; /* NULL: bytes */
    struct type_cursor *from, *to;
    struct mail_head next;    /* the first piece that has not been posted */
    int64_t left;
};

static struct win_dock *dock_of(struct win_target *t)
{
    if (!t->dock) t->dock = calloc(1, sizeof *t->dock); /* without, there are other ways */
    return t->dock;
}

void dock_close(struct win_target *t)
{
    free(t->dock);
    t->dock = NULL;
}

static struct win_letter *letter(struct win_target *t, uint32_t number)
{
    return mail_docked(t->mail, t->win->near.n, number % MAIL_DOCKED);
}

/* ---- whose it is ---- */

/* Of `docked`: the dock was one's that has died, and this process takes back what is in it. */
#define CLEARING 0x80000000u

static bool is_dead(const struct win_target *t, uint32_t whose) { return t->lock.ops->is_dead(t->lock.arg, (whose & ~CLEARING) - 1); }

static void clear(struct win_target *t)
{
    bool opened = atomic_load_explicit(&t->mail->opened[t->win->near.n], memory_order_relaxed);
    for (uint32_t i = 0; i < MAIL_DOCKED && opened; i++) mail_clear(t, letter(t, i));
}

/* From one that is dead, perhaps. */
static bool claim(struct win_target *t, bool *inherits)
{
    _Atomic uint32_t *docked = &t->mail->docked;
    uint32_t whose = 0, own = t->lock.own + 1;
    /* acquire: what the one before has left in the letters */
    *inherits = !atomic_compare_exchange_strong_explicit(docked, &whose, own, memory_order_acquire, memory_order_relaxed);
    if (!*inherits) return true;
    if (!is_dead(t, whose)) return false;
    return atomic_compare_exchange_strong_explicit(docked, &whose, own, memory_order_acquire, memory_order_relaxed);
}

static bool take(struct win_target *t)
{
    bool inherits;
    if (t->dock->held) return true;
    if (!claim(t, &inherits)) return false;
    t->dock->held = true;
    _Atomic uint8_t *opened = &t->mail->opened[t->win->near.n];
    bool are_open = atomic_load_explicit(opened, memory_order_relaxed);
    if (inherits) clear(t);
    for (uint32_t i = 0; i < MAIL_DOCKED && !are_open; i++) mail_open(letter(t, i));
    if (!are_open) atomic_store_explicit(opened, 1, memory_order_release); /* as they are now */
    return true;
}

void dock_forget(struct win_target *t, uint32_t seat)
{
    _Atomic uint32_t *docked = &t->mail->docked;
    uint32_t whose = seat + 1, own = CLEARING | (t->lock.own + 1);
    if (atomic_compare_exchange_strong_explicit(docked, &whose, own, memory_order_acquire, memory_order_relaxed)) {
        clear(t);
        atomic_store_explicit(docked, 0, memory_order_release);
        return;
    }
    /* Another one may be at it: it is done on return. */
    while ((whose = atomic_load_explicit(docked, memory_order_acquire)) & CLEARING && !is_dead(t, whose)) sched_yield();
}

static void give(struct win_target *t)
{
    t->dock->held = false;
    atomic_store_explicit(&t->mail->docked, 0, memory_order_release);
}

/* ---- pieces ---- */

static int finish(struct win_target *t)
{
    struct win_dock *d = t->dock;
    const struct mail_item *i = &d->item[d->over % MAIL_DOCKED];
    struct win_letter *l = letter(t, d->over++);
    int rc = mail_finish(t, l, i, 1);
    if (!rc && i->to) memcpy(i->to, l->ops + i->at, i->head.count);
    return rc;
}

/* Results of a job that go to pieces of memory, or are elements with gaps. */
static int finish_for(struct job *j)
{
    const struct win_dock *d = j->t->dock;
    const struct mail_item *i = &d->item[d->over % MAIL_DOCKED];
    const char *data = letter(j->t, d->over)->ops + i->at;
    int64_t n = i->head.count;
    int rc = finish(j->t);
    if (!rc && j->to && j->basic) win_elements_in(j->to, j->basic, data, n);
    else if (!rc && j->to) type_unpack(j->to, data, (size_t)n);
    return rc;
}

/* Where the next n bytes of results lie, if in one piece: the cursor goes on behind them. NULL: they do not, or are elements. */
static char *plain_result(struct job *j, size_t n)
{
    if (!j->to || j->basic || !j->to->type->contig) return NULL;
    char *to = j->to->buf + j->to->pos;
    type_cursor_seek(j->to, j->to->pos + n);
    return to;
}

static void post(struct job *j)
{
    struct win_dock *d = j->t->dock;
    struct mail_item *i = &d->item[d->posted % MAIL_DOCKED];
    struct win_letter *l = letter(j->t, d->posted++);
    int64_t each = j->basic ? j->basic->extent : 1, most = (int64_t)(MAIL_DOCKED_ROOM - sizeof j->next) / each;
    int64_t n = min_int64(most, j->left);
    char *data = l->ops + sizeof j->next;
    *i = (struct mail_item){.head = j->next, .at = sizeof j->next, .to = plain_result(j, (size_t)n)};
    i->head.count = (uint32_t)n;
    memcpy(l->ops, &i->head, sizeof i->head);
    if (j->from && j->basic) win_elements_out(j->from, j->basic, data, n);
    else if (j->from) type_pack(j->from, data, (size_t)n);
    mail_post(j->t, l, sizeof i->head + mail_padded((size_t)(n * each)));
    j->next.address += (uint64_t)(n * each);
    j->left -= n;
}

static int finish_all(struct win_target *t)
{
    int first = 0;
    while (t->dock->over != t->dock->posted) {
        int rc = finish(t);
        if (rc && !first) first = rc;
    }
    return first;
}

int dock_flush(struct win_target *t)
{
    if (!t->dock || !t->dock->held) return 0;
    int rc = finish_all(t);
    give(t);
    return rc;
}

/* One letter behind the other, while the target is there: each is filled while others are read. */
static int post_all(struct job *j)
{
    struct win_dock *d = j->t->dock;
    int rc = 0;
    for (; !rc && j->left && mail_is_read(j->t); post(j))
        if (d->posted - d->over == MAIL_DOCKED && (rc = finish(j->t))) break;
    return rc;
}

/* The same, where results need the cursor: all of it is over on return. */
static int do_all(struct job *j)
{
    struct win_dock *d = j->t->dock;
    int first = finish_all(j->t);
    for (;;) {
        while (!first && j->left && d->posted - d->over < MAIL_DOCKED && mail_is_read(j->t)) post(j);
        if (d->posted == d->over) return first;
        int rc = finish_for(j);
        if (rc && !first) first = rc;
    }
}

int dock_do(struct win_target *t, const struct win_op *a, uint64_t address, int64_t n, struct type_cursor *from, struct type_cursor *to,
            int64_t *done)
{
    *done = 0;
    if (!t->mail || t->rank == t->win->comm->rank || !mail_is_read(t) || !dock_of(t) || !take(t)) return 0;
    struct job j = {.t = t, .basic = a->basic, .from = from, .to = to, .left = n};
    j.next = (struct mail_head){.kind = (uint8_t)a->kind, .op = a->op ? (uint8_t)a->op->index : 0,
                                .type = a->basic ? (uint16_t)(uintptr_t)a->basic->self : 0, .address = address};
    bool later = a->kind == WIN_PUT || (a->kind == WIN_GET && to->type->contig);
    int rc = later ? post_all(&j) : do_all(&j);
    *done = n - j.left;
    return rc;
}
