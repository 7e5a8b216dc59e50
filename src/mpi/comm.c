/*
 * comm.c - entry points: communicators (MPI-5.0 sections 7.4, 7.8).
 */
#include "coll/coll.h"
#include "comm/create.h"
#include "comm/disconnect.h"
#include "mpi/attr.h"
#include "mpi/dynamic.h"
#include "mpi/fromgroup.h"
#include "mpi/report.h"
#include "obj/info.h"
#include "pt2pt/api.h"
#include "pt2pt/bsend.h"

#include <stdio.h>
#include <string.h>

/* ---- facts ---- */

MPI_ALIAS(Comm_size);
int PMPI_Comm_size(MPI_Comm comm, int *size)
{
    struct comm *c = comm_of_local(comm);
    if (unlikely(!c)) return bad_comm("MPI_Comm_size", comm);
    if (unlikely(!size)) return bad_null(c, "MPI_Comm_size", "size");
    *size = c->size;
    return MPI_SUCCESS;
}

MPI_ALIAS(Comm_rank);
int PMPI_Comm_rank(MPI_Comm comm, int *rank)
{
    struct comm *c = comm_of_local(comm);
    if (unlikely(!c)) return bad_comm("MPI_Comm_rank", comm);
    if (unlikely(!rank)) return bad_null(c, "MPI_Comm_rank", "rank");
    *rank = c->rank;
    return MPI_SUCCESS;
}

MPI_ALIAS(Comm_test_inter);
int PMPI_Comm_test_inter(MPI_Comm comm, int *flag)
{
    struct comm *c = comm_of_local(comm);
    if (!c) return bad_comm("MPI_Comm_test_inter", comm);
    if (!flag) return bad_null(c, "MPI_Comm_test_inter", "flag");
    *flag = c->inter;
    return MPI_SUCCESS;
}

static int not_inter(struct comm *c, const char *call)
{
    return report(c, call, MPI_ERR_COMM, "argument comm is not an intercommunicator: it has no remote group");
}

MPI_ALIAS(Comm_remote_size);
int PMPI_Comm_remote_size(MPI_Comm comm, int *size)
{
    struct comm *c = comm_of_local(comm);
    if (!c) return bad_comm("MPI_Comm_remote_size", comm);
    if (!c->inter) return not_inter(c, "MPI_Comm_remote_size");
    if (!size) return bad_null(c, "MPI_Comm_remote_size", "size");
    *size = comm_peers(c);
    return MPI_SUCCESS;
}

/* The group behind a map of ranks. */
static int give_group(struct comm *c, const char *call, struct rankmap *map, MPI_Group *group)
{
    if (!group) return bad_null(c, call, "group");
    struct group *g = group_new_in(c->session, rankmap_ref(map));
    if (!g) return report(c, call, MPI_ERR_NO_MEM, "no memory for a group of %d processes", map->size);
    *group = group_handle(g);
    return MPI_SUCCESS;
}

MPI_ALIAS(Comm_group);
int PMPI_Comm_group(MPI_Comm comm, MPI_Group *group)
{
    struct comm *c = comm_of_local(comm);
    no_group_yet(group);
    if (!c) return bad_comm("MPI_Comm_group", comm);
    return give_group(c, "MPI_Comm_group", c->local, group);
}

MPI_ALIAS(Comm_remote_group);
int PMPI_Comm_remote_group(MPI_Comm comm, MPI_Group *group)
{
    struct comm *c = comm_of_local(comm);
    no_group_yet(group);
    if (!c) return bad_comm("MPI_Comm_remote_group", comm);
    if (!c->inter) return not_inter(c, "MPI_Comm_remote_group");
    return give_group(c, "MPI_Comm_remote_group", c->map, group);
}

MPI_ALIAS(Comm_compare);
int PMPI_Comm_compare(MPI_Comm comm1, MPI_Comm comm2, int *result)
{
    struct comm *a = comm_of_local(comm1), *b = comm_of_local(comm2);
    if (!a || !b) return bad_comm_named("MPI_Comm_compare", a ? comm2 : comm1, a ? "comm2" : "comm1");
    if (!result) return bad_null(a, "MPI_Comm_compare", "result");
    *result = comm_compare(a, b);
    return MPI_SUCCESS;
}

