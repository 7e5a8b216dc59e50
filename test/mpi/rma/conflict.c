/*
 * conflict.c - with TERN_CHECK=rma, two operations on the same bytes that must not be concurrent are an error of class
 * MPI_ERR_RMA_CONFLICT that names both (MPI-5.0 section 12.7); without it, and where they may meet, there is no error.
 */
#include "windows.h"

enum { BYTES = 4096 };

static bool checking; /* TERN_CHECK=rma is set */

/* ---- pairs of operations ---- */

enum what { PUT, GET, SUM, PRODUCT, READ, REPLACE, SWAP, SUM_OF_FLOATS };

static const char *const call_of[] = {"MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Accumulate", "MPI_Get_accumulate", "MPI_Fetch_and_op",
                                      "MPI_Compare_and_swap", "MPI_Accumulate"};

/* An operation on `count` ints, or one, from a byte of the memory on. */
struct operation {
    enum what what;
    int byte, count;
};

static int data[BYTES / 4], got[BYTES / 4];

static int operate(const struct window *w, const struct operation *o, int target)
{
    MPI_Aint at = window_place(w, target, o->byte);
    switch (o->what) {
    case PUT: return MPI_Put(data, o->count, MPI_INT, target, at, o->count, MPI_INT, w->win);
    case GET: return MPI_Get(got, o->count, MPI_INT, target, at, o->count, MPI_INT, w->win);
    case SUM: return MPI_Accumulate(data, o->count, MPI_INT, target, at, o->count, MPI_INT, MPI_SUM, w->win);
    case PRODUCT: return MPI_Accumulate(data, o->count, MPI_INT, target, at, o->count, MPI_INT, MPI_PROD, w->win);
    case READ: return MPI_Get_accumulate(NULL, 0, MPI_INT, got, o->count, MPI_INT, target, at, o->count, MPI_INT, MPI_NO_OP, w->win);
    case REPLACE: return MPI_Fetch_and_op(data, got, MPI_INT, target, at, MPI_REPLACE, w->win);
    case SWAP: return MPI_Compare_and_swap(data, data, got, MPI_INT, target, at, w->win);
    case SUM_OF_FLOATS: return MPI_Accumulate(data, o->count, MPI_FLOAT, target, at, o->count, MPI_FLOAT, MPI_SUM, w->win);
    }
    return MPI_ERR_OTHER;
}

static const struct pair {
    const char *name;
    struct operation a, b;
    bool by_two, by_one; /* do they conflict if two origins do them; if one does both? */
} pairs[] = {
    {"two puts", {PUT, 0, 4}, {PUT, 12, 4}, true, true},
    {"two puts on the same bytes", {PUT, 8, 2}, {PUT, 8, 2}, true, true},
    {"puts beside each other", {PUT, 0, 4}, {PUT, 16, 4}, false, false},
    {"put and get", {PUT, 0, 8}, {GET, 4, 1}, true, true},
    {"get and put", {GET, 0, 8}, {PUT, 28, 4}, true, true},
    {"two gets", {GET, 0, 8}, {GET, 4, 8}, false, false},
    {"put and accumulate", {PUT, 0, 8}, {SUM, 4, 1}, true, true},
    {"accumulate and get", {SUM, 0, 8}, {GET, 4, 1}, true, true},
    {"get and an atomic read", {GET, 0, 8}, {READ, 4, 1}, false, false},
    {"put and an atomic read", {PUT, 0, 8}, {READ, 4, 1}, true, true},
    {"the same accumulate", {SUM, 0, 8}, {SUM, 4, 8}, false, false},
    {"accumulates with two operators", {SUM, 0, 8}, {PRODUCT, 4, 8}, true, false},
    {"accumulates with two operators side by side", {SUM, 0, 1}, {PRODUCT, 4, 8}, false, false},
    {"accumulate and an atomic read", {SUM, 0, 8}, {READ, 4, 8}, false, false},
    {"swaps and replaces", {SWAP, 0, 1}, {REPLACE, 0, 1}, false, false},
    {"accumulates with two types", {SUM, 0, 8}, {SUM_OF_FLOATS, 4, 1}, true, true},
};
enum { PAIRS = sizeof pairs / sizeof pairs[0] };

/* ---- the epochs that they are in ---- */

/* The first error of this process in an epoch, and its words. */
static int failed;
static char words[MPI_MAX_ERROR_STRING];

static void note(int rc)
{
    int length;
    if (!rc || failed) return;
    failed = rc;
    MPI_Error_string(rc, words, &length);
}

