/*
 * random.c - random programs of one-sided operations against a model: `random [programs]`.
 *
 * Each process has a part of the memory of each target that only it changes, and keeps a copy of all its parts: the model, to
 * which it does what it asks of the targets. What it fetches must be what the model has; at the end of a program each target's
 * memory must be the models of all. Beside the parts there are numbers to which all add at the same time, and a word that
 * they swap.
 *
 * A program is a window of some kind, numbers of some type, and some epochs of some kind, each with some operations: with any
 * operator, with derived types on both sides, as requests, by the calls for large counts.
 */
#include "windows.h"

#include <stddef.h>

enum { PART = 512, SUMS = 4, ROOM = 2 * PART, PENDING = 16, RANKS = 8 };

static uint64_t state;
static unsigned below(unsigned n) { return (unsigned)(check_random(&state) % n); } /* each process has its own numbers */

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

static struct window w;
static const struct kind_of_number *number;
static char model[RANKS][PART];
static MPI_Aint own_part;
static int64_t sums[RANKS][SUMS]; /* what this process has added */
static int swaps[RANKS];

/* An operation: n numbers, of which each block of `block` begins `stride` behind the one before, in the target and here. */
struct shape {
    int n, block, stride;
};
static int place_in(const struct shape *s, int i) { return i / s->block * s->stride + i % s->block; }

static struct shape some_shape(int n, int room)
{
    struct shape s = {n, n, n};
    int block = 1 + (int)below((unsigned)n), blocks = n / block;
    if (below(2) || n % block || blocks < 2) return s;
    int most = (room - block) / (blocks - 1);
    s.block = block;
    s.stride = block + (most > block ? (int)below((unsigned)(most - block + 1)) : 0);
    return s;
}

/* The type of a shape, and how many of it. */
static int type_for(const struct shape *s, MPI_Datatype basic, MPI_Datatype *type)
{
    *type = basic;
    if (s->block == s->n) return s->n;
    MPI_Type_vector(s->n / s->block, s->block, s->stride, basic, type);
    MPI_Type_commit(type);
    return 1;
}

/* What was fetched, and what it should be. */
static struct fetched {
    char got[ROOM], expected[ROOM];
    struct shape shape;
    int bytes;
} fetched[PENDING];
static char given[PENDING][ROOM];
static int pending;

static void compare_fetched(void)
{
    for (int k = 0; k < pending; k++) {
        struct fetched *f = &fetched[k];
        for (int i = 0; f->shape.n && i < f->shape.n; i++) {
            size_t at = (size_t)(place_in(&f->shape, i) * f->bytes);
            CHECK(!memcmp(f->got + at, f->expected + at, (size_t)f->bytes), "%s: what is fetched is not what the model has", kind_name[w.kind]);
        }
    }
    pending = 0;
}

/* The call of an operation: plain, for large counts, or with a request. */
struct call {
    const void *origin;
    void *result;
    int ocount, rcount, tcount, target;
    MPI_Datatype otype, rtype, ttype;
    MPI_Aint disp;
    MPI_Op op;
};

static void wait_for(MPI_Request r) { CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE)); }

static void do_put(const struct call *c, int way)
{
    MPI_Request r;
    switch (way) {
    case 0: CHECK_OK(MPI_Put(c->origin, c->ocount, c->otype, c->target, c->disp, c->tcount, c->ttype, w.win)); break;
    case 1: CHECK_OK(MPI_Put_c(c->origin, c->ocount, c->otype, c->target, c->disp, c->tcount, c->ttype, w.win)); break;
    case 2: CHECK_OK(MPI_Rput(c->origin, c->ocount, c->otype, c->target, c->disp, c->tcount, c->ttype, w.win, &r)), wait_for(r); break;
    default: CHECK_OK(MPI_Rput_c(c->origin, c->ocount, c->otype, c->target, c->disp, c->tcount, c->ttype, w.win, &r)), wait_for(r);
    }
}

