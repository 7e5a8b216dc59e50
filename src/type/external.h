/*
 * external.h - the data of (count x type) in the portable representation "external32"
 * (MPI-5.0 section 14.5.2): big-endian, packed without gaps, IEEE numbers, sizes fixed.
 *
 * Most types have the size that they have here. The others: long and unsigned long
 * take 4 bytes and wchar_t takes 2, so a value may not fit, which is an error; long
 * double is an IEEE number of 16 bytes.
 *
 * A cursor is a position in the external form; it may be moved on in pieces of any
 * size, also within a number. Nothing is allocated.
 */
#ifndef TERN_TYPE_EXTERNAL_H
#define TERN_TYPE_EXTERNAL_H

#include "type/cursor.h"

/* Bytes of one element of a predefined type without parts; MPI_UNDEFINED: the type is not to be had here. */
int64_t external_basic_size(const struct type *basic);

struct external_cursor {
    struct type_cursor native; /* the same position, rounded down to a whole number */
    size_t total;              /* external bytes of all elements */
    size_t pos;                /* those that lie behind */
    size_t cut;                /* of them, bytes of a number that is not complete */
    unsigned char number[16];  /* unpack: these bytes */
};

/* TERN_ERR_COUNT in words if the data are more than the address space holds. */
int external_open(struct external_cursor *c, const struct type *t, int64_t count, const void *buf);

/* The next bytes, at most `max`, to `out`; *n_p is how many. TERN_ERR_CONVERSION: a number has no external form;
 * TERN_ERR_ARG: the type is nested too deep. The cursor is not usable after an error. */
int external_pack(struct external_cursor *c, void *out, size_t max, size_t *n_p);
int external_unpack(struct external_cursor *c, const void *in, size_t n, size_t *n_p);

#endif
