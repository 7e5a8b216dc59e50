/* atomics.c - see atomics.h. */
#include "rma/atomics.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool barrier(int command) { return !syscall(SYS_membarrier, command, 0, 0); }

bool atomics_prepare(void) { return barrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED); }

static TERN_COLD void stop(struct win_exposure *x, const _Atomic uint64_t *busy, const struct win_locking *l)
{
    atomic_store_explicit(&x->stopped, ATOMICS_STOPPING, memory_order_seq_cst);
    barrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
    for (uint32_t seat = 0; seat < l->n; seat++)
        for (unsigned looks = 0; seat != l->own && atomic_load_explicit(&busy[seat], memory_order_acquire); looks++) {
            if (looks < 64) cpu_relax();
            else if (l->ops->is_dead(l->arg, seat)) break;
            else sched_yield(); /* it is in the middle of some instructions, without a core */
        }
}

/* relaxed: ordered by the lock */
void atomics_stop(struct win_exposure *x, const _Atomic uint64_t *busy, const struct win_locking *l)
{
    x->few = 0;
    if (likely(atomic_load_explicit(&x->stopped, memory_order_relaxed) == ATOMICS_STOPPED)) return;
    stop(x, busy, l);
    atomic_store_explicit(&x->stopped, ATOMICS_STOPPED, memory_order_relaxed);
}

void atomics_note_few(struct win_exposure *x)
{
    bool died = atomic_load_explicit(&x->stopped, memory_order_relaxed) == ATOMICS_STOPPING;
    if (died || ++x->few == ATOMICS_FEW) atomics_go_on(x);
}
