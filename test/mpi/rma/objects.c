/*
 * objects.c - windows as objects: attributes, hints, names, groups, error handlers, what they share; and calls in the wrong
 * order or beyond the memory, which are errors in words.
 */
#include "windows.h"

static void attribute_is(MPI_Win win, int key, intptr_t want, bool by_pointer)
{
    void *value = NULL;
    int flag = 0;
    CHECK_OK(MPI_Win_get_attr(win, key, &value, &flag));
    intptr_t is = !flag || !by_pointer ? (intptr_t)value : key == MPI_WIN_SIZE ? (intptr_t) * (MPI_Aint *)value : (intptr_t) * (int *)value;
    CHECK(flag && is == want, "attribute %d is %ld, not %ld", key, (long)is, (long)want);
}

static void attributes_tell_of_it(void)
{
    static const int flavors[KINDS] = {MPI_WIN_FLAVOR_CREATE, MPI_WIN_FLAVOR_CREATE,  MPI_WIN_FLAVOR_ALLOCATE, MPI_WIN_FLAVOR_SHARED,
                                       MPI_WIN_FLAVOR_SHARED, MPI_WIN_FLAVOR_DYNAMIC, MPI_WIN_FLAVOR_DYNAMIC};
    for (enum kind kind = 0; kind < KINDS; kind++) {
        struct window w;
        if (!window_open(&w, kind, MPI_COMM_WORLD, 64, 4)) continue;
        bool dynamic = flavors[kind] == MPI_WIN_FLAVOR_DYNAMIC;
        attribute_is(w.win, MPI_WIN_BASE, dynamic ? 0 : (intptr_t)w.base, false);
        attribute_is(w.win, MPI_WIN_SIZE, dynamic ? 0 : 64, true);
        attribute_is(w.win, MPI_WIN_DISP_UNIT, dynamic ? 1 : 4, true);
        attribute_is(w.win, MPI_WIN_CREATE_FLAVOR, flavors[kind], true);
        attribute_is(w.win, MPI_WIN_MODEL, MPI_WIN_UNIFIED, true);
        window_close(&w);
    }
}

static int copies, deletes;
static int on_delete(MPI_Win win, int key, void *value, void *extra)
{
    (void)win, (void)key;
    deletes += value == &copies && extra == &deletes;
    return MPI_SUCCESS;
}

static void users_attributes_go_with_it(void)
{
    MPI_Win win;
    int key, flag;
    void *value;
    CHECK_OK(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    CHECK_OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_delete, &key, &deletes));
    CHECK_OK(MPI_Win_get_attr(win, key, &value, &flag));
    CHECK(!flag, "an attribute that was not set");
    CHECK_OK(MPI_Win_set_attr(win, key, &copies));
    CHECK_OK(MPI_Win_get_attr(win, key, &value, &flag));
    CHECK(flag && value == &copies, "the attribute is not what was set");
    CHECK_OK(MPI_Win_delete_attr(win, key));
    CHECK(deletes == 1, "%d calls of the delete function", deletes);
    CHECK_OK(MPI_Win_set_attr(win, key, &copies));
    CHECK_OK(MPI_Win_free(&win));
    CHECK(deletes == 2, "%d calls of the delete function after MPI_Win_free", deletes);
    CHECK_OK(MPI_Win_free_keyval(&key));
}

