/*
 * onesided.c - entry points: operations on the memory of a window (MPI-5.0 section 12.3).
 */
#include "mpi/dataargs.h"
#include "mpi/winargs.h"
#include "pt2pt/api.h"
#include "rma/direct.h"

static const struct data_names origin_names = {"origin_addr", "origin_count", "origin_datatype"};
static const struct data_names result_names = {"result_addr", "result_count", "result_datatype"};
static const struct data_names target_names = {"target_disp", "target_count", "target_datatype"};

/* The arguments as they were given. */
struct given {
    const char *call;
    enum win_record_kind kind;
    const void *origin;
    void *result;
    int64_t ocount, rcount, tcount;
    MPI_Datatype otype, rtype, ttype;
    MPI_Op op;
    int rank;
    MPI_Aint displacement;
    MPI_Win win;
};

/* One side's count, type and buffer. */
static int check_side(const struct win *w, const struct given *g, const struct data_names *names, const void *buf, int64_t count,
                      MPI_Datatype type, struct type **t)
{
    *t = type_of(type);
    if (likely(data_ok(buf, count, *t))) return MPI_SUCCESS;
    if (data_of_nobody(count, type, g->rank)) {
        *t = type_of(MPI_BYTE);
        return MPI_SUCCESS;
    }
    return bad_data(w, g->call, names, buf, count, type);
}

/* The target's side has no buffer here. */
static int check_target(const struct win *w, const struct given *g, struct type **t)
{
    *t = type_of(g->ttype);
    if (g->rank == MPI_PROC_NULL && data_of_nobody(g->tcount, g->ttype, g->rank)) *t = type_of(MPI_BYTE);
    if (unlikely(!*t || !type_takes(*t, g->tcount))) return bad_amount(w, g->call, &target_names, g->tcount, 1, g->ttype);
    if (unlikely(!target_ok(w, g->rank) && g->rank != MPI_PROC_NULL)) return bad_target(w, g->call, "target_rank", g->rank);
    if (unlikely(g->displacement < 0 && w->flavor != MPI_WIN_FLAVOR_DYNAMIC && g->rank != MPI_PROC_NULL))
        return report(w, g->call, MPI_ERR_DISP, "argument target_disp is %lld, which is negative", (long long)g->displacement);
    return MPI_SUCCESS;
}

/* Both sides have the same amount of data. */
static int check_amounts(const struct win *w, const struct given *g, const char *side, int64_t count, const struct type *t,
                         const struct type *target)
{
    if (likely(count * t->size == g->tcount * target->size) || g->rank == MPI_PROC_NULL) return MPI_SUCCESS;
    return report(w, g->call, MPI_ERR_ARG, "%s has %lld bytes of data, and the target %lld", side, (long long)(count * t->size),
                  (long long)(g->tcount * target->size));
}


/* ---- put, get ---- */

static int move(const struct given *g, MPI_Request *request, bool wants_request)
{
    struct win *w = win_of(g->win);
    struct type *otype, *ttype;
    struct request *r = NULL;
    const void *buf = g->kind == WIN_PUT ? g->origin : g->result;
    if (!w) return bad_win(g->call, g->win);
    if (wants_request && !request) return bad_null(w, g->call, "request");
    int rc = check_target(w, g, &ttype);
    if (!rc) rc = check_side(w, g, &origin_names, buf, g->ocount, g->otype, &otype);
    if (!rc) rc = check_amounts(w, g, "the origin", g->ocount, otype, ttype);
    if (rc) return rc;
    if (!wants_request && (g->kind == WIN_PUT ? direct_put(w, g->rank, g->displacement, g->tcount, ttype, g->origin, otype)
                                              : direct_get(w, g->rank, g->displacement, g->tcount, ttype, g->result, otype)))
        return MPI_SUCCESS;
    struct win_op a = {.call = g->call, .kind = g->kind, .origin = g->origin, .result = g->result, .ocount = g->ocount,
                       .rcount = g->ocount, .tcount = g->tcount, .rank = g->rank, .displacement = g->displacement, .otype = otype, .rtype = otype, .ttype = ttype};
    if (request) *request = MPI_REQUEST_NULL;
    rc = win_access(w, &a, request ? &r : NULL);
    if (!rc && request) *request = (MPI_Request)r;
    return report_if(w, g->call, rc);
}

