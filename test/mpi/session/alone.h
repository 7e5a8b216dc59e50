/*
 * alone.h - the frame of programs that have sessions only: no MPI_COMM_WORLD to gather
 * counts over. Each rank fails by its exit code; rank 0 prints its own count.
 */
#ifndef TERN_TEST_ALONE_H
#define TERN_TEST_ALONE_H

#include "../check.h"

/* The rank, by what the launcher says: Tern's own, or another one. */
static inline void alone_start(void)
{
    static const char *const names[] = {"TERN_JOB_RANK", "PMIX_RANK", "PMI_RANK"};
    const char *rank = NULL;
    for (int i = 0; i < 3 && !rank; i++) rank = getenv(names[i]);
    check_rank = rank ? atoi(rank) : 0;
}

static inline int alone_done(void)
{
    if (check_rank == 0) printf("checks: %ld, failed: %ld\n", check_cases, check_failures);
    fflush(stdout);
    return check_failures || !check_cases;
}

static inline MPI_Session alone_session(void)
{
    MPI_Session s = MPI_SESSION_NULL;
    CHECK_OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s));
    return s;
}

#endif
