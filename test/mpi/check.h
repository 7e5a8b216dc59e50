/*
 * check.h - what each MPI test program is made of:
 *
 *     int main(int argc, char **argv)
 *     {
 *         check_start(&argc, &argv);
 *         CHECK(got == 7, "element %d is %d", i, got);
 *         CHECK_OK(MPI_Barrier(MPI_COMM_WORLD));
 *         return check_done();
 *     }
 *
 * A failure is printed with the rank and counted; check_done gathers the counts in rank 0
 * by plain sends, prints "checks: N, failed: M" there, which test/mpi/run looks for, and
 * returns the exit code. A program that checked nothing has failed.
 */
#ifndef TERN_TEST_CHECK_H
#define TERN_TEST_CHECK_H

#include "busy.h"

#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK_SHOWN 10  /* failures printed a rank; the others are only counted */
#define CHECK_TAG 32001 /* of the messages of check_done and check_seed */
#define CHECK_SKIPPED 77

static int check_rank, check_size;
static long check_cases, check_failures;

/* Rules of the CHECK macros: cond is evaluated once; the words are formatted only on failure. */
#define CHECK(cond, ...) ((cond) ? (void)check_cases++ : check_failed(__FILE__, __LINE__, #cond, __VA_ARGS__))
#define CHECK_OK(call) check_code((call), __FILE__, __LINE__, #call)
/* The call fails with this error class. (The error handler must be MPI_ERRORS_RETURN.) */
#define CHECK_CLASS(call, class) check_class((call), (class), __FILE__, __LINE__, #call)
/* The same, and its words have this part. */
#define CHECK_WORDS(call, class, part) check_words((call), (class), (part), __FILE__, __LINE__, #call)

__attribute__((format(printf, 4, 5), unused)) static void check_failed(const char *file, int line, const char *cond,
                                                                        const char *words, ...)
{
    const char *base = strrchr(file, '/');
    va_list ap;
    check_cases++;
    if (check_failures++ >= CHECK_SHOWN) return;
    char text[512];
    va_start(ap, words);
    vsnprintf(text, sizeof text, words, ap);
    va_end(ap);
    fprintf(stderr, "rank %d of %d: %s:%d: not true: %s: %s\n", check_rank, check_size, base ? base + 1 : file, line, cond,
            text);
}

static inline void check_code(int code, const char *file, int line, const char *call)
{
    if (code == MPI_SUCCESS) check_cases++;
    else check_failed(file, line, call, "returned code %d", code);
}

static inline void check_class(int code, int class, const char *file, int line, const char *call)
{
    int is = MPI_SUCCESS;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &is);
    if (is == class) check_cases++;
    else check_failed(file, line, call, "error class %d instead of %d", is, class);
}

static inline void check_words(int code, int class, const char *part, const char *file, int line, const char *call)
{
    char words[MPI_MAX_ERROR_STRING] = "";
    int length;
    check_class(code, class, file, line, call);
    if (code != MPI_SUCCESS) MPI_Error_string(code, words, &length);
    if (strstr(words, part)) check_cases++;
    else check_failed(file, line, call, "the words are '%s'", words);
}

/* TEST_ODD=VARIABLE=value: the ranks with odd numbers have that variable, so that ranks of one node differ in it. */
static inline void check_set_odd(void)
{
    const char *given = getenv("TEST_ODD"), *rank = getenv("PMI_RANK");
    char name[64];
    size_t n = given ? strcspn(given, "=") : 0;
    if (!n || n >= sizeof name || !given[n] || !rank || atoi(rank) % 2 == 0) return;
    memcpy(name, given, n);
    name[n] = 0;
    setenv(name, given + n + 1, 1);
}

static inline void check_start_thread(int *argc, char ***argv, int required)
{
    int provided = MPI_THREAD_SINGLE;
    busy_open();
    check_set_odd();
    int code = required == MPI_THREAD_SINGLE ? MPI_Init(argc, argv) : MPI_Init_thread(argc, argv, required, &provided);
    if (code != MPI_SUCCESS) {
        fprintf(stderr, "MPI_Init returned code %d\n", code);
        exit(1);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    CHECK(provided >= required, "thread level %d asked, %d got", required, provided);
    check_cases = 0; /* the program is to check something itself */
}

static inline void check_start(int *argc, char ***argv) { check_start_thread(argc, argv, MPI_THREAD_SINGLE); }

/* The sums of cases and failures over all ranks, in rank 0. */
static inline void check_gather(void)
{
    long own[2] = {check_cases, check_failures};
    if (check_rank > 0) {
        MPI_Send(own, 2, MPI_LONG, 0, CHECK_TAG, MPI_COMM_WORLD);
        return;
    }
    for (int r = 1; r < check_size; r++) {
        long of_rank[2] = {0, 1};
        MPI_Recv(of_rank, 2, MPI_LONG, r, CHECK_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check_cases += of_rank[0];
        check_failures += of_rank[1];
    }
}

/* The end of the program: finalises and returns the exit code. */
static inline int check_done(void)
{
    check_gather();
    if (check_rank == 0) printf("checks: %ld, failed: %ld\n", check_cases, check_failures);
    if (check_rank == 0 && check_cases == 0) check_failures = 1;
    fflush(stdout);
    if (MPI_Finalize() != MPI_SUCCESS) return 1;
    return check_failures != 0;
}

/* To be returned from main by all ranks when there is nothing to test here. */
static inline int check_skip(const char *reason)
{
    if (check_rank == 0) printf("skip: %s\n", reason);
    fflush(stdout);
    MPI_Finalize();
    return CHECK_SKIPPED;
}

/* A seed for random tests, the same in all ranks: TERN_TEST_SEED, else from the clock. Printed. */
static inline uint64_t check_seed(void)
{
    const char *env = getenv("TERN_TEST_SEED");
    uint64_t seed = env ? strtoull(env, NULL, 0) : (uint64_t)time(NULL) * 1000003u;
    if (check_rank > 0) {
        MPI_Recv(&seed, 8, MPI_BYTE, 0, CHECK_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return seed;
    }
    for (int r = 1; r < check_size; r++) MPI_Send(&seed, 8, MPI_BYTE, r, CHECK_TAG, MPI_COMM_WORLD);
    printf("TERN_TEST_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout); /* also for a program that does not end */
    return seed;
}

/* The next number of a sequence that starts with a seed (splitmix64). */
static inline uint64_t check_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Fills n bytes with a pattern that depends on seed, and counts those that differ from it. */
static inline unsigned char check_byte(uint64_t seed, size_t i) { return (unsigned char)((seed * 131 + i) * 0x9e3779b1u >> 13); }

static inline void check_fill(void *buf, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) ((unsigned char *)buf)[i] = check_byte(seed, i);
}

static inline size_t check_differ(const void *buf, size_t n, uint64_t seed)
{
    size_t bad = 0;
    for (size_t i = 0; i < n; i++) bad += ((const unsigned char *)buf)[i] != check_byte(seed, i);
    return bad;
}

#endif
