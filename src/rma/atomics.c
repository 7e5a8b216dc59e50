/* atomics.c - see atomics.h. */
#include "rma/atomics.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool barrier(int command) { return !syscall(SYS_membarrier, command, 0, 0); }

bool atomics_prepare(void) { return barrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED); }

void atomics_stop(struct win_exposure *x, const _Atomic uint64_t *busy, const struct win_locking *l)
{
    atomic_store_explicit(&x->stopped, 1, memory_order_seq_cst);
    barrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
    for (uint32_t seat = 0; seat < l->n; seat++)
        for (unsigned looks = 0; seat != l->own && atomic_load_explicit(&busy[seat], memory_order_acquire); looks++) {
            if (looks < 64) cpu_relax();
            else if (l->ops->is_dead(l->arg, seat)) break;
            else sched_yield(); /* it is in the middle of some instructions, without a core */
        }
}