static void do_get(const struct call *c, int way)
{
    MPI_Request r;
    switch (way) {
    case 0: CHECK_OK(MPI_Get(c->result, c->rcount, c->rtype, c->target, c->disp, c->tcount, c->ttype, w.win)); break;
    case 1: CHECK_OK(MPI_Get_c(c->result, c->rcount, c->rtype, c->target, c->disp, c->tcount, c->ttype, w.win)); break;
    case 2: CHECK_OK(MPI_Rget(c->result, c->rcount, c->rtype, c->target, c->disp, c->tcount, c->ttype, w.win, &r)), wait_for(r); break;
    default: CHECK_OK(MPI_Rget_c(c->result, c->rcount, c->rtype, c->target, c->disp, c->tcount, c->ttype, w.win, &r)), wait_for(r);
    }
}

static void do_accumulate(const struct call *c, int way)
{
    MPI_Request r;
    switch (way) {
    case 0: CHECK_OK(MPI_Accumulate(c->origin, c->ocount, c->otype, c->target, c->disp, c->tcount, c->ttype, c->op, w.win)); break;
    case 1: CHECK_OK(MPI_Accumulate_c(c->origin, c->ocount, c->otype, c->target, c->disp, c->tcount, c->ttype, c->op, w.win)); break;
    case 2:
        CHECK_OK(MPI_Raccumulate(c->origin, c->ocount, c->otype, c->target, c->disp, c->tcount, c->ttype, c->op, w.win, &r));
        wait_for(r);
        break;
    default:
        CHECK_OK(MPI_Raccumulate_c(c->origin, c->ocount, c->otype, c->target, c->disp, c->tcount, c->ttype, c->op, w.win, &r));
        wait_for(r);
    }
}

static void do_get_accumulate(const struct call *c, int way)
{
    MPI_Request r;
    switch (way) {
    case 0:
        CHECK_OK(MPI_Get_accumulate(c->origin, c->ocount, c->otype, c->result, c->rcount, c->rtype, c->target, c->disp, c->tcount, c->ttype,
                                    c->op, w.win));
        break;
    case 1:
        CHECK_OK(MPI_Get_accumulate_c(c->origin, c->ocount, c->otype, c->result, c->rcount, c->rtype, c->target, c->disp, c->tcount,
                                      c->ttype, c->op, w.win));
        break;
    case 2:
        CHECK_OK(MPI_Rget_accumulate(c->origin, c->ocount, c->otype, c->result, c->rcount, c->rtype, c->target, c->disp, c->tcount,
                                     c->ttype, c->op, w.win, &r));
        wait_for(r);
        break;
    default:
        CHECK_OK(MPI_Rget_accumulate_c(c->origin, c->ocount, c->otype, c->result, c->rcount, c->rtype, c->target, c->disp, c->tcount,
                                       c->ttype, c->op, w.win, &r));
        wait_for(r);
    }
}

/* What the model has is what a fetch gets, and becomes what the operation makes of it. */
static void do_to_model(const struct kind_of_number *k, char *at, const struct shape *to, const char *from, const struct shape *of,
                        struct fetched *f, MPI_Op op)
{
    for (int i = 0; i < to->n; i++) {
        char *cell = at + place_in(to, i) * k->bytes;
        if (f) memcpy(f->expected + place_in(&f->shape, i) * k->bytes, cell, (size_t)k->bytes);
        const char *data = from + place_in(of, i) * k->bytes;
        if (op == MPI_REPLACE) memcpy(cell, data, (size_t)k->bytes);
        else if (op != MPI_NO_OP) MPI_Reduce_local(data, cell, 1, k->type, op);
    }
}

enum what { PUTS, GETS, ACCUMULATES, FETCHES, WHATS };

