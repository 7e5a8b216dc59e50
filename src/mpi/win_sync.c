/*
 * win_sync.c - entry points: synchronisation of windows (MPI-5.0 section 12.5).
 */
#include "mpi/winargs.h"
#include "rma/epoch.h"

#define ASSERTIONS (MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED)

/* Assertions that are none of the standard's, or not of this call. */
static int bad_assert(const struct win *w, const char *call, int given, int allowed)
{
    if (!(given & ~allowed)) return MPI_SUCCESS;
    return report(w, call, MPI_ERR_ASSERT, "argument assert is %d, of which %d %s", given, given & ~allowed,
                  given & ~ASSERTIONS ? "means nothing" : "is not for this call");
}

MPI_ALIAS(Win_fence);
int PMPI_Win_fence(int assert, MPI_Win win)
{
    struct win *w = win_of(win);
    if (!w) return bad_win("MPI_Win_fence", win);
    int rc = bad_assert(w, "MPI_Win_fence", assert, MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED);
    return rc ? rc : report_if(w, "MPI_Win_fence", win_fence(w, assert));
}

static int with_group(const char *call, MPI_Group group, int assert, MPI_Win win, int allowed,
                      int (*begin)(struct win *, const struct group *, int))
{
    struct win *w = win_of(win);
    struct group *g = group_of(group);
    if (!w) return bad_win(call, win);
    if (!g) return bad_group(w, call, group, "group");
    int rc = bad_assert(w, call, assert, allowed);
    return rc ? rc : report_if(w, call, begin(w, g, assert));
}

MPI_ALIAS(Win_start);
int PMPI_Win_start(MPI_Group group, int assert, MPI_Win win)
{
    return with_group("MPI_Win_start", group, assert, win, MPI_MODE_NOCHECK, win_start);
}

MPI_ALIAS(Win_post);
int PMPI_Win_post(MPI_Group group, int assert, MPI_Win win)
{
    return with_group("MPI_Win_post", group, assert, win, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT, win_post);
}

static int on_win(const char *call, MPI_Win win, int (*function)(struct win *))
{
    struct win *w = win_of(win);
    return w ? report_if(w, call, function(w)) : bad_win(call, win);
}

MPI_ALIAS(Win_complete);
int PMPI_Win_complete(MPI_Win win) { return on_win("MPI_Win_complete", win, win_complete); }

MPI_ALIAS(Win_wait);
int PMPI_Win_wait(MPI_Win win) { return on_win("MPI_Win_wait", win, win_wait); }

MPI_ALIAS(Win_test);
int PMPI_Win_test(MPI_Win win, int *flag)
{
    struct win *w = win_of(win);
    bool over = false;
    if (!w) return bad_win("MPI_Win_test", win);
    if (!flag) return bad_null(w, "MPI_Win_test", "flag");
    int rc = win_test(w, &over);
    if (!rc) *flag = over;
    return report_if(w, "MPI_Win_test", rc);
}

/* ---- passive target ---- */

MPI_ALIAS(Win_lock);
int PMPI_Win_lock(int lock_type, int rank, int assert, MPI_Win win)
{
    struct win *w = win_of(win);
    if (!w) return bad_win("MPI_Win_lock", win);
    if (lock_type != MPI_LOCK_SHARED && lock_type != MPI_LOCK_EXCLUSIVE)
        return report(w, "MPI_Win_lock", MPI_ERR_LOCKTYPE, "argument lock_type is %d, neither MPI_LOCK_SHARED nor MPI_LOCK_EXCLUSIVE", lock_type);
    int rc = bad_assert(w, "MPI_Win_lock", assert, MPI_MODE_NOCHECK);
    if (rc || rank == MPI_PROC_NULL) return rc;
    if (!target_ok(w, rank)) return bad_target(w, "MPI_Win_lock", "rank", rank);
    enum win_lock_mode mode = lock_type == MPI_LOCK_SHARED ? WIN_LOCK_SHARED : WIN_LOCK_EXCLUSIVE;
    return report_if(w, "MPI_Win_lock", win_lock(w, rank, mode, assert));
}

MPI_ALIAS(Win_lock_all);
int PMPI_Win_lock_all(int assert, MPI_Win win)
{
    struct win *w = win_of(win);
    if (!w) return bad_win("MPI_Win_lock_all", win);
    int rc = bad_assert(w, "MPI_Win_lock_all", assert, MPI_MODE_NOCHECK);
    return rc ? rc : report_if(w, "MPI_Win_lock_all", win_lock_all(w, assert));
}

static int on_target(const char *call, MPI_Win win, int rank, int (*function)(struct win *, int32_t))
{
    struct win *w = win_of(win);
    if (!w) return bad_win(call, win);
    if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
    return target_ok(w, rank) ? report_if(w, call, function(w, rank)) : bad_target(w, call, "rank", rank);
}

MPI_ALIAS(Win_unlock);
int PMPI_Win_unlock(int rank, MPI_Win win) { return on_target("MPI_Win_unlock", win, rank, win_unlock); }

MPI_ALIAS(Win_unlock_all);
int PMPI_Win_unlock_all(MPI_Win win) { return on_win("MPI_Win_unlock_all", win, win_unlock_all); }

MPI_ALIAS(Win_flush);
int PMPI_Win_flush(int rank, MPI_Win win) { return on_target("MPI_Win_flush", win, rank, win_flush); }

MPI_ALIAS(Win_flush_local);
int PMPI_Win_flush_local(int rank, MPI_Win win) { return on_target("MPI_Win_flush_local", win, rank, win_flush_local); }

MPI_ALIAS(Win_flush_all);
int PMPI_Win_flush_all(MPI_Win win) { return on_win("MPI_Win_flush_all", win, win_flush_all); }

MPI_ALIAS(Win_flush_local_all);
int PMPI_Win_flush_local_all(MPI_Win win) { return on_win("MPI_Win_flush_local_all", win, win_flush_local_all); }

MPI_ALIAS(Win_sync);
int PMPI_Win_sync(MPI_Win win) { return on_win("MPI_Win_sync", win, win_sync); }
