/*
 * random.c - random programs of one-sided operations against a model: `random [programs]`.
 *
 * An actor is a thread of a process. It has a part of the memory of each target that only it changes, and keeps a copy of all its
 * parts: the model, to which it does what it asks of the targets. What it fetches must be what the model has; at the end of a
 * program each target's memory must be the models of all. Beside the parts there are numbers to which all add at the same time,
 * and a word that they swap.
 *
 * A program has some windows, each of some kind, with numbers of some type, and goes through some epochs, of some kind for each
 * window, at the same time, with operations in them: with any operator, with derived types on both sides, as requests, by the calls
 * for large counts. Processes may have no memory in a window, and units of their own.
 *
 * TERN_TEST_SEED says which programs, TERN_TEST_THREADS how many threads a process has (1: MPI_Init; more: they all operate in the
 * epochs of MPI_Win_lock_all).
 */
#include "windows.h"

#include <pthread.h>
#include <stddef.h>

enum { SMALL_PART = 512, LARGE_PART = 150000, SUMS = 4, PENDING = 16, RANKS = 8, THREADS = 8, FIELDS = 3, BLOCKS = 12 };

static int programs_done, threads = 1;

/* Threads may check at the same time. */
static pthread_mutex_t checking = PTHREAD_MUTEX_INITIALIZER;
static void call_ok(int rc, const char *call)
{
    pthread_mutex_lock(&checking);
    CHECK(!rc, "program %d: %s returned code %d", programs_done, call, rc);
    pthread_mutex_unlock(&checking);
}
#define CALL(call) call_ok((call), #call)

/* ---- types and operators ---- */

enum class { WHOLE = 1, REAL = 2, PAIR = 4, ANY = WHOLE | REAL | PAIR };

struct pair {
    double value;
    int at;
};
static const struct kind_of_number {
    MPI_Datatype type;
    int bytes;
    enum class class;
} numbers[] = {
    {MPI_INT8_T, 1, WHOLE},          {MPI_UINT16_T, 2, WHOLE},       {MPI_INT32_T, 4, WHOLE},    {MPI_INT64_T, 8, WHOLE}, {MPI_FLOAT, 4, REAL},
    {MPI_DOUBLE, 8, REAL},           {MPI_LONG_DOUBLE, sizeof(long double), REAL}, {MPI_DOUBLE_INT, sizeof(struct pair), PAIR},
};
static const struct {
    MPI_Op op;
    int classes;
} operators[] = {
    {MPI_SUM, WHOLE | REAL}, {MPI_MAX, WHOLE | REAL}, {MPI_MIN, WHOLE | REAL}, {MPI_BAND, WHOLE},   {MPI_BOR, WHOLE},
    {MPI_BXOR, WHOLE},       {MPI_MAXLOC, PAIR},      {MPI_MINLOC, PAIR},      {MPI_REPLACE, ANY}, {MPI_NO_OP, ANY},
};
enum { NUMBERS = sizeof numbers / sizeof numbers[0], OPERATORS = sizeof operators / sizeof operators[0] };

static void set_number(const struct kind_of_number *k, void *at, int value)
{
    long double large = value;
    float f = (float)value;
    double d = value;
    memset(at, 0, (size_t)k->bytes); /* also what is in no number: the rest of a pair, or of a long double */
    if (k->class == PAIR) memcpy(at, &d, sizeof d), memcpy((char *)at + offsetof(struct pair, at), &value, sizeof value);
    else if (k->class == WHOLE) memcpy(at, &(int64_t){value & 0x7f}, (size_t)k->bytes);
    else if (k->bytes == 4) memcpy(at, &f, sizeof f);
    else if (k->bytes == 8) memcpy(at, &d, sizeof d);
    else memcpy(at, &large, 10);
}

/* ---- a program ---- */

/* A window of the program. The memory of each target is a part for each actor, `skew` bytes behind the start, and the common
 * numbers. */
static struct field {
    struct window w;
    const struct kind_of_number *number;
    int part, skew;
    int first_piece;      /* of a dynamic window: bytes of the first of two pieces, 0: there is one */
    int unit[RANKS];
    bool has[RANKS];      /* memory */
    char *model[THREADS]; /* a part for each target */
    int64_t sums[THREADS][RANKS][SUMS]; /* what this process has added */
} field[FIELDS];
static int fields;

