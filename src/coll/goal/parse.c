/*
 * parse.c - a program from its text (print.c), so that schedules can be written, kept and
 * compared as files.
 *
 * The block is written while the text is read: head, slots, room for the independent
 * operations, then each operation, with numbers of operations where edges will be. When
 * all have their places the edges are made, and goal_verify judges the result: only what
 * the text itself can be wrong in is looked for here.
 */
#include "coll/goal/arith.h"
#include "coll/goal/goal.h"

#include "base/err.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct parser {
    const char *at;
    int line, ops_line; /* here, and of the first operation */
    char *block; /* what has been written of it */
    size_t used, room;
    uint32_t *place; /* of each operation */
    int rc;
};

static bool wrong(struct parser *p, const char *what)
{
    if (p->rc) return false;
    size_t n = strcspn(p->at, "\n");
    p->rc = err_set(TERN_ERR_PROGRAM, "text of a schedule: line %d: %s at '%.*s'", p->line, what,
                    (int)min_size(n, 40), p->at);
    return false;
}

/* ---- reading ---------------------------------------------------------------- */

static void skip_blanks(struct parser *p)
{
    while (*p->at == ' ' || *p->at == '\t') p->at++;
}

/* Is that what comes next? Then it is taken. */
static bool take(struct parser *p, const char *word)
{
    size_t n = strlen(word);
    skip_blanks(p);
    if (strncmp(p->at, word, n)) return false;
    p->at += n;
    return true;
}

static bool need(struct parser *p, const char *word)
{
    char what[48] = "expected ";
    if (take(p, word)) return true;
    return wrong(p, strcat(what, word));
}

static bool at_number(struct parser *p)
{
    skip_blanks(p);
    return (*p->at >= '0' && *p->at <= '9') || *p->at == '-';
}

static bool number(struct parser *p, int64_t lo, int64_t hi, int64_t *out)
{
    char *end;
    if (!at_number(p)) return wrong(p, "expected a number");
    errno = 0;
    long long v = strtoll(p->at, &end, 10);
    if (errno || end == p->at || v < lo || v > hi) return wrong(p, "a number is out of range");
    p->at = end;
    *out = v;
    return true;
}

static bool end_of_line(struct parser *p)
{
    skip_blanks(p);
    if (*p->at == '\r') p->at++;
    if (*p->at != '\n') return *p->at ? wrong(p, "expected the end of the line") : true;
    p->at++;
    p->line++;
    return true;
}

/* ---- writing ------------------------------------------------------------------ */

/* Room for n more bytes of the block, zeroed; NULL: the parser has failed. */
static void *append(struct parser *p, size_t n)
{
    if (p->rc) return NULL;
    if (p->used + n > UINT32_MAX) {
        p->rc = err_set(TERN_ERR_UNSUPPORTED, "text of a schedule: the program exceeds 4 GB");
        return NULL;
    }
    if (p->used + n > p->room) {
        size_t room = max_size(2 * p->room, p->used + n + 256);
        char *block = realloc(p->block, room);
        if (!block) {
            p->rc = err_set(TERN_ERR_NOMEM, "no memory for a schedule of %zu bytes", p->used + n);
            return NULL;
        }
        p->block = block;
        p->room = room;
    }
    void *at = memset(p->block + p->used, 0, n);
    p->used += n;
    return at;
}

static struct goal_head *head_of(const struct parser *p) { return (struct goal_head *)p->block; }
static struct goal_op *op_of_index(const struct parser *p, uint32_t i) { return (struct goal_op *)(p->block + p->place[i]); }

/* ---- head and slots -------------------------------------------------------------- */

/* Counts are bounded by the text that is left, which has at least some bytes for each. */
static bool read_head(struct parser *p)
{
    int64_t version, rank, size, ops, indep, scratch, slots, bytes, most = (int64_t)strlen(p->at);
    bool ok = need(p, "schedule v") && number(p, GOAL_VERSION, GOAL_VERSION, &version) && need(p, ": rank") &&
              number(p, 0, INT32_MAX, &rank) && need(p, "of") && number(p, 1, INT32_MAX, &size) && need(p, ",") &&
              number(p, 0, most, &ops) && need(p, "operations,") && number(p, 0, ops, &indep) &&
              need(p, "independent, scratchpad") && number(p, 0, (int64_t)GOAL_LEN_MAX, &scratch) && need(p, "bytes");
    bool typed = ok && take(p, "of elements");
    ok = ok && need(p, ",") && number(p, 0, GOAL_SLOT_MAX + 1, &slots) && need(p, "slots,") &&
         number(p, 0, UINT32_MAX, &bytes) && need(p, "bytes") && end_of_line(p);
    if (!ok) return false;
    size_t first = sizeof(struct goal_head) + (size_t)slots * sizeof(struct goal_range) + (size_t)indep * sizeof(uint32_t);
    first = round_up(first, 8);
    struct goal_head *h = append(p, first);
    if (!h) return false;
    *h = (struct goal_head){GOAL_MAGIC, GOAL_VERSION, typed ? GOAL_TYPED_SCRATCH : 0, (uint32_t)bytes, (uint32_t)ops,
                            (uint32_t)indep, (uint32_t)slots, (int32_t)rank, (int32_t)size, scratch, (uint32_t)first, 0};
    p->place = calloc((size_t)ops + 1, sizeof *p->place);
    if (!p->place) p->rc = err_set(TERN_ERR_NOMEM, "no memory for a schedule of %lld operations", (long long)ops);
    return !p->rc;
}

