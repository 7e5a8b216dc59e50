/* am.c - see am.h. */
#include "transport/am.h"
#include "base/err.h"

tp_handler_fn tp_handlers[TP_AM_MAX];
tp_sink_fn tp_sinks[TP_AM_MAX];
bool tp_questions[TP_AM_MAX];

static const char *names[TP_AM_MAX];
static bool sealed;

static int check(const struct tp_am *m)
{
    if (sealed)
        return err_set(TERN_ERR_INTERN, "messages of the kind '%s' cannot be registered: the transports are open", m->name);
    if (m->id < TP_AM_TRANSPORT || m->id >= TP_AM_MAX || !m->handler)
        return err_set(TERN_ERR_INTERN, "messages of the kind '%s' cannot have the id %u, or have no handler: ids are %d to %d",
                       m->name, m->id, TP_AM_TRANSPORT, TP_AM_MAX - 1);
    if (names[m->id])
        return err_set(TERN_ERR_INTERN, "messages of the kind '%s' cannot have the id %u: '%s' has it", m->name, m->id,
                       names[m->id]);
    return 0;
}

int tp_am_register(const struct tp_am *m, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int rc = check(&m[i]);
        if (rc) {
            tp_am_unregister(m, i);
            return rc;
        }
        names[m[i].id] = m[i].name;
        tp_handlers[m[i].id] = m[i].handler;
        tp_sinks[m[i].id] = m[i].sink;
        tp_questions[m[i].id] = m[i].question;
    }
    return 0;
}

void tp_am_unregister(const struct tp_am *m, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (names[m[i].id] != m[i].name) continue;
        names[m[i].id] = NULL;
        tp_handlers[m[i].id] = NULL;
        tp_sinks[m[i].id] = NULL;
        tp_questions[m[i].id] = false;
    }
}

/* FNV-1a over each id that is known, its name, and the zero behind it. */
uint64_t tp_am_seal(void)
{
    uint64_t h = 0xcbf29ce484222325u;
    sealed = true;
    for (unsigned id = 0; id < TP_AM_MAX; id++) {
        if (!names[id]) continue;
        h = (h ^ id) * 0x100000001b3u;
        for (const char *c = names[id];; c++) {
            h = (h ^ (uint8_t)*c) * 0x100000001b3u;
            if (!*c) break;
        }
    }
    return h;
}

void tp_am_unseal(void) { sealed = false; }
