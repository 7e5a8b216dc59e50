/*
 * fromgroup.c - communicators made from groups alone (MPI-5.0 7.4.2, 7.6.2): in turn and by halves, with members that come
 * late, by threads with tags of their own, from a session; intercommunicators; what they get, and what they refuse.
 */
#include "../check.h"
#include <pthread.h>
#include <unistd.h>

static MPI_Group everybody;
static int handled; /* calls of the error handler */

static void handler(MPI_Comm *c, int *code, ...)
{
    (void)c, (void)code;
    handled++;
}

static MPI_Group range_of(int first, int last)
{
    MPI_Group g;
    int range[1][3] = {{first, last, first <= last ? 1 : -1}};
    CHECK_OK(MPI_Group_range_incl(everybody, 1, range, &g));
    return g;
}

static MPI_Comm make(MPI_Group g, const char *tag)
{
    MPI_Comm c = MPI_COMM_NULL;
    CHECK_OK(MPI_Comm_create_from_group(g, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
    return c;
}

/* Works, with this rank and size: a sum, and a ring. */
static void works(MPI_Comm c, int rank, int size, const char *what)
{
    int r = -1, n = -1, sum = 0, one = 1, from = -1;
    CHECK_OK(MPI_Comm_rank(c, &r));
    CHECK_OK(MPI_Comm_size(c, &n));
    CHECK(r == rank && n == size, "%s: rank %d of %d instead of %d of %d", what, r, n, rank, size);
    CHECK_OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c));
    CHECK(sum == size, "%s: the sum of %d ones is %d", what, size, sum);
    CHECK_OK(MPI_Sendrecv(&r, 1, MPI_INT, (r + 1) % n, 0, &from, 1, MPI_INT, (r + n - 1) % n, 0, c, MPI_STATUS_IGNORE));
    CHECK(from == (r + n - 1) % n, "%s: the left neighbour says it is %d", what, from);
}

