/*
 * sendrecv.c - a send and a receive in one call (MPI-5.0 section 3.10): four calls, int and large counts, sizes of all
 * protocols, contiguous and strided, neighbours, oneself and nobody.
 */
#include "../check.h"

static const int sizes[] = {0, 1, 40, 41, 5000, 8192, 40000, 300000, 2000000};
enum { SIZES = 9, LARGEST = 2000000 };

static void by_two(int way, const char *out, int n, int to, char *in, int from, MPI_Status *st)
{
    MPI_Request r;
    switch (way) {
    case 0: CHECK_OK(MPI_Sendrecv(out, n, MPI_BYTE, to, 1, in, n, MPI_BYTE, from, 1, MPI_COMM_WORLD, st)); return;
    case 1: CHECK_OK(MPI_Sendrecv_c(out, n, MPI_BYTE, to, 1, in, n, MPI_BYTE, from, 1, MPI_COMM_WORLD, st)); return;
    case 2: CHECK_OK(MPI_Isendrecv(out, n, MPI_BYTE, to, 1, in, n, MPI_BYTE, from, 1, MPI_COMM_WORLD, &r)); break;
    case 3: CHECK_OK(MPI_Isendrecv_c(out, n, MPI_BYTE, to, 1, in, n, MPI_BYTE, from, 1, MPI_COMM_WORLD, &r)); break;
    }
    CHECK_OK(MPI_Wait(&r, st));
    CHECK(r == MPI_REQUEST_NULL, "the request is still there");
}

static void by_one(int way, char *buf, int n, MPI_Datatype type, int to, int from, MPI_Status *st)
{
    MPI_Request r;
    switch (way) {
    case 4: CHECK_OK(MPI_Sendrecv_replace(buf, n, type, to, 1, from, MPI_ANY_TAG, MPI_COMM_WORLD, st)); return;
    case 5: CHECK_OK(MPI_Sendrecv_replace_c(buf, n, type, to, 1, from, MPI_ANY_TAG, MPI_COMM_WORLD, st)); return;
    case 6: CHECK_OK(MPI_Isendrecv_replace(buf, n, type, to, 1, from, 1, MPI_COMM_WORLD, &r)); break;
    case 7: CHECK_OK(MPI_Isendrecv_replace_c(buf, n, type, to, 1, from, 1, MPI_COMM_WORLD, &r)); break;
    }
    CHECK_OK(MPI_Wait(&r, st));
}

static void exchange(int way, int n, int shift, char *out, char *in)
{
    MPI_Status st;
    int to = (check_rank + shift) % check_size, from = (check_rank + check_size - shift) % check_size, got = -1;
    check_fill(out, (size_t)n, (unsigned long)(check_rank + way));
    memset(in, 0, (size_t)n);
    if (way < 4) {
        by_two(way, out, n, to, in, from, &st);
    } else {
        memcpy(in, out, (size_t)n);
        by_one(way, in, n, MPI_BYTE, to, from, &st);
    }
    MPI_Get_count(&st, MPI_BYTE, &got);
    CHECK(got == n && st.MPI_SOURCE == from && st.MPI_TAG == 1, "way %d: %d bytes from %d", way, got, st.MPI_SOURCE);
    CHECK(check_differ(in, (size_t)n, (unsigned long)(from + way)) == 0, "way %d, %d bytes: data differ", way, n);
}

/* Every third int is exchanged, the others stay. */
static void strided(int way, int n)
{
    MPI_Datatype third;
    MPI_Status st;
    int *buf = malloc((size_t)(3 * n) * sizeof(int)), bad = 0;
    int to = (check_rank + 1) % check_size, from = (check_rank + check_size - 1) % check_size;
    for (int i = 0; i < 3 * n; i++) buf[i] = check_rank * 1000 + i;
    MPI_Type_vector(n, 1, 3, MPI_INT, &third);
    MPI_Type_commit(&third);
    by_one(way, (char *)buf, 1, third, to, from, &st);
    for (int i = 0; i < 3 * n; i++) bad += buf[i] != (i % 3 ? check_rank : from) * 1000 + i;
    CHECK(bad == 0, "way %d, %d strided ints: %d wrong", way, n, bad);
    MPI_Type_free(&third);
    free(buf);
}

static void nobody(void)
{
    char out[8] = "tern", in[8] = "";
    MPI_Status st;
    for (int way = 0; way < 8; way++) {
        int self = check_rank;
        memcpy(in, "-------", 8);
        if (way < 4) by_two(way, out, 5, MPI_PROC_NULL, in, MPI_PROC_NULL, &st);
        else by_one(way, in, 5, MPI_BYTE, MPI_PROC_NULL, MPI_PROC_NULL, &st);
        CHECK(st.MPI_SOURCE == MPI_PROC_NULL && st.MPI_TAG == MPI_ANY_TAG && !strcmp(in, "-------"), "way %d: from %d, '%s'", way,
              st.MPI_SOURCE, in);
        if (way < 4) by_two(way, out, 5, self, in, MPI_PROC_NULL, &st); /* only sends */
        else by_one(way, in, 5, MPI_BYTE, self, MPI_PROC_NULL, &st);
        CHECK(st.MPI_SOURCE == MPI_PROC_NULL, "way %d: from %d", way, st.MPI_SOURCE);
        if (way < 4) by_two(way, out, 5, MPI_PROC_NULL, in, self, &st); /* only receives what was just sent */
        else by_one(way, in, 5, MPI_BYTE, MPI_PROC_NULL, self, &st);
        CHECK(st.MPI_SOURCE == self && !strcmp(in, way < 4 ? "tern" : "-------"), "way %d: from %d, '%s'", way, st.MPI_SOURCE, in);
    }
}

/* Too long: the receive fails, the send does not; the next exchange is not disturbed. */
static void truncated(void)
{
    char out[100], in[100];
    int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    check_fill(out, 100, (unsigned)check_rank);
    CHECK_CLASS(MPI_Sendrecv(out, 100, MPI_BYTE, right, 1, in, 50, MPI_BYTE, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    MPI_Request r;
    CHECK_OK(MPI_Isendrecv(out, 100, MPI_BYTE, right, 1, in, 50, MPI_BYTE, left, 1, MPI_COMM_WORLD, &r));
    CHECK_CLASS(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    CHECK_OK(MPI_Sendrecv(out, 100, MPI_BYTE, right, 1, in, 100, MPI_BYTE, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(check_differ(in, 100, (unsigned)left) == 0, "the exchange after a truncated one");
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    char *out = malloc(LARGEST), *in = malloc(LARGEST);
    for (int s = 0; s < SIZES; s++)
        for (int way = 0; way < 8; way++)
            for (int shift = 0; shift < 3; shift++) exchange(way, sizes[s], shift % check_size, out, in);
    for (int way = 4; way < 8; way++) strided(way, 10), strided(way, 100000);
    nobody();
    truncated();
    free(in);
    free(out);
    return check_done();
}
