/*
 * dataargs_test.c - count, datatype and address of a call: what is let through, and the class and words of what is not
 * (mpi/dataargs.h). A quick check and its report agree: what the one refuses the other has words for.
 */
#include "mpi/dataargs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct errhandler *quiet;           /* what is reported on goes on */
static struct type *pairs, *empty, *open_; /* ints at 0 and 8 of 16 bytes; no data; not committed */
static MPI_Datatype pairs_h, empty_h, open_h;
static int here[4];

static int open_types(void **state)
{
    int64_t lens[] = {1, 1}, displs[] = {4, 12};
    struct type *apart;
    (void)state;
    mpi_running = true;
    errh_open();
    assert_int_equal(type_open(), 0);
    quiet = errh_of(MPI_ERRORS_RETURN);
    assert_int_equal(type_indexed(2, lens, displs, TYPE_BYTES, type_of(MPI_INT), &apart), 0);
    assert_int_equal(type_resized(apart, 0, 16, &pairs), 0);
    type_unref(apart);
    assert_int_equal(type_contiguous(0, type_of(MPI_INT), &empty), 0);
    assert_int_equal(type_contiguous(2, type_of(MPI_INT), &open_), 0);
    assert_int_equal(type_commit(pairs), 0);
    assert_int_equal(type_commit(empty), 0);
    pairs_h = type_handle(pairs);
    empty_h = type_handle(empty);
    open_h = type_handle(open_);
    return 0;
}

static int close_types(void **state)
{
    (void)state;
    type_unref(pairs);
    type_unref(empty);
    type_unref(open_);
    type_close();
    handle_close();
    mpi_running = false;
    return 0;
}

/* The quick check and the report of n blocks; both say the same. The class. */
static int check(const void *buf, int64_t count, int64_t n, MPI_Datatype h)
{
    err_clear();
    bool ok = blocks_ok(buf, count, n, type_of(h));
    int klass = bad_blocks(quiet, "MPI_Call", &data_sent, buf, count, n, h);
    assert_int_equal(ok, klass == MPI_SUCCESS);
    if (n == 1) {
        assert_int_equal(data_ok(buf, count, type_of(h)), ok);
        assert_int_equal(bad_data(quiet, "MPI_Call", &data_sent, buf, count, h), klass);
    }
    return klass;
}

static void assert_says(int klass, const char *words)
{
    if (strcmp(report_last(klass), words)) fail_msg("'%s' instead of '%s'", report_last(klass), words);
}

static void good_arguments_pass(void **state)
{
    (void)state;
    const struct {
        const void *buf;
        int64_t count, n;
        MPI_Datatype type;
    } good[] = {
        {here, 4, 1, MPI_INT},
        {here, 0, 1, MPI_INT},
        {NULL, 0, 1, MPI_INT}, /* nothing to move */
        {NULL, 0, 5, MPI_INT},
        {NULL, 3, 1, pairs_h}, /* MPI_BOTTOM: addresses may be absolute */
        {NULL, 3, 1, empty_h},
        {here, INT64_MAX, 1, empty_h}, /* takes no room, however many */
        {here, INT64_MAX - 1, 1, MPI_BYTE},
        {here, INT64_MAX / 4 - 1, 1, MPI_INT},
        {here, INT64_MAX / 8, 2, MPI_INT},
        {here, INT64_MAX / 16 - 1, 1, pairs_h},
    };
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        if (check(good[i].buf, good[i].count, good[i].n, good[i].type)) fail_msg("case %zu", i);
}

static void a_wrong_count_is_told(void **state)
{
    (void)state;
    assert_int_equal(check(here, -1, 1, MPI_INT), MPI_ERR_COUNT);
    assert_says(MPI_ERR_COUNT, "MPI_Call: argument sendcount is -1, which is negative");
    assert_int_equal(check(here, INT64_MIN, 1, MPI_BYTE), MPI_ERR_COUNT);
    assert_int_equal(check(here, INT64_MIN, 4, MPI_BYTE), MPI_ERR_COUNT);   /* modulo 2^64 the product is 0 */
    assert_int_equal(check(NULL, -1, 1, MPI_DATATYPE_NULL), MPI_ERR_COUNT); /* the first that is wrong is named */
    assert_says(MPI_ERR_COUNT, "MPI_Call: argument sendcount is -1, which is negative");
}

