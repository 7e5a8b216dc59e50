/*
 * scan.h - the searches over envelopes, in scalar and vector form (LHS-7,
 * LHS-23). All forms give the same answer; one is chosen at start.
 *
 * Shared contract: `keys` begins at a cache line and whole cache lines may be
 * read; keys before `from` in its line, and from `to` on in the last line, are
 * holes or known not to match. Returned is the lowest index in from..to-1 that
 * matches, `to` if none does.
 */
#ifndef TERN_PT2PT_MATCH_SCAN_H
#define TERN_PT2PT_MATCH_SCAN_H

#include "base/compiler.h"

struct match_scan {
    const char *name;   /* as TERN_MATCH_VECTOR spells it */
    bool (*here)(void); /* can this processor run it? */

    /* Length from which on a queue of entries of many sources is worth an index by source (groups.h): where, in
     * bench/match_bench, drain_groups64 becomes cheaper than drain_groups1. */
    uint32_t group_from;

    /* (keys[i] ^ key) & mask is zero */
    uint32_t (*masked)(const uint64_t *keys, uint32_t from, uint32_t to, uint64_t key, uint64_t mask);

    /* each half of keys[i] is that of key or that of wild */
    uint32_t (*either)(const uint64_t *keys, uint32_t from, uint32_t to, uint64_t key, uint64_t wild);
};

extern const struct match_scan match_scan_scalar;
#if defined(__x86_64__)
extern const struct match_scan match_scan_avx2, match_scan_avx512;
#endif

/* All forms built for this architecture, slowest first, then NULL. */
extern const struct match_scan *const match_scan_forms[];

/* The form in use; scalar until match_scan_choose. */
extern const struct match_scan *match_scan;

/* Takes the form called `name`, or the fastest for "auto". TERN_ERR_UNSUPPORTED, in words, if it is not to be had here.
 */
int match_scan_choose(const char *name);

#endif