/* One operation on the part of this process at the target. with_requests: the epoch is one of locks. */
static void some_operation(int target, enum what what, bool with_requests)
{
    const struct kind_of_number *k = number;
    int o = (int)below(OPERATORS), room = PART / k->bytes, n = 1 + (int)below((unsigned)(below(4) ? 8 : room));
    while (!(operators[o].classes & (int)k->class)) o = (int)below(OPERATORS);
    MPI_Op op = what == PUTS ? MPI_REPLACE : what == GETS ? MPI_NO_OP : operators[o].op;
    if (what == ACCUMULATES && op == MPI_NO_OP) op = MPI_REPLACE;
    if (n > room) n = room;
    struct shape to = some_shape(n, room), of = some_shape(n, 2 * room), back = some_shape(n, 2 * room);
    int span = (place_in(&to, n - 1) + 1) * k->bytes, align = k->bytes > 8 ? 16 : 8;
    int byte = (int)below((unsigned)((PART - span) / align + 1)) * align;
    struct fetched *f = &fetched[pending];
    char *data = given[pending++];
    f->shape = (struct shape){0};
    if (what == GETS || what == FETCHES) f->shape = back;
    f->bytes = k->bytes;
    memset(data, 0, ROOM);
    memset(f->got, 0, ROOM);
    for (int i = 0; i < ROOM / k->bytes; i++) set_number(k, data + i * k->bytes, (int)below(50));
    struct call c = {.origin = data, .result = f->got, .target = target, .disp = window_place(&w, target, own_part + byte), .op = op};
    c.ocount = type_for(&of, k->type, &c.otype);
    c.tcount = type_for(&to, k->type, &c.ttype);
    c.rcount = type_for(&back, k->type, &c.rtype);
    do_to_model(k, model[target] + byte, &to, data, &of, f->shape.n ? f : NULL, op);
    int way = (int)below(with_requests ? 4 : 2);
    if (what == PUTS) do_put(&c, way);
    else if (what == GETS) do_get(&c, way);
    else if (what == ACCUMULATES) do_accumulate(&c, way);
    else if (n == 1 && below(2)) CHECK_OK(MPI_Fetch_and_op(data, f->got, k->type, target, c.disp, op, w.win));
    else do_get_accumulate(&c, way);
    if (c.otype != k->type) MPI_Type_free(&c.otype);
    if (c.ttype != k->type) MPI_Type_free(&c.ttype);
    if (c.rtype != k->type) MPI_Type_free(&c.rtype);
}

/* Adds to what all add to. */
static void add_to_sum(int target)
{
    static int64_t amount[PENDING];
    int which = (int)below(SUMS);
    int64_t *a = &amount[pending];
    fetched[pending++].shape = (struct shape){0};
    *a = 1 + below(100);
    MPI_Aint at = window_place(&w, target, (MPI_Aint)(check_size * PART + which * 8));
    CHECK_OK(MPI_Accumulate(a, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, MPI_SUM, w.win));
    sums[target][which] += *a;
}

/* Takes the word, and puts it back: in epochs of locks. */
static void swap_word(int target)
{
    int64_t mine = check_rank + 1, nobody = 0, was;
    MPI_Aint at = window_place(&w, target, (MPI_Aint)(check_size * PART + SUMS * 8));
    CHECK_OK(MPI_Compare_and_swap(&mine, &nobody, &was, MPI_INT64_T, target, at, w.win));
    CHECK_OK(MPI_Win_flush(target, w.win));
    CHECK(was >= 0 && was <= check_size && was != mine, "%s: the word is %ld", kind_name[w.kind], (long)was);
    if (was) return;
    swaps[target]++;
    CHECK_OK(MPI_Fetch_and_op(&nobody, &was, MPI_INT64_T, target, at, MPI_REPLACE, w.win));
    CHECK_OK(MPI_Win_flush(target, w.win));
    CHECK(was == mine, "%s: the word that was taken is %ld", kind_name[w.kind], (long)was);
}

/* ---- epochs ---- */

/* Some operations on a target in an epoch without flushes: accumulates, in their order, or one other. */
static void few_operations(int target)
{
    enum what what = (enum what)below(WHATS);
    int n = what == PUTS || what == GETS ? 1 : 1 + (int)below(4);
    for (int i = 0; i < n && pending < PENDING; i++) some_operation(target, what == FETCHES && below(2) ? ACCUMULATES : what, false);
    if (pending < PENDING) add_to_sum(target);
}

/* The same in an epoch of locks, where what may not meet is flushed. */
static void many_operations(int target)
{
    enum what before = WHATS;
    for (int n = 1 + (int)below(6); n; n--) {
        enum what what = (enum what)below(WHATS);
        bool meets = before != WHATS && !(what >= ACCUMULATES && before >= ACCUMULATES);
        if (meets || pending >= PENDING - 2) {
            if (below(2)) CHECK_OK(MPI_Win_flush(target, w.win));
            else CHECK_OK(MPI_Win_flush_all(w.win));
            compare_fetched();
        }
        some_operation(target, what, true);
        add_to_sum(target);
        before = what;
        if (!below(8)) swap_word(target);
        if (!below(8)) CHECK_OK(MPI_Win_flush_local(target, w.win));
        if (!below(16)) CHECK_OK(MPI_Win_flush_local_all(w.win));
    }
}

