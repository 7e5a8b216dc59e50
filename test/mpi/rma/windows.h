/* windows.h - windows of each kind, for tests: KINDS of them, each of `bytes` a rank. */
#ifndef TERN_TEST_WINDOWS_H
#define TERN_TEST_WINDOWS_H

#include "../check.h"
#include <stdbool.h>

enum kind { CREATED, CREATED_SHARED, ALLOCATED, SHARED, APART, ATTACHED, ATTACHED_SHARED, KINDS };
static const char *const kind_name[KINDS] = {"created", "created over MPI_Alloc_mem", "allocated", "shared", "shared, not one piece",
                                             "attached", "attached memory of MPI_Alloc_mem"};

struct window {
    MPI_Win win;
    char *base;
    MPI_Aint bytes;
    enum kind kind;
    int unit;
    MPI_Aint *start; /* by rank: where what is attached begins */
};

static inline bool window_share(struct window *w, MPI_Comm comm, int unit, bool apart)
{
    MPI_Info info;
    MPI_Comm node;
    int size, all;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &size);
    MPI_Comm_free(&node);
    MPI_Comm_size(comm, &all);
    if (size < all) return false;
    MPI_Info_create(&info);
    MPI_Info_set(info, "alloc_shared_noncontig", apart ? "true" : "false");
    MPI_Errhandler before;
    MPI_Comm_get_errhandler(comm, &before);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    int rc = MPI_Win_allocate_shared(w->bytes, unit, info, comm, &w->base, &w->win);
    MPI_Comm_set_errhandler(comm, before);
    MPI_Errhandler_free(&before);
    MPI_Info_free(&info);
    int class = 0;
    if (rc) MPI_Error_class(rc, &class);
    if (rc) CHECK(class == MPI_ERR_RMA_SHARED, "class %d", class); /* they have no memory in common: TCP only */
    return !rc;
}

/* A dynamic window, to which memory is attached. */
static inline void window_attach(struct window *w, MPI_Comm comm)
{
    int size;
    MPI_Aint own;
    MPI_Comm_size(comm, &size);
    CHECK_OK(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &w->win));
    CHECK_OK(MPI_Win_attach(w->win, w->base, w->bytes));
    w->start = malloc((size_t)size * sizeof *w->start);
    MPI_Get_address(w->base, &own);
    MPI_Allgather(&own, 1, MPI_AINT, w->start, 1, MPI_AINT, comm);
}

/* The displacement of a byte of a rank's memory. */
static inline MPI_Aint window_place(const struct window *w, int rank, MPI_Aint byte)
{
    return w->start ? w->start[rank] + byte : byte / w->unit;
}

/* False: there is no such window here. Collective. */
static inline bool window_open(struct window *w, enum kind kind, MPI_Comm comm, MPI_Aint bytes, int unit)
{
    *w = (struct window){.bytes = bytes, .kind = kind, .unit = unit};
    bool there = true;
    switch (kind) {
    case CREATED:
        w->base = malloc((size_t)bytes + 1);
        CHECK_OK(MPI_Win_create(w->base, bytes, unit, MPI_INFO_NULL, comm, &w->win));
        break;
    case ATTACHED:
        w->base = malloc((size_t)bytes + 1);
        window_attach(w, comm);
        break;
    case ATTACHED_SHARED:
        CHECK_OK(MPI_Alloc_mem(bytes < 65536 ? 65536 : bytes, MPI_INFO_NULL, &w->base));
        window_attach(w, comm);
        break;
    case CREATED_SHARED:
        CHECK_OK(MPI_Alloc_mem(bytes < 65536 ? 65536 : bytes, MPI_INFO_NULL, &w->base));
        CHECK_OK(MPI_Win_create(w->base, bytes, unit, MPI_INFO_NULL, comm, &w->win));
        break;
    case ALLOCATED: CHECK_OK(MPI_Win_allocate(bytes, unit, MPI_INFO_NULL, comm, &w->base, &w->win)); break;
    case SHARED:
    case APART: there = window_share(w, comm, unit, kind == APART); break;
    case KINDS: break;
    }
    if (!there) return false;
    memset(w->base, 0, (size_t)bytes);
    MPI_Barrier(comm);
    return true;
}

/* What others have put there, by a plain load while they may do so: the unified model allows that (12.4), and the thread sanitizer does
 * not know it. */
static __attribute__((noinline, no_sanitize("thread"), unused)) long window_look(const void *place) { return *(const volatile long *)place; }

static inline void window_close(struct window *w)
{
    if (w->start) CHECK_OK(MPI_Win_detach(w->win, w->base));
    CHECK_OK(MPI_Win_free(&w->win));
    CHECK(w->win == MPI_WIN_NULL, "the handle is not the null one");
    if (w->kind == CREATED || w->kind == ATTACHED) free(w->base);
    if (w->kind == CREATED_SHARED || w->kind == ATTACHED_SHARED) MPI_Free_mem(w->base);
    free(w->start);
}

#endif
