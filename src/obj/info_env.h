/*
 * info_env.h - what is known of how this process was started, as an info object
 * (MPI-5.0 section 10.1): the reserved keys command, argv, maxprocs, host, arch, wdir,
 * and mpi_memory_alloc_kinds. What nobody tells the process has no key: soft, file,
 * thread_level.
 */
#ifndef TERN_OBJ_INFO_ENV_H
#define TERN_OBJ_INFO_ENV_H

#include "obj/info.h"

/* A new object with these facts; the arguments are those of `argv`, or the process's own if argc is 0. */
struct info *info_new_env(int argc, char *const argv[]);

/*
 * The object behind MPI_INFO_ENV, made at the first call; NULL with words when memory is out. It lives as long as the
 * process. Any thread may ask at any time.
 */
struct info *info_env(void);

#endif
