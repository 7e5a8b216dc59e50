/*
 * attributes.c - cached attributes (MPI-5.0 section 7.7): values, callbacks at duplication and freeing and in which order,
 * keys freed while in use, on communicators and datatypes; the library's own.
 */
#include "../check.h"

static int copies, deletes, refuse;
static long last_deleted, extra_seen;

static int copy(MPI_Comm old, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void)old, (void)keyval;
    extra_seen = (long)extra;
    copies++;
    if (refuse) return MPI_ERR_OTHER;
    *(void **)out = (void *)((long)in + 1);
    *flag = (long)in != 13;
    return MPI_SUCCESS;
}

static int forget(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)extra;
    deletes++;
    last_deleted = (long)value;
    return refuse ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int copy_type(MPI_Datatype old, int keyval, void *extra, void *in, void *out, int *flag)
{
    return copy(old == MPI_DATATYPE_NULL ? MPI_COMM_NULL : MPI_COMM_SELF, keyval, extra, in, out, flag);
}

static int forget_type(MPI_Datatype type, int keyval, void *value, void *extra)
{
    return forget(type == MPI_DATATYPE_NULL ? MPI_COMM_NULL : MPI_COMM_SELF, keyval, value, extra);
}

static void check_value(MPI_Comm c, int key, int there, long want)
{
    void *value = NULL;
    int flag = -1;
    CHECK_OK(MPI_Comm_get_attr(c, key, &value, &flag));
    CHECK(flag == there && (!there || (long)value == want), "flag %d, value %ld instead of %ld", flag, (long)value, want);
}

static void on_communicators(void)
{
    int key, dup_key, null_key;
    MPI_Comm c, d;
    CHECK_OK(MPI_Comm_create_keyval(copy, forget, &key, (void *)99L));
    CHECK_OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &dup_key, NULL));
    CHECK_OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &null_key, NULL));
    CHECK(key != dup_key && key != null_key && key != MPI_KEYVAL_INVALID, "keys %d %d %d", key, dup_key, null_key);
    MPI_Comm_dup(MPI_COMM_SELF, &c);
    check_value(c, key, 0, 0);
    CHECK_OK(MPI_Comm_set_attr(c, key, (void *)5L));
    CHECK_OK(MPI_Comm_set_attr(c, dup_key, (void *)6L));
    CHECK_OK(MPI_Comm_set_attr(c, null_key, (void *)7L));
    check_value(c, key, 1, 5);
    CHECK_OK(MPI_Comm_set_attr(c, key, (void *)8L)); /* the old value goes through the callback */
    CHECK(deletes == 1 && last_deleted == 5, "%d deleted, the last was %ld", deletes, last_deleted);
    MPI_Comm_dup(c, &d);
    CHECK(copies == 1 && extra_seen == 99, "%d copied, extra state %ld", copies, extra_seen);
    check_value(d, key, 1, 9);
    check_value(d, dup_key, 1, 6);
    check_value(d, null_key, 0, 0);
    CHECK_OK(MPI_Comm_delete_attr(d, key));
    CHECK(deletes == 2 && last_deleted == 9, "%d deleted, the last was %ld", deletes, last_deleted);
    check_value(d, key, 0, 0);
    MPI_Comm_free(&d);
    CHECK(deletes == 2, "freeing deleted what was not there");
    CHECK_OK(MPI_Comm_set_attr(c, key, (void *)13L)); /* the copy callback says: not this one */
    MPI_Comm_dup(c, &d);
    check_value(d, key, 0, 0);
    MPI_Comm_free(&d);
    int old = key;
    CHECK_OK(MPI_Comm_free_keyval(&key)); /* stays until the value goes */
    CHECK(key == MPI_KEYVAL_INVALID, "a freed key is %d", key);
    int again;
    CHECK_OK(MPI_Comm_create_keyval(copy, forget, &again, NULL));
    CHECK(again != old, "the number of a key in use was given out again");
    int before = deletes;
    MPI_Comm_free(&c);
    CHECK(deletes == before + 1 && last_deleted == 13, "freeing the communicator deleted %d values, the last was %ld", deletes - before,
          last_deleted);
    MPI_Comm_free_keyval(&again);
    MPI_Comm_free_keyval(&dup_key);
    MPI_Comm_free_keyval(&null_key);
}

/* A callback that fails makes the call fail. */
static void refusals(void)
{
    int key;
    MPI_Comm c, d = MPI_COMM_NULL;
    MPI_Comm_create_keyval(copy, forget, &key, NULL);
    MPI_Comm_dup(MPI_COMM_SELF, &c);
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    MPI_Comm_set_attr(c, key, (void *)1L);
    refuse = 1;
    CHECK_CLASS(MPI_Comm_dup(c, &d), MPI_ERR_OTHER);
    CHECK_CLASS(MPI_Comm_delete_attr(c, key), MPI_ERR_OTHER);
    CHECK_CLASS(MPI_Comm_free(&c), MPI_ERR_OTHER);
    check_value(c, key, 1, 1);
    refuse = 0;
    CHECK_OK(MPI_Comm_free(&c));
    MPI_Comm_free_keyval(&key);
}