static void by_fences(int rounds)
{
    CHECK_OK(MPI_Win_fence(0, w.win));
    for (int i = 0; i < rounds; i++) {
        few_operations((int)below((unsigned)check_size));
        CHECK_OK(MPI_Win_fence(i + 1 == rounds ? MPI_MODE_NOSUCCEED : 0, w.win));
        compare_fetched();
    }
}

/* All are origins and targets of all. */
static void by_posts(int rounds)
{
    MPI_Group all;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    for (int i = 0; i < rounds; i++) {
        CHECK_OK(MPI_Win_post(all, 0, w.win));
        CHECK_OK(MPI_Win_start(all, 0, w.win));
        few_operations((int)below((unsigned)check_size));
        CHECK_OK(MPI_Win_complete(w.win));
        CHECK_OK(MPI_Win_wait(w.win));
        compare_fetched();
    }
    MPI_Group_free(&all);
}

static void by_locks(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        int target = (int)below((unsigned)check_size);
        CHECK_OK(MPI_Win_lock(below(2) ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, w.win));
        many_operations(target);
        CHECK_OK(MPI_Win_unlock(target, w.win));
        compare_fetched();
    }
}

static void by_lock_all(int rounds)
{
    CHECK_OK(MPI_Win_lock_all(0, w.win));
    for (int i = 0; i < rounds; i++) {
        int target = (int)below((unsigned)check_size);
        many_operations(target);
        CHECK_OK(MPI_Win_flush(target, w.win));
        compare_fetched();
    }
    CHECK_OK(MPI_Win_unlock_all(w.win));
}

/* ---- the end of a program ---- */

static void compare_memory(void)
{
    char all[RANKS][PART];
    int64_t added[SUMS];
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Alltoall(model, PART, MPI_BYTE, all, PART, MPI_BYTE, MPI_COMM_WORLD);
    for (int t = 0; t < check_size; t++) MPI_Reduce(sums[t], added, SUMS, MPI_INT64_T, MPI_SUM, t, MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, w.win));
    CHECK_OK(MPI_Win_sync(w.win));
    for (int o = 0; o < check_size; o++)
        for (int at = 0; at < PART; at += number->bytes)
            CHECK(!memcmp(w.base + o * PART + at, all[o] + at, (size_t)number->bytes),
                  "%s: a number of %d bytes at %d is not what rank %d has made of it", kind_name[w.kind], number->bytes, at, o);
    CHECK(!memcmp(w.base + check_size * PART, added, sizeof added), "%s: the sums differ", kind_name[w.kind]);
    CHECK_OK(MPI_Win_unlock(check_rank, w.win));
    MPI_Barrier(MPI_COMM_WORLD);
}

/* `kind`: random bits, the same in all processes. */
static void program(uint64_t kind)
{
    void (*const epochs[])(int) = {by_fences, by_posts, by_locks, by_lock_all};
    unsigned unit = (kind >> 8) & 1 ? 8 : 1, n = 1 + (unsigned)((kind >> 9) % 3);
    number = &numbers[(kind >> 32) % NUMBERS];
    MPI_Aint bytes = check_size * PART + (SUMS + 1) * 8;
    if (!window_open(&w, (enum kind)(kind % KINDS), MPI_COMM_WORLD, bytes, (int)unit)) return;
    memset(model, 0, sizeof model);
    memset(sums, 0, sizeof sums);
    for (unsigned i = 0; i < n; i++) {
        epochs[(kind >> (12 + 2 * i)) % 4]((int)(1 + (kind >> 20) % 4));
        MPI_Barrier(MPI_COMM_WORLD); /* epochs of different kinds do not meet */
    }
    compare_memory();
    window_close(&w);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    int programs = argc > 1 ? atoi(argv[1]) : 40;
    uint64_t common = check_seed(); /* what all decide alike */
    own_part = check_rank * PART;
    for (int i = 0; i < programs; i++) {
        uint64_t kind = check_random(&common);
        state = common ^ (uint64_t)check_rank << 32;
        program(kind);
    }
    return check_done();
}
