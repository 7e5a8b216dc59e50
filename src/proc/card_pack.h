/*
 * card_pack.h - the cards of many processes in little memory: those of processes on one node differ in a few bytes.
 *
 *     a card in a pack    base     4   the place of a whole card, from the pack's beginning: its own, or that of an earlier one
 *                         whole:   length 2, the card
 *                         others:  pieces 1, and for each: skip 1, length 1, bytes
 *
 * Numbers in network order. A card that is not whole is as long as its base, and differs from it in the pieces: `skip` bytes are as
 * there, `length` bytes follow. So any card is found from its place, without the others but its base.
 *
 * A pack is sent in a table of processes (dpm/table.h), and stays as it is in the memory of those who get it: the jobs that the
 * processes belong to refer to places in it (job_card_put_packed).
 *
 * Threads: a writer is one thread's; a pack does not change, and is referred to by any.
 */
#ifndef TERN_PROC_CARD_PACK_H
#define TERN_PROC_CARD_PACK_H

#include "proc/ask.h"

#define CARD_MAX 512 /* bytes of the longest card */
#define CARD_PACK_EXTRA 6 /* a card takes at most so many bytes more than its own */

/* ---- writing ---- */

/*
 * Appends a card to what will be a pack, which begins at byte `begin` of the output. base: the place of a whole card that this one
 * may be like, with its bytes; NULL: there is none. Returns the place of the new card; *whole: it is whole, and may be a base.
 * `o->bad` if there was no room.
 */
struct card_base {
    uint32_t place, n;
    const void *card; /* the caller's */
};
uint32_t card_pack_put(struct ask_out *o, size_t begin, const struct card_base *base, const void *card, size_t n, bool *whole);

/* ---- reading ---- */

/* Checks that n bytes begin with `cards` cards; how many bytes these take, 0: they do not. Takes memory of 4 bytes for each whole one
 * meanwhile. */
size_t card_pack_check(const void *bytes, size_t n, uint32_t cards);

struct card_pack;

/* Of bytes that card_pack_check has found right: they are at `begin` of `memory`, which is malloc'ed and the pack's from here on.
 * NULL with words: memory is out; then it stays the caller's. The reference is the caller's. */
struct card_pack *card_pack_open(void *memory, const void *begin, size_t n);
struct card_pack *card_pack_ref(struct card_pack *);
void card_pack_unref(struct card_pack *);

/* The card at a place, copied; its length. */
size_t card_pack_get(const struct card_pack *, uint32_t place, uint8_t card[CARD_MAX]);

/* The place of the card behind that one. */
uint32_t card_pack_next(const struct card_pack *, uint32_t place);

#endif
