/*
 * goal.c - entry points of the public goal.h: schedules of the user's. Arithmetic is in
 * goal_arith.c.
 */
#include "mpi/goal.h"

#include <stdlib.h>
#include <string.h>

int bad_schedule(const char *call, GOAL_Schedule h)
{
    check_running(call);
    return report(NULL, call, MPI_ERR_ARG, h ? "argument schedule (%p) is not a schedule" : "argument schedule is GOAL_SCHEDULE_NULL",
                  (void *)h);
}

/* ---- life ---- */

static struct comm *comm_given(const char *call, MPI_Comm comm, const void *out, int *rc)
{
    struct comm *c = comm_of(comm);
    if (!c) *rc = bad_comm(call, comm);
    else if (!out) *rc = bad_null(c, call, "schedule");
    return c && out ? c : NULL;
}

/* Hands out a schedule that was made, or reports. */
static int made(struct comm *c, const char *call, int code, struct schedule *const *s, GOAL_Schedule *out)
{
    if (code) return report_code(c, call, code);
    *out = *s;
    return MPI_SUCCESS;
}

GOAL_EXPORT int GOAL_Create(MPI_Comm comm, MPI_Count scratch_bytes, GOAL_Schedule *schedule)
{
    struct schedule *s = NULL;
    int rc;
    struct comm *c = comm_given("GOAL_Create", comm, schedule, &rc);
    return c ? made(c, "GOAL_Create", schedule_create(c, scratch_bytes, &s), &s, schedule) : rc;
}

GOAL_EXPORT int GOAL_Free(GOAL_Schedule *schedule)
{
    int rc;
    if (!schedule) return bad_null(NULL, "GOAL_Free", "schedule");
    struct schedule *s = schedule_given("GOAL_Free", *schedule, &rc);
    if (!s) return rc;
    if ((rc = schedule_free(s))) return schedule_report(s, "GOAL_Free", rc);
    *schedule = GOAL_SCHEDULE_NULL;
    return MPI_SUCCESS;
}

/* ---- operations ---- */

GOAL_EXPORT int GOAL_Sendv(GOAL_Schedule schedule, int n, const GOAL_Piece pieces[], int dest, int tag, GOAL_Op *op)
{
    int rc;
    struct schedule *s = schedule_given("GOAL_Sendv", schedule, &rc);
    return s ? schedule_report(s, "GOAL_Sendv", schedule_send(s, pieces, n, dest, tag, op)) : rc;
}

GOAL_EXPORT int GOAL_Recvv(GOAL_Schedule schedule, int n, const GOAL_Piece pieces[], int source, int tag, GOAL_Op *op)
{
    int rc;
    struct schedule *s = schedule_given("GOAL_Recvv", schedule, &rc);
    return s ? schedule_report(s, "GOAL_Recvv", schedule_recv(s, pieces, n, source, tag, op)) : rc;
}

GOAL_EXPORT int GOAL_Send(GOAL_Schedule schedule, const void *buf, int place, MPI_Count bytes, int dest, int tag, GOAL_Op *op)
{
    int rc;
    const GOAL_Piece piece = {(void *)(uintptr_t)buf, place, bytes};
    struct schedule *s = schedule_given("GOAL_Send", schedule, &rc);
    return s ? schedule_report(s, "GOAL_Send", schedule_send(s, &piece, 1, dest, tag, op)) : rc;
}

GOAL_EXPORT int GOAL_Recv(GOAL_Schedule schedule, void *buf, int place, MPI_Count bytes, int source, int tag, GOAL_Op *op)
{
    int rc;
    const GOAL_Piece piece = {buf, place, bytes};
    struct schedule *s = schedule_given("GOAL_Recv", schedule, &rc);
    return s ? schedule_report(s, "GOAL_Recv", schedule_recv(s, &piece, 1, source, tag, op)) : rc;
}

