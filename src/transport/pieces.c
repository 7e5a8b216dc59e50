/* pieces.c - see pieces.h. */
#include "transport/pieces.h"
#include "base/compiler.h"

#include <string.h>

void pieces_copy(const struct iovec *to, int nt, const struct iovec *from, int nf)
{
    size_t at_to = 0, at_from = 0;
    while (nt && nf) {
        size_t n = min_size(to->iov_len - at_to, from->iov_len - at_from);
        if (n) memmove((char *)to->iov_base + at_to, (char *)from->iov_base + at_from, n);
        at_to += n;
        at_from += n;
        if (at_to == to->iov_len) to++, nt--, at_to = 0;
        if (at_from == from->iov_len) from++, nf--, at_from = 0;
    }
}
