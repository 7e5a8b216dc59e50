/* env.c - see env.h. */
#include "transport/env.h"
#include "base/err.h"
#include "base/var.h"
#include "proc/proc.h"
#include "transport/peer.h"
#include "transport/wires.h"

#include <stdlib.h>
#include <string.h>

static struct peer *peer_of(const struct proc_name *name)
{
    uint32_t index;
    if (jobs_index_of(name, &index)) return peer_of_sender(index);
    err_set(TERN_ERR_PEER, "no process is known that is rank %u of the job %016llx", name->rank, (unsigned long long)name->job);
    return NULL;
}

static const char *name_of(const struct peer *p) { return jobs_words(p->index); }

static int key_of(uint64_t job, uint8_t key[JOBS_KEY])
{
    if (job == jobs_own_name().job) return proc_secret(key);
    return jobs_key(job, key);
}

/* The layer that wants to hear of it may not be open. */
static void lost(struct peer *p, int code)
{
    if (tp_lost) tp_lost(p, code);
}

static void left(struct peer *p)
{
    if (tp_left) tp_left(p);
}

static const char *variable(const char *name)
{
    for (int id = 0; id < VAR_COUNT; id++)
        if (!strcmp(var_table[id].name, name)) return var_text((enum var_id)id);
    return getenv(name);
}

const struct tp_env *tp_env(void)
{
    static struct tp_env env = {.handlers = tp_handlers,
                                .sinks = tp_sinks,
                                .questions = tp_questions,
                                .peer_of = peer_of,
                                .name_of = name_of,
                                .news = jobs_news,
                                .lost = lost,
                                .left = left,
                                .key_of = key_of,
                                .variable = variable,
                                .err_set = err_set,
                                .err_sys = err_sys,
                                .words = err_words};
    env.self = jobs_own_name();
    env.count = proc_self()->size;
    env.others = wires_others;
    return &env;
}
