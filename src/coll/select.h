/*
 * select.h - which algorithm runs, and which way a call takes inside a node. Asked in turn, the first that has an answer which
 * fits decides:
 *
 *   1. the hint tern_coll_<operation> of the communicator,
 *   2. the variable TERN_COLL_<OPERATION>,
 *   3. the table in the file TERN_COLL_TABLE,
 *   4. the built-in table, which has an algorithm for everything.
 *
 * An algorithm in 1 or 2 means messages, inside a node too. A way that cannot be taken leaves it to the next one. TERN_COLL_PAIRS, if
 * set, says from how many bytes on nonblocking calls copy once, whatever the tables say of that.
 *
 * All ranks must choose alike, so nothing local (buffers, datatypes' gaps, which rank) takes part, and ranks compare a
 * number that stands for 2, 3 and the variables that act on programs (coll_select_digest).
 *
 * Threads: coll_select by any after coll_select_open.
 */
#ifndef TERN_COLL_SELECT_H
#define TERN_COLL_SELECT_H

#include "coll/table.h"
#include "obj/info.h"

/* Reads the user's table and the variables; TERN_ERR_ARG with words when the file cannot be read or is wrong. */
int coll_select_open(void);
void coll_select_close(void);

/* Ranks with the same number choose alike, but for hints. */
uint64_t coll_select_digest(void);

/* The hints of a communicator, by operation; alg is -1 where there is none. */
void coll_select_hints(const struct info *hints, struct coll_choice wanted[COLL_KINDS]);

/* Is `key` the hint of an operation, with a value that names an algorithm or way of it? */
bool coll_select_hint(const char *key, const char *value);

/*
 * Sets s->alg, s->segment and s->radix; everything else of the shape is given. `wanted`: the communicator's hints, NULL
 * for none. 0, or TERN_ERR_NOMEM with words: the first choice for an operation reads its built-in rules.
 */
int coll_select(struct coll_shape *s, const struct coll_choice wanted[COLL_KINDS]);

/* Operations for which the user wants an algorithm of his choice, by hint or variable; bit k is that of kind k. */
uint32_t coll_select_forced(const struct coll_choice wanted[COLL_KINDS]);
static_assert(COLL_KINDS <= 32, "a bit each");

/* Operations of whose ways, in blocking calls or in nonblocking ones, a hint, a variable or the user's table says something. All others
 * go through the slots if they can. */
uint32_t coll_select_asked(const struct coll_choice wanted[COLL_KINDS], bool blocking);

/*
 * The ways of such a call inside a node in the order in which to try them. s->bytes: those of the longest block where all ranks
 * know it. No algorithm is asked for by hint or variable. 0, or TERN_ERR_NOMEM as above.
 */
int coll_select_ways(const struct coll_shape *s, bool blocking, const struct coll_choice wanted[COLL_KINDS], struct coll_way_list *);

/* The tables in use as text that coll_table_read takes, and the list of algorithms and ways; malloc'ed, NULL when memory is out. */
char *coll_select_print(void);
char *coll_select_print_algs(void);

#endif
