/*
 * tern_goal.c - the program tern_goal: reads schedules as texts, says what is wrong with them, each by itself and all ranks'
 * together, and shows them optimised or as a graph.
 */
#include "tool/goal_dot.h"

#include "base/err.h"
#include "coll/goal/check.h"
#include "coll/goal/optimise.h"
#include "config.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: tern_goal [OPTIONS] [FILE ...]      checks schedules in the form of GOAL_Print, see goal(7)\n"
    "  Without FILE, or as -, standard input. Several schedules, in one file or several, are those of several ranks; when all\n"
    "  ranks are there, their messages are checked against each other.\n"
    "  -o, --optimise[=all]   print the schedules with fewer copies, operations and edges; all: also fewer messages\n"
    "  -d, --dot              print a graph, for Graphviz: tern_goal -d FILE | dot -Tsvg\n"
    "  -g, --groups N         the first N schedules are of one group of an intercommunicator, the others of the other\n"
    "  -q, --quiet            nothing but what is wrong\n"
    "      --version, --help\n";

enum { FINE = 0, WRONG = 1, FAILED = 2 }; /* exit codes */

struct options {
    bool optimise, merge, dot, quiet, version, help;
    int near;
};

static bool number(const char *s, int *out)
{
    char *end;
    long v = strtol(s, &end, 10);
    *out = (int)v;
    return end != s && !*end && v >= 1 && v < INT32_MAX;
}

static bool take(struct options *o, int c, const char *arg)
{
    switch (c) {
    case 'd': return o->dot = true;
    case 'q': return o->quiet = true;
    case 'h': return o->help = true;
    case 'V': return o->version = true;
    case 'g': return number(arg, &o->near);
    case 'o':
        o->optimise = true;
        o->merge = arg && !strcmp(arg, "all");
        return !arg || o->merge || !strcmp(arg, "local");
    default: return false;
    }
}

