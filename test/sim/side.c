/* side.c - see side.h. */
#include "side.h"

#include <stdlib.h>
#include <string.h>

enum { UNTOUCHED = 0xa5 };

void side_open(const struct sim_type *type, struct side *s, int64_t elems, int64_t low)
{
    size_t mem = (size_t)(elems * type->extent), packed = (size_t)(elems * type->size);
    *s = (struct side){type, elems, low, malloc(mem + 1), malloc(packed + 1)};
    if (!s->mem || !s->packed) abort();
    memset(s->mem, UNTOUCHED, mem);
    memset(s->packed, UNTOUCHED, packed);
}

void side_close(struct side *s)
{
    free(s->mem);
    free(s->packed);
}

void side_value(uint64_t state, int64_t size, char *out)
{
    for (int64_t k = 0; k < size; k += 8) {
        uint64_t x = sim_random(&state);
        memcpy(out + k, &x, (size_t)(size - k < 8 ? size - k : 8));
    }
}

const char *side_wrong(const struct side *s, const char *what)
{
    for (int64_t i = 0; i < s->elems; i++) {
        if (memcmp(side_elem(s, i), side_want(s, i), (size_t)s->type->size)) return what;
        for (int64_t k = s->type->size; k < s->type->extent; k++)
            if ((unsigned char)side_elem(s, i)[k] != UNTOUCHED) return "a gap was written to";
    }
    return NULL;
}
