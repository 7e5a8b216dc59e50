/*
 * op.c - entry points: reduction operators and their local use (MPI-5.0 sections 6.9.5 to 6.9.7).
 */
#include "mpi/dataargs.h"

static int make(const char *call, bool fn_given, MPI_Op *op)
{
    check_running(call);
    if (op) *op = MPI_OP_NULL;
    if (!fn_given || !op) return bad_null(NULL, call, op ? "user_fn" : "op");
    return MPI_SUCCESS;
}

MPI_ALIAS(Op_create);
int PMPI_Op_create(MPI_User_function *user_fn, int commute, MPI_Op *op)
{
    struct op *o;
    int rc = make("MPI_Op_create", user_fn != NULL, op);
    if (rc) return rc;
    rc = op_create(user_fn, commute != 0, &o);
    if (rc) return report_code(NULL, "MPI_Op_create", rc);
    *op = op_handle(o);
    return MPI_SUCCESS;
}

MPI_ALIAS(Op_create_c);
int PMPI_Op_create_c(MPI_User_function_c *user_fn, int commute, MPI_Op *op)
{
    struct op *o;
    int rc = make("MPI_Op_create_c", user_fn != NULL, op);
    if (rc) return rc;
    rc = op_create_c(user_fn, commute != 0, &o);
    if (rc) return report_code(NULL, "MPI_Op_create_c", rc);
    *op = op_handle(o);
    return MPI_SUCCESS;
}

static int no_op(const char *call, MPI_Op op)
{
    check_running(call);
    if (op == MPI_OP_NULL) return report(NULL, call, MPI_ERR_OP, "argument op is MPI_OP_NULL");
    return report(NULL, call, MPI_ERR_OP, "argument op (%p) is not an operator, or one that was freed", (void *)op);
}

MPI_ALIAS(Op_free);
int PMPI_Op_free(MPI_Op *op)
{
    if (!op) return bad_null(NULL, "MPI_Op_free", "op");
    struct op *o = op_of(*op);
    if (!o) return no_op("MPI_Op_free", *op);
    if (o->predefined) return report(NULL, "MPI_Op_free", MPI_ERR_OP, "%s is predefined and cannot be freed", o->name);
    op_unref(o);
    *op = MPI_OP_NULL;
    return MPI_SUCCESS;
}

MPI_ALIAS(Op_commutative);
int PMPI_Op_commutative(MPI_Op op, int *commute)
{
    struct op *o = op_of(op);
    if (!o) return no_op("MPI_Op_commutative", op);
    if (!commute) return bad_null(NULL, "MPI_Op_commutative", "commute");
    *commute = o->commute;
    return MPI_SUCCESS;
}

static int reduce_local(const char *call, const void *inbuf, void *inoutbuf, int64_t count, MPI_Datatype datatype, MPI_Op op)
{
    check_running(call);
    struct type *t = type_of(datatype);
    struct op *o = op_of(op);
    if (!t || !type_takes(t, count)) return bad_amount(NULL, call, &data_plain, count, 1, datatype);
    if (!op_usable(o, t)) return bad_op(NULL, call, op, t);
    if (!buffer_ok(inbuf, count, t)) return bad_buffer(NULL, call, inbuf, "inbuf");
    if (!buffer_ok(inoutbuf, count, t)) return bad_buffer(NULL, call, inoutbuf, "inoutbuf");
    if (inbuf == inoutbuf && count && t->size) return bad_aliases(NULL, call, "inbuf", "inoutbuf");
    return report_if(NULL, call, count ? op_apply(o, inbuf, inoutbuf, count, t) : 0);
}

MPI_ALIAS(Reduce_local);
int PMPI_Reduce_local(const void *inbuf, void *inoutbuf, int count, MPI_Datatype datatype, MPI_Op op)
{
    return reduce_local("MPI_Reduce_local", inbuf, inoutbuf, count, datatype, op);
}

MPI_ALIAS(Reduce_local_c);
int PMPI_Reduce_local_c(const void *inbuf, void *inoutbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op)
{
    return reduce_local("MPI_Reduce_local_c", inbuf, inoutbuf, count, datatype, op);
}