/* Bytes or extents of more than 2^63: in one block, or in all of them. */
static void more_than_can_be_addressed_is_told(void **state)
{
    (void)state;
    assert_int_equal(check(here, INT64_MAX / 4 + 1, 1, MPI_INT), MPI_ERR_COUNT);
    assert_says(MPI_ERR_COUNT,
                "MPI_Call: argument sendcount is 2305843009213693952, of a datatype of 4 bytes: more than "
                "can be addressed");
    assert_int_equal(check(here, INT64_MAX / 16 + 1, 1, pairs_h), MPI_ERR_COUNT);
    assert_says(MPI_ERR_COUNT,
                "MPI_Call: argument sendcount is 576460752303423488, of a datatype of 16 bytes: more than "
                "can be addressed");
    assert_int_equal(check(here, INT64_MAX / 8, 3, MPI_INT), MPI_ERR_COUNT);
    assert_says(MPI_ERR_COUNT,
                "MPI_Call: argument sendcount is 1152921504606846975 in each of 3 blocks, of a datatype of 4 "
                "bytes: more than can be addressed");
    assert_int_equal(check(here, INT64_MAX, 2, MPI_BYTE), MPI_ERR_COUNT); /* the product overflows */
    assert_int_equal(check(here, INT64_MAX, 4, MPI_BYTE), MPI_ERR_COUNT);
    assert_int_equal(check(here, (int64_t)1 << 32, (int64_t)1 << 32, MPI_BYTE), MPI_ERR_COUNT); /* modulo 2^64: 0 */
}

static void a_wrong_datatype_is_told(void **state)
{
    (void)state;
    assert_int_equal(check(here, 1, 1, MPI_DATATYPE_NULL), MPI_ERR_TYPE);
    assert_says(MPI_ERR_TYPE, "MPI_Call: argument sendtype is MPI_DATATYPE_NULL");
    assert_int_equal(check(here, 1, 1, (MPI_Datatype)(uintptr_t)here), MPI_ERR_TYPE); /* no handle */
    assert_int_equal(check(here, 1, 1, (MPI_Datatype)MPI_COMM_WORLD), MPI_ERR_TYPE);  /* of something else */
    assert_int_equal(check(here, 1, 1, open_h), MPI_ERR_TYPE);
    assert_non_null(strstr(report_last(MPI_ERR_TYPE), "has not been committed"));
    assert_int_equal(check(here, 0, 1, open_h), MPI_ERR_TYPE); /* though there is nothing to move */
    assert_int_equal(check(NULL, 0, 1, MPI_DATATYPE_NULL), MPI_ERR_TYPE);
    assert_int_equal(check(NULL, 1, 1, open_h), MPI_ERR_TYPE); /* before the buffer */
}

static void a_wrong_buffer_is_told(void **state)
{
    (void)state;
    assert_int_equal(check(NULL, 1, 1, MPI_INT), MPI_ERR_BUFFER);
    assert_says(MPI_ERR_BUFFER, "MPI_Call: argument sendbuf is NULL though there is data to move");
    assert_int_equal(check(NULL, 1, 3, MPI_INT), MPI_ERR_BUFFER);
    assert_int_equal(check(MPI_IN_PLACE, 1, 1, MPI_INT), MPI_ERR_BUFFER);
    assert_says(MPI_ERR_BUFFER, "MPI_Call: argument sendbuf is MPI_IN_PLACE, which is not allowed here");
    assert_int_equal(check(MPI_IN_PLACE, 0, 1, MPI_INT), MPI_ERR_BUFFER); /* it is no address, of nothing either */
    assert_int_equal(check(MPI_IN_PLACE, 1, 1, pairs_h), MPI_ERR_BUFFER);
}

