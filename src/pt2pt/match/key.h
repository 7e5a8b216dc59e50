/*
 * key.h - a match envelope in one 64-bit word, source in the upper half and
 * tag in the lower one, and what "fits" means for it. (The third integer of the
 * published envelope, the context, is the struct match that the entry is in.)
 *
 * Of the two directions of matching, a receive looks for a message by (key, mask):
 * a wildcard is a half that the mask leaves out. A message looks for a receive,
 * whose own key may hold wildcards, by (key, wild): each half must equal one of
 * the two. The vector forms are in scan.h.
 */
#ifndef TERN_PT2PT_MATCH_KEY_H
#define TERN_PT2PT_MATCH_KEY_H

#include "base/compiler.h"

#define MATCH_ANY_SOURCE (-1) /* MPI_ANY_SOURCE of the standard ABI */
#define MATCH_ANY_TAG (-2)    /* MPI_ANY_TAG; takes tags >= 0 only */

/* The key of a slot without an entry. No message has this source or tag, and as the tag is negative no wildcard fits.
 */
#define MATCH_HOLE UINT64_C(0x8000000080000000)

static inline uint64_t match_key(int src, int tag) { return (uint64_t)(uint32_t)src << 32 | (uint32_t)tag; }
static inline int match_key_src(uint64_t key) { return (int)(uint32_t)(key >> 32); }
static inline int match_key_tag(uint64_t key) { return (int)(uint32_t)key; }

/* What a receive looks for. For MATCH_ANY_TAG the mask keeps the sign of the tag, which must be clear. */
static inline uint64_t match_sought_key(int src, int tag) { return match_key(src, tag == MATCH_ANY_TAG ? 0 : tag); }

static inline uint64_t match_sought_mask(int src, int tag)
{
    return (src == MATCH_ANY_SOURCE ? 0 : UINT64_C(0xffffffff00000000)) |
           (tag == MATCH_ANY_TAG ? 0x80000000 : 0xffffffff);
}

static inline bool match_fits_masked(uint64_t k, uint64_t key, uint64_t mask) { return !((k ^ key) & mask); }

/* The other key that a receive for a message of this tag may have. */
static inline uint64_t match_wild_key(int tag) { return match_key(MATCH_ANY_SOURCE, tag >= 0 ? MATCH_ANY_TAG : tag); }

static inline bool match_fits_either(uint64_t k, uint64_t key, uint64_t wild)
{
    uint64_t a = k ^ key, b = k ^ wild;
    return (!(a >> 32) | !(b >> 32)) & (!(uint32_t)a | !(uint32_t)b);
}

#endif