static int actors(void) { return check_size * threads; }
static MPI_Aint common_place(const struct field *f) { return (16 + (MPI_Aint)actors() * f->part) & ~(MPI_Aint)15; }
static MPI_Aint bytes_of(const struct field *f) { return common_place(f) + (SUMS + 1) * 8; }

static MPI_Aint place_of(const struct field *f, int target, MPI_Aint byte)
{
    return f->w.start ? f->w.start[target] + byte : byte / f->unit[target];
}

/* An operation: n numbers, in blocks, in the target and here. Each block begins `stride` behind the one before; or, if there are
 * places, there. */
struct shape {
    int n, block, stride;
    int blocks, at[BLOCKS]; /* 0: by stride */
};

static int place_in(const struct shape *s, int i)
{
    return (s->blocks ? s->at[i / s->block] : i / s->block * s->stride) + i % s->block;
}

static int span_of(const struct shape *s)
{
    int most = 0;
    for (int i = s->block - 1; i < s->n; i += s->block)
        if (place_in(s, i) >= most) most = place_in(s, i) + 1;
    return most;
}

/* What was asked, and what should come of it. */
struct asked {
    const struct field *f;
    int target;
    struct shape shape; /* n is 0: nothing is fetched */
    int bytes;          /* of a number */
    char *data, *got, *expected;
    MPI_Request request;
};

struct actor {
    uint64_t state; /* of random numbers of its own */
    int thread, index;
    int pending;
    struct asked asked[PENDING];
};
static struct actor actor[THREADS];
static uint64_t common; /* of random numbers that are the same in all processes */

static unsigned below(struct actor *a, unsigned n) { return (unsigned)(check_random(&a->state) % n); }
static unsigned all_below(unsigned n) { return (unsigned)(check_random(&common) % n); }
static char *model_of(const struct actor *a, const struct field *f, int target) { return f->model[a->thread] + target * f->part; }

/* ---- shapes ---- */

/* Blocks anywhere, in any order, that do not overlap. */
static void scatter(struct actor *a, struct shape *s, int room)
{
    int each = room / s->blocks;
    for (int i = 0; i < s->blocks; i++) s->at[i] = i * each + (int)below(a, (unsigned)(each - s->block + 1));
    for (int i = s->blocks - 1; i > 0; i--) {
        int k = (int)below(a, (unsigned)i + 1), at = s->at[i];
        s->at[i] = s->at[k];
        s->at[k] = at;
    }
}

static struct shape some_shape(struct actor *a, int n, int room)
{
    struct shape s = {.n = n, .block = n, .stride = n};
    int block = 1 + (int)below(a, below(a, 2) ? (unsigned)n : n < 4 ? (unsigned)n : 4), blocks = n / block;
    if (below(a, 2) || n % block || blocks < 2) return s;
    int most = (room - block) / (blocks - 1);
    s.block = block;
    s.stride = block + (most > block ? (int)below(a, (unsigned)(most - block < 50 ? most - block + 1 : 50)) : 0);
    if (blocks > BLOCKS || below(a, 2)) return s;
    s.blocks = blocks;
    scatter(a, &s, room);
    return s;
}

/* The type of a shape, and how many of it. */
static int type_for(const struct shape *s, MPI_Datatype basic, MPI_Datatype *type)
{
    *type = basic;
    if (s->block == s->n) return s->n;
    if (s->blocks) MPI_Type_create_indexed_block(s->blocks, s->block, s->at, basic, type);
    else MPI_Type_vector(s->n / s->block, s->block, s->stride, basic, type);
    MPI_Type_commit(type);
    return 1;
}

/* ---- what was fetched ---- */

static void compare_one(struct asked *k)
{
    int bad = 0;
    for (int i = 0; i < k->shape.n; i++) {
        size_t at = (size_t)(place_in(&k->shape, i) * k->bytes);
        bad += memcmp(k->got + at, k->expected + at, (size_t)k->bytes) != 0;
    }
    pthread_mutex_lock(&checking);
    CHECK(!bad, "program %d, %s: %d of %d numbers that are fetched are not what the model has", programs_done, kind_name[k->f->w.kind], bad,
          k->shape.n);
    pthread_mutex_unlock(&checking);
}

