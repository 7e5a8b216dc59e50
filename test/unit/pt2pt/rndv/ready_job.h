/*
 * ready_job.h - what the tests of early receivers inside a node share: a process that is rank 1 of 2, buffers, and the transfers
 * that it or the other side has announced.
 *
 * (Linked with --wrap for calloc.)
 */
#ifndef TERN_TEST_READY_JOB_H
#define TERN_TEST_READY_JOB_H

#include "../mock_job.h"
#include "base/err.h"
#include "pt2pt/rndv/ready.h"
#include "transport/shared.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES = 300000, TAG = 5, MOST = 4 };
static char out[2][BYTES], in[MOST + 1][BYTES + 1];
static struct comm *world;
static struct peer *other;

static bool no_memory; /* for calloc */
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size) { return no_memory ? NULL : __real_calloc(n, size); }

static void open_job_with(uint32_t caps)
{
    struct mock_script script = MOCK_SCRIPT;
    script.caps = caps;
    setenv("TERN_CHUNK_CMA", "64K", 1);
    world = job_open_played(&script);
    other = job_peer();
    memset(in, 0, sizeof in);
}

static void open_job(void) { open_job_with(TP_CAP_BCOPY | TP_CAP_GETPUT | TP_CAP_MAP); }

static struct pt_offer *transfer_at(uint64_t at)
{
    struct pt_offer *o = shared_at(at & ~(uint64_t)RTS_READY);
    assert_non_null(o);
    return o;
}

static enum transfer_life life_at(uint64_t at) { return transfer_life(&transfer_at(at)->transfer); }

#endif
