/*
 * arguments.h - what the generated calls of the argument test use: right values, wrong ones, and judge, which looks at
 * what a call with one wrong argument did. See maint/gen_argument_test.
 */
#ifndef TERN_TEST_ARGUMENTS_H
#define TERN_TEST_ARGUMENTS_H

#include <limits.h>
#include <mpi.h>
#include <stddef.h>

/* ---- right values ---- */
extern int rank, size;
extern MPI_Comm comm, inter; /* inter: with two ranks only */
extern MPI_Comm cart, graph, dist; /* with a topology: one dimension of one rank, one node, no neighbours */
extern MPI_Group group;
extern MPI_Info info; /* with one key, "key" */
extern MPI_Session session;
extern MPI_Win win, dynamic_win;
extern int keyval, type_keyval, win_keyval;
extern MPI_Message message; /* MPI_MESSAGE_NO_PROC */
extern MPI_Status status;
extern MPI_F08_status f08_status;
extern MPI_Fint fortran_status[];
extern int *const buffer, other_buffer[];
extern int ones[], ramp[], zeros[];
extern MPI_Count large_ones[];
extern MPI_Datatype types[];
extern MPI_Datatype committed, derived; /* one committed, one not */

/* ---- wrong values ---- */
extern int *const before_buffer; /* with a displacement of one it is the same as `buffer` */
extern int minus_ones[];
extern MPI_Count large_minus_ones[];
extern int most[];             /* the largest int */
extern MPI_Count large_most[]; /* the largest count */
extern MPI_Count share;        /* of MPI_INT, one that fits 63 bits, but not once for each rank */
extern MPI_Count shares[];
extern MPI_Datatype giant, giants[]; /* committed, of 2^40 bytes */
extern MPI_Datatype bad_types[];
extern MPI_Comm freed_comm;
extern MPI_Group freed_group;
extern MPI_Datatype freed_type;
extern MPI_Op freed_op, user_op; /* the latter is one, but not for windows */
extern MPI_Win freed_win;
extern MPI_Errhandler freed_errhandler;

/* ---- functions that are arguments ---- */
void user_function(void *in, void *inout, int *len, MPI_Datatype *);
void user_function_c(void *in, void *inout, MPI_Count *len, MPI_Datatype *);
void comm_handler(MPI_Comm *, int *code, ...);
void session_handler(MPI_Session *, int *code, ...);
void win_handler(MPI_Win *, int *code, ...);

/* Memory for the result that argument number i points to. No call with a wrong argument changes it. */
void *out(int i);

/* The same for the handle of an object that is made: after a call that fails it is this null handle. */
void *none_made(int i, void *null);

/* Before each call: all results are set to a pattern. */
void begin(const char *function);

/* After it: its code has this error class, the words name the argument, and no result was written. */
void judge(const char *argument, const char *value, int class, int code);

/* Written by the generator. */
extern void (*const tests[])(void);
extern const int n_tests, n_pairs;

#endif