static void end_asked(struct actor *a, int i)
{
    struct asked *k = &a->asked[i];
    if (k->request != MPI_REQUEST_NULL) CALL(MPI_Wait(&k->request, MPI_STATUS_IGNORE));
    compare_one(k);
    free(k->data);
    free(k->got);
    free(k->expected);
    *k = a->asked[--a->pending];
}

/* What was asked of a target, or of all (-1), is complete here. */
static void compare_fetched(struct actor *a, const struct field *f, int target)
{
    for (int i = a->pending; i-- > 0;)
        if (a->asked[i].f == f && (target < 0 || a->asked[i].target == target)) end_asked(a, i);
}

static void end_a_request(struct actor *a)
{
    for (int i = a->pending; i-- > 0;) {
        int done = 1;
        if (a->asked[i].request == MPI_REQUEST_NULL) continue;
        if (below(a, 2)) CALL(MPI_Test(&a->asked[i].request, &done, MPI_STATUS_IGNORE));
        if (done) end_asked(a, i);
        return;
    }
}

/* ---- operations ---- */

/* The call of an operation: plain, for large counts, or with a request. */
struct call {
    const void *origin;
    void *result;
    int ocount, rcount, tcount, target;
    MPI_Datatype otype, rtype, ttype;
    MPI_Aint disp;
    MPI_Op op;
    MPI_Win win;
};

static void do_put(const struct call *c, int way, MPI_Request *r)
{
    switch (way) {
    case 0: CALL(MPI_Put(c->origin, c->ocount, c->otype, c->target, c->disp, c->tcount, c->ttype, c->win)); break;
    case 1: CALL(MPI_Put_c(c->origin, c->ocount, c->otype, c->target, c->disp, c->tcount, c->ttype, c->win)); break;
    case 2: CALL(MPI_Rput(c->origin, c->ocount, c->otype, c->target, c->disp, c->tcount, c->ttype, c->win, r)); break;
    default: CALL(MPI_Rput_c(c->origin, c->ocount, c->otype, c->target, c->disp, c->tcount, c->ttype, c->win, r));
    }
}

static void do_get(const struct call *c, int way, MPI_Request *r)
{
    switch (way) {
    case 0: CALL(MPI_Get(c->result, c->rcount, c->rtype, c->target, c->disp, c->tcount, c->ttype, c->win)); break;
    case 1: CALL(MPI_Get_c(c->result, c->rcount, c->rtype, c->target, c->disp, c->tcount, c->ttype, c->win)); break;
    case 2: CALL(MPI_Rget(c->result, c->rcount, c->rtype, c->target, c->disp, c->tcount, c->ttype, c->win, r)); break;
    default: CALL(MPI_Rget_c(c->result, c->rcount, c->rtype, c->target, c->disp, c->tcount, c->ttype, c->win, r));
    }
}

static void do_accumulate(const struct call *c, int way, MPI_Request *r)
{
    switch (way) {
    case 0: CALL(MPI_Accumulate(c->origin, c->ocount, c->otype, c->target, c->disp, c->tcount, c->ttype, c->op, c->win)); break;
    case 1: CALL(MPI_Accumulate_c(c->origin, c->ocount, c->otype, c->target, c->disp, c->tcount, c->ttype, c->op, c->win)); break;
    case 2:
        CALL(MPI_Raccumulate(c->origin, c->ocount, c->otype, c->target, c->disp, c->tcount, c->ttype, c->op, c->win, r));
        break;
    default:
        CALL(MPI_Raccumulate_c(c->origin, c->ocount, c->otype, c->target, c->disp, c->tcount, c->ttype, c->op, c->win, r));
    }
}

