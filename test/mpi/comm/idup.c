/*
 * idup.c - duplicating communicators without waiting, and with hints (MPI-5.0 section 7.4.2): several pending on the
 * same and on different communicators with other collectives between, completed in each rank's own order;
 * intercommunicators; attributes; what is wrong with arguments.
 */
#include "../check.h"

enum { IN_FLIGHT = 9, ROUNDS = 12 };

static uint64_t common, own;

static int draw(int n) { return (int)(check_random(&common) % (unsigned)n); }

/* ---- does a communicator work, and alone? ---- */

/* Every rank sends a word to the next on each of n communicators, in one order, and receives them in the other. */
static void check_apart(const MPI_Comm *c, int n)
{
    MPI_Request req[IN_FLIGHT];
    int out[IN_FLIGHT], in, rank, size, bad = 0;
    for (int i = 0; i < n; i++) {
        MPI_Comm_rank(c[i], &rank);
        MPI_Comm_size(c[i], &size);
        out[i] = 1000 * i + rank;
        CHECK_OK(MPI_Isend(&out[i], 1, MPI_INT, (rank + 1) % size, 5, c[i], &req[i]));
    }
    for (int i = n - 1; i >= 0; i--) {
        MPI_Comm_rank(c[i], &rank);
        MPI_Comm_size(c[i], &size);
        CHECK_OK(MPI_Recv(&in, 1, MPI_INT, (rank + size - 1) % size, 5, c[i], MPI_STATUS_IGNORE));
        bad += in != 1000 * i + (rank + size - 1) % size;
    }
    MPI_Waitall(n, req, MPI_STATUSES_IGNORE);
    CHECK(bad == 0, "%d of %d communicators got another one's message", bad, n);
}

static void check_like(MPI_Comm made, MPI_Comm parent)
{
    int result = -1;
    CHECK_OK(MPI_Comm_compare(made, parent, &result));
    CHECK(result == MPI_CONGRUENT, "a duplicate compares as %d", result);
}

/* ---- several pending ---- */

static void other_collective(MPI_Comm c)
{
    int one = 1, sum = 0, size;
    MPI_Comm dup;
    MPI_Comm_size(c, &size);
    switch (draw(4)) {
    case 0: CHECK_OK(MPI_Barrier(c)); break;
    case 1:
        CHECK_OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c));
        CHECK(sum == size, "the sum is %d of %d", sum, size);
        break;
    case 2:
        CHECK_OK(MPI_Comm_dup(c, &dup));
        CHECK_OK(MPI_Comm_free(&dup));
        break;
    default: break;
    }
}

static void complete(MPI_Request *req)
{
    int index, flag = 0;
    switch (check_random(&own) % 3) {
    case 0: CHECK_OK(MPI_Waitall(IN_FLIGHT, req, MPI_STATUSES_IGNORE)); break;
    case 1:
        for (int i = 0; i < IN_FLIGHT; i++) CHECK_OK(MPI_Waitany(IN_FLIGHT, req, &index, MPI_STATUS_IGNORE));
        break;
    default:
        while (!flag) CHECK_OK(MPI_Testall(IN_FLIGHT, req, &flag, MPI_STATUSES_IGNORE));
    }
}

static void several(void)
{
    MPI_Comm half, parent[3], made[IN_FLIGHT], of[IN_FLIGHT];
    MPI_Request req[IN_FLIGHT];
    MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, -check_rank, &half);
    parent[0] = MPI_COMM_WORLD, parent[1] = MPI_COMM_SELF, parent[2] = half;
    for (int i = 0; i < IN_FLIGHT; i++) {
        of[i] = parent[draw(3)];
        CHECK_OK(draw(2) ? MPI_Comm_idup(of[i], &made[i], &req[i]) : MPI_Comm_idup_with_info(of[i], MPI_INFO_NULL, &made[i], &req[i]));
        other_collective(parent[draw(3)]);
    }
    complete(req);
    for (int i = 0; i < IN_FLIGHT; i++) check_like(made[i], of[i]);
    check_apart(made, IN_FLIGHT);
    for (int i = 0; i < IN_FLIGHT; i++) CHECK_OK(MPI_Comm_free(&made[i]));
    CHECK_OK(MPI_Comm_free(&half));
}

/* Duplicates of duplicates: the parent goes while its duplication is pending. */
static void parent_goes(void)
{
    MPI_Comm parent, made;
    MPI_Request req;
    CHECK_OK(MPI_Comm_dup(MPI_COMM_WORLD, &parent));
    CHECK_OK(MPI_Comm_idup(parent, &made, &req));
    CHECK_OK(MPI_Comm_free(&parent));
    CHECK_OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    check_like(made, MPI_COMM_WORLD);
    check_apart(&made, 1);
    CHECK_OK(MPI_Comm_free(&made));
}

/* ---- before the end ---- */

