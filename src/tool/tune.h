/* tune.h - the parts of the command tern_tune. */
#ifndef TERN_TOOL_TUNE_H
#define TERN_TOOL_TUNE_H

#include "base/compiler.h"
#include <stdio.h>

struct tune_options {
    const char *output;     /* file; NULL: standard output */
    const char *operations; /* "bcast,reduce"; NULL: all */
    const char *ranks;      /* "2,4,8"; NULL: 2, 4, 8 ... and all */
    int64_t max_bytes;      /* largest size */
    double seconds;         /* that the whole may take */
    unsigned seed;          /* of the order of measurements, and of the genetic search */
    int rounds;             /* samples of each figure */
    bool transport;         /* search transport parameters, not algorithms */
    bool pingpong;          /* used by that search itself */
    bool connect;           /* find the limit of tables that are told by datagrams */
    bool connecting;        /* used by that itself */
    bool quick;             /* fewer sizes */
    bool quiet;
};

/* Measures collectives; called by all ranks, between MPI_Init and MPI_Finalize. Exit code. */
int tune_coll(const struct tune_options *);

/* The other mode: not an MPI process itself, but one that starts jobs of two. Exit code. */
int tune_transport(const struct tune_options *);

/* What those jobs do: prints the figures that the search goes by. Between MPI_Init and MPI_Finalize. */
int tune_pingpong(const struct tune_options *);

/* The limit of the tables of connecting groups: one process, which spawns jobs of two. Between MPI_Init and MPI_Finalize. Exit code. */
int tune_connect(const struct tune_options *);

/* What those jobs do. */
int tune_connecting(const struct tune_options *);

double tune_now(void);                 /* seconds */
double tune_median(double *v, int n);  /* sorts v */
uint32_t tune_random(uint64_t *state); /* 32 bits; the state is any number to begin with */

/* Where the result goes, which is there, whole, after tune_close (tune_output.c). One at a time. NULL, or false, with a
 * message when that cannot be. */
FILE *tune_output(const struct tune_options *);
bool tune_close(FILE *);

#endif
