/*
 * memfile.h - anonymous files of memory (memfd), within the limits of the process and shared by descriptors. A file
 * that grows beyond RLIMIT_FSIZE (ulimit -f) would end the process by SIGXFSZ; these functions return an error instead.
 *
 *     id    of a file: a number that no other file of the running system has (inode)
 *     key   of a file: the same for other hosts and boots, made of the id; what cards and questions to a launcher carry
 *
 * Threads: any, but for memfile_boot_is.
 */
#ifndef TERN_BASE_MEMFILE_H
#define TERN_BASE_MEMFILE_H

#include "base/compiler.h"

/* The largest size that a file of this process may be given; UINT64_MAX: any. */
uint64_t memfile_limit(void);

/* False with errno: EFBIG if `bytes` is beyond memfile_limit. */
bool memfile_resize(int fd, uint64_t bytes);

/* The id of the file that this process, or the process `pid`, has open as `fd`. 0 with errno: there is none, or it is
 * out of reach. */
uint64_t memfile_id_of(int fd);
uint64_t memfile_id_at(int pid, int fd);

/* The key of the file with this id: a hash of the id and of memfile_boot, so that most probably no file of another host
 * has the same. 0 for 0. */
uint64_t memfile_key(uint64_t id);

/* A number of the running system of this host (its boot id); never 0. Where the system does not say it, a random number
 * of this process's own. memfile_boot_is: sets the number that another process of this host has found; before the first
 * use. */
uint64_t memfile_boot(void);
void memfile_boot_is(uint64_t boot);

/* A hash of two numbers. */
uint64_t memfile_mix(uint64_t hash, uint64_t value);

/* A new descriptor of the file with this key that the process `pid` has open as `fd`: without /proc where this process may
 * trace that one. -1 with errno: out of reach, or (EBADF) another file. */
int memfile_take_at(int pid, int fd, uint64_t key);

/* Opens that file of the process, for reading and writing, closed by exec. -1 with errno: it is out of reach, or
 * (ESRCH) not the file with this id. Another file is left alone, as opening it may have effects. */
int memfile_open_at(int pid, int fd, uint64_t id);

/* The same file under a number that is out of the way of programs and scripts that use fixed small numbers, closed by
 * exec; `fd` is closed then. `fd` itself where a limit on descriptors leaves no such number. */
int memfile_move_up(int fd);

#endif
