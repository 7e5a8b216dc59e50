/*
 * header.h - where a message's source, tag and length lie in its header, as
 * data (LHS-5): so that wires with a header of their own (hardware queues, other
 * stacks) feed the same matcher without code of their own.
 *
 * Threads: pure functions.
 */
#ifndef TERN_PT2PT_MATCH_HEADER_H
#define TERN_PT2PT_MATCH_HEADER_H

#include "base/compiler.h"

/* One integer of a header: its first byte and its width (1 to 8 bytes; 0: absent, reads as 0). */
struct match_field {
    uint8_t at, bytes;
};

struct match_header {
    struct match_field source, tag, length;
    uint8_t length_counts; /* bytes that the header's length counts beside the payload, e.g. itself */
    bool big_endian;
};

struct match_envelope {
    int32_t source, tag;
    uint64_t length; /* of the payload */
};

/* Tern's own eager header: two words of this machine, tag and source in the second; the length is the wire's. */
extern const struct match_header match_header_own;

/*
 * Reads the envelope of a message that begins with the n bytes at `header`. TERN_ERR_ARG, with words and *out
 * untouched, if a field lies beyond them, a width is no such, a length is shorter than what it counts, or source or tag
 * do not fit 31 bits.
 */
int match_header_read(const struct match_header *, const void *header, size_t n, struct match_envelope *out);

#endif