static void do_get_accumulate(const struct call *c, int way, MPI_Request *r)
{
    switch (way) {
    case 0:
        CALL(MPI_Get_accumulate(c->origin, c->ocount, c->otype, c->result, c->rcount, c->rtype, c->target, c->disp, c->tcount, c->ttype,
                                    c->op, c->win));
        break;
    case 1:
        CALL(MPI_Get_accumulate_c(c->origin, c->ocount, c->otype, c->result, c->rcount, c->rtype, c->target, c->disp, c->tcount,
                                      c->ttype, c->op, c->win));
        break;
    case 2:
        CALL(MPI_Rget_accumulate(c->origin, c->ocount, c->otype, c->result, c->rcount, c->rtype, c->target, c->disp, c->tcount,
                                     c->ttype, c->op, c->win, r));
        break;
    default:
        CALL(MPI_Rget_accumulate_c(c->origin, c->ocount, c->otype, c->result, c->rcount, c->rtype, c->target, c->disp, c->tcount,
                                       c->ttype, c->op, c->win, r));
    }
}

/* What the model has is what a fetch gets, and becomes what the operation makes of it. */
static void do_to_model(const struct kind_of_number *k, char *at, const struct shape *to, const struct shape *of, struct asked *q, MPI_Op op)
{
    for (int i = 0; i < to->n; i++) {
        char *cell = at + place_in(to, i) * k->bytes;
        if (q->shape.n) memcpy(q->expected + place_in(&q->shape, i) * k->bytes, cell, (size_t)k->bytes);
        const char *data = q->data + place_in(of, i) * k->bytes;
        if (op == MPI_REPLACE) memcpy(cell, data, (size_t)k->bytes);
        else if (op != MPI_NO_OP) MPI_Reduce_local(data, cell, 1, k->type, op);
    }
}

enum what { PUTS, GETS, ACCUMULATES, FETCHES, WHATS };

static struct asked *ask(struct actor *a, const struct field *f, int target, size_t room)
{
    struct asked *q = &a->asked[a->pending++];
    *q = (struct asked){.f = f, .target = target, .bytes = f->number->bytes, .request = MPI_REQUEST_NULL};
    q->data = calloc(1, room);
    q->got = calloc(1, room);
    q->expected = calloc(1, room);
    for (int i = 0; i < (int)room / q->bytes; i++) set_number(f->number, q->data + i * q->bytes, (int)below(a, 50));
    return q;
}

/* A place for so many bytes in the own part, which suits the target's unit and the numbers. */
static int some_byte(struct actor *a, const struct field *f, int span)
{
    int align = f->number->bytes > 8 ? 16 : 8;
    return (int)below(a, (unsigned)((f->part - span) / align + 1)) * align;
}

static MPI_Aint own_place(const struct actor *a, const struct field *f, int target, int byte)
{
    return place_of(f, target, f->skew + (MPI_Aint)a->index * f->part + byte);
}

/* What is compared with is there, every other time. */
static void compare_and_swap(struct actor *a, const struct field *f, int target)
{
    const struct kind_of_number *k = f->number;
    struct asked *q = ask(a, f, target, 2 * (size_t)k->bytes);
    int byte = some_byte(a, f, k->bytes);
    char *cell = model_of(a, f, target) + byte, *compare = q->data + k->bytes;
    q->shape = (struct shape){.n = 1, .block = 1, .stride = 1};
    memcpy(q->expected, cell, (size_t)k->bytes);
    if (below(a, 2)) memcpy(compare, cell, (size_t)k->bytes);
    bool same = !memcmp(compare, cell, (size_t)k->bytes);
    CALL(MPI_Compare_and_swap(q->data, compare, q->got, k->type, target, own_place(a, f, target, byte), f->w.win));
    if (same) memcpy(cell, q->data, (size_t)k->bytes);
}

static MPI_Op some_operator(struct actor *a, const struct field *f, enum what what)
{
    int o = (int)below(a, OPERATORS);
    while (!(operators[o].classes & (int)f->number->class)) o = (int)below(a, OPERATORS);
    if (what == PUTS) return MPI_REPLACE;
    if (what == GETS) return MPI_NO_OP;
    return what == ACCUMULATES && operators[o].op == MPI_NO_OP ? MPI_REPLACE : operators[o].op;
}

