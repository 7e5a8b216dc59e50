/* count.c - see count.h. */
#include "copy/count.h"
#include "base/lock.h"

_Atomic uint64_t copies_counted[COPY_MEANS][2];

static struct lock lock; /* of the next */
static struct copy_record last;

void copy_count_engine(const struct copy_record *r)
{
    lock_take(&lock);
    last = *r;
    lock_give(&lock);
}

struct copy_counts copy_counts(void)
{
    struct copy_counts c;
    for (int m = 0; m < COPY_MEANS; m++) {
        c.copies[m] = atomic_load_explicit(&copies_counted[m][0], memory_order_relaxed);
        c.bytes[m] = atomic_load_explicit(&copies_counted[m][1], memory_order_relaxed);
    }
    lock_take(&lock);
    c.last = last;
    lock_give(&lock);
    return c;
}