static bool read_options(struct options *o, int argc, char **argv)
{
    static const struct option known[] = {
        {"optimise", optional_argument, NULL, 'o'}, {"dot", no_argument, NULL, 'd'},  {"groups", required_argument, NULL, 'g'},
        {"quiet", no_argument, NULL, 'q'},          {"help", no_argument, NULL, 'h'}, {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
    };
    for (int c; (c = getopt_long(argc, argv, "odg:qhV", known, NULL)) != -1;) {
        if (take(o, c, optarg)) continue;
        if (c != '?') fprintf(stderr, "tern_goal: '%s' is no value for this option\n", optarg);
        fputs(usage, stderr);
        return false;
    }
    if (!o->dot || !o->optimise) return true;
    fprintf(stderr, "tern_goal: print the graph or the optimised schedules? One of --dot and --optimise; for both,\n"
                    "tern_goal --optimise FILE | tern_goal --dot\n");
    return false;
}

static void no_memory(void) { fputs("tern_goal: memory is out\n", stderr); }

/* ---- what is wrong ----------------------------------------------------------------- */

/* Tells the last words with the lines that they are about. */
static void tell(const struct goal_texts *t, int first, const struct goal_spot spot[2])
{
    bool told = false;
    for (int i = 0; i < 2; i++) {
        if (spot[i].program < 0) continue;
        const struct goal_text *x = &t->all[first + spot[i].program];
        goal_tell(x->file, x->line + (int)spot[i].op, told ? "this is the other one" : err_words());
        told = true;
    }
    if (!told) goal_tell(t->all[first].file, 0, err_words());
}

static bool check(const struct goal_texts *t)
{
    struct goal_spot spot[2];
    const struct goal_head **block = calloc((size_t)t->n, sizeof *block);
    bool good = block != NULL;
    for (int i = 0; i < t->n && good; i++) {
        block[i] = &t->all[i].prog->head;
        good = !goal_check_tags(block[i], spot);
        if (!good) tell(t, i, spot);
    }
    if (good && t->whole && goal_check_all(t->n, t->near, block, spot)) {
        good = false;
        tell(t, 0, spot);
    }
    if (!block) no_memory();
    free(block);
    return good;
}

/* ---- optimising ---------------------------------------------------------------------- */

static void replace(struct goal_text *x, struct goal_prog *better)
{
    goal_unref(x->prog);
    x->prog = better;
}

static int merge(struct goal_texts *t)
{
    const struct goal_head **block = calloc((size_t)t->n, sizeof *block);
    struct goal_prog **better = calloc((size_t)t->n, sizeof *better);
    int rc = block && better ? 0 : err_set(TERN_ERR_NOMEM, "memory is out");
    for (int i = 0; i < t->n && !rc; i++) block[i] = &t->all[i].prog->head;
    if (!rc) rc = goal_coalesce(t->n, block, GOAL_COALESCED_MAX, better);
    for (int i = 0; i < t->n && !rc; i++) replace(&t->all[i], better[i]);
    free(block);
    free(better);
    return rc;
}

static int optimise(const struct options *o, struct goal_texts *t)
{
    int rc = o->merge ? merge(t) : 0;
    for (int i = 0; i < t->n && !rc; i++) {
        struct goal_prog *better;
        rc = goal_optimise(&t->all[i].prog->head, GOAL_PASSES, &better);
        if (!rc) replace(&t->all[i], better);
    }
    if (rc) goal_tell(t->all[0].file, 0, err_words());
    return rc;
}

/* ---- printing -------------------------------------------------------------------------- */

static bool print_texts(const struct goal_texts *t)
{
    for (int i = 0; i < t->n; i++) {
        char *text = goal_print(&t->all[i].prog->head);
        if (!text) return false;
        fputs(text, stdout);
        free(text);
    }
    return true;
}

static void print_counts(const struct goal_texts *t, int i)
{
    const struct goal_head *h = &t->all[i].prog->head;
    const struct goal_op *op = goal_op_at(h, h->first_op);
    unsigned long edges = 0, sends = 0, recvs = 0, local = 0;
    for (uint32_t k = 0; k < h->op_count; k++, op = goal_op_next(op)) {
        edges += (unsigned long)op->n_finish + op->n_start;
        sends += op->type == GOAL_OP_SEND;
        recvs += op->type == GOAL_OP_RECV;
        local += op->type > GOAL_OP_RECV;
    }
    printf("rank %d of %d: sends %lu, receives %lu, local operations %lu, edges %lu, scratchpad %lld bytes\n", h->rank, h->size,
           sends, recvs, local, edges, (long long)h->scratch);
}

static void print_summary(const struct goal_texts *t)
{
    for (int i = 0; i < t->n; i++) print_counts(t, i);
    if (t->whole) puts("all ranks: every message has both of its sides, and all runs end");
    else printf("%d of %d ranks: what they send each other is not checked\n", t->n, t->ranks);
}

static bool print(const struct options *o, const struct goal_texts *t)
{
    if (o->dot) return goal_dot(t);
    if (o->optimise) return print_texts(t);
    if (!o->quiet) print_summary(t);
    return true;
}

/* ---- all of it --------------------------------------------------------------------------- */

static int read_all(struct goal_texts *t, int n, char **files)
{
    static char *standard_input[] = {"-"};
    int worst = GOAL_READ;
    for (int i = 0; i < (n ? n : 1); i++) {
        int came_to = (int)goal_texts_read(t, n ? files[i] : standard_input[0]);
        if (came_to > worst) worst = came_to;
    }
    return worst == GOAL_READ ? FINE : worst == GOAL_READ_WRONG ? WRONG : FAILED;
}

static int cannot(const char *words)
{
    fprintf(stderr, "tern_goal: %s\n", words);
    return FAILED;
}

static int work(const struct options *o, struct goal_texts *t)
{
    if (o->near >= t->all[0].prog->head.size) return cannot("--groups: the first group leaves no rank for the second one");
    if (!goal_texts_sort(t, o->near)) return WRONG;
    if (o->merge && (!t->whole || o->near)) return cannot("--optimise=all needs the schedules of all ranks of one group");
    bool good = check(t);
    if (!good && !o->dot) return WRONG; /* what is wrong can be drawn */
    if (o->optimise && optimise(o, t)) return FAILED;
    if (!print(o, t)) no_memory();
    else if (!fflush(stdout)) return good ? FINE : WRONG;
    else perror("tern_goal: standard output");
    return FAILED;
}

int main(int argc, char **argv)
{
    struct options o = {.near = 0};
    struct goal_texts t = {.n = 0};
    if (!read_options(&o, argc, argv)) return FAILED;
    if (o.help) return fputs(usage, stdout) < 0 ? FAILED : FINE;
    if (o.version) return printf("Tern MPI %s\n", PACKAGE_VERSION) < 0 ? FAILED : FINE;
    int rc = read_all(&t, argc - optind, argv + optind);
    if (!rc) rc = work(&o, &t);
    goal_texts_close(&t);
    return rc;
}
