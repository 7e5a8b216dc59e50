/*
 * memfile.h - anonymous files of memory (memfd), within the limits of the process and shared by descriptors. A file
 * that grows beyond RLIMIT_FSIZE (ulimit -f) ends the process by SIGXFSZ; here that is an error like others.
 */
#ifndef TERN_BASE_MEMFILE_H
#define TERN_BASE_MEMFILE_H

#include "base/compiler.h"

/* The largest size that a file of this process may be given; UINT64_MAX: any. */
uint64_t memfile_limit(void);

/* False with errno: EFBIG if `bytes` is beyond memfile_limit. */
bool memfile_resize(int fd, uint64_t bytes);

/* The id of the file that this process, or the process `pid`, has open as `fd`: a number that no other file of the
 * running system has. 0 with errno: there is none, or it is out of reach. */
uint64_t memfile_id_of(int fd);
uint64_t memfile_id_at(int pid, int fd);

/* Opens that file of the process, for reading and writing, closed by exec. -1 with errno: it is out of reach, or
 * (ESRCH) not the file with this id. Another file is left alone, as opening it may have effects. */
int memfile_open_at(int pid, int fd, uint64_t id);

/* The same file under a number that is out of the way of programs and scripts that use fixed small numbers, closed by
 * exec; `fd` is closed then. `fd` itself where a limit on descriptors leaves no such number. */
int memfile_move_up(int fd);

#endif
