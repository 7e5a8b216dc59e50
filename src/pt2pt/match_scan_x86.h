/*
 * match_scan_x86.h - the vector searches of x86-64 processors, as entries of the
 * table of forms (match_scan.c). Each is compiled for its own instruction set,
 * so the library runs on processors without it.
 */
#ifndef TERN_PT2PT_MATCH_SCAN_X86_H
#define TERN_PT2PT_MATCH_SCAN_X86_H

#include "base/compiler.h"

#if defined(__x86_64__)

bool match_scan_avx2_here(void);
uint32_t match_scan_avx2_masked(const uint64_t *keys, uint32_t from, uint32_t to, uint64_t key, uint64_t mask);
uint32_t match_scan_avx2_either(const uint64_t *keys, uint32_t from, uint32_t to, uint64_t key, uint64_t wild);
bool match_scan_avx512_here(void);
uint32_t match_scan_avx512_masked(const uint64_t *keys, uint32_t from, uint32_t to, uint64_t key, uint64_t mask);
uint32_t match_scan_avx512_either(const uint64_t *keys, uint32_t from, uint32_t to, uint64_t key, uint64_t wild);

#define MATCH_SCAN_X86                                                                                                 \
    {"avx2", match_scan_avx2_here, match_scan_avx2_masked, match_scan_avx2_either},                                    \
        {"avx512", match_scan_avx512_here, match_scan_avx512_masked, match_scan_avx512_either},
#else
#define MATCH_SCAN_X86
#endif

#endif
