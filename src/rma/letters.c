/* letters.c - see letters.h. */
#include "rma/letters.h"
#include "base/err.h"
#include "rma/mail.h"

#include <stdlib.h>
#include <string.h>

#define ITEMS (MAIL_LETTER_ROOM / (sizeof(struct mail_head) + 8))

struct letter {
    struct win_letter *shared;
    size_t bytes;  /* that have been written; 0: it is empty */
    unsigned n;    /* operations */
    bool posted;
    struct mail_item item[ITEMS];
};

struct win_letters {
    struct letter letter[MAIL_LETTERS];
    unsigned now; /* the one that is written */
};

static struct win_letters *open_letters(struct win_target *t)
{
    struct win_letters *w = calloc(1, sizeof *w);
    if (!w) return NULL; /* there are other ways */
    for (uint32_t i = 0; i < MAIL_LETTERS; i++) {
        w->letter[i].shared = mail_letter(t->mail, t->win->near.n, t->lock.own, i);
        mail_open(w->letter[i].shared);
    }
    atomic_store_explicit(&t->mail->opened[t->lock.own], 1, memory_order_release); /* as they are now */
    return t->letters = w;
}

void letters_close(struct win_target *t)
{
    free(t->letters);
    t->letters = NULL;
}

/* NULL: it has no mail. */
static struct win_letters *letters_of(struct win_target *t)
{
    if (likely(t->letters)) return t->letters;
    return t->mail && t->rank != t->win->comm->rank ? open_letters(t) : NULL;
}

/* ---- sending ---- */

/* A letter that would have been posted in vain is done by hand, at end_letter. */
static void send_letter(struct win_target *t, struct letter *l)
{
    l->posted = mail_is_read(t);
    if (l->posted) mail_post(t, l->shared, l->bytes);
}

static int end_letter(struct win_target *t, struct letter *l)
{
    int rc = l->posted ? mail_finish(t, l->shared, l->item, l->n) : mail_by_hand(t, l->shared, l->item, l->n);
    for (unsigned i = 0; !rc && i < l->n; i++)
        if (l->item[i].to) memcpy(l->item[i].to, l->shared->ops + l->item[i].at, l->item[i].head.count);
    l->bytes = l->n = 0;
    l->posted = false;
    return rc;
}

int letters_flush(struct win_target *t)
{
    struct win_letters *w = t->letters;
    if (!w) return 0;
    struct letter *now = &w->letter[w->now], *other = &w->letter[!w->now];
    if (now->n) send_letter(t, now);
    int first = other->n ? end_letter(t, other) : 0;
    int rc = now->n ? end_letter(t, now) : 0;
    return first ? first : rc;
}

/* The letter that is written goes out, and the other one is written when it has come back. */
static int turn(struct win_target *t, struct win_letters *w)
{
    send_letter(t, &w->letter[w->now]);
    w->now = !w->now;
    return w->letter[w->now].n ? end_letter(t, &w->letter[w->now]) : 0;
}

/* ---- writing ---- */

/* Room for `n` bytes behind the head of one operation more; NULL: there is none, and *rc says why. */
static char *write_op(struct win_target *t, struct win_letters *w, const struct mail_head *h, size_t n, void *to, int *rc)
{
    size_t all = sizeof *h + mail_padded(n);
    *rc = 0;
    if (unlikely(w->letter[w->now].bytes + all > MAIL_LETTER_ROOM)) *rc = turn(t, w);
    if (unlikely(*rc)) return NULL;
    struct letter *l = &w->letter[w->now];
    char *at = l->shared->ops + l->bytes;
    memcpy(at, h, sizeof *h);
    l->item[l->n++] = (struct mail_item){*h, (uint32_t)(l->bytes + sizeof *h), to};
    l->bytes += all;
    return at + sizeof *h;
}

int letters_put(struct win_target *t, uint64_t address, const void *data, size_t n)
{
    struct win_letters *w = letters_of(t);
    struct mail_head h = {.kind = WIN_PUT, .count = (uint32_t)n, .address = address};
    int rc;
    if (!w) return TERN_ERR_UNSUPPORTED;
    char *at = write_op(t, w, &h, n, NULL, &rc);
    if (at) memcpy(at, data, n);
    return rc;
}

int letters_get(struct win_target *t, uint64_t address, void *to, size_t n)
{
    struct win_letters *w = letters_of(t);
    struct mail_head h = {.kind = WIN_GET, .count = (uint32_t)n, .address = address};
    int rc;
    if (!w) return TERN_ERR_UNSUPPORTED;
    write_op(t, w, &h, n, to, &rc);
    return rc;
}

int letters_change(struct win_target *t, const struct win_op *a, uint64_t address, const void *data, void *before, int64_t n)
{
    struct win_letters *w = letters_of(t);
    bool swaps = a->kind == WIN_COMPARE_AND_SWAP;
    size_t bytes = (size_t)(n * a->basic->extent);
    struct mail_head h = {.kind = (uint8_t)a->kind, .op = a->op ? (uint8_t)a->op->index : 0,
                          .type = (uint16_t)(uintptr_t)a->basic->self, .count = (uint32_t)n, .address = address};
    int rc;
    if (!w) return TERN_ERR_UNSUPPORTED;
    char *at = write_op(t, w, &h, swaps ? 2 * bytes : bytes, NULL, &rc);
    if (!at) return rc;
    if (swaps) memcpy(at, a->compare, bytes), memcpy(at + bytes, data, bytes);
    else if (data) memcpy(at, data, bytes);
    rc = letters_flush(t);
    if (!rc && before) memcpy(before, at, bytes);
    return rc;
}
