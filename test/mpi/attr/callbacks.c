/*
 * callbacks.c - what attribute callbacks may do (MPI-5.0 sections 7.7.2, 7.7.4): refuse, use MPI, change other attributes;
 * in which order they run.
 */
#include "../check.h"

static int other_key = MPI_KEYVAL_INVALID;
static long order[8];
static int order_n, refuse;

static int copy(MPI_Comm old, int keyval, void *extra, void *in, void *out, int *flag)
{
    int size = -1;
    (void)keyval, (void)extra;
    if (refuse) return MPI_ERR_OTHER;
    MPI_Comm_size(old, &size); /* the old communicator works */
    if (order_n < 8) order[order_n++] = size > 0 ? (long)in : -1;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static int forget(MPI_Comm comm, int keyval, void *value, void *extra)
{
    int sum = 0, one = 1;
    (void)keyval, (void)extra;
    if (refuse) return MPI_ERR_OTHER;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm); /* so does the one that goes */
    if (order_n < 8) order[order_n++] = sum == check_size ? (long)value : -1;
    return MPI_SUCCESS;
}

/* Deletes another attribute of the same object, and sets a new one. */
static int meddle(MPI_Comm comm, int keyval, void *value, void *extra)
{
    int flag = 0;
    void *there;
    (void)keyval, (void)value, (void)extra;
    MPI_Comm_get_attr(comm, other_key, &there, &flag);
    if (flag) MPI_Comm_delete_attr(comm, other_key);
    return MPI_SUCCESS;
}

static void in_order(void)
{
    int key[3];
    MPI_Comm c, d;
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    for (long i = 0; i < 3; i++) {
        MPI_Comm_create_keyval(copy, forget, &key[i], NULL);
        CHECK_OK(MPI_Comm_set_attr(c, key[i], (void *)(i + 1)));
    }
    CHECK_OK(MPI_Comm_dup(c, &d));
    CHECK(order_n == 3 && order[0] == 1 && order[2] == 3, "copied: %d, %ld %ld %ld", order_n, order[0], order[1], order[2]);
    order_n = 0;
    CHECK_OK(MPI_Comm_free(&d));
    CHECK(order_n == 3 && order[0] + order[1] + order[2] == 6 && order[0] > 0 && order[1] > 0, "deleted: %d, %ld %ld %ld", order_n,
          order[0], order[1], order[2]);
    order_n = 0;
    CHECK_OK(MPI_Comm_set_attr(c, key[0], (void *)9L)); /* the old value goes first */
    CHECK(order_n == 1 && order[0] == 1, "overwritten: %d, %ld", order_n, order[0]);
    MPI_Comm_free(&c);
    for (int i = 0; i < 3; i++) MPI_Comm_free_keyval(&key[i]);
}

static void refusing(void)
{
    int key, flag = -1;
    void *value = NULL;
    MPI_Comm c, d = MPI_COMM_SELF;
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    MPI_Comm_create_keyval(copy, forget, &key, NULL);
    MPI_Comm_set_attr(c, key, (void *)4L);
    refuse = 1;
    CHECK_CLASS(MPI_Comm_dup(c, &d), MPI_ERR_OTHER);
    CHECK(d == MPI_COMM_NULL, "a duplicate that was refused");
    CHECK_CLASS(MPI_Comm_set_attr(c, key, (void *)5L), MPI_ERR_OTHER);
    MPI_Comm_get_attr(c, key, &value, &flag);
    CHECK(flag && (long)value == 4, "the value was changed though its deletion was refused: %ld", (long)value);
    refuse = 0;
    MPI_Comm_free(&c);
    MPI_Comm_free_keyval(&key);
}

static void meddling(void)
{
    int key, flag = -1;
    void *value;
    MPI_Comm c;
    MPI_Comm_dup(MPI_COMM_SELF, &c);
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, meddle, &key, NULL);
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &other_key, NULL);
    for (int way = 0; way < 3; way++) {
        MPI_Comm_set_attr(c, way == 1 ? other_key : key, (void *)1L);
        MPI_Comm_set_attr(c, way == 1 ? key : other_key, (void *)2L);
        if (way == 2) CHECK_OK(MPI_Comm_set_attr(c, key, (void *)3L));
        else CHECK_OK(MPI_Comm_delete_attr(c, key));
        MPI_Comm_get_attr(c, other_key, &value, &flag);
        CHECK(flag == 0, "way %d: the callback deleted nothing", way);
        MPI_Comm_get_attr(c, key, &value, &flag);
        CHECK(flag == (way == 2) && (way < 2 || (long)value == 3), "way %d: flag %d", way, flag);
    }
    MPI_Comm_set_attr(c, other_key, (void *)2L);
    CHECK_OK(MPI_Comm_free(&c));
    MPI_Comm_free_keyval(&key);
    MPI_Comm_free_keyval(&other_key);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    in_order();
    refusing();
    meddling();
    return check_done();
}
