/*
 * pmi2.c - PMI-2: messages with their length, as Slurm speaks it (srun --mpi=pmi2).
 */
#include "base/err.h"
#include "proc/pmi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_MAX 1024 /* the standard's PMI2_MAX_VALLEN: launchers do not say theirs */

static int ask_job(struct proc_info *p)
{
    struct pmi_answer a;
    int rc = pmi_ask(&a, "job-getid-response", "cmd=job-getid;");
    if (!rc) rc = pmi_good(&a, "the name of the job");
    if (rc) return rc;
    return pmi_field(&a, "jobid", p->job, sizeof p->job) && *p->job
               ? 0
               : err_set(TERN_ERR_SYSTEM, "the launcher (PMI-2) has no name for the job");
}

/* A number that the launcher may not know: 0 then. */
static uint32_t positive(int64_t n) { return n > 0 && n <= UINT32_MAX ? (uint32_t)n : 0; }

static int introduce(struct proc_info *p)
{
    struct pmi_answer a;
    const char *job = getenv("PMI_JOBID");
    int rc = pmi_ask(&a, "fullinit-response", "cmd=fullinit;pmijobid=%s;pmirank=%u;threaded=FALSE;", job ? job : "",
                     p->rank);
    if (!rc) rc = pmi_good(&a, "this process");
    if (rc) return rc;
    int64_t rank = pmi_number(&a, "rank", -1), size = pmi_number(&a, "size", -1);
    if (rank < 0 || rank >= size || size > UINT32_MAX)
        return err_set(TERN_ERR_SYSTEM, "the launcher (PMI-2) says that this is rank %lld of %lld", (long long)rank,
                       (long long)size);
    p->rank = (uint32_t)rank;
    p->size = (uint32_t)size;
    p->appnum = positive(pmi_number(&a, "appnum", 0));
    return 0;
}

static int about_job(const char *key, char value[PMI_VALUE_MAX]);

static int join(struct proc_info *p, size_t *value_max)
{
    char universe[PMI_VALUE_MAX];
    int rc = pmi_begin(2, 0);
    if (rc) return rc;
    pmi_wire_frames();
    *value_max = VALUE_MAX;
    rc = introduce(p);
    if (!rc) rc = ask_job(p);
    if (!rc) rc = about_job("universeSize", universe);
    if (!rc) p->universe = positive(strtoll(universe, NULL, 10));
    return rc == TERN_ERR_NOT_FOUND ? 0 : rc;
}

static int put(const char *key, const char *value)
{
    struct pmi_answer a;
    int rc = pmi_ask(&a, "kvs-put-response", "cmd=kvs-put;key=%s;value=%s;", key, value);
    return rc ? rc : pmi_good(&a, "what this process publishes");
}

static int fence(void)
{
    struct pmi_answer a;
    int rc = pmi_ask(&a, "kvs-fence-response", "cmd=kvs-fence;");
    return rc ? rc : pmi_good(&a, "a fence");
}

static int found(const struct pmi_answer *a, char value[PMI_VALUE_MAX])
{
    char yes[8];
    if (pmi_number(a, "rc", 0) || !pmi_field(a, "found", yes, sizeof yes) || strcmp(yes, "TRUE"))
        return TERN_ERR_NOT_FOUND;
    return pmi_value(a, value);
}

static int get(const char *key, char value[PMI_VALUE_MAX])
{
    struct pmi_answer a;
    int rc = pmi_ask(&a, "kvs-get-response", "cmd=kvs-get;jobid=;srcid=-1;key=%s;", key);
    return rc ? rc : found(&a, value);
}

static int about_job(const char *key, char value[PMI_VALUE_MAX])
{
    struct pmi_answer a;
    int rc = pmi_ask(&a, "info-getjobattr-response", "cmd=info-getjobattr;key=%s;", key);
    return rc ? rc : found(&a, value);
}

static int end(int code) { return pmi_say("cmd=abort;isworld=TRUE;msg=exit code %d;", code); }

static int leave(void)
{
    struct pmi_answer a;
    return pmi_ask(&a, "finalize-response", "cmd=finalize;");
}

const struct pmi_dialect pmi2_dialect = {
    .join = join,
    .put = put,
    .fence = fence,
    .get = get,
    .about_job = about_job,
    .abort = end,
    .leave = leave,
};
