/*
 * persistent.c - persistent collectives (MPI-5.0 section 6.13): random ones of every kind are made, started many times in an
 * order of each rank's own, among point-to-point operations and other collectives, and give what the blocking form gives;
 * requests in every state that they can be in are completed, freed, started wrongly.
 */
#include "jobs.h"

enum { SETS = 6, IN_SET = 12, ROUNDS = 5, KEPT = 40, MADE = 40000, NUMBERS = 32766 };

static void shuffle(int *order, int n)
{
    for (int i = 0; i < n; i++) order[i] = i;
    for (int i = 0; i < n; i++) {
        int k = i + (int)(check_random(&own) % (unsigned)(n - i)), x = order[i];
        order[i] = order[k];
        order[k] = x;
    }
}

/* ---- many of all kinds ---- */

static void start_in_any_order(MPI_Request *req, int n)
{
    int order[IN_SET + 2];
    MPI_Request mixed[IN_SET + 2];
    shuffle(order, n);
    for (int i = 0; i < n; i++) mixed[i] = req[order[i]];
    if (check_random(&own) & 1) {
        CHECK_OK(MPI_Startall(n, mixed));
        for (int i = 0; i < n; i++) CHECK(mixed[i] == req[order[i]], "a start changed the handle");
    } else {
        for (int i = 0; i < n; i++) CHECK_OK(MPI_Start(&req[order[i]]));
    }
}

static void complete(MPI_Request *req, int n)
{
    MPI_Status st[IN_SET + 2];
    int index[IN_SET + 2], left = n, k = 0;
    switch (check_random(&own) % 3) {
    case 0: CHECK_OK(MPI_Waitall(n, req, st)); break;
    case 1:
        for (int i = n; i-- > 0;) CHECK_OK(MPI_Wait(&req[i], MPI_STATUS_IGNORE));
        break;
    default:
        while (left) {
            CHECK_OK(MPI_Waitsome(n, req, &k, index, st));
            CHECK(k > 0, "%d are left, but %d completed", left, k);
            if (k <= 0) return;
            left -= k;
        }
    }
    for (int i = 0; i < n; i++) CHECK(req[i] != MPI_REQUEST_NULL, "a persistent request has gone");
}

/* New data, and what the blocking form makes of it. */
static void renew(struct job *jobs)
{
    for (int i = 0; i < IN_SET; i++) {
        fill_job(&jobs[i]);
        do_job(&jobs[i], BLOCKING, jobs[i].want, NULL);
    }
}

/* One run of all of them, and of a send and a receive around the ring. */
static void run_set(struct job *jobs, MPI_Request *req, int *token)
{
    int sum = 0;
    MPI_Request other;
    token[0] = check_rank, token[1] = -1;
    start_in_any_order(req, IN_SET + 2);
    CHECK_OK(MPI_Iallreduce(&(int){1}, &sum, 1, MPI_INT, MPI_SUM, comms[0], &other));
    if (draw(2)) CHECK_OK(MPI_Barrier(comms[1]));
    complete(req, IN_SET + 2);
    CHECK_OK(MPI_Wait(&other, MPI_STATUS_IGNORE));
    CHECK(sum == check_size, "the sum is %d", sum);
    CHECK(token[1] == (check_rank + check_size - 1) % check_size, "the ring brought %d", token[1]);
    for (int i = 0; i < IN_SET; i++) check_job(&jobs[i]);
}

/* The last run is after types, operators and one communicator were freed. */
static void one_set(void)
{
    struct job *jobs = calloc(IN_SET, sizeof *jobs);
    MPI_Request req[IN_SET + 2];
    MPI_Comm dup;
    int token[2];
    MPI_Comm_dup(comms[0], &dup);
    for (int i = 0; i < IN_SET; i++) {
        make_job(&jobs[i]);
        MPI_Op_create(compose, 0, &jobs[i].op);
        if (draw(3) == 0) jobs[i].comm = dup;
        do_job(&jobs[i], draw(2) ? INIT : INIT_LARGE, jobs[i].recv, &req[i]);
    }
    MPI_Send_init(&token[0], 1, MPI_INT, (check_rank + 1) % check_size, 5, comms[0], &req[IN_SET]);
    MPI_Recv_init(&token[1], 1, MPI_INT, (check_rank + check_size - 1) % check_size, 5, comms[0], &req[IN_SET + 1]);
    for (int round = 0; round < ROUNDS; round++) {
        renew(jobs);
        run_set(jobs, req, token);
    }
    renew(jobs);
    for (int i = 0; i < IN_SET; i++) {
        MPI_Type_free(&jobs[i].type);
        MPI_Op_free(&jobs[i].op);
    }
    MPI_Comm_free(&dup);
    run_set(jobs, req, token);
    for (int i = 0; i < IN_SET + 2; i++) CHECK_OK(MPI_Request_free(&req[i]));
    for (int i = 0; i < IN_SET; i++) free_job(&jobs[i]);
    free(jobs);
}

/* ---- many runs, many requests ---- */