/* One operation on the part of this actor at the target. with_requests: the epoch is one of locks. */
static void some_operation(struct actor *a, const struct field *f, int target, enum what what, bool with_requests)
{
    const struct kind_of_number *k = f->number;
    int room = f->part / k->bytes, n = 1 + (int)below(a, (unsigned)(below(a, 4) ? 8 : room));
    if (what == FETCHES && k->class == WHOLE && !below(a, 4)) {
        compare_and_swap(a, f, target);
        return;
    }
    MPI_Op op = some_operator(a, f, what);
    struct shape to = some_shape(a, n, room), of = some_shape(a, n, 2 * room), back = some_shape(a, n, 2 * room);
    int most = span_of(&of) > span_of(&back) ? span_of(&of) : span_of(&back), byte = some_byte(a, f, span_of(&to) * k->bytes);
    struct asked *q = ask(a, f, target, (size_t)(most * k->bytes));
    if (what == GETS || what == FETCHES) q->shape = back;
    struct call c = {.origin = q->data, .result = q->got, .target = target, .disp = own_place(a, f, target, byte), .op = op, .win = f->w.win};
    c.ocount = type_for(&of, k->type, &c.otype);
    c.tcount = type_for(&to, k->type, &c.ttype);
    c.rcount = type_for(&back, k->type, &c.rtype);
    do_to_model(k, model_of(a, f, target) + byte, &to, &of, q, op);
    int way = (int)below(a, with_requests ? 4 : 2);
    if (what == PUTS) do_put(&c, way, &q->request);
    else if (what == GETS) do_get(&c, way, &q->request);
    else if (what == ACCUMULATES) do_accumulate(&c, way, &q->request);
    else if (n == 1 && below(a, 2)) CALL(MPI_Fetch_and_op(q->data, q->got, k->type, target, c.disp, op, f->w.win));
    else do_get_accumulate(&c, way, &q->request);
    if (c.otype != k->type) MPI_Type_free(&c.otype);
    if (c.ttype != k->type) MPI_Type_free(&c.ttype);
    if (c.rtype != k->type) MPI_Type_free(&c.rtype);
}

/* Adds to what all add to. */
static void add_to_sum(struct actor *a, struct field *f, int target)
{
    int which = (int)below(a, SUMS);
    struct asked *q = ask(a, f, target, 16);
    int64_t amount = 1 + below(a, 100);
    memcpy(q->data, &amount, sizeof amount);
    MPI_Aint at = place_of(f, target, common_place(f) + which * 8);
    CALL(MPI_Accumulate(q->data, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, MPI_SUM, f->w.win));
    f->sums[a->thread][target][which] += amount;
}

static void check_word(const struct field *f, bool good, int64_t was)
{
    pthread_mutex_lock(&checking);
    CHECK(good, "program %d, %s: the word is %ld", programs_done, kind_name[f->w.kind], (long)was);
    pthread_mutex_unlock(&checking);
}

/* Takes the word, and puts it back: in epochs of locks. */
static void swap_word(struct actor *a, const struct field *f, int target)
{
    int64_t mine = a->index + 1, nobody = 0, was;
    MPI_Aint at = place_of(f, target, common_place(f) + SUMS * 8);
    CALL(MPI_Compare_and_swap(&mine, &nobody, &was, MPI_INT64_T, target, at, f->w.win));
    CALL(MPI_Win_flush(target, f->w.win));
    check_word(f, was >= 0 && was <= actors() && was != mine, was);
    if (was) return;
    CALL(MPI_Fetch_and_op(&nobody, &was, MPI_INT64_T, target, at, MPI_REPLACE, f->w.win));
    CALL(MPI_Win_flush(target, f->w.win));
    check_word(f, was == mine, was);
}

/* ---- in an epoch ---- */

/* One that has memory: of those in the mask. -1: there is none. */
static int some_target(struct actor *a, const struct field *f, unsigned mask)
{
    int first = (int)below(a, (unsigned)check_size);
    for (int i = 0; i < check_size; i++) {
        int t = (first + i) % check_size;
        if (f->has[t] && mask >> t & 1) return t;
    }
    return -1;
}

/* Some operations on a target in an epoch without flushes: accumulates, in their order, or one other. */
static void few_operations(struct actor *a, struct field *f, int target)
{
    enum what what = (enum what)below(a, WHATS);
    int n = what == PUTS || what == GETS ? 1 : 1 + (int)below(a, 3);
    if (target < 0) return;
    for (int i = 0; i < n && a->pending < PENDING; i++) some_operation(a, f, target, what == FETCHES && below(a, 2) ? ACCUMULATES : what, false);
    if (a->pending < PENDING) add_to_sum(a, f, target);
}

