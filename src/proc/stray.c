/*
 * stray.c - see stray.h.
 *
 * The signs are variables that a launcher sets in each process that it starts. A shell passes them on to all that runs
 * in it; so only those count that are gone, or say 1, in the shells that people work in: the variables of a whole
 * allocation (SLURM_NTASKS) do not.
 */
#include "proc/stray.h"
#include "base/err.h"
#include "base/var.h"
#include "proc/proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct launcher {
    const char *name;
    const char *rank, *size; /* variables; no size: that there are others is to be seen in rank 1 only */
    const char *step;        /* a variable that must be a plain number below STEP_MAX, NULL: none */
    const char *shell;       /* a variable that says that a person sits there, NULL: none */
    const char *advice;
} launchers[] = {
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID", "SLURM_PTY_PORT",
     "Start it with `srun --mpi=pmix` or `srun --mpi=pmi2` (`srun --mpi=list` says which this Slurm has)"},
    {"Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL, NULL, "Start it with Tern's mpiexec"},
    {"PALS", "PALS_RANKID", NULL, NULL, NULL, "Start it with Tern's mpiexec, or with `mpiexec --pmi=pmix` of PALS"},
    {"ALPS", "ALPS_APP_PE", NULL, NULL, NULL, "Start it with Tern's mpiexec"},
    {"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", NULL, NULL, "Start it with `flux run -o pmi=simple`"},
    {"MVAPICH's launcher", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", NULL, NULL, "Start it with Tern's mpiexec"},
    {"jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", NULL, NULL, "Start it with Tern's mpiexec"},
    {"A launcher that speaks PMI", "PMI_RANK", "PMI_SIZE", NULL, NULL, "Start it with Tern's mpiexec"},
};

#define STEP_MAX 0xfffffff0 /* Slurm's numbers from here on are no steps: batch scripts, interactive shells ... */

/* The rank of this process among several that `l` started; -1: it has not, or one only. */
static long rank_under(const struct launcher *l)
{
    long rank = proc_env_number(l->rank), step = l->step ? proc_env_number(l->step) : 0;
    if (rank < 0 || step < 0 || step >= STEP_MAX || (l->shell && getenv(l->shell))) return -1;
    if (l->size ? proc_env_number(l->size) < 2 : rank < 1) return -1;
    return rank;
}

static void describe(const struct launcher *l, char *words, size_t room)
{
    char many[64] = "several", sign[100];
    snprintf(sign, sizeof sign, "%s=%ld", l->size ? l->size : l->rank, proc_env_number(l->size ? l->size : l->rank));
    if (l->size) snprintf(many, sizeof many, "%ld", proc_env_number(l->size));
    snprintf(words, room,
             "%s started this program as %s processes (%s), but gave them no way to find each other that Tern "
             "understands. %s",
             l->name, many, sign, l->advice);
}

static int report(const struct launcher *l, long rank)
{
    char words[512];
    bool error = !strcmp(var_text(VAR_SINGLETON), "error"), speaker = rank == (l->size ? 0 : 1);
    describe(l, words, sizeof words);
    if (error)
        return speaker
                   ? err_set(TERN_ERR_SYSTEM, "%s (TERN_SINGLETON=error)", words)
                   : err_set(TERN_ERR_SYSTEM, "this process is alone (TERN_SINGLETON=error): see what process %d says",
                             l->size ? 0 : 1);
    if (speaker)
        fprintf(stderr,
                "tern: %s. Each of them is now a job of its own with one rank; if that is meant, set "
                "TERN_SINGLETON=allow\n",
                words);
    return 0;
}

int stray_check(void)
{
    if (!strcmp(var_text(VAR_SINGLETON), "allow")) return 0;
    for (size_t i = 0; i < ARRAY_LEN(launchers); i++) {
        long rank = rank_under(&launchers[i]);
        if (rank >= 0) return report(&launchers[i], rank);
    }
    return 0;
}
