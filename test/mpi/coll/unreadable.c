/*
 * unreadable.c - large reductions inside a node, of whose operands a part cannot be read: one rank finds that, and all ranks fail alike; the
 * next reduction is right. Each rank combines a share of the elements, and reads it from all others' memory (src/coll/node/shares.c).
 *
 * The operand of the last rank cannot be read in the share of rank 0, and can be in its own, which the last rank reads itself.
 */
#include "../check.h"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum { COUNT = 300000, PAGE = 4096 };

static int *operand, *result;

/* May ranks read each other's memory here? Else reductions go in other ways. */
static int all_reach(void)
{
    struct {
        void *at;
        pid_t pid;
    } own = {operand, getpid()}, its;
    int word, next = (check_rank + 1) % check_size, before = (check_rank + check_size - 1) % check_size, good, all = 0;
    MPI_Sendrecv(&own, sizeof own, MPI_BYTE, before, 1, &its, sizeof its, MPI_BYTE, next, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    struct iovec here = {&word, sizeof word}, there = {its.at, sizeof word};
    good = process_vm_readv(its.pid, &here, 1, &there, 1, 0) == sizeof word;
    MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all;
}

static int reduce(int kind)
{
    if (kind == 0) return MPI_Allreduce(operand, result, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (kind == 1) return MPI_Reduce(operand, result, COUNT, MPI_INT, MPI_SUM, check_size - 1, MPI_COMM_WORLD);
    return MPI_Reduce_scatter_block(operand, result, COUNT / check_size, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void be_readable(int is)
{
    if (check_rank == check_size - 1) CHECK(!mprotect(operand, PAGE, is ? PROT_READ | PROT_WRITE : PROT_NONE), "no protection");
    MPI_Barrier(MPI_COMM_WORLD);
}

static void fail_and_go_on(int kind)
{
    char words[MPI_MAX_ERROR_STRING] = "";
    int n, has = kind != 1 || check_rank == check_size - 1;
    be_readable(0);
    int code = reduce(kind);
    CHECK(code != MPI_SUCCESS, "reduction %d has succeeded", kind);
    if (code != MPI_SUCCESS) MPI_Error_string(code, words, &n);
    if (check_rank) CHECK(strstr(words, "rank 0 could not combine its share of a reduction; it has the reason"), "the words are '%s'", words);
    else CHECK(*words && !strstr(words, "could not combine"), "the words of rank 0 are '%s'", words);
    be_readable(1);
    CHECK_OK(reduce(kind));
    CHECK(!has || result[0] == check_size * (check_size - 1) / 2, "reduction %d: %d", kind, result[0]);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    operand = mmap(NULL, COUNT * sizeof *operand, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    result = malloc(COUNT * sizeof *result);
    if (operand == MAP_FAILED || !result) return 1;
    for (int i = 0; i < COUNT; i++) operand[i] = check_rank;
    if (!all_reach()) return check_skip("ranks cannot read each other's memory here");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int kind = 0; kind < 3; kind++) fail_and_go_on(kind);
    munmap(operand, COUNT * sizeof *operand);
    free(result);
    return check_done();
}
