/*
 * ended.c - has a process of this host ended? Asked without /proc and without permission.
 */
#include "proc/proc.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* A process that exits gives its memory back first, then its descriptors, and only then is reported to its parent. The
 * system looks for the memory before it looks at permissions. */
static bool has_no_memory(pid_t pid)
{
    char byte;
    struct iovec local = {&byte, 1}, remote = {NULL, 1};
    return syscall(SYS_process_vm_readv, pid, &local, 1, &remote, 1, 0) < 0 && errno == ESRCH;
}

bool proc_has_ended(pid_t pid)
{
    if (pid <= 0) return false;
    if (has_no_memory(pid) || (kill(pid, 0) && errno == ESRCH)) return true;
    struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    if (p.fd < 0) return errno == ESRCH;
    bool ended = poll(&p, 1, 0) > 0; /* readable once the process is a zombie */
    close(p.fd);
    return ended;
}
