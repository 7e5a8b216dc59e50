/* request.c - memory of requests. */
#include "obj/request.h"
#include "base/err.h"

struct request *request_done;

int request_open(void)
{
    struct request *r = request_new(REQ_NONE);
    if (!r) return TERN_ERR_NOMEM;
    r->flags = REQ_SHARED;
    r->result = (struct request_result){.source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG};
    atomic_store_explicit(&r->complete, 1, memory_order_relaxed);
    request_done = r;
    return 0;
}

struct request *request_new(uint8_t kind)
{
    struct request *r = handle_alloc(HANDLE_REQUEST, sizeof *r);
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
    if (r->flags & REQ_HEAP) handle_release(r, sizeof *r);
}
