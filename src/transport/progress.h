/*
 * progress.h - the registry of what progress does besides the transports: steps.
 *
 * A step is something that a thread of this process has to look at now and then: operations that wait for room, memory
 * shared with other processes, the end of a peer, a descriptor. It says how to look, what a look costs, and what wakes a
 * sleeping thread for it. The loop of progress, the wait and the end of a process ask the registry, and know no protocol:
 *
 *     turn      steps that are on are polled; so are those that were told, or whose word has changed
 *     sleep     nothing is on that could be gone on with (idle); sleepers are counted in the steps' gates, poll the steps'
 *               descriptors, and want room if a step waits for it
 *     doubt     a wait lasts: steps ask those whom they wait for
 *     peer_end  a peer is lost: steps end what it alone could have ended
 *     drained   may this process take its leave?
 *
 * A file that has something to be looked at defines a constant struct step_ops, and registers a struct step with it. No
 * other file changes. There is a set of steps for the process, which wires_progress drives behind the transports, and one
 * in each lane (pt2pt/lane.h), which its turn drives.
 *
 *     known     from step_add to step_remove: asked whether the step is on or not. Optional for one that is never told
 *     on        from step_on to step_off: polled in every turn
 *     open      from progress_open to progress_close: the same for a step of the process with a descriptor or a time. It is
 *               polled as often as transports whose look is a system call, in turns with them
 *
 * All open steps share one timer, which sleepers poll together with the steps' descriptors:
 *
 *     progress    what has come is taken; the timer is set if a step is due sooner than it says
 *     idle        before a sleep: the timer is set to the first time at which a step is due
 *     sleep       in poll: doorbell's socket, transports, steps, timer
 *
 * Where nothing is open there are no descriptors. A turn that finds no step on looks at two words of a set, and at one for
 * each step that has a word.
 *
 * Threads: a set of a lane is under that lane's lock, progress_process under that of the first lane, whose turn drives it; except
 * for step_tell and progress_fds.
 */
#ifndef TERN_TRANSPORT_PROGRESS_H
#define TERN_TRANSPORT_PROGRESS_H

#include "base/list.h"
#include "base/sleep.h"

#define PROGRESS_OPEN_MAX 4 /* open steps at a time */
#define PROGRESS_FDS (1 + PROGRESS_OPEN_MAX)

struct step;
struct peer;
struct progress;

/* What a step is: constant. All members are called with the lock of the set. None waits for another process. `poll` and `doubt`
 * may deliver messages that have come; none polls the set that its step is in. */
struct step_ops {
    const char *name; /* what is looked at, in words */

    /* One look; returns how much happened. May turn its own step and others on and off. It is not called while another
     * step of its set is being polled. NULL: the step is never on, nor told. */
    int (*poll)(struct step *);

    /* What a look costs that finds nothing, in ns: read for open steps. */
    uint32_t poll_ns;

    /* While the step is on, something waits for room in a transport: room wakes a sleeper, too (tp_ops.idle). */
    bool room;

    /* While the step is on, any message may let it go on; nobody rings for that. So may what `room` steps wait for. */
    bool follows;

    /* Of a step that is on: nothing could be done now, and whoever changes that wakes this process. Asked between the
     * announcement of a sleep and the sleep. NULL: a look that finds nothing says so. */
    bool (*idle)(struct step *);

    /* Nothing is left that the process has to do before it takes its leave. NULL: there never is. */
    bool (*drained)(const struct step *);

    /* Something is under way with this peer, whose connection must not be closed meanwhile. NULL: never. */
    bool (*busy_with)(const struct step *, const struct peer *);

    /* The peer is lost (peer.lost): ends what only it could have ended. NULL: there is nothing. */
    void (*peer_end)(struct step *, struct peer *);

    /* Of a step that is on: the helper has just been armed, by a caller that does not look itself. Wakes the others who can
     * go on instead. True: there is something that only this process's helper may do. NULL: nobody has to. */
    bool (*armed)(struct step *);

    /* A wait lasts: asks the processes that it waits for. NULL: nobody is asked. */
    void (*doubt)(struct step *);

    /* Of an open step: when `poll` is to be called though nothing came, in ns of clock_ns; UINT64_MAX: never; 0: at once.
     * NULL: never. */
    uint64_t (*due)(const struct step *);
};

/* The owner's memory, not moved while the step is on, open or known. The owner sets the members of the first group, the rest
 * is 0 at first. */
struct step {
    const struct step_ops *ops;
    int fd;               /* of an open step: readable while something has come; -1: none */
    struct gate *gate[2]; /* opened by others when they have changed what is looked at; NULL: one less */
    const _Atomic uint32_t *word; /* of a known step: it is polled when this is not `seen`, which is set to it before; or NULL */
    uint32_t seen;

