/*
 * types.c - derived datatypes (MPI-5.0 chapter 5): size and bounds of what each constructor makes, what it moves in a message (against
 * an explicit list of displacements), names, duplicates, envelopes and contents; the _c forms make the same.
 */
#include "../check.h"

enum { ROOM = 4096 };

/* Sends one element of `type` to oneself as bytes, and back: the packed bytes must be those at displs[0..n). */
static void moves(MPI_Datatype type, const int *displs, int n, const char *what)
{
    static unsigned char out[ROOM], packed[ROOM], in[ROOM];
    int bad = 0, gaps = 0, size = -1;
    MPI_Status st;
    for (int i = 0; i < ROOM; i++) out[i] = (unsigned char)(i * 7 + 1), in[i] = 0xcc;
    CHECK_OK(MPI_Type_size(type, &size));
    CHECK(size == n, "%s: size %d instead of %d", what, size, n);
    CHECK_OK(MPI_Sendrecv(out, 1, type, check_rank, 1, packed, ROOM, MPI_BYTE, check_rank, 1, MPI_COMM_WORLD, &st));
    MPI_Get_count(&st, MPI_BYTE, &size);
    for (int i = 0; i < n; i++) bad += packed[i] != out[displs[i]];
    CHECK(size == n && bad == 0, "%s: %d bytes packed, %d wrong", what, size, bad);
    CHECK_OK(MPI_Sendrecv(packed, n, MPI_BYTE, check_rank, 2, in, 1, type, check_rank, 2, MPI_COMM_WORLD, &st));
    for (int i = 0; i < n; i++) {
        bad += in[displs[i]] != out[displs[i]];
        in[displs[i]] = 0xcc;
    }
    for (int i = 0; i < ROOM; i++) gaps += in[i] != 0xcc;
    CHECK(bad == 0 && gaps == 0, "%s: %d bytes wrong, %d written that are not in the type", what, bad, gaps);
}

static void bounds(MPI_Datatype type, long lb, long extent, long true_lb, long true_extent, const char *what)
{
    MPI_Aint a = -1, b = -1;
    MPI_Count x = -1, y = -1;
    CHECK_OK(MPI_Type_get_extent(type, &a, &b));
    CHECK(a == lb && b == extent, "%s: lb %ld, extent %ld", what, (long)a, (long)b);
    CHECK_OK(MPI_Type_get_true_extent(type, &a, &b));
    CHECK(a == true_lb && b == true_extent, "%s: true lb %ld, true extent %ld", what, (long)a, (long)b);
    CHECK_OK(MPI_Type_get_extent_x(type, &x, &y));
    CHECK(x == lb && y == extent, "%s: _x", what);
    CHECK_OK(MPI_Type_get_extent_c(type, &x, &y));
    CHECK(x == lb && y == extent, "%s: _c", what);
    CHECK_OK(MPI_Type_get_true_extent_x(type, &x, &y));
    CHECK(x == true_lb && y == true_extent, "%s: true _x", what);
    CHECK_OK(MPI_Type_get_true_extent_c(type, &x, &y));
    CHECK(x == true_lb && y == true_extent, "%s: true _c", what);
}

/* Displacements of `len` ints at byte `at`, appended. */
static int ints_at(int *d, int n, int at, int len)
{
    for (int i = 0; i < len * 4; i++) d[n++] = at + i;
    return n;
}

static void commit_move_free(MPI_Datatype *t, const int *d, int n, const char *what)
{
    CHECK_OK(MPI_Type_commit(t));
    moves(*t, d, n, what);
    CHECK_OK(MPI_Type_free(t));
    CHECK(*t == MPI_DATATYPE_NULL, "%s: a freed type is not null", what);
}