/* The same arguments have other names in other calls. */
static void arguments_are_called_as_in_the_call(void **state)
{
    static const struct {
        const struct data_names *names;
        const char *words[3];
    } calls[] = {{&data_plain, {"argument buf is", "argument count is", "argument datatype is"}},
                 {&data_buffer, {"argument buffer is", "argument count is", "argument datatype is"}},
                 {&data_sent, {"argument sendbuf is", "argument sendcount is", "argument sendtype is"}},
                 {&data_received, {"argument recvbuf is", "argument recvcount is", "argument recvtype is"}}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        bad_data(quiet, "MPI_X", calls[i].names, NULL, 1, MPI_INT);
        assert_non_null(strstr(report_last(MPI_ERR_BUFFER), calls[i].words[0]));
        bad_data(quiet, "MPI_X", calls[i].names, here, -2, MPI_INT);
        assert_non_null(strstr(report_last(MPI_ERR_COUNT), calls[i].words[1]));
        bad_data(quiet, "MPI_X", calls[i].names, here, 1, MPI_DATATYPE_NULL);
        assert_non_null(strstr(report_last(MPI_ERR_TYPE), calls[i].words[2]));
    }
}

static void in_place_is_not_between_two_groups(void **state)
{
    struct comm c = {.h.kind = HANDLE_COMM, .errh = quiet};
    (void)state;
    assert_int_equal(bad_buffer(&c, "MPI_Bcast", MPI_IN_PLACE, "buffer"), MPI_ERR_BUFFER);
    assert_says(MPI_ERR_BUFFER, "MPI_Bcast: argument buffer is MPI_IN_PLACE, which is not allowed here");
    c.inter = true;
    assert_int_equal(bad_buffer(&c, "MPI_Bcast", MPI_IN_PLACE, "buffer"), MPI_ERR_BUFFER);
    assert_says(MPI_ERR_BUFFER,
                "MPI_Bcast: argument buffer is MPI_IN_PLACE, which is not allowed on an intercommunicator");
}

static void the_same_buffer_twice_is_told(void **state)
{
    (void)state;
    assert_int_equal(bad_aliases(quiet, "MPI_Allreduce", "sendbuf", "recvbuf"), MPI_ERR_BUFFER);
    assert_says(MPI_ERR_BUFFER,
                "MPI_Allreduce: arguments sendbuf and recvbuf have data at the same address; buffers must not overlap");
}

static void only_nothing_for_nobody_needs_no_datatype(void **state)
{
    (void)state;
    assert_true(data_of_nobody(0, MPI_DATATYPE_NULL, MPI_PROC_NULL));
    assert_false(data_of_nobody(1, MPI_DATATYPE_NULL, MPI_PROC_NULL));
    assert_false(data_of_nobody(0, MPI_DATATYPE_NULL, 0));
    assert_false(data_of_nobody(0, MPI_INT, MPI_PROC_NULL));
    assert_false(data_of_nobody(0, open_h, MPI_PROC_NULL));
}

static void the_first_byte_is_that_of_the_data(void **state)
{
    (void)state;
    assert_int_equal(first_byte(here, 0, 1, type_of(MPI_INT)), (uintptr_t)here);
    assert_int_equal(first_byte(here, 8, 1, type_of(MPI_INT)), (uintptr_t)here + 8);
    assert_int_equal(first_byte(here, -8, 1, type_of(MPI_INT)), (uintptr_t)here - 8);
    assert_int_equal(first_byte(here, 0, 2, pairs), (uintptr_t)here + 4); /* behind a gap */
    assert_int_equal(first_byte(here, 0, 0, pairs), 0);
    assert_int_equal(first_byte(here, 0, 9, empty), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_arguments_pass),
        cmocka_unit_test(a_wrong_count_is_told),
        cmocka_unit_test(more_than_can_be_addressed_is_told),
        cmocka_unit_test(a_wrong_datatype_is_told),
        cmocka_unit_test(a_wrong_buffer_is_told),
        cmocka_unit_test(arguments_are_called_as_in_the_call),
        cmocka_unit_test(in_place_is_not_between_two_groups),
        cmocka_unit_test(the_same_buffer_twice_is_told),
        cmocka_unit_test(only_nothing_for_nobody_needs_no_datatype),
        cmocka_unit_test(the_first_byte_is_that_of_the_data),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_types, close_types);
}
