/* win.c - the life of a window; see rma.h. */
#include "rma/win.h"
#include "base/err.h"
#include "base/scratch.h"
#include "base/var.h"
#include "coll/coll.h"
#include "comm/create.h"
#include "obj/info.h"
#include "proc/proc.h"
#include "pt2pt/api.h"
#include "pt2pt/contexts.h"
#include "pt2pt/lane.h"
#include "rma/atomics.h"
#include "rma/checking.h"
#include "rma/dock.h"
#include "rma/far.h"
#include "rma/mail.h"
#include "rma/rma.h"
#include "rma/serve.h"
#include "transport/arena.h"
#include "transport/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGE_PAGE ((size_t)2 << 20)

/* What a window is made of. */
struct making {
    int flavor;
    void *base;
    MPI_Aint bytes, unit;
    struct info *info;
    bool apart; /* MPI_Win_allocate_shared: not one piece */
};

/* ---- who is near ---- */

static bool all_on_one_node(const struct comm *c)
{
    return proc_self()->nodes == 1 && !comm_has_others(c);
}

/* The processes of the window on this node, which can map each other's memory; *out is the window's communicator if those are
 * all, NULL if there is this one only. Collective. */
static int find_neighbours(struct comm *c, struct comm **out)
{
    *out = NULL;
    if (comm_has_others(c) || c->size == 1) return 0;
    bool maps = peer_shared_public();
    if (all_on_one_node(c)) {
        if (maps) *out = comm_ref(c);
        return 0;
    }
    return comm_split(c, maps ? (int)proc_self()->node : MPI_UNDEFINED, 0, out);
}

static int set_ranks(struct win *w, const struct comm *group)
{
    struct win_near *n = &w->near;
    int32_t found = 0;
    n->n = group ? group->size : 1;
    n->own = group ? group->rank : 0;
    n->alone = n->n == 1;
    n->rank = malloc((size_t)n->n * sizeof *n->rank);
    if (!n->rank) return err_set(TERN_ERR_NOMEM, "no memory for the processes of a window");
    if (!group) n->rank[0] = w->comm->rank;
    for (int32_t r = 0; group && r < w->comm->size && found < n->n; r++)
        if (comm_index(w->comm, r) == comm_index(group, found)) n->rank[found++] = r;
    return 0;
}

/* ---- the exposure of this process ---- */

static int make_exposure(struct win *w)
{
    struct win_near *n = &w->near;
    size_t bytes = exposure_bytes(n->n, win_has_mail(w));
    if (n->n > 1) n->exposure = peer_shared_alloc(bytes, &n->offset);
    n->shared = n->exposure != NULL;
    if (!n->exposure && posix_memalign((void **)&n->exposure, CACHE_LINE, bytes)) n->exposure = NULL;
    if (!n->exposure) return err_set(TERN_ERR_NOMEM, "no memory to share a window");
    memset(n->exposure, 0, bytes);
    return 0;
}

/* In one piece of memory, the others find theirs by its distance from the start. */
static int describe(struct win *w)
{
    struct win_exposure *x = w->near.exposure;
    x->unit = w->unit;
    if (w->together) {
        x->memory = (struct win_region){.address = (uint64_t)w->before, .bytes = (uint64_t)w->bytes, .common = true};
        return 0;
    }
    w->shown = (struct win_memory){.at = w->base, .address = (uint64_t)(uintptr_t)w->base, .bytes = (uint64_t)w->bytes};
    int rc = memory_show(&w->shown, w->near.n > 1, &x->memory);
    bool private = !x->memory.common || w->flavor == MPI_WIN_FLAVOR_DYNAMIC;
    if (!rc && win_has_mail(w) && private) mail_make(w, exposure_mail(x, w->near.n));
    return rc;
}

/* ---- memory ---- */

static void *allocate(size_t n, bool shared)
{
    void *p = shared ? arena_alloc(max_size(n, ARENA_MIN), CACHE_LINE) : NULL;
    return p || !posix_memalign(&p, n >= LARGE_PAGE ? LARGE_PAGE : CACHE_LINE, n ? n : 1) ? p : NULL;
}

static void give_memory_back(void *p)
{
    if (p && arena_free(p) == ARENA_FOREIGN) free(p);
}

static int allocate_own(struct win *w)
{
    w->memory = allocate((size_t)w->bytes, w->near.n > 1);
    w->base = w->memory;
    if (!w->memory) return err_set(TERN_ERR_NOMEM, "there is no memory for a window of %lld bytes", (long long)w->bytes);
    return 0;
}