GOAL_EXPORT int GOAL_Copy(GOAL_Schedule schedule, const void *from, int from_place, void *to, int to_place, MPI_Count bytes,
                          GOAL_Op *op)
{
    int rc;
    const GOAL_Piece in = {(void *)(uintptr_t)from, from_place, bytes}, out = {to, to_place, bytes};
    struct schedule *s = schedule_given("GOAL_Copy", schedule, &rc);
    return s ? schedule_report(s, "GOAL_Copy", schedule_copy(s, &in, 1, &out, 1, op)) : rc;
}

GOAL_EXPORT int GOAL_Copyv(GOAL_Schedule schedule, int n_from, const GOAL_Piece from[], int n_to, const GOAL_Piece to[],
                           GOAL_Op *op)
{
    int rc;
    struct schedule *s = schedule_given("GOAL_Copyv", schedule, &rc);
    return s ? schedule_report(s, "GOAL_Copyv", schedule_copy(s, from, n_from, to, n_to, op)) : rc;
}

GOAL_EXPORT int GOAL_Timestamp(GOAL_Schedule schedule, void *to, int place, GOAL_Op *op)
{
    int rc;
    struct schedule *s = schedule_given("GOAL_Timestamp", schedule, &rc);
    return s ? schedule_report(s, "GOAL_Timestamp", schedule_stamp(s, to, place, op)) : rc;
}

GOAL_EXPORT int GOAL_Join(GOAL_Schedule schedule, GOAL_Op *op)
{
    int rc;
    struct schedule *s = schedule_given("GOAL_Join", schedule, &rc);
    return s ? schedule_report(s, "GOAL_Join", schedule_join(s, op)) : rc;
}

GOAL_EXPORT int GOAL_Requires(GOAL_Schedule schedule, GOAL_Op op, GOAL_Op before)
{
    int rc;
    struct schedule *s = schedule_given("GOAL_Requires", schedule, &rc);
    return s ? schedule_report(s, "GOAL_Requires", schedule_edge(s, op, before, false)) : rc;
}

GOAL_EXPORT int GOAL_Requires_start(GOAL_Schedule schedule, GOAL_Op op, GOAL_Op before)
{
    int rc;
    struct schedule *s = schedule_given("GOAL_Requires_start", schedule, &rc);
    return s ? schedule_report(s, "GOAL_Requires_start", schedule_edge(s, op, before, true)) : rc;
}

GOAL_EXPORT int GOAL_Compile(GOAL_Schedule schedule)
{
    int rc;
    struct schedule *s = schedule_given("GOAL_Compile", schedule, &rc);
    return s ? schedule_report(s, "GOAL_Compile", schedule_compile(s)) : rc;
}

/* ---- running ---- */

GOAL_EXPORT int GOAL_Bind(GOAL_Schedule schedule, int place, void *base, MPI_Count bytes)
{
    int rc;
    struct schedule *s = schedule_given("GOAL_Bind", schedule, &rc);
    return s ? schedule_report(s, "GOAL_Bind", schedule_bind(s, place, base, bytes)) : rc;
}

GOAL_EXPORT int GOAL_Run(GOAL_Schedule schedule, GOAL_Request *request)
{
    int rc;
    struct schedule *s = schedule_given("GOAL_Run", schedule, &rc);
    if (unlikely(!s)) return rc;
    if (unlikely(!request)) return bad_null(schedule_comm(s), "GOAL_Run", "request");
    return schedule_report(s, "GOAL_Run", schedule_run(s, request));
}

/* Is that the request of a run, or of none? *comm_p is the communicator of a run: only asked while it is active, since after
 * that the schedule may be gone. */
static bool request_ok(const GOAL_Request *r, struct comm **comm_p)
{
    int state = __atomic_load_n(&r->state, __ATOMIC_ACQUIRE); /* pairs with the release of who ends the run */
    *comm_p = NULL;
    if (state == GOAL_INACTIVE || (state == GOAL_FINISHED && !r->error)) return true;
    if ((state != GOAL_RUNNING && state != GOAL_FINISHED) || !r->run) return false;
    *comm_p = schedule_request_comm(r);
    return true;
}

static TERN_COLD int bad_run(const char *call)
{
    return report(NULL, call, MPI_ERR_REQUEST, "argument request is not of a run; one that none has used is GOAL_REQUEST_INIT");
}

