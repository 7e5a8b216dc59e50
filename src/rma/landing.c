/* landing.c - see landing.h. */
#include "rma/landing.h"
#include "base/err.h"
#include "base/list.h"
#include "base/var.h"
#include "copy/measure.h"
#include "proc/proc.h"
#include "pt2pt/helper_cpus.h"
#include "pt2pt/lane.h"
#include "pt2pt/lanes.h"
#include "transport/keep.h"
#include "transport/wires.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH 256 /* copies that are outstanding, at most */

/* A message that the engine reads. */
struct read {
    struct link link;
    struct tp_kept *kept;
    copy_cookie until;
};

static struct copy_queue *queue;
static bool tells;      /* the engine rings */
static bool complained; /* of a device that stands still */
static uint32_t users;
static struct link reads = LIST_INIT(reads);
static struct step freeing; /* on while there are any: their memory is the transport's, which may need it for what comes next */

/* Is there one for a thread on these cpus? */
static bool leaves_a_core(const cpu_set_t *cpus)
{
    return proc_self()->usable_cpus > proc_self()->local_size && helper_cpus_are_more(cpus);
}

static int open_engine(const cpu_set_t *cpus)
{
    const char *name = var_text(VAR_COPY_ENGINE);
    if (!strcmp(name, "auto")) return copy_queue_open_best(leaves_a_core(cpus), LANDING_MOST, DEPTH, &queue);
    int rc = copy_queue_open(copy_engine_named(name), DEPTH, &queue);
    if (rc == TERN_ERR_UNSUPPORTED) err_set(rc, "the copy engine '%s' (TERN_COPY_ENGINE) is not on this machine", name);
    return rc;
}

static void ring(void *unused)
{
    (void)unused;
    bell_ring(wires_bell());
}

/* All has been copied all the same: nothing fails, but it is slower than somebody expects. */
static TERN_COLD void complain(void)
{
    complained = copy_fault(queue);
    if (complained) fprintf(stderr, "tern: rank %u: %s\n", proc_self()->rank, err_words());
}

/* Messages whose copies are done: how many. */
static int release(void)
{
    copy_cookie done = copy_poll(queue);
    if (unlikely(copy_given_up(queue)) && !complained) complain();
    int n = 0;
    for (struct link *a = reads.next; a != &reads && container_of(a, struct read, link)->until <= done; a = reads.next, n++) {
        struct read *r = container_of(list_pop(&reads), struct read, link);
        tp_release(r->kept);
        free(r);
    }
    return n;
}

static int poll(struct step *s)
{
    int n = release();
    if (list_empty(&reads)) step_off(s);
    return n;
}

/* A device that cannot ring has done what a batch is before a thread would have slept and woken up. */
static bool idle(struct step *s)
{
    (void)s;
    return tells;
}

static const struct step_ops freeing_ops = {.name = "messages that a copy engine reads", .poll = poll, .idle = idle};

int landing_open(void)
{
    cpu_set_t cpus;
    if (users++) return 0;
    int rc = helper_cpus(&cpus);
    if (!rc) {
        copy_core_on(&cpus);
        rc = open_engine(&cpus);
    }
    if (rc) {
        users--;
        return rc;
    }
    if (var_int(VAR_COPY_ENGINE_MIN) && copy_is_async(queue)) copy_fix(queue, (size_t)var_int(VAR_COPY_ENGINE_MIN));
    copy_from(queue, COPY_NEAR); /* a batch is short, and has just been received */
    tells = copy_tells(queue, ring, NULL);
    complained = false;
    freeing = (struct step){.ops = &freeing_ops};
    step_add(&lanes_first()->steps, &freeing);
    return 0;
}

void landing_close(void)
{
    copy_wait_all(queue); /* nothing is written to the window's memory from now on */
    release();
    if (--users) return;
    step_remove(&freeing);
    copy_queue_close(queue);
    queue = NULL;
}

void landing_begin(struct landing *l, const void *data, size_t n)
{
    *l = (struct landing){.data = data, .n = n, .by_caller = !this_is_the_helper || !copy_pays(queue, n)};
}

/* An engine that works on its own reads the message when its handler has returned. */
static const char *stays_at(struct landing *l, const char *from)
{
    if (!copy_is_async(queue)) return from;
    if (!l->kept && !l->asked) l->kept = tp_keep(l->data, l->n, TP_KEEP_BRIEFLY);
    l->asked = true;
    return l->kept ? (const char *)l->kept->data + (from - l->data) : NULL;
}

void landing_put(struct landing *l, void *to, const char *from, size_t n)
{
    const char *stays = n >= LANDING_FROM && !l->by_caller ? stays_at(l, from) : NULL;
    if (!stays || copy_submit(queue, to, stays, n, &l->last)) copy_here(queue, to, from, n);
}

copy_cookie landing_end(struct landing *l)
{
    struct read *r = l->kept ? malloc(sizeof *r) : NULL;
    copy_cookie last = l->last;
    if (last) copy_issue(queue);
    if (r) {
        *r = (struct read){.kept = l->kept, .until = l->last};
        list_push(&reads, &r->link);
        lane_step_on(lanes_first(), &freeing);
    } else if (l->kept) {
        copy_wait_all(queue);
        tp_release(l->kept);
    }
    l->kept = NULL;
    l->last = 0;
    return last;
}

void landing_await(copy_cookie c)
{
    if (!landing_is_over(c)) copy_wait_all(queue);
}

bool landing_is_over(copy_cookie c)
{
    if (!c) return true;
    release();
    return copy_poll(queue) >= c;
}