/* Rank 0 does a, and rank `other` does b after it. */
static void both(const struct window *w, const struct pair *p, int other, int target)
{
    if (check_rank == 0) note(operate(w, &p->a, target));
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == other) note(operate(w, &p->b, target));
}

static void by_fences(const struct window *w, const struct pair *p, int other, int target)
{
    CHECK_OK(MPI_Win_fence(0, w->win));
    both(w, p, other, target);
    note(MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win));
}

static void by_posts(const struct window *w, const struct pair *p, int other, int target)
{
    MPI_Group all, one;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &target, &one);
    if (check_rank == target) CHECK_OK(MPI_Win_post(all, 0, w->win));
    CHECK_OK(MPI_Win_start(one, 0, w->win));
    both(w, p, other, target);
    note(MPI_Win_complete(w->win));
    if (check_rank == target) CHECK_OK(MPI_Win_wait(w->win));
    MPI_Group_free(&all);
    MPI_Group_free(&one);
}

static void by_locks(const struct window *w, const struct pair *p, int other, int target)
{
    CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w->win));
    both(w, p, other, target);
    MPI_Barrier(MPI_COMM_WORLD);
    note(MPI_Win_unlock(target, w->win));
}

static void by_lock_all(const struct window *w, const struct pair *p, int other, int target)
{
    CHECK_OK(MPI_Win_lock_all(0, w->win));
    both(w, p, other, target);
    MPI_Barrier(MPI_COMM_WORLD);
    note(MPI_Win_flush_all(w->win));
    note(MPI_Win_unlock_all(w->win));
}

typedef void epoch_fn(const struct window *, const struct pair *, int other, int target);
static epoch_fn *const epochs[] = {by_fences, by_posts, by_locks, by_lock_all};
static const char *const epoch_name[] = {"MPI_Win_fence", "MPI_Win_start", "MPI_Win_lock, shared", "MPI_Win_lock_all"};
enum { EPOCHS = sizeof epochs / sizeof epochs[0] };

/* How many processes were told of a conflict, in words that name both operations and the epoch. */
static int told(const struct pair *p, int other, const char *epoch, const char *where)
{
    int class = MPI_SUCCESS, mine, all;
    char rank[32];
    if (failed) MPI_Error_class(failed, &class);
    CHECK(!failed || class == MPI_ERR_RMA_CONFLICT, "%s, %s: class %d: %s", where, p->name, class, words);
    mine = class == MPI_ERR_RMA_CONFLICT;
    snprintf(rank, sizeof rank, "of rank %d (call", other);
    if (mine)
        CHECK(strstr(words, call_of[p->a.what]) && strstr(words, call_of[p->b.what]) && strstr(words, "of rank 0 (call") &&
                  strstr(words, rank) && strstr(words, epoch) && strstr(words, "conflict("),
              "%s, %s: the words are '%s'", where, p->name, words);
    failed = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static void all_pairs(const struct window *w, int other, int target)
{
    for (int e = 0; e < EPOCHS; e++)
        for (int i = 0; i < PAIRS; i++) {
            const struct pair *p = &pairs[i];
            bool wanted = checking && (other ? p->by_two : p->by_one);
            epochs[e](w, p, other, target);
            int n = told(p, other, epoch_name[e], kind_name[w->kind]);
            CHECK(wanted == (n > 0), "%s, epoch of %s, %s of ranks 0 and %d at %d: %d processes were told", kind_name[w->kind], epoch_name[e],
                  p->name, other, target, n);
            if (wanted && other && e >= 2) CHECK(n == 2, "%s, %s: %d of 2 origins were told", kind_name[w->kind], p->name, n);
        }
}

static void conflicts_are_told(void)
{
    for (enum kind kind = 0; kind < KINDS; kind++) {
        struct window w;
        if (!window_open(&w, kind, MPI_COMM_WORLD, BYTES, 1)) continue;
        MPI_Win_set_errhandler(w.win, MPI_ERRORS_RETURN);
        all_pairs(&w, 0, 0);
        if (check_size > 1) {
            all_pairs(&w, 0, check_size - 1);
            all_pairs(&w, 1, 0);
            all_pairs(&w, 1, check_size - 1);
        }
        window_close(&w);
    }
}

/* ---- what is no conflict ---- */

/* The same bytes of a target, one access after the other. */
static void one_after_the_other(struct window *w)
{
    const struct operation put = {PUT, 0, 100}, get = {GET, 40, 100}, sum = {SUM, 0, 4};
    int to = check_size - 1;
    MPI_Request r;
    MPI_Aint at = window_place(w, to, 0);
    CHECK_OK(MPI_Win_lock_all(0, w->win));
    for (int turn = 0; turn < check_size; turn++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (turn != check_rank) continue;
        CHECK_OK(operate(w, &put, to));
        CHECK_OK(MPI_Win_flush(to, w->win));
        CHECK_OK(operate(w, &get, to));
        CHECK_OK(MPI_Win_flush_local(to, w->win)); /* it has been read */
        CHECK_OK(operate(w, &put, to));
        CHECK_OK(MPI_Win_flush_all(w->win));
        CHECK_OK(MPI_Rget(got, 10, MPI_INT, to, at, 10, MPI_INT, w->win, &r));
        CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        CHECK_OK(operate(w, &sum, to));
        CHECK_OK(MPI_Win_flush(to, w->win));
    }
    CHECK_OK(MPI_Win_unlock_all(w->win));
    MPI_Barrier(MPI_COMM_WORLD);
}

static void alone_with_the_target(struct window *w)
{
    const struct operation put = {PUT, 0, 100}, get = {GET, 0, 100};
    int to = check_size - 1;
    for (int i = 0; i < 20; i++) {
        CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, w->win));
        CHECK_OK(operate(w, &put, to));
        CHECK_OK(MPI_Win_unlock(to, w->win));
        CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, w->win));
        CHECK_OK(operate(w, &get, to));
        CHECK_OK(MPI_Win_unlock(to, w->win));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void fences_between(struct window *w)
{
    const struct operation put = {PUT, 0, 100}, sum = {SUM, 0, 100};
    int to = check_size - 1;
    CHECK_OK(MPI_Win_fence(0, w->win));
    for (int i = 0; i < 3 * check_size; i++) {
        if (i % check_size == check_rank) CHECK_OK(operate(w, &put, to));
        CHECK_OK(MPI_Win_fence(0, w->win));
        CHECK_OK(operate(w, &sum, to));
        CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED * (i + 1 == 3 * check_size), w->win));
    }
    CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, w->win)); /* does not meet what was before the fence */
    if (check_rank == 0) CHECK_OK(operate(w, &put, to));
    CHECK_OK(MPI_Win_unlock(to, w->win));
    MPI_Barrier(MPI_COMM_WORLD);
}