GOAL_EXPORT int GOAL_Test(GOAL_Request *request, int *flag)
{
    bool over;
    if (unlikely(!request || !flag)) return bad_null(NULL, "GOAL_Test", request ? "flag" : "request");
    struct comm *c;
    if (unlikely(!request_ok(request, &c))) return bad_run("GOAL_Test");
    int rc = schedule_test(request, &over);
    *flag = over;
    return report_if(c, "GOAL_Test", rc);
}

GOAL_EXPORT int GOAL_Wait(GOAL_Request *request)
{
    if (unlikely(!request)) return bad_null(NULL, "GOAL_Wait", "request");
    struct comm *c;
    if (unlikely(!request_ok(request, &c))) return bad_run("GOAL_Wait");
    return report_if(c, "GOAL_Wait", schedule_wait(request));
}

/* ---- as data ---- */

/* The block of a compiled schedule; NULL: *rc is the reported class. */
static const struct goal_head *block_given(const char *call, GOAL_Schedule schedule, const MPI_Count *bytes, int *rc)
{
    struct schedule *s = schedule_given(call, schedule, rc);
    const struct goal_head *h = s ? schedule_block(s) : NULL;
    if (s && !bytes) *rc = bad_null(schedule_comm(s), call, "bytes");
    else if (s && !h) *rc = report(schedule_comm(s), call, MPI_ERR_REQUEST, "the schedule is not compiled");
    return bytes ? h : NULL;
}

/* Copies what there is room for: all or nothing. room 0 asks for the size. */
static int hand_out(GOAL_Schedule schedule, const char *call, const void *from, MPI_Count n, void *to, MPI_Count room,
                    MPI_Count *bytes)
{
    *bytes = n;
    if (room <= 0) return MPI_SUCCESS;
    if (room < n)
        return report(schedule_comm(schedule_of(schedule)), call, MPI_ERR_TRUNCATE, "argument room is %lld, and it takes %lld bytes",
                      (long long)room, (long long)n);
    memcpy(to, from, (size_t)n);
    return MPI_SUCCESS;
}

GOAL_EXPORT int GOAL_Export(GOAL_Schedule schedule, void *block, MPI_Count room, MPI_Count *bytes)
{
    int rc;
    const struct goal_head *h = block_given("GOAL_Export", schedule, bytes, &rc);
    return h ? hand_out(schedule, "GOAL_Export", h, h->bytes, block, room, bytes) : rc;
}

GOAL_EXPORT int GOAL_Print(GOAL_Schedule schedule, char *text, MPI_Count room, MPI_Count *bytes)
{
    int rc;
    const struct goal_head *h = block_given("GOAL_Print", schedule, bytes, &rc);
    if (!h) return rc;
    char *t = goal_print(h);
    if (!t) return report(schedule_comm(schedule_of(schedule)), "GOAL_Print", MPI_ERR_NO_MEM, "no memory for the text of a schedule");
    rc = hand_out(schedule, "GOAL_Print", t, (MPI_Count)strlen(t) + 1, text, room, bytes);
    free(t);
    return rc;
}

GOAL_EXPORT int GOAL_Import(MPI_Comm comm, const void *block, MPI_Count bytes, GOAL_Schedule *schedule)
{
    struct schedule *s = NULL;
    int rc;
    struct comm *c = comm_given("GOAL_Import", comm, schedule, &rc);
    if (!c) return rc;
    if (!block) return bad_null(c, "GOAL_Import", "block");
    if (bytes < 0) return bad_count_named(c, "GOAL_Import", bytes, "bytes");
    return made(c, "GOAL_Import", schedule_import(c, block, (size_t)bytes, &s), &s, schedule);
}

GOAL_EXPORT int GOAL_Parse(MPI_Comm comm, const char *text, GOAL_Schedule *schedule)
{
    struct schedule *s = NULL;
    int rc;
    struct comm *c = comm_given("GOAL_Parse", comm, schedule, &rc);
    if (!c) return rc;
    if (!text) return bad_null(c, "GOAL_Parse", "text");
    return made(c, "GOAL_Parse", schedule_parse(c, text, &s), &s, schedule);
}
