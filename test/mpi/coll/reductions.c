/*
 * reductions.c - Reduce, Allreduce, Reduce_scatter(_block), Scan, Exscan (MPI-5.0 sections 6.9 to 6.11): predefined
 * operators on several types, user functions, among them one that does not commute (2x2 matrices, so that order and
 * grouping show), derived types, in place, every root, int and large counts.
 */
#include "../check.h"

static const int sizes[] = {0, 1, 5, 33, 400, 6000, 50000};
enum { SIZES = 7, LARGEST = 50000 };

static MPI_Comm comm = MPI_COMM_WORLD;
static int rank, size;

/* ---- what is reduced: elements of some type, made and compared by functions ---- */

struct mat { uint32_t a, b, c, d; };

static struct mat product(struct mat x, struct mat y)
{
    return (struct mat){x.a * y.a + x.b * y.c, x.a * y.b + x.b * y.d, x.c * y.a + x.d * y.c, x.c * y.b + x.d * y.d};
}

static struct mat matrix(int r, int i) { return (struct mat){(uint32_t)(r + 2), (uint32_t)(i + 1), 1, (uint32_t)(r * 3 + i)}; }

static void multiply(void *in, void *inout, int *len, MPI_Datatype *type)
{
    struct mat *x = in, *y = inout;
    (void)type;
    for (int i = 0; i < *len; i++) y[i] = product(x[i], y[i]);
}

static void multiply_c(void *in, void *inout, MPI_Count *len, MPI_Datatype *type)
{
    int n = (int)*len;
    multiply(in, inout, &n, type);
}

struct kind {
    const char *name;
    size_t bytes;
    MPI_Datatype type;
    MPI_Op op;
    void (*make)(void *at, int r, int i);                /* element i of rank r */
    void (*combine)(void *acc, const void *next);        /* acc = acc op next */
};

static void make_int(void *at, int r, int i) { *(int *)at = (r * 31 + i * 7) % 101 - 50; }
static void add_int(void *acc, const void *next) { *(int *)acc += *(const int *)next; }
static void max_int(void *acc, const void *next) { if (*(const int *)next > *(int *)acc) *(int *)acc = *(const int *)next; }
static void xor_int(void *acc, const void *next) { *(int *)acc ^= *(const int *)next; }
static void make_double(void *at, int r, int i) { *(double *)at = (double)((r * 17 + i) % 64); } /* sums are exact */
static void add_double(void *acc, const void *next) { *(double *)acc += *(const double *)next; }
static void min_double(void *acc, const void *next) { if (*(const double *)next < *(double *)acc) *(double *)acc = *(const double *)next; }
static void make_char(void *at, int r, int i) { *(signed char *)at = (signed char)((r + i) % 3); }
static void and_char(void *acc, const void *next) { *(signed char *)acc = *(signed char *)acc && *(const signed char *)next; }
struct pair { double value; int index; };
static void make_pair(void *at, int r, int i)
{
    struct pair *p = at;
    memset(p, 0, sizeof *p);
    p->value = (r * 5 + i) % 4, p->index = r;
}
static void min_pair(void *acc, const void *next)
{
    struct pair *a = acc;
    const struct pair *b = next;
    if (b->value < a->value || (b->value == a->value && b->index < a->index)) a->value = b->value, a->index = b->index;
}
static void make_mat(void *at, int r, int i) { *(struct mat *)at = matrix(r, i); }
static void mul_mat(void *acc, const void *next) { *(struct mat *)acc = product(*(struct mat *)acc, *(const struct mat *)next); }

enum { KINDS = 9 };
static struct kind kinds[KINDS] = {
    {"int sum", 4, NULL, NULL, make_int, add_int},       {"int max", 4, NULL, NULL, make_int, max_int},
    {"int xor", 4, NULL, NULL, make_int, xor_int},       {"double sum", 8, NULL, NULL, make_double, add_double},
    {"double min", 8, NULL, NULL, make_double, min_double}, {"char land", 1, NULL, NULL, make_char, and_char},
    {"double-int minloc", sizeof(struct pair), NULL, NULL, make_pair, min_pair},
    {"matrix product", sizeof(struct mat), NULL, NULL, make_mat, mul_mat},
    {"matrix product, large count", sizeof(struct mat), NULL, NULL, make_mat, mul_mat}};

static char *out, *in;

static void fill(const struct kind *k, char *buf, int n)
{
    for (int i = 0; i < n; i++) k->make(buf + (size_t)i * k->bytes, rank, i);
}