/* Seat 0 allocates memory for all, and tells the others of it. */
struct piece {
    int64_t code;
    struct win_region memory;
};

static void allocate_piece(struct win *w, size_t bytes, struct piece *p)
{
    bool near = w->near.n > 1;
    w->memory = near ? arena_alloc(max_size(bytes, ARENA_MIN), CACHE_LINE) : allocate(bytes, false);
    w->shown = (struct win_memory){.at = w->memory, .address = (uint64_t)(uintptr_t)w->memory, .bytes = max_size(bytes, 1)};
    if (w->memory) p->code = memory_show(&w->shown, near, &p->memory);
    else p->code = err_set(TERN_ERR_NOMEM, "there is no memory for a shared window of %zu bytes", bytes);
}

static int map_piece(struct win *w, const struct piece *p)
{
    if (p->code) return err_set((int)p->code, "there is no memory for a shared window at its first process");
    lane_enter(w->comm->lane);
    struct peer *first = peer_get(comm_index(w->comm, w->near.rank[0]));
    int rc = first ? remote_key_open(first, p->memory.key, p->memory.key_bytes, &w->block) : err_code();
    lane_leave(w->comm->lane);
    if (rc || w->block->at) return rc;
    return err_set(TERN_ERR_WIN_SHARED, "the memory of rank %d cannot be mapped", w->near.rank[0]);
}

static int allocate_together(struct win *w, struct comm *group)
{
    const struct win_near *n = &w->near;
    struct piece p = {0};
    int64_t own = w->bytes, *bytes = malloc((size_t)n->n * sizeof *bytes), before = 0, all = 0;
    if (!bytes) return err_set(TERN_ERR_NOMEM, "no memory for the sizes of a window");
    bytes[0] = own;
    int rc = n->n > 1 ? coll_allgather(group, &own, 1, type_of(MPI_INT64_T), bytes, 1, type_of(MPI_INT64_T)) : 0;
    for (int32_t i = 0; i < n->n; i++) {
        if (i == n->own) before = all;
        all += bytes[i];
    }
    free(bytes);
    if (rc) return rc;
    if (n->own == 0) allocate_piece(w, (size_t)all, &p);
    rc = n->n > 1 ? coll_bcast(group, &p, sizeof p, type_of(MPI_BYTE), 0) : 0;
    if (!rc && n->own) rc = map_piece(w, &p);
    if (!rc) rc = (int)p.code;
    if (rc) return rc;
    w->together = true;
    w->before = before;
    w->base = (n->own ? w->block->at : (char *)w->memory) + before;
    return 0;
}

static int get_memory(struct win *w, const struct making *m, struct comm *group)
{
    if (m->flavor == MPI_WIN_FLAVOR_ALLOCATE) return allocate_own(w);
    if (m->flavor != MPI_WIN_FLAVOR_SHARED) return 0;
    if (w->near.n != w->comm->size) return err_set(TERN_ERR_WIN_SHARED, "the processes of the communicator do not share memory");
    return m->apart ? allocate_own(w) : allocate_together(w, group);
}

/* ---- windows that stay ---- */

static void enter(struct win *w)
{
    lane_enter(w->comm->lane);
    step_add(&w->comm->lane->steps, &w->lost);
    if (w->near.mail) {
        w->mail = (struct step){.ops = &mail_ops, .word = &w->near.mail->bell};
        step_add(&w->comm->lane->steps, &w->mail);
    }
    lane_leave(w->comm->lane);
}

/*
 * A window that was not made, or freed, by all: where a process has died, the last collective call of MPI_Win_create and its like may
 * succeed at some and fail at others, and that of MPI_Win_free fails while others have epochs open. They go on to use what this
 * process exposes. So that stays, and they are answered, until MPI_Finalize. Memory that is the caller's again is not touched: such
 * operations are refused.
 */
static void abandon(struct win *w)
{
    const struct peer *lost = w->comm->pt->lost;
    w->given_up = w->flavor == MPI_WIN_FLAVOR_CREATE || w->flavor == MPI_WIN_FLAVOR_DYNAMIC;
    w->because_of = lost ? rankmap_find(w->comm->map, lost->index) : -1;
    if (!w->given_up) return;
    memory_hide(&w->shown);
    if (w->near.exposure) atomic_store_explicit(&w->near.exposure->given_up, (uint32_t)(w->because_of + 2), memory_order_release);
}

/* ---- making one ---- */

