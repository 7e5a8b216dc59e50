/*
 * goal.h - schedules of your own: what one process does in a communication that involves
 * many, as a graph of sends, receives and local work that runs by itself.
 *
 * A schedule is made once and run many times. Each rank makes its own part:
 *
 *     GOAL_Schedule s;
 *     GOAL_Op got, sum;
 *     GOAL_Create(MPI_COMM_WORLD, 800, &s);
 *     GOAL_Recv(s, GOAL_AT(0), GOAL_SCRATCHPAD, 800, child, 0, &got);
 *     GOAL_Add(s, GOAL_FLOAT64, 100, GOAL_AT(0), GOAL_SCRATCHPAD, mine, GOAL_USERSPACE, &sum);
 *     GOAL_Requires(s, sum, got);
 *     GOAL_Compile(s);
 *
 *     GOAL_Request r;
 *     GOAL_Run(s, &r);
 *     ... compute ...
 *     GOAL_Wait(&r);
 *
 * Nothing orders the operations of a schedule but what GOAL_Requires says. An operation has finished
 * when its buffers may be read and changed again.
 *
 * Every function returns MPI_SUCCESS or an error class of MPI, by the error handler of the communicator;
 * MPI_Error_string has the words. Arguments are described in the manual page of each function, GOAL_Create(3) and so
 * on; goal(7) is the place to start.
 *
 * Threads: a schedule is built by one thread at a time; compiled ones are run and tested by any. Schedules of a communicator
 * are made and freed as its collectives are called: by one thread at a time, in one order at all ranks.
 */
#ifndef GOAL_H
#define GOAL_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct schedule *GOAL_Schedule;
#define GOAL_SCHEDULE_NULL ((GOAL_Schedule)0)

/* An operation of a schedule that is being built. */
typedef int GOAL_Op;

/* Where the address or offset of a buffer argument leads. */
enum {
    GOAL_USERSPACE = 0, /* an address of this process */
    GOAL_SCRATCHPAD = 1 /* GOAL_AT(bytes into the scratchpad), which every run has for itself */
};
#define GOAL_BUFFER(n)   (2 + (n)) /* GOAL_AT(bytes into the buffer that GOAL_Bind gives this number) */
#define GOAL_BUFFERS_MAX 1024      /* n is less */

#define GOAL_AT(offset) ((void *)(MPI_Aint)(offset))

#define GOAL_TAG_MAX 65535

/* One element of a scatter/gather list. */
typedef struct {
    void *buf; /* an address, or GOAL_AT(offset) */
    int place;
    MPI_Count bytes;
} GOAL_Piece;

/* Types of numbers. Those of one bit lie eight in a byte; their counts are multiples of 8. */
enum {
    GOAL_INT1, GOAL_INT8, GOAL_INT16, GOAL_INT32, GOAL_INT64,      /* signed */
    GOAL_UINT1, GOAL_UINT8, GOAL_UINT16, GOAL_UINT32, GOAL_UINT64, /* unsigned */
    GOAL_FLOAT16, GOAL_FLOAT32, GOAL_FLOAT64,                      /* IEEE 754 */
    GOAL_TYPES
};

/*
 * Operators. Integers wrap around; what is divided by zero becomes 0. Floating numbers follow IEEE 754, with MAX and MIN
 * giving the number read when one of the two is NaN. AND, OR, XOR are for integers.
 */
enum { GOAL_ADD, GOAL_SUB, GOAL_MULT, GOAL_DIV, GOAL_MAX, GOAL_MIN, GOAL_AND, GOAL_OR, GOAL_XOR, GOAL_OPERATORS };

/* A run, in memory of the caller's that stays where it is until the run has been waited for. */
typedef struct {
    int state; /* written last when a run ends; see GOAL_Finished */
    int error;
    void *run;
} GOAL_Request;

enum { GOAL_INACTIVE = 0, GOAL_RUNNING = 1, GOAL_FINISHED = 2 };
#define GOAL_REQUEST_INIT {GOAL_INACTIVE, 0, 0}

/* ---- life ---- */
int GOAL_Create(MPI_Comm comm, MPI_Count scratch_bytes, GOAL_Schedule *schedule);
int GOAL_Free(GOAL_Schedule *schedule);

