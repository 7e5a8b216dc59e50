/*
 * message.h - the messages of the roots of two groups to each other, as bytes.
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
#ifndef TERN_DPM_MESSAGE_H
#define TERN_DPM_MESSAGE_H

#include "transport/net_addr.h"

enum dpm_message_kind { MESSAGE_HELLO = 1, MESSAGE_TABLE, MESSAGE_NO, MESSAGE_THANKS, MESSAGE_MEET };

#define MESSAGE_WORDS 400 /* bytes of the longest words, with the final zero */
#define MESSAGE_TABLE_MAX ((uint64_t)1 << 31) /* bytes of a table */

struct dpm_message {
    enum dpm_message_kind kind;
    uint64_t ctx;
    uint64_t bytes;      /* of the table */
    const void *table;   /* NULL: it is not here */
    struct net_addr at;  /* MEET: where a connection is awaited */
    int code;            /* NO: of base/err.h */
    const char *words;
};

/* Bytes from malloc, *n_p of them. NULL: memory is out. */
void *message_write(const struct dpm_message *, size_t *n_p);

/* False: it is no message. What is read lies in the bytes. */
bool message_read(const void *bytes, size_t n, struct dpm_message *);

#endif
