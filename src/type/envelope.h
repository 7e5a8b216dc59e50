/*
 * envelope.h - what a derived type was made with, for MPI_Type_get_envelope and
 * MPI_Type_get_contents (5.1.13 of MPI-5.0).
 *
 * Arguments are kept in the order of the constructor's C binding. Each is an int
 * by nature (ndims, order), a count, or an address; counts and addresses made by a
 * _c function are both "large counts" to the user. The datatypes are the parts of
 * the type (struct type_part), so no second references are held.
 */
#ifndef TERN_TYPE_ENVELOPE_H
#define TERN_TYPE_ENVELOPE_H

#include "type/type.h"

enum envelope_class { ENVELOPE_INT, ENVELOPE_COUNT, ENVELOPE_ADDRESS };

struct envelope_run { /* n successive arguments of one class */
    enum envelope_class cls;
    int64_t n;
};

struct envelope {
    int combiner; /* MPI_COMBINER_... */
    bool large;   /* made by a _c function */
    int nruns;
    struct envelope_run runs[4];
    int64_t n, room;
    int64_t args[];
};

struct envelope *envelope_new(int combiner, int64_t nargs); /* NULL: no memory */
void envelope_add(struct envelope *, enum envelope_class, int64_t n, const int64_t *args);
void envelope_add_ints(struct envelope *, int64_t n, const int *args);
static inline void envelope_add1(struct envelope *e, enum envelope_class cls, int64_t arg)
{
    envelope_add(e, cls, 1, &arg);
}

/* How many values of each sort type_contents hands out. Predefined types: MPI_COMBINER_NAMED and nothing else. */
struct type_envelope {
    int combiner;
    int64_t ints, addresses, counts, types;
};
void type_get_envelope(const struct type *t, struct type_envelope *e);

/* Fills arrays of the sizes told by type_get_envelope (NULL where the size is 0). Derived types get a reference, which
 * is the caller's. TERN_ERR_TYPE for a predefined type. */
int type_contents(const struct type *t, int *ints, MPI_Aint *addresses, MPI_Count *counts, MPI_Datatype *types);

#endif