static int put(const char *call, const void *origin, int64_t ocount, MPI_Datatype otype, int rank, MPI_Aint disp, int64_t tcount,
               MPI_Datatype ttype, MPI_Win win, MPI_Request *request, bool wants_request)
{
    struct given g = {.call = call, .kind = WIN_PUT, .origin = origin, .ocount = ocount, .tcount = tcount, .otype = otype, .ttype = ttype,
                      .rank = rank, .displacement = disp, .win = win};
    return move(&g, request, wants_request);
}

static int get(const char *call, void *origin, int64_t ocount, MPI_Datatype otype, int rank, MPI_Aint disp, int64_t tcount,
               MPI_Datatype ttype, MPI_Win win, MPI_Request *request, bool wants_request)
{
    struct given g = {.call = call, .kind = WIN_GET, .result = origin, .ocount = ocount, .tcount = tcount, .otype = otype, .ttype = ttype,
                      .rank = rank, .displacement = disp, .win = win};
    return move(&g, request, wants_request);
}

MPI_ALIAS(Put);
int PMPI_Put(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
             int target_count, MPI_Datatype target_datatype, MPI_Win win)
{
    return put("MPI_Put", origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win, NULL, false);
}

MPI_ALIAS(Put_c);
int PMPI_Put_c(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
               MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win)
{
    return put("MPI_Put_c", origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win, NULL, false);
}

MPI_ALIAS(Rput);
int PMPI_Rput(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
              int target_count, MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request)
{
    return put("MPI_Rput", origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win, request, true);
}

MPI_ALIAS(Rput_c);
int PMPI_Rput_c(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request)
{
    return put("MPI_Rput_c", origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win, request, true);
}

MPI_ALIAS(Get);
int PMPI_Get(void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp, int target_count,
             MPI_Datatype target_datatype, MPI_Win win)
{
    return get("MPI_Get", origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win, NULL, false);
}

MPI_ALIAS(Get_c);
int PMPI_Get_c(void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
               MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win)
{
    return get("MPI_Get_c", origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win, NULL, false);
}

MPI_ALIAS(Rget);
int PMPI_Rget(void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp, int target_count,
              MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request)
{
    return get("MPI_Rget", origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win, request, true);
}

MPI_ALIAS(Rget_c);
int PMPI_Rget_c(void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request)
{
    return get("MPI_Rget_c", origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win, request, true);
}

/* ---- accumulates ---- */

static int check_operator(const struct win *w, const struct given *g, struct win_op *a)
{
    a->op = op_of(g->op);
    if (!a->op) return bad_op(w, g->call, g->op, NULL);
    if (a->op->index == OP_USER) return report(w, g->call, MPI_ERR_OP, "argument op is an operator of the user's, which is not for windows");
    if (a->op->index == OP_NO_OP && g->kind == WIN_ACCUMULATE)
        return report(w, g->call, MPI_ERR_OP, "argument op is MPI_NO_OP, which is for calls that fetch");
    return MPI_SUCCESS;
}

static int check_same_elements(const struct win *w, const struct given *g, const char *side, const struct type *t, const struct win_op *a)
{
    if (!t || t->basic == a->basic) return MPI_SUCCESS;
    return report(w, g->call, MPI_ERR_TYPE, "the datatypes of %s and of the target have elements of different predefined types", side);
}

/* Elements of one predefined type, for which the operator is there (12.3.4). */
static int check_elements(const struct win *w, const struct given *g, struct win_op *a)
{
    if (g->rank == MPI_PROC_NULL || !g->tcount || !a->ttype->size) return MPI_SUCCESS;
    a->basic = a->ttype->basic;
    if (!a->basic)
        return report(w, g->call, MPI_ERR_TYPE, "argument target_datatype has elements of several predefined types, or none");
    if (!op_valid(a->op, a->basic)) return bad_op(w, g->call, g->op, a->basic);
    int rc = check_same_elements(w, g, "the origin", a->otype, a);
    return rc ? rc : check_same_elements(w, g, "the result", a->rtype, a);
}

static int check_data_side(const struct win *w, const struct given *g, struct win_op *a)
{
    if (a->op->index == OP_NO_OP) return MPI_SUCCESS; /* nothing of the origin is looked at (12.3.4.3) */
    int rc = check_side(w, g, &origin_names, g->origin, g->ocount, g->otype, &a->otype);
    return rc ? rc : check_amounts(w, g, "the origin", g->ocount, a->otype, a->ttype);
}