static void on_types(void)
{
    int key, flag = -1, before = deletes;
    void *value = NULL;
    MPI_Datatype t, d;
    CHECK_OK(MPI_Type_create_keyval(copy_type, forget_type, &key, NULL));
    MPI_Type_contiguous(3, MPI_INT, &t);
    CHECK_OK(MPI_Type_set_attr(t, key, (void *)20L));
    CHECK_OK(MPI_Type_dup(t, &d));
    CHECK_OK(MPI_Type_get_attr(d, key, &value, &flag));
    CHECK(flag == 1 && (long)value == 21, "flag %d, value %ld", flag, (long)value);
    CHECK_OK(MPI_Type_delete_attr(d, key));
    CHECK_OK(MPI_Type_get_attr(d, key, &value, &flag));
    CHECK(flag == 0, "a deleted attribute is there");
    CHECK_OK(MPI_Type_free(&d));
    CHECK_OK(MPI_Type_free(&t));
    CHECK(deletes == before + 2, "%d deleted", deletes - before);
    CHECK_OK(MPI_Type_set_attr(MPI_INT, key, (void *)3L)); /* predefined types have attributes too */
    CHECK_OK(MPI_Type_delete_attr(MPI_INT, key));
    CHECK_OK(MPI_Type_free_keyval(&key));
}

static void of_the_library(void)
{
    int *value, flag = -1;
    CHECK_OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag));
    CHECK(flag && *value >= 32767, "MPI_TAG_UB");
    CHECK_OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &flag));
    CHECK(flag && (*value == 0 || *value == 1), "MPI_WTIME_IS_GLOBAL");
    CHECK_OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &value, &flag));
    CHECK(flag && (*value == MPI_ANY_SOURCE || *value == MPI_PROC_NULL || *value >= 0), "MPI_IO");
    CHECK_OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, &value, &flag));
    CHECK(flag && *value == MPI_PROC_NULL, "MPI_HOST");
    CHECK_OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &flag));
    CHECK(!flag || *value == 0, "MPI_APPNUM");
    CHECK_OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag));
    CHECK(flag && *value >= MPI_ERR_LASTCODE, "MPI_LASTUSEDCODE");
    CHECK_OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag));
    CHECK(!flag || *value >= check_size, "MPI_UNIVERSE_SIZE is %d", *value);
    int largest = 0, got = -1; /* the tag that is promised works */
    MPI_Request r;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag);
    MPI_Irecv(&got, 1, MPI_INT, check_rank, *value, MPI_COMM_WORLD, &r);
    MPI_Send(&largest, 1, MPI_INT, check_rank, *value, MPI_COMM_WORLD);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    CHECK(got == 0, "the largest tag");
}

/* By their first names. */
static void deprecated(void)
{
    int key, flag = -1, before = deletes;
    void *value = NULL;
    MPI_Comm c;
    MPI_Comm_dup(MPI_COMM_SELF, &c);
    CHECK_OK(MPI_Keyval_create(MPI_NULL_COPY_FN, forget, &key, NULL));
    CHECK_OK(MPI_Attr_put(c, key, (void *)4L));
    CHECK_OK(MPI_Attr_get(c, key, &value, &flag));
    CHECK(flag && (long)value == 4, "flag %d, value %ld", flag, (long)value);
    CHECK_OK(MPI_Attr_delete(c, key));
    CHECK(deletes == before + 1, "%d deleted", deletes - before);
    CHECK_OK(MPI_Keyval_free(&key));
    MPI_Comm_free(&c);
}

/* On MPI_COMM_SELF: called by MPI_Finalize, before all else, the newest first (11.2.4). */
static int order_seen;

static int at_the_end(MPI_Comm comm, int keyval, void *value, void *extra)
{
    int finalized = -1, sum = 0;
    (void)keyval, (void)extra;
    MPI_Finalized(&finalized);
    MPI_Allreduce(&(int){1}, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); /* MPI still works */
    if (finalized || comm != MPI_COMM_SELF || sum != check_size || (long)value != 2 - order_seen) order_seen = 100;
    order_seen++;
    return MPI_SUCCESS;
}

static void prepare_end(void)
{
    for (long i = 0; i < 3; i++) {
        int key;
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_the_end, &key, NULL);
        CHECK_OK(MPI_Comm_set_attr(MPI_COMM_SELF, key, (void *)i));
        MPI_Comm_free_keyval(&key);
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    on_communicators();
    refusals();
    on_types();
    of_the_library();
    deprecated();
    prepare_end();
    int rc = check_done();
    if (order_seen != 3) fprintf(stderr, "rank %d: attributes of MPI_COMM_SELF at MPI_Finalize: %d\n", check_rank, order_seen);
    return rc ? rc : order_seen != 3;
}
