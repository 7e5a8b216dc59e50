/*
 * table.h - what one group tells the other one when they connect: who its members are and how they are reached.
 *
 *     its jobs: name, size, public key (keys.h)
 *     its members by rank: job, rank in it, card (transport/peer.h)
 *
 * Numbers in network order (proc/ask.h). Made from what its members have told the root; read, with all its limits checked, by
 * each member of the other group.
 *
 * Functions that return int return 0 or a code with words. Threads: any.
 */
#ifndef TERN_DPM_TABLE_H
#define TERN_DPM_TABLE_H

#include "obj/comm.h"
#include "proc/ask.h"
#include "transport/peer.h"

struct table_job {
    const char *name;
    uint32_t size;
    const uint8_t *public;
};

struct table {
    uint32_t size, root, jobs; /* members, the rank of the root among them, and how many jobs */
    struct table_job *job; /* malloc'ed */
    struct ask_in members; /* for table_member */
};

/* A member, as table_member gives it. */
struct table_member {
    uint32_t job, rank;
    const void *card;
    uint32_t card_bytes;
};

/*
 * Collective over the intracommunicator: the root gets the table of its group, malloc'ed. All others get nothing, and the code of
 * what failed with them; the root fails if anybody has.
 */
int table_make(struct comm *, int root, void **bytes_p, size_t *n_p);

/* Opens a table that another process has sent; `bytes` stay. TERN_ERR_SYSTEM: it is none. table_close frees what it has. */
int table_open(struct table *, const void *bytes, size_t n);
void table_close(struct table *);

/* The next member, from rank 0 on; table_open has seen that all are right. */
void table_member(struct table *, struct table_member *);

/* The name of the root: an order among tables. */
struct proc_name table_root(const struct table *);

#endif
