/*
 * mock_bulk.h - the bulk transfers of an endpoint of the mock transport: a send and a receive of the same tag meet, the
 * data are copied, and both sides are told, in an order that the script decides (mock.h).
 *
 * Threads: under the lane's lock, as all of the transport.
 */
#ifndef TERN_TRANSPORT_MOCK_BULK_H
#define TERN_TRANSPORT_MOCK_BULK_H

#include "base/list.h"
#include "transport/transport.h"

struct mock_bulks {
    struct link sends, receives, ended; /* struct bulk; `ended` have not been told so */
    uint32_t begun[2];                  /* receives and sends that have begun, and not ended */
};

/* One side of a transfer that a call begins. */
struct mock_bulk {
    uint64_t tag;
    void *at;
    size_t n; /* bytes */
    struct tp_op *op;
};

void mock_bulks_open(struct mock_bulks *);

/* Frees all without a word. */
void mock_bulks_close(struct mock_bulks *);

/* As tp_ops.bulk_send and bulk_recv: TERN_DONE; 0: `op` is told, maybe during the call; TERN_AGAIN: there is no room;
 * or a code with words (TERN_ERR_UNSUPPORTED, TERN_ERR_NOMEM, and TERN_ERR_PEER where the two sides differ in length).
 */
int mock_bulk_begin(struct mock_bulks *, const struct mock_bulk *, bool sends);

/* Is there something for mock_bulk_deliver? Transfers that have begun, and may wait for the other side? */
bool mock_bulks_ready(const struct mock_bulks *);
bool mock_bulks_wait(const struct mock_bulks *);

/* Tells the end of one transfer at one side, or has the data of one arrive; 0: there is none. */
int mock_bulk_deliver(struct mock_bulks *);

/* The peer is gone. Tells all that has ended, which has ended well. Then the caller ends what has begun, while
 * mock_bulks_wait, one by one with this code, whose words it has set. */
void mock_bulks_tell_ended(struct mock_bulks *);
void mock_bulk_fail(struct mock_bulks *, int code);

#endif
