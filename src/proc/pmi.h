/*
 * pmi.h - what the two dialects of PMI have in common, for pmi.c, which makes a bootstrap of
 * them: a store of short texts by name, which the launcher keeps for the job.
 *
 * All return 0 or a code with words, and are called by one thread at a time.
 */
#ifndef TERN_PROC_PMI_H
#define TERN_PROC_PMI_H

#include "proc/pmi_wire.h"
#include "proc/proc.h"

#define PMI_VALUE_MAX 4096 /* bytes of one text with its final zero; what the launcher takes may be less */

struct pmi_dialect {
    /* The first words on a connection. Fills job, rank, size, universe, appnum, and how long a text of the store may
     * be, with its final zero. */
    int (*join)(struct proc_info *, size_t *value_max);
    int (*put)(const char *key, const char *value);
    int (*fence)(void); /* waits for all processes of the job; then each can get what any of them has put */
    /* TERN_ERR_NOT_FOUND, without words: the store has no such key. */
    int (*get)(const char *key, char value[PMI_VALUE_MAX]);
    /* What the launcher knows about the job by this name; as get. */
    int (*about_job)(const char *key, char value[PMI_VALUE_MAX]);
    int (*abort)(int code);
    int (*leave)(void);
};

extern const struct pmi_dialect pmi1_dialect, pmi2_dialect;

/* Both begin alike: with the version, in a line. */
int pmi_begin(int version, int subversion);

/* A value of an answer that must have one. */
int pmi_value(const struct pmi_answer *, char value[PMI_VALUE_MAX]);

#endif