static void exposures_between(struct window *w)
{
    const struct operation put = {PUT, 0, 100};
    MPI_Group all, target;
    int to = check_size - 1;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &to, &target);
    for (int turn = 0; turn < check_size; turn++) {
        MPI_Group origin;
        MPI_Group_incl(all, 1, &turn, &origin);
        if (check_rank == to) CHECK_OK(MPI_Win_post(origin, 0, w->win));
        if (check_rank == turn) {
            CHECK_OK(MPI_Win_start(target, 0, w->win));
            CHECK_OK(operate(w, &put, to));
            CHECK_OK(MPI_Win_complete(w->win));
        }
        if (check_rank == to) CHECK_OK(MPI_Win_wait(w->win));
        MPI_Group_free(&origin);
    }
    MPI_Group_free(&all);
    MPI_Group_free(&target);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void others_are_not_told(void)
{
    for (enum kind kind = 0; kind < KINDS; kind++) {
        struct window w;
        if (!window_open(&w, kind, MPI_COMM_WORLD, BYTES, 4)) continue;
        MPI_Win_set_errhandler(w.win, MPI_ERRORS_RETURN);
        one_after_the_other(&w);
        alone_with_the_target(&w);
        fences_between(&w);
        exposures_between(&w);
        window_close(&w);
    }
}

/* ---- hints, types, requests, many ---- */