MPI_ALIAS(Comm_set_name);
int PMPI_Comm_set_name(MPI_Comm comm, const char *comm_name)
{
    struct comm *c = comm_of_local(comm);
    if (!c) return bad_comm("MPI_Comm_set_name", comm);
    if (!comm_name) return bad_null(c, "MPI_Comm_set_name", "comm_name");
    comm_set_name(c, comm_name); /* the standard cuts what is longer */
    return MPI_SUCCESS;
}

MPI_ALIAS(Comm_get_name);
int PMPI_Comm_get_name(MPI_Comm comm, char *name, int *resultlen)
{
    struct comm *c = comm_of_local(comm);
    if (!c && comm != MPI_COMM_NULL) return bad_comm("MPI_Comm_get_name", comm);
    if (!name || !resultlen) return bad_null(c, "MPI_Comm_get_name", name ? "resultlen" : "comm_name");
    *resultlen = snprintf(name, MPI_MAX_OBJECT_NAME, "%s", c ? comm_name(c) : "MPI_COMM_NULL");
    return MPI_SUCCESS;
}

/* ---- making ---- */

/* The end of a call that makes a communicator: `made` is NULL at processes that are not members. */
static int give(struct comm *c, const char *call, int rc, struct comm *made, MPI_Comm *newcomm)
{
    if (rc) return report_code(c, call, rc);
    *newcomm = made ? comm_handle(made) : MPI_COMM_NULL;
    return MPI_SUCCESS;
}

MPI_ALIAS(Comm_split);
int PMPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *newcomm)
{
    const char *call = "MPI_Comm_split";
    struct comm *c = comm_of(comm), *made = NULL;
    no_comm_yet(newcomm);
    if (!c) return bad_comm(call, comm);
    if (!newcomm) return bad_null(c, call, "newcomm");
    if (color < 0 && color != MPI_UNDEFINED)
        return report(c, call, MPI_ERR_ARG, "argument color is %d, but colors are not negative, or MPI_UNDEFINED", color);
    int rc = comm_split(c, color, key, &made);
    return give(c, call, rc, made, newcomm);
}

static bool split_type_known(int type)
{
    return type == MPI_COMM_TYPE_SHARED || type == MPI_COMM_TYPE_HW_GUIDED || type == MPI_COMM_TYPE_HW_UNGUIDED ||
           type == MPI_COMM_TYPE_RESOURCE_GUIDED || type == MPI_UNDEFINED;
}

MPI_ALIAS(Comm_split_type);
int PMPI_Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm *newcomm)
{
    const char *call = "MPI_Comm_split_type";
    struct comm *c = comm_of(comm), *made = NULL;
    struct info *i;
    no_comm_yet(newcomm);
    if (!c) return bad_comm(call, comm);
    if (!newcomm) return bad_null(c, call, "newcomm");
    if (!info_given(info, &i)) return bad_info(c, call, info);
    if (!split_type_known(split_type))
        return report(c, call, MPI_ERR_ARG, "argument split_type is %d, which is neither a MPI_COMM_TYPE_ nor MPI_UNDEFINED",
                      split_type);
    int rc = comm_split_type(c, split_type, key, i, &made);
    return give(c, call, rc, made, newcomm);
}

/* What is wrong with a group from which a communicator is to be made; MPI_SUCCESS if nothing. */
static int check_members(struct comm *c, const char *call, MPI_Group group, struct group **g_p)
{
    struct group *g = group_of(group);
    if (!g)
        return report(c, call, MPI_ERR_GROUP, group == MPI_GROUP_NULL ? "argument group is MPI_GROUP_NULL"
                                                                      : "argument group is not a group, or one that was freed");
    int32_t r = group_outside(g, &(struct group){.map = c->local});
    if (r >= 0) return report(c, call, MPI_ERR_GROUP, "rank %d of argument group is not in the communicator's group", r);
    *g_p = g;
    return MPI_SUCCESS;
}

MPI_ALIAS(Comm_create);
int PMPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm)
{
    const char *call = "MPI_Comm_create";
    struct comm *c = comm_of(comm), *made = NULL;
    struct group *g = NULL;
    no_comm_yet(newcomm);
    if (!c) return bad_comm(call, comm);
    if (!newcomm) return bad_null(c, call, "newcomm");
    int rc = check_members(c, call, group, &g);
    if (rc) return rc;
    rc = comm_create(c, g, &made);
    return give(c, call, rc, made, newcomm);
}

