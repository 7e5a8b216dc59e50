/* direct.c - see direct.h. */
#include "coll/node/direct.h"
#include "base/err.h"
#include "copy/copy.h"
#include "pt2pt/lane.h"
#include "transport/endpoint.h"

#include <string.h>

int node_say_all(struct node *n, uint64_t first, uint64_t second, struct node_said *said)
{
    uint32_t seq;
    uint64_t words[2] = {first, second};
    int rc = node_begin(n, false, NODE_BY_PLACES, &seq);
    if (rc) return rc;
    memcpy(node_slot(n, seq, n->rank)->payload, words, sizeof words);
    node_contribute(n, seq);
    rc = node_wait_for(n, seq, NODE_ALL);
    for (int r = 0; r < n->size; r++) memcpy(said->place[r], node_slot(n, seq, r)->payload, sizeof said->place[r]);
    node_finish(n, seq, true);
    return rc;
}

void node_meet(struct node *n)
{
    uint32_t seq;
    if (node_begin(n, false, NODE_BY_PLACES, &seq)) return;
    node_contribute(n, seq);
    node_wait_for(n, seq, NODE_ALL);
    node_finish(n, seq, true);
}

/* Bytes of one system call. Between two of them other messages have their turn. */
#define PIECE ((size_t)512 << 10)

static int move(struct node *n, int rank, uint64_t there, char *here, size_t bytes, bool store)
{
    struct lane *l = n->comm->lane;
    int rc = 0;
    lane_enter(l);
    struct peer *p = peer_get(comm_index(n->comm, rank));
    if (!p) rc = err_code();
    for (size_t at = 0; at < bytes && !rc; at += PIECE) {
        size_t part = min_size(PIECE, bytes - at);
        struct iovec mine = {here + at, part}, its = {(void *)(uintptr_t)(there + at), part};
        if (at) lane_progress(l);
        if (!(p->ep.caps & TP_CAP_GETPUT))
            rc = TERN_ERR_UNSUPPORTED;
        else
            rc = store ? ep_put(&p->ep, &mine, 1, &its, 1) : ep_get(&p->ep, &mine, 1, &its, 1);
    }
    lane_leave(l);
    return rc == TERN_ERR_UNSUPPORTED
               ? err_set(TERN_ERR_SYSTEM, "the system no longer lets rank %d's memory be reached", rank)
               : rc;
}

int node_fetch(struct node *n, int rank, void *to, uint64_t place, size_t bytes)
{
    return bytes ? move(n, rank, place, to, bytes, false) : 0;
}

int node_store(struct node *n, int rank, uint64_t place, const void *from, size_t bytes)
{
    return bytes ? move(n, rank, place, (char *)(uintptr_t)from, bytes, true) : 0;
}
