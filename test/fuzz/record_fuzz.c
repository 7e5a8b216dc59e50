/*
 * record_fuzz.c - streams of sealed records (src/transport/tcp/record.h), random or changed on their way, in pieces of
 * any length: what opens is the beginning of what was sealed, and nothing is read or written beyond its memory.
 */
#include "fuzz.h"

#include "transport/tcp/record.h"

#include <stdlib.h>
#include <string.h>

enum { RECORDS = 6, LENGTH = 300 };

static const uint8_t key[CRYPTO_KEY] = "a key of thirty-two bytes, no m";
static uint8_t stream[RECORDS * (LENGTH + RECORD_MORE)], plain[RECORDS * LENGTH];

static void *copy_of(const void *bytes, size_t n)
{
    void *own = malloc(n + !n);
    if (!own) abort();
    return memcpy(own, bytes, n);
}

/* Opens the first record of n bytes, into memory of its size. False: there is none. */
static bool open_first(struct record_way *w, const uint8_t *bytes, size_t n, size_t *size, size_t at)
{
    uint8_t *own = copy_of(bytes, n);
    bool whole = record_size(own, n, size) && *size && *size <= n;
    bool good = false;
    if (whole) {
        uint8_t *back = malloc(*size - RECORD_MORE);
        if (!back) abort();
        good = record_open(w, back, own, *size);
        FUZZ_RULE(!good || !memcmp(back, plain + at, *size - RECORD_MORE), "what opens is what was sealed");
        free(back);
    }
    free(own);
    return good;
}

/* How many bytes of `plain` come out of n bytes of the stream. */
static size_t receive(size_t n)
{
    struct record_way in = {.crypto = &tern_crypto_sodium};
    size_t at = 0, opened = 0, size;
    memcpy(in.key, key, sizeof in.key);
    while (at < n && open_first(&in, stream + at, n - at, &size, opened)) {
        at += size;
        opened += size - RECORD_MORE;
    }
    return opened;
}

/* Bytes of the stream; ends[i] is where record i ends in it. */
static size_t fill(size_t ends[RECORDS], size_t *total)
{
    struct record_way out = {.crypto = &tern_crypto_sodium};
    size_t n = 0;
    memcpy(out.key, key, sizeof out.key);
    fuzz_bytes(plain, sizeof plain);
    *total = 0;
    for (int i = 0; i < RECORDS; i++) {
        size_t length = 1 + fuzz_below(LENGTH);
        n += record_seal(&out, stream + n, plain + *total, length);
        *total += length;
        ends[i] = n;
    }
    return n;
}

static void garbage(void)
{
    size_t n = fuzz_below(sizeof stream);
    fuzz_bytes(stream, n);
    if (n > 3 && fuzz_below(4)) stream[2] = stream[3] = 0; /* a length that can be */
    FUZZ_RULE(receive(n) == 0, "random bytes do not open");
}

static void cut(void)
{
    size_t ends[RECORDS], total, n = fill(ends, &total), at = fuzz_below(n + 1), whole = 0;
    for (int i = 0; i < RECORDS; i++)
        if (ends[i] <= at) whole = ends[i] - (size_t)(i + 1) * RECORD_MORE;
    FUZZ_RULE(receive(at) == whole, "of a stream that is cut all whole records open");
}

static void changed(void)
{
    size_t ends[RECORDS], total, n = fill(ends, &total), first = fuzz_below(RECORDS),
                                 begin = first ? ends[first - 1] : 0;
    fuzz_mutate(stream + begin, ends[first] - begin);
    FUZZ_RULE(receive(n) == begin - first * RECORD_MORE, "nothing opens from a changed record on");
}

/* In the place of a record lies another one of the same stream. */
static void moved(void)
{
    size_t ends[RECORDS], total, place = fuzz_below(RECORDS - 1),
                                 other = (place + 1 + fuzz_below(RECORDS - 1)) % RECORDS;
    fill(ends, &total);
    size_t begin = place ? ends[place - 1] : 0, from = other ? ends[other - 1] : 0, size = ends[other] - from;
    uint8_t *copy = copy_of(stream + from, size);
    memcpy(stream + begin, copy, size);
    free(copy);
    FUZZ_RULE(receive(begin + size) == begin - place * RECORD_MORE, "a record opens in its place only");
}

int main(void)
{
    static const struct fuzz_part parts[] = {
        {"random bytes are no record", garbage, 1},
        {"a stream that was cut", cut, 1},
        {"a record that was changed", changed, 1},
        {"a record in another's place", moved, 1},
    };
    if (!tern_crypto_sodium.start()) return 1;
    return fuzz_main(parts, 4, 20000);
}
