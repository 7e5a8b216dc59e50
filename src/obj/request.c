/* request.c - memory of requests. */
#include "obj/request.h"
#include "base/err.h"

#include <string.h>

struct request *request_done;

/* Requests given back, the last one first, linked by `xfer`; where threads allocate, the arena's own lists serve. */
static struct request *spare;

static_assert(sizeof(struct request) % 16 == 0, "cleared by vectors of 16 bytes");

/* Piece by piece: for the whole at once gcc takes a string instruction, which costs 8 ns before its first byte. */
static inline void clear(struct request *r)
{
    for (char *p = (char *)r; p < (char *)(r + 1); p += 16) {
        memset(p, 0, 16);
        atomic_signal_fence(memory_order_seq_cst); /* or the compiler makes the whole of it again */
    }
}

static struct request *take(void)
{
    struct request *r = spare;
    if (unlikely(!r)) return handle_alloc(HANDLE_REQUEST, sizeof *r);
    spare = r->xfer;
    clear(r);
    r->h.kind = HANDLE_REQUEST;
    return r;
}

struct request *request_new(uint8_t kind)
{
    struct request *r = take();
    if (unlikely(!r)) {
        err_set(TERN_ERR_NOMEM, "no memory for a request");
        return NULL;
    }
    r->kind = kind;
    r->flags = REQ_HEAP;
    return r;
}

void request_free(struct request *r)
{
    if (r->flags & REQ_KEPT) {
        r->hooks->keep(r);
        return;
    }
    if (!(r->flags & REQ_HEAP)) return;
    if (unlikely(handle_is_threaded())) {
        handle_release(r, sizeof *r);
        return;
    }
    r->h.kind = HANDLE_DEAD;
    r->xfer = spare;
    spare = r;
}

void request_share(void)
{
    while (spare) {
        struct request *r = spare;
        spare = r->xfer;
        handle_release(r, sizeof *r);
    }
}

int request_open(void)
{
    spare = NULL; /* what was there belonged to an earlier arena */
    struct request *r = request_new(REQ_NONE);
    if (!r) return TERN_ERR_NOMEM;
    r->flags = REQ_SHARED;
    r->result = (struct request_result){.source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG};
    atomic_store_explicit(&r->complete, 1, memory_order_relaxed);
    request_done = r;
    return 0;
}
