/*
 * type_bench.c - speed of packing and of reductions, beside loops written by hand.
 *
 *   type_bench pack   strided blocks, arrays of structs: GB/s, and the ratio to the hand-written loop
 *   type_bench op     predefined operators in every vector width: GB/s of one operand
 *
 * Both buffers are used again and again; sizes show the levels of the cache.
 */
#include "base/var.h"
#include "type/cursor.h"
#include "type/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LARGEST ((size_t)16 << 20)

static char *a, *b;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct job {
    void (*run)(const struct job *);
    struct type *type;
    const struct op *op;
    int64_t count, n, block, stride;
};

/* Seconds of one run: the best of several rounds, each long enough for the clock. */
static double best(const struct job *j)
{
    double least = 1e9;
    for (int round = 0; round < 7; round++) {
        double t = 0;
        int runs = 1;
        for (;; runs *= 2) {
            t = now();
            for (int i = 0; i < runs; i++) j->run(j);
            t = now() - t;
            if (t > 1e-3) break;
        }
        if (t / runs < least) least = t / runs;
    }
    return least;
}

/* ---- pack ---- */

static void pack(const struct job *j)
{
    struct type_cursor c;
    type_cursor_init(&c, j->type, j->count, a);
    type_pack(&c, b, c.total);
}

static void unpack(const struct job *j)
{
    struct type_cursor c;
    type_cursor_init(&c, j->type, j->count, a);
    type_unpack(&c, b, c.total);
}

static void pack_by_hand(const struct job *j)
{
    char *to = b, *from = a;
    if (j->block == 8) /* as it would be written for doubles */
        for (int64_t i = 0; i < j->n; i++, from += j->stride, to += 8) *(double *)to = *(const double *)from;
    else
        for (int64_t i = 0; i < j->n; i++, from += j->stride, to += j->block) memcpy(to, from, (size_t)j->block);
}

static void bench_blocks(void)
{
    static const int64_t blocks[] = {4, 8, 16, 24, 40, 64, 100, 128, 256, 1024, 4096};
    for (int64_t total = 1024; total <= 4 << 20; total *= 64)
        for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
            struct job j = {.count = 1, .block = blocks[i], .n = total / blocks[i], .stride = 2 * blocks[i]};
            double gb = 1e-9 * (double)(j.n * j.block);
            if (j.n < 2 || type_vector(j.n, j.block, j.stride, TYPE_BYTES, type_of(MPI_BYTE), &j.type)) continue;
            if (type_commit(j.type)) exit(1);
            j.run = pack;
            double p = best(&j);
            j.run = unpack;
            double u = best(&j);
            j.run = pack_by_hand;
            double h = best(&j);
            printf("%8lld bytes in blocks of %4lld: pack %6.1f GB/s, unpack %6.1f, by hand %6.1f, ratio %.2f\n",
                   (long long)total, (long long)j.block, gb / p, gb / u, gb / h, h / p);
            type_unref(j.type);
        }
}

static void bench_structs(void)
{
    struct particle {
        double x[3];
        char tag;
        int id;
    };
    const int64_t lens[] = {3, 1, 1};
    const int64_t displs[] = {0, offsetof(struct particle, tag), offsetof(struct particle, id)};
    struct type *members[] = {type_of(MPI_DOUBLE), type_of(MPI_CHAR), type_of(MPI_INT)};
    struct job j = {.run = pack};
    if (type_struct(3, lens, displs, members, &j.type) || type_commit(j.type)) exit(1);
    for (j.count = 1; j.count <= 100000; j.count *= 100)
        printf("%8lld structs of 3 doubles, char, int: %.1f ns each\n", (long long)j.count,
               1e9 * best(&j) / (double)j.count);
    type_unref(j.type);
}

/* ---- op ---- */

static void apply(const struct job *j)
{
    if (op_apply(j->op, a, b, j->count, j->type)) exit(1);
}

static void bench_ops(void)
{
    static const struct {
        MPI_Op op;
        MPI_Datatype type;
    } cases[] = {{MPI_SUM, MPI_DOUBLE},
                 {MPI_SUM, MPI_INT},
                 {MPI_MAX, MPI_FLOAT},
                 {MPI_PROD, MPI_INT64_T},
                 {MPI_PROD, MPI_C_DOUBLE_COMPLEX},
                 {MPI_BAND, MPI_BYTE},
                 {MPI_MINLOC, MPI_DOUBLE_INT}};
    static const char *const widths[] = {"scalar", "avx2", "avx512"};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (int64_t bytes = 16; bytes <= 8 << 20; bytes *= 64) {
            struct job j = {.run = apply, .type = type_of(cases[i].type)};
            j.count = bytes / j.type->extent;
            printf("%-20s %8lld bytes:", type_name(j.type), (long long)bytes);
            for (size_t w = 0; w < ARRAY_LEN(widths); w++) {
                op_close();
                if (var_set(VAR_OP_VECTOR, widths[w]) || op_open()) continue;
                j.op = op_of(cases[i].op);
                double t = best(&j);
                printf("  %s %s %6.1f GB/s (%.1f ns)", w ? "" : j.op->name, widths[w], 1e-9 * (double)bytes / t,
                       1e9 * t);
            }
            printf("\n");
        }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    a = aligned_alloc(4096, LARGEST);
    b = aligned_alloc(4096, LARGEST);
    if (!a || !b || var_open() || type_open() || op_open()) return 1;
    memset(a, 0, LARGEST);
    memset(b, 0, LARGEST);
    if (!strcmp(what, "pack")) {
        bench_blocks();
        bench_structs();
    } else if (!strcmp(what, "op")) {
        bench_ops();
    } else {
        fprintf(stderr, "usage: type_bench pack|op\n");
        return 2;
    }
    return 0;
}