static int dup_of(struct comm *parent, struct comm **out)
{
    struct info *hints = info_new();
    if (!hints) return TERN_ERR_NOMEM;
    int rc = info_set(hints, "tern_lane", "shared");
    if (!rc) rc = comm_dup(parent, hints, out);
    info_free(hints);
    return rc;
}

/* The worst of all; collective. *met: whether all know. */
static int agree(struct comm *c, int rc, bool *met)
{
    int worst = rc;
    struct coll_call a = {.kind = COLL_ALLREDUCE, .sendbuf = &rc, .recvbuf = &worst, .rcount = 1, .rtype = type_of(MPI_INT), .op = op_of(MPI_MIN)};
    int failed = coll_run(c, &a);
    *met = !failed;
    if (failed) return failed;
    if (worst && !rc) return err_set(worst, "another process could not make its part of the window");
    return worst;
}

/* Words of the neighbours, by seats. By the communicator of all, so that it fails where any of them has died: on another node, a
 * death may have kept a neighbour from making `group`, for which this process would wait in vain. */
static int gather_words(struct win *w, struct comm *group, uint64_t mine)
{
    struct win_near *n = &w->near;
    struct comm *c = w->comm;
    bool apart = !all_on_one_node(c);
    uint64_t *all = apart ? calloc((size_t)c->size, sizeof *all) : n->place;
    if (!all) return err_set(TERN_ERR_NOMEM, "no memory for the processes of a window");
    int rc = apart || group ? coll_allgather(c, &mine, 1, type_of(MPI_UINT64_T), all, 1, type_of(MPI_UINT64_T)) : 0;
    if (apart) {
        for (int32_t i = 0; n->rank && i < n->n; i++) n->place[i] = all[n->rank[i]]; /* NULL: this process fails, but takes part */
        free(all);
    }
    return rc;
}

/* Tells the neighbours where the exposure lies, and, in the lowest bit, whether atomic operations of this process can be
 * stopped. */
static int exchange(struct win *w, struct comm *group)
{
    struct win_near *n = &w->near;
    uint64_t mine = n->shared ? n->offset | atomics_prepare() : 0;
    if (comm_has_others(w->comm) || w->comm->size == 1) return 0;
    n->place = calloc((size_t)n->n, sizeof *n->place);
    if (!n->place) return err_set(TERN_ERR_NOMEM, "no memory for the processes of a window");
    int rc = gather_words(w, group, mine);
    n->stops = !rc && n->n > 1;
    for (int32_t i = 0; i < n->n; i++) {
        n->stops &= n->place[i] & 1;
        n->place[i] &= ~(uint64_t)1;
    }
    return rc;
}

static void peer_end(struct step *s, struct peer *p);
static const struct step_ops lost_ops = {.name = "what is started on a window", .peer_end = peer_end};

/* Do all others of the node reach private memory of this process? One of them stands for all. */
static bool private_memory_is_open(const struct win *w)
{
    const struct win_near *n = &w->near;
    lane_enter(w->comm->lane);
    const struct peer *p = peer_get(comm_index(w->comm, n->rank[(n->own + 1) % n->n]));
    bool open = p && p->ep.caps & TP_CAP_GETPUT;
    lane_leave(w->comm->lane);
    return open;
}

/* Do others reach the memory of this process by messages? */
static bool is_far_for_some(const struct win *w)
{
    bool own = w->flavor == MPI_WIN_FLAVOR_DYNAMIC || (w->flavor == MPI_WIN_FLAVOR_CREATE && w->bytes && !w->shown.common);
    return w->checking || w->near.n < w->comm->size || !w->near.shared || (own && w->near.n > 1 && !private_memory_is_open(w));
}

/* Each step is collective, or needs nobody: all do all of them, and agree at the end. */
static int furnish(struct win *w, const struct making *m, struct comm *group)
{
    int rc = set_ranks(w, group), own = rc ? rc : get_memory(w, m, group);
    if (!own) own = checking_open(w);
    if (!own) own = make_exposure(w);
    if (!own) own = describe(w);
    int met = exchange(w, group);
    if (!own && !met) own = passive_begin(w, m->info, is_far_for_some(w));
    return own ? own : met;
}

static void drop(struct win *w)
{
    passive_end(w);
    win_targets_close(w);
    if (w->block) remote_key_close(w->block);
    memory_hide(&w->shown);
    attached_close(&w->attached);
    checking_close(w);
    mail_take_away(w);
    if (w->near.shared) peer_shared_free(w->near.exposure, exposure_bytes(w->near.n, win_has_mail(w)));
    else free(w->near.exposure);
    free(w->near.place);
    free(w->near.rank);
    free(w->started); /* of epochs that are open in a window that is abandoned */
    free(w->origins);
    give_memory_back(w->memory);
    errh_unref(w->errh);
    info_free(w->info);
    w->comm->win = NULL;
    handle_release(w, sizeof *w);
}

