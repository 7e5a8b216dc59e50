/* goal_files.c - see goal_files.h. A program begins at each line that begins like one. */
#include "tool/goal_files.h"

#include "base/err.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX (256 << 20) /* bytes of a file: some 4 million operations */

void goal_tell(const char *file, int line, const char *words)
{
    fprintf(stderr, "tern_goal: %s", strcmp(file, "-") ? file : "standard input");
    if (line) fprintf(stderr, ":%d", line);
    fprintf(stderr, ": %s\n", words);
}

/* ---- reading -------------------------------------------------------------------- */

/* All of a stream, with a zero behind; NULL: errno. */
static char *read_stream(FILE *f, size_t *n_p)
{
    size_t room = 1 << 16, n = 0;
    char *text = malloc(room);
    while (text) {
        n += fread(text + n, 1, room - n - 1, f);
        if (ferror(f) || n > TEXT_MAX) break;
        if (feof(f)) {
            text[n] = 0;
            *n_p = n;
            return text;
        }
        char *more = n + 1 < room ? text : realloc(text, room *= 2);
        if (!more) free(text);
        text = more;
    }
    if (text && n > TEXT_MAX) errno = EFBIG;
    free(text);
    return NULL;
}

static char *read_file(const char *file, size_t *n_p)
{
    FILE *f = strcmp(file, "-") ? fopen(file, "r") : stdin;
    char *text = f ? read_stream(f, n_p) : NULL;
    int error = errno;
    if (f && f != stdin) fclose(f);
    errno = error;
    if (!text && error == EFBIG)
        goal_tell(file, 0, "more than 256 MB; that is no schedule");
    else if (!text)
        goal_tell(file, 0, strerror(error));
    return text;
}

static int count_lines(const char *from, const char *to)
{
    int n = 0;
    for (; (from = memchr(from, '\n', (size_t)(to - from))); from++) n++;
    return n;
}

/* Does a program begin at this line? */
static bool begins(const char *line) { return !strncmp(line + strspn(line, " \t"), "schedule v", 10); }

/* The line behind this one at which the next program begins; NULL: there is none. */
static char *next_program(char *at)
{
    while ((at = strchr(at, '\n')))
        if (begins(++at)) return at;
    return NULL;
}

static bool append(struct goal_texts *t, struct goal_text x)
{
    struct goal_text *all = realloc(t->all, ((size_t)t->n + 1) * sizeof *all);
    if (!all) return false;
    t->all = all;
    t->all[t->n++] = x;
    return true;
}

/* The programs of a text, up to the first mistake. */
static bool read_programs(struct goal_texts *t, const char *file, char *text)
{
    int line = 1;
    char *at = text + strspn(text, " \t\r\n");
    line += count_lines(text, at);
    if (!*at) {
        goal_tell(file, 0, "there is no schedule in it");
        return false;
    }
    while (at) {
        char *next = next_program(at);
        int lines = next ? count_lines(at, next) : 0;
        struct goal_text x = {file, line, NULL};
        if (next) next[-1] = 0;
        if (goal_parse_at(at, &x.line, &x.prog)) {
            goal_tell(file, 0, err_words());
            return false;
        }
        if (!append(t, x)) {
            goal_unref(x.prog);
            goal_tell(file, 0, "memory is out");
            return false;
        }
        at = next;
        line += lines;
    }
    return true;
}

enum goal_read goal_texts_read(struct goal_texts *t, const char *file)
{
    size_t n = 0;
    char *text = read_file(file, &n);
    if (!text) return GOAL_READ_FAILED;
    size_t zero = strlen(text);
    bool good = zero == n;
    if (good)
        good = read_programs(t, file, text);
    else
        goal_tell(file, 1 + count_lines(text, text + zero), "a byte of zero, which is in no text");
    free(text);
    return good ? GOAL_READ : GOAL_READ_WRONG;
}

/* ---- order ------------------------------------------------------------------------ */

int goal_texts_place(const struct goal_texts *t, int i)
{
    int rank = t->all[i].prog->head.rank;
    return i < t->near ? rank : t->near + rank;
}

static int by_rank(const void *x, const void *y)
{
    int a = ((const struct goal_text *)x)->prog->head.rank, b = ((const struct goal_text *)y)->prog->head.rank;
    return a < b ? -1 : a > b;
}

/* Sorts the programs of one group; two for one rank are a mistake. */
static bool sort_group(struct goal_text *x, int n)
{
    char words[64];
    if (n > 0) qsort(x, (size_t)n, sizeof *x, by_rank);
    for (int i = 1; i < n; i++) {
        if (by_rank(&x[i - 1], &x[i])) continue;
        snprintf(words, sizeof words, "there are two schedules for rank %d", x[i].prog->head.rank);
        goal_tell(x[i].file, x[i].line, words);
        return false;
    }
    return true;
}

/* Do all of them say the same number of ranks? */
static bool agree(struct goal_texts *t)
{
    char words[80];
    for (int i = 0; i < t->n; i++) {
        int ranks = t->all[i].prog->head.size;
        if (i && ranks != t->ranks) {
            snprintf(words, sizeof words, "a schedule among %d ranks, where others are among %d", ranks, t->ranks);
            goal_tell(t->all[i].file, t->all[i].line, words);
            return false;
        }
        t->ranks = ranks;
    }
    return true;
}

bool goal_texts_sort(struct goal_texts *t, int near)
{
    if (!agree(t)) return false;
    t->near = near ? near : t->ranks;
    int first = t->near < t->n ? t->near : t->n;
    if (!sort_group(t->all, first) || !sort_group(t->all + first, t->n - first)) return false;
    t->whole = t->n == t->ranks;
    for (int i = 0; i < t->n; i++) t->whole &= goal_texts_place(t, i) == i;
    return true;
}

void goal_texts_close(struct goal_texts *t)
{
    for (int i = 0; i < t->n; i++) goal_unref(t->all[i].prog);
    free(t->all);
}
