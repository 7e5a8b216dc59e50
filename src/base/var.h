/*
 * var.h - the variables that steer the library: one table (var.def), read from
 * the environment once at start, printed by tern_info.
 *
 * Sizes take the suffixes K, M, G (powers of 1024); a boolean is 0/1, yes/no,
 * on/off, true/false; a choice is one of the words of its list; words are some of
 * them, with commas between, or the first one alone, which stands for none.
 */
#ifndef TERN_BASE_VAR_H
#define TERN_BASE_VAR_H

#include "base/compiler.h"

enum var_kind { VAR_INT, VAR_SIZE, VAR_BOOL, VAR_TEXT, VAR_CHOICE, VAR_WORDS };

enum var_id {
#define VAR(id, kind, def, unit, meaning) VAR_##id,
#include "base/var.def"
#undef VAR
    VAR_COUNT
};

struct var {
    const char *name;    /* TERN_... */
    enum var_kind kind;
    const char *def;     /* default, as it would be written in the environment; a choice, and words: "default|other|other" */
    const char *unit;    /* "bytes", "us", "" ... */
    const char *meaning; /* one sentence */
};
extern const struct var var_table[VAR_COUNT];

/* Its default begins a list of words. */
static inline bool var_is_of_words(const struct var *d) { return d->kind == VAR_CHOICE || d->kind == VAR_WORDS; }

/* Reads the environment. A value that does not parse is an error in words that name the variable. Idempotent. */
int var_open(void);

int64_t var_int(enum var_id);        /* VAR_INT, VAR_SIZE, VAR_BOOL; VAR_CHOICE: index of the word chosen */
bool var_has(enum var_id, const char *word); /* VAR_WORDS: the word, one of the table's, is among those chosen */
const char *var_text(enum var_id);   /* VAR_TEXT, VAR_CHOICE: the word; others: as text. Never NULL; valid until var_close */
bool var_is_set(enum var_id);        /* set by the user rather than defaulted */
int var_set(enum var_id, const char *value); /* programmatic; same rules as the environment */
void var_close(void);

#endif
