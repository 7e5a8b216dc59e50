/*
 * schedule_run.c - users' schedules while they run: what their places are bound to, the
 * frames of their runs, and the word in the user's memory that says that one is over.
 *
 * The interpreter writes that word last, with release, from whatever thread makes the
 * progress that ends the run; from then on nothing of the run is touched any more, unless
 * it has failed: then it keeps its words, and its number, until they have been asked for.
 */
#include "coll/schedule.h"

#include "base/err.h"
#include "coll/port_pt2pt.h"
#include "pt2pt/api.h"
#include "pt2pt/lane.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- places ------------------------------------------------------------------ */

static int too_small(int slot, const struct schedule_place *p, const struct goal_range *r)
{
    char name[32] = "user space";
    if (slot > GOAL_SLOT_USER) snprintf(name, sizeof name, "buffer %d", slot - GOAL_SLOT_USER - 1);
    if (slot < GOAL_SCRATCH) snprintf(name, sizeof name, "slot %d, which is MPI's", slot);
    if (!p || !p->bound)
        return err_set(TERN_ERR_BUFFER, "nothing is bound to %s, of which the schedule uses bytes %lld to %lld; use GOAL_Bind",
                       name, (long long)r->lo, (long long)r->hi);
    return err_set(TERN_ERR_BUFFER, "%lld bytes are bound to %s, and the schedule uses bytes %lld to %lld", (long long)p->bytes,
                   name, (long long)r->lo, (long long)r->hi);
}

/* Is everything there that the program touches? Lock held. */
static int check_places(struct schedule *s)
{
    const struct goal_head *h = &s->prog->head;
    for (int i = 0; i < (int)h->slot_count; i++) {
        const struct goal_range *r = &goal_ranges(h)[i];
        const struct schedule_place *p = i < s->places ? &s->place[i] : NULL;
        if (i == GOAL_SCRATCH || !r->flags) continue;
        if (!p || !p->bound || (p->bytes >= 0 && (r->lo < 0 || r->hi > p->bytes))) return too_small(i, p, r);
    }
    s->checked = true;
    return 0;
}

int schedule_bind(struct schedule *s, int place, void *base, int64_t bytes)
{
    int slot = schedule_slot(place);
    if (slot < 0 || slot == GOAL_SCRATCH) return err_set(TERN_ERR_ARG, "place %d is neither GOAL_USERSPACE nor a GOAL_BUFFER", place);
    if (bytes < 0) return err_set(TERN_ERR_COUNT, "%lld bytes cannot be bound", (long long)bytes);
    if (!base && bytes) return err_set(TERN_ERR_BUFFER, "the buffer is NULL");
    if (slot == GOAL_SLOT_USER && !s->prog)
        return err_set(TERN_ERR_ARG, "user space can be bound when the schedule is compiled; until then its addresses are taken");
    lane_enter(s->comm->lane); /* another thread may start a run */
    struct schedule_place *p = schedule_place(s, slot);
    if (p) *p = (struct schedule_place){base, bytes, true};
    s->checked = false;
    lane_leave(s->comm->lane);
    return p ? 0 : TERN_ERR_NOMEM;
}

/* ---- runs ------------------------------------------------------------------------ */

static void run_free(struct schedule_run *r)
{
    coll_frame_free(r->frame);
    free(r->words);
    free(r);
}

void schedule_drop_runs(struct schedule *s)
{
    for (struct schedule_run *r = s->idle, *next; r; r = next) {
        next = r->next;
        run_free(r);
    }
    s->idle = NULL;
}

/* Called by the interpreter, lock held. */
static void run_over(struct goal_frame *f)
{
    struct schedule_run *r = f->owner;
    GOAL_Request *request = r->request;
    if (r->left) background_over();
    r->left = false;
    request->error = f->status;
    if (f->status) {
        r->words = strdup(err_words()); /* without memory the code has to do */
    } else {
        r->next = r->schedule->idle;
        r->schedule->idle = r;
        r->schedule->busy &= ~(1u << r->number);
    }
    /* release: pairs with the acquire of GOAL_Finished, GOAL_Test and GOAL_Wait; what the run did is seen */
    __atomic_store_n(&request->state, GOAL_FINISHED, __ATOMIC_RELEASE);
}

