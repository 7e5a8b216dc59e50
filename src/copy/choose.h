/*
 * choose.h - memcpy, or stores that bypass the caches? Found out on the program's own large copies, while it runs.
 *
 * Where the better way changes depends on what the caches hold, on who else uses them, on where the data lie and who reads them next.
 * The processor's description does not say (a virtual machine is shown the host's caches), and memory of such a size cannot be tried
 * in passing. So copies are dealt into classes by the whole that they are a part of, [1, 2) MB, [2, 4) MB ..., and each class
 * is tried when the first copy of it comes:
 *
 *     first trial:  memcpy    | some wholes, timed |                                     (what would be done anyway)
 *                   nontemporal                    | some wholes, timed |
 *     run:                                                              | the way found, for DISTANCE of bytes, 2, 4 ... times as many |
 *     next trial:   the same again; its outcome is in force, and a changed one sets the distance back
 *
 * Nontemporal stores are taken where they are faster by more than noise (BETTER). What counts is the time of the copy and of reading it once: a copy that bypasses the caches is read from memory. Of a whole in one
 * piece a part is read, and timed. Of other pieces the next reader's time is not seen: memcpy's is taken for none, and the other
 * one's for that of memory (measure.h). So such wholes bypass the caches only where that is faster whatever the reader finds.
 *
 * TERN_COPY_NT=N fixes it: from N bytes on, always.
 *
 * Source: OMX-21, OMX-25, OMX-28. Threads: any.
 */
#ifndef TERN_COPY_CHOOSE_H
#define TERN_COPY_CHOOSE_H

#include "copy/copy.h"

#define COPY_CHOOSE_FROM ((size_t)1 << 20) /* smaller wholes stay in a core's own cache */
enum { COPY_CLASSES = 7 };                 /* the last one: 64 MB and more */

/* What has been found out of a class. */
struct copy_choice {
    size_t from;     /* bytes of the smallest whole in it */
    bool tried;      /* else the rest is 0 */
    bool nontemporal;   /* bypasses the caches */
    float cost[2];   /* ns for 1024 bytes, copied and read: memcpy, and else */
};
struct copy_choice copy_choice_of(int class);

/* For tests: these copy, in place of memcpy and copy_nontemporal, what is read takes no time, and nothing is known yet. NULL: as before. */
typedef void (*copy_fn)(void *dst, const void *src, size_t n);
void copy_choose_among(copy_fn cached, copy_fn nontemporal);

/* Bytes of a class, in its smallest wholes, from the end of one trial to the next: at first, and at most. */
#define COPY_DISTANCE 256
#define COPY_DISTANCE_MAX 65536

#endif
