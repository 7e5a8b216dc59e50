/*
 * elements.c - how many whole or basic elements a number of packed bytes is.
 *
 * The packed form of a type is that of its parts one after the other, so counting
 * descends into the part in which the bytes end, and only there.
 */
#include "type/type.h"

int64_t type_count_whole(const struct type *t, int64_t bytes)
{
    if (bytes == 0) return 0;
    return t->size > 0 && bytes % t->size == 0 ? bytes / t->size : MPI_UNDEFINED;
}

/* Basic elements in the first `bytes` bytes of one element, where 0 <= bytes < size; negative: one is cut. */
static int64_t elements_inside(const struct type *t, int64_t bytes)
{
    int64_t count = 0;
    while (bytes > 0) {
        const struct type_part *p = t->parts, *end = t->parts + t->nparts;
        for (; p < end && bytes >= p->n * p->type->size; p++) {
            bytes -= p->n * p->type->size;
            count += p->n * p->type->elements;
        }
        if (bytes == 0) break;
        if (p == end) return -1; /* inside a basic element */
        count += bytes / p->type->size * p->type->elements;
        bytes %= p->type->size;
        t = p->type;
    }
    return count;
}

int64_t type_count_elements(const struct type *t, int64_t bytes)
{
    if (bytes == 0) return 0;
    if (t->size <= 0) return MPI_UNDEFINED;
    int64_t inside = elements_inside(t, bytes % t->size);
    return inside < 0 ? MPI_UNDEFINED : bytes / t->size * t->elements + inside;
}

int64_t type_bytes_of_elements(const struct type *t, int64_t elements)
{
    int64_t bytes = 0;
    while (elements > 0 && t->elements > 0) {
        bytes += elements / t->elements * t->size;
        elements %= t->elements;
        if (elements == 0) break;
        const struct type_part *p = t->parts;
        for (; elements >= p->n * p->type->elements; p++) {
            bytes += p->n * p->type->size;
            elements -= p->n * p->type->elements;
        }
        t = p->type;
    }
    return bytes;
}