static void flush(struct actor *a, struct field *f, int target)
{
    bool all = below(a, 2);
    if (all) CALL(MPI_Win_flush_all(f->w.win));
    else CALL(MPI_Win_flush(target, f->w.win));
    compare_fetched(a, f, all ? -1 : target);
}

static void flush_local(struct actor *a, struct field *f, int target)
{
    bool all = below(a, 2);
    if (all) CALL(MPI_Win_flush_local_all(f->w.win));
    else CALL(MPI_Win_flush_local(target, f->w.win));
    compare_fetched(a, f, all ? -1 : target);
}

/* The same in an epoch of locks, where what may not meet is flushed. Other windows have at most 8 pending. */
static void many_operations(struct actor *a, struct field *f, int target)
{
    enum what before = WHATS;
    for (int n = 1 + (int)below(a, 6); n && target >= 0; n--) {
        enum what what = (enum what)below(a, WHATS);
        bool meets = before != WHATS && !(what >= ACCUMULATES && before >= ACCUMULATES);
        if (meets || a->pending >= PENDING - 2) flush(a, f, target);
        if (a->pending >= PENDING - 2) return;
        some_operation(a, f, target, what, true);
        add_to_sum(a, f, target);
        before = what;
        if (!below(a, 8)) swap_word(a, f, target);
        if (!below(a, 8)) flush_local(a, f, target);
        if (!below(a, 2)) end_a_request(a);
    }
    if (target >= 0) flush(a, f, target);
}

/* ---- epochs ---- */

enum epoch { BY_FENCE, BY_POSTS, BY_LOCK_ALL, BY_LOCKS, EPOCHS };

/* Which processes are what in an epoch of MPI_Win_post and MPI_Win_start, the same in all. */
struct roles {
    unsigned origins, targets;
    bool unchecked;
};

static MPI_Group group_of_mask(unsigned mask)
{
    MPI_Group all, some;
    int rank[RANKS], n = 0;
    for (int r = 0; r < check_size; r++)
        if (mask >> r & 1) rank[n++] = r;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, n, rank, &some);
    MPI_Group_free(&all);
    return some;
}

static struct roles some_roles(void)
{
    unsigned most = (1u << check_size) - 1, whole = all_below(2) ? most : 0;
    return (struct roles){.origins = whole | (1 + all_below(most)), .targets = whole | (1 + all_below(most)), .unchecked = !all_below(4)};
}

static bool is_in(unsigned mask) { return mask >> check_rank & 1; }

static void post_and_start(struct field *f, const struct roles *r)
{
    MPI_Group origins = group_of_mask(r->origins), targets = group_of_mask(r->targets);
    int assertion = r->unchecked ? MPI_MODE_NOCHECK : 0;
    if (is_in(r->targets)) CALL(MPI_Win_post(origins, assertion, f->w.win));
    if (r->unchecked) MPI_Barrier(MPI_COMM_WORLD);
    if (is_in(r->origins)) CALL(MPI_Win_start(targets, assertion, f->w.win));
    MPI_Group_free(&origins);
    MPI_Group_free(&targets);
}

static void complete_and_wait(struct field *f, const struct roles *r)
{
    int over = 0, rc = 0;
    if (is_in(r->origins)) CALL(MPI_Win_complete(f->w.win));
    if (!is_in(r->targets)) return;
    if (below(&actor[0], 2)) CALL(MPI_Win_wait(f->w.win));
    else while (!rc && !over) rc = MPI_Win_test(f->w.win, &over);
    CALL(rc);
}

static void begin(struct field *f, enum epoch e, const struct roles *r, bool first)
{
    if (e == BY_FENCE && first) CALL(MPI_Win_fence(MPI_MODE_NOPRECEDE, f->w.win));
    if (e == BY_POSTS) post_and_start(f, r);
    if (e == BY_LOCK_ALL) CALL(MPI_Win_lock_all(below(&actor[0], 4) ? 0 : MPI_MODE_NOCHECK, f->w.win)); /* nobody locks it otherwise */
}

