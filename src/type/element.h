/*
 * element.h - the C types behind element kinds that C has no name for, and which of
 * the optional ones this compiler and machine have.
 */
#ifndef TERN_TYPE_ELEMENT_H
#define TERN_TYPE_ELEMENT_H

#if defined(__FLT16_MAX__) && !defined(__clang__) /* older clang has the macro without the arithmetic */
#define HAVE_FLOAT16 1
struct complex16 {
    _Float16 re, im;
};
#else
#define HAVE_FLOAT16 0
#endif

#if defined(__SIZEOF_INT128__)
#define HAVE_INT128 1
#else
#define HAVE_INT128 0
#endif

#if defined(__SIZEOF_FLOAT128__)
#define HAVE_FLOAT128 1
struct complex128 {
    __float128 re, im;
};
#else
#define HAVE_FLOAT128 0
#endif

#endif
