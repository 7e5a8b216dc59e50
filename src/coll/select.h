/*
 * select.h - which algorithm runs: a table over (operation, ranks, bytes), overridden
 * for each operation by TERN_COLL_<OPERATION>.
 *
 * All ranks must choose alike, so nothing local (buffers, datatypes' gaps, which rank)
 * takes part.
 */
#ifndef TERN_COLL_SELECT_H
#define TERN_COLL_SELECT_H

#include "coll/alg.h"

/* Sets s->alg and s->segment; everything else of the shape is given. */
void coll_select(struct coll_shape *s);

/* The table as text, one line a rule, malloc'ed; NULL when memory is out. */
char *coll_select_print(void);

#endif
