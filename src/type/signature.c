/* signature.c - see signature.h. */
#include "type/signature.h"

struct signature signature_basic(MPI_Datatype basic)
{
    uint64_t x = (uint64_t)(uintptr_t)basic; /* a bijective mix of 64 bits, so that different types differ */
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (struct signature){x ^ x >> 31, 0x9e3779b97f4a7c15u};
}

struct signature signature_join(struct signature a, struct signature b)
{
    return (struct signature){a.hash * b.step + b.hash, a.step * b.step};
}

struct signature signature_repeat(struct signature a, int64_t n)
{
    struct signature all = SIGNATURE_EMPTY;
    for (; n > 0; n >>= 1) { /* copies of one thing commute, so the order of joining does not matter */
        if (n & 1) all = signature_join(all, a);
        a = signature_join(a, a);
    }
    return all;
}

struct signature type_signature(const struct type *t, int64_t count)
{
    return signature_repeat((struct signature){t->signature, t->signature_step}, count);
}

struct signature signature_of_first(const struct type *t, int64_t elements)
{
    struct signature all = SIGNATURE_EMPTY;
    while (elements > 0 && t->elements > 0) {
        all = signature_join(all, type_signature(t, elements / t->elements));
        elements %= t->elements;
        if (elements == 0) break;
        const struct type_part *p = t->parts;
        for (; elements >= p->n * p->type->elements; p++) {
            all = signature_join(all, type_signature(p->type, p->n));
            elements -= p->n * p->type->elements;
        }
        t = p->type;
    }
    return all;
}
