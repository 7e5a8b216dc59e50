/*
 * win.c - entry points: making windows, and asking about them (MPI-5.0 sections 12.2, 7.8).
 */
#include "mpi/attr.h"
#include "mpi/winargs.h"
#include "obj/hints.h"

#include <stdio.h>

int bad_win(const char *call, MPI_Win win)
{
    check_running(call);
    if (win == MPI_WIN_NULL) return report(NULL, call, MPI_ERR_WIN, "argument win is MPI_WIN_NULL");
    return report(NULL, call, MPI_ERR_WIN, "argument win (%p) is no window", (void *)win);
}

int bad_target(const struct win *w, const char *call, const char *name, int rank)
{
    return report(w, call, MPI_ERR_RANK, "argument %s is %d, but the window has ranks 0 to %d", name, rank, w->comm->size - 1);
}

/* ---- making ---- */

static void no_win_yet(MPI_Win *made)
{
    if (made) *made = MPI_WIN_NULL;
}

/* The arguments that all of them have. The communicator, with its hints; NULL: *rc is the reported class. */
static struct comm *check_making(const char *call, MPI_Comm comm, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Win *win,
                                 struct info **hints, int *rc)
{
    struct comm *c = comm_of(comm);
    no_win_yet(win);
    if (!c) *rc = bad_comm(call, comm);
    else if (c->inter) *rc = report(c, call, MPI_ERR_COMM, "argument comm is an intercommunicator, which has no windows");
    else if (size < 0) *rc = report(c, call, MPI_ERR_SIZE, "argument size is %lld, which is negative", (long long)size);
    else if (unit <= 0) *rc = report(c, call, MPI_ERR_DISP, "argument disp_unit is %lld, which is not positive", (long long)unit);
    else if (!info_given(info, hints)) *rc = bad_info(c, call, info);
    else if (!win) *rc = bad_null(c, call, "win");
    else return c;
    return NULL;
}

static int give_win(const char *call, struct comm *c, int rc, struct win *made, MPI_Win *win)
{
    if (rc) return report_code(c, call, rc);
    *win = win_handle(made);
    return MPI_SUCCESS;
}

static int create(const char *call, void *base, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
    struct info *hints;
    struct win *made = NULL;
    int rc;
    struct comm *c = check_making(call, comm, size, unit, info, win, &hints, &rc);
    if (!c) return rc;
    if (!base && size) return report(c, call, MPI_ERR_BASE, "argument base is NULL, and size is %lld", (long long)size);
    rc = win_create(c, base, size, unit, hints, &made);
    return give_win(call, c, rc, made, win);
}

MPI_ALIAS(Win_create);
int PMPI_Win_create(void *base, MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
    return create("MPI_Win_create", base, size, disp_unit, info, comm, win);
}

MPI_ALIAS(Win_create_c);
int PMPI_Win_create_c(void *base, MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
    return create("MPI_Win_create_c", base, size, disp_unit, info, comm, win);
}

static int allocate(const char *call, bool share, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void *baseptr, MPI_Win *win)
{
    struct info *hints;
    struct win *made = NULL;
    int rc;
    struct comm *c = check_making(call, comm, size, unit, info, win, &hints, &rc);
    if (!c) return rc;
    if (!baseptr) return bad_null(c, call, "baseptr");
    rc = (share ? win_share : win_allocate)(c, size, unit, hints, baseptr, &made);
    return give_win(call, c, rc, made, win);
}

MPI_ALIAS(Win_allocate);
int PMPI_Win_allocate(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr, MPI_Win *win)
{
    return allocate("MPI_Win_allocate", false, size, disp_unit, info, comm, baseptr, win);
}

MPI_ALIAS(Win_allocate_c);
int PMPI_Win_allocate_c(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr, MPI_Win *win)
{
    return allocate("MPI_Win_allocate_c", false, size, disp_unit, info, comm, baseptr, win);
}

MPI_ALIAS(Win_allocate_shared);
int PMPI_Win_allocate_shared(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr, MPI_Win *win)
{
    return allocate("MPI_Win_allocate_shared", true, size, disp_unit, info, comm, baseptr, win);
}

MPI_ALIAS(Win_allocate_shared_c);
int PMPI_Win_allocate_shared_c(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr, MPI_Win *win)
{
    return allocate("MPI_Win_allocate_shared_c", true, size, disp_unit, info, comm, baseptr, win);
}

MPI_ALIAS(Win_create_dynamic);
int PMPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
    const char *call = "MPI_Win_create_dynamic";
    struct info *hints;
    struct win *made = NULL;
    int rc;
    struct comm *c = check_making(call, comm, 0, 1, info, win, &hints, &rc);
    if (!c) return rc;
    rc = win_dynamic(c, hints, &made);
    return give_win(call, c, rc, made, win);
}

static int bad_flavor(const struct win *w, const char *call)
{
    return report(w, call, MPI_ERR_RMA_FLAVOR, "argument win was not made by MPI_Win_create_dynamic");
}

