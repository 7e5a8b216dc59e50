/* envelope.c - recording and reading back the arguments of type constructors. */
#include "type/envelope.h"
#include "base/err.h"

#include <stdlib.h>

struct envelope *envelope_new(int combiner, int64_t nargs)
{
    struct envelope *e = calloc(1, sizeof *e + (size_t)nargs * sizeof e->args[0]);
    if (!e) return NULL;
    e->combiner = combiner;
    e->room = nargs;
    return e;
}

static void open_run(struct envelope *e, enum envelope_class cls, int64_t n)
{
    assert(e->n + n <= e->room);
    if (e->nruns == 0 || e->runs[e->nruns - 1].cls != cls) {
        assert(e->nruns < (int)ARRAY_LEN(e->runs));
        e->runs[e->nruns++] = (struct envelope_run){.cls = cls};
    }
    e->runs[e->nruns - 1].n += n;
}

void envelope_add(struct envelope *e, enum envelope_class cls, int64_t n, const int64_t *args)
{
    open_run(e, cls, n);
    for (int64_t i = 0; i < n; i++) e->args[e->n++] = args[i];
}

void envelope_add_ints(struct envelope *e, int64_t n, const int *args)
{
    open_run(e, ENVELOPE_INT, n);
    for (int64_t i = 0; i < n; i++) e->args[e->n++] = args[i];
}

/* Which of the user's arrays a class goes to. */
enum array { INTS, ADDRESSES, COUNTS };

static enum array array_of(const struct envelope *e, enum envelope_class cls)
{
    if (cls == ENVELOPE_INT) return INTS;
    if (e->large) return COUNTS;
    return cls == ENVELOPE_COUNT ? INTS : ADDRESSES;
}

void type_get_envelope(const struct type *t, struct type_envelope *out)
{
    const struct envelope *e = t->envelope;
    int64_t n[3] = {0};
    if (!e) {
        *out = (struct type_envelope){.combiner = MPI_COMBINER_NAMED};
        return;
    }
    for (int i = 0; i < e->nruns; i++) n[array_of(e, e->runs[i].cls)] += e->runs[i].n;
    *out = (struct type_envelope){e->combiner, n[INTS], n[ADDRESSES], n[COUNTS], t->nparts};
}

int type_contents(const struct type *t, int *ints, MPI_Aint *addresses, MPI_Count *counts, MPI_Datatype *types)
{
    const struct envelope *e = t->envelope;
    if (!e) return err_set(TERN_ERR_TYPE, "%s is predefined and has no contents", type_name(t));
    const int64_t *arg = e->args;
    for (int i = 0; i < e->nruns; i++) {
        enum array to = array_of(e, e->runs[i].cls);
        for (int64_t k = 0; k < e->runs[i].n; k++, arg++) {
            if (to == INTS)
                *ints++ = (int)*arg;
            else if (to == ADDRESSES)
                *addresses++ = (MPI_Aint)*arg;
            else
                *counts++ = *arg;
        }
    }
    for (int64_t i = 0; i < t->nparts; i++) {
        type_ref(t->parts[i].type);
        types[i] = type_handle(t->parts[i].type);
    }
    return 0;
}
