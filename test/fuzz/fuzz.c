/* fuzz.c - see fuzz.h. */
#include "fuzz.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t fuzz_seed;
static uint64_t state;
static long failures;

uint64_t fuzz_random(void) /* splitmix64 */
{
    uint64_t x = state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t fuzz_below(uint64_t n) { return fuzz_random() % n; }

void fuzz_bytes(void *bytes, size_t n)
{
    for (size_t at = 0; at < n; at += 8) {
        uint64_t r = fuzz_random();
        memcpy((char *)bytes + at, &r, n - at < 8 ? n - at : 8);
    }
}

static void change(uint8_t *at, size_t room)
{
    static const uint8_t ends[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    size_t run = 1 + fuzz_below(room < 8 ? room : 8);
    switch (fuzz_below(3)) {
    case 0:
        *at ^= (uint8_t)(1 << fuzz_below(8));
        break;
    case 1:
        memset(at, ends[fuzz_below(sizeof ends)], run);
        break;
    default:
        fuzz_bytes(at, run);
        break;
    }
}

void fuzz_mutate(uint8_t *bytes, size_t n)
{
    uint8_t *before = malloc(n);
    if (!n || !before) abort();
    memcpy(before, bytes, n);
    do {
        for (uint64_t k = 1 + fuzz_below(4); k; k--) {
            size_t at = fuzz_below(n);
            change(bytes + at, n - at);
        }
    } while (!memcmp(before, bytes, n));
    free(before);
}

void fuzz_failed(const char *rule, int line)
{
    if (failures++ < 10) printf("# seed %llu: %s (line %d)\n", (unsigned long long)fuzz_seed, rule, line);
}

bool fuzz_ok(void) { return !failures; }

static uint64_t number_from(const char *name, uint64_t dflt)
{
    const char *word = getenv(name);
    return word ? strtoull(word, NULL, 0) : dflt;
}

/* What the C library keeps for the next allocations counts as in use: less than this. */
#define KEPT 524288u

static void run_part(const struct fuzz_part *part, uint64_t first, uint64_t cases)
{
    struct mallinfo2 before = mallinfo2(); /* zeros under a sanitizer, which looks for leaks itself */
    for (fuzz_seed = first; fuzz_seed < first + cases && failures < 10; fuzz_seed++) {
        state = fuzz_seed * 0xd1342543de82ef95u;
        part->run();
    }
    struct mallinfo2 after = mallinfo2();
    if (after.uordblks + after.hblkhd > before.uordblks + before.hblkhd + KEPT)
        fuzz_failed("memory is left behind", __LINE__);
}

int fuzz_main(const struct fuzz_part *parts, unsigned n, uint64_t cases)
{
    uint64_t first = number_from("TERN_FUZZ_SEED", (uint64_t)time(NULL) * 1000003u);
    bool bad = false;
    cases = number_from("TERN_FUZZ_CASES", cases);
    printf("1..%u\n# TERN_FUZZ_SEED=%llu TERN_FUZZ_CASES=%llu\n", n, (unsigned long long)first,
           (unsigned long long)cases);
    for (unsigned i = 0; i < n; i++) {
        uint64_t own = cases / (parts[i].each ? parts[i].each : 1);
        failures = 0;
        run_part(&parts[i], first, own ? own : 1);
        printf("%s %u - %s\n", failures ? "not ok" : "ok", i + 1, parts[i].name);
        bad |= failures != 0;
    }
    return bad;
}
