/*
 * options.c - walks the command line. What each option means is in optset.c; here are only the rules common to all:
 *
 *     mpiexec [option ...] program [argument ...] [ : [option ...] program [argument ...] ] ...
 *
 * getopt is of no use for this: it takes abbreviations (so that a misspelt option would mean another one), knows no
 * options with two values (-env NAME VALUE), and has no ':'.
 */
#include "mpiexec/options.h"
#include "mpiexec/optset.h"
#include "mpiexec/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Is `name` (of length n) one of "a|b|c"? */
static bool named(const char *names, const char *name, size_t n)
{
    for (const char *p = names; p; p = strchr(p, '|')) {
        if (*p == '|') p++;
        if (strcspn(p, "|") == n && !strncmp(p, name, n)) return true;
    }
    return false;
}

static const struct optset *lookup(const char *name, size_t n)
{
    for (const struct optset *o = optset_table; o->names; o++)
        if (o->set && named(o->names, name, n)) return o;
    return NULL;
}

/* How many of the words that follow belong to the option. */
static int words_of(const struct optset *o, const char *next)
{
    if (o->nargs != OPTION_ASSIGNS) return o->nargs;
    return next && strchr(next, '=') ? 1 : 2;
}

/* One option at argv[*at]; *at moves behind it and its values. */
static int parse_option(struct spec *s, int argc, char **argv, int *at)
{
    char *word = argv[(*at)++];
    const char *name = word + (word[1] == '-' ? 2 : 1);
    const char *equals = strchr(name, '=');
    const struct optset *o = lookup(name, equals ? (size_t)(equals - name) : strlen(name));
    if (!o) {
        say("unknown option %s; --help lists the options", word);
        return EXIT_USAGE;
    }
    char *inline_value[1] = {equals ? word + (equals - word) + 1 : NULL};
    if (equals) {
        if (o->nargs == 1) return o->set(s, inline_value);
        say("option %.*s takes %s, so '=' makes no sense in it", (int)(equals - word), word,
            o->nargs ? "two values" : "no value");
        return EXIT_USAGE;
    }
    int words = words_of(o, *at < argc ? argv[*at] : NULL);
    if (argc - *at < words) {
        say("option %s needs %s: %s", word, words > 1 ? "two values" : "a value", o->args);
        return EXIT_USAGE;
    }
    char **values = argv + *at;
    *at += words;
    return o->set(s, values);
}

int options_parse(struct spec *s, int argc, char **argv)
{
    int at = 0;
    while (at < argc) {
        while (at < argc && argv[at][0] == '-' && argv[at][1]) {
            if (!strcmp(argv[at], "--")) {
                at++;
                break;
            }
            int rc = parse_option(s, argc, argv, &at);
            if (rc) return rc;
        }
        if (at == argc) break;
        struct app_spec *a = spec_app(s);
        while (at < argc && strcmp(argv[at], ":")) strv_push(&a->argv, argv[at++]);
        if (!a->argv.n) {
            say("a ':' stands where a program should: mpiexec [options] program [arguments] : [options] program ...");
            return EXIT_USAGE;
        }
        if (at < argc && ++at == argc) {
            say("nothing follows the last ':'");
            return EXIT_USAGE;
        }
    }
    return 0;
}

int options_environment(struct spec *s)
{
    char *timeout = getenv("MPIEXEC_TIMEOUT");
    if (!timeout || !*timeout) return 0;
    return lookup("timeout", strlen("timeout"))->set(s, &timeout);
}

void options_help(void)
{
    puts("usage: mpiexec [option ...] program [argument ...] [ : [option ...] program [argument ...] ] ...\n"
         "Starts the ranks of an MPI job (or of any program) on this machine. Every option may be written with one\n"
         "dash or two.");
    for (const struct optset *o = optset_table; o->names; o++) {
        if (!o->set) {
            printf("\n%s\n", o->names);
            continue;
        }
        char left[160] = "";
        size_t n = 0;
        for (const char *p = o->names; *p && n + 4 < sizeof left; p++) {
            if (p == o->names || p[-1] == '|') left[n++] = '-';
            if (*p == '|')
                left[n++] = ',', left[n++] = ' ';
            else
                left[n++] = *p;
        }
        printf("  %s %s\n        %s\n", left, o->args, o->help);
    }
}
