/* keep.c - see keep.h. */
#include "transport/keep.h"
#include "base/err.h"
#include "transport/wires.h"

#include <stdlib.h>
#include <string.h>

struct tp_kept *tp_keep_in_place(const void *data, size_t n, enum tp_keep_time time)
{
    if (n < TP_KEEP_LEAST) return NULL;
    struct tp_kept *k = malloc(sizeof *k);
    if (!k) return NULL;
    *k = (struct tp_kept){.data = data, .bytes = n};
    const struct wire *w = wires_delivering();
    if (w && w->ops->keep && !w->ops->keep(w->dom, data, n, time, k)) return k;
    free(k);
    return NULL;
}

struct tp_kept *tp_keep(const void *data, size_t n, enum tp_keep_time time)
{
    struct tp_kept *k = tp_keep_in_place(data, n, time);
    if (k) return k;
    k = malloc(sizeof *k + n);
    if (!k) {
        err_set(TERN_ERR_NOMEM, "no memory to keep a message of %zu bytes", n);
        return NULL;
    }
    *k = (struct tp_kept){.data = k + 1, .bytes = n};
    if (n) memcpy(k + 1, data, n);
    return k;
}

void tp_release(struct tp_kept *k)
{
    if (k && k->end) k->end(k);
    free(k);
}
