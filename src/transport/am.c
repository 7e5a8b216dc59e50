/* am.c - see am.h. */
#include "transport/am.h"
#include "base/err.h"

#include <endian.h>
#include <string.h>

tp_handler_fn tp_handlers[TP_AM_MAX];
tp_sink_fn tp_sinks[TP_AM_MAX];
bool tp_questions[TP_AM_MAX];

static const char *names[TP_AM_MAX];
static uint32_t bytes[TP_AM_MAX];
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
        bytes[m[i].id] = m[i].bytes;
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
        bytes[m[i].id] = 0;
        tp_handlers[m[i].id] = NULL;
        tp_sinks[m[i].id] = NULL;
        tp_questions[m[i].id] = false;
    }
}

/* FNV-1a */
static uint64_t hash(uint64_t h, const void *data, size_t n)
{
    for (const uint8_t *c = data; n; n--) h = (h ^ *c++) * 0x100000001b3u;
    return h;
}

static uint64_t hash_number(uint64_t h, uint32_t number)
{
    number = htole32(number);
    return hash(h, &number, sizeof number);
}

/* Each name with the zero behind it. */
uint64_t tp_am_seal(void)
{
    uint64_t h = hash_number(0xcbf29ce484222325u, TP_WIRE_VERSION);
    sealed = true;
    for (unsigned id = 0; id < TP_AM_MAX; id++) {
        if (!names[id]) continue;
        h = hash_number(hash_number(h, id), bytes[id]);
        h = hash(h, names[id], strlen(names[id]) + 1);
    }
    return h;
}

void tp_am_unseal(void) { sealed = false; }