static void names_hints_and_groups(void)
{
    MPI_Win win;
    MPI_Info info, used;
    MPI_Group group, world;
    char name[MPI_MAX_OBJECT_NAME], value[64];
    int n, flag, result;
    MPI_Info_create(&info);
    MPI_Info_set(info, "no_locks", "true");
    MPI_Info_set(info, "accumulate_ordering", "raw,nonsense");
    CHECK_OK(MPI_Win_create(NULL, 0, 1, info, MPI_COMM_WORLD, &win));
    CHECK_OK(MPI_Win_get_name(win, name, &n));
    CHECK(n == 0 && !*name, "a new window is called '%s'", name);
    CHECK_OK(MPI_Win_set_name(win, "pane"));
    CHECK_OK(MPI_Win_get_name(win, name, &n));
    CHECK(n == 4 && !strcmp(name, "pane"), "the name is '%s'", name);
    CHECK_OK(MPI_Win_get_info(win, &used));
    MPI_Info_get(used, "no_locks", 63, value, &flag);
    CHECK(flag && !strcmp(value, "true"), "no_locks is not what was given");
    MPI_Info_get(used, "accumulate_ordering", 63, value, &flag);
    CHECK(flag && !strcmp(value, "rar,raw,war,waw"), "a hint that makes no sense was taken");
    MPI_Info_free(&used);
    MPI_Info_set(info, "no_locks", "false");
    CHECK_OK(MPI_Win_set_info(win, info));
    CHECK_OK(MPI_Win_get_info(win, &used));
    MPI_Info_get(used, "no_locks", 63, value, &flag);
    CHECK(flag && !strcmp(value, "false"), "no_locks was not set");
    MPI_Info_free(&used);
    MPI_Info_free(&info);
    CHECK_OK(MPI_Win_get_group(win, &group));
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_compare(group, world, &result);
    CHECK(result == MPI_IDENT, "the group of the window is another one");
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    CHECK_OK(MPI_Win_free(&win));
}

static int handled;
static void on_error(MPI_Win *win, int *code, ...)
{
    (void)win;
    MPI_Error_class(*code, &handled);
}