static void facts(MPI_Comm made)
{
    int rank = -1, size = -1, result = -1, inter = -1;
    MPI_Group group, world;
    CHECK_OK(MPI_Comm_rank(made, &rank));
    CHECK_OK(MPI_Comm_size(made, &size));
    CHECK(rank == check_rank && size == check_size, "rank %d of %d", rank, size);
    CHECK_OK(MPI_Comm_test_inter(made, &inter));
    CHECK(!inter, "an intercommunicator");
    CHECK_OK(MPI_Comm_compare(made, MPI_COMM_WORLD, &result));
    CHECK(result == MPI_CONGRUENT, "compares as %d", result);
    CHECK_OK(MPI_Comm_group(made, &group));
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_compare(group, world, &result);
    CHECK(result == MPI_IDENT, "its group compares as %d", result);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
}

static void belongings(MPI_Comm made, int key)
{
    static char mine;
    char name[MPI_MAX_OBJECT_NAME] = "", hint[8] = "";
    void *value = NULL;
    int len, flag = 0, kind = 0, hint_len = sizeof hint;
    MPI_Errhandler h;
    MPI_Info info;
    CHECK_OK(MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN));
    CHECK_OK(MPI_Comm_get_errhandler(made, &h));
    CHECK(h == MPI_ERRORS_RETURN, "another error handler");
    MPI_Errhandler_free(&h);
    CHECK_OK(MPI_Comm_set_name(made, "to be"));
    CHECK_OK(MPI_Comm_get_name(made, name, &len));
    CHECK(!strcmp(name, "to be"), "its name is '%s'", name);
    CHECK_OK(MPI_Comm_set_attr(made, key, &mine));
    CHECK_OK(MPI_Comm_get_attr(made, key, &value, &flag));
    CHECK(flag && value == &mine, "flag %d", flag);
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
    CHECK_OK(MPI_Comm_set_info(made, info));
    MPI_Info_free(&info);
    CHECK_OK(MPI_Comm_get_info(made, &info));
    CHECK_OK(MPI_Info_get_string(info, "mpi_assert_no_any_tag", &hint_len, hint, &flag));
    CHECK(flag && !strcmp(hint, "true"), "the hint is '%s'", hint);
    MPI_Info_free(&info);
    CHECK_OK(MPI_Topo_test(made, &kind));
    CHECK(kind == MPI_UNDEFINED, "topology %d", kind);
}

/* What needs no context is there from the call on. Rank 0 takes part only when the others have looked. */
static void not_yet(void)
{
    MPI_Comm made;
    MPI_Request req;
    int token = 0, key, flag = 0;
    void *value;
    CHECK_OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL));
    if (check_rank == 0)
        for (int r = 1; r < check_size; r++) MPI_Recv(&token, 1, MPI_INT, r, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_OK(MPI_Comm_idup(MPI_COMM_WORLD, &made, &req));
    facts(made);
    belongings(made, key);
    if (check_rank) {
        CHECK_WORDS(MPI_Barrier(made), MPI_ERR_COMM, "still being duplicated");
        CHECK_WORDS(MPI_Send(&token, 1, MPI_INT, 0, 3, made), MPI_ERR_COMM, "still being duplicated");
        MPI_Send(&token, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
    }
    CHECK_OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_Comm_get_attr(made, key, &value, &flag));
    CHECK(flag, "the attribute is lost");
    check_apart(&made, 1);
    CHECK_OK(MPI_Comm_free(&made));
    CHECK_OK(MPI_Comm_free_keyval(&key));
}

/* ---- attributes ---- */

static int copies, deletions, refuse;

static int copy_fn(MPI_Comm c, int key, void *extra, void *value, void *out, int *flag)
{
    (void)c, (void)key, (void)extra;
    copies++;
    if (refuse) return MPI_ERR_OTHER;
    *(void **)out = (char *)value + 1;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete_fn(MPI_Comm c, int key, void *value, void *extra)
{
    (void)c, (void)key, (void)value, (void)extra;
    deletions++;
    return MPI_SUCCESS;
}

/* Callbacks run at the call, not at completion. */
static void attributes(void)
{
    static char values[3];
    MPI_Comm made;
    MPI_Request req;
    int key, flag, rc;
    void *value = NULL;
    CHECK_OK(MPI_Comm_create_keyval(copy_fn, delete_fn, &key, NULL));
    CHECK_OK(MPI_Comm_set_attr(MPI_COMM_WORLD, key, values));
    copies = deletions = 0;
    CHECK_OK(MPI_Comm_idup(MPI_COMM_WORLD, &made, &req));
    CHECK(copies == 1, "%d copies at the call", copies);
    CHECK_OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_Comm_get_attr(made, key, &value, &flag));
    CHECK(copies == 1 && flag && value == values + 1, "flag %d, %d copies", flag, copies);
    CHECK_OK(MPI_Comm_free(&made));
    CHECK(deletions == 1, "%d deletions", deletions);

    refuse = check_rank == 0; /* one refuses; the others get their communicator, of which it is no part */
    req = MPI_REQUEST_NULL;
    rc = MPI_Comm_idup(MPI_COMM_WORLD, &made, &req);
    if (refuse) {
        CHECK_CLASS(rc, MPI_ERR_OTHER);
        CHECK(req == MPI_REQUEST_NULL, "a call that failed set its request");
    } else {
        CHECK_OK(rc);
        CHECK_OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        CHECK_OK(MPI_Comm_free(&made));
    }
    refuse = 0;
    CHECK_OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_OK(MPI_Comm_delete_attr(MPI_COMM_WORLD, key));
    CHECK_OK(MPI_Comm_free_keyval(&key));
}