static MPI_Win with_hint(const char *key, const char *value, int **base)
{
    MPI_Info info;
    MPI_Win win;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    CHECK_OK(MPI_Win_allocate(BYTES, 1, info, MPI_COMM_WORLD, base, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Info_free(&info);
    return win;
}

static void hints_change_the_rules(void)
{
    struct window w = {.unit = 1, .kind = ALLOCATED};
    int *base, to = check_size - 1;
    const struct pair read = {"accumulate and an atomic read, same_op", {SUM, 0, 8}, {READ, 4, 8}, true, false};
    const struct pair operators = {"two operators, no order", {SUM, 0, 8}, {PRODUCT, 4, 8}, true, true};
    w.win = with_hint("accumulate_ops", "same_op", &base);
    if (check_size > 1) {
        by_fences(&w, &read, 1, to);
        CHECK((told(&read, 1, "MPI_Win_fence", "same_op") > 0) == checking, "%s", read.name);
    }
    CHECK_OK(MPI_Win_free(&w.win));
    w.win = with_hint("accumulate_ordering", "none", &base);
    by_lock_all(&w, &operators, 0, to);
    CHECK(told(&operators, 0, "MPI_Win_lock_all", "no order") == checking, "%s", operators.name);
    CHECK_OK(MPI_Win_free(&w.win));
}

/* Bytes between those of a derived type are not touched. The words have the bytes, and numbers of calls on the window. */
static void derived_types(void)
{
    struct window w;
    MPI_Datatype stripes;
    int to = check_size - 1;
    MPI_Type_vector(100, 1, 4, MPI_INT, &stripes);
    MPI_Type_commit(&stripes);
    window_open(&w, CREATED, MPI_COMM_WORLD, BYTES, 1);
    MPI_Win_set_errhandler(w.win, MPI_ERRORS_RETURN);
    CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, w.win));
    for (int i = 0; i < 3; i++) CHECK_OK(MPI_Put(data, 100, MPI_INT, to, 4 * i, 1, stripes, w.win));
    CHECK_OK(MPI_Win_flush(to, w.win));
    note(MPI_Put(data, 100, MPI_INT, to, 0, 1, stripes, w.win));
    note(MPI_Get(got, 1, MPI_INT, to, 160, 1, MPI_INT, w.win));
    note(MPI_Win_unlock(to, w.win));
    CHECK(!failed == !checking, "a put of stripes and a get of one of them");
    if (checking)
        CHECK(strstr(words, "bytes 160 to 163") && strstr(words, "(call 4 ") && strstr(words, "(call 5 ") && strstr(words, "exclusive"),
              "the words are '%s'", words);
    failed = 0;
    MPI_Type_free(&stripes);
    window_close(&w);
}

/* A request that is complete says that its data may be used again, not that the target has them. */
static void requests_complete_here(void)
{
    struct window w;
    MPI_Request r[2];
    int to = (check_rank + 1) % check_size;
    window_open(&w, ALLOCATED, MPI_COMM_WORLD, BYTES, 1);
    MPI_Win_set_errhandler(w.win, MPI_ERRORS_RETURN);
    CHECK_OK(MPI_Win_lock_all(0, w.win));
    note(MPI_Rput(data, 1, MPI_INT, to, 0, 1, MPI_INT, w.win, &r[0]));
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    note(MPI_Rput(data, 1, MPI_INT, to, 0, 1, MPI_INT, w.win, &r[1]));
    MPI_Wait(&r[1], MPI_STATUS_IGNORE);
    note(MPI_Win_flush(to, w.win));
    CHECK(!failed == !checking, "two puts with requests");
    if (checking) CHECK(strstr(words, "MPI_Rput of rank"), "the words are '%s'", words);
    failed = 0;
    CHECK_OK(MPI_Win_unlock_all(w.win));
    window_close(&w);
}

/* More operations than the log has room for, and long ones. */
static void many_operations(void)
{
    enum { MANY = 5000, EACH = 64, LONG = MANY * EACH / 4 };
    static int numbers[LONG];
    int to = check_size - 1;
    struct window w;
    window_open(&w, ALLOCATED, MPI_COMM_WORLD, MANY * EACH, 1);
    MPI_Win_set_errhandler(w.win, MPI_ERRORS_RETURN);
    CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, w.win));
    for (int i = 0; i < MANY; i++) CHECK_OK(MPI_Put(data, 1, MPI_INT, to, EACH * i, 1, MPI_INT, w.win));
    CHECK_OK(MPI_Win_flush(to, w.win));
    for (int i = 0; i < MANY; i++) CHECK_OK(MPI_Put(data, EACH / 4, MPI_INT, to, EACH * i, EACH / 4, MPI_INT, w.win)); /* are joined */
    note(MPI_Put(data, 1, MPI_INT, to, 12, 1, MPI_INT, w.win));
    note(MPI_Win_flush(to, w.win));
    CHECK(!failed == !checking, "a put on bytes that the first of many has put");
    failed = 0;
    for (int i = 0; i < 3; i++) {
        CHECK_OK(MPI_Put(numbers, LONG, MPI_INT, to, 0, LONG, MPI_INT, w.win)); /* in pieces, which do not conflict */
        CHECK_OK(MPI_Win_flush(to, w.win));
    }
    CHECK_OK(MPI_Win_unlock(to, w.win));
    window_close(&w);
}

int main(int argc, char **argv)
{
    const char *check = getenv("TERN_CHECK");
    check_start(&argc, &argv);
    checking = check && strstr(check, "rma");
    conflicts_are_told();
    others_are_not_told();
    hints_change_the_rules();
    derived_types();
    requests_complete_here();
    many_operations();
    return check_done();
}