static int check_result_side(const struct win *w, const struct given *g, struct win_op *a)
{
    if (g->kind == WIN_ACCUMULATE) return MPI_SUCCESS;
    int rc = check_side(w, g, &result_names, g->result, g->rcount, g->rtype, &a->rtype);
    return rc ? rc : check_amounts(w, g, "the result", g->rcount, a->rtype, a->ttype);
}

/* Elements of one predefined type on all sides, in mapped memory. */
static bool accumulate_at_once(const struct win *w, const struct win_op *a)
{
    const struct type *t = a->ttype;
    if ((a->otype && a->otype != t) || (a->rtype && a->rtype != t)) return false;
    bool alone;
    char *at = direct_enter(w, a->rank, a->displacement, a->tcount, t, &alone);
    if (!at) return false;
    (alone ? apply_alone : apply_atomic)(a->op, t, at, a->otype ? a->origin : NULL, a->rtype ? a->result : NULL, a->tcount);
    direct_leave(w, a->rank, alone);
    return true;
}

static int accumulate(const struct given *g, MPI_Request *request, bool wants_request)
{
    struct win *w = win_of(g->win);
    struct win_op a = {.call = g->call, .kind = g->kind, .origin = g->origin, .result = g->result, .ocount = g->ocount,
                       .rcount = g->rcount, .tcount = g->tcount, .rank = g->rank, .displacement = g->displacement};
    struct request *r = NULL;
    if (!w) return bad_win(g->call, g->win);
    if (wants_request && !request) return bad_null(w, g->call, "request");
    int rc = check_target(w, g, &a.ttype);
    if (!rc) rc = check_operator(w, g, &a);
    if (!rc) rc = check_data_side(w, g, &a);
    if (!rc) rc = check_result_side(w, g, &a);
    if (!rc) rc = check_elements(w, g, &a);
    if (rc) return rc;
    if (!wants_request && accumulate_at_once(w, &a)) return MPI_SUCCESS;
    if (request) *request = MPI_REQUEST_NULL;
    rc = win_access(w, &a, request ? &r : NULL);
    if (!rc && request) *request = (MPI_Request)r;
    return report_if(w, g->call, rc);
}

static int add_to(const char *call, const void *origin, int64_t ocount, MPI_Datatype otype, int rank, MPI_Aint disp, int64_t tcount,
                  MPI_Datatype ttype, MPI_Op op, MPI_Win win, MPI_Request *request, bool wants_request)
{
    struct given g = {.call = call, .kind = WIN_ACCUMULATE, .origin = origin, .ocount = ocount, .tcount = tcount, .otype = otype,
                      .ttype = ttype, .op = op, .rank = rank, .displacement = disp, .win = win};
    return accumulate(&g, request, wants_request);
}

MPI_ALIAS(Accumulate);
int PMPI_Accumulate(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                    int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win)
{
    return add_to("MPI_Accumulate", origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, op,
                  win, NULL, false);
}

MPI_ALIAS(Accumulate_c);
int PMPI_Accumulate_c(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                      MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win)
{
    return add_to("MPI_Accumulate_c", origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, op,
                  win, NULL, false);
}

MPI_ALIAS(Raccumulate);
int PMPI_Raccumulate(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                     int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request *request)
{
    return add_to("MPI_Raccumulate", origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, op,
                  win, request, true);
}

MPI_ALIAS(Raccumulate_c);
int PMPI_Raccumulate_c(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
                       MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win,
                       MPI_Request *request)
{
    return add_to("MPI_Raccumulate_c", origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, op,
                  win, request, true);
}

static int fetch(const char *call, const void *origin, int64_t ocount, MPI_Datatype otype, void *result, int64_t rcount,
                 MPI_Datatype rtype, int rank, MPI_Aint disp, int64_t tcount, MPI_Datatype ttype, MPI_Op op, MPI_Win win,
                 MPI_Request *request, bool wants_request)
{
    struct given g = {.call = call, .kind = WIN_GET_ACCUMULATE, .origin = origin, .result = result, .ocount = ocount, .rcount = rcount,
                      .tcount = tcount, .otype = otype, .rtype = rtype, .ttype = ttype, .op = op, .rank = rank, .displacement = disp,
                      .win = win};
    return accumulate(&g, request, wants_request);
}

