/* table.c - see table.h. */
#include "coll/table.h"

#include "base/err.h"
#include "base/text.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 512
#define NUMBER_ANY     INT32_MAX
#define BYTES_ANY      INT64_MAX

/* ---- words ------------------------------------------------------------------ */

/* Takes words off a line, and says where it went wrong. */
struct reader {
    const char *source;
    int line; /* 0: it is not a text of lines */
    char *rest;
    char *word; /* the one looked at; NULL: the end */
};

static void next(struct reader *r) { r->word = strtok_r(NULL, " \t\r", &r->rest); }

TERN_COLD static int wrong(const struct reader *r, const char *what)
{
    char line[32] = "";
    if (r->line) snprintf(line, sizeof line, ", line %d", r->line);
    if (!r->word) return err_set(TERN_ERR_ARG, "%s%s: the end, where %s was expected", r->source, line, what);
    return err_set(TERN_ERR_ARG, "%s%s: '%s' is not %s", r->source, line, r->word, what);
}

static bool is(const struct reader *r, const char *word) { return r->word && !strcmp(r->word, word); }

/* Digits, with K, M or G behind them where `size` says so; -1 if the text is something else. */
static int64_t number(const char *s, bool size, char **end)
{
    static const char unit[] = "kKmMgG";
    if (*s < '0' || *s > '9') return -1;
    errno = 0;
    int64_t v = strtoll(s, end, 10);
    const char *u = size && **end ? strchr(unit, **end) : NULL;
    int shift = u ? 10 * ((int)(u - unit) / 2 + 1) : 0;
    if (u) ++*end;
    return errno || v > INT64_MAX >> shift ? -1 : v * (INT64_C(1) << shift);
}

static int read_size(struct reader *r, int64_t least, int64_t *out)
{
    char *end;
    next(r);
    int64_t v = r->word ? number(r->word, true, &end) : -1;
    if (v < least || *end) return wrong(r, "a size (digits and K, M or G)");
    *out = v;
    return 0;
}

static int read_number(struct reader *r, int64_t least, int64_t most, const char *what, int32_t *out)
{
    char *end;
    next(r);
    int64_t v = r->word ? number(r->word, false, &end) : -1;
    if (v < least || v > most || *end) return wrong(r, what);
    *out = (int32_t)v;
    return 0;
}

/* "4", "2-8", "9+" of `what` */
static int read_span(struct reader *r, const char *what, struct coll_span *span)
{
    char *end, words[64];
    next(r);
    snprintf(words, sizeof words, "a number of %s ('4', '2-8' or '9+')", what);
    int64_t min = r->word ? number(r->word, false, &end) : -1, max = min;
    if (min < 1) return wrong(r, words);
    if (*end == '+') max = NUMBER_ANY, end++;
    else if (*end == '-') max = number(end + 1, false, &end);
    if (*end || max < min || max > NUMBER_ANY) return wrong(r, words);
    *span = (struct coll_span){(int32_t)min, (int32_t)max};
    return 0;
}

/* ---- rules ------------------------------------------------------------------- */

static int find_kind(const char *name)
{
    for (int k = 0; name && k < COLL_KINDS; k++)
        if (!strcmp(coll_kind_name((enum coll_kind)k), name)) return k;
    return -1;
}

static int read_option(struct reader *r, struct coll_choice *c)
{
    if (c->way == COLL_WAY_WIDE && is(r, "slices")) return read_number(r, 1, NUMBER_ANY, "a number of slices", &c->slices);
    if (c->way) return wrong(r, c->way == COLL_WAY_WIDE ? "'slices'" : "the end of a rule for a way");
    if (is(r, "radix")) return read_number(r, 2, COLL_RADIX_MAX, "a radix (2 to 64)", &c->radix);
    if (is(r, "segment")) return read_size(r, 1, &c->segment);
    if (!is(r, "messages")) return wrong(r, "'radix', 'segment' or 'messages'");
    c->messages = true;
    return 0;
}

