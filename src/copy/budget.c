/* budget.c - see budget.h. */
#include "copy/budget.h"

#include <string.h>

#define FIRST_PACE 0.125 /* ns for a byte: of a core, about */
#define END_SLACK 5000   /* ns: an end that comes so much later is nobody's loss */
#define PACE_LEAST 0.001 /* ns for a byte */
#define SLOW_LEAST (1.0 / 64)
#define SLOW_MOST 4096.0
#define OFF 1.5 /* an end that differs from its prediction by this factor is looked into: the next batch is sampled, too */

static double clamp(double x, double least, double most) { return x < least ? least : x > most ? most : x; }

/* Towards a sample, by a part of the distance. */
static void follow(double *estimate, double sample, double part)
{
    *estimate += (clamp(sample, *estimate / 4, *estimate * 4) - *estimate) * part;
}

/* ---- ranges ---- */

static size_t bytes_up(double n) { return n <= 0 ? 0 : n >= 1e15 ? SIZE_MAX : (size_t)n + 1; }
static size_t bytes_down(double n) { return n >= 1e15 ? SIZE_MAX : (size_t)n; }

static struct budget_range range_of(const struct copy_budget *b, enum copy_place p)
{
    struct budget_range r = {bytes_up((b->submit * COPY_BATCH + b->issue) / b->own[p]), SIZE_MAX};
    /* The end's budget: n x gain >= need. */
    double gain = b->own[p] + b->pace[p] * (SLOWER - b->slow[p]), need = b->lag * (b->slow[p] - SLOWER) - END_SLACK;
    if (gain > 0)
        r.from = max_size(r.from, bytes_up(need / gain));
    else if (need > 0)
        r = (struct budget_range){SIZE_MAX, 0};
    else if (gain < 0)
        r.to = bytes_down(need / gain);
    return r;
}

static void set_ranges(struct copy_budget *b)
{
    if (b->fixed) return;
    for (int p = COPY_NEAR; p <= COPY_FAR; p++) b->worth[p] = range_of(b, (enum copy_place)p);
}

void budget_open(struct copy_budget *b)
{
    *b = (struct copy_budget){.pace = {FIRST_PACE, FIRST_PACE}, .slow = {1, 1}};
    budget_fix(b, 0);
}

void budget_fix(struct copy_budget *b, size_t least)
{
    b->fixed = true;
    b->worth[COPY_NEAR] = b->worth[COPY_FAR] = (struct budget_range){least, SIZE_MAX};
}

void budget_measured(struct copy_budget *b, const struct copy_engine_cost *c)
{
    *b = (struct copy_budget){.submit = (double)c->submit_ns,
                              .issue = (double)c->issue_ns,
                              .issue_first = (double)c->issue_ns,
                              .lag = (double)c->lag_ns,
                              .slow = {1, 1}};
    for (int p = COPY_NEAR; p <= COPY_FAR; p++) {
        b->own[p] = (double)c->own[p];
        b->pace[p] = (double)c->pace[p] > PACE_LEAST ? (double)c->pace[p] : PACE_LEAST;
    }
    set_ranges(b);
    memcpy(b->first, b->worth, sizeof b->first);
}

/* ---- trials ---- */

bool budget_tries(struct copy_budget *b, size_t n, enum copy_place p)
{
    if (b->fixed || n < b->first[p].from || n > b->first[p].to) return false;
    if (!b->trying) {
        if (++b->refused < DISTANCE) return false;
        b->refused = 0;
        b->trying = TRIAL;
        b->trials++;
    }
    b->trying--;
    b->until = 0;
    return true;
}

/* ---- what is observed ---- */

void budget_issued(struct copy_budget *b, uint64_t ns)
{
    if (b->issue == 0) b->issue = b->issue_first = (double)ns; /* nothing was measured */
    follow(&b->issue, (double)ns, 0.125);
    set_ranges(b);
}

void budget_ended(struct copy_budget *b, enum copy_place p, uint64_t predicted, uint64_t after, uint64_t by)
{
    uint64_t end = predicted < after ? after : predicted > by ? by : predicted;
    double ratio = (double)end / (double)(predicted ? predicted : 1);
    b->ends++;
    b->predicted += (double)predicted;
    b->observed += (double)end;
    if (end == predicted) return;
    b->corrections++;
    follow(&b->slow[p], b->slow[p] * ratio, ratio < 1 ? 0.5 : 0.125);
    b->slow[p] = clamp(b->slow[p], SLOW_LEAST, SLOW_MOST);
    if (ratio > OFF || ratio < 1 / OFF) b->until = 0;
    set_ranges(b);
}

void budget_copied(struct copy_budget *b, enum copy_place p, size_t n, uint64_t ns)
{
    if (b->fixed) return;
    follow(&b->own[p], (double)ns / (double)n, 0.125);
    set_ranges(b);
}