MPI_ALIAS(Get_accumulate);
int PMPI_Get_accumulate(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, void *result_addr, int result_count,
                        MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp, int target_count,
                        MPI_Datatype target_datatype, MPI_Op op, MPI_Win win)
{
    return fetch("MPI_Get_accumulate", origin_addr, origin_count, origin_datatype, result_addr, result_count, result_datatype, target_rank,
                 target_disp, target_count, target_datatype, op, win, NULL, false);
}

MPI_ALIAS(Get_accumulate_c);
int PMPI_Get_accumulate_c(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, void *result_addr,
                          MPI_Count result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp,
                          MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win)
{
    return fetch("MPI_Get_accumulate_c", origin_addr, origin_count, origin_datatype, result_addr, result_count, result_datatype, target_rank,
                 target_disp, target_count, target_datatype, op, win, NULL, false);
}

MPI_ALIAS(Rget_accumulate);
int PMPI_Rget_accumulate(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, void *result_addr, int result_count,
                         MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp, int target_count,
                         MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request *request)
{
    return fetch("MPI_Rget_accumulate", origin_addr, origin_count, origin_datatype, result_addr, result_count, result_datatype, target_rank,
                 target_disp, target_count, target_datatype, op, win, request, true);
}

MPI_ALIAS(Rget_accumulate_c);
int PMPI_Rget_accumulate_c(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, void *result_addr,
                           MPI_Count result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp,
                           MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request *request)
{
    return fetch("MPI_Rget_accumulate_c", origin_addr, origin_count, origin_datatype, result_addr, result_count, result_datatype, target_rank,
                 target_disp, target_count, target_datatype, op, win, request, true);
}

MPI_ALIAS(Fetch_and_op);
int PMPI_Fetch_and_op(const void *origin_addr, void *result_addr, MPI_Datatype datatype, int target_rank, MPI_Aint target_disp, MPI_Op op,
                      MPI_Win win)
{
    const struct type *t = type_of(datatype);
    if (unlikely(t && !t->predefined && target_rank != MPI_PROC_NULL && win_of(win)))
        return report(win_of(win), "MPI_Fetch_and_op", MPI_ERR_TYPE, "argument datatype is not a predefined one");
    return fetch("MPI_Fetch_and_op", origin_addr, 1, datatype, result_addr, 1, datatype, target_rank, target_disp, 1, datatype, op, win, NULL,
                 false);
}

static int check_swap(const struct win *w, const struct given *g, const struct win_op *a)
{
    const struct type *t = a->ttype;
    if (!buffer_ok(a->origin, 1, t)) return bad_buffer(w, g->call, a->origin, "origin_addr");
    if (!buffer_ok(a->compare, 1, t)) return bad_buffer(w, g->call, a->compare, "compare_addr");
    if (!buffer_ok(a->result, 1, t)) return bad_buffer(w, g->call, a->result, "result_addr");
    if (apply_can_compare(a->ttype)) return MPI_SUCCESS;
    return report(w, g->call, MPI_ERR_TYPE, "argument datatype is none of integers, logicals or bytes");
}

MPI_ALIAS(Compare_and_swap);
int PMPI_Compare_and_swap(const void *origin_addr, const void *compare_addr, void *result_addr, MPI_Datatype datatype, int target_rank,
                          MPI_Aint target_disp, MPI_Win win)
{
    struct win *w = win_of(win);
    struct given g = {.call = "MPI_Compare_and_swap", .tcount = 1, .ttype = datatype, .rank = target_rank, .displacement = target_disp};
    struct win_op a = {.call = g.call, .kind = WIN_COMPARE_AND_SWAP, .origin = origin_addr, .compare = compare_addr,
                       .result = result_addr, .ocount = 1, .rcount = 1, .tcount = 1, .rank = target_rank, .displacement = target_disp};
    if (!w) return bad_win(g.call, win);
    int rc = check_target(w, &g, &a.ttype);
    if (!rc) rc = check_swap(w, &g, &a);
    if (rc) return rc;
    bool alone;
    char *at = direct_enter(w, target_rank, target_disp, 1, a.ttype, &alone);
    if (at) {
        (alone ? swap_alone : swap_atomic)(a.ttype, at, compare_addr, origin_addr, result_addr);
        direct_leave(w, target_rank, alone);
        return MPI_SUCCESS;
    }
    a.otype = a.rtype = a.ttype;
    a.basic = a.ttype;
    return report_if(w, g.call, win_access(w, &a, NULL));
}
