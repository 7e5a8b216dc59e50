/* info.c - see info.h. Objects are small: keys are found by looking at all of them. */
#include "obj/info.h"
#include "base/err.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define ROOM 8 /* pairs of a new object */

static int no_memory(void) { return err_set(TERN_ERR_NOMEM, "no memory for an info object"); }

struct info *info_new(void)
{
    struct info *i = handle_alloc(HANDLE_INFO, sizeof *i);
    if (!i) no_memory();
    return i;
}

void info_free(struct info *i)
{
    if (!i) return;
    for (int k = 0; k < i->n; k++) {
        free(i->pair[k].key);
        free(i->pair[k].value);
    }
    free(i->pair);
    handle_release(i, sizeof *i);
}

static struct info_pair *find(const struct info *i, const char *key)
{
    for (int k = 0; i && k < i->n; k++)
        if (!strcmp(i->pair[k].key, key)) return &i->pair[k];
    return NULL;
}

const char *info_get(const struct info *i, const char *key)
{
    const struct info_pair *p = find(i, key);
    return p ? p->value : NULL;
}

static int make_room(struct info *i)
{
    if (i->n < i->room) return 0;
    int room = i->room ? 2 * i->room : ROOM;
    struct info_pair *pair = realloc(i->pair, (size_t)room * sizeof *pair);
    if (!pair) return no_memory();
    i->pair = pair;
    i->room = room;
    return 0;
}

static int append(struct info *i, const char *key, char *value)
{
    char *own_key = strdup(key);
    if (!own_key || make_room(i)) {
        free(own_key);
        return no_memory();
    }
    i->pair[i->n++] = (struct info_pair){own_key, value};
    return 0;
}

int info_set(struct info *i, const char *key, const char *value)
{
    char *own = strdup(value);
    if (!own) return no_memory();
    struct info_pair *p = find(i, key);
    if (p) {
        free(p->value);
        p->value = own;
        return 0;
    }
    int rc = append(i, key, own);
    if (rc) free(own);
    return rc;
}

int info_delete(struct info *i, const char *key)
{
    struct info_pair *p = find(i, key);
    if (!p) return TERN_ERR_NOT_FOUND;
    free(p->key);
    free(p->value);
    i->n--;
    memmove(p, p + 1, (size_t)(&i->pair[i->n] - p) * sizeof *p);
    return 0;
}

struct info *info_dup(const struct info *from)
{
    struct info *i = info_new();
    for (int k = 0; i && from && k < from->n; k++) {
        if (!info_set(i, from->pair[k].key, from->pair[k].value)) continue;
        info_free(i);
        return NULL;
    }
    return i;
}

const char *info_copy_value(const struct info *i, const char *key, char to[MPI_MAX_INFO_VAL])
{
    handle_state_lock();
    const char *v = info_get(i, key);
    if (v) snprintf(to, MPI_MAX_INFO_VAL, "%s", v);
    handle_state_unlock();
    return v ? to : NULL;
}

struct info *info_snapshot(struct info *const *place)
{
    handle_state_lock();
    struct info *i = info_dup(*place);
    handle_state_unlock();
    return i;
}

int info_set_shared(struct info *i, const char *key, const char *value)
{
    handle_state_lock();
    int rc = info_set(i, key, value);
    handle_state_unlock();
    return rc;
}

bool info_true(const struct info *i, const char *key, bool otherwise)
{
    const char *v = info_get(i, key);
    if (v && !strcasecmp(v, "true")) return true;
    if (v && !strcasecmp(v, "false")) return false;
    return otherwise;
}