MPI_ALIAS(Comm_create_group);
int PMPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm)
{
    const char *call = "MPI_Comm_create_group";
    struct comm *c = comm_of(comm), *made = NULL;
    struct group *g = NULL;
    no_comm_yet(newcomm);
    if (!c) return bad_comm(call, comm);
    if (!newcomm) return bad_null(c, call, "newcomm");
    if (tag < 0) return report(c, call, MPI_ERR_TAG, "argument tag is %d, which is negative", tag);
    int rc = check_members(c, call, group, &g);
    if (rc) return rc;
    rc = comm_create_group(c, g, tag, &made);
    return give(c, call, rc, made, newcomm);
}

MPI_ALIAS(Comm_create_from_group);
int PMPI_Comm_create_from_group(MPI_Group group, const char *stringtag, MPI_Info info, MPI_Errhandler errhandler,
                                MPI_Comm *newcomm)
{
    const char *call = "MPI_Comm_create_from_group";
    struct from_groups a = {call, errh_of(errhandler), group_of(group), info_of(info), stringtag};
    struct comm *made = NULL;
    int rc = check_from_groups(&a, errhandler, group, info, "group");
    no_comm_yet(newcomm);
    if (rc) return rc;
    if (!newcomm) return bad_null(a.errh, call, "newcomm");
    rc = comm_from_group(a.group, stringtag, a.errh, &made);
    return give_from_groups(&a, rc, made, newcomm);
}

/* ---- freeing ---- */

/* The communicator of a call that ends it; NULL: *rc is the reported class. */
static struct comm *to_end(const char *call, const MPI_Comm *comm, const char *what, int *rc)
{
    struct comm *c = comm ? comm_of(*comm) : NULL;
    if (!comm)
        *rc = bad_null(NULL, call, "comm");
    else if (!c)
        *rc = bad_comm(call, *comm);
    else if (c->predefined)
        *rc = report(c, call, MPI_ERR_COMM, "argument comm is %s, which cannot be %s", comm_name(c), what);
    return c && !c->predefined ? c : NULL;
}

/* What freeing and disconnecting have in common: the user's part of it, which may fail; and the end. Operations pending keep
 * the object until they are done. */
static int delete_attributes(const char *call, struct comm *c)
{
    int rc = comm_attrs_delete(c);
    return rc ? report_attr(c, call, rc) : MPI_SUCCESS;
}

static void let_go(struct comm *c, MPI_Comm *comm)
{
    dynamic_forget(c);
    bsend_drop(&c->bsend);
    pt_let_go(c);
    comm_unref(c);
    *comm = MPI_COMM_NULL;
}

/* Processes of other jobs may be needed no more: they are told now, as this process may make no other call for long. */
MPI_ALIAS(Comm_free);
int PMPI_Comm_free(MPI_Comm *comm)
{
    const char *call = "MPI_Comm_free";
    int rc;
    struct comm *c = to_end(call, comm, "freed", &rc);
    if (!c) return rc;
    rc = delete_attributes(call, c);
    if (rc) return rc;
    bool others = comm_has_others(c);
    let_go(c, comm);
    if (others) pt_progress_once(NULL);
    return MPI_SUCCESS;
}

/* When it returns, all members have done with the communicator (11.10.4). */
MPI_ALIAS(Comm_disconnect);
int PMPI_Comm_disconnect(MPI_Comm *comm)
{
    const char *call = "MPI_Comm_disconnect";
    struct disconnecting rest;
    int rc;
    struct comm *c = to_end(call, comm, "disconnected", &rc);
    if (!c) return rc;
    pt_finish_all(c);
    bsend_flush(bsend_process()); /* which fails if there is no buffer: then nothing is in it */
    bsend_flush(&c->bsend);
    rc = delete_attributes(call, c);
    int code = comm_disconnect_agree(c, !rc, &rest);
    if (rc || code) return rc ? rc : report_code(c, call, code);
    let_go(c, comm);
    comm_disconnect_wait(&rest);
    return MPI_SUCCESS;
}
