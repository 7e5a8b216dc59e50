/*
 * say.h - what the roots of two groups say to each other, as bytes.
 *
 *     HELLO    1, context 8, bytes of the table 8, the table unless it goes over a connection
 *     TABLE    2, the same, with the table
 *     NO       3, code 4, words
 *     THANKS   4
 *     MEET     5, context 8, bytes of the table 8, address: family 4, port 4, bytes 16
 *
 * Each begins with its number, 4 bytes. Numbers and texts as in proc/ask.h.
 *
 * Threads: any.
 */
#ifndef TERN_DPM_SAY_H
#define TERN_DPM_SAY_H

#include "transport/net_addr.h"

enum say_kind { SAY_HELLO = 1, SAY_TABLE, SAY_NO, SAY_THANKS, SAY_MEET };

#define SAY_WORDS 400 /* bytes of the longest words, with the final zero */
#define SAY_TABLE_MAX ((uint64_t)1 << 31) /* bytes of a table */

struct say {
    enum say_kind kind;
    uint64_t ctx;
    uint64_t bytes;      /* of the table */
    const void *table;   /* NULL: it is not here */
    struct net_addr at;  /* MEET: where a connection is awaited */
    int code;            /* NO: of base/err.h */
    const char *words;
};

/* *bytes_p is malloc'ed, of *n_p bytes. NULL: memory is out. */
void *say_write(const struct say *, size_t *n_p);

/* False: it is nothing that is said. What is read lies in the bytes. */
bool say_read(const void *bytes, size_t n, struct say *);

#endif