static void let_go(struct win *w)
{
    struct comm *c = w->comm;
    drop(w);
    comm_unref(c);
}

static struct win *new_win(struct comm *c, const struct making *m, struct errhandler *errh)
{
    struct win *w = handle_alloc(HANDLE_WIN, sizeof *w);
    if (!w) return NULL;
    w->comm = c;
    w->flavor = m->flavor;
    w->base = m->base;
    w->bytes = m->bytes;
    w->unit = m->unit;
    w->unit_int = (int)m->unit;
    w->model = MPI_WIN_UNIFIED;
    w->moves_from = var_int(VAR_RMA_MOVES);
    w->errh = errh;
    atomic_store_explicit(&w->last, &win_nobody, memory_order_relaxed);
    atomic_store_explicit(&w->epoch, 1, memory_order_relaxed);
    w->lost = (struct step){.ops = &lost_ops};
    c->win = w;
    return w;
}

/* The window is made if all have made it; rc: what this process has come to. */
static int settle(struct win *w, struct comm *c, int rc)
{
    bool met;
    int worst = agree(c, rc, &met);
    if (!rc && (!worst || !met)) enter(w);
    if (!worst) return 0;
    if (!rc && !met) abandon(w);
    else if (w) let_go(w);
    else comm_unref(c);
    return worst;
}

static int make(struct comm *parent, const struct making *m, struct win **out)
{
    struct comm *c, *group;
    int rc = dup_of(parent, &c);
    if (rc) return rc;
    rc = find_neighbours(c, &group);
    struct win *w = rc ? NULL : new_win(c, m, errh_ref(errh_fatal()));
    if (!rc && !w) rc = err_set(TERN_ERR_NOMEM, "no memory for a window");
    if (!rc) rc = furnish(w, m, group);
    rc = settle(w, c, rc);
    if (group) comm_unref(group);
    if (rc) return rc;
    coll_forget(c); /* a window is made once */
    rc = win_hints_set(w, m->info); /* without memory for them there are none, which is as good */
    *out = w;
    return 0;
}

int win_create(struct comm *c, void *base, MPI_Aint bytes, MPI_Aint unit, struct info *info, struct win **out)
{
    struct making m = {.flavor = MPI_WIN_FLAVOR_CREATE, .base = base, .bytes = bytes, .unit = unit, .info = info};
    return make(c, &m, out);
}

int win_allocate(struct comm *c, MPI_Aint bytes, MPI_Aint unit, struct info *info, void **base_p, struct win **out)
{
    struct making m = {.flavor = MPI_WIN_FLAVOR_ALLOCATE, .bytes = bytes, .unit = unit, .info = info};
    int rc = make(c, &m, out);
    if (!rc) *base_p = (*out)->base;
    return rc;
}

int win_share(struct comm *c, MPI_Aint bytes, MPI_Aint unit, struct info *info, void **base_p, struct win **out)
{
    struct making m = {.flavor = MPI_WIN_FLAVOR_SHARED, .bytes = bytes, .unit = unit, .info = info};
    m.apart = info_true(info, "alloc_shared_noncontig", false);
    int rc = make(c, &m, out);
    if (!rc) *base_p = (*out)->base;
    return rc;
}

int win_dynamic(struct comm *c, struct info *info, struct win **out)
{
    struct making m = {.flavor = MPI_WIN_FLAVOR_DYNAMIC, .unit = 1, .info = info};
    return make(c, &m, out);
}

int win_attach(struct win *w, void *base, MPI_Aint bytes)
{
    lane_enter(w->comm->lane);
    int rc = memory_attach(w, base, bytes);
    lane_leave(w->comm->lane);
    return rc;
}

int win_detach(struct win *w, const void *base)
{
    lane_enter(w->comm->lane);
    int rc = memory_detach(w, base);
    lane_leave(w->comm->lane);
    return rc;
}

/* ---- a peer is lost ---- */

static int32_t dead_seat;

static int forget_seat(struct win_target *t)
{
    if (!t->exposure) return 0;
    if (t->mail) { /* before others get its locks */
        mail_forget(t, (uint32_t)dead_seat);
        dock_forget(t, (uint32_t)dead_seat);
    }
    win_lock_forget(&t->lock, (uint32_t)dead_seat);
    win_lock_forget(&t->accumulate, (uint32_t)dead_seat);
    return 0;
}

