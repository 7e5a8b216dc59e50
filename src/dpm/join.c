/*
 * join.c - two processes that have a socket between them; see dpm.h. Each opens an end, and they swap the names of these; the one whose name
 * is the lower one is called by the other.
 */
#include "base/err.h"
#include "dpm/connect.h"
#include "pt2pt/lane.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int broken(int fd)
{
    return errno ? err_sys("descriptor %d", fd) : err_set(TERN_ERR_PEER, "the process at the other end of the socket has closed it");
}

/* The process at the other end may call when it likes: there is no time limit. Other messages are gone on with. */
static int move(int fd, char *bytes, size_t n, bool out)
{
    for (size_t done = 0; done < n;) {
        int rc = ends_await_fd(fd, out ? POLLOUT : POLLIN, NULL, UINT64_MAX);
        if (rc) return rc;
        errno = 0;
        ssize_t k = out ? send(fd, bytes + done, n - done, MSG_NOSIGNAL | MSG_DONTWAIT) : recv(fd, bytes + done, n - done, MSG_DONTWAIT);
        if (k > 0) done += (size_t)k;
        else if (errno != EAGAIN && errno != EINTR) return broken(fd);
    }
    return 0;
}

/* A text of fixed length each way. */
static int swap(int fd, char mine[PORT_NAME], char its[PORT_NAME])
{
    lane_sleep_soon(true);
    int rc = move(fd, mine, PORT_NAME, true);
    if (!rc) rc = move(fd, its, PORT_NAME, false);
    lane_sleep_soon(false);
    if (!rc && !memchr(its, 0, PORT_NAME)) rc = err_set(TERN_ERR_SYSTEM, "what came by the socket is no name of a port");
    return rc;
}

static int join(int fd, struct end *e, const struct crypto *c, struct comm **out)
{
    char mine[PORT_NAME] = "", its[PORT_NAME];
    struct port port;
    end_port(e, &port);
    port_write(&port, c, mine);
    int rc = swap(fd, mine, its);
    if (rc) return rc;
    if (strcmp(mine, its) < 0) return connect_groups(comm_self(), 0, 0, connect_accept, e, out);
    return connect_groups(comm_self(), 0, 0, connect_call, its, out);
}

int dpm_join(int fd, struct comm **out)
{
    const struct crypto *c = ends_crypto();
    uint8_t key[CRYPTO_KEY];
    struct end *e;
    *out = NULL;
    if (!c) return err_code();
    c->random(key, sizeof key);
    int rc = end_open(key, &e);
    explicit_bzero(key, sizeof key);
    if (rc) return rc;
    rc = join(fd, e, c, out);
    end_close(e);
    return rc;
}
