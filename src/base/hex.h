/* hex.h - bytes as pairs of hexadecimal digits, in small letters. Threads: any. */
#ifndef TERN_BASE_HEX_H
#define TERN_BASE_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes 2 n digits and a zero; returns where the zero is. */
static inline char *hex_put(char *to, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t byte = ((const uint8_t *)bytes)[i];
        *to++ = "0123456789abcdef"[byte >> 4];
        *to++ = "0123456789abcdef"[byte & 15];
    }
    *to = 0;
    return to;
}

/* -1: it is none. */
static inline int hex_digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

/* Reads 2 n digits; looks at nothing behind the first sign that is none. False: there is such a sign. */
static inline bool hex_get(const char *from, void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int high = hex_digit(from[2 * i]), low = high < 0 ? -1 : hex_digit(from[2 * i + 1]);
        if (low < 0) return false;
        ((uint8_t *)bytes)[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

#endif