static void all_and_halves(void)
{
    int half = check_size / 2, low = check_rank < half;
    MPI_Group g = range_of(check_size - 1, 0);
    MPI_Comm c = make(g, "org.example.backwards"), d;
    works(c, check_size - 1 - check_rank, check_size, "backwards");
    MPI_Group_free(&g);
    d = make(everybody, "org.example.backwards"); /* the same tag, another group */
    works(d, check_rank, check_size, "everybody");
    CHECK_OK(MPI_Comm_free(&d));
    CHECK_OK(MPI_Comm_free(&c));
    g = low ? range_of(0, half - 1) : range_of(half, check_size - 1);
    c = make(g, "halves");
    works(c, low ? check_rank : check_rank - half, low ? half : check_size - half, "half");
    MPI_Comm_free(&c);
    MPI_Group_free(&g);
    g = range_of(check_rank, check_rank);
    c = make(g, "");
    works(c, 0, 1, "alone");
    MPI_Comm_free(&c);
    MPI_Group_free(&g);
    CHECK_OK(MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "nobody", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
    CHECK(c == MPI_COMM_NULL, "a communicator of nobody");
}

/* Many with one tag; now and then somebody is late, and what is for a later one has to wait for it. */
static void again_and_again(void)
{
    uint64_t state = check_seed();
    for (int i = 0; i < 300; i++) {
        int late = (int)(check_random(&state) % 40), got = -1, left = (check_rank + check_size - 1) % check_size;
        if (late == check_rank) usleep(500);
        MPI_Comm c = make(everybody, "again");
        MPI_Request r;
        CHECK_OK(MPI_Isend(&i, 1, MPI_INT, (check_rank + 1) % check_size, 3, c, &r)); /* maybe before it exists there */
        CHECK_OK(MPI_Recv(&got, 1, MPI_INT, left, 3, c, MPI_STATUS_IGNORE));
        CHECK(got == i, "communicator %d got the message of %d", i, got);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        CHECK_OK(MPI_Comm_free(&c));
    }
}

static void what_it_is_given(void)
{
    MPI_Errhandler e, is;
    MPI_Info info, used;
    MPI_Comm c;
    char value[8] = "";
    int flag = 0, len = sizeof value;
    MPI_Comm_create_errhandler(handler, &e);
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
    CHECK_OK(MPI_Comm_create_from_group(everybody, "given", info, e, &c));
    CHECK_OK(MPI_Comm_get_errhandler(c, &is));
    CHECK(is == e, "another error handler than the one given");
    MPI_Errhandler_free(&is);
    handled = 0;
    CHECK_CLASS(MPI_Send(NULL, 0, MPI_INT, check_size, 0, c), MPI_ERR_RANK);
    CHECK(handled == 1, "the handler was called %d times", handled);
    CHECK_OK(MPI_Comm_get_info(c, &used));
    CHECK_OK(MPI_Info_get_string(used, "mpi_assert_no_any_tag", &len, value, &flag));
    CHECK(flag && !strcmp(value, "true"), "the hint is '%s'", value);
    handled = 0;
    CHECK_CLASS(MPI_Comm_create_from_group(MPI_GROUP_NULL, "x", MPI_INFO_NULL, e, &c), MPI_ERR_GROUP);
    CHECK(handled == 1, "the handler for the failing call was called %d times", handled);
    MPI_Info_free(&used);
    MPI_Info_free(&info);
    MPI_Comm_free(&c);
    MPI_Errhandler_free(&e);
}

static void refusals(void)
{
    static char longest[MPI_MAX_STRINGTAG_LEN + 1];
    const MPI_Errhandler e = MPI_ERRORS_RETURN;
    MPI_Comm c;
    memset(longest, 'x', MPI_MAX_STRINGTAG_LEN);
    CHECK_CLASS(MPI_Comm_create_from_group(everybody, longest, MPI_INFO_NULL, e, &c), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Comm_create_from_group(everybody, NULL, MPI_INFO_NULL, e, &c), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Comm_create_from_group(everybody, "x", MPI_INFO_NULL, e, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Comm_create_from_group(everybody, "x", MPI_INFO_NULL, MPI_ERRHANDLER_NULL, &c), MPI_ERR_ERRHANDLER);
    CHECK_CLASS(MPI_Intercomm_create_from_groups(MPI_GROUP_NULL, 0, everybody, 0, "x", MPI_INFO_NULL, e, &c), MPI_ERR_GROUP);
    CHECK_CLASS(MPI_Intercomm_create_from_groups(everybody, check_size, everybody, 0, "x", MPI_INFO_NULL, e, &c), MPI_ERR_RANK);
    if (check_size > 1) { /* without being in the group */
        MPI_Group g = range_of((check_rank + 1) % check_size, (check_rank + 1) % check_size);
        CHECK_CLASS(MPI_Comm_create_from_group(g, "x", MPI_INFO_NULL, e, &c), MPI_ERR_GROUP);
        MPI_Group_free(&g);
    }
    longest[MPI_MAX_STRINGTAG_LEN - 1] = 0; /* as long as may be */
    c = make(everybody, longest);
    works(c, check_rank, check_size, "the longest tag");
    MPI_Comm_free(&c);
}

/* The leaders' mistakes: nobody is left waiting. */
static void wrong_leaders(MPI_Group mine, int leads)
{
    const MPI_Errhandler e = MPI_ERRORS_RETURN;
    MPI_Comm c;
    CHECK_CLASS(MPI_Intercomm_create_from_groups(mine, 0, everybody, check_size, "leaders", MPI_INFO_NULL, e, &c),
                leads ? MPI_ERR_RANK : MPI_ERR_COMM);
    CHECK_CLASS(MPI_Intercomm_create_from_groups(mine, 0, MPI_GROUP_NULL, 0, "leaders", MPI_INFO_NULL, e, &c),
                leads ? MPI_ERR_GROUP : MPI_ERR_COMM);
}

/* Everybody tells everybody of the other group, of n ranks, the first being this one of the world, up or down. */
static void talk(MPI_Comm c, int n, int first, int step)
{
    MPI_Request r[64];
    for (int k = 0; k < n; k++) MPI_Isend(&check_rank, 1, MPI_INT, k, 1, c, &r[k]);
    for (int k = 0; k < n; k++) {
        int got = -1;
        CHECK_OK(MPI_Recv(&got, 1, MPI_INT, k, 1, c, MPI_STATUS_IGNORE));
        CHECK(got == first + k * step, "rank %d of the other group is %d", k, got);
    }
    MPI_Waitall(n, r, MPI_STATUSES_IGNORE);
}

/* The first half, and the second half backwards; the last rank of each leads. */
static void between_groups(void)
{
    int half = check_size / 2, low = check_rank < half, mine = low ? half : check_size - half, theirs = check_size - mine;
    int me = low ? check_rank : check_size - 1 - check_rank;
    MPI_Group first = range_of(0, half - 1), second = range_of(check_size - 1, half), own = low ? first : second;
    for (int i = 0; i < 50; i++) {
        MPI_Comm c, all;
        int n = -1, m = -1, rank = -1;
        MPI_Group remote = me < mine - 1 ? MPI_GROUP_NULL : low ? second : first; /* the leader alone has to know */
        CHECK_OK(MPI_Intercomm_create_from_groups(own, mine - 1, remote, theirs - 1, "between", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
        MPI_Comm_rank(c, &rank);
        MPI_Comm_size(c, &n);
        MPI_Comm_remote_size(c, &m);
        CHECK(rank == me && n == mine && m == theirs, "rank %d, sizes %d and %d", rank, n, m);
        talk(c, theirs, low ? check_size - 1 : 0, low ? -1 : 1);
        CHECK_OK(MPI_Intercomm_merge(c, !low, &all));
        works(all, low ? me : half + me, check_size, "merged");
        MPI_Comm_free(&all);
        MPI_Comm_free(&c);
    }
    wrong_leaders(own, me == 0);
    MPI_Group_free(&first);
    MPI_Group_free(&second);
}

/* Rank 1 is in both groups; the leader is. */
static void overlapping(void)
{
    const MPI_Errhandler e = MPI_ERRORS_RETURN;
    MPI_Group a = range_of(0, 1), b = range_of(2, 1), self = range_of(check_rank, check_rank);
    MPI_Comm c;
    CHECK_WORDS(MPI_Intercomm_create_from_groups(self, 0, self, 0, "overlap", MPI_INFO_NULL, e, &c), MPI_ERR_GROUP,
                "the leader is in both groups");
    MPI_Group_free(&self);
    if (check_rank < 2) CHECK_CLASS(MPI_Intercomm_create_from_groups(a, 0, b, 0, "overlap", MPI_INFO_NULL, e, &c), MPI_ERR_COMM);
    if (check_rank == 1 || check_rank == 2)
        CHECK_CLASS(MPI_Intercomm_create_from_groups(b, 0, a, 0, "overlap", MPI_INFO_NULL, e, &c), MPI_ERR_COMM);
    MPI_Group_free(&a);
    MPI_Group_free(&b);
}

static void *by_thread(void *number)
{
    char tag[32];
    snprintf(tag, sizeof tag, "thread %d", *(int *)number);
    for (int i = 0; i < 50; i++) {
        MPI_Comm c = MPI_COMM_NULL;
        int sum = 0, code = MPI_Comm_create_from_group(everybody, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &c);
        if (!code) code = MPI_Allreduce(number, &sum, 1, MPI_INT, MPI_SUM, c);
        if (code || sum != *(int *)number * check_size) return number;
        MPI_Comm_free(&c);
    }
    return NULL;
}

static void threads(void)
{
    enum { N = 4 };
    pthread_t t[N];
    int number[N];
    for (int i = 0; i < N; i++) {
        number[i] = i + 1;
        CHECK(!pthread_create(&t[i], NULL, by_thread, &number[i]), "no thread");
    }
    for (int i = 0; i < N; i++) {
        void *failed = NULL;
        pthread_join(t[i], &failed);
        CHECK(!failed, "thread %d got a wrong communicator", i + 1);
    }
}

/* The group of a session: its communicators are the session's, and go on without the group. */
static void from_session(void)
{
    MPI_Session s;
    MPI_Group g, part, none;
    int range[1][3] = {{check_size - 1, 0, -1}};
    CHECK_OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s));
    CHECK_OK(MPI_Group_from_session_pset(s, "mpi://WORLD", &g));
    CHECK_OK(MPI_Group_range_incl(g, 1, range, &part));
    CHECK_CLASS(MPI_Group_range_incl(g, -1, range, &none), MPI_ERR_ARG); /* by the session's handler */
    MPI_Comm c = make(g, "session"), d = make(part, "session");
    MPI_Group_free(&g);
    MPI_Group_free(&part);
    works(c, check_rank, check_size, "of a session");
    works(d, check_size - 1 - check_rank, check_size, "of a session, backwards");
    MPI_Comm_free(&c);
    MPI_Comm_free(&d);
    CHECK_OK(MPI_Session_finalize(&s));
}

int main(int argc, char **argv)
{
    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    MPI_Comm_group(MPI_COMM_WORLD, &everybody);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (check_size > 1) all_and_halves(), between_groups();
    if (check_size > 2) overlapping();
    again_and_again();
    what_it_is_given();
    refusals();
    threads();
    from_session();
    MPI_Group_free(&everybody);
    return check_done();
}