/* GOAL-16: 10^5 runs, of one request alone, of some at the same time (which wait for each other less) with more ranks. */
static void restart(void)
{
    int in[20], sum[20], wrong = 0, n = check_size == 1 ? 1 : 20, runs = (check_size <= 2 ? 100000 : 10000) / n;
    MPI_Request req[20];
    for (int k = 0; k < n; k++)
        CHECK_OK(MPI_Allreduce_init(&in[k], &sum[k], 1, MPI_INT, MPI_SUM, comms[0], MPI_INFO_NULL, &req[k]));
    for (int i = 0; i < runs; i++) {
        for (int k = 0; k < n; k++) in[k] = i + k + check_rank;
        MPI_Startall(n, req);
        MPI_Waitall(n, req, MPI_STATUSES_IGNORE);
        for (int k = 0; k < n; k++) wrong += sum[k] != check_size * (i + k) + check_size * (check_size - 1) / 2;
    }
    CHECK(wrong == 0, "%d of %d runs gave a wrong sum", wrong, runs * n);
    for (int k = 0; k < n; k++) CHECK_OK(MPI_Request_free(&req[k]));
}

static void run_kept(MPI_Request *req, int *word, int n)
{
    int order[KEPT];
    shuffle(order, n);
    for (int i = 0; i < n; i++) word[i] = check_rank == i % check_size ? i : -1;
    for (int i = 0; i < n; i++) CHECK_OK(MPI_Start(&req[order[i]]));
    CHECK_OK(MPI_Waitall(n, req, MPI_STATUSES_IGNORE));
    for (int i = 0; i < n; i++) CHECK(word[i] == i, "bcast %d brought %d", i, word[i]);
}

/* Some stay while others come and go, more than there are numbers to tell messages apart by. */
static void numbers_wrap(void)
{
    MPI_Comm dup;
    MPI_Request req[KEPT], brief;
    int word[KEPT], kept = 0, bad = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    for (int i = 0; i < MADE; i++) {
        if (i % (MADE / KEPT) == 0) {
            CHECK_OK(MPI_Bcast_init(&word[kept], 1, MPI_INT, kept % check_size, dup, MPI_INFO_NULL, &req[kept]));
            kept++;
        }
        bad += MPI_Barrier_init(dup, MPI_INFO_NULL, &brief) != MPI_SUCCESS;
        bad += MPI_Request_free(&brief) != MPI_SUCCESS;
        if (i % 9999 == 0) run_kept(req, word, kept);
    }
    CHECK(bad == 0, "%d calls failed", bad);
    run_kept(req, word, KEPT);
    for (int i = 0; i < KEPT; i++) CHECK_OK(MPI_Request_free(&req[i]));
    MPI_Comm_free(&dup);
}

static void all_numbers(void)
{
    MPI_Comm dup;
    MPI_Request *req = calloc(NUMBERS + 1, sizeof *req), none = MPI_REQUEST_NULL;
    int bad = 0, at = draw(NUMBERS);
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN);
    for (int i = 0; i < NUMBERS; i++) bad += MPI_Barrier_init(dup, MPI_INFO_NULL, &req[i]) != MPI_SUCCESS;
    CHECK(bad == 0, "%d calls failed", bad);
    CHECK_CLASS(MPI_Barrier_init(dup, MPI_INFO_NULL, &none), MPI_ERR_NO_MEM);
    CHECK(none == MPI_REQUEST_NULL, "a call that failed set its request");
    CHECK_OK(MPI_Request_free(&req[at]));
    CHECK_OK(MPI_Barrier_init(dup, MPI_INFO_NULL, &req[at]));
    CHECK_OK(MPI_Start(&req[at]));
    CHECK_OK(MPI_Start(&req[(at + 1) % NUMBERS]));
    CHECK_OK(MPI_Waitall(NUMBERS, req, MPI_STATUSES_IGNORE));
    for (int i = 0; i < NUMBERS; i++) bad += MPI_Request_free(&req[i]) != MPI_SUCCESS;
    CHECK(bad == 0, "%d calls failed", bad);
    MPI_Comm_free(&dup);
    free(req);
}

/* ---- states of a request ---- */

static void check_empty(const MPI_Status *st)
{
    int count, cancelled;
    MPI_Get_count(st, MPI_BYTE, &count);
    MPI_Test_cancelled(st, &cancelled);
    CHECK(st->MPI_SOURCE == MPI_ANY_SOURCE && st->MPI_TAG == MPI_ANY_TAG && count == 0 && !cancelled, "the status has %d, %d, %d, %d",
          st->MPI_SOURCE, st->MPI_TAG, count, cancelled);
}

