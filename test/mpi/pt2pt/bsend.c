/*
 * bsend.c - buffered sends (MPI-5.0 sections 3.4, 3.6): a message of s bytes takes at most s + MPI_BSEND_OVERHEAD;
 * what does not fit is an error and nothing else is lost; detach and flush wait for delivery; buffers of the process
 * and of communicators, automatic ones.
 */
#include "../check.h"

enum { BIG = 200000, MANY = 10 };

static int right, left;
static char in[BIG];

static void receive(int n, int tag, unsigned long seed, MPI_Comm comm)
{
    MPI_Status st;
    int got = -1;
    memset(in, 0, (size_t)n);
    CHECK_OK(MPI_Recv(in, n, MPI_BYTE, left, tag, comm, &st));
    MPI_Get_count(&st, MPI_BYTE, &got);
    CHECK(got == n && check_differ(in, (size_t)n, seed) == 0, "message %d of %d bytes: %d bytes, or other data", tag, n, got);
}

static void no_buffer(void)
{
    char *p;
    int n;
    MPI_Request r;
    CHECK_CLASS(MPI_Bsend("", 1, MPI_BYTE, right, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Buffer_detach(&p, &n), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Buffer_flush(), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Buffer_iflush(&r), MPI_ERR_BUFFER);
    CHECK_OK(MPI_Bsend("", 1, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
}

/* MANY messages, all in the buffer at once, in exactly the room that the standard promises to be enough. */
static void exact_room(int size)
{
    int room = MANY * (size + MPI_BSEND_OVERHEAD), n = -1;
    char *buffer = malloc((size_t)room), *out = malloc((size_t)size + 1), *back = NULL;
    CHECK_OK(MPI_Buffer_attach(buffer, room));
    CHECK_CLASS(MPI_Buffer_attach(buffer, room), MPI_ERR_BUFFER);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) {
            check_fill(out, (size_t)size, (unsigned long)(check_rank + i));
            CHECK_OK(MPI_Bsend(out, size, MPI_BYTE, right, i, MPI_COMM_WORLD));
            memset(out, 0, (size_t)size); /* it is the caller's again */
        }
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = MANY; i-- > 0;) receive(size, i, (unsigned long)(left + i), MPI_COMM_WORLD);
        CHECK_OK(MPI_Buffer_flush());
    }
    CHECK_OK(MPI_Buffer_detach(&back, &n));
    CHECK(back == buffer && n == room, "detach gave %p, %d instead of %p, %d", (void *)back, n, (void *)buffer, room);
    free(out);
    free(buffer);
}

