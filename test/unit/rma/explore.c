/* explore.c - see explore.h. */
#include "explore.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#define STACK (64 << 10)
#define DEPTH_MOST 4096
#define LOOKS_MOST 400 /* of a process that looks again though nothing has changed: it may do something else then */

enum state { RUNS, PAUSES, ENDED, DEAD };

static struct process {
    ucontext_t at;
    enum state state;
    char stack[STACK];
} process[EXPLORE_MOST];
static ucontext_t explorer;
static const struct explore *program;
static int running, died;
static bool changed; /* by the process that runs */

/* The choices of this run: of how many, and which one. Those of the run before are repeated but for the last that had another
 * one left. */
static struct choice {
    unsigned char of, taken;
} choices[DEPTH_MOST];
static int made, depth;

static int choose(int of)
{
    if (made == DEPTH_MOST) fail_msg("a run of more than %d choices", DEPTH_MOST);
    if (made == depth) choices[depth++] = (struct choice){.of = (unsigned char)of};
    if (choices[made].of != of) fail_msg("a run does not repeat itself: choice %d was of %d, and is of %d", made, choices[made].of, of);
    return choices[made++].taken;
}

/* The next run makes the last choice that had another one left otherwise. */
static bool next_run(void)
{
    while (depth && choices[depth - 1].taken + 1 == choices[depth - 1].of) depth--;
    if (!depth) return false;
    choices[depth - 1].taken++;
    return true;
}

static _Noreturn void stuck(void)
{
    char words[1024];
    int n = 0;
    for (int i = 0; i < made && n < (int)sizeof words - 8; i++) n += snprintf(words + n, sizeof words - (size_t)n, " %d", choices[i].taken);
    fail_msg("all processes wait for each other, after the choices%s", words);
    __builtin_unreachable();
}

bool explore_works(void)
{
#ifdef __SANITIZE_THREAD__ /* told of each change of stacks it can, but takes over a minute for a test; and there is one thread */
    printf("1..0 # SKIP it changes stacks, which the thread sanitizer does not follow\n");
    return false;
#else
    return true;
#endif
}

/* ---- processes ---- */

static void start(void)
{
    program->run[running]();
    process[running].state = ENDED;
    swapcontext(&process[running].at, &explorer);
}

void explore_step(void)
{
    if (running >= 0) swapcontext(&process[running].at, &explorer);
}

void explore_pause(void)
{
    process[running].state = PAUSES;
    swapcontext(&process[running].at, &explorer);
}

bool explore_changed(bool did)
{
    changed |= did;
    return did;
}

int explore_dead(void) { return died; }

/* ---- a run ---- */

static bool waits_for_death(int i) { return program->mortal >= 0 && i == program->n - 1 && died < 0; }
static bool can_run(int i) { return process[i].state == RUNS && !waits_for_death(i); }

static int others_than(int last, int *list)
{
    int n = 0;
    for (int i = 0; i < program->n; i++)
        if (i != last && can_run(i)) list[n++] = i;
    return n;
}

/* Those that pause look again, since another one has changed something. */
static void wake_others(int last)
{
    for (int i = 0; i < program->n; i++)
        if (i != last && process[i].state == PAUSES) process[i].state = RUNS;
}

/* Who is next; -1: nobody is left. Where all look again though nothing has changed (`idle`), the order does not matter. */
static int next(int last, int *switches, bool idle)
{
    int list[EXPLORE_MOST], n = 0;
    bool goes_on = last >= 0 && can_run(last);
    if (goes_on) list[n++] = last;
    if (!goes_on || *switches < program->switches) n += others_than(last, list + n);
    if (!n) return -1;
    int i = list[n > 1 && !idle ? choose(n) : 0];
    *switches += goes_on && i != last;
    return i;
}

/* Does it die here? Where nothing has changed since it last could, it does not. */
static bool dies(int i, bool idle) { return i == program->mortal && died < 0 && !idle && choose(2); }

static void begin(void)
{
    running = -1;
    died = -1;
    made = 0;
    program->begin();
    for (int i = 0; i < program->n; i++) {
        struct process *p = &process[i];
        p->state = RUNS;
        getcontext(&p->at);
        p->at.uc_stack.ss_sp = p->stack;
        p->at.uc_stack.ss_size = STACK;
        makecontext(&p->at, start, 0);
    }
}

/* Nobody can go on: those that pause look again. False: they have done so too often, or none does. */
static bool look_again(int *looks)
{
    bool any = false;
    if (++*looks > LOOKS_MOST) return false;
    for (int i = 0; i < program->n; i++) {
        any |= process[i].state == PAUSES;
        if (process[i].state == PAUSES) process[i].state = RUNS;
    }
    return any;
}

static void one_run(void)
{
    int last = -1, switches = 0, looks = 0;
    begin();
    for (int i; (i = next(last, &switches, looks > 0)) >= 0 || look_again(&looks); last = i) {
        if (i < 0) continue;
        if (dies(i, looks > 0)) {
            process[i].state = DEAD;
            died = i;
        } else {
            running = i;
            swapcontext(&explorer, &process[i].at);
            running = -1;
        }
        if (changed || process[i].state == DEAD) wake_others(i), looks = 0;
        changed = false;
    }
    for (int i = 0; i < program->n; i++)
        if (process[i].state == PAUSES || process[i].state == RUNS) {
            if (!waits_for_death(i)) stuck();
        }
    program->end();
}

long explore(const struct explore *e)
{
    long runs = 0;
    program = e;
    depth = 0;
    do {
        one_run();
        runs++;
    } while (next_run());
    return runs;
}
