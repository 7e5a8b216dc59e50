/*
 * choice.c - hints tern_coll_<operation> choose the algorithm of a communicator (doc/decisions/coll-selection.md): they
 * are told by MPI_Comm_get_info when they name one, can be changed in between calls, and results stay right; as do those
 * of the v-collectives when their arrays change from call to call.
 */
#include "../check.h"

static int rank, size;

/* Is the hint in use as it was given? */
static int told(MPI_Comm c, const char *key, const char *want)
{
    char value[128];
    int flag, len = sizeof value;
    MPI_Info info;
    MPI_Comm_get_info(c, &info);
    MPI_Info_get_string(info, key, &len, value, &flag);
    MPI_Info_free(&info);
    return want ? flag && !strcmp(value, want) : !flag;
}

static void give(MPI_Comm c, const char *key, const char *value)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    MPI_Comm_set_info(c, info);
    MPI_Info_free(&info);
}

static void right(MPI_Comm c, const char *what)
{
    static int buf[5000];
    int sum = 0, wrong = 0;
    for (int i = 0; i < 5000; i++) buf[i] = rank == size - 1 ? 3 * i : -1;
    MPI_Bcast(buf, 5000, MPI_INT, size - 1, c);
    for (int i = 0; i < 5000; i++) wrong += buf[i] != 3 * i;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, c);
    CHECK(!wrong && sum == size * (size - 1) / 2, "%s: %d wrong, sum %d", what, wrong, sum);
}

static void by_hints(MPI_Comm c)
{
    static const char *const values[] = {"binomial", "chain", "chain segment 1K", "scatter", "leaders",
                                         "domain_leaders segment 2K", "copy_once", "wide slices 3", "messages", "slots"};
    right(c, "no hint");
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        give(c, "tern_coll_bcast", values[i]);
        CHECK(told(c, "tern_coll_bcast", values[i]), "the hint %s is not told", values[i]);
        right(c, values[i]);
    }
    give(c, "tern_coll_bcast", "wide segment 2K");
    CHECK(told(c, "tern_coll_bcast", "slots"), "a way with an option that it has not is ignored");
    give(c, "tern_coll_allreduce", "copy_once");
    right(c, "allreduce copy_once");
    give(c, "tern_coll_allreduce", "ring");
    right(c, "allreduce ring");
    give(c, "tern_coll_allreduce", "square");
    CHECK(told(c, "tern_coll_allreduce", "ring"), "a hint that makes no sense is ignored");
    give(c, "tern_coll_nothing", "ring");
    CHECK(told(c, "tern_coll_nothing", NULL), "a hint for no operation is not in use");
}

static void from_dup(void)
{
    MPI_Comm c;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "tern_coll_bcast", "chain segment 512");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &c);
    MPI_Info_free(&info);
    CHECK(told(c, "tern_coll_bcast", "chain segment 512"), "the hint given to MPI_Comm_dup_with_info is not told");
    right(c, "dup");
    MPI_Comm_free(&c);
}

/* Blocks of other lengths at each call, each twice: programs are kept by their arrays. */
static void blocks(MPI_Comm c, int call)
{
    int counts[64], displs[64], got[64 * 8], mine[8], n = 0, wrong = 0;
    for (int r = 0; r < size; r++) {
        counts[r] = (r + call) % 4;
        displs[r] = n + call % 2;
        n = displs[r] + counts[r];
    }
    for (int i = 0; i < counts[rank]; i++) mine[i] = 100 * rank + 10 * call + i;
    memset(got, -1, sizeof got);
    MPI_Allgatherv(mine, counts[rank], MPI_INT, got, counts, displs, MPI_INT, c);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < counts[r]; i++) wrong += got[displs[r] + i] != 100 * r + 10 * call + i;
    CHECK(!wrong, "allgatherv, call %d: %d wrong", call, wrong);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    rank = check_rank;
    size = check_size;
    by_hints(MPI_COMM_WORLD);
    from_dup();
    for (int i = 0; i < 200; i++) blocks(MPI_COMM_WORLD, i / 2 % 40);
    return check_done();
}
