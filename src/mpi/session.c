/*
 * session.c - entry points: sessions and their process sets (MPI-5.0 section 11.3).
 */
#include "mpi/life.h"
#include "mpi/report.h"
#include "obj/info.h"
#include "obj/session.h"
#include "proc/pset.h"
#include "pt2pt/bsend.h"

#include <stdio.h>
#include <string.h>

static int open_session(struct session *s, const char *progress, const char *call, MPI_Session *session)
{
    int rc = life_open(s->level);
    if (!rc && (rc = life_help(s->level, progress))) life_close();
    if (rc) {
        rc = report_code(s, call, rc);
        session_unref(s);
        return rc;
    }
    *session = session_handle(s);
    return MPI_SUCCESS;
}

/* May be called at any time, by several threads at once. Without a level asked for, threads may do what they like. */
MPI_ALIAS(Session_init);
int PMPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session)
{
    const char *call = "MPI_Session_init";
    struct errhandler *e = errh_of(errhandler);
    const struct info *asked = info_of(info);
    char copy[MPI_MAX_INFO_VAL];
    if (session) *session = MPI_SESSION_NULL;
    if (!e || !errh_fits(e, ERRH_SESSION)) return bad_errhandler(NULL, call, errhandler);
    if (!session) return bad_null(e, call, "session");
    if (!asked && info != MPI_INFO_NULL)
        return report(e, call, MPI_ERR_INFO, "argument info (%p) is no info object", (void *)info);
    int level = session_level(asked, MPI_THREAD_MULTIPLE);
    if (level < MPI_THREAD_SINGLE)
        return report(e, call, MPI_ERR_INFO_VALUE,
                      "info key thread_level is '%s', which is no level of thread support (MPI_THREAD_SINGLE ... "
                      "MPI_THREAD_MULTIPLE)",
                      info_copy_value(asked, "thread_level", copy));
    const char *progress = info_copy_value(asked, "tern_progress", copy);
    if (progress && !life_knows_progress(progress))
        return report(e, call, MPI_ERR_INFO_VALUE,
                      "info key tern_progress is '%s', but there are auto, caller and helper", progress);
    struct session *s = session_new(e, level, asked);
    return s ? open_session(s, progress, call, session) : report_code(e, call, TERN_ERR_NOMEM);
}

MPI_ALIAS(Session_finalize);
int PMPI_Session_finalize(MPI_Session *session)
{
    const char *call = "MPI_Session_finalize";
    if (!session) return bad_null(NULL, call, "session");
    struct session *s = session_of(*session);
    if (!s) return bad_session(call, *session);
    bsend_drop(&s->bsend); /* what is in the buffer goes out first */
    s->over = true;
    *session = MPI_SESSION_NULL;
    session_unref(s);
    life_close();
    return MPI_SUCCESS;
}

MPI_ALIAS(Session_get_info);
int PMPI_Session_get_info(MPI_Session session, MPI_Info *info_used)
{
    const char *call = "MPI_Session_get_info";
    struct session *s = session_of(session);
    if (!s) return bad_session(call, session);
    if (!info_used) return bad_null(s, call, "info_used");
    return give_info(s, call, info_dup(s->hints), 0, info_used);
}

/* ---- process sets ---- */

MPI_ALIAS(Session_get_num_psets);
int PMPI_Session_get_num_psets(MPI_Session session, MPI_Info info, int *npset_names)
{
    const char *call = "MPI_Session_get_num_psets";
    struct session *s = session_of(session);
    struct info *hints; /* none is known */
    if (!s) return bad_session(call, session);
    if (!info_given(info, &hints)) return bad_info(s, call, info);
    if (!npset_names) return bad_null(s, call, "npset_names");
    return report_if(s, call, pset_count(npset_names));
}

static int copy_name(const char *name, int *len, char *to)
{
    int need = (int)strlen(name) + 1;
    if (*len > 0) snprintf(to, (size_t)*len, "%s", name);
    *len = need;
    return MPI_SUCCESS;
}

MPI_ALIAS(Session_get_nth_pset);
int PMPI_Session_get_nth_pset(MPI_Session session, MPI_Info info, int n, int *pset_len, char *pset_name)
{
    const char *call = "MPI_Session_get_nth_pset";
    struct session *s = session_of(session);
    int count;
    struct info *hints;
    if (!s) return bad_session(call, session);
    if (!info_given(info, &hints)) return bad_info(s, call, info);
    if (!pset_len) return bad_null(s, call, "pset_len");
    if (*pset_len < 0) return report(s, call, MPI_ERR_ARG, "argument pset_len is %d, which is negative", *pset_len);
    if (*pset_len && !pset_name) return bad_null(s, call, "pset_name");
    int rc = pset_count(&count);
    if (rc) return report_code(s, call, rc);
    if (n < 0 || n >= count) return report(s, call, MPI_ERR_ARG, "argument n is %d, but there are %d process sets, from 0 on", n, count);
    return copy_name(pset_name_of(n), pset_len, pset_name);
}

static int no_pset(struct session *s, const char *call, const char *name)
{
    return report(s, call, MPI_ERR_ARG, "argument pset_name is \"%s\", and there is no process set of that name", name);
}

MPI_ALIAS(Session_get_pset_info);
int PMPI_Session_get_pset_info(MPI_Session session, const char *pset_name, MPI_Info *info)
{
    const char *call = "MPI_Session_get_pset_info";
    struct session *s = session_of(session);
    struct rankmap *map;
    char size[16];
    if (!s) return bad_session(call, session);
    if (!pset_name || !info) return bad_null(s, call, pset_name ? "info" : "pset_name");
    int rc = pset_find(pset_name, &map);
    if (rc == TERN_ERR_NOT_FOUND) return no_pset(s, call, pset_name);
    if (rc) return report_code(s, call, rc);
    snprintf(size, sizeof size, "%d", map->size);
    rankmap_unref(map);
    struct info *i = info_new();
    return give_info(s, call, i, i ? info_set(i, "mpi_size", size) : 0, info);
}

MPI_ALIAS(Group_from_session_pset);
int PMPI_Group_from_session_pset(MPI_Session session, const char *pset_name, MPI_Group *newgroup)
{
    const char *call = "MPI_Group_from_session_pset";
    struct session *s = session_of(session);
    struct rankmap *map;
    no_group_yet(newgroup);
    if (!s) return bad_session(call, session);
    if (!pset_name || !newgroup) return bad_null(s, call, pset_name ? "newgroup" : "pset_name");
    int rc = pset_find(pset_name, &map);
    if (rc == TERN_ERR_NOT_FOUND) return no_pset(s, call, pset_name);
    if (rc) return report_code(s, call, rc);
    struct group *g = group_new_in(s, map);
    if (!g) return report(s, call, MPI_ERR_NO_MEM, "no memory for a group");
    *newgroup = group_handle(g);
    return MPI_SUCCESS;
}
