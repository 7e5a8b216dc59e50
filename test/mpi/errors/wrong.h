/*
 * wrong.h - values that are wrong for each kind of argument, for the tests of error classes.
 */
#ifndef TERN_TEST_WRONG_H
#define TERN_TEST_WRONG_H

#include "../check.h"

/* Handles of another kind, freed ones, and stray values: none of them may be touched. */
static MPI_Datatype freed_type, raw_type; /* raw: not committed */
static MPI_Comm freed_comm;
static MPI_Group freed_group;
static MPI_Op freed_op;

#define STRAY(kind) ((kind)(uintptr_t)0x123456789abcdef0u)
#define ZERO(kind)  ((kind)(uintptr_t)0)

static void add_nothing(void *in, void *inout, int *len, MPI_Datatype *type) { (void)in, (void)inout, (void)len, (void)type; }

/* Makes freed handles. What is made later may take their places, so this is done again behind it. */
static inline void wrong_renew(void)
{
    MPI_Type_contiguous(2, MPI_INT, &freed_type);
    MPI_Datatype t = freed_type;
    MPI_Type_free(&t);
    MPI_Comm_dup(MPI_COMM_SELF, &freed_comm);
    MPI_Comm c = freed_comm;
    MPI_Comm_free(&c);
    MPI_Comm_group(MPI_COMM_WORLD, &freed_group);
    MPI_Group g = freed_group;
    MPI_Group_free(&g);
    MPI_Op_create(add_nothing, 1, &freed_op);
    MPI_Op o = freed_op;
    MPI_Op_free(&o);
    CHECK(freed_type && freed_comm && freed_group && freed_op, "no freed handles to test with");
}

static inline void wrong_open(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Type_vector(2, 1, 2, MPI_CHAR, &raw_type);
    wrong_renew();
}

static inline void wrong_close(void) { MPI_Type_free(&raw_type); }

/* A call with each communicator that is none. `call` has the communicator as `comm`. */
#define WRONG_COMMS(call)                                                                                              \
    for (int w_ = 0; w_ < 5; w_++) {                                                                                   \
        MPI_Comm comm = w_ == 0 ? MPI_COMM_NULL : w_ == 1 ? freed_comm : w_ == 2 ? STRAY(MPI_Comm) : w_ == 3 ? ZERO(MPI_Comm) : (MPI_Comm)MPI_INT; \
        CHECK_CLASS(call, MPI_ERR_COMM);                                                                               \
    }

/* And with each datatype (as `type`) that cannot be used for communication. */
#define WRONG_TYPES(call)                                                                                              \
    for (int w_ = 0; w_ < 5; w_++) {                                                                                   \
        MPI_Datatype type = w_ == 0 ? MPI_DATATYPE_NULL : w_ == 1 ? freed_type : w_ == 2 ? STRAY(MPI_Datatype) : w_ == 3 ? raw_type : (MPI_Datatype)MPI_COMM_WORLD; \
        CHECK_CLASS(call, MPI_ERR_TYPE);                                                                               \
    }

#define WRONG_OPS(call)                                                                                                \
    for (int w_ = 0; w_ < 5; w_++) {                                                                                   \
        MPI_Op op = w_ == 0 ? MPI_OP_NULL : w_ == 1 ? freed_op : w_ == 2 ? STRAY(MPI_Op) : w_ == 3 ? MPI_REPLACE : MPI_MINLOC; \
        CHECK_CLASS(call, MPI_ERR_OP);                                                                                 \
    }

#endif
