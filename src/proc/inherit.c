/* inherit.c - see inherit.h. */
#include "proc/inherit.h"
#include "base/memfile.h"
#include "proc/job_block.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

bool inherit_source(int *launcher, uint64_t *block_id)
{
    const char *s = getenv(JOB_ENV_ID);
    unsigned long long id;
    if (!s || sscanf(s, "%d:%llx", launcher, &id) != 2) return false;
    *block_id = id;
    return true;
}

bool inherit_is_at(int launcher, int fd, int own)
{
    uint64_t id = memfile_id_of(own);
    return launcher > 0 && id && memfile_id_at(launcher, fd) == id;
}

static int open_at(int launcher, int fd, uint64_t id)
{
    int own = memfile_open_at(launcher, fd, id);
    return own < 0 ? own : memfile_move_up(own);
}

int inherit_fd(int fd, uint64_t id, int launcher)
{
    uint64_t there = memfile_id_of(fd);
    if (there && (!id || there == id)) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        return fd;
    }
    if (there) errno = EBADF; /* it is another file now */
    return id && launcher > 0 ? open_at(launcher, fd, id) : -1;
}