/* ---- intercommunicators ---- */

/* A word from every rank to every rank of the other group, and merging: contexts and groups are right. */
static void check_inter(MPI_Comm c, int mark)
{
    int rank, size, remote, bad = 0, in;
    MPI_Comm merged;
    MPI_Request req[64];
    MPI_Comm_rank(c, &rank);
    MPI_Comm_remote_size(c, &remote);
    int out = 100 * mark + rank;
    for (int r = 0; r < remote; r++) CHECK_OK(MPI_Isend(&out, 1, MPI_INT, r, 2, c, &req[r]));
    for (int r = 0; r < remote; r++) {
        CHECK_OK(MPI_Recv(&in, 1, MPI_INT, r, 2, c, MPI_STATUS_IGNORE));
        bad += in != 100 * mark + r;
    }
    MPI_Waitall(remote, req, MPI_STATUSES_IGNORE);
    CHECK(bad == 0, "%d wrong words from the other group", bad);
    CHECK_OK(MPI_Intercomm_merge(c, 0, &merged));
    MPI_Comm_size(merged, &size);
    CHECK(size == check_size, "%d ranks merged", size);
    CHECK_OK(MPI_Comm_free(&merged));
}

static void inter(void)
{
    MPI_Comm half, c, made[5], between;
    MPI_Request req[5];
    if (check_size < 2) return;
    MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, 0, &half);
    CHECK_OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, check_rank % 2 ? 0 : 1, 7, &c));
    for (int i = 0; i < 5; i++) {
        CHECK_OK(MPI_Comm_idup(c, &made[i], &req[i]));
        if (i != 2) continue;
        CHECK_OK(MPI_Comm_dup(c, &between));
        check_inter(between, 9);
        CHECK_OK(MPI_Comm_free(&between));
    }
    if (check_rank % 3 == 0)
        for (int i = 4; i >= 0; i--) CHECK_OK(MPI_Wait(&req[i], MPI_STATUS_IGNORE));
    else CHECK_OK(MPI_Waitall(5, req, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 5; i++) {
        check_like(made[i], c);
        check_inter(made[i], i);
    }
    CHECK_OK(MPI_Comm_free(&c));
    CHECK_OK(MPI_Comm_idup(made[0], &c, &req[0]));
    CHECK_OK(MPI_Comm_free(&made[0]));
    CHECK_OK(MPI_Wait(&req[0], MPI_STATUS_IGNORE));
    check_inter(c, 3);
    for (int i = 1; i < 5; i++) CHECK_OK(MPI_Comm_free(&made[i]));
    CHECK_OK(MPI_Comm_free(&c));
    CHECK_OK(MPI_Comm_free(&half));
}

/* ---- hints and arguments ---- */

static void with_info(void)
{
    MPI_Comm made;
    CHECK_OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &made));
    check_like(made, MPI_COMM_WORLD);
    CHECK_OK(MPI_Comm_free(&made));
}

static void wrong_arguments(void)
{
    MPI_Comm made = MPI_COMM_NULL, freed;
    MPI_Request req = MPI_REQUEST_NULL;
    MPI_Comm_dup(MPI_COMM_SELF, &freed);
    MPI_Comm copy = freed;
    MPI_Comm_free(&freed);
    CHECK_CLASS(MPI_Comm_idup(MPI_COMM_NULL, &made, &req), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Comm_idup(copy, &made, &req), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Comm_idup(MPI_COMM_WORLD, NULL, &req), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Comm_idup(MPI_COMM_WORLD, &made, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Comm_idup_with_info(MPI_COMM_WORLD, (MPI_Info)MPI_COMM_WORLD, &made, &req), MPI_ERR_INFO);
    CHECK_CLASS(MPI_Comm_dup_with_info(MPI_COMM_WORLD, (MPI_Info)MPI_COMM_WORLD, &made), MPI_ERR_INFO);
    CHECK_CLASS(MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, NULL), MPI_ERR_ARG);
    CHECK(made == MPI_COMM_NULL && req == MPI_REQUEST_NULL, "calls that failed set their results");
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    common = check_seed();
    own = common * 31 + (uint64_t)check_rank + 1;
    not_yet();
    for (int i = 0; i < ROUNDS; i++) several();
    parent_goes();
    attributes();
    inter();
    with_info();
    wrong_arguments();
    return check_done();
}
