/* info_env.c - see info_env.h. */
#include "obj/info_env.h"
#include "base/err.h"
#include "obj/hints.h"
#include "proc/job_block.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Values are cut where the standard's limit is. */
static int set(struct info *i, const char *key, const char *value)
{
    char cut[MPI_MAX_INFO_VAL];
    snprintf(cut, sizeof cut, "%s", value);
    return info_set(i, key, cut);
}

static int set_arguments(struct info *i, int argc, char *const argv[])
{
    char text[MPI_MAX_INFO_VAL] = "";
    size_t at = 0;
    for (int a = 1; a < argc && argv[a] && at < sizeof text; a++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", at ? " " : "", argv[a]);
    int rc = argc > 0 && argv[0] ? set(i, "command", argv[0]) : 0;
    return rc || !at ? rc : set(i, "argv", text);
}

/* As many as values have room for. On the heap: the calling thread's stack may be small. */
struct arguments {
    char text[2 * MPI_MAX_INFO_VAL + 1];
    char *argv[MPI_MAX_INFO_VAL];
};

/* The arguments that the system keeps. */
static int set_own_arguments(struct info *i)
{
    int argc = 0;
    struct arguments *own = malloc(sizeof *own);
    FILE *f = own ? fopen("/proc/self/cmdline", "re") : NULL;
    size_t n = f ? fread(own->text, 1, sizeof own->text - 1, f) : 0;
    if (f) fclose(f);
    if (!own) return err_set(TERN_ERR_NOMEM, "no memory for the arguments of the program");
    own->text[n] = 0;
    for (size_t at = 0; at < n && argc < MPI_MAX_INFO_VAL; at += strlen(own->text + at) + 1)
        own->argv[argc++] = own->text + at;
    int rc = set_arguments(i, argc, own->argv);
    free(own);
    return rc;
}

static int set_host(struct info *i)
{
    struct utsname u;
    if (uname(&u)) return 0;
    int rc = set(i, "host", u.nodename);
    return rc ? rc : set(i, "arch", u.machine);
}

static int set_folder(struct info *i)
{
    char path[MPI_MAX_INFO_VAL];
    return getcwd(path, sizeof path) ? info_set(i, "wdir", path) : 0; /* one that is longer would be another folder's */
}

/* The launcher's variable that has the job's size. It is not asked of proc_self, for that is not known before MPI_Init, and
 * the object shall be the same at all times. */
static const char *job_size(void)
{
    if (getenv(JOB_ENV_RANK)) return getenv("PMI_SIZE");
    if (!getenv("PMIX_NAMESPACE")) return "1";
    const char *size = getenv("OMPI_COMM_WORLD_SIZE");
    return size ? size : getenv("SLURM_STEP_NUM_TASKS");
}

static int set_size(struct info *i)
{
    const char *size = job_size();
    return size ? set(i, "maxprocs", size) : 0;
}

struct info *info_new_env(int argc, char *const argv[])
{
    struct info *i = info_new();
    if (!i) return NULL;
    int rc = argc > 0 && argv ? set_arguments(i, argc, argv) : set_own_arguments(i);
    if (!rc) rc = set_size(i);
    if (!rc) rc = set_host(i);
    if (!rc) rc = set_folder(i);
    if (!rc) rc = set(i, "mpi_memory_alloc_kinds", MEMORY_KINDS);
    if (!rc) return i;
    info_free(i);
    return NULL;
}

static struct info env;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the filling; env does not change afterwards */

/* Moves the pairs of a new object into the static one. */
static int fill(void)
{
    struct info *i = info_new_env(0, NULL);
    if (!i) return TERN_ERR_NOMEM;
    env.pair = i->pair;
    env.n = i->n;
    env.room = i->room;
    env.predefined = (uintptr_t)MPI_INFO_ENV;
    env.h.kind = HANDLE_INFO;
    i->pair = NULL;
    i->n = 0;
    info_free(i);
    return 0;
}

struct info *info_env(void)
{
    pthread_mutex_lock(&lock);
    int rc = env.n ? 0 : fill();
    pthread_mutex_unlock(&lock);
    return rc ? NULL : &env;
}
