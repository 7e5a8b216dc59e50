/*
 * keys.c - attribute keys (MPI-5.0 section 7.7.2): freed ones serve as long as values are stored under them; wrong ones are
 * refused; the library's own cannot be changed.
 */
#include "../check.h"

static int deletes;

static int forget(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)value, (void)extra;
    deletes++;
    return MPI_SUCCESS;
}

static int forget_type(MPI_Datatype type, int keyval, void *value, void *extra)
{
    (void)type;
    return forget(MPI_COMM_NULL, keyval, value, extra);
}

/* "These references need to be explicitly freed by the program": by the number that it has kept. */
static void freed_in_use(void)
{
    int key, flag = -1;
    void *value = NULL;
    MPI_Comm c;
    MPI_Comm_dup(MPI_COMM_SELF, &c);
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key, NULL);
    int kept = key;
    MPI_Comm_set_attr(c, key, &key);
    CHECK_OK(MPI_Comm_free_keyval(&key));
    CHECK_OK(MPI_Comm_get_attr(c, kept, &value, &flag));
    CHECK(flag == 1 && value == &key, "the value under a freed key: flag %d", flag);
    CHECK_CLASS(MPI_Comm_set_attr(c, kept, NULL), MPI_ERR_KEYVAL); /* no new values */
    CHECK(deletes == 0, "deleted by a call that failed");
    int copy = kept;
    CHECK_OK(MPI_Comm_free_keyval(&copy));
    CHECK_OK(MPI_Comm_delete_attr(c, kept));
    CHECK(deletes == 1, "%d times deleted", deletes);
    CHECK_CLASS(MPI_Comm_get_attr(c, kept, &value, &flag), MPI_ERR_KEYVAL); /* now it is gone */
    MPI_Comm_free(&c);
}

static void wrong_keys(void)
{
    int key, type_key, flag = -5, invalid = MPI_KEYVAL_INVALID;
    void *value = &flag;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key, NULL);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, forget_type, &type_key, NULL);
    CHECK_CLASS(MPI_Comm_set_attr(MPI_COMM_SELF, invalid, NULL), MPI_ERR_KEYVAL);
    CHECK_CLASS(MPI_Comm_get_attr(MPI_COMM_SELF, invalid, &value, &flag), MPI_ERR_KEYVAL);
    CHECK_CLASS(MPI_Comm_delete_attr(MPI_COMM_SELF, invalid), MPI_ERR_KEYVAL);
    CHECK_CLASS(MPI_Comm_free_keyval(&invalid), MPI_ERR_KEYVAL);
    CHECK_CLASS(MPI_Keyval_free(&invalid), MPI_ERR_KEYVAL);
    CHECK_CLASS(MPI_Attr_put(MPI_COMM_SELF, invalid, NULL), MPI_ERR_KEYVAL);
    CHECK_CLASS(MPI_Comm_set_attr(MPI_COMM_SELF, type_key, NULL), MPI_ERR_KEYVAL); /* of another kind */
    CHECK_CLASS(MPI_Type_set_attr(MPI_INT, key, NULL), MPI_ERR_KEYVAL);
    CHECK_CLASS(MPI_Type_get_attr(MPI_INT, MPI_TAG_UB, &value, &flag), MPI_ERR_KEYVAL);
    CHECK_CLASS(MPI_Comm_delete_attr(MPI_COMM_SELF, key), MPI_ERR_KEYVAL); /* nothing is stored under it */
    CHECK_CLASS(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, NULL, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Comm_set_attr(MPI_COMM_NULL, key, NULL), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Type_set_attr(MPI_DATATYPE_NULL, type_key, NULL), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Comm_get_attr(MPI_COMM_SELF, key, NULL, &flag), MPI_ERR_ARG);
    CHECK(flag == -5 && value == &flag, "a call that failed set its results");
    static const int own[] = {MPI_TAG_UB, MPI_HOST, MPI_IO, MPI_WTIME_IS_GLOBAL, MPI_APPNUM, MPI_UNIVERSE_SIZE, MPI_LASTUSEDCODE};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        int k = own[i];
        CHECK_CLASS(MPI_Comm_set_attr(MPI_COMM_SELF, k, NULL), MPI_ERR_KEYVAL);
        CHECK_CLASS(MPI_Comm_delete_attr(MPI_COMM_SELF, k), MPI_ERR_KEYVAL);
        CHECK_CLASS(MPI_Comm_free_keyval(&k), MPI_ERR_KEYVAL);
        CHECK_OK(MPI_Comm_get_attr(MPI_COMM_SELF, k, &value, &flag)); /* on every communicator */
    }
    MPI_Comm_free_keyval(&key);
    MPI_Type_free_keyval(&type_key);
}

/* A clock that is said to be global: what one rank reads later is later at all. */
static void global_clock(void)
{
    int *global = NULL, flag = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &global, &flag);
    CHECK(flag == 1, "MPI_WTIME_IS_GLOBAL is not there");
    if (!flag || !*global) return;
    for (int i = 0; i < 50; i++) {
        double sent = MPI_Wtime(), came = 0;
        int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
        MPI_Sendrecv(&sent, 1, MPI_DOUBLE, right, 1, &came, 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double now = MPI_Wtime();
        CHECK(now >= came && now - came < 60, "a message left %g s after it came", came - now);
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    freed_in_use();
    wrong_keys();
    global_clock();
    return check_done();
}