static void states(void)
{
    MPI_Request req, same;
    MPI_Status st;
    int flag = 0, index;
    CHECK_OK(MPI_Barrier_init(comms[0], MPI_INFO_NULL, &req));
    same = req;
    memset(&st, 0x55, sizeof st);
    CHECK_OK(MPI_Wait(&req, &st)); /* inactive: at once */
    check_empty(&st);
    CHECK_OK(MPI_Waitany(1, &req, &index, &st));
    CHECK(index == MPI_UNDEFINED, "an inactive request was completed");
    for (int i = 0; i < 3; i++) {
        CHECK_OK(MPI_Start(&req));
        CHECK_CLASS(MPI_Start(&req), MPI_ERR_REQUEST); /* active, even if it is over */
        CHECK_CLASS(MPI_Cancel(&req), MPI_ERR_REQUEST);
        memset(&st, 0x55, sizeof st);
        for (flag = 0; !flag;) CHECK_OK(i ? MPI_Test(&req, &flag, &st) : MPI_Request_get_status(req, &flag, &st));
        check_empty(&st);
        if (!i) CHECK_OK(MPI_Wait(&req, &st));
        CHECK(req == same, "the handle changed");
    }
    CHECK_OK(MPI_Request_free(&req));
    CHECK(req == MPI_REQUEST_NULL, "a freed request is left");
}

/* A word that a helper thread may be writing: nobody says when it has, so this is a race, on purpose. */
__attribute__((no_sanitize_thread)) static int seen(const volatile int *word) { return *word; }

/* Freed while it is active: the run goes on, and other ranks get theirs. Nobody tells when it may use the buffers again. */
static void free_active(void)
{
    static int in[20], got[20];
    MPI_Request req;
    int flag, sum = check_size * (check_size + 1) / 2;
    for (int i = 0; i < 20; i++) {
        in[i] = check_rank + 1;
        CHECK_OK(MPI_Allreduce_init(&in[i], &got[i], 1, MPI_INT, MPI_SUM, comms[0], MPI_INFO_NULL, &req));
        CHECK_OK(MPI_Start(&req));
        CHECK_OK(MPI_Request_free(&req));
        CHECK(req == MPI_REQUEST_NULL, "a freed request is left");
        for (double end = MPI_Wtime() + 20; seen(&got[i]) != sum && MPI_Wtime() < end;)
            MPI_Iprobe(MPI_ANY_SOURCE, 77, comms[0], &flag, MPI_STATUS_IGNORE);
        CHECK_OK(MPI_Barrier(comms[i & 1]));
        CHECK(got[i] == sum, "the sum is %d", got[i]);
    }
}

/* A run that fails does so through the communicator's handler, and can be started again. */
static int handled;
static void handler(MPI_Comm *c, int *code, ...) { (void)c, (void)code, handled++; }

static void failing_runs(void)
{
    MPI_Comm dup;
    MPI_Errhandler h;
    MPI_Request req;
    int word[2] = {1, 2};
    if (check_size != 2) return; /* with more ranks, those behind the one that fails wait for ever */
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_create_errhandler(handler, &h);
    MPI_Comm_set_errhandler(dup, h);
    handled = 0;
    CHECK_OK(MPI_Bcast_init(word, check_rank ? 1 : 2, MPI_INT, 0, dup, MPI_INFO_NULL, &req));
    for (int i = 1; i <= 3; i++) {
        CHECK_OK(MPI_Start(&req));
        int rc = MPI_Wait(&req, MPI_STATUS_IGNORE);
        CHECK_CLASS(rc, check_rank ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
        CHECK(handled == check_rank * i, "the handler was called %d times in %d runs", handled, i);
    }
    CHECK_OK(MPI_Request_free(&req));
    MPI_Errhandler_free(&h);
    MPI_Comm_free(&dup);
}

static void wrong_arguments(void)
{
    MPI_Request req = MPI_REQUEST_NULL;
    MPI_Info info;
    int word = 1, sum = 0;
    CHECK_CLASS(MPI_Barrier_init(MPI_COMM_NULL, MPI_INFO_NULL, &req), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Barrier_init(MPI_COMM_WORLD, (MPI_Info)MPI_COMM_WORLD, &req), MPI_ERR_INFO);
    CHECK_CLASS(MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Bcast_init(&word, 1, MPI_INT, check_size, MPI_COMM_WORLD, MPI_INFO_NULL, &req), MPI_ERR_ROOT);
    CHECK_CLASS(MPI_Allreduce_init(&word, &sum, -1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &req), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Allgather_init(&word, 1, MPI_INT, &sum, 2, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &req), MPI_ERR_TRUNCATE);
    CHECK(req == MPI_REQUEST_NULL, "a call that failed set its request");
    MPI_Info_create(&info);
    MPI_Info_set(info, "a hint", "that nobody knows");
    CHECK_OK(MPI_Allreduce_init(&word, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, info, &req));
    MPI_Info_free(&info);
    CHECK_OK(MPI_Start(&req));
    CHECK_OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    CHECK(sum == check_size, "the sum is %d", sum);
    CHECK_OK(MPI_Request_free(&req));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    common = check_seed();
    own = common * 31 + (uint64_t)check_rank + 1;
    comms[0] = MPI_COMM_WORLD;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    for (int i = 0; i < SETS; i++) one_set();
    restart();
    numbers_wrap();
    if (check_size <= 2) all_numbers();
    states();
    free_active();
    failing_runs();
    wrong_arguments();
    MPI_Comm_free(&comms[1]);
    return check_done();
}
