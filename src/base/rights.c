/* rights.c - see rights.h. */
#include "base/rights.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
    struct cmsghdr head;
    char room[CMSG_SPACE(RIGHTS_MOST * sizeof(int))];
};

ssize_t rights_send(int socket, const void *bytes, size_t n, const int *descriptors, int count, int flags)
{
    union control control = {0};
    size_t size = (size_t)count * sizeof *descriptors;
    struct iovec v = {(void *)(uintptr_t)bytes, n};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    if (count) {
        m.msg_control = &control;
        m.msg_controllen = CMSG_SPACE(size);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        *c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(size)};
        memcpy(CMSG_DATA(c), descriptors, size);
    }
    return sendmsg(socket, &m, flags | MSG_NOSIGNAL);
}

/* Those of another number than was asked for are closed. */
static void take(const struct cmsghdr *c, int *descriptors, int count)
{
    int all[RIGHTS_MOST], n = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof *all);
    memcpy(all, CMSG_DATA(c), (size_t)n * sizeof *all);
    for (int i = 0; i < n; i++) {
        if (n == count) descriptors[i] = all[i];
        else close(all[i]);
    }
}

ssize_t rights_recv(int socket, void *bytes, size_t n, int *descriptors, int count)
{
    union control control = {0};
    struct iovec v = {bytes, n};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t got;
    for (int i = 0; i < count; i++) descriptors[i] = -1;
    do got = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    const struct cmsghdr *c = got > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) take(c, descriptors, count);
    return got;
}
