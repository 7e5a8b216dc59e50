/* memfile.c - see memfile.h. */
#include "base/memfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

/* ---- keys ---- */

static uint64_t boot;

uint64_t memfile_mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static uint64_t boot_of_system(void)
{
    char text[64] = "";
    uint64_t key = 1;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        if (read(fd, text, sizeof text - 1) < 0) text[0] = 0;
        close(fd);
    }
    if (!text[0] && getrandom(&key, sizeof key, 0) != sizeof key) key = (uint64_t)getpid();
    for (const char *c = text; *c; c++) key = memfile_mix(key, (uint64_t)*c);
    return key ? key : 1;
}

uint64_t memfile_boot(void)
{
    if (!boot) boot = boot_of_system();
    return boot;
}

void memfile_boot_is(uint64_t key) { boot = key; }
uint64_t memfile_key(uint64_t id) { return id ? memfile_mix(memfile_boot(), id) : 0; }

/* ---- of other processes ---- */

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

/* A duplicate, whatever it is. */
static int get_fd(int pid, int fd)
{
    int process = (int)syscall(SYS_pidfd_open, pid, 0);
    if (process < 0) return -1;
    int own = (int)syscall(SYS_pidfd_getfd, process, fd, 0), why = errno;
    close(process);
    errno = why;
    return own;
}

int memfile_take_at(int pid, int fd, uint64_t key)
{
    int own = get_fd(pid, fd);
    if (own >= 0) {
        if (memfile_key(memfile_id_of(own)) == key) return own;
        close(own);
        errno = EBADF;
        return -1;
    }
    uint64_t id = memfile_id_at(pid, fd);
    if (id && memfile_key(id) == key) return memfile_open_at(pid, fd, id);
    if (id) errno = EBADF;
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