static void end(struct field *f, enum epoch e, const struct roles *r, bool last)
{
    if (e == BY_FENCE) CALL(MPI_Win_fence(last ? MPI_MODE_NOSUCCEED : 0, f->w.win));
    if (e == BY_POSTS) complete_and_wait(f, r);
    if (e == BY_LOCK_ALL) CALL(MPI_Win_unlock_all(f->w.win));
    compare_fetched(&actor[0], f, -1);
}

static void by_lock(struct actor *a, struct field *f)
{
    int target = some_target(a, f, ~0u);
    CALL(MPI_Win_lock(below(a, 2) ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, f->w.win));
    many_operations(a, f, target);
    CALL(MPI_Win_unlock(target, f->w.win));
    compare_fetched(a, f, -1);
}

static void operate(struct actor *a, struct field *f, enum epoch e, const struct roles *r)
{
    if (e == BY_FENCE) few_operations(a, f, some_target(a, f, ~0u));
    if (e == BY_POSTS && is_in(r->origins)) few_operations(a, f, some_target(a, f, r->targets));
    if (e == BY_LOCK_ALL) many_operations(a, f, some_target(a, f, ~0u));
    if (e == BY_LOCKS) by_lock(a, f);
}

static void *run_actor(void *arg)
{
    struct actor *a = arg;
    for (unsigned n = 1 + below(a, 6); n; n--) {
        struct field *f = &field[below(a, (unsigned)fields)];
        many_operations(a, f, some_target(a, f, ~0u));
        compare_fetched(a, f, -1);
    }
    return NULL;
}

/* Epochs to all, in which all threads of all processes are. */
static void by_threads(void)
{
    pthread_t id[THREADS];
    for (int i = 0; i < fields; i++) begin(&field[i], BY_LOCK_ALL, NULL, true);
    for (int i = 1; i < threads; i++) pthread_create(&id[i], NULL, run_actor, &actor[i]);
    run_actor(&actor[0]);
    for (int i = 1; i < threads; i++) pthread_join(id[i], NULL);
    for (int i = 0; i < fields; i++) end(&field[i], BY_LOCK_ALL, NULL, true);
}

/* An epoch for each window at the same time. Locks of one target, which are waited for, are inside of all others. */
static void some_epochs(void)
{
    enum epoch e[FIELDS];
    int rounds = 1 + (int)all_below(4);
    for (int i = 0; i < fields; i++) e[i] = (enum epoch)all_below(i + 1 == fields ? EPOCHS : BY_LOCKS);
    for (int round = 0; round < rounds; round++) {
        struct roles r[FIELDS];
        for (int i = 0; i < fields; i++) {
            r[i] = some_roles();
            begin(&field[i], e[i], &r[i], !round);
        }
        for (int i = fields - 1; i >= 0; i--) operate(&actor[0], &field[i], e[i], &r[i]);
        for (int i = fields - 1; i >= 0; i--) end(&field[i], e[i], &r[i], round + 1 == rounds);
    }
}

/* ---- the end of a program ---- */

static void compare_sums(struct field *f)
{
    int64_t own[SUMS], added[SUMS];
    for (int t = 0; t < check_size; t++) {
        memset(own, 0, sizeof own);
        for (int i = 0; i < threads; i++)
            for (int k = 0; k < SUMS; k++) own[k] += f->sums[i][t][k];
        MPI_Reduce(own, added, SUMS, MPI_INT64_T, MPI_SUM, t, MPI_COMM_WORLD);
    }
    if (f->has[check_rank])
        CHECK(!memcmp(f->w.base + common_place(f), added, sizeof added), "program %d, %s: the sums differ", programs_done, kind_name[f->w.kind]);
}

/* The models of the actors with the same number in all processes, for this process's memory. */
static void compare_parts(struct field *f, int thread, char *all)
{
    int bad = 0, bytes = f->number->bytes;
    MPI_Alltoall(f->model[thread], f->part, MPI_BYTE, all, f->part, MPI_BYTE, MPI_COMM_WORLD);
    for (int o = 0; o < check_size && f->has[check_rank]; o++) {
        const char *is = f->w.base + f->skew + (MPI_Aint)(o * threads + thread) * f->part;
        for (int at = 0; at + bytes <= f->part; at += bytes) bad += memcmp(is + at, all + o * f->part + at, (size_t)bytes) != 0;
    }
    CHECK(!bad, "program %d, %s: %d numbers of %d bytes are not what their actors have made of them", programs_done, kind_name[f->w.kind], bad,
          bytes);
}

