/*
 * reference.h - a slow and obviously right model of datatypes: the plain list of
 * (basic type, displacement) that the standard defines a type to be.
 *
 * Every element is added one by one in the constructors' order; nothing is merged.
 * Also the random numbers and random type trees of the tests here.
 */
#ifndef TEST_TYPE_REFERENCE_H
#define TEST_TYPE_REFERENCE_H

#include "type/type.h"

struct ref_item {
    int64_t disp;
    int64_t size;
    MPI_Datatype basic;
};

struct ref {
    struct ref_item *items;
    int64_t n, room;
    bool any, lb_set, ub_set;
    int64_t lb, ub, align;
};

/* A predefined type; a pair has two items. */
void ref_basic(struct ref *r, MPI_Datatype basic);

void ref_open(struct ref *r);
void ref_add(struct ref *r, int64_t disp, const struct ref *part);              /* one element */
void ref_add_n(struct ref *r, int64_t disp, int64_t n, const struct ref *part); /* n elements, an extent apart */
void ref_seal(struct ref *r);                                                   /* rounds the extent up */
void ref_close(struct ref *r);

int64_t ref_extent(const struct ref *r);
int64_t ref_size(const struct ref *r);
void ref_true(const struct ref *r, int64_t *lo, int64_t *hi); /* 0, 0 without data */

/* Packed form of `count` elements at buf, byte by byte; and back. */
void ref_pack(const struct ref *r, int64_t count, const char *buf, char *out);
void ref_unpack(const struct ref *r, int64_t count, char *buf, const char *in);

/* ---- random numbers: seeded by TERN_TEST_SEED or the clock; the seed is printed ---- */
void random_open(void);
void random_seed(uint64_t seed); /* instead: a sequence of its own for each case */
uint64_t random_u64(void);
int64_t random_int(int64_t lo, int64_t hi); /* both may come */
void random_fill(void *p, size_t n);
int64_t test_count(int64_t dflt); /* TERN_TEST_COUNT, or dflt */

/* A random type of at most max_items items and its model. The type is not committed; the caller owns both. */
struct type *random_type(int depth, int64_t max_items, struct ref *r);

#endif
