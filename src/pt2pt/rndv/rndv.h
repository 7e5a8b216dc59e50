/*
 * rndv.h - large messages under way in a lane. Each list belongs to the file that is named, which registers its step.
 */
#ifndef TERN_PT2PT_RNDV_RNDV_H
#define TERN_PT2PT_RNDV_RNDV_H

#include "pt2pt/worklist.h"

struct rndv {
    struct worklist incoming; /* receives being copied here (offer.c) */
    struct worklist outgoing; /* sends offered to their receivers (offer.c) */
    struct worklist streams;  /* sends going out in fragments; more wait in peer_lane.streams_waiting (stream.c) */
    struct worklist bulks;    /* sends and receives that the wire has no room for yet (bulk.c) */
    uint32_t bulks_under_way; /* such requests that the wire works on; in no list */
    uint32_t probed;          /* offers that MPI_Mprobe has taken, and no receive yet */
    struct pt_offer *retired_head, *retired_tail; /* offer.c */
};

void offer_open(struct lane *);
void stream_open(struct lane *);
void bulk_open(struct lane *);

#endif
