/*
 * schedule.c - users' schedules while they are built: numbers, and from the places of
 * goal.h to slots and offsets. Compiling is in schedule_compile.c, running in schedule_run.c.
 */
#include "coll/schedule.h"

#include "base/err.h"
#include "coll/goal/arith.h"
#include "coll/coll.h"
#include "pt2pt/lane.h"
#include <stdlib.h>
#include <string.h>

/* ---- numbers --------------------------------------------------------------- */

/* The next number that is free, in a circle: one that has become free is not used again soon. Lock held. */
static int find_number(struct schedule_numbers *n, unsigned *number_p)
{
    for (unsigned i = 0; i < SCHEDULE_NUMBERS; i++) {
        unsigned k = (n->next + i) % SCHEDULE_NUMBERS;
        if (k % (SCHEDULE_NUMBERS / 2) == 0 || (n->live[k / 64] >> k % 64 & 1)) continue;
        n->live[k / 64] |= (uint64_t)1 << k % 64;
        n->next = k + 1;
        *number_p = k;
        return 0;
    }
    return err_set(TERN_ERR_UNSUPPORTED, "a communicator has at most %d schedules at once; free some", SCHEDULE_NUMBERS - 2);
}

static int take_number(struct comm *c, unsigned *number_p)
{
    struct coll_comm *cc = coll_comm(c);
    int rc = cc ? 0 : TERN_ERR_NOMEM;
    if (rc) return rc;
    lane_enter(c->lane);
    if (!cc->schedules) cc->schedules = calloc(1, sizeof *cc->schedules);
    if (cc->schedules) rc = find_number(cc->schedules, number_p);
    else rc = err_set(TERN_ERR_NOMEM, "no memory for a schedule");
    lane_leave(c->lane);
    return rc;
}

static void give_number(struct comm *c, unsigned k)
{
    lane_enter(c->lane);
    c->coll->schedules->live[k / 64] &= ~((uint64_t)1 << k % 64);
    lane_leave(c->lane);
}

/* ---- life -------------------------------------------------------------------- */

int schedule_new(struct comm *c, struct schedule **schedule_p)
{
    unsigned number = 0;
    int rc = take_number(c, &number);
    if (rc) return rc;
    struct schedule *s = handle_alloc(HANDLE_SCHEDULE, sizeof *s);
    if (!s) {
        give_number(c, number);
        return err_set(TERN_ERR_NOMEM, "no memory for a schedule");
    }
    s->comm = comm_ref(c);
    s->number = number;
    *schedule_p = s;
    return 0;
}

void schedule_drop(struct schedule *s)
{
    schedule_drop_runs(s);
    goal_build_close(s->build);
    goal_unref(s->prog);
    give_number(s->comm, s->number);
    comm_unref(s->comm);
    free(s->place);
    handle_release(s, sizeof *s);
}

int schedule_create(struct comm *c, int64_t scratch, struct schedule **schedule_p)
{
    struct schedule *s;
    if (scratch < 0 || (uint64_t)scratch > GOAL_LEN_MAX - CACHE_LINE)
        return err_set(TERN_ERR_COUNT, "a scratchpad of %lld bytes cannot be", (long long)scratch);
    int rc = schedule_new(c, &s);
    if (rc) return rc;
    s->build = goal_build_open(c->rank, schedule_ranks(c), 0);
    if (!s->build) {
        schedule_drop(s);
        return err_set(TERN_ERR_NOMEM, "no memory for a schedule");
    }
    s->scratch = scratch;
    goal_scratch(s->build, scratch);
    *schedule_p = s;
    return 0;
}

int schedule_free(struct schedule *s)
{
    lane_enter(s->comm->lane);
    bool busy = s->busy;
    lane_leave(s->comm->lane);
    if (busy) return err_set(TERN_ERR_PENDING, "a run of the schedule is not over; wait for it first");
    schedule_drop(s);
    return 0;
}

struct comm *schedule_comm(const struct schedule *s) { return s->comm; }
const struct goal_head *schedule_block(const struct schedule *s) { return s->prog ? &s->prog->head : NULL; }

/* ---- places -------------------------------------------------------------------- */

int schedule_slot(int place)
{
    if (place == GOAL_SCRATCHPAD) return GOAL_SCRATCH;
    if (place == GOAL_USERSPACE) return GOAL_SLOT_USER;
    return place >= GOAL_BUFFER(0) && place < GOAL_BUFFER(GOAL_BUFFERS_MAX) ? GOAL_SLOT_USER + 1 + place - GOAL_BUFFER(0) : -1;
}