MPI_ALIAS(Win_attach);
int PMPI_Win_attach(MPI_Win win, void *base, MPI_Aint size)
{
    const char *call = "MPI_Win_attach";
    struct win *w = win_of(win);
    if (!w) return bad_win(call, win);
    if (w->flavor != MPI_WIN_FLAVOR_DYNAMIC) return bad_flavor(w, call);
    if (size < 0) return report(w, call, MPI_ERR_SIZE, "argument size is %lld, which is negative", (long long)size);
    if (!base && size) return report(w, call, MPI_ERR_BASE, "argument base is NULL, and size is %lld", (long long)size);
    return report_if(w, call, win_attach(w, base, size));
}

MPI_ALIAS(Win_detach);
int PMPI_Win_detach(MPI_Win win, const void *base)
{
    struct win *w = win_of(win);
    if (!w) return bad_win("MPI_Win_detach", win);
    if (w->flavor != MPI_WIN_FLAVOR_DYNAMIC) return bad_flavor(w, "MPI_Win_detach");
    return report_if(w, "MPI_Win_detach", win_detach(w, base));
}

MPI_ALIAS(Win_free);
int PMPI_Win_free(MPI_Win *win)
{
    const char *call = "MPI_Win_free";
    struct win *w = win ? win_of(*win) : NULL;
    if (!win) return bad_null(NULL, call, "win");
    if (!w) return bad_win(call, *win);
    if (!win_may_be_freed(w)) return report_code(w, call, TERN_ERR_WIN_SYNC);
    int rc = win_attrs_delete(w);
    if (rc) return report_attr(w, call, rc);
    struct errhandler *e = errh_get(&w->errh);
    rc = win_free(w);
    *win = MPI_WIN_NULL;
    rc = report_if(e, call, rc);
    errh_unref(e);
    return rc;
}

/* ---- asking ---- */

static int shared_query(const char *call, MPI_Win win, int rank, MPI_Aint *size, MPI_Aint *unit, void *baseptr)
{
    struct win *w = win_of(win);
    void *base;
    if (!w) return bad_win(call, win);
    if (!target_ok(w, rank) && rank != MPI_PROC_NULL) return bad_target(w, call, "rank", rank);
    if (!size || !unit || !baseptr) return bad_null(w, call, !size ? "size" : !unit ? "disp_unit" : "baseptr");
    int rc = win_query(w, rank, size, unit, &base);
    if (rc) return report_code(w, call, rc);
    *(void **)baseptr = base;
    return MPI_SUCCESS;
}

MPI_ALIAS(Win_shared_query);
int PMPI_Win_shared_query(MPI_Win win, int rank, MPI_Aint *size, int *disp_unit, void *baseptr)
{
    MPI_Aint unit;
    int rc = shared_query("MPI_Win_shared_query", win, rank, size, disp_unit ? &unit : NULL, baseptr);
    if (!rc) *disp_unit = (int)unit;
    return rc;
}

MPI_ALIAS(Win_shared_query_c);
int PMPI_Win_shared_query_c(MPI_Win win, int rank, MPI_Aint *size, MPI_Aint *disp_unit, void *baseptr)
{
    return shared_query("MPI_Win_shared_query_c", win, rank, size, disp_unit, baseptr);
}

MPI_ALIAS(Win_get_group);
int PMPI_Win_get_group(MPI_Win win, MPI_Group *group)
{
    struct win *w = win_of(win);
    no_group_yet(group);
    if (!w) return bad_win("MPI_Win_get_group", win);
    if (!group) return bad_null(w, "MPI_Win_get_group", "group");
    struct group *g = group_new_in(w->comm->session, rankmap_ref(w->comm->map));
    if (!g) return report(w, "MPI_Win_get_group", MPI_ERR_NO_MEM, "no memory for a group");
    *group = group_handle(g);
    return MPI_SUCCESS;
}

MPI_ALIAS(Win_set_name);
int PMPI_Win_set_name(MPI_Win win, const char *name)
{
    struct win *w = win_of(win);
    if (!w) return bad_win("MPI_Win_set_name", win);
    if (!name) return bad_null(w, "MPI_Win_set_name", "win_name");
    win_set_name(w, name);
    return MPI_SUCCESS;
}

MPI_ALIAS(Win_get_name);
int PMPI_Win_get_name(MPI_Win win, char *name, int *resultlen)
{
    struct win *w = win_of(win);
    if (!w && win != MPI_WIN_NULL) return bad_win("MPI_Win_get_name", win);
    if (!name || !resultlen) return bad_null(w, "MPI_Win_get_name", name ? "resultlen" : "win_name");
    *resultlen = snprintf(name, MPI_MAX_OBJECT_NAME, "%s", w ? win_name(w) : "MPI_WIN_NULL");
    return MPI_SUCCESS;
}

MPI_ALIAS(Win_set_info);
int PMPI_Win_set_info(MPI_Win win, MPI_Info info)
{
    struct win *w = win_of(win);
    struct info *i = info_of(info);
    if (!w) return bad_win("MPI_Win_set_info", win);
    if (!i) return bad_info(w, "MPI_Win_set_info", info);
    return report_if(w, "MPI_Win_set_info", win_hints_set(w, i));
}

MPI_ALIAS(Win_get_info);
int PMPI_Win_get_info(MPI_Win win, MPI_Info *info_used)
{
    struct win *w = win_of(win);
    if (!w) return bad_win("MPI_Win_get_info", win);
    if (!info_used) return bad_null(w, "MPI_Win_get_info", "info_used");
    return give_info(w, "MPI_Win_get_info", win_hints_used(w), 0, info_used);
}
