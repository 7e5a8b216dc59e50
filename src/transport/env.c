/* env.c - see env.h. */
#include "transport/env.h"
#include "base/err.h"
#include "base/var.h"
#include "proc/proc.h"
#include "transport/peer.h"
#include "transport/wires.h"

#include <stdlib.h>
#include <string.h>

static uint32_t index_of(const struct peer *p) { return p->index; }

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
                                .peer_of = peer_of_sender,
                                .index_of = index_of,
                                .lost = lost,
                                .left = left,
                                .secret = proc_secret,
                                .variable = variable,
                                .err_set = err_set,
                                .err_sys = err_sys,
                                .words = err_words};
    env.index = proc_self()->rank;
    env.count = proc_self()->size;
    env.job = proc_self()->job;
    env.others = wires_others;
    return &env;
}
