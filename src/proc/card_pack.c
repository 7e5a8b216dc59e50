/* card_pack.c - see card_pack.h. */
#include "proc/card_pack.h"
#include "base/err.h"

#include <stdatomic.h>
#include <stdlib.h>

/* ---- writing ---- */

/* Equal bytes between two pieces that cost more than they save. */
#define APART 2

static void put8(struct ask_out *o, size_t v)
{
    uint8_t byte = (uint8_t)v;
    ask_put(o, &byte, 1);
}

/* The next piece in which a differs from b, from `at` on: its end; *begin_p: where it begins, n: there is none. */
static size_t next_piece(const uint8_t *a, const uint8_t *b, size_t at, size_t n, size_t *begin_p)
{
    size_t begin = at, end, same = 0;
    while (begin < n && a[begin] == b[begin]) begin++;
    for (end = begin; end < n && same <= APART; end++) same = a[end] == b[end] ? same + 1 : 0;
    *begin_p = begin;
    return end - same;
}

/* The pieces; false: they take as much as the whole card, or are too many or too far apart. */
static bool put_pieces(struct ask_out *o, const uint8_t *card, const uint8_t *base, size_t n)
{
    size_t count_at = o->n, pieces = 0, begin;
    put8(o, 0);
    for (size_t at = 0, end; end = next_piece(card, base, at, n, &begin), begin < n; at = end) {
        if (begin - at > 255 || end - begin > 255 || ++pieces > 255 || o->n - count_at + 2 + end - begin > n) return false;
        put8(o, begin - at);
        put8(o, end - begin);
        ask_put(o, card + begin, end - begin);
    }
    if (o->bad) return false;
    o->bytes[count_at] = (uint8_t)pieces;
    return true;
}

uint32_t card_pack_put(struct ask_out *o, size_t begin, const struct card_base *base, const void *card, size_t n, bool *whole)
{
    struct ask_out at = *o;
    uint32_t place = (uint32_t)(o->n - begin);
    *whole = false;
    if (base && base->n == n) {
        ask_put32(o, base->place);
        if (put_pieces(o, card, base->card, n)) return place;
        *o = at;
    }
    *whole = true;
    ask_put32(o, place);
    put8(o, n >> 8);
    put8(o, n);
    ask_put(o, card, n);
    return place;
}

/* ---- reading ---- */

static size_t get8(struct ask_in *in)
{
    const uint8_t *byte = ask_get(in, 1);
    return byte ? *byte : 0;
}

/* The pieces of a card of n bytes, into `card` unless it is NULL. */
static void get_pieces(struct ask_in *in, uint8_t *card, size_t n)
{
    size_t at = 0;
    for (size_t pieces = get8(in); pieces && !in->bad; pieces--) {
        at += get8(in);
        size_t length = get8(in);
        const void *bytes = ask_get(in, length);
        if (at + length > n) in->bad = true;
        if (bytes && card && !in->bad) memcpy(card + at, bytes, length);
        at += length;
    }
}

/* The whole card at a place; its length. */
static size_t get_whole(struct ask_in *in, const void **card_p)
{
    size_t n = get8(in) << 8;
    n |= get8(in);
    *card_p = n && n <= CARD_MAX ? ask_get(in, n) : NULL;
    if (!*card_p) in->bad = true;
    return n;
}

/* Places of whole cards, in order, and how long each is. */
struct wholes {
    uint32_t *place;
    size_t n, room;
};

static bool add_whole(struct wholes *w, uint32_t place)
{
    if (w->n == w->room) {
        size_t room = w->room ? 2 * w->room : 64;
        uint32_t *more = realloc(w->place, room * sizeof *more);
        if (!more) return false;
        w->place = more;
        w->room = room;
    }
    w->place[w->n++] = place;
    return true;
}

static bool is_whole(const struct wholes *w, uint32_t place)
{
    size_t low = 0, high = w->n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (w->place[mid] == place) return true;
        if (w->place[mid] < place) low = mid + 1;
        else high = mid;
    }
    return false;
}

/* One card; false: it is wrong, or memory is out. */
static bool check_card(struct ask_in *in, const uint8_t *begin, struct wholes *w)
{
    const void *card;
    uint32_t place = (uint32_t)(in->at - begin), base = ask_get32(in);
    if (in->bad) return false;
    if (base == place) {
        get_whole(in, &card);
        return !in->bad && add_whole(w, place);
    }
    if (base > place || !is_whole(w, base)) return false;
    struct ask_in whole = ask_of(begin + base + 4, (size_t)(in->at - begin) - base - 4);
    get_pieces(in, NULL, get_whole(&whole, &card));
    return !in->bad;
}

size_t card_pack_check(const void *bytes, size_t n, uint32_t cards)
{
    struct ask_in in = ask_of(bytes, n);
    struct wholes w = {0};
    bool right = n < UINT32_MAX;
    for (uint32_t i = 0; i < cards && right; i++) right = check_card(&in, bytes, &w);
    free(w.place);
    return right ? (size_t)(in.at - (const uint8_t *)bytes) : 0;
}

struct card_pack {
    _Atomic uint32_t refs;
    const uint8_t *bytes;
    size_t n;
    void *memory;
};

struct card_pack *card_pack_open(void *memory, const void *begin, size_t n)
{
    struct card_pack *p = malloc(sizeof *p);
    if (!p) {
        err_set(TERN_ERR_NOMEM, "no memory for the cards of other processes");
        return NULL;
    }
    *p = (struct card_pack){.refs = 1, .bytes = begin, .n = n, .memory = memory};
    return p;
}

struct card_pack *card_pack_ref(struct card_pack *p)
{
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

void card_pack_unref(struct card_pack *p)
{
    if (atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) > 1) return; /* the last one sees what all have done */
    free(p->memory);
    free(p);
}

static struct ask_in at_place(const struct card_pack *p, uint32_t place) { return ask_of(p->bytes + place, p->n - place); }

/* The card at a place, and the reader behind it. */
static size_t read_card(const struct card_pack *p, uint32_t place, struct ask_in *in, uint8_t *card)
{
    const void *whole;
    *in = at_place(p, place);
    uint32_t base = ask_get32(in);
    struct ask_in of_base = at_place(p, base);
    (void)ask_get32(&of_base);
    size_t n = get_whole(base == place ? in : &of_base, &whole);
    if (card) memcpy(card, whole, n);
    if (base != place) get_pieces(in, card, n);
    return n;
}

size_t card_pack_get(const struct card_pack *p, uint32_t place, uint8_t card[CARD_MAX])
{
    struct ask_in in;
    return read_card(p, place, &in, card);
}

uint32_t card_pack_next(const struct card_pack *p, uint32_t place)
{
    struct ask_in in;
    read_card(p, place, &in, NULL);
    return (uint32_t)(in.at - p->bytes);
}
