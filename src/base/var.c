/* var.c - parsing and holding the variables of var.def. */
#include "base/var.h"
#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const struct var var_table[VAR_COUNT] = {
#define VAR(id, kind, def, unit, meaning) {"TERN_" #id, kind, def, unit, meaning},
#include "base/var.def"
#undef VAR
};

static struct value {
    bool set;
    int64_t num;
    char *text; /* VAR_TEXT and VAR_CHOICE */
} values[VAR_COUNT];
static bool is_open;

static int parse_number(const char *s, bool suffix, int64_t *out)
{
    char *end;
    errno = 0;
    long long v = strtoll(s, &end, 0);
    int shift = 0;
    if (errno || end == s) return TERN_ERR_ARG;
    if (suffix && *end) {
        const char *unit = strchr("kKmMgG", *end);
        if (!unit) return TERN_ERR_ARG;
        shift = 10 * ((int)(unit - "kKmMgG") / 2 + 1);
        end++;
    }
    if (*end || (suffix && v < 0) || v > INT64_MAX >> shift) return TERN_ERR_ARG;
    *out = (int64_t)v * ((int64_t)1 << shift);
    return 0;
}

static int parse_bool(const char *s, int64_t *out)
{
    static const char *const words[] = {"0", "1", "no", "yes", "off", "on", "false", "true"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (!strcasecmp(s, words[i])) {
            *out = (int64_t)(i & 1);
            return 0;
        }
    return TERN_ERR_ARG;
}

static int parse_choice(const char *list, const char *s, int64_t *out)
{
    size_t n = strlen(s);
    for (int64_t i = 0; list; i++) {
        const char *bar = strchr(list, '|');
        size_t len = bar ? (size_t)(bar - list) : strlen(list);
        if (n == len && !strncmp(list, s, n)) {
            *out = i;
            return 0;
        }
        list = bar ? bar + 1 : NULL;
    }
    return TERN_ERR_ARG;
}

int var_set(enum var_id id, const char *text)
{
    const struct var *d = &var_table[id];
    struct value *v = &values[id];
    int64_t num = 0;
    int rc = 0;
    switch (d->kind) {
    case VAR_INT: rc = parse_number(text, false, &num); break;
    case VAR_SIZE: rc = parse_number(text, true, &num); break;
    case VAR_BOOL: rc = parse_bool(text, &num); break;
    case VAR_CHOICE: rc = parse_choice(d->def, text, &num); break;
    case VAR_TEXT: break;
    }
    if (rc)
        return err_set(TERN_ERR_ARG, "variable %s: '%s' is not %s%s", d->name, text,
                       d->kind == VAR_CHOICE ? "one of " : d->kind == VAR_SIZE ? "a size (digits and K, M or G)" :
                       d->kind == VAR_BOOL ? "yes or no" : "a number", d->kind == VAR_CHOICE ? d->def : "");
    char *copy = strdup(text);
    if (!copy) return err_set(TERN_ERR_NOMEM, "no memory for variable %s", d->name);
    free(v->text);
    v->text = copy;
    v->num = num;
    return 0;
}

static int set_default(enum var_id id)
{
    const struct var *d = &var_table[id];
    char word[64];
    if (d->kind != VAR_CHOICE) return var_set(id, d->def);
    snprintf(word, sizeof word, "%.*s", (int)strcspn(d->def, "|"), d->def);
    return var_set(id, word);
}

int var_open(void)
{
    if (is_open) return 0;
    for (int id = 0; id < VAR_COUNT; id++) {
        const char *env = getenv(var_table[id].name);
        int rc = env && *env ? var_set(id, env) : set_default(id);
        if (rc) return rc;
        values[id].set = env && *env;
    }
    is_open = true;
    return 0;
}

int64_t var_int(enum var_id id) { return values[id].num; }

const char *var_text(enum var_id id) { return values[id].text ? values[id].text : ""; }

bool var_is_set(enum var_id id) { return values[id].set; }

void var_close(void)
{
    for (int id = 0; id < VAR_COUNT; id++) free(values[id].text);
    memset(values, 0, sizeof values);
    is_open = false;
}
