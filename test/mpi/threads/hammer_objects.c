/*
 * hammer_objects.c - rounds of hammer.c that make and free objects: communicators (each thread from one of its own),
 * attributes, datatypes, info objects, groups.
 */
#include "hammer.h"

#include <stddef.h>

/* ---- communicators ---- */

/* A ring message and a sum on a communicator of this many ranks. */
static void use(struct thread *t, MPI_Comm c, int size)
{
    MPI_Request r[2];
    MPI_Status st[2];
    int rank = -1, is = -1, out, in = -1, one = 1, sum = -1;
    DO(t, MPI_Comm_rank(c, &rank));
    DO(t, MPI_Comm_size(c, &is));
    IS(t, is == size, "%d ranks instead of %d", is, size);
    out = 1000 * t->number + rank;
    int left = (rank + is - 1) % is;
    DO(t, MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, c, &r[0]));
    DO(t, MPI_Isend(&out, 1, MPI_INT, (rank + 1) % is, 5, c, &r[1]));
    if (t->rounds % 2) { /* not drawn: some ranks may be left out here */
        DO(t, MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c));
        IS(t, sum == is, "the sum of %d ranks is %d", is, sum);
    }
    finish(t, r, 2, st);
    IS(t, in == 1000 * t->number + left, "%d instead of %d from rank %d", in, 1000 * t->number + left, left);
}

static void dup(struct thread *t)
{
    MPI_Comm c, of_c;
    MPI_Request r;
    MPI_Status st;
    int is = -1;
    if (draw(t, 2)) {
        DO(t, MPI_Comm_dup(t->comm, &c));
    } else {
        DO(t, MPI_Comm_idup(t->comm, &c, &r));
        finish(t, &r, 1, &st);
    }
    use(t, c, hammer_size);
    DO(t, MPI_Comm_dup(c, &of_c));
    DO(t, MPI_Comm_compare(c, of_c, &is));
    IS(t, is == MPI_CONGRUENT, "a duplicate compares as %d", is);
    DO(t, MPI_Comm_free(&c));
    use(t, of_c, hammer_size);
    DO(t, MPI_Comm_free(&of_c));
}

/* Freed while messages are under way. */
static void freed_under_way(struct thread *t)
{
    struct partners p = draw_partners(t);
    MPI_Request r[2];
    MPI_Status st[2];
    MPI_Comm c;
    int n = draw_size(t);
    DO(t, MPI_Comm_dup(t->comm, &c));
    check_fill(t->out, (size_t)n, seed_of(t, hammer_rank, 0));
    DO(t, MPI_Irecv(t->in, LARGEST, MPI_BYTE, p.from, 3, c, &r[0]));
    DO(t, MPI_Isend(t->out, n, MPI_BYTE, p.to, 3, c, &r[1]));
    DO(t, MPI_Comm_free(&c));
    finish(t, r, 2, st);
    is_message(t, &st[0], p.from, 3, n, t->in, 0);
}

/* Two halves, the ranks of each in reverse order. */
static void split(struct thread *t)
{
    MPI_Comm c;
    int parts = 1 + draw(t, 2), rank = -1, mine = hammer_rank % parts;
    int size = (hammer_size - mine + parts - 1) / parts;
    DO(t, MPI_Comm_split(t->comm, mine, -hammer_rank, &c));
    DO(t, MPI_Comm_rank(c, &rank));
    IS(t, rank == size - 1 - hammer_rank / parts, "rank %d of %d, it is %d in all", rank, size, hammer_rank);
    use(t, c, size);
    DO(t, MPI_Comm_free(&c));
}

/* Of all ranks but one, by each of the ways to make it of a group; and between the one and the others. */
static void of_group(struct thread *t)
{
    MPI_Group all, others;
    MPI_Comm c = MPI_COMM_NULL;
    int out = draw(t, hammer_size), how = draw(t, 2);
    if (hammer_size < 2) return;
    DO(t, MPI_Comm_group(t->comm, &all));
    DO(t, MPI_Group_excl(all, 1, &out, &others));
    if (how == 0)
        DO(t, MPI_Comm_create(t->comm, others, &c));
    else if (hammer_rank != out)
        DO(t, MPI_Comm_create_group(t->comm, others, 4, &c));
    IS(t, (c == MPI_COMM_NULL) == (hammer_rank == out), "rank %d is to be left out", out);
    if (c != MPI_COMM_NULL) {
        use(t, c, hammer_size - 1);
        DO(t, MPI_Comm_free(&c));
    }
    DO(t, MPI_Group_free(&all));
    DO(t, MPI_Group_free(&others));
}