    struct link link, known_link; /* link: in `active` while it is on, or in `watched` if it has a word: then it is never on */
    struct progress *of;     /* the set that it is known to */
    bool on, known;
    uint32_t counted[2];     /* as what sleepers are counted in the gates (gate_enter); 0: no thread sleeps */
    uint32_t turn;           /* the last one that it was polled in, or was turned on in */
    _Atomic uint32_t told;
};

/* A set of steps. */
struct progress {
    struct link active;  /* steps that are on */
    struct link known;   /* by known_link */
    struct link watched; /* known ones with a word */
    _Atomic uint32_t news; /* not 0: a known step has been told */
    uint32_t turn;       /* how often all steps have been polled */
    bool turning;        /* a step is being polled: what it does may come back to progress_run */
};

/* Of the process. */
extern TERN_HIDDEN struct progress progress_process;

void progress_init(struct progress *);

/* Neither fails, and both may be called for a step that is known, or is not, already. */
void step_add(struct progress *, struct step *);
void step_remove(struct step *);

/* From now on the step is polled in every turn; no more. Nothing happens if it is so already. step_off ends the counting of
 * sleepers in its gates. */
static inline void step_on(struct progress *p, struct step *s)
{
    if (s->on) return;
    s->on = true;
    s->turn = p->turn;
    list_push(&p->active, &s->link);
}
void step_off(struct step *);

/* The step, which is known, is polled in the next turn; it need not be on. By any thread, without a lock; what was written
 * before is seen by that look. Wakes nobody: whoever has to wake sleepers rings the bell after it. */
void step_tell(struct step *);

/* For step_ops: idle of a step that cannot go on before something wakes the process; drained of one that has work for as
 * long as it is on. */
bool step_waits(struct step *);
bool step_is_off(const struct step *);

/* ---- for the loop of progress ---- */

int progress_run(struct progress *); /* one look at each step that is on; how much happened */
int progress_hear(struct progress *) TERN_COLD; /* at those that were told, or whose word has changed */

/* The two, where there is something to look at. */
static inline bool progress_has_news(const struct progress *p)
{
    for (const struct link *a = p->watched.next; a != &p->watched; a = a->next) {
        const struct step *s = container_of(a, struct step, link);
        /* relaxed: progress_hear reads it with acquire */
        if (unlikely(atomic_load_explicit(s->word, memory_order_relaxed) != s->seen)) return true;
    }
    return unlikely(atomic_load_explicit(&p->news, memory_order_relaxed));
}
static inline int progress_turn(struct progress *p)
{
    int n = unlikely(progress_has_news(p)) ? progress_hear(p) : 0;
    return unlikely(!list_empty(&p->active)) ? n + progress_run(p) : n;
}

/* ---- for waits ---- */

/* Nothing could be done by a thread of this process. progress_still: but for steps without `idle`, which may be able to do
 * something at once; progress_idle polls those. */
bool progress_still(const struct progress *);
bool progress_idle(struct progress *);

bool progress_waits(const struct progress *);   /* a step waits for room */
bool progress_follows(const struct progress *); /* or may go on behind a message */
bool progress_has_own(const struct progress *); /* a step is on that this process may be able to go on with by itself */

/* Counts this process in the gates of steps that are on, before bell_announce, and notes their words; and no more. */
void progress_sleep(struct progress *, struct sleep_words *) TERN_COLD;
void progress_wake(struct progress *) TERN_COLD;

/* No step has been turned on, or again, since progress_sleep. */
bool progress_is_counted(const struct progress *) TERN_COLD;

bool progress_armed(struct progress *) TERN_COLD; /* true: the helper has something to do */
void progress_doubt(struct progress *) TERN_COLD;

/* ---- for ends ---- */

bool progress_drained(struct progress *);
bool progress_busy_with(struct progress *, const struct peer *);
void progress_peer_end(struct progress *, struct peer *) TERN_COLD;

/* ---- open steps ---- */

/*
 * progress_open: from now on progress drives the step, and sleepers wait for its descriptor and its time. 0, or a code with
 * words: there are too many or no descriptors. progress_close: no more; on return no thread polls the step's descriptor.
 * Layers above point-to-point communication call pt_progress_open and pt_progress_close (pt2pt/api.h), which take the lock
 * and stop the helper thread meanwhile.
 */
int progress_open(struct step *);
void progress_close(struct step *);

/* The owner has given an open step something to do: wakes sleeping threads to do it. Nothing happens if it is not open. */
void progress_hurry(const struct step *);

/*
 * For wires.c.
 *   progress_open_ns     what a look at all open steps costs that finds nothing; 0: none is open
 *   progress_look        one look at each open step; how much happened
 *   progress_timer_idle  true: no open step is due, and the timer is set for the first that will be
 *   progress_fds         the descriptors to poll, at most PROGRESS_FDS; how many. By any thread
 */
uint32_t progress_open_ns(void);
int progress_look(void);
bool progress_timer_idle(void);
int progress_fds(int *fds);

#endif
