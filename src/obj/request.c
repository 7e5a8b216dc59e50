/* request.c - memory of requests. */
#include "obj/request.h"
#include "base/err.h"

struct request request_done = {
    .h = {HANDLE_REQUEST, 1},
    .complete = 1,
    .flags = REQ_SHARED,
    .result = {.source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG},
};

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
