/*
 * rights.h - messages on Unix sockets that carry descriptors (SCM_RIGHTS).
 *
 * Threads: any.
 */
#ifndef TERN_BASE_RIGHTS_H
#define TERN_BASE_RIGHTS_H

#include "base/compiler.h"

#include <sys/types.h>

#define RIGHTS_MOST 4 /* descriptors of a message */

/* Sends n bytes, at least one, with `count` descriptors, which stay the caller's; 0 of them are none. Returns as sendmsg with these
 * flags and MSG_NOSIGNAL. */
ssize_t rights_send(int socket, const void *bytes, size_t n, const int *descriptors, int count, int flags);

/* Receives at most n bytes, and the `count` descriptors that come with them, which are closed by exec: all -1 if it is not exactly so
 * many. Returns as recvmsg, but is not interrupted by signals. */
ssize_t rights_recv(int socket, void *bytes, size_t n, int *descriptors, int count);

#endif
