/* configfile.c - command lines from a file. */
#include "mpiexec/configfile.h"
#include "mpiexec/options.h"
#include "mpiexec/textfile.h"
#include "mpiexec/words.h"

#include <stdlib.h>
#include <string.h>

/* Copies one word from *p to `out`, quotes resolved; *p moves behind it. False when a quote is open at the end. */
static bool next_word(const char **p, char *out)
{
    char quote = 0;
    const char *s = *p;
    for (; *s && (quote || !strchr(" \t\r\n", *s)); s++) {
        if (quote ? *s == quote : *s == '\'' || *s == '"')
            quote = quote ? 0 : *s;
        else if (*s == '\\' && quote != '\'' && s[1])
            *out++ = *++s;
        else
            *out++ = *s;
    }
    *out = 0;
    *p = s;
    return !quote;
}

bool configfile_split(const char *line, struct strv *words)
{
    char *word = xcalloc(strlen(line) + 1, 1);
    bool closed = true;
    for (const char *p = line; closed;) {
        p += strspn(p, " \t\r\n");
        if (!*p || *p == '#') break;
        closed = next_word(&p, word);
        if (closed) strv_push(words, xstrdup(word));
    }
    free(word);
    return closed;
}

struct config {
    struct spec *spec;
    const char *path;
};

/* Its words stay in memory, the spec points to them. */
static int read_line(void *arg, int number, char *line)
{
    const struct config *c = arg;
    struct strv words = {0};
    if (!configfile_split(line, &words)) {
        say("%s, line %d: a quote is not closed", c->path, number);
        return EXIT_USAGE;
    }
    if (!words.n) return 0;
    int rc = options_parse(c->spec, words.n, words.v);
    if (rc > 0) say("the words above are about %s, line %d", c->path, number);
    return rc;
}

int configfile_read(struct spec *s, const char *path)
{
    static int depth; /* a file may name another, but not for ever */
    struct config c = {s, path};
    if (depth == 8) {
        say("configuration files name each other without end: %s", path);
        return EXIT_USAGE;
    }
    depth++;
    int rc = textfile_read(path, "the configuration file", read_line, &c);
    depth--;
    return rc;
}
