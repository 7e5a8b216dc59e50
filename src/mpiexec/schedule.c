/* schedule.c - see schedule.h. */
#include "mpiexec/schedule.h"
#include "mpiexec/xalloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const struct hosts *hosts;
    int *on;  /* processes of all jobs, by host */
    int next; /* the host whose turn it is */
} self;

void schedule_open(const struct hosts *h, const int *on, int last)
{
    self.hosts = h;
    free(self.on);
    self.on = xcalloc((size_t)h->n, sizeof *self.on);
    memcpy(self.on, on, (size_t)h->n * sizeof *on);
    self.next = (last + 1) % h->n;
}

bool schedule_policy_of(const char *word, enum schedule_policy *p)
{
    static const char *const words[] = {"round_robin", "restart", "load", "packed", "spread"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (!strcmp(word, words[i])) {
            *p = (enum schedule_policy)i;
            return true;
        }
    return false;
}

/* The i-th host from the one whose turn it is. */
static int in_turn(int i) { return (self.next + i) % self.hosts->n; }

/* Has host a fewer processes for its slots than b, if each got one more? */
static bool is_freer(int a, int b)
{
    const struct host *h = self.hosts->v;
    return (int64_t)(self.on[a] + 1) * h[b].slots < (int64_t)(self.on[b] + 1) * h[a].slots;
}

static int freest(void)
{
    int best = in_turn(0);
    for (int i = 1; i < self.hosts->n; i++)
        if (is_freer(in_turn(i), best)) best = in_turn(i);
    return best;
}

static int first_free(void)
{
    for (int h = 0; h < self.hosts->n; h++)
        if (self.on[h] < self.hosts->v[h].slots) return h;
    return freest();
}

/* The host with the fewest processes of this job, and of all jobs among those. */
static int emptiest(const int *own)
{
    int best = in_turn(0);
    for (int i = 1; i < self.hosts->n; i++) {
        int h = in_turn(i);
        if (own[h] < own[best] || (own[h] == own[best] && self.on[h] < self.on[best])) best = h;
    }
    return best;
}

static int choose(enum schedule_policy p, int i, const int *own)
{
    switch (p) {
    case SCHEDULE_RESTART: return i % self.hosts->n;
    case SCHEDULE_LOAD: return freest();
    case SCHEDULE_PACKED: return first_free();
    case SCHEDULE_SPREAD: return emptiest(own);
    case SCHEDULE_ROUND_ROBIN: break;
    }
    return in_turn(0);
}

static void append(char **list, const char *name, int slots)
{
    char *longer = xasprintf("%s%s%s:%d", *list ? *list : "", *list ? "," : "", name, slots);
    free(*list);
    *list = longer;
}

char *schedule_place(enum schedule_policy p, int n, struct schedule_load *load)
{
    int hosts = self.hosts->n, used = 0, before = 0; /* of the job's programs in front of this one */
    int *own = xcalloc((size_t)hosts, sizeof *own), *order = xcalloc((size_t)hosts, sizeof *order);
    char *list = NULL;
    if (!load->on) load->on = xcalloc((size_t)hosts, sizeof *load->on);
    for (int h = 0; h < hosts; h++) before += load->on[h];
    for (int i = 0; i < n; i++) {
        int h = choose(p, before + i, load->on);
        if (!own[h]++) order[used++] = h;
        self.on[h]++;
        load->on[h]++;
        self.next = (h + 1) % hosts;
    }
    for (int i = 0; i < used; i++) append(&list, self.hosts->v[order[i]].name, own[order[i]]);
    free(own);
    free(order);
    return list;
}

char *schedule_hosts(int used)
{
    char *list = NULL;
    for (int i = 0; i < self.hosts->n; i++) append(&list, self.hosts->v[in_turn(i)].name, self.hosts->v[in_turn(i)].slots);
    self.next = in_turn(used);
    return list;
}

void schedule_release(struct schedule_load *load)
{
    for (int h = 0; load->on && h < self.hosts->n; h++) self.on[h] -= load->on[h];
    free(load->on);
    load->on = NULL;
}
