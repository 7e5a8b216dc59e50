/*
 * pieces.h - copying between two lists of pieces of memory in this process.
 */
#ifndef TERN_TRANSPORT_PIECES_H
#define TERN_TRANSPORT_PIECES_H

#include <sys/uio.h>

/* Copies until either list ends. Overlapping buffers are the user's error but must not crash. */
void pieces_copy(const struct iovec *to, int nt, const struct iovec *from, int nf);

#endif
