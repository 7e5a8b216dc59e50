/*
 * tune_bench.h - the parts of tern_tune that measures collectives: what is measured (tune_coll.c), the calls and their
 * buffers (tune_calls.c), and the rules that are written (tune_rules.c).
 */
#ifndef TERN_TOOL_TUNE_BENCH_H
#define TERN_TOOL_TUNE_BENCH_H

#include "coll/table.h"
#include "tool/tune.h"
#include <mpi.h>

enum { CANDIDATES_MAX = 64, V_BYTES = 4096 /* of a block of the v-collectives, which are told apart by ranks only */ };

struct candidate {
    struct coll_choice choice;
    char hint[96];
    MPI_Comm comm;
    double *sample; /* [rounds] */
    double median;  /* seconds */
    bool too_slow;  /* not measured any more */
};

struct bench { /* one operation with one number of ranks */
    const struct tune_options *o;
    enum coll_kind kind;
    int rank, size;
    int nodes, domains, mixed; /* as in struct coll_shape; mixed: flags */
    struct coll_given given;   /* where the ranks are */
    const char *place;
    MPI_Comm comm;
    struct candidate *c;
    int n;
    int algs; /* index of the first algorithm. Inside a node, before them: 0, what the library does without being told, and ways */
    char *send, *recv;
    int *counts, *displs;
    MPI_Datatype *types;
    uint64_t random;
    double start;
};

/* ---- tune_calls.c ---- */

extern const enum coll_kind tune_measured[]; /* operations with more than one algorithm */
extern const size_t tune_measured_count;
static inline bool tune_has_sizes(enum coll_kind k) { return k != COLL_BARRIER && !coll_has_blocks(k); }
void tune_call(const struct bench *, MPI_Comm, int bytes);
void tune_buffers_open(struct bench *); /* ends the job when memory is out */
void tune_buffers_close(struct bench *);
int64_t tune_most(const struct bench *); /* bytes of the largest call that the buffers have room for */

/* ---- tune_rules.c ---- */

/* What is chosen for a size: the fastest algorithm, and what is faster than what the library does by itself, if anything. */
struct choice {
    int alg;    /* candidate; -1: none yet */
    int faster; /* candidate, a way or that algorithm; 0: none */
};
struct choice tune_winner(const struct bench *, struct choice before);

struct span { /* neighbouring sizes with the same choice */
    struct choice is;
    int64_t from, below; /* below 0: no end */
};
void tune_print_figures(FILE *, const struct bench *, int bytes);
void tune_print_rule(FILE *, const struct bench *, const struct span *, const char *ranks);

#endif