static bool span(struct parser *p, int64_t *lo, int64_t *hi)
{
    const int64_t most = (int64_t)GOAL_LEN_MAX;
    return need(p, "[") && number(p, -most, most, lo) && need(p, ",") && number(p, *lo, most, hi) && need(p, ")");
}

static bool read_slot(struct parser *p)
{
    int64_t slot, lo, hi;
    if (!number(p, 0, (int64_t)head_of(p)->slot_count - 1, &slot) || !need(p, "(")) return false;
    while (*p->at && *p->at != ')' && *p->at != '\n') p->at++; /* the name says the same again */
    if (!need(p, ")") || !span(p, &lo, &hi)) return false;
    unsigned flags = take(p, "read") ? GOAL_SLOT_READ : 0;
    if (take(p, "write")) flags |= GOAL_SLOT_WRITE;
    struct goal_range *r = (struct goal_range *)(head_of(p) + 1) + slot;
    *r = (struct goal_range){lo, hi, flags, 0};
    return end_of_line(p);
}

/* ---- operations -------------------------------------------------------------------- */

static bool slot_named(struct parser *p, int64_t *slot)
{
    static const char *const name[] = {"send", "recv", "scratch"};
    for (*slot = 0; *slot < (int64_t)ARRAY_LEN(name); ++*slot)
        if (take(p, name[*slot])) return true;
    return need(p, "slot") && number(p, 0, GOAL_SLOT_MAX, slot);
}

static bool at_piece(struct parser *p)
{
    skip_blanks(p);
    return (!strncmp(p->at, "send", 4) || !strncmp(p->at, "recv", 4) || !strncmp(p->at, "scratch", 7) ||
            !strncmp(p->at, "slot", 4));
}

/* Pieces, or "nothing"; how many they are. */
static bool read_pieces(struct parser *p, uint16_t *n)
{
    int64_t slot, lo, hi;
    if (take(p, "nothing")) return true;
    while (at_piece(p)) {
        if (*n == GOAL_PIECES_MAX) return wrong(p, "too many pieces");
        if (!slot_named(p, &slot) || !span(p, &lo, &hi)) return false;
        struct goal_piece *piece = append(p, sizeof *piece);
        if (!piece) return false;
        *piece = (struct goal_piece){lo, (uint64_t)slot << 48 | (uint64_t)(hi - lo)};
        ++*n;
    }
    return true;
}

/* Numbers of operations, as edges to be. */
static bool read_edges(struct parser *p, uint16_t *n)
{
    int64_t to;
    while (at_number(p)) {
        if (*n == GOAL_EDGES_MAX) return wrong(p, "too many successors");
        if (!number(p, 0, (int64_t)head_of(p)->op_count - 1, &to)) return false;
        uint32_t *edge = append(p, sizeof *edge);
        if (!edge) return false;
        *edge = (uint32_t)to;
        ++*n;
    }
    return true;
}

/* The longest of the names fits: "reduce3" is not "reduce". */
static size_t length_of_word(const struct parser *p) { return strspn(p->at, "abcdefghijklmnopqrstuvwxyz0123456789"); }

static int find_name(struct parser *p, const char *(*name)(unsigned), unsigned from, unsigned to)
{
    size_t n = length_of_word(p);
    for (unsigned i = from; i < to; i++)
        if (name(i) && strlen(name(i)) == n && !strncmp(name(i), p->at, n)) {
            p->at += n;
            return (int)i;
        }
    return -1;
}