/* For these calls; an algorithm is for all. */
static int read_choice(struct reader *r, enum coll_kind kind, enum coll_calls calls, struct coll_choice *c)
{
    static const char *const these[] = {"an algorithm or way of", "a way of blocking", "a way of nonblocking"};
    char what[64];
    snprintf(what, sizeof what, "%s %s", these[calls], coll_kind_name(kind));
    *c = (struct coll_choice){.alg = -1};
    if (r->word) c->way = (uint8_t)coll_way_find(kind, calls, r->word);
    if (r->word && !calls) c->alg = coll_alg_find(kind, r->word);
    if (c->alg < 0 && !c->way) return wrong(r, what);
    int rc = 0;
    for (next(r); !rc && r->word; next(r)) {
        rc = read_option(r, c);
        if (rc) return rc;
    }
    return 0;
}

static int read_condition(struct reader *r, struct coll_rule *rule)
{
    if (is(r, "near")) rule->place = COLL_PLACE_NEAR;
    else if (is(r, "oversubscribed")) rule->place = COLL_PLACE_OVERSUBSCRIBED;
    else if (is(r, "far")) rule->place = COLL_PLACE_FAR;
    else if (is(r, "leaders")) rule->place = COLL_PLACE_LEADERS;
    else if (is(r, "domain_leaders")) rule->place = COLL_PLACE_DOMAIN_LEADERS;
    else if (is(r, "blocking")) rule->calls = COLL_CALLS_BLOCKING;
    else if (is(r, "nonblocking")) rule->calls = COLL_CALLS_NONBLOCKING;
    else if (is(r, "commutes")) rule->order = COLL_ORDER_COMMUTES;
    else if (is(r, "ordered")) rule->order = COLL_ORDER_KEPT;
    else if (is(r, "ranks")) return read_span(r, "ranks", &rule->ranks);
    else if (is(r, "nodes")) return read_span(r, "nodes", &rule->nodes);
    else if (is(r, "domains")) return read_span(r, "domains", &rule->domains);
    else if (is(r, "from")) return read_size(r, 0, &rule->from);
    else if (is(r, "below")) return read_size(r, 1, &rule->below);
    else return wrong(r, "a condition (near oversubscribed far leaders domain_leaders blocking nonblocking commutes ordered "
                         "ranks nodes domains from below) or ':'");
    return 0;
}

/* A line that is not empty. */
static int read_rule(struct reader *r, struct coll_rule *rule)
{
    int kind = find_kind(r->word);
    if (kind < 0) return wrong(r, "a collective operation");
    *rule = (struct coll_rule){.kind = (uint8_t)kind, .below = BYTES_ANY, .line = r->line};
    rule->ranks = rule->nodes = rule->domains = (struct coll_span){0, NUMBER_ANY};
    for (next(r); !is(r, ":"); next(r)) {
        int rc = read_condition(r, rule);
        if (rc) return rc;
    }
    if (rule->from >= rule->below) return wrong(r, "a sensible end of an empty range of bytes");
    next(r);
    return read_choice(r, (enum coll_kind)kind, (enum coll_calls)rule->calls, &rule->use);
}

static bool holds(const struct coll_span *a, const struct coll_span *b) { return a->min <= b->min && b->max <= a->max; }

/* Of two rules for the same call: does the first always decide what the second one could decide? */
static bool comes_before(const struct coll_rule *a, const struct coll_rule *b)
{
    if (!a->use.way != !b->use.way) return false;
    if (!a->use.way) return coll_algs[a->use.alg].flags == (coll_algs[b->use.alg].flags & ALG_INTER);
    if (a->calls && a->calls != b->calls) return false;
    if (a->use.way == COLL_WAY_MESSAGES) return true;
    return a->use.way == b->use.way && (!a->use.slices || a->use.slices == b->use.slices);
}

/* Does everything that b is for come to a first? */
static bool hides(const struct coll_rule *a, const struct coll_rule *b)
{
    bool place = !a->place || a->place == b->place || (a->place == COLL_PLACE_FAR && b->place == COLL_PLACE_LEADERS) ||
                 (a->place == COLL_PLACE_NEAR && b->place == COLL_PLACE_OVERSUBSCRIBED);
    bool order = !a->order || a->order == b->order;
    bool ranks = holds(&a->ranks, &b->ranks) && holds(&a->nodes, &b->nodes) && holds(&a->domains, &b->domains);
    bool bytes = a->from <= b->from && b->below <= a->below;
    return a->kind == b->kind && place && order && ranks && bytes && comes_before(a, b);
}