/* Counts elements of buf that are not the combination of ranks first..last; element 0 of buf is element `at`. */
static int wrong(const struct kind *k, const char *buf, int at, int n, int first, int last)
{
    int bad = 0;
    union { char bytes[16]; double align; } acc, next;
    for (int i = 0; i < n; i += n > 1000 ? 7 : 1) {
        k->make(&acc, first, at + i);
        for (int r = first + 1; r <= last; r++) {
            k->make(&next, r, at + i);
            k->combine(&acc, &next);
        }
        const char *b = buf + (size_t)i * k->bytes;
        if (k->make == make_pair) {
            const struct pair *p = (const void *)b, *q = (const void *)&acc;
            bad += p->value != q->value || p->index != q->index;
        } else {
            bad += memcmp(b, &acc, k->bytes) != 0;
        }
    }
    return bad;
}

static void clear(const struct kind *k, int n) { memset(in, 0x5a, (size_t)n * k->bytes); }

static const void *send_side(const struct kind *k, int n, int in_place)
{
    clear(k, n);
    fill(k, in_place ? in : out, n);
    return in_place ? MPI_IN_PLACE : out;
}

static void reduce(const struct kind *k, int n, int root, int place, int large)
{
    int at_root = rank == root;
    const void *from = send_side(k, n, place && at_root);
    if (large) CHECK_OK(MPI_Reduce_c(from, at_root ? in : NULL, n, k->type, k->op, root, comm));
    else CHECK_OK(MPI_Reduce(from, at_root ? in : NULL, n, k->type, k->op, root, comm));
    if (at_root) CHECK(wrong(k, in, 0, n, 0, size - 1) == 0, "reduce, %s of %d to %d%s", k->name, n, root, place ? ", in place" : "");
}

static void allreduce(const struct kind *k, int n, int place, int large)
{
    const void *from = send_side(k, n, place);
    if (large) CHECK_OK(MPI_Allreduce_c(from, in, n, k->type, k->op, comm));
    else CHECK_OK(MPI_Allreduce(from, in, n, k->type, k->op, comm));
    CHECK(wrong(k, in, 0, n, 0, size - 1) == 0, "allreduce, %s of %d%s", k->name, n, place ? ", in place" : "");
}

static void scans(const struct kind *k, int n, int place, int large)
{
    const void *from = send_side(k, n, place);
    if (large) CHECK_OK(MPI_Scan_c(from, in, n, k->type, k->op, comm));
    else CHECK_OK(MPI_Scan(from, in, n, k->type, k->op, comm));
    CHECK(wrong(k, in, 0, n, 0, rank) == 0, "scan, %s of %d%s", k->name, n, place ? ", in place" : "");
    from = send_side(k, n, place);
    if (large) CHECK_OK(MPI_Exscan_c(from, in, n, k->type, k->op, comm));
    else CHECK_OK(MPI_Exscan(from, in, n, k->type, k->op, comm));
    if (rank) CHECK(wrong(k, in, 0, n, 0, rank - 1) == 0, "exscan, %s of %d%s", k->name, n, place ? ", in place" : "");
}

/* Rank `late` starts when all others have, of which high ones start before low ones: so what lies ready for a rank is in part
 * what a lower one gives, in part what all up to a lower one give together. */
static void late_scan(const struct kind *k, int n, int late, int exclusive)
{
    int order[64], place = 0, token = 0;
    MPI_Request q;
    for (int i = 0, r = size - 1; r >= 0; r--)
        if (r != late) order[i++] = r;
    order[size - 1] = late;
    while (order[place] != rank) place++;
    const void *from = send_side(k, n, 0);
    if (place) CHECK_OK(MPI_Recv(&token, 1, MPI_INT, order[place - 1], 3, comm, MPI_STATUS_IGNORE));
    if (exclusive) CHECK_OK(MPI_Iexscan(from, in, n, k->type, k->op, comm, &q));
    else CHECK_OK(MPI_Iscan(from, in, n, k->type, k->op, comm, &q));
    if (place < size - 1) CHECK_OK(MPI_Send(&token, 1, MPI_INT, order[place + 1], 3, comm));
    CHECK_OK(MPI_Wait(&q, MPI_STATUS_IGNORE));
    if (rank || !exclusive)
        CHECK(wrong(k, in, 0, n, 0, rank - exclusive) == 0, "%s, %s of %d, rank %d late", exclusive ? "exscan" : "scan", k->name, n, late);
}

static void late_scans(void)
{
    static const int lengths[] = {1, 5, 33};
    for (int k = 0; k < KINDS; k++)
        for (int i = 0; i < 6; i++)
            for (int late = 0; late < size; late++) late_scan(&kinds[k], lengths[i / 2], late, i % 2);
}