/* An intercommunicator of even and odd ranks, and the communicator of both. */
static void inter(struct thread *t)
{
    MPI_Comm half, both, merged;
    int remote = -1, is = 0, odd = hammer_rank % 2;
    if (hammer_size < 2) return;
    DO(t, MPI_Comm_split(t->comm, odd, 0, &half));
    DO(t, MPI_Intercomm_create(half, 0, t->comm, 1 - odd, 6, &both));
    DO(t, MPI_Comm_test_inter(both, &is));
    DO(t, MPI_Comm_remote_size(both, &remote));
    IS(t, is && remote == (hammer_size + odd) / 2, "%d ranks on the other side", remote);
    DO(t, MPI_Intercomm_merge(both, odd, &merged));
    DO(t, MPI_Comm_free(&half));
    DO(t, MPI_Comm_free(&both));
    use(t, merged, hammer_size);
    DO(t, MPI_Comm_free(&merged));
}

static void cart(struct thread *t)
{
    MPI_Comm c;
    int dims[1] = {hammer_size}, periods[1] = {1}, in[2] = {-1, -1}, from = -1, to = -1;
    DO(t, MPI_Cart_create(t->comm, 1, dims, periods, 0, &c));
    DO(t, MPI_Cart_shift(c, 0, 1, &from, &to));
    DO(t, MPI_Neighbor_allgather(&hammer_rank, 1, MPI_INT, in, 1, MPI_INT, c));
    IS(t, in[0] == from && in[1] == to, "neighbors %d and %d instead of %d and %d", in[0], in[1], from, to);
    DO(t, MPI_Comm_free(&c));
}

/* ---- attributes ---- */

static int copied(MPI_Comm c, int key, void *extra, void *in, void *out, int *flag)
{
    (void)c, (void)key;
    ++*(_Atomic long *)extra;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static int deleted(MPI_Comm c, int key, void *value, void *extra)
{
    (void)c, (void)key;
    ++*(_Atomic long *)value;
    --*(_Atomic long *)extra;
    return MPI_SUCCESS;
}

/* A value is copied with each duplicate, and deleted with it. */
static void attributes(struct thread *t)
{
    _Atomic long value = 0, held = 0;
    int key, flag = 0;
    void *got = NULL;
    MPI_Comm c;
    DO(t, MPI_Comm_create_keyval(copied, deleted, &key, &held));
    DO(t, MPI_Comm_set_attr(t->comm, key, &value));
    held++;
    DO(t, MPI_Comm_dup(t->comm, &c));
    DO(t, MPI_Comm_get_attr(c, key, &got, &flag));
    IS(t, flag && got == &value, "the duplicate has no such attribute");
    IS(t, held == 2, "the value is held %ld times", held);
    DO(t, MPI_Comm_free(&c));
    DO(t, MPI_Comm_delete_attr(t->comm, key));
    DO(t, MPI_Comm_get_attr(t->comm, key, &got, &flag));
    IS(t, !flag && value == 2 && held == 0, "deleted %ld times, held %ld times", value, held);
    DO(t, MPI_Comm_free_keyval(&key));
}

/* ---- datatypes ---- */

enum { ROWS = 40 };
struct row {
    int a, unsent;
    double b;
};

static MPI_Datatype row_type(struct thread *t)
{
    MPI_Datatype fields, row;
    if (draw(t, 2)) {
        int lengths[2] = {1, 1};
        MPI_Aint places[2] = {offsetof(struct row, a), offsetof(struct row, b)};
        MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE};
        DO(t, MPI_Type_create_struct(2, lengths, places, types, &fields));
    } else {
        int lengths[2] = {4, 8}, places[2] = {offsetof(struct row, a), offsetof(struct row, b)};
        DO(t, MPI_Type_indexed(2, lengths, places, MPI_BYTE, &fields));
    }
    DO(t, MPI_Type_create_resized(fields, 0, sizeof(struct row), &row));
    DO(t, MPI_Type_free(&fields));
    DO(t, MPI_Type_commit(&row));
    return row;
}

/* Every second row is sent with a type, which is freed meanwhile, and received packed. */
static void types(struct thread *t)
{
    struct partners p = draw_partners(t);
    struct row *out = (struct row *)(void *)t->out, got;
    MPI_Datatype row = row_type(t), second;
    MPI_Request r[2];
    MPI_Status st[2];
    int size = -1, at = 0, n = -1;
    for (int i = 0; i < 2 * ROWS; i++) out[i] = (struct row){hammer_rank * 1000 + i, 7, i * 0.5};
    DO(t, MPI_Type_vector(ROWS, 1, 2, row, &second));
    DO(t, MPI_Type_commit(&second));
    DO(t, MPI_Pack_size(ROWS, row, t->comm, &size));
    DO(t, MPI_Irecv(t->in, size, MPI_PACKED, p.from, t->tag + 1, t->comm, &r[0]));
    DO(t, MPI_Isend(out, 1, second, p.to, t->tag + 1, t->comm, &r[1]));
    DO(t, MPI_Type_free(&second));
    finish(t, r, 2, st);
    MPI_Get_count(&st[0], MPI_PACKED, &n);
    for (int i = 0; i < ROWS; i++) {
        got = (struct row){-1, 9, -1};
        DO(t, MPI_Unpack(t->in, n, &at, &got, 1, row, t->comm));
        IS(t, got.a == p.from * 1000 + 2 * i && got.unsent == 9 && got.b == i, "row %d is %d, %d, %f", i, got.a,
           got.unsent, got.b);
    }
    DO(t, MPI_Type_free(&row));
}

