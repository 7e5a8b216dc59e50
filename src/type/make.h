/*
 * make.h - the steps that all type constructors share: open, then parts and
 * bounds, then m->t->layout (sizes are known not to overflow by then), then close. An error on the way is kept and
 * handed out by make_close, so that constructors read straight down.
 */
#ifndef TERN_TYPE_MAKE_H
#define TERN_TYPE_MAKE_H

#include "type/envelope.h"
#include "type/layout.h"
#include "type/type.h"

struct make {
    int rc;           /* of the first step that failed; later steps do nothing */
    const char *what; /* "vector datatype", for the words */
    struct type *t;
    struct envelope *env;
    bool any, data; /* something lies inside the bounds so far; some of it data */
    int64_t ub, true_ub;
};

/* Checks for the caller's arguments; 0 or an error in words. */
int make_check_type(const char *what, const struct type *old);
int make_check_counts(const char *what, const char *arg, int64_t n, const int64_t *counts); /* all >= 0 */

/* nargs, nparts: how many are going to be added. */
void make_open(struct make *m, const char *what, int combiner, int64_t nargs, int64_t nparts);

/* The next part in packed order, and the sums over parts. */
void make_part(struct make *m, int64_t n, struct type *type);

/* n elements of `type`, stride bytes apart from off on, widen the bounds of the new type. */
void make_bounds(struct make *m, int64_t off, int64_t n, int64_t stride, const struct type *type);

/* Sets the bounds, as with MPI_Type_create_resized. */
void make_set_bounds(struct make *m, int64_t lb, int64_t extent);

/* *product = a * b, or the error that the type is too large. For displacements and strides. */
bool make_product(struct make *m, int64_t a, int64_t b, int64_t *product);
bool make_sum(struct make *m, int64_t a, int64_t b, int64_t *sum);

int make_close(struct make *m, struct type **new_p);

#endif