static void errors_go_to_its_handler(void)
{
    MPI_Win win;
    MPI_Errhandler own, is;
    CHECK_OK(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    CHECK_OK(MPI_Win_get_errhandler(win, &is));
    CHECK(is == MPI_ERRORS_ARE_FATAL, "the first handler is another one");
    CHECK_OK(MPI_Win_create_errhandler(on_error, &own));
    CHECK_OK(MPI_Win_set_errhandler(win, own));
    MPI_Errhandler_free(&own);
    CHECK_CLASS(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC);
    CHECK(handled == MPI_ERR_RMA_SYNC, "the handler was called with class %d", handled);
    CHECK_OK(MPI_Win_call_errhandler(win, MPI_ERR_OTHER));
    CHECK(handled == MPI_ERR_OTHER, "the handler was called with class %d", handled);
    CHECK_OK(MPI_Win_free(&win));
}

static void calls_in_the_wrong_order(void)
{
    struct window w;
    int x = 7;
    MPI_Group self, all;
    MPI_Comm_group(MPI_COMM_SELF, &self);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    window_open(&w, CREATED, MPI_COMM_WORLD, 64, 1);
    MPI_Win_set_errhandler(w.win, MPI_ERRORS_RETURN);
    CHECK_WORDS(MPI_Put(&x, 1, MPI_INT, 0, 0, 1, MPI_INT, w.win), MPI_ERR_RMA_SYNC, "no access epoch to rank 0 is open");
    CHECK_CLASS(MPI_Win_flush(0, w.win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_flush_all(w.win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_flush_local(0, w.win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_flush_local_all(w.win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_unlock_all(w.win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_complete(w.win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_wait(w.win), MPI_ERR_RMA_SYNC);
    CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, w.win));
    CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, w.win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_lock_all(0, w.win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_start(self, 0, w.win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_fence(0, w.win), MPI_ERR_RMA_SYNC);
    MPI_Win kept = w.win;
    CHECK_CLASS(MPI_Win_free(&kept), MPI_ERR_RMA_SYNC);
    if (check_size > 1) CHECK_CLASS(MPI_Put(&x, 1, MPI_INT, (check_rank + 1) % check_size, 0, 1, MPI_INT, w.win), MPI_ERR_RMA_SYNC);
    CHECK_OK(MPI_Win_unlock(check_rank, w.win));
    CHECK_OK(MPI_Win_post(all, 0, w.win));
    CHECK_CLASS(MPI_Win_post(all, 0, w.win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_fence(0, w.win), MPI_ERR_RMA_SYNC);
    CHECK_OK(MPI_Win_start(all, 0, w.win));
    CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w.win), MPI_ERR_RMA_SYNC);
    CHECK_OK(MPI_Win_complete(w.win));
    CHECK_OK(MPI_Win_wait(w.win));
    MPI_Group_free(&self);
    MPI_Group_free(&all);
    window_close(&w);
}

static void operations_outside_of_their_epochs(void)
{
    struct window w;
    MPI_Request r;
    MPI_Group none, last;
    int x = 0, to = check_size - 1;
    window_open(&w, CREATED, MPI_COMM_WORLD, 64, 1);
    MPI_Win_set_errhandler(w.win, MPI_ERRORS_RETURN);
    MPI_Comm_group(MPI_COMM_WORLD, &last);
    MPI_Group_incl(last, 0, NULL, &none);
    CHECK_CLASS(MPI_Put(&x, 1, MPI_INT, to, 0, 1, MPI_INT, w.win), MPI_ERR_RMA_SYNC);
    CHECK_OK(MPI_Win_start(none, 0, w.win));
    CHECK_CLASS(MPI_Get(&x, 1, MPI_INT, to, 0, 1, MPI_INT, w.win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_start(none, 0, w.win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_lock_all(0, w.win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_flush(to, w.win), MPI_ERR_RMA_SYNC);
    CHECK_OK(MPI_Win_complete(w.win));
    CHECK_OK(MPI_Win_fence(0, w.win));
    CHECK_WORDS(MPI_Rget(&x, 1, MPI_INT, to, 0, 1, MPI_INT, w.win, &r), MPI_ERR_RMA_SYNC, "operations with requests");
    CHECK_OK(MPI_Get(&x, 1, MPI_INT, to, 0, 1, MPI_INT, w.win));
    CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, w.win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_start(none, 0, w.win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_flush_all(w.win), MPI_ERR_RMA_SYNC);
    MPI_Win kept = w.win;
    CHECK_WORDS(MPI_Win_free(&kept), MPI_ERR_RMA_SYNC, "MPI_Win_fence must end its epoch");
    CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, w.win));
    CHECK_CLASS(MPI_Accumulate(&x, 1, MPI_INT, to, 0, 1, MPI_INT, MPI_SUM, w.win), MPI_ERR_RMA_SYNC);
    MPI_Group_free(&none);
    MPI_Group_free(&last);
    window_close(&w);
}

/* What lies outside of the memory is refused, and nothing is touched: by the operation, or at the end of the epoch. */
static void beyond_the_memory(void)
{
    for (enum kind kind = 0; kind < KINDS; kind++) {
        struct window w;
        int x[32], to = (check_rank + 1) % check_size, class = MPI_SUCCESS;
        memset(x, 0x55, sizeof x);
        if (!window_open(&w, kind, MPI_COMM_WORLD, 64, 1)) continue;
        MPI_Win_set_errhandler(w.win, MPI_ERRORS_RETURN);
        CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, w.win));
        int rc = MPI_Put(x, 1, MPI_INT, to, window_place(&w, to, 61), 1, MPI_INT, w.win), end = MPI_Win_unlock(to, w.win);
        if (rc || end) MPI_Error_class(rc ? rc : end, &class);
        CHECK(class == MPI_ERR_RMA_RANGE, "%s: class %d of a put beyond the memory", kind_name[kind], class);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < 64; i++) CHECK(!w.base[i], "%s: byte %d was written", kind_name[kind], i);
        window_close(&w);
    }
}

/* Memory of others that is reached by loads and stores. */
static void shared_memory_is_found(void)
{
    struct window w;
    MPI_Aint bytes, unit;
    int small_unit, *base;
    if (!window_open(&w, SHARED, MPI_COMM_WORLD, 16 * (check_rank + 1), 4)) return;
    ((int *)w.base)[0] = 100 + check_rank;
    CHECK_OK(MPI_Win_fence(0, w.win));
    for (int r = 0; r < check_size; r++) {
        CHECK_OK(MPI_Win_shared_query(w.win, r, &bytes, &small_unit, &base));
        CHECK(bytes == 16 * (r + 1) && small_unit == 4 && base[0] == 100 + r, "rank %d: %ld bytes, unit %d", r, (long)bytes, small_unit);
        CHECK_OK(MPI_Win_shared_query_c(w.win, r, &bytes, &unit, &base));
        CHECK(bytes == 16 * (r + 1) && unit == 4 && base[0] == 100 + r, "rank %d: %ld bytes, unit %ld", r, (long)bytes, (long)unit);
    }
    CHECK_OK(MPI_Win_shared_query(w.win, MPI_PROC_NULL, &bytes, &small_unit, &base));
    CHECK(bytes == 16 && base[0] == 100, "the first memory has %ld bytes", (long)bytes);
    CHECK_OK(MPI_Win_fence(0, w.win));
    window_close(&w);
}

/* The calls for large units and sizes. */
static void by_large_counts(void)
{
    MPI_Win win;
    int *base, x[4] = {0};
    CHECK_OK(MPI_Win_create_c(x, sizeof x, sizeof x[0], MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    CHECK_OK(MPI_Win_free(&win));
    CHECK_OK(MPI_Win_allocate_c(64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    base[15] = 1;
    CHECK_OK(MPI_Win_free(&win));
    CHECK_OK(MPI_Win_allocate_shared_c(64, 4, MPI_INFO_NULL, MPI_COMM_SELF, &base, &win));
    base[15] = 1;
    CHECK_OK(MPI_Win_free(&win));
}

static void attached_memory(void)
{
    MPI_Win win;
    static int x[16], y[16];
    int to = (check_rank + 1) % check_size, one[16], got[16];
    MPI_Aint at, place;
    CHECK_OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    CHECK_OK(MPI_Win_attach(win, x, sizeof x));
    CHECK_CLASS(MPI_Win_attach(win, x + 3, sizeof *x), MPI_ERR_RMA_ATTACH);
    CHECK_OK(MPI_Win_attach(win, y, sizeof y));
    CHECK_OK(MPI_Win_attach(win, y, 0));
    CHECK_OK(MPI_Win_detach(win, y));
    CHECK_OK(MPI_Win_detach(win, y));
    CHECK_CLASS(MPI_Win_detach(win, y), MPI_ERR_RMA_ATTACH);
    MPI_Get_address(x, &at);
    for (int i = 0; i < 16; i++) one[i] = 1000 * check_rank + i;
    MPI_Sendrecv(&at, 1, MPI_AINT, (check_rank + check_size - 1) % check_size, 1, &place, 1, MPI_AINT, to, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win));
    CHECK_OK(MPI_Put(one, 16, MPI_INT, to, place, 16, MPI_INT, win));
    CHECK_OK(MPI_Win_flush(to, win));
    CHECK_OK(MPI_Get(got, 8, MPI_INT, to, MPI_Aint_add(place, 8 * sizeof(int)), 8, MPI_INT, win));
    CHECK_OK(MPI_Win_unlock(to, win));
    CHECK(!memcmp(got, one + 8, 8 * sizeof(int)), "what was put is not what is got");
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_detach(win, x));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win));
    int rc = MPI_Put(one, 16, MPI_INT, to, place, 16, MPI_INT, win), end = MPI_Win_unlock(to, win);
    CHECK_WORDS(rc ? rc : end, MPI_ERR_RMA_RANGE, "not attached");
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_free(&win));
}

/* An accumulate on two pieces is not overtaken by a later one on one of them (12.7.2). */
static void pieces_in_order(void)
{
    MPI_Win win;
    static int x[16], seven[16], one = 1;
    int to = (check_rank + 1) % check_size;
    MPI_Aint at, place;
    CHECK_OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    CHECK_OK(MPI_Win_attach(win, x, 8 * sizeof *x));
    CHECK_OK(MPI_Win_attach(win, x + 8, 8 * sizeof *x));
    MPI_Get_address(x, &at);
    for (int i = 0; i < 16; i++) seven[i] = 7;
    MPI_Sendrecv(&at, 1, MPI_AINT, (check_rank + check_size - 1) % check_size, 1, &place, 1, MPI_AINT, to, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win));
    CHECK_OK(MPI_Accumulate(seven, 16, MPI_INT, to, place, 16, MPI_INT, MPI_REPLACE, win));
    CHECK_OK(MPI_Accumulate(&one, 1, MPI_INT, to, place, 1, MPI_INT, MPI_SUM, win));
    CHECK_OK(MPI_Win_unlock(to, win));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(x[0] == 8 && x[1] == 7 && x[15] == 7, "the numbers are %d, %d and %d", x[0], x[1], x[15]);
    CHECK_OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    attributes_tell_of_it();
    users_attributes_go_with_it();
    names_hints_and_groups();
    errors_go_to_its_handler();
    calls_in_the_wrong_order();
    operations_outside_of_their_epochs();
    beyond_the_memory();
    shared_memory_is_found();
    by_large_counts();
    attached_memory();
    pieces_in_order();
    return check_done();
}