struct schedule_place *schedule_place(struct schedule *s, int slot)
{
    if (slot < s->places) return &s->place[slot];
    struct schedule_place *place = realloc(s->place, ((size_t)slot + 1) * sizeof *place);
    if (!place) {
        err_set(TERN_ERR_NOMEM, "no memory for the buffers of a schedule");
        return NULL;
    }
    memset(place + s->places, 0, (size_t)(slot + 1 - s->places) * sizeof *place);
    s->place = place;
    s->places = slot + 1;
    return &place[slot];
}

static int outside(int64_t off, int64_t bytes, int64_t room)
{
    return err_set(TERN_ERR_ARG, "%lld bytes at offset %lld do not lie in a scratchpad of %lld", (long long)bytes,
                   (long long)off, (long long)room);
}

/* Where one piece lies in the terms of the builder. */
static int locate(struct schedule *s, const GOAL_Piece *p, struct goal_part *part)
{
    int slot = schedule_slot(p->place);
    int64_t off = (int64_t)(intptr_t)p->buf, bytes = p->bytes;
    if (slot < 0) return err_set(TERN_ERR_ARG, "place %d is neither GOAL_USERSPACE, GOAL_SCRATCHPAD nor a GOAL_BUFFER", p->place);
    if (bytes < 0 || (uint64_t)bytes > GOAL_LEN_MAX / 2) return err_set(TERN_ERR_COUNT, "a piece of %lld bytes cannot be", (long long)bytes);
    if (slot == GOAL_SCRATCH) {
        if (off < 0 || off > s->scratch || bytes > s->scratch - off) return outside(off, bytes, s->scratch);
    } else if (slot == GOAL_SLOT_USER) {
        if (!p->buf && bytes) return err_set(TERN_ERR_BUFFER, "a buffer in user space is NULL");
        if (!s->anchor) s->anchor = p->buf;
        off = p->buf ? (int64_t)((uintptr_t)p->buf - (uintptr_t)s->anchor) : 0;
    }
    if (off < -(int64_t)(GOAL_LEN_MAX / 2) || off > (int64_t)(GOAL_LEN_MAX / 2) || (slot > GOAL_SLOT_USER && off < 0))
        return err_set(TERN_ERR_ARG, "offset %lld is out of range", (long long)off);
    *part = (struct goal_part){goal_mem(slot, off), bytes};
    return 0;
}

/* Several: *parts_p is `room` or malloc'ed. */
enum { PARTS_HERE = 8 };

static int locate_all(struct schedule *s, const GOAL_Piece *p, int n, struct goal_part room[PARTS_HERE],
                      struct goal_part **parts_p)
{
    if (n < 0 || n > GOAL_PIECES_MAX) return err_set(TERN_ERR_COUNT, "a list of %d pieces; there may be 0 to %d", n, GOAL_PIECES_MAX);
    if (n && !p) return err_set(TERN_ERR_BUFFER, "the list of pieces is NULL");
    struct goal_part *parts = n <= PARTS_HERE ? room : malloc((size_t)n * sizeof *parts);
    if (!parts) return err_set(TERN_ERR_NOMEM, "no memory for a list of %d pieces", n);
    for (int i = 0; i < n; i++) {
        int rc = locate(s, &p[i], &parts[i]);
        if (!rc) continue;
        if (parts != room) free(parts);
        return rc;
    }
    *parts_p = parts;
    return 0;
}

static int64_t bytes_of(const struct goal_part *part, int n)
{
    int64_t sum = 0;
    for (int i = 0; i < n; i++) sum += part[i].len;
    return sum;
}

/* ---- operations ------------------------------------------------------------------ */

int schedule_building(const struct schedule *s)
{
    return s->build ? 0 : err_set(TERN_ERR_REQUEST, "the schedule is compiled and does not change any more");
}

/* What the builder answered. Arguments are checked before, so it is memory that failed, and the schedule is spoilt. */
static int added(struct schedule *s, goal_id id, goal_id *op_p)
{
    if (id == GOAL_NONE) return goal_build_error(s->build);
    if (op_p) *op_p = id;
    return 0;
}

static TERN_COLD int no_rank(const struct comm *c, int rank)
{
    return err_set(TERN_ERR_RANK, "rank %d; %s has ranks 0 to %d", rank,
                   c->inter ? "the intercommunicator's other group" : "the communicator", comm_peers(c) - 1);
}

