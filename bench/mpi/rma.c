/*
 * rma - one-sided operations of rank 0 on the memory of rank 1, which waits in a barrier: us each, median.
 *
 *   W_OP_lock_us     MPI_Win_lock, the operation, MPI_Win_unlock
 *   W_OP_flush_us    the operation and MPI_Win_flush, in an epoch of MPI_Win_lock_all
 *   W_put_rate_Mops  puts of 8 bytes, a flush after each 64
 *   W_OP_4M_MBs      put, get and accumulate of 4 MB (accumulate: 4-byte integers), with a flush
 *   bare_store_us    a store of 8 bytes and a fence of the processor, by the program itself, into an allocated window
 *   alloc_put_over_bare_us   by how much alloc_put_flush_us is above that
 *   copy_4M_MBs      memcpy of 4 MB
 *
 * W is the window: alloc (MPI_Win_allocate), create (over malloc'ed memory), dynamic (attached malloc'ed memory).
 * OP is put, get, acc, gacc, fop, cas: on 8 bytes.
 */
#include "bench.h"
#include <stdlib.h>
#include <string.h>

#define LARGE (4 << 20)
#define REPS 9

enum op { PUT, GET, ACC, GACC, FOP, CAS, OPS };
static const char *const op_name[OPS] = {"put", "get", "acc", "gacc", "fop", "cas"};

static MPI_Win win;
static MPI_Aint place;
static char *here, *fetched;

static void do_op(enum op op)
{
    static long one = 1, zero, was;
    switch (op) {
    case PUT: MPI_Put(&one, 1, MPI_LONG, 1, place, 1, MPI_LONG, win); break;
    case GET: MPI_Get(&was, 1, MPI_LONG, 1, place, 1, MPI_LONG, win); break;
    case ACC: MPI_Accumulate(&one, 1, MPI_LONG, 1, place, 1, MPI_LONG, MPI_SUM, win); break;
    case GACC: MPI_Get_accumulate(&one, 1, MPI_LONG, &was, 1, MPI_LONG, 1, place, 1, MPI_LONG, MPI_SUM, win); break;
    case FOP: MPI_Fetch_and_op(&one, &was, MPI_LONG, 1, place, MPI_SUM, win); break;
    case CAS: MPI_Compare_and_swap(&one, &zero, &was, MPI_LONG, 1, place, win); break;
    case OPS: break;
    }
}

static void by_lock(enum op op)
{
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    do_op(op);
    MPI_Win_unlock(1, win);
}

static void by_flush(enum op op)
{
    do_op(op);
    MPI_Win_flush(1, win);
}

static void many_puts(enum op op)
{
    for (int i = 0; i < 64; i++) do_op(op);
    MPI_Win_flush(1, win);
}

static void large(enum op op)
{
    if (op == PUT) MPI_Put(here, LARGE, MPI_BYTE, 1, place, LARGE, MPI_BYTE, win);
    else if (op == GET) MPI_Get(fetched, LARGE, MPI_BYTE, 1, place, LARGE, MPI_BYTE, win);
    else MPI_Accumulate(here, LARGE / 4, MPI_INT, 1, place, LARGE / 4, MPI_INT, MPI_SUM, win);
    MPI_Win_flush(1, win);
}

static volatile long *bare;
static void store(enum op op)
{
    *bare = op;
    __sync_synchronize();
}

static void copy(enum op op)
{
    memcpy(fetched, here, LARGE);
    __asm__ volatile("" ::"r"(fetched), "r"((int)op) : "memory");
}

/* us a call */
static double time_of(void (*what)(enum op), enum op op)
{
    double t[REPS];
    int rounds = 4;
    for (int r = -1; r < REPS; r++) {
        double t0 = now();
        for (int i = 0; i < rounds; i++) what(op);
        double took = now() - t0;
        if (r >= 0) t[r] = 1e6 * took / rounds;
        else rounds = (int)clamp(rounds * 0.02 / took, 2, 200000);
    }
    return median(t, REPS);
}

static double put_flush_us; /* of the window that was measured last */

static void measure(const char *name)
{
    for (enum op op = 0; op < OPS; op++) printf("%s_%s_lock_us %.4f\n", name, op_name[op], time_of(by_lock, op));
    MPI_Win_lock_all(0, win);
    for (enum op op = 0; op < OPS; op++) {
        double t = time_of(by_flush, op);
        if (op == PUT) put_flush_us = t;
        printf("%s_%s_flush_us %.4f\n", name, op_name[op], t);
    }
    printf("%s_put_rate_Mops %.4f\n", name, 64 / time_of(many_puts, PUT));
    for (enum op op = 0; op < GACC; op++) printf("%s_%s_4M_MBs %.1f\n", name, op_name[op], LARGE / time_of(large, op));
    MPI_Win_unlock_all(win);
}

int main(int argc, char **argv)
{
    int rank;
    char *base;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    here = malloc(LARGE);
    fetched = malloc(LARGE);
    memset(here, 1, LARGE);
    memset(fetched, 1, LARGE);
    for (int kind = 0; kind < 3; kind++) {
        MPI_Aint at = 0;
        if (kind == 0) MPI_Win_allocate(LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
        else base = malloc(LARGE);
        if (kind == 1) MPI_Win_create(base, LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        if (kind == 2) {
            MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
            MPI_Win_attach(win, base, LARGE);
            MPI_Get_address(base, &at);
        }
        memset(base, 0, LARGE);
        place = at;
        MPI_Bcast(&place, 1, MPI_AINT, 1, MPI_COMM_WORLD);
        if (kind == 0) bare = (volatile long *)base;
        if (rank == 0) measure(kind == 0 ? "alloc" : kind == 1 ? "create" : "dynamic");
        if (rank == 0 && kind == 0) {
            double t = time_of(store, PUT);
            printf("bare_store_us %.4f\nalloc_put_over_bare_us %.4f\n", t, put_flush_us - t);
            printf("copy_4M_MBs %.1f\n", LARGE / time_of(copy, PUT));
        }
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_free(&win);
        if (kind) free(base);
    }
    MPI_Finalize();
    return 0;
}
