/*
 * neighbours.c - the ends of processes of this node: shared memory does not break when one of them dies.
 *
 * Some launchers tell of deaths in their own job. Under the others, the first wait that lasts hands all processes of
 * the job on this node to the watcher (proc/watcher.h), connected or not: a rank may sleep on the slots of a node, or
 * on a message from any source, without a connection. A process of another job is watched from the connection on.
 *
 * The watcher says that a process has ended. A word in that process's segment (shm_segment.left) says whether it had
 * taken its leave in order. The head of the segment is mapped here when the process is handed to the watcher. If the
 * process has ended before that, how it ended is not known (pt2pt/lost.h says what follows).
 */
#include "base/err.h"
#include "proc/jobs.h"
#include "proc/proc.h"
#include "proc/watcher.h"
#include "transport/shm/shm.h"
#include "transport/wires.h"

#include <stdlib.h>
#include <string.h>

static struct neighbour {
    uint32_t index;
    struct shm_segment *head; /* mapped for this alone; NULL: it is the connection's, or could not be mapped */
} * all;
static uint32_t count, room;

static struct neighbour *find(uint32_t index)
{
    uint32_t i = 0;
    while (i < count && all[i].index != index) i++;
    return i < count ? &all[i] : NULL;
}

static void unmap(const struct neighbour *n)
{
    if (n->head) shm_memory_unmap(n->head, SHM_HEAD_BYTES);
}

/* Takes `head`. False: memory is out, and the caller tries again later; or the watcher has no thread, and watcher_look finds
 * the end when a wait lasts (shm_wait_lasts). */
static bool watch(uint32_t index, uint32_t pid, struct shm_segment *head)
{
    struct neighbour n = {index, head};
    struct neighbour *more = count < room ? all : realloc(all, (room + 32) * sizeof *all);
    if (!more) {
        unmap(&n);
        return false;
    }
    if (count == room) room += 32;
    all = more;
    int rc = watcher_watch(index, (pid_t)pid);
    if (rc == TERN_ERR_NOMEM) unmap(&n);
    else all[count++] = n;
    return !rc;
}

static bool watch_card(uint32_t index, const struct shm_card *c)
{
    struct shm_segment *head;
    if (shm_memory_map_head(c, index, &head)) head = NULL;
    return watch(index, c->pid, head);
}

/* The shm part of the card of a rank. False: it has none, or cannot be watched by the number of its process. */
static bool find_card(uint32_t rank, struct shm_card *c)
{
    uint8_t card[PEER_CARD_MAX];
    size_t len = 0;
    int n = jobs_card_get(rank, card, sizeof card);
    const uint8_t *part = n > 0 ? wires_card_part(card, (size_t)n, tp_shm.name, &len) : NULL;
    if (!part || len != sizeof *c) return false;
    memcpy(c, part, sizeof *c);
    return shm_is_open_to(c);
}

/* False: it is not known yet. */
static bool watch_rank(uint32_t rank)
{
    struct shm_card c;
    const struct peer *p = peer_known(rank);
    if (find(rank)) return true;
    if (p && p->ep.ops == &tp_shm) {
        const struct shm_ep *e = p->ep.priv;
        return !e->open_to_us || watch(rank, (uint32_t)e->pid, NULL);
    }
    if (!jobs_card_there(rank)) return false;
    return !find_card(rank, &c) || watch_card(rank, &c);
}

bool shm_watch(struct tp_dom *dom)
{
    const struct proc_info *me = proc_self();
    bool all_watched = true;
    (void)dom;
    for (uint32_t r = 0; r < me->size; r++)
        if (r != me->rank && proc_node_of(r) == proc_node_of(me->rank)) all_watched &= watch_rank(r);
    return all_watched;
}

void shm_neighbour_open(const struct shm_ep *e)
{
    if (jobs_is_own(e->peer->index) || !e->open_to_us || find(e->peer->index)) return;
    watch(e->peer->index, (uint32_t)e->pid, NULL);
}

/* The connection is closed; a mapping of the head alone stays good. */
void shm_neighbour_close(uint32_t index)
{
    struct neighbour *n = find(index);
    watcher_forget(index);
    if (!n) return;
    unmap(n);
    *n = all[--count];
}

enum tp_end shm_how_ended(struct tp_dom *dom, uint32_t index)
{
    const struct peer *p = peer_known(index);
    const struct neighbour *n = find(index);
    const struct shm_segment *s = n ? n->head : NULL;
    (void)dom;
    if (p && p->ep.ops == &tp_shm) s = ((const struct shm_ep *)p->ep.priv)->segment;
    if (!s) return TP_END_UNKNOWN;
    return atomic_load_explicit(&s->left, memory_order_acquire) ? TP_END_LEFT : TP_END_DIED; /* pairs with shm_close */
}

void shm_neighbours_close(void)
{
    for (uint32_t i = 0; i < count; i++)
        unmap(&all[i]);
    free(all);
    all = NULL;
    count = room = 0;
}
