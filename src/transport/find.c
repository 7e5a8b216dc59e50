/* find.c - see find.h. */
#include "transport/find.h"
#include "base/err.h"
#include "proc/module.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 32

const struct tp_ops *const tp_built_in[] = {&tp_self, &tp_shm, &tp_tcp, &tp_mock, NULL};

const char *tp_names(char *text, size_t room)
{
    size_t n = 0;
    for (const struct tp_ops *const *t = tp_built_in; *t && n < room; t++)
        n += (size_t)snprintf(text + n, room - n, "%s%s", t == tp_built_in ? "" : t[1] ? ", " : " and ", (*t)->name);
    return text;
}

/* Names become names of files. */
static bool is_name(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!islower((unsigned char)name[i]) && !isdigit((unsigned char)name[i]) && name[i] != '_') return false;
    return len && len <= NAME_MAX_BYTES;
}

static int from_module(const char *name, const struct tp_ops **ops)
{
    char file[sizeof TP_MODULE_PREFIX + NAME_MAX_BYTES];
    snprintf(file, sizeof file, TP_MODULE_PREFIX "%s", name);
    const struct tp_module *m = module_load(file, TP_MODULE_SYMBOL);
    if (!m) return err_code();
    if (m->contract != TP_CONTRACT)
        return err_set(TERN_ERR_SYSTEM, "the module %s was built for another version of Tern (contract %u, here %u)", file,
                       m->contract, TP_CONTRACT);
    if (m->ops_bytes != sizeof(struct tp_ops) || m->env_bytes != sizeof(struct tp_env))
        return err_set(TERN_ERR_SYSTEM,
                       "the module %s was built with other headers of Tern: its struct tp_ops has %u bytes (here %zu), its "
                       "struct tp_env %u (here %zu)",
                       file, m->ops_bytes, sizeof(struct tp_ops), m->env_bytes, sizeof(struct tp_env));
    if (strcmp(m->ops->name, name))
        return err_set(TERN_ERR_SYSTEM, "the module %s has the transport '%s' in it", file, m->ops->name);
    *ops = m->ops;
    return 0;
}

int tp_find(const char *name, size_t len, const struct tp_ops **ops)
{
    char copy[NAME_MAX_BYTES + 1];
    for (const struct tp_ops *const *t = tp_built_in; *t; t++)
        if (strlen((*t)->name) == len && !strncmp((*t)->name, name, len)) {
            *ops = *t;
            return 0;
        }
    if (!is_name(name, len)) return err_set(TERN_ERR_NOT_FOUND, "a name is made of letters, digits and _");
    snprintf(copy, sizeof copy, "%.*s", (int)len, name);
    return from_module(copy, ops);
}

bool tp_list_shares(const char *list)
{
    bool shares = false;
    while (*list && !shares) {
        size_t len = strcspn(list, ","), name = strcspn(list, ":,");
        const struct tp_ops *ops;
        shares = name && !tp_find(list, name, &ops) && ops->cost.locality == TP_NODE && ops->map;
        list += len + (list[len] == ',');
    }
    return shares;
}
