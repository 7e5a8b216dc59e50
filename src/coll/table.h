/*
 * table.h - tables of choices: which algorithm runs, and which way a call takes inside a node, as rules in text.
 *
 *   OPERATION [near|oversubscribed|far|leaders|domain_leaders] [blocking|nonblocking] [commutes|ordered]
 *             [ranks N | ranks N-M | ranks N+] [nodes ...] [domains ...] [from BYTES] [below BYTES] : CHOICE
 *
 *   CHOICE:   an algorithm   NAME [radix N] [segment BYTES] [messages]
 *             a way          slots | wide [slices N] | copy_once | messages          (way.h)
 *
 * One rule a line; what is behind # is a comment. Rules are read from top to bottom, and the first one that fits
 * decides. Bytes are those of coll_shape.bytes; `near`: the ranks share memory; `oversubscribed`: and cores; `far`: some
 * messages cross a network; `leaders`: the same, with several ranks on some node; `domain_leaders`: some node's ranks are
 * known to be in several caches or NUMA domains, with several ranks in some; nodes and domains are counted over all ranks, a
 * node where nothing is known of domains being one. Rules whose algorithm is for two groups are asked for
 * intercommunicators, all others for the rest; ranks are those of both groups then, bytes those of the larger direction,
 * and nodes and domains do not count. The built-in table is in this form, the command tern_info --coll prints
 * it, TERN_COLL_TABLE names a file of it, and the command tern_tune writes one.
 *
 * Algorithms and ways are chosen apart from each other. The algorithm, for all that goes by messages, is that of the first rule
 * which names one that fits. Inside a node a call takes the first way that it can take of those which rules name for it. Behind the
 * rule `: messages`, and behind all rules, come messages. `blocking`, `nonblocking`: the calls that a way is for. Where a way is
 * chosen, the bytes of allgatherv and reduce_scatter are those of the longest block.
 *
 * `slices N`: only for blocks that are cut into at most N slices, unless a slice has 16 KB or more.
 *
 * `messages` behind an algorithm: if that is the first which fits, blocking calls take no way that a later rule names, but messages.
 *
 * Threads: one at a time per table.
 */
#ifndef TERN_COLL_TABLE_H
#define TERN_COLL_TABLE_H

#include "coll/alg/alg.h"
#include "coll/way.h"

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
    int alg;         /* index in coll_algs; -1: none is chosen */
    uint8_t way;     /* enum coll_way; with one there is no algorithm */
    bool messages;   /* of an algorithm: blocking calls go by messages inside a node, too */
    int32_t radix;   /* 2 to COLL_RADIX_MAX */
    int32_t slices;  /* of COLL_WAY_WIDE: as above */
    int64_t segment; /* bytes */
};

struct coll_span {
    int32_t min, max;
};

struct coll_rule {
    uint8_t kind, place, calls, order; /* enum coll_kind, coll_place, coll_calls, coll_order */
    struct coll_span ranks, nodes, domains;
    int64_t from, below; /* bytes: from <= n < below */
    struct coll_choice use;
    int line; /* in the text it came from */
};

struct coll_table {
    struct coll_rule *rule;
    size_t n, ways; /* rules; those up to the last one that is about ways */
};

/*
 * Reads rules from text. `source`: where it comes from, for the words of TERN_ERR_ARG: an unknown word, a number that is
 * none, a rule that can never decide since an earlier one does. TERN_ERR_NOMEM. The table is empty after an error.
 */
int coll_table_read(struct coll_table *, const char *text, const char *source);

/* The same from a file. */
int coll_table_load(struct coll_table *, const char *path);
void coll_table_free(struct coll_table *);

/* The first rule for this shape with an algorithm that fits it; NULL: none. */
const struct coll_rule *coll_table_find(const struct coll_table *, const struct coll_shape *);

/* Adds the ways that rules name for such a call, `blocking` or not. True: a rule says messages, so nothing else is to be asked. */
bool coll_table_ways(const struct coll_table *, const struct coll_shape *, bool blocking, struct coll_way_list *);

/* The rules as text that can be read again; malloc'ed, NULL when memory is out. */
char *coll_table_print(const struct coll_table *);

/* What a hint or the right side of a rule says: "chain segment 16K", "wide". TERN_ERR_ARG with words that begin with `source`. */
int coll_choice_read(enum coll_kind, const char *text, const char *source, struct coll_choice *);

#endif
