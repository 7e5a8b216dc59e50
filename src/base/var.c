/* var.c - parsing and holding the variables of var.def. */
#include "base/var.h"
#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

const struct var var_table[VAR_COUNT] = {
#define VAR(id, kind, def, unit, meaning) {"TERN_" #id, kind, def, unit, meaning},
#include "base/var.def"
#undef VAR
};

static struct value {
    bool set;
    int64_t num;
    const char *text; /* the default as it stands in the table, or `own` */
    char *own;
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

/* *out: bit i stands for the word i of the list. */
static int parse_words(const char *list, const char *s, int64_t *out)
{
    int64_t words = 0;
    while (s) {
        const char *comma = strchr(s, ',');
        char *word = comma ? strndup(s, (size_t)(comma - s)) : strdup(s);
        int64_t i = 0;
        int rc = word ? parse_choice(list, word, &i) : TERN_ERR_NOMEM;
        free(word);
        if (rc) return rc;
        words |= (int64_t)1 << i;
        s = comma ? comma + 1 : NULL;
    }
    if (words & 1 && words != 1) return TERN_ERR_ARG; /* none, and some */
    *out = words;
    return 0;
}

static const char *kind_in_words(enum var_kind kind)
{
    switch (kind) {
    case VAR_CHOICE: return "one of ";
    case VAR_WORDS: return "the first of these words, or some of the others with commas between: ";
    case VAR_SIZE: return "a size (digits and K, M or G)";
    case VAR_BOOL: return "yes or no";
    default: return "a number";
    }
}

static int parse(const struct var *d, const char *text, int64_t *num)
{
    int rc = 0;
    switch (d->kind) {
    case VAR_INT: rc = parse_number(text, false, num); break;
    case VAR_SIZE: rc = parse_number(text, true, num); break;
    case VAR_BOOL: rc = parse_bool(text, num); break;
    case VAR_CHOICE: rc = parse_choice(d->def, text, num); break;
    case VAR_WORDS: rc = parse_words(d->def, text, num); break;
    case VAR_TEXT: break;
    }
    if (!rc) return 0;
    return err_set(TERN_ERR_ARG, "variable %s: '%s' is not %s%s", d->name, text, kind_in_words(d->kind), var_is_of_words(d) ? d->def : "");
}

/* `own`, from malloc, belongs to the variable from now on; NULL: memory is out. */
static int take(enum var_id id, char *own, int64_t num)
{
    struct value *v = &values[id];
    if (!own) return err_set(TERN_ERR_NOMEM, "no memory for variable %s", var_table[id].name);
    free(v->own);
    v->text = v->own = own;
    v->num = num;
    return 0;
}

int var_set(enum var_id id, const char *text)
{
    int64_t num = 0;
    int rc = parse(&var_table[id], text, &num);
    return rc ? rc : take(id, strdup(text), num);
}

static int set_default(enum var_id id)
{
    const struct var *d = &var_table[id];
    if (var_is_of_words(d)) return take(id, strndup(d->def, strcspn(d->def, "|")), d->kind == VAR_WORDS);
    values[id].text = d->def;
    return parse(d, d->def, &values[id].num);
}

/* The variable with the n bytes of `name`; VAR_COUNT: none. */
static int named(const char *name, size_t n)
{
    int id = 0;
    while (id < VAR_COUNT && (strncmp(var_table[id].name, name, n) || var_table[id].name[n])) id++;
    return id;
}

/* The values of all variables, NULL where there is none. The environment is long, and most of it is not ours: it is gone
 * through once. Of two entries of one name the first counts, as in getenv. */
static void find_all(const char *value[VAR_COUNT])
{
    for (char **e = environ; e && *e; e++) {
        const char *is = strncmp(*e, "TERN_", 5) ? NULL : strchr(*e, '=');
        int id = is ? named(*e, (size_t)(is - *e)) : VAR_COUNT;
        if (id < VAR_COUNT && !value[id]) value[id] = is + 1;
    }
}

int var_open(void)
{
    const char *env[VAR_COUNT] = {NULL};
    if (is_open) return 0;
    find_all(env);
    for (int id = 0; id < VAR_COUNT; id++) {
        bool set = env[id] && *env[id];
        int rc = set ? var_set(id, env[id]) : set_default(id);
        if (rc) return rc;
        values[id].set = set;
    }
    is_open = true;
    return 0;
}

int64_t var_int(enum var_id id) { return values[id].num; }

bool var_has(enum var_id id, const char *word)
{
    int64_t i = 0;
    return !parse_choice(var_table[id].def, word, &i) && values[id].num >> i & 1;
}

const char *var_text(enum var_id id) { return values[id].text ? values[id].text : ""; }

bool var_is_set(enum var_id id) { return values[id].set; }

void var_close(void)
{
    for (int id = 0; id < VAR_COUNT; id++) free(values[id].own);
    memset(values, 0, sizeof values);
    is_open = false;
}
