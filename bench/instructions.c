/*
 * instructions.c - what instructions.sh runs rank 0 of under callgrind: batches of sends of 8 bytes, and allreduces.
 *
 * Only what measured_send, measured_isend and measured_allreduce call is counted (their names are given to callgrind). The receiver has
 * posted its receives before a batch starts, and polls, so that nobody sleeps and no sender has to ring a bell; the
 * batch is smaller than the credit of a sender. A first batch, of another function, opens the connection. What an
 * allreduce waits for has come before it is called, so that no turn of waiting is counted; so it is with the
 * nonblocking collectives, measured with the wait that follows. Those whose names end in _early are started before the
 * other rank has come, which it has when they are waited for: start and wait are counted, the nap in between is not.
 *
 * A receive is counted when its message lies in the ring and no progress has been made since; MPI_Comm_dup, with the
 * MPI_Comm_free of it, at the rank that tells the others of the context.
 *
 * MPI_Init is counted with what the dynamic linker does in it; MPI_Test and MPI_Iprobe while nothing comes; measured_deep is
 * the receive behind DEEP posted ones of the same source.
 *
 * With --multiple, and rank 0 under locked.c: sends or receives with MPI_THREAD_MULTIPLE, of which two threads of each rank have
 * made use, between marks (int3), and nothing else. A receive is counted from MPI_Irecv to the end of the MPI_Waitall of its batch.
 * "recv": all receives are posted before the first message is sent, and all messages lie in the ring when MPI_Waitall is
 * called. "stored": all messages are stored in the process before the first receive is posted.
 * With --serialized or --alone, all as without: with MPI_THREAD_SERIALIZED, or with MPI_THREAD_MULTIPLE and one thread that calls.
 * With --start, on any number of ranks: the page faults of MPI_Init, on average, and nothing else.
 */
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { BATCH = 16, BATCHES = 8, TAG = 7, EARLY = 8, NAP_US = 30000, DEEP = 4096, DEEP_TAG = 100 };

static MPI_Request request[BATCH];
static long data;

__attribute__((noinline)) void measured_send(void);
__attribute__((noinline)) void measured_isend(void);

