/*
 * join.c - two processes that have a socket between them; see dpm.h. Each opens an endpoint, and they swap the names of these; the one
 * whose name is the lower one is called by the other, which says by one byte at the end how that went:
 *
 *     lower name                                  higher name
 *        | <-- names, each PORT_NAME bytes; an empty one: no endpoint --> |       by the socket
 *        | <------------------- calls (connect.h) ----------------------- |       by datagrams
 *        | <------------------- JOINED or FAILED ------------------------ |       by the socket
 *
 * So the one that is called waits for no call that does not come, and both have joined, or neither.
 */
#include "base/err.h"
#include "dpm/connect.h"
#include "pt2pt/lane.h"

#include <string.h>
#include <sys/socket.h>

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

static int call(int fd, char *its, struct comm **out)
{
    int rc = connect_groups(comm_self(), 0, 0, connect_call, its, out);
    char verdict = rc ? FAILED : JOINED;
    err_keep(&verdict, rc);
    (void)move(fd, &verdict, 1, true); /* who has gone from there will not miss it */
    err_recall(&verdict, rc);
    return rc;
}

static int await_call(int fd, struct endpoint *e, struct comm **out)
{
    char verdict = FAILED;
    endpoint_give_up_at(e, fd);
    int rc = err_keep(&verdict, connect_groups(comm_self(), 0, 0, connect_accept, e, out));
    if (rc) {
        (void)!recv(fd, &verdict, 1, MSG_DONTWAIT); /* if it has said so */
        err_recall(&verdict, rc);
        return rc;
    }
    rc = move(fd, &verdict, 1, false);
    if (!rc && verdict != JOINED) rc = err_set(TERN_ERR_PEER, "the other process could not join; it has the reason");
    if (!rc) return 0;
    comm_unref(*out);
    *out = NULL;
    return rc;
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
    if (!rc) rc = strcmp(mine, its) < 0 ? await_call(fd, e, out) : call(fd, its, out);
    endpoint_close(e);
    return rc;
}
