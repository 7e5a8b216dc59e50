/*
 * table.h - what one group sends to the other one when they connect: who its members are and how they are reached.
 *
 *     size, rank of the root, jobs, runs      4 each
 *     padding                                 4, and so many bytes: TERN_DPM_PADDING, for measurements
 *     each job      name, size, public key    text, 4, 32   (keys.h)
 *     each run      job, first rank, count    4 each        members that follow each other in their job as in the group
 *     cards         by rank in the group                    a pack (proc/card_pack.h)
 *
 * Numbers and texts as in proc/ask.h. A group that is the world of a job has one run; cards take what those of a node do not have in
 * common. Each job is named once, and each process.
 *
 * Functions that return int return 0 or a code with words. Threads: any.
 */
#ifndef TERN_DPM_TABLE_H
#define TERN_DPM_TABLE_H

#include "base/crypto.h"
#include "proc/card_pack.h"
#include "proc/jobs.h"

struct table_job {
    const char *name;
    uint32_t size;
    const uint8_t *public; /* CRYPTO_KEY bytes */
};

/* ---- writing ---- */

/* A member. `node`: equal for processes of one job that are on one node, whose cards are probably alike. */
struct table_entry {
    uint32_t job, rank, node, card_bytes; /* job: its place in the list of jobs */
    const void *card;
};

/* *bytes_p is malloc'ed, of *n_p bytes, with so many bytes of padding. Takes time in proportion to n. */
int table_write(const struct table_job *, uint32_t jobs, const struct table_entry *, uint32_t n, uint32_t root, uint32_t padding,
                void **bytes_p, size_t *n_p);

/* ---- reading ---- */

struct table {
    uint32_t size, root, jobs, runs; /* root: its rank in the group */
    struct table_job *job;           /* malloc'ed */
    const uint8_t *run, *cards;      /* in the bytes that were opened */
    size_t card_bytes;
};

struct table_run {
    uint32_t job, first, count;
};

/* Opens a table that another process has sent; `bytes` stay. All its limits are checked. TERN_ERR_SYSTEM: it is none. Takes no more
 * memory than three times `n`, meanwhile. table_close frees what it has. */
int table_open(struct table *, const void *bytes, size_t n);
void table_close(struct table *);

struct table_run table_run(const struct table *, uint32_t i);

/* The name of the root: an order among tables. */
struct proc_name table_root(const struct table *);

#endif