static void forget_dead(struct win *w, int32_t rank)
{
    const struct win_near *n = &w->near;
    for (int32_t i = 0; i < n->n; i++) {
        if (n->rank[i] != rank) continue;
        dead_seat = i;
        win_target(w, w->comm->rank); /* this process's own locks, which nobody here has used perhaps */
        win_targets_each(w, forget_seat);
    }
}

static void peer_end(struct step *s, struct peer *p)
{
    struct win *w = container_of(s, struct win, lost);
    int32_t rank = rankmap_find(w->comm->map, p->index);
    struct win_target *t = rank < 0 ? NULL : win_target_known(w, rank);
    if (rank >= 0) forget_dead(w, rank);
    if (rank >= 0) checking_forget(w, rank);
    if (!t) return;
    far_peer_end(t);
    serve_peer_end(t);
    lane_changed(w->comm->lane);
}

/* ---- its end ---- */

bool win_may_be_freed(const struct win *w)
{
    const char *why = w->access == WIN_START                     ? "MPI_Win_complete must end the epoch of MPI_Win_start before"
                      : w->access == WIN_FENCE && w->fence_used  ? "MPI_Win_fence must end its epoch before, as operations have followed it"
                      : w->access == WIN_LOCK_ALL || w->locks    ? "locks are held, which must be given back before"
                      : w->exposed                               ? "MPI_Win_wait must end the epoch of MPI_Win_post before"
                                                                 : NULL;
    if (why) err_set(TERN_ERR_WIN_SYNC, "%s", why);
    return !why;
}

static int close_far(struct win_target *t)
{
    far_close(t);
    return 0;
}

static void end(struct win *w)
{
    struct lane *l = w->comm->lane;
    lane_enter(l);
    step_remove(&w->lost);
    if (w->near.mail) step_remove(&w->mail);
    win_targets_each(w, close_far);
    serve_close(w);
    lane_leave(l);
}

int win_free(struct win *w)
{
    struct lane *l = w->comm->lane;
    lane_enter(l);
    int rc = 0;
    for (uint32_t i = 0; i < w->room; i++) {
        int one = w->targets[i] ? far_flush(w->targets[i]) : 0;
        if (one && !rc) rc = one;
    }
    lane_leave(l);
    int met = coll_barrier(w->comm);
    if (met) {
        abandon(w);
    } else {
        end(w);
        pt_let_go(w->comm);
        let_go(w);
    }
    return rc ? rc : met;
}

/* MPI_Finalize: the communicator of a window goes that was not freed, or is abandoned. */
static void comm_gone(struct comm *c)
{
    if (!c->win) return;
    end(c->win);
    drop(c->win);
}

static const struct comm_hooks hooks = {.gone = comm_gone};

#define LAYER 4

int rma_open(void)
{
    comm_set_hooks(LAYER, &hooks);
    return 0;
}

void rma_close(void) { comm_set_hooks(LAYER, NULL); }

/* ---- asking ---- */

static int query(struct win *w, int rank, MPI_Aint *bytes, MPI_Aint *unit, void **base)
{
    struct win_target *t = win_target(w, rank);
    if (!t) return err_code();
    const struct win_memory *m = &t->memory;
    bool reached = t->exposure && (m->at || !m->bytes);
    *bytes = reached ? (MPI_Aint)m->bytes : 0;
    *unit = t->exposure ? (MPI_Aint)t->unit : 1;
    *base = reached && m->bytes ? m->at : NULL;
    return 0;
}

int win_query(struct win *w, int rank, MPI_Aint *bytes, MPI_Aint *unit, void **base)
{
    int rc = 0;
    lane_enter(w->comm->lane);
    if (rank != MPI_PROC_NULL) rc = query(w, rank, bytes, unit, base);
    for (int32_t i = 0; rank == MPI_PROC_NULL && i < w->near.n; i++) {
        rc = query(w, w->near.rank[i], bytes, unit, base);
        if (rc || *bytes) break;
    }
    lane_leave(w->comm->lane);
    return rc;
}

void win_set_name(struct win *w, const char *name)
{
    handle_state_lock();
    snprintf(w->name, sizeof w->name, "%s", name);
    handle_state_unlock();
}

const char *win_name(const struct win *w)
{
    static char common[sizeof w->name];
    static struct scratch names = SCRATCH_INIT(common);
    char *name = scratch(&names);
    handle_state_lock();
    memcpy(name, w->name, sizeof w->name);
    handle_state_unlock();
    return name;
}
