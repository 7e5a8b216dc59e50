/*
 * goal_arith.c - entry points of the public goal.h: arithmetic. One function does it, the
 * others are its names.
 */
#include "mpi/goal.h"

#include "coll/goal/arith.h"

static int arith_v(const char *call, GOAL_Schedule schedule, int operation, int type, const GOAL_Piece *in, int n_in,
                   const GOAL_Piece *inout, int n_inout, GOAL_Op *op)
{
    int rc;
    struct schedule *s = schedule_given(call, schedule, &rc);
    if (!s) return rc;
    if (operation < 0 || operation >= GOAL_OPERATORS)
        return report(schedule_comm(s), call, MPI_ERR_OP, "argument operation is %d, which is no operator", operation);
    if (type < 0 || type >= GOAL_TYPES)
        return report(schedule_comm(s), call, MPI_ERR_TYPE, "argument type is %d, which is no type of numbers", type);
    return schedule_report(s, call, schedule_arith(s, ARITH_CODE(operation, type), in, n_in, inout, n_inout, op));
}

/* Bytes of so many numbers; -1 if there is no such type, or no such count of it. */
static MPI_Count bytes_of(int type, MPI_Count count)
{
    bool bits = type == GOAL_INT1 || type == GOAL_UINT1;
    if (type < 0 || type >= GOAL_TYPES || count < 0 || count > INT64_MAX / 8 || (bits && count % 8)) return -1;
    return bits ? count / 8 : count * (MPI_Count)goal_arith_unit(ARITH_CODE(0, type));
}

static int arith(const char *call, GOAL_Schedule schedule, int operation, int type, MPI_Count count, const void *in,
                 int in_place, void *inout, int inout_place, GOAL_Op *op)
{
    int rc;
    MPI_Count bytes = bytes_of(type, count);
    struct schedule *s = schedule_given(call, schedule, &rc);
    if (!s) return rc;
    if (bytes < 0 && type >= 0 && type < GOAL_TYPES)
        return report(schedule_comm(s), call, MPI_ERR_COUNT, "argument count is %lld%s", (long long)count,
                      count < 0 ? ", which is negative" : "; numbers of one bit come in multiples of 8");
    const GOAL_Piece from = {(void *)(uintptr_t)in, in_place, bytes}, to = {inout, inout_place, bytes};
    return arith_v(call, schedule, operation, type, &from, 1, &to, 1, op);
}

GOAL_EXPORT int GOAL_Arithv(GOAL_Schedule schedule, int operation, int type, int n_in, const GOAL_Piece in[], int n_inout,
                            const GOAL_Piece inout[], GOAL_Op *op)
{
    return arith_v("GOAL_Arithv", schedule, operation, type, in, n_in, inout, n_inout, op);
}

GOAL_EXPORT int GOAL_Arith(GOAL_Schedule schedule, int operation, int type, MPI_Count count, const void *in, int in_place,
                           void *inout, int inout_place, GOAL_Op *op)
{
    return arith("GOAL_Arith", schedule, operation, type, count, in, in_place, inout, inout_place, op);
}

GOAL_EXPORT int GOAL_Add(GOAL_Schedule schedule, int type, MPI_Count count, const void *in, int in_place, void *inout,
                         int inout_place, GOAL_Op *op)
{
    return arith("GOAL_Add", schedule, GOAL_ADD, type, count, in, in_place, inout, inout_place, op);
}

GOAL_EXPORT int GOAL_Sub(GOAL_Schedule schedule, int type, MPI_Count count, const void *in, int in_place, void *inout,
                         int inout_place, GOAL_Op *op)
{
    return arith("GOAL_Sub", schedule, GOAL_SUB, type, count, in, in_place, inout, inout_place, op);
}

GOAL_EXPORT int GOAL_Mult(GOAL_Schedule schedule, int type, MPI_Count count, const void *in, int in_place, void *inout,
                          int inout_place, GOAL_Op *op)
{
    return arith("GOAL_Mult", schedule, GOAL_MULT, type, count, in, in_place, inout, inout_place, op);
}

GOAL_EXPORT int GOAL_Div(GOAL_Schedule schedule, int type, MPI_Count count, const void *in, int in_place, void *inout,
                         int inout_place, GOAL_Op *op)
{
    return arith("GOAL_Div", schedule, GOAL_DIV, type, count, in, in_place, inout, inout_place, op);
}

GOAL_EXPORT int GOAL_Max(GOAL_Schedule schedule, int type, MPI_Count count, const void *in, int in_place, void *inout,
                         int inout_place, GOAL_Op *op)
{
    return arith("GOAL_Max", schedule, GOAL_MAX, type, count, in, in_place, inout, inout_place, op);
}

GOAL_EXPORT int GOAL_Min(GOAL_Schedule schedule, int type, MPI_Count count, const void *in, int in_place, void *inout,
                         int inout_place, GOAL_Op *op)
{
    return arith("GOAL_Min", schedule, GOAL_MIN, type, count, in, in_place, inout, inout_place, op);
}

GOAL_EXPORT int GOAL_And(GOAL_Schedule schedule, int type, MPI_Count count, const void *in, int in_place, void *inout,
                         int inout_place, GOAL_Op *op)
{
    return arith("GOAL_And", schedule, GOAL_AND, type, count, in, in_place, inout, inout_place, op);
}

GOAL_EXPORT int GOAL_Or(GOAL_Schedule schedule, int type, MPI_Count count, const void *in, int in_place, void *inout,
                        int inout_place, GOAL_Op *op)
{
    return arith("GOAL_Or", schedule, GOAL_OR, type, count, in, in_place, inout, inout_place, op);
}

GOAL_EXPORT int GOAL_Xor(GOAL_Schedule schedule, int type, MPI_Count count, const void *in, int in_place, void *inout,
                         int inout_place, GOAL_Op *op)
{
    return arith("GOAL_Xor", schedule, GOAL_XOR, type, count, in, in_place, inout, inout_place, op);
}