static bool read_message(struct parser *p, struct goal_op *op)
{
    int64_t peer, tag;
    if (!need(p, op->type == GOAL_OP_SEND ? "to" : "from") || !number(p, 0, INT32_MAX, &peer) || !need(p, "tag") ||
        !number(p, 0, UINT16_MAX, &tag) || !need(p, ":"))
        return false;
    op->peer = (int32_t)peer;
    op->tag = (uint16_t)tag;
    return true;
}

/* What the operation does, up to its pieces. */
static bool read_verb(struct parser *p, struct goal_op *op)
{
    skip_blanks(p);
    int type = find_name(p, goal_type_name, 1, GOAL_OP_ARITH);
    if (type >= 0) {
        op->type = (uint8_t)type;
        return type > GOAL_OP_RECV || read_message(p, op);
    }
    int sign = find_name(p, goal_operator_name, 0, 256), numbers;
    if (sign < 0) return wrong(p, "unknown operation");
    skip_blanks(p);
    if ((numbers = find_name(p, goal_number_name, 0, 256)) < 0) return wrong(p, "unknown type of numbers");
    op->type = GOAL_OP_ARITH;
    op->tag = (uint16_t)ARITH_CODE(sign, numbers);
    return need(p, ":");
}

/* Pieces read stand before the arrow; a receive and a stamp only write. */
static bool read_lists(struct parser *p, struct goal_op *op)
{
    if (op->type == GOAL_OP_RECV || op->type == GOAL_OP_STAMP) return read_pieces(p, &op->n_out);
    if (!read_pieces(p, &op->n_in)) return false;
    return !take(p, "->") || read_pieces(p, &op->n_out);
}

static bool read_op(struct parser *p, uint32_t index)
{
    struct goal_op op = {.index = index};
    int64_t said;
    p->place[index] = (uint32_t)p->used;
    if (!number(p, index, index, &said) || !read_verb(p, &op) || !append(p, sizeof op) || !read_lists(p, &op)) return false;
    if (take(p, "then") && !read_edges(p, &op.n_finish)) return false;
    if (take(p, "started:") && !read_edges(p, &op.n_start)) return false;
    if (!append(p, round_up(p->used, 8) - p->used)) return false;
    memcpy(p->block + p->place[index], &op, sizeof op);
    return end_of_line(p);
}

/* ---- the graph ------------------------------------------------------------------------- */

static bool make_edges(struct parser *p)
{
    struct goal_head *h = head_of(p);
    for (uint32_t i = 0; i < h->op_count; i++) {
        struct goal_op *op = op_of_index(p, i);
        uint32_t *to = (uint32_t *)(uintptr_t)goal_edges(op);
        for (unsigned k = 0; k < (unsigned)op->n_finish + op->n_start; k++) {
            op_of_index(p, to[k])->dependencies++;
            to[k] = p->place[to[k]];
        }
    }
    uint32_t *indep = (uint32_t *)(uintptr_t)goal_indep(h), n = 0;
    for (uint32_t i = 0; i < h->op_count; i++) {
        if (op_of_index(p, i)->dependencies) continue;
        if (n == h->indep_ops_count) return wrong(p, "more operations are independent than the first line says");
        indep[n++] = p->place[i];
    }
    return n == h->indep_ops_count || wrong(p, "fewer operations are independent than the first line says");
}

static bool read_all(struct parser *p)
{
    if (!read_head(p)) return false;
    while (take(p, "slot"))
        if (!read_slot(p)) return false;
    p->ops_line = p->line;
    for (uint32_t i = 0; i < head_of(p)->op_count; i++)
        if (!read_op(p, i)) return false;
    p->at += strspn(p->at, " \t\r\n");
    return *p->at ? wrong(p, "more lines than operations") : make_edges(p);
}

/* Judges what was read; the words about an operation say its line. */
static int judge(const struct parser *p)
{
    char words[300];
    uint32_t op;
    int rc = goal_verify_at(p->block, p->used, &op);
    if (!rc || op == GOAL_NO_OP) return rc;
    strncpy(words, err_words(), sizeof words - 1);
    words[sizeof words - 1] = 0;
    return err_set(rc, "text of a schedule: line %u: %s", (unsigned)p->ops_line + op, words);
}

int goal_parse_at(const char *text, int *line, struct goal_prog **prog_p)
{
    struct parser p = {.at = text, .line = *line};
    if (read_all(&p)) p.rc = judge(&p);
    if (!p.rc) p.rc = goal_import(p.block, p.used, prog_p);
    if (!p.rc) *line = p.ops_line;
    free(p.place);
    free(p.block);
    return p.rc;
}

int goal_parse(const char *text, struct goal_prog **prog_p)
{
    int line = 1;
    return goal_parse_at(text, &line, prog_p);
}
