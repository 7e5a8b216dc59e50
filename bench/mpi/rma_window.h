/*
 * rma_window.h - the windows of the benchmarks of one-sided communication: one of each kind, and what is done to it.
 */
#ifndef RMA_WINDOW_H
#define RMA_WINDOW_H

#include "bench.h"

enum kind { ALLOC, CREATE, DYNAMIC, KINDS };
static const char *const kind_name[KINDS] = {"alloc", "create", "dynamic"};

enum { WINDOW_RANKS = 64 };
enum op { PUT, GET, ACC, FOP, OPS };
static const char *const op_name[OPS] = {"put", "get", "acc", "fop"};

struct window {
    enum kind kind;
    MPI_Win win;
    char *base;                   /* of this process's part */
    MPI_Aint place[WINDOW_RANKS]; /* of each process's part, for the operations */
};

/* Collective: `bytes` in each of at most WINDOW_RANKS processes, all zero. The info may be MPI_INFO_NULL. */
static inline void window_open(struct window *w, enum kind kind, size_t bytes, MPI_Info info)
{
    MPI_Comm all = MPI_COMM_WORLD;
    MPI_Aint place = 0;
    *w = (struct window){.kind = kind};
    if (kind == ALLOC) MPI_Win_allocate((MPI_Aint)bytes, 1, info, all, &w->base, &w->win);
    else w->base = xalloc(bytes);
    if (kind == CREATE) MPI_Win_create(w->base, (MPI_Aint)bytes, 1, info, all, &w->win);
    if (kind == DYNAMIC) {
        MPI_Win_create_dynamic(info, all, &w->win);
        MPI_Win_attach(w->win, w->base, (MPI_Aint)bytes);
        MPI_Get_address(w->base, &place);
    }
    memset(w->base, 0, bytes);
    MPI_Allgather(&place, 1, MPI_AINT, w->place, 1, MPI_AINT, all);
}

static inline void window_close(struct window *w)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (w->kind == DYNAMIC) MPI_Win_detach(w->win, w->base);
    MPI_Win_free(&w->win);
    if (w->kind != ALLOC) free(w->base);
}

/* One operation of n bytes (a multiple of 8; FOP: 8) between `here` and the target. Accumulates add numbers of 8 bytes. */
static inline void window_op(const struct window *w, enum op op, void *here, size_t n, int target)
{
    static int64_t one = 1;
    int bytes = (int)n, numbers = (int)(n / 8);
    MPI_Aint at = w->place[target];
    if (op == PUT) MPI_Put(here, bytes, MPI_BYTE, target, at, bytes, MPI_BYTE, w->win);
    else if (op == GET) MPI_Get(here, bytes, MPI_BYTE, target, at, bytes, MPI_BYTE, w->win);
    else if (op == ACC) MPI_Accumulate(here, numbers, MPI_INT64_T, target, at, numbers, MPI_INT64_T, MPI_SUM, w->win);
    else MPI_Fetch_and_op(&one, here, MPI_INT64_T, target, at, MPI_SUM, w->win);
}

static inline void window_epoch(const struct window *w, enum op op, void *here, size_t n, int target)
{
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, w->win);
    window_op(w, op, here, n, target);
    MPI_Win_unlock(target, w->win);
}

/* Is `name` among the arguments, or no name of its group? */
static inline int wanted(const char *name, const char *const *group, int n, int argc, char **argv)
{
    int others = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], name)) return 1;
        for (int k = 0; k < n; k++) others |= !strcmp(argv[i], group[k]);
    }
    return !others;
}

#endif