/* A part of a matrix there and back. */
static void subarray(struct thread *t)
{
    enum { SIDE = 30 };
    struct partners p = draw_partners(t);
    int sizes[2] = {SIDE, SIDE}, part[2] = {1 + draw(t, 20), 1 + draw(t, 20)}, start[2] = {draw(t, 10), draw(t, 10)};
    int matrix[SIDE][SIDE], got[SIDE][SIDE], bad = 0;
    MPI_Datatype type, dup;
    for (int i = 0; i < SIDE * SIDE; i++)
        matrix[i / SIDE][i % SIDE] = hammer_rank * 10000 + i, got[i / SIDE][i % SIDE] = -1;
    DO(t, MPI_Type_create_subarray(2, sizes, part, start, MPI_ORDER_C, MPI_INT, &type));
    DO(t, MPI_Type_commit(&type));
    DO(t, MPI_Type_dup(type, &dup));
    DO(t, MPI_Sendrecv(matrix, 1, type, p.to, t->tag + 2, got, 1, dup, p.from, t->tag + 2, t->comm, MPI_STATUS_IGNORE));
    for (int i = 0; i < SIDE * SIDE; i++) {
        int y = i / SIDE - start[0], x = i % SIDE - start[1], inside = y >= 0 && y < part[0] && x >= 0 && x < part[1];
        bad += got[i / SIDE][i % SIDE] != (inside ? p.from * 10000 + i : -1);
    }
    IS(t, !bad, "%d elements of a matrix are wrong", bad);
    DO(t, MPI_Type_free(&type));
    DO(t, MPI_Type_free(&dup));
}

/* ---- info objects and groups ---- */

static void info(struct thread *t)
{
    MPI_Info i, copy;
    char value[20], got[20];
    int keys = -1, room = sizeof got, flag = 0;
    snprintf(value, sizeof value, "%d", draw(t, 1000));
    DO(t, MPI_Info_create(&i));
    DO(t, MPI_Info_set(i, "first", value));
    DO(t, MPI_Info_set(i, "second", "other"));
    DO(t, MPI_Info_dup(i, &copy));
    DO(t, MPI_Info_delete(i, "first"));
    DO(t, MPI_Info_get_nkeys(i, &keys));
    DO(t, MPI_Info_get_string(copy, "first", &room, got, &flag));
    IS(t, keys == 1 && flag && !strcmp(got, value), "%d keys, the copy has %s instead of %s", keys,
       flag ? got : "nothing", value);
    DO(t, MPI_Info_free(&i));
    DO(t, MPI_Info_free(&copy));
}

static void groups(struct thread *t)
{
    MPI_Group all, even, odd, both, none;
    int ranges[2][3] = {{0, hammer_size - 1, 2}, {1, hammer_size - 1, 2}}, size = -1, is = -1, there = -1;
    DO(t, MPI_Comm_group(t->comm, &all));
    DO(t, MPI_Group_range_incl(all, 1, &ranges[0], &even));
    DO(t, MPI_Group_difference(all, even, &odd));
    DO(t, MPI_Group_union(odd, even, &both));
    DO(t, MPI_Group_intersection(odd, even, &none));
    DO(t, MPI_Group_compare(all, both, &is));
    IS(t, is == (hammer_size > 1 ? MPI_SIMILAR : MPI_IDENT), "the union of the parts compares as %d", is);
    DO(t, MPI_Group_size(none, &size));
    IS(t, size == 0 && none == MPI_GROUP_EMPTY, "%d ranks are even and odd", size);
    DO(t, MPI_Group_translate_ranks(all, 1, &hammer_rank, even, &there));
    IS(t, there == (hammer_rank % 2 ? MPI_UNDEFINED : hammer_rank / 2), "rank %d is %d of the even ones", hammer_rank,
       there);
    MPI_Group *made[] = {&all, &even, &odd, &both};
    for (int i = 0; i < 4; i++)
        if (*made[i] != MPI_GROUP_EMPTY) DO(t, MPI_Group_free(made[i]));
}

static const struct round rounds[] = {{"duplicates", dup},
                                      {"freed with messages under way", freed_under_way},
                                      {"split", split},
                                      {"communicator of a group", of_group},
                                      {"intercommunicator", inter},
                                      {"cartesian", cart},
                                      {"attributes", attributes},
                                      {"datatypes", types},
                                      {"subarray", subarray},
                                      {"info", info},
                                      {"groups", groups},
                                      {NULL, NULL}};
struct kind kind_objects = {"objects", rounds, MPI_COMM_NULL, NULL};
