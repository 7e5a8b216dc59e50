/*
 * scan.c - the scalar search, and the choice among all forms.
 */
#include "pt2pt/match/scan.h"
#include "base/err.h"
#include "pt2pt/match/key.h"

#include <string.h>

static bool always(void) { return true; }

static uint32_t scalar_masked(const uint64_t *keys, uint32_t from, uint32_t to, uint64_t key, uint64_t mask)
{
    uint32_t i = from;
    for (; i + 4 <= to; i += 4) {
        bool a = match_fits_masked(keys[i], key, mask), b = match_fits_masked(keys[i + 1], key, mask);
        bool c = match_fits_masked(keys[i + 2], key, mask), d = match_fits_masked(keys[i + 3], key, mask);
        if (a | b | c | d) return i + (a ? 0 : b ? 1 : c ? 2 : 3);
    }
    while (i < to && !match_fits_masked(keys[i], key, mask)) i++;
    return i;
}

static uint32_t scalar_either(const uint64_t *keys, uint32_t from, uint32_t to, uint64_t key, uint64_t wild)
{
    while (from < to && !match_fits_either(keys[from], key, wild)) from++;
    return from;
}

const struct match_scan match_scan_scalar = {
    .name = "scalar", .here = always, .group_from = 256, .masked = scalar_masked, .either = scalar_either};

const struct match_scan *const match_scan_forms[] = {&match_scan_scalar,
#if defined(__x86_64__)
                                                     &match_scan_avx2, &match_scan_avx512,
#endif
                                                     NULL};

const struct match_scan *match_scan = &match_scan_scalar;

int match_scan_choose(const char *name)
{
    const struct match_scan *best = NULL;
    bool automatic = !strcmp(name, "auto");
    for (const struct match_scan *const *form = match_scan_forms; *form; form++)
        if ((automatic || !strcmp(name, (*form)->name)) && (*form)->here()) best = *form;
    if (!best)
        return err_set(TERN_ERR_UNSUPPORTED,
                       "variable TERN_MATCH_VECTOR: this processor, or this build, cannot run '%s'; "
                       "'auto' takes the fastest search there is",
                       name);
    match_scan = best;
    return 0;
}