static void constructors(int large)
{
    int d[ROOM], n = 0, lens[3] = {2, 0, 3}, at[3] = {4, 100, 10}, starts[2] = {1, 2}, subs[2] = {2, 3}, sizes[2] = {4, 6};
    MPI_Count clens[3] = {2, 0, 3}, cat[3] = {4, 100, 10}, cbytes[3] = {16, 400, 42}, cstarts[2] = {1, 2}, csubs[2] = {2, 3}, csizes[2] = {4, 6};
    MPI_Aint bytes[3] = {16, 400, 42};
    MPI_Datatype t, types[3] = {MPI_INT, MPI_DOUBLE, MPI_CHAR};

    n = ints_at(d, 0, 0, 7);
    if (large) CHECK_OK(MPI_Type_contiguous_c(7, MPI_INT, &t)); else CHECK_OK(MPI_Type_contiguous(7, MPI_INT, &t));
    bounds(t, 0, 28, 0, 28, "contiguous");
    commit_move_free(&t, d, n, "contiguous");

    n = ints_at(d, ints_at(d, ints_at(d, 0, 0, 2), 20, 2), 40, 2);
    if (large) CHECK_OK(MPI_Type_vector_c(3, 2, 5, MPI_INT, &t)); else CHECK_OK(MPI_Type_vector(3, 2, 5, MPI_INT, &t));
    bounds(t, 0, 48, 0, 48, "vector");
    commit_move_free(&t, d, n, "vector");

    n = ints_at(d, ints_at(d, 0, 0, 1), 22, 1);
    if (large) CHECK_OK(MPI_Type_create_hvector_c(2, 1, 22, MPI_INT, &t)); else CHECK_OK(MPI_Type_create_hvector(2, 1, 22, MPI_INT, &t));
    bounds(t, 0, 28, 0, 26, "hvector"); /* the extent is rounded up to the alignment of int */
    commit_move_free(&t, d, n, "hvector");

    n = ints_at(d, ints_at(d, 0, 16, 2), 40, 3);
    if (large) CHECK_OK(MPI_Type_indexed_c(3, clens, cat, MPI_INT, &t)); else CHECK_OK(MPI_Type_indexed(3, lens, at, MPI_INT, &t));
    bounds(t, 16, 36, 16, 36, "indexed");
    commit_move_free(&t, d, n, "indexed");

    n = ints_at(d, ints_at(d, 0, 16, 2), 42, 3);
    if (large) CHECK_OK(MPI_Type_create_hindexed_c(3, clens, cbytes, MPI_INT, &t));
    else CHECK_OK(MPI_Type_create_hindexed(3, lens, bytes, MPI_INT, &t));
    commit_move_free(&t, d, n, "hindexed");

    n = ints_at(d, ints_at(d, ints_at(d, 0, 16, 2), 400, 2), 40, 2);
    if (large) CHECK_OK(MPI_Type_create_indexed_block_c(3, 2, cat, MPI_INT, &t));
    else CHECK_OK(MPI_Type_create_indexed_block(3, 2, at, MPI_INT, &t));
    commit_move_free(&t, d, n, "indexed_block");

    n = ints_at(d, ints_at(d, ints_at(d, 0, 16, 1), 400, 1), 42, 1);
    if (large) CHECK_OK(MPI_Type_create_hindexed_block_c(3, 1, cbytes, MPI_INT, &t));
    else CHECK_OK(MPI_Type_create_hindexed_block(3, 1, bytes, MPI_INT, &t));
    commit_move_free(&t, d, n, "hindexed_block");

    n = ints_at(d, 0, 16, 2);
    for (int i = 0; i < 3; i++) d[n++] = 42 + i;
    if (large) CHECK_OK(MPI_Type_create_struct_c(3, clens, cbytes, types, &t));
    else CHECK_OK(MPI_Type_create_struct(3, lens, bytes, types, &t));
    commit_move_free(&t, d, n, "struct");

    n = ints_at(d, 0, 0, 1);
    if (large) CHECK_OK(MPI_Type_create_resized_c(MPI_INT, -4, 20, &t)); else CHECK_OK(MPI_Type_create_resized(MPI_INT, -4, 20, &t));
    bounds(t, -4, 20, 0, 4, "resized");
    commit_move_free(&t, d, n, "resized");

    n = ints_at(d, ints_at(d, 0, (1 * 6 + 2) * 4, 3), (2 * 6 + 2) * 4, 3);
    if (large) CHECK_OK(MPI_Type_create_subarray_c(2, csizes, csubs, cstarts, MPI_ORDER_C, MPI_INT, &t));
    else CHECK_OK(MPI_Type_create_subarray(2, sizes, subs, starts, MPI_ORDER_C, MPI_INT, &t));
    bounds(t, 0, 96, 32, 36, "subarray");
    commit_move_free(&t, d, n, "subarray");

    int g[2] = {4, 6}, dist[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, arg[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
    int grid[2] = {2, 2}; /* rank 3 has rows 2, 3 and columns 1, 3, 5 */
    n = 0;
    for (int row = 2; row < 4; row++)
        for (int col = 1; col < 6; col += 2) n = ints_at(d, n, (row * 6 + col) * 4, 1);
    if (large) CHECK_OK(MPI_Type_create_darray_c(4, 3, 2, csizes, dist, arg, grid, MPI_ORDER_C, MPI_INT, &t));
    else CHECK_OK(MPI_Type_create_darray(4, 3, 2, g, dist, arg, grid, MPI_ORDER_C, MPI_INT, &t));
    commit_move_free(&t, d, n, "darray");
}

static void envelopes(void)
{
    int lens[2] = {1, 2}, at[2] = {5, 6}, ints[8], ni, na, nd, combiner;
    MPI_Aint addresses[4];
    MPI_Count counts[8], ci, ca, cc, cd, clens[2] = {1, 2}, cat[2] = {5, 6};
    MPI_Datatype t, inner, got[2];
    MPI_Type_contiguous(3, MPI_SHORT, &inner);
    MPI_Type_indexed(2, lens, at, inner, &t);
    CHECK_OK(MPI_Type_get_envelope(t, &ni, &na, &nd, &combiner));
    CHECK(ni == 5 && na == 0 && nd == 1 && combiner == MPI_COMBINER_INDEXED, "%d %d %d %d", ni, na, nd, combiner);
    CHECK_OK(MPI_Type_get_contents(t, 8, 4, 2, ints, addresses, got));
    CHECK(ints[0] == 2 && ints[1] == 1 && ints[2] == 2 && ints[3] == 5 && ints[4] == 6, "contents of indexed");
    CHECK_OK(MPI_Type_free(&inner)); /* the contents have a reference of their own */
    CHECK_OK(MPI_Type_get_envelope(got[0], &ni, &na, &nd, &combiner));
    CHECK(combiner == MPI_COMBINER_CONTIGUOUS && ni == 1, "the inner type has combiner %d", combiner);
    MPI_Type_free(&got[0]);
    MPI_Type_free(&t);
    CHECK_OK(MPI_Type_get_envelope(MPI_INT, &ni, &na, &nd, &combiner));
    CHECK(combiner == MPI_COMBINER_NAMED && ni + na + nd == 0, "MPI_INT has combiner %d", combiner);

    MPI_Type_indexed_c(2, clens, cat, MPI_INT, &t);
    CHECK_OK(MPI_Type_get_envelope_c(t, &ci, &ca, &cc, &cd, &combiner));
    CHECK(ci == 0 && ca == 0 && cc == 5 && cd == 1 && combiner == MPI_COMBINER_INDEXED, "%d %d %d %d", (int)ci, (int)ca, (int)cc, (int)cd);
    CHECK_OK(MPI_Type_get_contents_c(t, 0, 0, 5, 1, NULL, NULL, counts, got));
    CHECK(counts[0] == 2 && counts[1] == 1 && counts[4] == 6 && got[0] == MPI_INT, "contents of a large indexed type");
    CHECK_CLASS(MPI_Type_get_contents(t, 8, 4, 2, ints, addresses, got), MPI_ERR_TYPE);
    MPI_Type_free(&t);
}

static void dup_and_names(void)
{
    char name[MPI_MAX_OBJECT_NAME];
    int len = -1, d[64], n = ints_at(d, ints_at(d, 0, 0, 1), 8, 1);
    MPI_Datatype t, copy;
    MPI_Type_vector(2, 1, 2, MPI_INT, &t);
    MPI_Type_commit(&t);
    CHECK_OK(MPI_Type_dup(t, &copy)); /* committed, like t */
    MPI_Type_free(&t);
    moves(copy, d, n, "dup");
    CHECK_OK(MPI_Type_get_name(copy, name, &len));
    CHECK(len == 0 && !name[0], "a new type is called '%s'", name);
    CHECK_OK(MPI_Type_set_name(copy, "two of four"));
    CHECK_OK(MPI_Type_get_name(copy, name, &len));
    CHECK(len == 11 && !strcmp(name, "two of four"), "'%s'", name);
    MPI_Type_free(&copy);
    CHECK_OK(MPI_Type_get_name(MPI_DOUBLE_INT, name, &len));
    CHECK(!strcmp(name, "MPI_DOUBLE_INT") && len == (int)strlen(name), "'%s'", name);
    CHECK_OK(MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &t));
    CHECK(t == MPI_REAL8, "the real of 8 bytes");
    CHECK_OK(MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &t));
    CHECK(t == MPI_DOUBLE_INT, "the pair of double and int");
    CHECK_OK(MPI_Type_get_value_index(MPI_CHAR, MPI_CHAR, &t));
    CHECK(t == MPI_DATATYPE_NULL, "a pair of characters");
}

