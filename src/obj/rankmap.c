/* rankmap.c - see rankmap.h. */
#include "obj/rankmap.h"

#include <stdlib.h>
#include <string.h>

static struct rankmap *make(int32_t size, bool table)
{
    struct rankmap *m = malloc(sizeof *m + (table ? (size_t)size * sizeof(uint32_t) : 0));
    if (!m) return NULL;
    atomic_init(&m->refs, 1);
    m->size = size;
    m->first = 0;
    m->stride = 1;
    m->table = table ? (uint32_t *)(m + 1) : NULL;
    return m;
}

struct rankmap *rankmap_line(int32_t size, uint32_t first, uint32_t stride)
{
    struct rankmap *m = make(size, false);
    if (!m) return NULL;
    m->first = first;
    m->stride = stride;
    return m;
}

struct rankmap *rankmap_list(int32_t size, const uint32_t *index)
{
    uint32_t stride = size > 1 ? index[1] - index[0] : 1;
    bool line = stride > 0 && stride < UINT32_MAX / 2; /* growing: rankmap_find divides by it */
    for (int32_t i = 1; i < size && line; i++) line = index[i] > index[i - 1] && index[i] - index[i - 1] == stride;
    if (line) return rankmap_line(size, size ? index[0] : 0, stride);
    struct rankmap *m = make(size, true);
    if (m) memcpy(m->table, index, (size_t)size * sizeof *index);
    return m;
}

struct rankmap *rankmap_ref(struct rankmap *m)
{
    atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed); /* the caller holds one already */
    return m;
}

void rankmap_unref(struct rankmap *m)
{
    /* acq_rel: the last one sees what the others did with the map before they let go */
    if (m && atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) == 1) free(m);
}

int32_t rankmap_find(const struct rankmap *m, uint32_t index)
{
    if (!m->table) {
        uint32_t d = index - m->first;
        return index >= m->first && d % m->stride == 0 && d / m->stride < (uint32_t)m->size ? (int32_t)(d / m->stride) : -1;
    }
    for (int32_t r = 0; r < m->size; r++)
        if (m->table[r] == index) return r;
    return -1;
}

bool rankmap_equal(const struct rankmap *a, const struct rankmap *b)
{
    if (a->size != b->size) return false;
    if (!a->table && !b->table) return a->size == 0 || (a->first == b->first && (a->size == 1 || a->stride == b->stride));
    for (int32_t r = 0; r < a->size; r++)
        if (rankmap_at(a, r) != rankmap_at(b, r)) return false;
    return true;
}
