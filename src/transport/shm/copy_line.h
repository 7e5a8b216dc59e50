/*
 * copy_line.h - the payload of a record of one line, copied without a call.
 */
#ifndef TERN_TRANSPORT_SHM_COPY_LINE_H
#define TERN_TRANSPORT_SHM_COPY_LINE_H

#include "base/compiler.h"
#include <string.h>

/* At most 40 bytes, what a line has room for beside the head: the lengths that programs use most come first. */
static inline void copy_line(uint64_t *to, const void *p, size_t n)
{
    const char *from = p;
    char *end = (char *)to + n;
    if (likely(n == 8)) {
        memcpy(to, from, 8);
    } else if (n >= 16) {
        memcpy(to, from, 16);
        if (n > 32) memcpy(to + 2, from + 16, 16);
        memcpy(end - 16, from + n - 16, 16);
    } else if (n >= 4) {
        size_t half = n >= 8 ? 8 : 4;
        if (half == 8) memcpy(to, from, 8), memcpy(end - 8, from + n - 8, 8);
        else memcpy(to, from, 4), memcpy(end - 4, from + n - 4, 4);
    } else if (n) {
        ((char *)to)[0] = from[0];
        ((char *)to)[n / 2] = from[n / 2];
        end[-1] = from[n - 1];
    }
}

#endif
