/*
 * join.c - two processes that have a socket between them; see dpm.h. Each opens an endpoint, and they swap the names of these; the one
 * whose name is the lower one is called by the other. At the end each says by one byte how that went:
 *
 *     lower name                                  higher name
 *        | <-- names, each PORT_NAME bytes; an empty one: no endpoint --> |       by the socket
 *        | <------------------- calls (connect.h) ----------------------- |       by datagrams
 *        | <--------------- JOINED or FAILED, each way -----------------> |       by the socket
 *
 * So the one that is called waits for no call that does not come. One that has joined waits for the other's byte, and has failed if
 * that is not JOINED. One that has failed waits for it for a while, so that nothing is left in the socket.
 */
#include "base/clock.h"
#include "base/err.h"
#include "dpm/connect.h"
#include "pt2pt/lane.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define ITS_BYTE_NS 1000000000u

enum verdict { FAILED = 'n', JOINED = 'y' };

/* n bytes one way. The process at the other end may come when it likes: there is no time limit. */
static int move(int fd, void *bytes, size_t n, bool out)
{
    lane_wait_so(LANE_SLEEPS);
    int rc = endpoints_move(fd, NULL, bytes, n, out);
    lane_wait_so(LANE_POLLS);
    return rc;
}

static int swap(int fd, char mine[PORT_NAME], char its[PORT_NAME])
{
    int rc = move(fd, mine, PORT_NAME, true);
    if (!rc) rc = move(fd, its, PORT_NAME, false);
    if (!rc && !memchr(its, 0, PORT_NAME)) rc = err_set(TERN_ERR_SYSTEM, "what came by the socket is no name of a port");
    if (!rc && !*its) rc = err_set(TERN_ERR_PEER, "the other process cannot be connected to; it has the reason");
    return rc;
}

static int agree(int fd, int rc, struct comm **made)
{
    char mine = rc ? FAILED : JOINED, its = FAILED;
    err_keep(&mine, rc);
    int told = move(fd, &mine, 1, true);
    if (rc) {
        lane_wait_so(LANE_SLEEPS);
        if (!told) told = endpoints_await_fd(fd, POLLIN, NULL, clock_ns() + ITS_BYTE_NS);
        lane_wait_so(LANE_POLLS);
        if (!told) (void)!recv(fd, &its, 1, MSG_DONTWAIT);
        err_recall(&mine, rc);
        return rc;
    }
    if (!told) told = move(fd, &its, 1, false);
    if (!told && its != JOINED) told = err_set(TERN_ERR_PEER, "the other process could not join; it has the reason");
    if (!told) return 0;
    comm_unref(*made);
    *made = NULL;
    return told;
}

static int join(int fd, struct endpoint *e, const char *mine, char *its, struct comm **out)
{
    if (strcmp(mine, its) > 0) return connect_groups(comm_self(), 0, 0, connect_call, its, out);
    endpoint_give_up_at(e, fd);
    return connect_groups(comm_self(), 0, 0, connect_accept, e, out);
}

int dpm_join(int fd, struct comm **out)
{
    char mine[PORT_NAME] = "", its[PORT_NAME];
    struct endpoint *e;
    *out = NULL;
    int rc = endpoint_open(&e);
    if (rc) {
        (void)!send(fd, mine, sizeof mine, MSG_NOSIGNAL | MSG_DONTWAIT);
        return rc;
    }
    endpoint_name(e, mine);
    rc = swap(fd, mine, its);
    if (!rc) rc = agree(fd, join(fd, e, mine, its, out), out);
    err_keep(e, rc);
    endpoint_close(e); /* which may have words of its own for what is given up */
    err_recall(e, rc);
    return rc;
}
