/*
 * pmi1.c - PMI-1: lines of words, as Hydra (MPICH's mpiexec), Flux and others speak it.
 */
#include "base/err.h"
#include "proc/pmi.h"

#include <stdio.h>
#include <string.h>

static char store[256]; /* the name of the job's store, which is part of every question about it */

static int ask_sizes(size_t *value_max)
{
    struct pmi_answer a;
    int rc = pmi_ask(&a, "maxes", "cmd=get_maxes");
    if (rc) return rc;
    int64_t key = pmi_number(&a, "keylen_max", 0), value = pmi_number(&a, "vallen_max", 0);
    if (key < 32 || value < 32)
        return err_set(TERN_ERR_SYSTEM,
                       "the launcher's PMI takes keys of %lld and values of %lld bytes, which is too little",
                       (long long)key, (long long)value);
    *value_max = (size_t)value;
    return 0;
}

/* A number that the launcher may not know: 0 then. */
static int ask_number(const char *question, const char *cmd, const char *field, uint32_t *n)
{
    struct pmi_answer a;
    int rc = pmi_ask(&a, cmd, "cmd=%s", question);
    int64_t v = rc ? 0 : pmi_number(&a, field, 0);
    *n = v > 0 && v <= UINT32_MAX ? (uint32_t)v : 0;
    return rc;
}

static int ask_store(void)
{
    struct pmi_answer a;
    int rc = pmi_ask(&a, "my_kvsname", "cmd=get_my_kvsname");
    if (!rc) rc = pmi_good(&a, "the name of the job's store");
    if (rc) return rc;
    return pmi_field(&a, "kvsname", store, sizeof store) && *store
               ? 0
               : err_set(TERN_ERR_SYSTEM, "the launcher's PMI has no store for the job");
}

static int join(struct proc_info *p, size_t *value_max)
{
    int rc = pmi_begin(1, 1);
    if (!rc) rc = ask_sizes(value_max);
    if (!rc) rc = ask_store();
    if (!rc) rc = ask_number("get_appnum", "appnum", "appnum", &p->appnum);
    if (!rc) rc = ask_number("get_universe_size", "universe_size", "size", &p->universe);
    if (!rc) snprintf(p->job, sizeof p->job, "%s", store);
    return rc;
}

static int put(const char *key, const char *value)
{
    struct pmi_answer a;
    int rc = pmi_ask(&a, "put_result", "cmd=put kvsname=%s key=%s value=%s", store, key, value);
    return rc ? rc : pmi_good(&a, "what this process publishes");
}

static int fence(void)
{
    struct pmi_answer a;
    int rc = pmi_ask(&a, "barrier_out", "cmd=barrier_in");
    return rc ? rc : pmi_good(&a, "a barrier");
}

static int get(const char *key, char value[PMI_VALUE_MAX])
{
    struct pmi_answer a;
    int rc = pmi_ask(&a, "get_result", "cmd=get kvsname=%s key=%s", store, key);
    if (!rc && pmi_number(&a, "rc", 0)) return TERN_ERR_NOT_FOUND;
    return rc ? rc : pmi_value(&a, value);
}

static int end(int code) { return pmi_say("cmd=abort exitcode=%d", code); }

static int leave(void)
{
    struct pmi_answer a;
    return pmi_ask(&a, "finalize_ack", "cmd=finalize");
}

const struct pmi_dialect pmi1_dialect = {
    .join = join,
    .put = put,
    .fence = fence,
    .get = get,
    .about_job = get,
    .abort = end,
    .leave = leave,
};
