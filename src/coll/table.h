/*
 * table.h - tables of choices: which algorithm runs, as rules in text.
 *
 *   OPERATION [near|oversubscribed|far|leaders|domain_leaders] [commutes|ordered] [ranks N | ranks N-M | ranks N+]
 *             [nodes ...] [domains ...] [from BYTES] [below BYTES] : ALGORITHM [radix N] [segment BYTES] [messages]
 *
 * One rule a line; what is behind # is a comment. Rules are read from top to bottom, and the first one that fits
 * decides. Bytes are those of coll_shape.bytes; `near`: the ranks share memory; `oversubscribed`: and cores; `far`: some messages cross a network;
 * `leaders`: the same, with several ranks on some node; `domain_leaders`: some node's ranks are known to be in several
 * caches or NUMA domains, with several ranks in some; nodes and domains are counted over all ranks, a node where nothing
 * is known of domains being one. Rules whose algorithm is for two groups are asked for
 * intercommunicators, all others for the rest; ranks are those of both groups then, bytes those of the larger direction,
 * and nodes and domains do not count. The built-in table is in this form, the command tern_info --coll prints
 * it, TERN_COLL_TABLE names a file of it, and the command tern_tune writes one.
 *
 * `messages`: blocking calls that the rule is for go by messages even where the ranks of one node have ways of their own
 * (node.h), which come before all rules otherwise. Only in a user's table.
 *
 * Threads: one at a time per table.
 */
#ifndef TERN_COLL_TABLE_H
#define TERN_COLL_TABLE_H

#include "coll/alg/alg.h"

enum coll_place {
    COLL_PLACE_ANY,
    COLL_PLACE_NEAR,
    COLL_PLACE_OVERSUBSCRIBED,
    COLL_PLACE_FAR,
    COLL_PLACE_LEADERS,
    COLL_PLACE_DOMAIN_LEADERS
};
enum coll_order { COLL_ORDER_ANY, COLL_ORDER_COMMUTES, COLL_ORDER_KEPT };

#define COLL_RADIX_MAX 64

/* What is chosen. Zeros leave it to others. */
struct coll_choice {
    int alg;         /* index in coll_algs; -1: nothing is chosen */
    int32_t radix;   /* 2 to COLL_RADIX_MAX */
    int64_t segment; /* bytes */
    bool messages;   /* of a rule: instead of the node's own ways, too */
};

struct coll_span {
    int32_t min, max;
};

struct coll_rule {
    uint8_t kind, place, order; /* enum coll_kind, coll_place, coll_order */
    struct coll_span ranks, nodes, domains;
    int64_t from, below; /* bytes: from <= n < below */
    struct coll_choice use;
    int line; /* in the text it came from */
};

struct coll_table {
    struct coll_rule *rule;
    size_t n;
};

/*
 * Reads rules from text. `source`: where it comes from, for the words of TERN_ERR_ARG: an unknown word, a number that is
 * none, a rule that can never decide since an earlier one does. TERN_ERR_NOMEM. The table is empty after an error.
 */
int coll_table_read(struct coll_table *, const char *text, const char *source);

/* The same from a file. */
int coll_table_load(struct coll_table *, const char *path);
void coll_table_free(struct coll_table *);

/* The first rule for this shape whose algorithm fits it; NULL: none. */
const struct coll_rule *coll_table_find(const struct coll_table *, const struct coll_shape *);

/* The rules as text that can be read again; malloc'ed, NULL when memory is out. */
char *coll_table_print(const struct coll_table *);

/* What a hint or the right side of a rule says: "chain segment 16K". TERN_ERR_ARG with words that begin with `source`. */
int coll_choice_read(enum coll_kind, const char *text, const char *source, struct coll_choice *);

#endif
