/*
 * trim.c - the pages of rings that were busy once go back to the system while their senders wait.
 *
 * The sender does it: when the receiver has consumed all that was sent, the whole ring is free, and nobody but the
 * sender writes into a free ring. The receiver has zeroed what it consumed before it gave the space back, and reads
 * nothing but the word where the next record will begin, which is zero before and after. So no message is held up, and
 * no lock is needed.
 */
#include "transport/shm/shm.h"

#include <sys/mman.h>
#include <unistd.h>

/* A ring through which less has gone since the last time holds little. */
#define TRIM_LEAST (32u << 10)

/* Of a ring whose sender has sent `tail` bytes, all in all. */
static void trim_ring(struct shm_ep *e, uint32_t tail)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *from = (char *)round_up((uintptr_t)e->ring, page), *to = e->ring + e->mask + 1;
    if (tail - e->trimmed < TRIM_LEAST) return;
    /* acquire: pairs with the release in give_back; the lines are zeroed */
    if (atomic_load_explicit(&e->box->head, memory_order_acquire) != tail) return;
    to -= (uintptr_t)to % page;
    if (from < to) madvise(from, (size_t)(to - from), MADV_REMOVE); /* where the system will not, the pages stay */
    e->trimmed = tail;
}

/* The lock makes this process the sender. */
static void trim_common(struct shm_ep *e)
{
    if (!shm_common_lock(e)) return;
    trim_ring(e, e->box->tail);
    shm_common_unlock(e);
}

void shm_trim(struct tp_dom *dom)
{
    (void)dom;
    if (shm_dom.threads) return; /* writers.c */
    list_each(l, next, &shm_dom.eps)
    {
        struct shm_ep *e = container_of(l, struct shm_ep, in_all);
        if (e->said_last) continue; /* its ring may be another sender's */
        if (e->common)
            trim_common(e);
        else
            trim_ring(e, e->lap + (uint32_t)(e->next - e->ring));
    }
}