/* Sizes beyond 2^31: nothing is moved, only asked. */
static void large(void)
{
    MPI_Datatype t;
    int size = 0;
    MPI_Count csize = 0, packed = 0;
    MPI_Type_contiguous_c((MPI_Count)3 << 30, MPI_DOUBLE, &t);
    CHECK_OK(MPI_Type_size(t, &size));
    CHECK(size == MPI_UNDEFINED, "the size of 24 GiB as an int is %d", size);
    CHECK_OK(MPI_Type_size_c(t, &csize));
    CHECK(csize == (MPI_Count)24 << 30, "size_c %lld", (long long)csize);
    CHECK_OK(MPI_Type_size_x(t, &csize));
    CHECK(csize == (MPI_Count)24 << 30, "size_x %lld", (long long)csize);
    CHECK_OK(MPI_Pack_size_c(2, t, MPI_COMM_WORLD, &packed));
    CHECK(packed >= (MPI_Count)48 << 30, "pack_size_c %lld", (long long)packed);
    MPI_Type_free(&t);
}

static void addresses(void)
{
    int a[10];
    MPI_Aint x = 0, y = 0;
    CHECK_OK(MPI_Get_address(&a[2], &x));
    CHECK_OK(MPI_Get_address(&a[7], &y));
    CHECK(MPI_Aint_diff(y, x) == 5 * (MPI_Aint)sizeof(int) && MPI_Aint_add(x, 20) == y, "differences of addresses");
    MPI_Datatype t; /* absolute addresses with MPI_BOTTOM */
    int one = 1, from[3] = {4, 5, 6}, to = 0;
    MPI_Get_address(&from[1], &x);
    MPI_Type_create_hindexed(1, &one, &x, MPI_INT, &t);
    MPI_Type_commit(&t);
    CHECK_OK(MPI_Sendrecv(MPI_BOTTOM, 1, t, check_rank, 1, &to, 1, MPI_INT, check_rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(to == 5, "by absolute address came %d", to);
    MPI_Type_free(&t);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    constructors(0);
    constructors(1);
    envelopes();
    dup_and_names();
    large();
    addresses();
    return check_done();
}
