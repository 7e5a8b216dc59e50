/* memfile.c - see memfile.h. */
#include "base/memfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t memfile_limit(void)
{
    struct rlimit r;
    return getrlimit(RLIMIT_FSIZE, &r) || r.rlim_cur == RLIM_INFINITY ? UINT64_MAX : r.rlim_cur;
}

bool memfile_resize(int fd, uint64_t bytes)
{
    if (bytes <= memfile_limit()) return !ftruncate(fd, (off_t)bytes);
    errno = EFBIG;
    return false;
}

/* An inode number is unique within its device; the numbers of memfds are small. */
static uint64_t id_from(const struct stat *st) { return (uint64_t)st->st_ino ^ (uint64_t)st->st_dev << 48; }

uint64_t memfile_id_of(int fd)
{
    struct stat st;
    return fstat(fd, &st) ? 0 : id_from(&st);
}

enum { PATH_ROOM = 48 };

static void path_at(int pid, int fd, char path[static PATH_ROOM])
{
    snprintf(path, PATH_ROOM, "/proc/%d/fd/%d", pid, fd);
}

uint64_t memfile_id_at(int pid, int fd)
{
    char path[PATH_ROOM];
    struct stat st;
    path_at(pid, fd, path);
    return stat(path, &st) ? 0 : id_from(&st);
}

int memfile_open_at(int pid, int fd, uint64_t id)
{
    char path[PATH_ROOM];
    uint64_t there = memfile_id_at(pid, fd);
    if (!there) return -1;
    path_at(pid, fd, path);
    if (there == id) return open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    errno = ESRCH;
    return -1;
}

#define FD_FLOOR 64

int memfile_move_up(int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, FD_FLOOR);
    if (high < 0) high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1); /* a tight limit on descriptors */
    if (high < 0) return fd;
    close(fd);
    return high;
}
