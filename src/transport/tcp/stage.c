/*
 * stage.c - the memory that TCP reads into, and handlers that keep some of it (transport/keep.h).
 *
 *     | TCP_STAGE_BYTES | references |
 *
 * The domain has a reference to the stage, and so has each message of which bytes in it are kept. Before the next read
 * the domain takes another stage if bytes of this one are kept. Which one, is made sure of when a message is kept:
 * so reading never fails for want of memory. TP_KEEP_LONG does not hold a stage, which is large beside most messages;
 * a message that has come in parts lies in memory of its own, which whoever keeps it is given.
 */
#include "transport/tcp/tcp.h"
#include "base/err.h"

#include <stdatomic.h>
#include <stdlib.h>

#define STAGES_MAX 8 /* of those kept and the domain's two; 640 KB */

static _Atomic uint32_t stages; /* relaxed: a number only */

static _Atomic uint32_t *refs_of(char *stage) { return (_Atomic uint32_t *)(void *)(stage + TCP_STAGE_BYTES); }

char *tcp_stage_new(void)
{
    char *stage = aligned_alloc(4096, round_up(TCP_STAGE_BYTES + sizeof(_Atomic uint32_t), 4096));
    if (!stage) return NULL;
    atomic_init(refs_of(stage), 1);
    atomic_fetch_add_explicit(&stages, 1, memory_order_relaxed);
    return stage;
}

void tcp_stage_unref(char *stage)
{
    /* acquire and release: what other threads read here, they have read before it is freed */
    if (!stage || atomic_fetch_sub_explicit(refs_of(stage), 1, memory_order_acq_rel) > 1) return;
    atomic_fetch_sub_explicit(&stages, 1, memory_order_relaxed);
    free(stage);
}

void tcp_stage_renew(void)
{
    struct tcp_dom *d = &tcp_dom;
    /* acquire: pairs with the release in tcp_stage_unref, before this stage is written again */
    if (likely(!d->stage_spare) || atomic_load_explicit(refs_of(d->stage), memory_order_acquire) == 1) return;
    tcp_stage_unref(d->stage);
    d->stage = d->stage_spare;
    d->stage_spare = NULL;
}

static void end_own(struct tp_kept *k) { free(k->held); }
static void end_staged(struct tp_kept *k) { tcp_stage_unref(k->held); }

static bool lies_in(const void *data, size_t n, const char *from, const char *to)
{
    uintptr_t at = (uintptr_t)data;
    return from && at >= (uintptr_t)from && at + n <= (uintptr_t)to;
}

static int keep_staged(struct tp_kept *k)
{
    struct tcp_dom *d = &tcp_dom;
    if (!d->stage_spare && atomic_load_explicit(&stages, memory_order_relaxed) < STAGES_MAX) d->stage_spare = tcp_stage_new();
    if (!d->stage_spare) return TERN_AGAIN;
    atomic_fetch_add_explicit(refs_of(d->stage), 1, memory_order_relaxed); /* ours is there meanwhile */
    k->held = d->stage;
    k->end = end_staged;
    return 0;
}

int tcp_keep(struct tp_dom *dom, const void *data, size_t n, enum tp_keep_time time, struct tp_kept *k)
{
    struct tcp_dom *d = &tcp_dom;
    (void)dom;
    if (lies_in(data, n, d->own, d->own_end)) {
        k->held = d->own;
        k->end = end_own;
        d->own = NULL;
        return 0;
    }
    if (time == TP_KEEP_BRIEFLY && lies_in(data, n, d->stage, d->stage + TCP_STAGE_BYTES)) return keep_staged(k);
    return TERN_AGAIN;
}