static int check_hidden(const struct coll_table *t, const char *source)
{
    const struct coll_rule *last = &t->rule[t->n - 1];
    for (const struct coll_rule *r = t->rule; r < last; r++)
        if (hides(r, last))
            return err_set(TERN_ERR_ARG, "%s, line %d: this rule of %s never decides, since that of line %d does first",
                           source, last->line, coll_kind_name((enum coll_kind)last->kind), r->line);
    return 0;
}

static int add_rule(struct coll_table *t, const struct coll_rule *rule)
{
    if (t->n % 64 == 0) {
        struct coll_rule *more = realloc(t->rule, (t->n + 64) * sizeof *more);
        if (!more) return err_set(TERN_ERR_NOMEM, "no memory for a table of collectives");
        t->rule = more;
    }
    t->rule[t->n++] = *rule;
    if (rule->use.way || rule->use.messages) t->ways = t->n;
    return 0;
}

static int read_line(struct coll_table *t, char *line, struct reader *r)
{
    struct coll_rule rule;
    r->word = strtok_r(line, " \t\r", &r->rest);
    if (!r->word) return 0;
    int rc = read_rule(r, &rule);
    if (!rc) rc = add_rule(t, &rule);
    return rc ? rc : check_hidden(t, r->source);
}

/* n bytes of text, up to the end of the line or its comment, which may be long. */
static int copy_line(struct coll_table *t, const char *text, size_t n, struct reader *r)
{
    char line[LINE_MAX_BYTES];
    if (n >= sizeof line) return err_set(TERN_ERR_ARG, "%s, line %d is too long", r->source, r->line);
    memcpy(line, text, n);
    line[n] = 0;
    return read_line(t, line, r);
}

int coll_table_read(struct coll_table *t, const char *text, const char *source)
{
    struct reader r = {.source = source};
    *t = (struct coll_table){0};
    int rc = 0;
    while (!rc && *text) {
        size_t n = strcspn(text, "\n");
        r.line++;
        rc = copy_line(t, text, strcspn(text, "#\n"), &r);
        text += n + (text[n] != 0);
    }
    if (rc) coll_table_free(t);
    return rc;
}

#define FILE_MAX_BYTES (4 << 20)

int coll_table_load(struct coll_table *t, const char *path)
{
    *t = (struct coll_table){0};
    FILE *f = fopen(path, "r");
    if (!f) return err_sys("variable TERN_COLL_TABLE: the table of collectives %.200s cannot be read", path);
    char *text = NULL;
    size_t room = 0;
    errno = 0;
    ssize_t n = getdelim(&text, &room, 0, f); /* to the first NUL, of which a text has none */
    int rc = 0;
    if (n < 0 && ferror(f))
        rc = err_sys("variable TERN_COLL_TABLE: the table of collectives %.200s cannot be read", path);
    else if (n > FILE_MAX_BYTES)
        rc = err_set(TERN_ERR_ARG, "variable TERN_COLL_TABLE: the table of collectives %.200s is larger than 4 MB",
                     path);
    else if (n > 0) rc = coll_table_read(t, text, path);
    free(text);
    fclose(f);
    return rc;
}

void coll_table_free(struct coll_table *t)
{
    free(t->rule);
    *t = (struct coll_table){0};
}

/* ---- use ---------------------------------------------------------------------- */

static bool in(const struct coll_span *s, int n) { return s->min <= n && n <= s->max; }

static bool is_place(const struct coll_rule *r, const struct coll_shape *s)
{
    switch ((enum coll_place)r->place) {
    case COLL_PLACE_NEAR: return !(s->flags & COLL_FAR);
    case COLL_PLACE_OVERSUBSCRIBED: return s->flags & COLL_OVERSUBSCRIBED;
    case COLL_PLACE_FAR: return s->flags & COLL_FAR;
    case COLL_PLACE_LEADERS: return s->nodes > 1 && s->nodes < s->size;
    case COLL_PLACE_DOMAIN_LEADERS: return s->domains > s->nodes && s->domains < s->size;
    case COLL_PLACE_ANY: break;
    }
    return true;
}