/* A run that was used before, or a new one. Lock held. */
static struct schedule_run *take_run(struct schedule *s)
{
    struct schedule_run *r = s->idle;
    if (r) {
        s->idle = r->next;
        return r;
    }
    r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->schedule = s;
    r->frame = coll_frame_new(s->comm, s->prog, NULL);
    if (r->frame) return r;
    free(r);
    return NULL;
}

static void bind_places(const struct schedule *s, struct goal_frame *f)
{
    for (int i = 0; i < s->places; i++)
        if (i != GOAL_SCRATCH) goal_bind(f, (unsigned)i, s->place[i].base);
}

/* Lock held. */
static int start(struct schedule *s, GOAL_Request *request)
{
    unsigned number = s->runs % SCHEDULE_RUNS;
    int rc = s->checked ? 0 : check_places(s);
    if (rc) return rc;
    if (s->busy >> number & 1)
        return err_set(TERN_ERR_PENDING, "the run of this schedule %d runs ago is not over (or has failed and was not waited for); "
                       "wait for it first", SCHEDULE_RUNS);
    struct schedule_run *r = take_run(s);
    if (!r) return err_set(TERN_ERR_NOMEM, "no memory to run a schedule of %u operations", s->prog->head.op_count);
    struct goal_frame *f = coll_frame_goal(r->frame);
    bind_places(s, f);
    f->tag = (int)(SCHEDULE_TAGS | s->number << 3 | number); /* see schedule.h */
    f->done = run_over;
    f->owner = r;
    r->request = request;
    r->number = number;
    s->busy |= 1u << number;
    s->runs++;
    *request = (GOAL_Request){GOAL_RUNNING, 0, r};
    lane_going(s->comm->lane);
    goal_start(f);
    if (request->state == GOAL_RUNNING) r->left = lane_left_work(s->comm->lane);
    return 0;
}

int schedule_run(struct schedule *s, GOAL_Request *request)
{
    if (!s->prog) return err_set(TERN_ERR_REQUEST, "the schedule is not compiled");
    lane_enter(s->comm->lane);
    int rc = start(s, request);
    lane_leave(s->comm->lane);
    return rc;
}

/* ---- their ends ---------------------------------------------------------------------- */

static int state_of(const GOAL_Request *r) { return __atomic_load_n(&r->state, __ATOMIC_ACQUIRE); /* see run_over */ }

struct comm *schedule_request_comm(const GOAL_Request *request)
{
    return ((struct schedule_run *)request->run)->schedule->comm;
}

/* A failed run says why, once, and can be used again. */
static TERN_COLD int failed(struct schedule_run *r, int error)
{
    struct schedule *s = r->schedule;
    err_set(error, "%s", r->words ? r->words : "a run of a schedule has failed");
    lane_enter(s->comm->lane);
    free(r->words);
    r->words = NULL;
    r->next = s->idle;
    s->idle = r;
    s->busy &= ~(1u << r->number);
    lane_leave(s->comm->lane);
    return error;
}

static int conclude(GOAL_Request *request)
{
    request->state = GOAL_INACTIVE;
    return likely(!request->error) ? 0 : failed(request->run, request->error);
}

static bool is_over(void *request) { return state_of(request) != GOAL_RUNNING; }

int schedule_test(GOAL_Request *request, bool *over_p)
{
    if (!is_over(request)) pt_progress_once(schedule_request_comm(request));
    *over_p = is_over(request);
    return *over_p && request->state == GOAL_FINISHED ? conclude(request) : 0;
}

int schedule_wait(GOAL_Request *request)
{
    if (!is_over(request)) {
        struct lane *lane = schedule_request_comm(request)->lane;
        lane_enter(lane);
        lane_wait(lane, is_over, request, NULL);
        lane_leave(lane);
    }
    return request->state == GOAL_FINISHED ? conclude(request) : 0;
}
