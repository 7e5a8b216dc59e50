/*
 * modes.c - every send mode, blocking, nonblocking and persistent, int and large counts, at sizes
 * around every threshold of the protocols, contiguous and strided: each rank sends to its right
 * neighbour (itself when alone) and checks every byte, also of the gaps.
 */
#include "../check.h"

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

static const int sizes[] = {0, 1, 8, 39, 40, 41, 48, 56, 64, 1000, 4096, 8184, 8191, 8192, 8193, 16376, 16384, 20000,
                            32759, 32760, 32768, 32769, 65535, 65536, 262144, 262145, 1 << 20, (4 << 20) + 3};

typedef int start_fn(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
typedef int start_fn_c(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
typedef int send_fn(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int send_fn_c(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm);

static send_fn *const blocking[] = {MPI_Send, MPI_Ssend, MPI_Rsend, MPI_Bsend};
static send_fn_c *const blocking_c[] = {MPI_Send_c, MPI_Ssend_c, MPI_Rsend_c, MPI_Bsend_c};
static start_fn *const starting[] = {MPI_Isend, MPI_Issend, MPI_Irsend, MPI_Ibsend};
static start_fn_c *const starting_c[] = {MPI_Isend_c, MPI_Issend_c, MPI_Irsend_c, MPI_Ibsend_c};
static start_fn *const making[] = {MPI_Send_init, MPI_Ssend_init, MPI_Rsend_init, MPI_Bsend_init};
static start_fn_c *const making_c[] = {MPI_Send_init_c, MPI_Ssend_init_c, MPI_Rsend_init_c, MPI_Bsend_init_c};
static const char *const names[] = {"standard", "synchronous", "ready", "buffered"};

static int right, left;

/* Every other byte is data. */
static void fill_strided(unsigned char *buf, int n, unsigned long seed)
{
    for (int i = 0; i < n; i++) {
        buf[2 * i] = check_byte(seed, (size_t)i);
        buf[2 * i + 1] = 0xee;
    }
}

static int differ_strided(const unsigned char *buf, int n, unsigned long seed)
{
    int bad = 0;
    for (int i = 0; i < n; i++) bad += buf[2 * i] != check_byte(seed, (size_t)i) || buf[2 * i + 1] != 0xdd;
    return bad;
}

/* Sends by way `way`: blocking, nonblocking, persistent (twice); each by int or by large count. */
static void send_by(int way, int mode, const void *buf, int n, MPI_Datatype type)
{
    MPI_Request r = MPI_REQUEST_NULL;
    switch (way) {
    case 0: CHECK_OK(blocking[mode](buf, n, type, right, way, MPI_COMM_WORLD)); return;
    case 1: CHECK_OK(blocking_c[mode](buf, n, type, right, way, MPI_COMM_WORLD)); return;
    case 2: CHECK_OK(starting[mode](buf, n, type, right, way, MPI_COMM_WORLD, &r)); break;
    case 3: CHECK_OK(starting_c[mode](buf, n, type, right, way, MPI_COMM_WORLD, &r)); break;
    case 4: CHECK_OK(making[mode](buf, n, type, right, way, MPI_COMM_WORLD, &r)); break;
    case 5: CHECK_OK(making_c[mode](buf, n, type, right, way, MPI_COMM_WORLD, &r)); break;
    }
    if (way >= 4) CHECK_OK(MPI_Start(&r));
    CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    if (way >= 4) CHECK_OK(MPI_Request_free(&r));
    CHECK(r == MPI_REQUEST_NULL, "the request is still there");
}

static void exchange(int way, int mode, int n, MPI_Datatype strided, unsigned char *out, unsigned char *in)
{
    MPI_Status status;
    MPI_Request recv;
    MPI_Datatype type = strided == MPI_DATATYPE_NULL ? MPI_BYTE : strided;
    int k = -1, count = strided == MPI_DATATYPE_NULL ? n : n > 0;
    unsigned long mine = (unsigned long)(check_rank * 7 + mode + way), theirs = (unsigned long)(left * 7 + mode + way);
    if (type == MPI_BYTE) check_fill(out, (size_t)n, mine);
    else fill_strided(out, n, mine);
    memset(in, 0xdd, 2 * (size_t)n + 1);
    CHECK_OK(MPI_Irecv(in, count, type, left, way, MPI_COMM_WORLD, &recv));
    if (mode == 2) MPI_Barrier(MPI_COMM_WORLD); /* ready: the receive must be there */
    send_by(way, mode, out, count, type);
    CHECK_OK(MPI_Wait(&recv, &status));
    MPI_Get_count(&status, MPI_BYTE, &k);
    CHECK(status.MPI_SOURCE == left && status.MPI_TAG == way && k == n, "%s, way %d, %d bytes: from %d, tag %d, %d bytes", names[mode],
          way, n, status.MPI_SOURCE, status.MPI_TAG, k);
    int bad = type == MPI_BYTE ? (int)check_differ(in, (size_t)n, theirs) + (in[n] != 0xdd) : differ_strided(in, n, theirs);
    if (mode == 3) CHECK_OK(MPI_Buffer_flush()); /* the neighbour may be slower */
    CHECK(bad == 0, "%s, way %d, %d bytes%s: %d wrong", names[mode], way, n, type == MPI_BYTE ? "" : " strided", bad);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    right = (check_rank + 1) % check_size;
    left = (check_rank + check_size - 1) % check_size;
    int largest = sizes[COUNT(sizes) - 1], room = 2 * (largest + MPI_BSEND_OVERHEAD), size;
    unsigned char *out = malloc(2 * (size_t)largest + 2), *in = malloc(2 * (size_t)largest + 2), *back, *buffer = malloc((size_t)room);
    CHECK_OK(MPI_Buffer_attach(buffer, room));
    for (int s = 0; s < COUNT(sizes); s++) {
        MPI_Datatype strided;
        MPI_Type_vector(sizes[s], 1, 2, MPI_BYTE, &strided);
        MPI_Type_commit(&strided);
        for (int mode = 0; mode < 4; mode++)
            for (int way = 0; way < 6; way++) {
                if (sizes[s] > 300000 && way % 2) continue; /* the int and the large-count call share everything below */
                exchange(way, mode, sizes[s], MPI_DATATYPE_NULL, out, in);
                exchange(way, mode, sizes[s], strided, out, in);
            }
        MPI_Type_free(&strided);
    }
    CHECK_OK(MPI_Buffer_detach(&back, &size));
    CHECK(back == buffer && size == room, "another buffer came back");
    free(buffer);
    free(in);
    free(out);
    return check_done();
}
