/*
 * machine.c - see machine.h.
 *
 * Concurrency: `lock` guards the loading; `ready` (release after the table is there, acquire before it is used) lets
 * later questions pass without it. The table does not change until machine_close.
 */
#include "proc/machine.h"
#include "base/err.h"
#include "base/var.h"
#include "proc/module.h"
#include "proc/proc.h"
#include "proc/table.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool ready;
static int result;                  /* what loading came to, and in which words */
static char words[256];
static struct machine_table *table; /* NULL: nothing is known */
static bool made_up;                /* the table is TERN_MACHINE's */
static long own_first, own_last;    /* this process's cpus on a machine that is made up */

const char *machine_level_name(enum machine_level level)
{
    static const char *const names[] = {"Package", "NUMANode", "L3Cache", "L2Cache", "L1Cache", "Core", "PU"};
    static_assert(ARRAY_LEN(names) == MACHINE_LEVELS, "a name for each level");
    return names[level];
}

/* ---- loading ---- */

/* "3" or "0-7" at the start of `s`; returns what follows, NULL if it is neither. "": all cpus. */
static const char *parse_cpus(const char *s, long *first, long *last)
{
    char *end;
    *first = strtol(s, &end, 10);
    if (end == s) return NULL;
    *last = *first;
    if (*end == '-') {
        const char *second = end + 1;
        *last = strtol(second, &end, 10);
        if (end == second) return NULL;
    }
    return *first >= 0 && *last >= *first && *last < table->cpus && (!*end || *end == ',') ? end : NULL;
}

/* The cpus of a rank on a machine that is made up. The list begins anew when it is at its end. */
static int find_cpus(uint32_t local_rank, long *first, long *last)
{
    const char *list = var_text(VAR_MACHINE_CPUS), *s = list;
    *first = *last = table->cpus ? (long)(local_rank % (uint32_t)table->cpus) : 0;
    if (!*list) return 0;
    for (uint32_t r = 0; r <= local_rank; r++) {
        s = parse_cpus(*s == ',' ? s + 1 : list, first, last);
        if (!s) return err_set(TERN_ERR_ARG, "TERN_MACHINE_CPUS=%s is no list of cpus like 0,4,0-3 of a machine with %d", list, table->cpus);
    }
    return 0;
}

static int load(void)
{
    const char *synthetic = var_text(VAR_MACHINE);
    const struct machine_source *source = module_load("hwloc", MACHINE_SYMBOL);
    if (!source) return TERN_ERR_NOT_FOUND;
    *source->fail = err_set;
    made_up = *synthetic;
    int rc = source->read(made_up ? synthetic : NULL, &table);
    if (!rc && made_up) rc = find_cpus(proc_self()->local_rank, &own_first, &own_last);
    if (rc) free(table), table = NULL;
    return rc;
}

static void load_once(void)
{
    pthread_mutex_lock(&lock);
    if (!atomic_load_explicit(&ready, memory_order_relaxed)) {
        result = load();
        if (result) snprintf(words, sizeof words, "%s", err_words());
        atomic_store_explicit(&ready, true, memory_order_release); /* pairs with the acquire in look */
    }
    pthread_mutex_unlock(&lock);
}

static const struct machine_table *look(void)
{
    if (!atomic_load_explicit(&ready, memory_order_acquire)) load_once();
    return table;
}

int machine_open(void)
{
    look();
    return result ? err_set(result, "%s", words) : 0;
}

void machine_close(void)
{
    pthread_mutex_lock(&lock);
    free(table);
    table = NULL;
    atomic_store_explicit(&ready, false, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
}

/* ---- answers ---- */

/* One more cpu that the process may run on: levels whose objects differ are none it is confined to. */
static void widen(struct machine_place *p, const struct machine_row *row, bool first)
{
    for (int i = 0; i < MACHINE_LEVELS; i++)
        p->at[i] = first || p->at[i] == row->at[i] ? row->at[i] : -1;
}

static void place_made_up(const struct machine_table *t, long first, long last, struct machine_place *p)
{
    for (long cpu = first; cpu <= last && cpu < t->cpus; cpu++) widen(p, &t->row[cpu], cpu == first);
}

#define MASK_CPUS 16384 /* bits of a mask: the system refuses one that is too small for any cpu it may have */

/* The main thread stands for the process: others may have bound themselves more narrowly, or be the library's. */
static void place_real(const struct machine_table *t, struct machine_place *p)
{
    static const struct machine_row nowhere = {{-1, -1, -1, -1, -1, -1, -1}};
    size_t size = CPU_ALLOC_SIZE(MASK_CPUS);
    cpu_set_t *mask = CPU_ALLOC(MASK_CPUS);
    bool first = true;
    if (mask && !sched_getaffinity(getpid(), size, mask))
        for (int cpu = 0; cpu < MASK_CPUS; cpu++)
            if (CPU_ISSET_S((size_t)cpu, size, mask)) {
                widen(p, cpu < t->cpus ? &t->row[cpu] : &nowhere, first);
                first = false;
            }
    CPU_FREE(mask);
}

void machine_place(struct machine_place *p)
{
    const struct machine_table *t = look();
    memset(p->at, 0xff, sizeof p->at);
    p->node = (int32_t)proc_self()->node;
    if (!t) return;
    if (made_up) place_made_up(t, own_first, own_last, p);
    else place_real(t, p);
}

/* Of a machine that is made up; the real one need not be looked at for this. */
static bool domain_made_up(uint32_t local_rank, struct machine_domain *d)
{
    const struct machine_table *t = look();
    struct machine_place p;
    long first, last;
    memset(p.at, 0xff, sizeof p.at);
    if (!t || find_cpus(local_rank, &first, &last)) return false;
    place_made_up(t, first, last, &p);
    *d = (struct machine_domain){p.at[MACHINE_L3], p.at[MACHINE_NUMA]};
    return true;
}

bool machine_domain_of(uint32_t rank, struct machine_domain *d)
{
    struct proc_seat seat;
    if (!proc_seat_of(rank, &seat)) return false;
    if (*var_text(VAR_MACHINE)) return domain_made_up(seat.local_rank, d);
    *d = (struct machine_domain){seat.l3, seat.numa};
    return d->l3 >= 0 || d->numa >= 0;
}

int machine_count(enum machine_level level)
{
    const struct machine_table *t = look();
    return t ? t->count[level] : 0;
}

int machine_distance(const struct machine_place *a, const struct machine_place *b)
{
    int distance = 0;
    if (a->node != b->node) return MACHINE_LEVELS + 1;
    for (int i = 0; i < MACHINE_LEVELS; i++) distance += a->at[i] >= 0 && b->at[i] >= 0 && a->at[i] != b->at[i];
    return distance;
}