static bool is_for(const struct coll_rule *r, const struct coll_shape *s)
{
    int domains = s->domains > s->nodes ? s->domains : s->nodes;
    /* Each rank sees its own block only; where a way is chosen, bytes that all know are given. */
    int64_t bytes = coll_has_blocks((enum coll_kind)s->kind) && !r->use.way ? 0 : s->bytes;
    if (r->kind != s->kind || bytes < r->from || bytes >= r->below || !is_place(r, s)) return false;
    if (!in(&r->ranks, s->size) || !in(&r->nodes, s->nodes) || !in(&r->domains, domains)) return false;
    return r->order == COLL_ORDER_ANY || !(s->flags & COLL_ORDERED) == (r->order == COLL_ORDER_COMMUTES);
}

const struct coll_rule *coll_table_find(const struct coll_table *t, const struct coll_shape *s)
{
    for (const struct coll_rule *r = t->rule; r < t->rule + t->n; r++)
        if (!r->use.way && is_for(r, s) && coll_alg_fits(r->use.alg, s)) return r;
    return NULL;
}

bool coll_table_ways(const struct coll_table *t, const struct coll_shape *s, bool blocking, struct coll_way_list *l)
{
    enum coll_calls others = blocking ? COLL_CALLS_NONBLOCKING : COLL_CALLS_BLOCKING;
    bool named = !blocking; /* the algorithm; what it says of messages is for blocking calls */
    for (const struct coll_rule *r = t->rule; r < t->rule + t->ways; r++) {
        enum coll_way way = (enum coll_way)r->use.way;
        if ((way ? r->calls == others : named) || !is_for(r, s)) continue;
        if (!way) named = coll_alg_fits(r->use.alg, s);
        if (way ? way == COLL_WAY_MESSAGES : named && r->use.messages) return true;
        if (way) coll_way_add(l, way, r->use.slices);
    }
    return false;
}

/* ---- text ---------------------------------------------------------------------- */

static void print_size(FILE *f, const char *word, int64_t n)
{
    int unit = 0;
    while (n && unit < 3 && n % 1024 == 0) n /= 1024, unit++;
    fprintf(f, " %s %lld%.1s", word, (long long)n, &"\0KMG"[unit]);
}

static void print_span(FILE *f, const char *word, const struct coll_span *s)
{
    if (s->max == s->min) fprintf(f, " %s %d", word, s->min);
    else if (s->max != NUMBER_ANY) fprintf(f, " %s %d-%d", word, s->min, s->max);
    else if (s->min > 1) fprintf(f, " %s %d+", word, s->min);
}

static void print_rule(FILE *f, const struct coll_rule *r)
{
    static const char *const place[] = {"", " near", " oversubscribed", " far", " leaders", " domain_leaders"};
    static const char *const calls[] = {"", " blocking", " nonblocking"};
    static const char *const order[] = {"", " commutes", " ordered"};
    fprintf(f, "%-22s%s%s%s", coll_kind_name((enum coll_kind)r->kind), place[r->place], calls[r->calls], order[r->order]);
    print_span(f, "ranks", &r->ranks);
    print_span(f, "nodes", &r->nodes);
    print_span(f, "domains", &r->domains);
    if (r->from) print_size(f, "from", r->from);
    if (r->below != BYTES_ANY) print_size(f, "below", r->below);
    fprintf(f, " : %s", r->use.way ? coll_ways[r->use.way].name : coll_algs[r->use.alg].name);
    if (r->use.slices) fprintf(f, " slices %d", r->use.slices);
    if (r->use.radix) fprintf(f, " radix %d", r->use.radix);
    if (r->use.segment) print_size(f, "segment", r->use.segment);
    if (r->use.messages) fputs(" messages", f);
    fputc('\n', f);
}

static void print_rules(FILE *f, const void *what)
{
    const struct coll_table *t = what;
    for (size_t i = 0; i < t->n; i++) print_rule(f, &t->rule[i]);
}

char *coll_table_print(const struct coll_table *t) { return text_of(print_rules, t); }

int coll_choice_read(enum coll_kind kind, const char *text, const char *source, struct coll_choice *c)
{
    char line[LINE_MAX_BYTES];
    struct reader r = {.source = source};
    if (strlen(text) >= sizeof line) return err_set(TERN_ERR_ARG, "%s: the value is too long", source);
    strcpy(line, text);
    r.word = strtok_r(line, " \t\r", &r.rest);
    return read_choice(&r, kind, COLL_CALLS_ANY, c);
}