/* Messages until one does not fit: an error, and all that were taken arrive. */
static void overflow(void)
{
    static char buffer[3 * BIG];
    char *out = malloc(BIG), *back;
    int taken = 0, size, class = MPI_SUCCESS, theirs;
    CHECK_OK(MPI_Buffer_attach(buffer, sizeof buffer));
    for (;;) {
        check_fill(out, BIG, (unsigned long)(check_rank + taken));
        int rc = MPI_Bsend(out, BIG, MPI_BYTE, right, 1, MPI_COMM_WORLD);
        MPI_Error_class(rc, &class);
        if (rc || taken > 10) break;
        taken++;
    }
    CHECK(class == MPI_ERR_BUFFER && taken == 2, "%d messages taken, then class %d", taken, class);
    CHECK_CLASS(MPI_Bsend(out, BIG, MPI_BYTE, right, 1, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    CHECK_OK(MPI_Bsend(&taken, 1, MPI_INT, right, 2, MPI_COMM_WORLD)); /* a small one still fits */
    MPI_Recv(&theirs, 1, MPI_INT, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < theirs; i++) receive(BIG, 1, (unsigned long)(left + i), MPI_COMM_WORLD);
    CHECK_OK(MPI_Buffer_detach(&back, &size));
    free(out);
    char tiny[16];
    CHECK_OK(MPI_Buffer_attach(tiny, sizeof tiny));
    CHECK_CLASS(MPI_Bsend("x", 1, MPI_BYTE, right, 1, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    CHECK_OK(MPI_Buffer_detach(&back, &size));
    CHECK(back == tiny && size == sizeof tiny, "the tiny buffer");
}

/* Holes of all sizes: messages of many lengths, received in another order than sent. */
static void fragments(uint64_t *state)
{
    enum { ROOM = 400000, LIVE = 40 };
    static char buffer[ROOM], out[20000];
    char *back;
    int len[LIVE], size;
    CHECK_OK(MPI_Buffer_attach_c(buffer, ROOM));
    for (int round = 0; round < 30; round++) {
        int total = 0, n = 0;
        for (; n < LIVE; n++) {
            len[n] = (int)(check_random(state) % sizeof out);
            if ((total += len[n] + MPI_BSEND_OVERHEAD) > ROOM) break;
            check_fill(out, (size_t)len[n], (unsigned long)(check_rank + n));
            CHECK_OK(MPI_Bsend(out, len[n], MPI_BYTE, right, n, MPI_COMM_WORLD));
        }
        for (int i = 0; i < n; i += 2) receive(len[i], i, (unsigned long)(left + i), MPI_COMM_WORLD);
        for (int i = 1; i < n; i += 2) receive(len[i], i, (unsigned long)(left + i), MPI_COMM_WORLD);
        CHECK_OK(MPI_Buffer_flush());
    }
    CHECK_OK(MPI_Buffer_detach(&back, &size));
    CHECK(back == buffer && size == ROOM, "another buffer");
}

/* iflush waits for what is in the buffer, not for what comes later; detach waits for the receiver. */
static void flushing(void)
{
    static char buffer[4 * BIG];
    char *out = malloc(BIG), *back;
    MPI_Request r, first;
    int flag = -1, size;
    CHECK_OK(MPI_Buffer_attach(buffer, sizeof buffer));
    CHECK_OK(MPI_Buffer_iflush(&r));
    CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    CHECK(r == MPI_REQUEST_NULL, "the flush of an empty buffer");
    check_fill(out, BIG, 1);
    CHECK_OK(MPI_Bsend(out, BIG, MPI_BYTE, right, 1, MPI_COMM_WORLD));
    CHECK_OK(MPI_Buffer_iflush(&first));
    CHECK_OK(MPI_Test(&first, &flag, MPI_STATUS_IGNORE));
    CHECK(flag == 0, "the flush is complete, but nobody received the message");
    check_fill(out, BIG, 2);
    CHECK_OK(MPI_Bsend(out, BIG, MPI_BYTE, right, 2, MPI_COMM_WORLD));
    CHECK_OK(MPI_Buffer_iflush(&r));
    MPI_Barrier(MPI_COMM_WORLD);
    receive(BIG, 1, 1, MPI_COMM_WORLD);
    CHECK_OK(MPI_Wait(&first, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_Test(&r, &flag, MPI_STATUS_IGNORE));
    CHECK(flag == 0, "the second flush is complete before its message");
    MPI_Barrier(MPI_COMM_WORLD);
    receive(BIG, 2, 2, MPI_COMM_WORLD);
    CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_Buffer_detach(&back, &size));
    free(out);
}

/* A communicator's own buffer is used before that of the process. */
static void of_communicator(void)
{
    static char buffer[2 * BIG];
    char *out = malloc(BIG), *back = NULL;
    MPI_Comm dup, again;
    MPI_Request r;
    int size = -1;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    CHECK_OK(MPI_Comm_attach_buffer(dup, buffer, sizeof buffer));
    CHECK_CLASS(MPI_Comm_attach_buffer(dup, buffer, sizeof buffer), MPI_ERR_BUFFER);
    check_fill(out, BIG, 5);
    CHECK_OK(MPI_Bsend(out, BIG, MPI_BYTE, right, 1, dup));
    CHECK_CLASS(MPI_Bsend(out, BIG, MPI_BYTE, right, 1, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    CHECK_OK(MPI_Comm_iflush_buffer(dup, &r));
    receive(BIG, 1, 5, dup);
    CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_Comm_flush_buffer(dup));
    CHECK_OK(MPI_Comm_detach_buffer(dup, &back, &size));
    CHECK(back == buffer && size == sizeof buffer, "the communicator's buffer");
    CHECK_CLASS(MPI_Comm_detach_buffer(dup, &back, &size), MPI_ERR_BUFFER);
    MPI_Comm_dup(dup, &again); /* freeing one with a buffer waits for its messages */
    CHECK_OK(MPI_Comm_attach_buffer_c(again, buffer, sizeof buffer));
    CHECK_OK(MPI_Ibsend(out, BIG, MPI_BYTE, right, 1, again, &r));
    CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    receive(BIG, 1, 5, again);
    CHECK_OK(MPI_Comm_free(&again));
    CHECK_OK(MPI_Comm_free(&dup));
    free(out);
}

static void automatic(void)
{
    char *out = malloc(BIG), *back = NULL;
    MPI_Count size = -1;
    CHECK_OK(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
    for (int i = 0; i < 3 * MANY; i++) {
        check_fill(out, BIG, (unsigned long)(check_rank + i));
        CHECK_OK(MPI_Bsend(out, i % 2 ? BIG : 10, MPI_BYTE, right, i, MPI_COMM_WORLD));
    }
    for (int i = 3 * MANY; i-- > 0;) receive(i % 2 ? BIG : 10, i, (unsigned long)(left + i), MPI_COMM_WORLD);
    CHECK_OK(MPI_Buffer_detach_c(&back, &size));
    CHECK((void *)back == MPI_BUFFER_AUTOMATIC, "detach gave %p", (void *)back);
    free(out);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    right = (check_rank + 1) % check_size;
    left = (check_rank + check_size - 1) % check_size;
    no_buffer();
    exact_room(0);
    exact_room(1);
    exact_room(5000);
    exact_room(BIG);
    overflow();
    uint64_t state = check_seed();
    fragments(&state);
    flushing();
    of_communicator();
    automatic();
    MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0); /* still attached at the end: MPI_Finalize copes */
    CHECK_OK(MPI_Bsend(&left, 1, MPI_INT, right, 99, MPI_COMM_WORLD));
    CHECK_OK(MPI_Recv(in, 1, MPI_INT, left, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return check_done();
}