static void reduce_scatters(const struct kind *k, int n, int place, int large)
{
    int counts[64], at = 0, total = 0;
    MPI_Count wide[64];
    if ((n + 1) * size > LARGEST * 2) return;
    const void *from = send_side(k, n * size, place);
    if (large) CHECK_OK(MPI_Reduce_scatter_block_c(from, in, n, k->type, k->op, comm));
    else CHECK_OK(MPI_Reduce_scatter_block(from, in, n, k->type, k->op, comm));
    CHECK(wrong(k, in, rank * n, n, 0, size - 1) == 0, "reduce_scatter_block, %s of %d%s", k->name, n, place ? ", in place" : "");
    for (int r = 0; r < size; r++) {
        counts[r] = r % 3 == 2 ? 0 : n + r % 2; /* some blocks empty */
        wide[r] = counts[r];
        if (r < rank) at += counts[r];
        total += counts[r];
    }
    from = send_side(k, total, place);
    if (large) CHECK_OK(MPI_Reduce_scatter_c(from, in, wide, k->type, k->op, comm));
    else CHECK_OK(MPI_Reduce_scatter(from, in, counts, k->type, k->op, comm));
    CHECK(wrong(k, in, at, counts[rank], 0, size - 1) == 0, "reduce_scatter, %s of %d%s", k->name, n, place ? ", in place" : "");
}

static void everything(void)
{
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int k = 0; k < KINDS; k++)
        for (int s = 0; s < SIZES; s++)
            for (int way = 0; way < 4; way++) {
                int n = sizes[s], place = way & 1, large = way >> 1;
                if (n > 3000 && (large || k % 3 == 1)) continue;
                for (int root = 0; root < size; root += n > 300 && size > 3 ? size - 1 : 1) reduce(&kinds[k], n, root, place, large);
                allreduce(&kinds[k], n, place, large);
                scans(&kinds[k], n, place, large);
                reduce_scatters(&kinds[k], n, place, large);
            }
}

/* Elements with gaps: the user's function sees the type, the gaps stay. */
static void add_first(void *x, void *y, int *len, MPI_Datatype *type)
{
    MPI_Aint lb, extent;
    MPI_Type_get_extent(*type, &lb, &extent);
    for (int i = 0; i < *len; i++) *(int *)((char *)y + i * extent) += *(int *)((char *)x + i * extent);
}

static void strided(void)
{
    MPI_Datatype wide;
    MPI_Op op;
    int n = 700, bad = 0;
    int *from = malloc(3 * (size_t)n * sizeof(int)), *to = malloc(3 * (size_t)n * sizeof(int));
    MPI_Type_create_resized(MPI_INT, 0, 3 * sizeof(int), &wide);
    MPI_Type_commit(&wide);
    MPI_Op_create(add_first, 1, &op);
    for (int i = 0; i < 3 * n; i++) from[i] = rank + i, to[i] = -1;
    CHECK_OK(MPI_Allreduce(from, to, n, wide, op, comm));
    for (int i = 0; i < 3 * n; i++) bad += to[i] != (i % 3 ? -1 : size * (size - 1) / 2 + size * i);
    CHECK(bad == 0, "allreduce of elements with gaps: %d wrong", bad);
    MPI_Op_free(&op);
    MPI_Type_free(&wide);
    free(from);
    free(to);
}

int main(int argc, char **argv)
{
    MPI_Datatype four;
    MPI_Op mul, mul_c;
    check_start(&argc, &argv);
    MPI_Type_contiguous(4, MPI_UINT32_T, &four);
    MPI_Type_commit(&four);
    MPI_Op_create(multiply, 0, &mul);
    MPI_Op_create_c(multiply_c, 0, &mul_c);
    MPI_Datatype types[KINDS] = {MPI_INT, MPI_INT, MPI_INT, MPI_DOUBLE, MPI_DOUBLE, MPI_SIGNED_CHAR, MPI_DOUBLE_INT, four, four};
    MPI_Op ops[KINDS] = {MPI_SUM, MPI_MAX, MPI_BXOR, MPI_SUM, MPI_MIN, MPI_LAND, MPI_MINLOC, mul, mul_c};
    for (int k = 0; k < KINDS; k++) kinds[k].type = types[k], kinds[k].op = ops[k];
    out = malloc((size_t)LARGEST * 2 * 16 + 64);
    in = malloc((size_t)LARGEST * 2 * 16 + 64);
    everything();
    late_scans();
    strided();
    free(in);
    free(out);
    MPI_Op_free(&mul);
    MPI_Op_free(&mul_c);
    MPI_Type_free(&four);
    return check_done();
}
