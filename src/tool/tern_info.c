/*
 * tern_info.c - the program tern_info: what this Tern is, how it was built, and the
 * variables that steer it with their values in this environment.
 */
#include "base/err.h"
#include "base/var.h"
#include "coll/select.h"
#include "config.h"
#include "pt2pt/api.h"
#include "tool/info_copy.h"
#include "transport/find.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


static const char usage[] =
    "usage: tern_info [--all | --coll | --copy | --version | --help | VARIABLE ...]\n"
    "  (nothing)   version and build\n"
    "  --all       the same, and all variables: name, value, default, unit, meaning\n"
    "  --coll      which algorithms and ways inside a node collectives have, and the rules that choose among them (see tern_tune)\n"
    "  --copy      what copies cost on this machine now, and what is chosen by that; takes about a second\n"
    "  --version   the version only\n"
    "  VARIABLE    these variables only; TERN_ may be left out\n";

static void print_version(void) { printf("Tern MPI %s\n", PACKAGE_VERSION); }

static void print_line(const char *what, const char *value) { printf("  %-12s %s\n", what, value); }

/* A line for each transport that has several domains here. */
static void print_domains(void)
{
    char names[8][TP_DOMAIN_NAME];
    for (const struct tp_ops *const *t = tp_built_in; *t; t++) {
        int n = (*t)->domains ? (*t)->domains(tp_env(), names, (int)ARRAY_LEN(names)) : 0;
        for (int i = 0; i < n; i++) {
            char text[160];
            snprintf(text, sizeof text, "%s:%s", (*t)->name, names[i]);
            print_line(i ? "" : "domains", text);
        }
    }
}

/* A line for each transport of TERN_TRANSPORTS, modules among them: the ways that large messages can go. */
static void print_ways(void)
{
    const char *list = var_text(VAR_TRANSPORTS), *title = "large";
    while (*list) {
        const struct tp_ops *ops;
        char ways[100], text[160];
        size_t len = strcspn(list, ","), name = strcspn(list, ":,");
        if (name && !tp_find(list, name, &ops)) {
            snprintf(text, sizeof text, "%s: %s", ops->name, pt_ways(ops, ways, sizeof ways));
            print_line(title, text);
            title = "";
        }
        list += len + (list[len] == ',');
    }
}

static void print_build(void)
{
    char text[64];
    print_version();
    snprintf(text, sizeof text, "MPI %d.%d, binary interface %d.%d", MPI_VERSION, MPI_SUBVERSION, MPI_ABI_VERSION,
             MPI_ABI_SUBVERSION);
    print_line("standard", text);
    print_line("machine", TERN_BUILD_HOST);
    print_line("compiler", TERN_BUILD_CC " " TERN_BUILD_CFLAGS);
    print_line("configured", *TERN_BUILD_ARGS ? TERN_BUILD_ARGS : "without arguments");
    print_line("PMIx client", TERN_BUILD_PMIX ? "yes" : "no");
    print_line("hwloc", TERN_BUILD_HWLOC ? "yes" : "no");
    print_line("transports", tp_names(text, sizeof text));
    print_domains();
    print_ways();
}

/* "auto|never|always" is the default and what else there is. */
static void print_variable(enum var_id id)
{
    const struct var *v = &var_table[id];
    size_t first = var_is_of_words(v) ? strcspn(v->def, "|") : strlen(v->def);
    printf("%s=%s\n    %s\n", v->name, var_text(id), v->meaning);
    printf("    default %.*s%s%s", (int)first, v->def, *v->unit ? " " : "", v->unit);
    if (var_is_of_words(v)) printf(", %s of %s", v->kind == VAR_CHOICE ? "one" : "some", v->def);
    printf("%s\n", var_is_set(id) ? "; set in the environment" : "");
}

static int find_variable(const char *name)
{
    const char *prefix = strncmp(name, "TERN_", 5) ? "TERN_" : "";
    char full[128];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    for (int id = 0; id < VAR_COUNT; id++)
        if (!strcmp(var_table[id].name, full)) return id;
    return -1;
}

static int print_named(char **names)
{
    int rc = 0;
    for (; *names; names++) {
        int id = find_variable(*names);
        if (id >= 0) {
            print_variable((enum var_id)id);
        } else {
            fprintf(stderr, "tern_info: there is no variable %s (tern_info --all prints them)\n", *names);
            rc = 1;
        }
    }
    return rc;
}

/* Lines that are to be comments in a table. */
static void print_comments(char *text)
{
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) printf("#   %s\n", line);
}

/* In the form of a table, so that it can be kept, changed and named in TERN_COLL_TABLE. */
static int print_coll(void)
{
    int rc = coll_select_open();
    char *algs = rc ? NULL : coll_select_print_algs(), *rules = rc ? NULL : coll_select_print();
    if (!algs || !rules) {
        fprintf(stderr, "tern_info: %s\n", rc ? err_words() : "memory is out");
        return 1;
    }
    puts("# Ways and algorithms:");
    print_comments(algs);
    puts("# Rules, of which the first that fits decides, for a way inside a node and for an algorithm; see tern_tune(1).\n"
         "# In force where no hint of the communicator and no variable TERN_COLL_<OPERATION> says otherwise:");
    fputs(rules, stdout);
    free(algs);
    free(rules);
    coll_select_close();
    return 0;
}

int main(int argc, char **argv)
{
    const char *first = argc > 1 ? argv[1] : "";
    bool all = !strcmp(first, "--all") || !strcmp(first, "-a"), coll = !strcmp(first, "--coll");
    bool copy = !strcmp(first, "--copy");

    if (!strcmp(first, "--help") || !strcmp(first, "-h")) {
        fputs(usage, stdout);
        return 0;
    }
    if (!strcmp(first, "--version") || !strcmp(first, "-V")) {
        print_version();
        return 0;
    }
    if (*first == '-' && !all && !coll && !copy) {
        fprintf(stderr, "tern_info: unknown option %s\n%s", first, usage);
        return 2;
    }
    if (var_open()) {
        fprintf(stderr, "tern_info: %s\n", err_words());
        return 1;
    }
    int rc = 0;
    if (coll) {
        rc = print_coll();
    } else if (copy) {
        rc = info_copy();
    } else if (*first && !all) {
        rc = print_named(argv + 1);
    } else {
        print_build();
        for (int id = 0; all && id < VAR_COUNT; id++) print_variable((enum var_id)id);
    }
    var_close();
    if (fflush(stdout)) {
        perror("tern_info: standard output");
        return 1;
    }
    return rc;
}
