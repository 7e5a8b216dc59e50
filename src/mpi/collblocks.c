/* collblocks.c - see collblocks.h. */
#include "mpi/collblocks.h"

static int widen_blocks(struct comm *c, const char *call, int n, struct blocks *b)
{
    if (!n) return MPI_SUCCESS;
    if (!b->counts && !b->wide_counts) return bad_null(c, call, b->names->counts);
    if (!b->displs && !b->wide_displs) return bad_null(c, call, b->names->displs);
    if (b->counts) b->wide_counts = wide_ints(&b->wide[0], n, b->counts);
    if (b->displs) b->wide_displs = wide_ints(&b->wide[1], n, b->displs);
    if (!b->wide_counts || !b->wide_displs)
        return report(c, call, MPI_ERR_NO_MEM, "no memory for arrays of %d entries", n);
    return MPI_SUCCESS;
}

static int open_types(struct comm *c, const char *call, int n, struct blocks *b)
{
    if (!b->each) {
        b->type = type_of(b->datatype);
        return type_ready(b->type) ? MPI_SUCCESS : bad_type(c, call, b->datatype, b->names->type);
    }
    if (!n) return MPI_SUCCESS;
    if (!b->datatypes) return bad_null(c, call, b->names->type);
    b->types = malloc((size_t)n * sizeof(struct type *));
    if (!b->types) return report(c, call, MPI_ERR_NO_MEM, "no memory for arrays of %d entries", n);
    for (int i = 0; i < n; i++) {
        b->types[i] = type_of(b->datatypes[i]);
        if (!type_ready(b->types[i])) return bad_type(c, call, b->datatypes[i], b->names->type);
    }
    return MPI_SUCCESS;
}

static int check_counts(struct comm *c, const char *call, int n, const struct blocks *b)
{
    for (int i = 0; i < n; i++) {
        if (b->wide_counts[i] < 0)
            return report(c, call, MPI_ERR_COUNT, "argument %s[%d] is %lld, which is negative", b->names->counts, i,
                          (long long)b->wide_counts[i]);
        if (!buffer_ok(b->buf, b->wide_counts[i], b->types ? b->types[i] : b->type)) return bad_buffer(c, call, b->names->buf);
    }
    return MPI_SUCCESS;
}

int blocks_open_some(struct comm *c, const char *call, int n, struct blocks *b, struct blocks_room *room)
{
    b->wide = room->wide;
    room->wide[0].many = room->wide[1].many = NULL;
    if (b->buf == MPI_IN_PLACE) return bad_in_place(c, call, b->names->side);
    int rc = widen_blocks(c, call, n, b);
    if (!rc) rc = open_types(c, call, n, b);
    if (!rc) rc = check_counts(c, call, n, b);
    return rc;
}

int blocks_open(struct comm *c, const char *call, struct blocks *b, struct blocks_room *room)
{
    return blocks_open_some(c, call, comm_peers(c), b, room);
}

void blocks_close(struct blocks *b)
{
    free(b->types);
    if (!b->wide) return;
    wide_close(&b->wide[0]);
    wide_close(&b->wide[1]);
}
