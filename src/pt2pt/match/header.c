/* header.c - see header.h. */
#include "pt2pt/match/header.h"
#include "base/err.h"

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LOW_HALF  0
#define HIGH_HALF 4
#else
#define LOW_HALF  4
#define HIGH_HALF 0
#endif

const struct match_header match_header_own = {
    .source = {8 + HIGH_HALF, 4},
    .tag = {8 + LOW_HALF, 4},
    .big_endian = __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__,
};

/* The integer in a field; false if it lies beyond the header or is wider than any. */
static bool read_field(struct match_field f, bool big_endian, const uint8_t *header, size_t n, uint64_t *value)
{
    uint64_t v = 0;
    if (f.bytes > 8 || (size_t)f.at + f.bytes > n) return false;
    for (unsigned i = 0; i < f.bytes; i++) v = v << 8 | header[f.at + (big_endian ? i : f.bytes - 1u - i)];
    *value = v;
    return true;
}

int match_header_read(const struct match_header *h, const void *header, size_t n, struct match_envelope *out)
{
    uint64_t source, tag, length;
    if (!read_field(h->source, h->big_endian, header, n, &source) || !read_field(h->tag, h->big_endian, header, n, &tag) ||
        !read_field(h->length, h->big_endian, header, n, &length))
        return err_set(TERN_ERR_ARG, "a message header of %zu bytes is shorter than its description", n);
    if (source > INT32_MAX || tag > INT32_MAX)
        return err_set(TERN_ERR_ARG, "a message header has source %llu and tag %llu, beyond 31 bits",
                       (unsigned long long)source, (unsigned long long)tag);
    if (h->length.bytes && length < h->length_counts)
        return err_set(TERN_ERR_ARG, "a message header has length %llu, less than the %u bytes it counts itself",
                       (unsigned long long)length, h->length_counts);
    *out = (struct match_envelope){(int32_t)source, (int32_t)tag, h->length.bytes ? length - h->length_counts : 0};
    return 0;
}