/* ---- operations; `op` may be NULL ---- */
int GOAL_Send(GOAL_Schedule schedule, const void *buf, int place, MPI_Count bytes, int dest, int tag, GOAL_Op *op);
int GOAL_Recv(GOAL_Schedule schedule, void *buf, int place, MPI_Count bytes, int source, int tag, GOAL_Op *op);
int GOAL_Sendv(GOAL_Schedule schedule, int n, const GOAL_Piece pieces[], int dest, int tag, GOAL_Op *op);
int GOAL_Recvv(GOAL_Schedule schedule, int n, const GOAL_Piece pieces[], int source, int tag, GOAL_Op *op);
int GOAL_Copy(GOAL_Schedule schedule, const void *from, int from_place, void *to, int to_place, MPI_Count bytes,
              GOAL_Op *op);
int GOAL_Copyv(GOAL_Schedule schedule, int n_from, const GOAL_Piece from[], int n_to, const GOAL_Piece to[], GOAL_Op *op);

/* inout = inout OPERATOR in, element by element */
int GOAL_Add(GOAL_Schedule schedule, int type, MPI_Count count, const void *in, int in_place, void *inout, int inout_place,
             GOAL_Op *op);
int GOAL_Sub(GOAL_Schedule schedule, int type, MPI_Count count, const void *in, int in_place, void *inout, int inout_place,
             GOAL_Op *op);
int GOAL_Mult(GOAL_Schedule schedule, int type, MPI_Count count, const void *in, int in_place, void *inout, int inout_place,
              GOAL_Op *op);
int GOAL_Div(GOAL_Schedule schedule, int type, MPI_Count count, const void *in, int in_place, void *inout, int inout_place,
             GOAL_Op *op);
int GOAL_Max(GOAL_Schedule schedule, int type, MPI_Count count, const void *in, int in_place, void *inout, int inout_place,
             GOAL_Op *op);
int GOAL_Min(GOAL_Schedule schedule, int type, MPI_Count count, const void *in, int in_place, void *inout, int inout_place,
             GOAL_Op *op);
int GOAL_And(GOAL_Schedule schedule, int type, MPI_Count count, const void *in, int in_place, void *inout, int inout_place,
             GOAL_Op *op);
int GOAL_Or(GOAL_Schedule schedule, int type, MPI_Count count, const void *in, int in_place, void *inout, int inout_place,
            GOAL_Op *op);
int GOAL_Xor(GOAL_Schedule schedule, int type, MPI_Count count, const void *in, int in_place, void *inout, int inout_place,
             GOAL_Op *op);
int GOAL_Arith(GOAL_Schedule schedule, int operation, int type, MPI_Count count, const void *in, int in_place, void *inout,
               int inout_place, GOAL_Op *op);
int GOAL_Arithv(GOAL_Schedule schedule, int operation, int type, int n_in, const GOAL_Piece in[], int n_inout,
                const GOAL_Piece inout[], GOAL_Op *op);

int GOAL_Timestamp(GOAL_Schedule schedule, void *to, int place, GOAL_Op *op); /* 8 bytes: nanoseconds, monotonic clock */
int GOAL_Join(GOAL_Schedule schedule, GOAL_Op *op);                           /* nothing, for edges to meet */

/* ---- order: `op` starts when `before` has finished; when it has started ---- */
int GOAL_Requires(GOAL_Schedule schedule, GOAL_Op op, GOAL_Op before);
int GOAL_Requires_start(GOAL_Schedule schedule, GOAL_Op op, GOAL_Op before);

int GOAL_Compile(GOAL_Schedule schedule);

/* ---- running ---- */
int GOAL_Bind(GOAL_Schedule schedule, int place, void *base, MPI_Count bytes);
int GOAL_Run(GOAL_Schedule schedule, GOAL_Request *request);
int GOAL_Test(GOAL_Request *request, int *flag);
int GOAL_Wait(GOAL_Request *request);

/* Has the run ended? A look at the caller's own memory, which makes no progress; GOAL_Test or GOAL_Wait tell how. */
static inline int GOAL_Finished(const GOAL_Request *request)
{
    return __atomic_load_n(&request->state, __ATOMIC_ACQUIRE) != GOAL_RUNNING;
}

/* ---- compiled schedules as data ---- */
int GOAL_Export(GOAL_Schedule schedule, void *block, MPI_Count room, MPI_Count *bytes);
int GOAL_Import(MPI_Comm comm, const void *block, MPI_Count bytes, GOAL_Schedule *schedule);
int GOAL_Print(GOAL_Schedule schedule, char *text, MPI_Count room, MPI_Count *bytes);
int GOAL_Parse(MPI_Comm comm, const char *text, GOAL_Schedule *schedule);

#ifdef __cplusplus
}
#endif

#endif