static int message(struct schedule *s, unsigned type, const GOAL_Piece *pieces, int n, int peer, int tag, goal_id *op_p)
{
    struct goal_part room[PARTS_HERE], *parts;
    int rc = schedule_building(s);
    if (rc) return rc;
    if (peer == MPI_PROC_NULL) return schedule_join(s, op_p);
    if (peer < 0 || peer >= comm_peers(s->comm)) return no_rank(s->comm, peer);
    if (tag < 0 || tag > GOAL_TAG_MAX) return err_set(TERN_ERR_TAG, "tag %d; tags of schedules are 0 to %d", tag, GOAL_TAG_MAX);
    if ((rc = locate_all(s, pieces, n, room, &parts))) return rc;
    if (s->comm->inter) peer += s->comm->size; /* a program names the own group's ranks first */
    goal_id id = type == GOAL_OP_SEND ? goal_sendv(s->build, peer, tag, parts, n) : goal_recvv(s->build, peer, tag, parts, n);
    if (parts != room) free(parts);
    return added(s, id, op_p);
}

int schedule_send(struct schedule *s, const GOAL_Piece *p, int n, int dest, int tag, goal_id *op_p)
{
    return message(s, GOAL_OP_SEND, p, n, dest, tag, op_p);
}

int schedule_recv(struct schedule *s, const GOAL_Piece *p, int n, int source, int tag, goal_id *op_p)
{
    return message(s, GOAL_OP_RECV, p, n, source, tag, op_p);
}

/* Copies (arith false) and arithmetic on two lists that have been located. */
static int add_local(struct schedule *s, bool arith, unsigned code, const struct goal_part *in, int n_in,
                     const struct goal_part *out, int n_out, goal_id *op_p)
{
    if (bytes_of(in, n_in) != bytes_of(out, n_out))
        return err_set(TERN_ERR_COUNT, "%lld bytes are read and %lld written; they must be as many", (long long)bytes_of(in, n_in),
                       (long long)bytes_of(out, n_out));
    for (int i = 0; arith && i < n_in + n_out; i++)
        if ((i < n_in ? in[i] : out[i - n_in]).len % (int64_t)goal_arith_unit(code))
            return err_set(TERN_ERR_COUNT, "a piece does not hold whole numbers of %s", goal_number_name(code & 0xff));
    goal_id id = arith ? goal_arithv(s->build, code, in, n_in, out, n_out) : goal_copyv(s->build, in, n_in, out, n_out);
    return added(s, id, op_p);
}

static int local(struct schedule *s, bool arith, unsigned code, const GOAL_Piece *in, int n_in, const GOAL_Piece *out,
                 int n_out, goal_id *op_p)
{
    struct goal_part in_room[PARTS_HERE], out_room[PARTS_HERE], *in_parts, *out_parts;
    int rc = schedule_building(s);
    if (!rc) rc = locate_all(s, in, n_in, in_room, &in_parts);
    if (rc) return rc;
    rc = locate_all(s, out, n_out, out_room, &out_parts);
    if (!rc) {
        rc = add_local(s, arith, code, in_parts, n_in, out_parts, n_out, op_p);
        if (out_parts != out_room) free(out_parts);
    }
    if (in_parts != in_room) free(in_parts);
    return rc;
}

int schedule_copy(struct schedule *s, const GOAL_Piece *from, int n_from, const GOAL_Piece *to, int n_to, goal_id *op_p)
{
    return local(s, false, 0, from, n_from, to, n_to, op_p);
}

int schedule_arith(struct schedule *s, unsigned code, const GOAL_Piece *in, int n_in, const GOAL_Piece *inout, int n_inout,
                   goal_id *op_p)
{
    if (!goal_arith_known(code)) return err_set(TERN_ERR_OP, "there is no operator %u on numbers of type %u", code >> 8, code & 0xff);
    return local(s, true, code, in, n_in, inout, n_inout, op_p);
}

int schedule_stamp(struct schedule *s, void *to, int place, goal_id *op_p)
{
    struct goal_part part;
    int rc = schedule_building(s);
    if (!rc) rc = locate(s, &(GOAL_Piece){to, place, sizeof(int64_t)}, &part);
    return rc ? rc : added(s, goal_stamp(s->build, part.at), op_p);
}

int schedule_join(struct schedule *s, goal_id *op_p)
{
    int rc = schedule_building(s);
    return rc ? rc : added(s, goal_join(s->build), op_p);
}

int schedule_edge(struct schedule *s, goal_id op, goal_id before, bool start)
{
    int rc = schedule_building(s), n = rc ? 0 : goal_count(s->build);
    if (rc) return rc;
    if (op < 0 || op >= n || before < 0 || before >= n)
        return err_set(TERN_ERR_ARG, "operation %d is not one of the %d of this schedule", op < 0 || op >= n ? op : before, n);
    (start ? goal_after_start : goal_after)(s->build, op, before);
    return goal_build_error(s->build);
}
