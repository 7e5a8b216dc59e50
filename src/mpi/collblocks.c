/* collblocks.c - see collblocks.h. */
#include "mpi/collblocks.h"

static int widen_blocks(struct comm *c, const char *call, struct blocks *b)
{
    if (!b->counts && !b->wide_counts) return bad_null(c, call, b->names->counts);
    if (!b->displs && !b->wide_displs) return bad_null(c, call, b->names->displs);
    if (b->counts) b->wide_counts = wide_ints(&b->c, comm_peers(c), b->counts);
    if (b->displs) b->wide_displs = wide_ints(&b->d, comm_peers(c), b->displs);
    if (!b->wide_counts || !b->wide_displs)
        return report(c, call, MPI_ERR_NO_MEM, "no memory for arrays of %d entries", comm_peers(c));
    return MPI_SUCCESS;
}

static int open_types(struct comm *c, const char *call, struct blocks *b)
{
    if (!b->each) {
        b->type = type_of(b->datatype);
        return type_ready(b->type) ? MPI_SUCCESS : bad_type(c, call, b->datatype, b->names->type);
    }
    if (!b->datatypes) return bad_null(c, call, b->names->type);
    b->types = malloc((size_t)comm_peers(c) * sizeof(struct type *));
    if (!b->types) return report(c, call, MPI_ERR_NO_MEM, "no memory for arrays of %d entries", comm_peers(c));
    for (int i = 0; i < comm_peers(c); i++) {
        b->types[i] = type_of(b->datatypes[i]);
        if (!type_ready(b->types[i])) return bad_type(c, call, b->datatypes[i], b->names->type);
    }
    return MPI_SUCCESS;
}

static int check_counts(struct comm *c, const char *call, const struct blocks *b)
{
    for (int i = 0; i < comm_peers(c); i++) {
        if (b->wide_counts[i] < 0)
            return report(c, call, MPI_ERR_COUNT, "argument %s[%d] is %lld, which is negative", b->names->counts, i,
                          (long long)b->wide_counts[i]);
        if (!buffer_ok(b->buf, b->wide_counts[i], b->types ? b->types[i] : b->type)) return bad_buffer(c, call, b->names->buf);
    }
    return MPI_SUCCESS;
}

int blocks_open(struct comm *c, const char *call, struct blocks *b)
{
    if (b->buf == MPI_IN_PLACE) return bad_in_place(c, call, b->names->side);
    int rc = widen_blocks(c, call, b);
    if (!rc) rc = open_types(c, call, b);
    if (!rc) rc = check_counts(c, call, b);
    return rc;
}

void blocks_close(struct blocks *b)
{
    free(b->types);
    wide_close(&b->c);
    wide_close(&b->d);
}
