/* info_copy.c - see info_copy.h. The same code measures and chooses as in a job, on memory of this program. */
#include "tool/info_copy.h"
#include "base/err.h"
#include "base/var.h"
#include "copy/choose.h"
#include "copy/count.h"
#include "copy/measure.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define LARGEST ((size_t)64 << 20)
#define BATCH ((size_t)32 << 10) /* what one-sided communication leaves to an engine at a time, at most */
#define TRIAL 40                 /* copies of a size, at most, after which its trial is over */

static double gbs(float ns_for_kb) { return 1024 / (double)ns_for_kb; }

/* ---- a core ---- */

static void print_core(void)
{
    static const char *const where[] = {[COPY_NEAR] = "cache", [COPY_FAR] = "memory"};
    const struct copy_memory_cost *m = copy_memory_cost();
    if (!m) {
        puts("A core's copies: not measured, as this processor cannot be told to empty its caches");
        return;
    }
    puts("A core's copies of 32 KB, GB/s:\n  from    to      memcpy   nontemporal");
    for (int src = COPY_NEAR; src <= COPY_FAR; src++)
        for (int dst = COPY_NEAR; dst <= COPY_FAR; dst++)
            printf("  %-7s %-7s %6.1f   %6.1f\n", where[src], where[dst], gbs(m->cached[src][dst]), gbs(m->nontemporal[src][dst]));
    printf("  reading %.1f from a cache, %.1f from memory\n", gbs(m->read[COPY_NEAR]), gbs(m->read[COPY_FAR]));
}

/* ---- large copies ---- */

static void print_class(const struct copy_choice *c)
{
    double us[2] = {1e-3 * (double)c->cost[0] * (double)(c->from / 1024), 1e-3 * (double)c->cost[1] * (double)(c->from / 1024)};
    printf("  %3zu MB   %8.0f   %8.0f      %s\n", c->from >> 20, us[0], us[1], c->nontemporal ? "nontemporal" : "memcpy");
}

static int print_large(void)
{
    char *src = malloc(LARGEST), *dst = malloc(LARGEST);
    if (!src || !dst) {
        free(src);
        free(dst);
        return fprintf(stderr, "tern_info: memory is out\n"), 1;
    }
    memset(src, 1, LARGEST);
    memset(dst, 1, LARGEST);
    copy_open();
    puts("Large copies of the same data again and again, us for copying and reading once:\n    size     memcpy   nontemporal   chosen");
    for (int k = 0; k < COPY_CLASSES; k++) {
        struct copy_choice c = copy_choice_of(k);
        for (int i = 0; i < TRIAL && !c.tried; i++) {
            copy_memory(dst, src, c.from);
            c = copy_choice_of(k);
        }
        print_class(&c);
    }
    puts("These were trials on memory of tern_info. Each process of a job makes its own, with the first copies of a size that the\n"
         "program makes, and may choose otherwise; TERN_COPY_NT=SIZE fixes it.");
    free(src);
    free(dst);
    return 0;
}

static int print_choice(void)
{
    size_t fixed = (size_t)var_int(VAR_COPY_NT);
    if (!fixed) return print_large();
    printf("Large copies: from %zu bytes on nontemporal, as TERN_COPY_NT says\n", fixed);
    return 0;
}

/* ---- engines ---- */

/* From which batch on, and why: the time of the caller's that it costs, and what it could copy in that. */
static void print_border(const struct copy_engine_cost *c, const struct copy_record *r, enum copy_place from)
{
    static const char *const where[] = {[COPY_NEAR] = "cached", [COPY_FAR] = "uncached"};
    double us = 1e-3 * (double)(c->submit_ns * COPY_BATCH + c->issue_ns);
    if (r->worth[from] == SIZE_MAX) {
        printf("               %s sources: never worth that\n", where[from]);
        return;
    }
    printf("               %s sources: worth that from %zu bytes on, which a core copies in %.1f us\n", where[from], r->worth[from], us);
}

static void print_own(struct copy_queue *q)
{
    struct copy_engine_cost c;
    copy_engine_cost(q, &c);
    copy_measured(q, &c);
    struct copy_record r = copy_record_of(q);
    printf("  %-12s works on its own: %.0f ns to submit a copy, %.1f us to start it; next to nothing is copied after %.1f us\n",
           r.engine, (double)c.submit_ns, 1e-3 * (double)c.issue_ns, 1e-3 * (double)c.lag_ns);
    for (int from = COPY_NEAR; from <= COPY_FAR; from++) print_border(&c, &r, (enum copy_place)from);
}

static void print_engine(const struct copy_ops *ops)
{
    struct copy_queue *q;
    int rc = copy_queue_open(ops, 64, &q);
    if (rc) {
        printf("  %-12s %s\n", ops->name, rc == TERN_ERR_UNSUPPORTED ? "not on this machine" : err_words());
        return;
    }
    if (copy_is_async(q)) print_own(q);
    else printf("  %-12s the caller copies\n", ops->name);
    copy_queue_close(q);
}

static bool has_other_cores(void)
{
    cpu_set_t cpus;
    return !sched_getaffinity(0, sizeof cpus, &cpus) && CPU_COUNT(&cpus) > 1;
}

/* What copy_queue_open_best chooses, and from which batches on. */
static int print_auto(void)
{
    struct copy_queue *q;
    size_t least = (size_t)var_int(VAR_COPY_ENGINE_MIN);
    if (copy_queue_open_best(has_other_cores(), BATCH, 64, &q)) return fprintf(stderr, "tern_info: %s\n", err_words()), 1;
    struct copy_record r = copy_record_of(q);
    bool alone = copy_is_async(q);
    copy_queue_close(q);
    printf("  chosen: %s, ", r.engine);
    if (!alone) puts("as no other is worth what it costs to start for batches of 32 KB");
    else if (least) printf("for batches of %zu bytes and more, as TERN_COPY_ENGINE_MIN says\n", least);
    else if (r.worth[COPY_NEAR] == SIZE_MAX) printf("for uncached batches of %zu bytes and more\n", r.worth[COPY_FAR]);
    else printf("for batches of %zu bytes and more if uncached, %zu if cached\n", r.worth[COPY_FAR], r.worth[COPY_NEAR]);
    return 0;
}

static int print_best(void)
{
    size_t least = (size_t)var_int(VAR_COPY_ENGINE_MIN);
    const char *name = var_text(VAR_COPY_ENGINE);
    if (!strcmp(name, "auto")) return print_auto();
    printf("  chosen: %s, as TERN_COPY_ENGINE says", name);
    if (least && copy_engine_named(name)->flags & COPY_ASYNC) printf(", for batches of %zu bytes and more", least);
    puts("");
    return 0;
}

int info_copy(void)
{
    print_core();
    int rc = print_choice();
    puts("Engines for copies in the background (TERN_RMA_PASSIVE=copy):");
    for (const struct copy_ops *const *e = copy_engines; *e; e++) print_engine(*e);
    rc = rc ? rc : print_best();
    puts("A job corrects these borders by what it observes (TERN_STATS=1 says how they ended).");
    return rc;
}
