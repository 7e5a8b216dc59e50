/*
 * rounds.h - for programs that repeat something as long as is wished: a second, or
 * TEST_SECONDS, or the program's first argument.
 *
 *     double end = rounds_end(argc, argv);
 *     do one_round(); while (rounds_more(end));
 */
#ifndef TERN_TEST_ROUNDS_H
#define TERN_TEST_ROUNDS_H

#include "check.h"

/* When the rounds are over, by MPI_Wtime. */
static inline double rounds_end(int argc, char **argv)
{
    const char *wish = argc > 1 ? argv[1] : getenv("TEST_SECONDS");
    return MPI_Wtime() + (wish ? atof(wish) : 1.0);
}

/* Is there time for another round? Rank 0 decides for all: collective over MPI_COMM_WORLD. */
static inline int rounds_more(double end)
{
    int more = MPI_Wtime() < end;
    CHECK_OK(MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD));
    return more;
}

#endif
