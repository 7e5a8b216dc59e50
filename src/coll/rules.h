/* rules.h - the built-in rules of collectives, by operation, as text in the form of table.h; ways first, then algorithms. */
#ifndef TERN_COLL_RULES_H
#define TERN_COLL_RULES_H

#include "coll/alg/alg.h"

extern const char *const coll_rules[COLL_KINDS];

#endif