void measured_send(void)
{
    for (int i = 0; i < BATCH; i++) MPI_Send(&data, 8, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
}

void measured_isend(void)
{
    for (int i = 0; i < BATCH; i++) MPI_Isend(&data, 8, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request[i]);
}

static void warm_up(void)
{
    for (int i = 0; i < BATCH; i++) {
        if (i % 2)
            MPI_Send(&data, 8, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
        else
            MPI_Isend(&data, 8, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request[i]);
        if (i % 2 == 0) MPI_Wait(&request[i], MPI_STATUS_IGNORE);
    }
}

static void send_batches(void (*batch)(void), int n)
{
    for (int b = 0; b < n; b++) {
        MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < BATCH; i++) request[i] = MPI_REQUEST_NULL;
        batch();
        MPI_Waitall(BATCH, request, MPI_STATUSES_IGNORE);
    }
}

static void receive_batches(int n)
{
    long in[BATCH];
    for (int b = 0; b < n; b++) {
        for (int i = 0; i < BATCH; i++) MPI_Irecv(&in[i], 8, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &request[i]);
        MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        for (int done = 0; !done; sched_yield()) MPI_Testall(BATCH, request, &done, MPI_STATUSES_IGNORE);
    }
}

/* ---- with MPI_THREAD_MULTIPLE ---- */

static int is_warm; /* no mark before */

static void mark(void)
{
#if defined(__x86_64__)
    if (is_warm) __asm__ volatile("int3");
#endif
}

static void marked_send(void)
{
    mark();
    measured_send();
    mark();
}

static void marked_isend(void)
{
    mark();
    measured_isend();
    mark();
}

static long batch_in[BATCH];

static void post_batch(void)
{
    for (int i = 0; i < BATCH; i++) MPI_Irecv(&batch_in[i], 8, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request[i]);
}

static void end_batch(void) { MPI_Waitall(BATCH, request, MPI_STATUSES_IGNORE); }

static void marked_recv(void)
{
    mark();
    post_batch();
    mark();
    MPI_Send(NULL, 0, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
    usleep(NAP_US);
    mark();
    end_batch();
    mark();
}

static void marked_stored(void)
{
    MPI_Send(NULL, 0, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* behind the batch */
    mark();
    post_batch();
    end_batch();
    mark();
}

static void serve_batches(int stored)
{
    for (int b = 0; b < 1 + BATCHES; b++) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < BATCH; i++) MPI_Send(&data, 8, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        if (stored) MPI_Send(NULL, 0, MPI_BYTE, 0, TAG + 1, MPI_COMM_WORLD);
    }
}

static void *calls(void *nothing)
{
    int rank, found;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Iprobe(1 - rank, TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    return nothing;
}

static void *asleep(void *nothing)
{
    pause();
    return nothing;
}

static void begin(pthread_t *thread, void *(*body)(void *))
{
    if (pthread_create(thread, NULL, body, NULL)) MPI_Abort(MPI_COMM_WORLD, 2);
}

static void send_marked(int rank, void (*batch)(void))
{
    if (rank == 0) {
        send_batches(warm_up, 1);
        is_warm = 1;
        send_batches(batch, BATCHES);
    } else {
        receive_batches(1 + BATCHES);
    }
}

static void receive_marked(int rank, void (*batch)(void))
{
    if (rank) {
        serve_batches(batch == marked_stored);
        return;
    }
    batch();
    is_warm = 1;
    for (int b = 0; b < BATCHES; b++) batch();
}

/* A thread has called MPI, and another one stays, as the C library locks nothing in a process that has one thread. */
static int multiple(int rank, const char *what)
{
    pthread_t other;
    begin(&other, calls);
    pthread_join(other, NULL);
    begin(&other, asleep);
    if (!strcmp(what, "send")) send_marked(rank, marked_send);
    else if (!strcmp(what, "isend")) send_marked(rank, marked_isend);
    else if (!strcmp(what, "recv")) receive_marked(rank, marked_recv);
    else receive_marked(rank, marked_stored);
    MPI_Finalize();
    return 0;
}

/* ---- a receive, duplicates of a communicator ---- */

__attribute__((noinline)) void measured_recv(void);
__attribute__((noinline)) void measured_dup(void);

static void recv_one(void) { MPI_Recv(&data, 8, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }
void measured_recv(void) { recv_one(); }

static void receive_there(int rank, void (*recv)(void))
{
    if (rank) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&data, 8, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        return;
    }
    MPI_Send(NULL, 0, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
    usleep(2 * NAP_US);
    recv();
}

static void dup_all(void)
{
    for (int i = 0; i < BATCH; i++) {
        MPI_Comm c;
        MPI_Comm_dup(MPI_COMM_WORLD, &c);
        MPI_Comm_free(&c);
    }
}
void measured_dup(void) { dup_all(); }

static void duplicate(int rank)
{
    dup_all();
    for (int b = 0; b < BATCHES; b++) {
        MPI_Barrier(MPI_COMM_WORLD); /* no slot of the node's memory is still being read */
        if (rank) dup_all();
        else measured_dup();
    }
}

/* ---- the start, calls that find nothing, a deep queue ---- */

__attribute__((noinline)) void measured_init(int *argc, char ***argv);
__attribute__((noinline)) void measured_test(void);
__attribute__((noinline)) void measured_iprobe(void);
__attribute__((noinline)) void measured_deep(void);

void measured_init(int *argc, char ***argv) { MPI_Init(argc, argv); }

static MPI_Request deep[DEEP + 1];
static long deep_data[DEEP + 1];

void measured_test(void)
{
    int done;
    for (int i = 0; i < BATCH; i++) MPI_Test(&deep[0], &done, MPI_STATUS_IGNORE);
}

void measured_iprobe(void)
{
    int found;
    for (int i = 0; i < BATCH; i++) MPI_Iprobe(1, TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
}

static void post(int i) { MPI_Irecv(&deep_data[i], 8, MPI_BYTE, 1, DEEP_TAG + i, MPI_COMM_WORLD, &deep[i]); }
static void last_deep(void) { post(DEEP); }
void measured_deep(void) { post(DEEP); }

static void look_for_nothing(void)
{
    for (int b = 0; b < BATCHES; b++) measured_test();
    for (int b = 0; b < BATCHES; b++) measured_iprobe();
}

static void nothing(void) {}

/* Rank 1 is asleep, or about to be, until rank 0 has posted its receives and looked for nothing. */
static void behind_many(int rank, void (*last)(void), void (*look)(void))
{
    if (rank) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i <= DEEP; i++) MPI_Send(&data, 8, MPI_BYTE, 0, DEEP_TAG + i, MPI_COMM_WORLD);
        return;
    }
    for (int i = 0; i < DEEP; i++) post(i);
    last();
    look();
    MPI_Send(NULL, 0, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
    MPI_Waitall(DEEP + 1, deep, MPI_STATUSES_IGNORE);
}

static long page_faults(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_minflt + u.ru_majflt;
}

static int start_only(long faults, int rank, int size)
{
    long sum;
    MPI_Reduce(&faults, &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("init_faults %.1f\n", (double)sum / size);
    MPI_Finalize();
    return 0;
}

/* ---- collectives ---- */

static double in = 1, out, many[4];

__attribute__((noinline)) void measured_allreduce(void);
void measured_allreduce(void) { MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }

static void iallreduce(MPI_Request *r) { MPI_Iallreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, r); }
static void ibarrier(MPI_Request *r) { MPI_Ibarrier(MPI_COMM_WORLD, r); }
static void ialltoall(MPI_Request *r) { MPI_Ialltoall(&many[0], 1, MPI_DOUBLE, &many[2], 1, MPI_DOUBLE, MPI_COMM_WORLD, r); }

__attribute__((noinline)) void measured_iallreduce(void);
__attribute__((noinline)) void measured_ibarrier(void);
__attribute__((noinline)) void measured_ialltoall(void);

void measured_iallreduce(void)
{
    MPI_Request r;
    iallreduce(&r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
}

void measured_ibarrier(void)
{
    MPI_Request r;
    ibarrier(&r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
}

void measured_ialltoall(void)
{
    MPI_Request r;
    ialltoall(&r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
}

static MPI_Request early;

__attribute__((noinline)) void measured_iallreduce_early_start(void);
__attribute__((noinline)) void measured_ibarrier_early_start(void);
__attribute__((noinline)) void measured_ialltoall_early_start(void);
__attribute__((noinline)) void measured_iallreduce_early_wait(void);
__attribute__((noinline)) void measured_ibarrier_early_wait(void);
__attribute__((noinline)) void measured_ialltoall_early_wait(void);
void measured_iallreduce_early_start(void) { iallreduce(&early); }
void measured_ibarrier_early_start(void) { ibarrier(&early); }
void measured_ialltoall_early_start(void) { ialltoall(&early); }
void measured_iallreduce_early_wait(void) { MPI_Wait(&early, MPI_STATUS_IGNORE); }
void measured_ibarrier_early_wait(void) { MPI_Wait(&early, MPI_STATUS_IGNORE); }
void measured_ialltoall_early_wait(void) { MPI_Wait(&early, MPI_STATUS_IGNORE); }

/* Rank 1 is awake, and in no call, when rank 0 starts. */
static void collective_early(int rank, void (*start)(void), void (*wait)(void))
{
    if (rank == 0) {
        MPI_Sendrecv(NULL, 0, MPI_BYTE, 1, TAG, NULL, 0, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        start();
        usleep(2 * NAP_US);
        wait();
        return;
    }
    MPI_Sendrecv(NULL, 0, MPI_BYTE, 0, TAG, NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    usleep(NAP_US);
    start();
    for (int done = 0; !done; sched_yield()) MPI_Test(&early, &done, MPI_STATUS_IGNORE);
}

static void collective(int rank, void (*measured)(void), void (*start)(MPI_Request *))
{
    MPI_Request r;
    if (rank == 0) {
        MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        measured();
        return;
    }
    start(&r);
    MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
    for (int done = 0; !done; sched_yield()) MPI_Test(&r, &done, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    const char *option = argc > 1 ? argv[1] : "";
    int rank, size, level, threads = argc > 2 && !strcmp(option, "--multiple");
    long faults = page_faults();
    if (threads || !strcmp(option, "--alone")) MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    else if (!strcmp(option, "--serialized")) MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    else measured_init(&argc, &argv);
    faults = page_faults() - faults;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!strcmp(option, "--start")) return start_only(faults, rank, size);
    if (size != 2) {
        fprintf(stderr, "instructions: needs 2 ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (threads) return multiple(rank, argv[2]);
    if (rank == 0) {
        send_batches(warm_up, 1);
        send_batches(measured_send, BATCHES);
        send_batches(measured_isend, BATCHES);
        printf("calls_measured %d\n", BATCH * BATCHES);
    } else {
        receive_batches(1 + 2 * BATCHES);
    }
    behind_many(rank, last_deep, nothing); /* makes room for the queue */
    behind_many(rank, measured_deep, look_for_nothing);
    if (rank == 0) printf("once_measured 1\n");
    MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* compiles the schedule */
    for (int i = 0; i < BATCH * BATCHES; i++) collective(rank, measured_allreduce, iallreduce);
    for (int i = 0; i < BATCH * BATCHES; i++) {
        collective(rank, measured_iallreduce, iallreduce);
        collective(rank, measured_ibarrier, ibarrier);
        collective(rank, measured_ialltoall, ialltoall);
    }
    for (int i = 0; i < EARLY; i++) {
        collective_early(rank, measured_iallreduce_early_start, measured_iallreduce_early_wait);
        collective_early(rank, measured_ibarrier_early_start, measured_ibarrier_early_wait);
        collective_early(rank, measured_ialltoall_early_start, measured_ialltoall_early_wait);
    }
    receive_there(rank, recv_one);
    for (int i = 0; i < EARLY; i++) receive_there(rank, measured_recv);
    duplicate(rank);
    if (rank == 0) printf("early_measured %d\n", EARLY);
    MPI_Finalize();
    return 0;
}
