/*
 * probe.c - probing, matched probing and receiving of probed messages (MPI-5.0 section 3.8): what the
 * probe says is what the receive gets; a matched message cannot be received by another receive.
 */
#include "../check.h"

enum { TAG = 5 };
static const int sizes[] = {0, 8, 4000, 100000, 2000000};
enum { SIZES = 5 };

static int peer;

static void check_status(const MPI_Status *st, int n, const char *what)
{
    int got = -1;
    MPI_Get_count(st, MPI_BYTE, &got);
    CHECK(st->MPI_SOURCE == peer && st->MPI_TAG == TAG && got == n, "%s: from %d, tag %d, %d bytes instead of %d", what, st->MPI_SOURCE,
          st->MPI_TAG, got, n);
}

static void find(int way, int n, MPI_Message *m, MPI_Status *st)
{
    int flag = 0, from = way % 2 ? MPI_ANY_SOURCE : peer, tag = way % 2 ? MPI_ANY_TAG : TAG;
    *m = MPI_MESSAGE_NULL;
    switch (way / 2) {
    case 0: CHECK_OK(MPI_Probe(from, tag, MPI_COMM_WORLD, st)); break;
    case 1:
        while (!flag) CHECK_OK(MPI_Iprobe(from, tag, MPI_COMM_WORLD, &flag, st));
        break;
    case 2: CHECK_OK(MPI_Mprobe(from, tag, MPI_COMM_WORLD, m, st)); break;
    case 3:
        while (!flag) CHECK_OK(MPI_Improbe(from, tag, MPI_COMM_WORLD, &flag, m, st));
        break;
    }
    check_status(st, n, "probe");
    CHECK((*m != MPI_MESSAGE_NULL) == (way >= 4), "a message handle came with a plain probe, or none with a matched one");
}

static void receive(int way, char *buf, int n, MPI_Message *m, MPI_Status *st)
{
    MPI_Request r;
    if (way < 4) CHECK_OK(MPI_Recv(buf, n, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, st));
    else if (way == 4) CHECK_OK(MPI_Mrecv(buf, n, MPI_BYTE, m, st));
    else if (way == 5) CHECK_OK(MPI_Mrecv_c(buf, n, MPI_BYTE, m, st));
    else {
        if (way == 6) CHECK_OK(MPI_Imrecv(buf, n, MPI_BYTE, m, &r));
        else CHECK_OK(MPI_Imrecv_c(buf, n, MPI_BYTE, m, &r));
        CHECK_OK(MPI_Wait(&r, st));
    }
    CHECK(*m == MPI_MESSAGE_NULL, "the message handle is still there");
}

static void one_each(int way, int n, char *out, char *in)
{
    MPI_Status st;
    MPI_Message m;
    MPI_Request r;
    check_fill(out, (size_t)n, (unsigned long)(way + check_rank));
    CHECK_OK(MPI_Isend(out, n, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &r));
    find(way, n, &m, &st);
    memset(in, 0, (size_t)n + 1);
    receive(way, in, n, &m, &st);
    check_status(&st, n, "receive");
    CHECK(check_differ(in, (size_t)n, (unsigned long)(way + peer)) == 0, "way %d, %d bytes: data differ", way, n);
    CHECK_OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
}

/* A probed message is out of matching: a later receive gets the message behind it. */
static void taken_is_taken(void)
{
    int a = 1, b = 2, got = 0;
    MPI_Message m;
    MPI_Request r[2];
    MPI_Isend(&a, 1, MPI_INT, peer, TAG, MPI_COMM_WORLD, &r[0]);
    MPI_Isend(&b, 1, MPI_INT, peer, TAG, MPI_COMM_WORLD, &r[1]);
    CHECK_OK(MPI_Mprobe(peer, TAG, MPI_COMM_WORLD, &m, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_Recv(&got, 1, MPI_INT, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(got == 2, "the receive got message %d", got);
    CHECK_OK(MPI_Mrecv(&got, 1, MPI_INT, &m, MPI_STATUS_IGNORE));
    CHECK(got == 1, "the matched receive got message %d", got);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
}

static void nothing_there(void)
{
    int flag = 1;
    MPI_Message m = MPI_MESSAGE_NO_PROC;
    CHECK_OK(MPI_Iprobe(peer, 4711, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    CHECK(flag == 0, "iprobe found a message that nobody sent");
    flag = 1;
    CHECK_OK(MPI_Improbe(peer, 4711, MPI_COMM_WORLD, &flag, &m, MPI_STATUS_IGNORE));
    CHECK(flag == 0 && m == MPI_MESSAGE_NULL, "improbe found a message that nobody sent");
}

static void no_process(void)
{
    int flag = 0, n = -1;
    MPI_Message m;
    MPI_Status st;
    MPI_Request r;
    CHECK_OK(MPI_Probe(MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &st));
    CHECK(st.MPI_SOURCE == MPI_PROC_NULL && st.MPI_TAG == MPI_ANY_TAG, "probe of nobody: from %d, tag %d", st.MPI_SOURCE, st.MPI_TAG);
    CHECK_OK(MPI_Iprobe(MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &flag, &st));
    CHECK(flag, "iprobe of nobody found nothing");
    CHECK_OK(MPI_Mprobe(MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &m, &st));
    CHECK(m == MPI_MESSAGE_NO_PROC && st.MPI_SOURCE == MPI_PROC_NULL, "mprobe of nobody");
    CHECK_OK(MPI_Mrecv(NULL, 0, MPI_BYTE, &m, &st));
    MPI_Get_count(&st, MPI_BYTE, &n);
    CHECK(m == MPI_MESSAGE_NULL && n == 0 && st.MPI_SOURCE == MPI_PROC_NULL && st.MPI_TAG == MPI_ANY_TAG, "mrecv from nobody: %d bytes", n);
    CHECK_OK(MPI_Improbe(MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &flag, &m, &st));
    CHECK_OK(MPI_Imrecv(NULL, 0, MPI_BYTE, &m, &r));
    CHECK_OK(MPI_Wait(&r, &st));
    CHECK(st.MPI_SOURCE == MPI_PROC_NULL, "imrecv from nobody: from %d", st.MPI_SOURCE);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    peer = check_size - 1 - check_rank; /* in pairs; the middle one with itself */
    char *out = malloc(2000001), *in = malloc(2000001);
    for (int s = 0; s < SIZES; s++)
        for (int way = 0; way < 8; way++) one_each(way, sizes[s], out, in);
    taken_is_taken();
    nothing_there();
    no_process();
    free(in);
    free(out);
    MPI_Barrier(MPI_COMM_WORLD); /* the messages of check_done would meet wildcards */
    return check_done();
}
