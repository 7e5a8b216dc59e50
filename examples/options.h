/*
 * options.h - the command line of the examples: --name VALUE, --name=VALUE or --name alone, from a table.
 *
 *     static long size = 512;
 *     static const struct option table[] = {
 *         {.name = "size", .number = &size, .min = 3, .max = 20000, .help = "points in each direction (512)"},
 *         {.name = NULL}};
 *     int code = options_read(argc, argv, table, "jacobi - heat in a plate", rank == 0);
 *     if (code != OPTIONS_RUN) { MPI_Finalize(); return code; }
 *
 * All ranks read the same command line, so all come to the same result, and one of them speaks.
 */
#ifndef EXAMPLES_OPTIONS_H
#define EXAMPLES_OPTIONS_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Exactly one of number, text and flag is set: where the value goes. With `given`, the option may be there `max` times, and
 * text is an array. `what` names a text in the help (FILE). */
struct option {
    const char *name, *help, *what;
    long *number, min, max;
    const char **text;
    int *given;
    bool *flag;
};

/* What options_read returns: run the program, or end it with this exit code. */
enum { OPTIONS_RUN = -1, OPTIONS_HELP = 0, OPTIONS_BAD = 2 };

static inline int options_help(const struct option *table, const char *about, bool speak)
{
    if (!speak) return OPTIONS_HELP;
    printf("%s\n\n", about);
    for (const struct option *o = table; o->name; o++) {
        char left[64];
        const char *value = o->number ? "N" : !o->text ? "" : o->what ? o->what : "FILE";
        snprintf(left, sizeof left, "--%s%s%s", o->name, *value ? " " : "", value);
        printf("  %-18s %s\n", left, o->help);
    }
    return OPTIONS_HELP;
}

static inline int options_set(const struct option *o, const char *value, bool speak)
{
    if (!value) {
        if (speak) fprintf(stderr, "--%s needs a value\n", o->name);
        return OPTIONS_BAD;
    }
    if (o->text && o->given && *o->given >= o->max) {
        if (speak) fprintf(stderr, "--%s is there more than %ld times\n", o->name, o->max);
        return OPTIONS_BAD;
    }
    if (o->text) {
        o->text[o->given ? (*o->given)++ : 0] = value;
        return OPTIONS_RUN;
    }
    char *end = NULL;
    errno = 0;
    long x = strtol(value, &end, 10);
    if (errno || end == value || *end || x < o->min || x > o->max) {
        if (speak) fprintf(stderr, "--%s %s: not a number between %ld and %ld\n", o->name, value, o->min, o->max);
        return OPTIONS_BAD;
    }
    *o->number = x;
    return OPTIONS_RUN;
}

static inline int options_read(int argc, char **argv, const struct option *table, const char *about, bool speak)
{
    for (int i = 1; i < argc; i++) {
        const char *name = strncmp(argv[i], "--", 2) == 0 ? argv[i] + 2 : "", *equals = strchr(name, '=');
        size_t length = equals ? (size_t)(equals - name) : strlen(name);
        if (strcmp(name, "help") == 0) return options_help(table, about, speak);
        const struct option *o = table;
        while (o->name && (strncmp(o->name, name, length) != 0 || o->name[length] || length == 0)) o++;
        if (!o->name || (o->flag && equals)) {
            if (speak) fprintf(stderr, "%s: not an option of this program; --help lists them\n", argv[i]);
            return OPTIONS_BAD;
        }
        if (o->flag) {
            *o->flag = true;
        } else {
            int code = options_set(o, equals ? equals + 1 : i + 1 < argc ? argv[++i] : NULL, speak);
            if (code != OPTIONS_RUN) return code;
        }
    }
    return OPTIONS_RUN;
}

#endif
