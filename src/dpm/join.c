/*
 * join.c - two processes that have a socket between them; see dpm.h. Each opens an endpoint, and they swap the names of these; the one
 * whose name is the lower one is called by the other.
 */
#include "base/err.h"
#include "dpm/connect.h"
#include "pt2pt/lane.h"

#include <string.h>

/* A text of fixed length each way. The process at the other end may call when it likes: there is no time limit. */
static int swap(int fd, char mine[PORT_NAME], char its[PORT_NAME])
{
    lane_wait_so(LANE_SLEEPS);
    int rc = endpoints_move(fd, NULL, mine, PORT_NAME, true);
    if (!rc) rc = endpoints_move(fd, NULL, its, PORT_NAME, false);
    lane_wait_so(LANE_POLLS);
    if (!rc && !memchr(its, 0, PORT_NAME)) rc = err_set(TERN_ERR_SYSTEM, "what came by the socket is no name of a port");
    return rc;
}

static int join(int fd, struct endpoint *e, struct comm **out)
{
    char mine[PORT_NAME] = "", its[PORT_NAME];
    endpoint_name(e, mine);
    int rc = swap(fd, mine, its);
    if (rc) return rc;
    if (strcmp(mine, its) < 0) return connect_groups(comm_self(), 0, 0, connect_accept, e, out);
    return connect_groups(comm_self(), 0, 0, connect_call, its, out);
}

int dpm_join(int fd, struct comm **out)
{
    struct endpoint *e;
    *out = NULL;
    int rc = endpoint_open(&e);
    if (rc) return rc;
    rc = join(fd, e, out);
    endpoint_close(e);
    return rc;
}