static void compare_memory(struct field *f)
{
    char *all = malloc((size_t)check_size * (size_t)f->part);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, f->w.win));
    CHECK_OK(MPI_Win_sync(f->w.win));
    for (int i = 0; i < threads; i++) compare_parts(f, i, all);
    compare_sums(f);
    CHECK_OK(MPI_Win_unlock(check_rank, f->w.win));
    MPI_Barrier(MPI_COMM_WORLD);
    free(all);
}

/* ---- a program ---- */

/* What is attached in one piece is so in two that touch. */
static void attach_in_pieces(struct field *f)
{
    MPI_Aint first = f->first_piece;
    if (!first || !f->has[check_rank]) return;
    CHECK_OK(MPI_Win_detach(f->w.win, f->w.base));
    CHECK_OK(MPI_Win_attach(f->w.win, f->w.base, first));
    CHECK_OK(MPI_Win_attach(f->w.win, f->w.base + first, f->w.bytes - first));
}

/* False: there is no such window here. Collective. */
static bool open_field(struct field *f)
{
    enum kind kind = (enum kind)all_below(KINDS);
    bool all_have = all_below(4), dynamic = kind == ATTACHED || kind == ATTACHED_SHARED;
    *f = (struct field){.number = &numbers[all_below(NUMBERS)], .part = all_below(8) ? SMALL_PART : LARGE_PART};
    if (dynamic && all_below(2)) f->first_piece = 1 + (int)all_below((unsigned)bytes_of(f) - 1);
    bool odd = !all_below(4) && f->number->class != PAIR; /* numbers at odd addresses: all units are 1 */
    if (odd) f->skew = 1 + (int)all_below(7);
    for (int r = 0; r < check_size; r++) {
        f->unit[r] = odd || dynamic ? 1 : 1 << all_below(4);
        f->has[r] = all_have || !r || all_below(2);
    }
    MPI_Aint bytes = f->has[check_rank] ? bytes_of(f) : 0;
    if (!window_open(&f->w, kind, MPI_COMM_WORLD, bytes, f->unit[check_rank])) return false;
    attach_in_pieces(f);
    for (int i = 0; i < threads; i++) f->model[i] = calloc((size_t)check_size, (size_t)f->part);
    MPI_Barrier(MPI_COMM_WORLD);
    return true;
}

static void close_field(struct field *f)
{
    if (f->first_piece && f->has[check_rank]) CHECK_OK(MPI_Win_detach(f->w.win, f->w.base + f->first_piece));
    window_close(&f->w);
    for (int i = 0; i < threads; i++) free(f->model[i]);
}

static void program(void)
{
    int wanted = all_below(3) ? 1 : 1 + (int)all_below(FIELDS);
    fields = 0;
    for (int i = 0; i < wanted; i++) fields += open_field(&field[fields]);
    for (int n = fields ? 1 + (int)all_below(3) : 0; n; n--) {
        if (threads > 1 && all_below(2)) by_threads();
        else some_epochs();
        MPI_Barrier(MPI_COMM_WORLD); /* epochs of different kinds do not meet */
    }
    for (int i = 0; i < fields; i++) compare_memory(&field[i]);
    for (int i = 0; i < fields; i++) close_field(&field[i]);
}

int main(int argc, char **argv)
{
    const char *many = getenv("TERN_TEST_THREADS");
    if (many) threads = atoi(many);
    if (threads < 1 || threads > THREADS) threads = 1;
    check_start_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    int programs = argc > 1 ? atoi(argv[1]) : 40;
    uint64_t seed = check_seed();
    for (programs_done = 0; programs_done < programs; programs_done++) {
        common = seed + (uint64_t)programs_done;
        for (int i = 0; i < threads; i++) {
            int index = check_rank * threads + i;
            actor[i] = (struct actor){.thread = i, .index = index, .state = common ^ ((uint64_t)index + 1) << 32};
        }
        program();
    }
    return check_done();
}
