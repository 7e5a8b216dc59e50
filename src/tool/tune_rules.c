/* tune_rules.c - from figures to rules. */
#include "tool/tune_bench.h"

#define LEAD 0.97      /* who is not faster by so much does not replace the choice for the size before */
#define OTHER_LEAD 0.9 /* nor does anything what the library does by itself inside a node, which also overlaps */

/* A way or, by messages, this algorithm. */
static int faster(const struct bench *b, int alg, const struct choice *before)
{
    int best = 0;
    for (int i = 1; i <= b->algs; i++) {
        int k = i < b->algs ? i : alg;
        bool stays = i < b->algs ? before->faster == k : before->faster >= b->algs;
        if (b->c[k].median < (stays ? 1 : OTHER_LEAD) * b->c[0].median && (!best || b->c[k].median < b->c[best].median)) best = k;
    }
    return best;
}

struct choice tune_winner(const struct bench *b, struct choice before)
{
    struct choice is = {before.alg, 0};
    double best = b->c[b->algs].median;
    for (int i = b->algs + 1; i < b->n; i++)
        if (b->c[i].median < best) best = b->c[i].median;
    if (is.alg < 0 || LEAD * b->c[is.alg].median > best)
        for (is.alg = b->algs; LEAD * b->c[is.alg].median > best;) is.alg++;
    is.faster = faster(b, is.alg, &before);
    return is;
}

static const char *size_text(int64_t n, char text[24])
{
    int unit = 0;
    while (unit < 2 && n % 1024 == 0) n /= 1024, unit++;
    snprintf(text, 24, "%lld%.1s", (long long)n, &"\0KM"[unit]);
    return text;
}

void tune_print_figures(FILE *f, const struct bench *b, int bytes)
{
    char text[24];
    fprintf(f, "# %s, %d ranks", coll_kind_name(b->kind), b->size);
    if (tune_has_sizes(b->kind)) fprintf(f, ", %s", size_text(bytes, text));
    for (int i = 0; i < b->n; i++)
        fprintf(f, "%s %s %.2f us%s", i ? "," : ":", b->c[i].hint, 1e6 * b->c[i].median,
                b->c[i].too_slow ? " (3 samples)" : "");
    fputc('\n', f);
}

static void print_conditions(FILE *f, const struct bench *b, const struct span *s, const char *ranks, const char *calls)
{
    char text[24];
    fprintf(f, "%s %s%s%s ranks %s", coll_kind_name(b->kind), b->place, calls, coll_reduces(b->kind) ? " commutes" : "", ranks);
    if (s->from) fprintf(f, " from %s", size_text(s->from, text));
    if (s->below) fprintf(f, " below %s", size_text(s->below, text));
}

void tune_print_rule(FILE *f, const struct bench *b, const struct span *s, const char *ranks)
{
    bool way = s->is.faster && s->is.faster < b->algs;
    if (way) {
        print_conditions(f, b, s, ranks, " blocking");
        fprintf(f, " : %s\n", b->c[s->is.faster].hint);
    }
    print_conditions(f, b, s, ranks, "");
    fprintf(f, " : %s%s\n", b->c[s->is.alg].hint, s->is.faster && !way ? " messages" : "");
}
