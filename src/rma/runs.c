/* runs.c - see runs.h. */
#include "rma/runs.h"

#include <string.h>

#define CHUNK 64 /* elements with gaps that are moved at a time */

/* Elements with gaps come one at a time: the packed form of one may be two pieces of memory. */
static int64_t next_with_gaps(struct win_runs *r, char **at)
{
    struct iovec first = {0};
    int n = 1;
    size_t had = type_iov(&r->c, &first, &n, (size_t)r->basic->size);
    if (!had) return 0;
    *at = (char *)first.iov_base - r->basic->true_lb;
    type_cursor_seek(&r->c, r->c.pos + (size_t)r->basic->size - had);
    return 1;
}

int64_t win_runs_next(struct win_runs *r, int64_t most, char **at)
{
    struct iovec run = {0};
    int n = 1;
    if (r->basic && win_has_gaps(r->basic)) return most ? next_with_gaps(r, at) : 0;
    int64_t each = r->basic ? r->basic->size : 1;
    if (most > INT64_MAX / each) most = INT64_MAX / each;
    size_t bytes = type_iov(&r->c, &run, &n, (size_t)(most * each));
    *at = run.iov_base;
    return (int64_t)bytes / each;
}

/* Through a packed copy of some elements. */
static void with_gaps(struct type_cursor *c, const struct type *basic, char *native, int64_t n, bool out)
{
    char packed[CHUNK * 32];
    int64_t each = CHUNK * 32 / basic->size;
    for (int64_t done = 0; done < n;) {
        int64_t now = min_int64(each, n - done);
        struct type_cursor k;
        type_cursor_init(&k, basic, now, native + done * basic->extent);
        size_t bytes = (size_t)(now * basic->size);
        if (out) {
            type_pack(c, packed, bytes);
            type_unpack(&k, packed, bytes);
        } else {
            type_pack(&k, packed, bytes);
            type_unpack(c, packed, bytes);
        }
        done += now;
    }
}

void win_elements_out(struct type_cursor *c, const struct type *basic, void *out, int64_t n)
{
    if (win_has_gaps(basic)) {
        memset(out, 0, (size_t)(n * basic->extent)); /* they may go to another process */
        with_gaps(c, basic, out, n, true);
        return;
    }
    type_pack(c, out, (size_t)(n * basic->size));
}

void win_elements_in(struct type_cursor *c, const struct type *basic, const void *in, int64_t n)
{
    if (win_has_gaps(basic)) with_gaps(c, basic, (char *)(uintptr_t)in, n, false);
    else type_unpack(c, in, (size_t)(n * basic->size));
}
