/*
 * threads.c - dynamic processes by several threads at once (MPI_THREAD_MULTIPLE): some spawn, some accept or connect, while others send and
 * receive. The program spawns itself.
 */
#include "../check.h"

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#define SPAWNERS 2
#define CONNECTORS 2
#define TALKERS 2
#define ROUNDS 5

static char *own; /* this program */

static int child(MPI_Comm parent)
{
    int word = -1;
    CHECK_OK(MPI_Recv(&word, 1, MPI_INT, 0, 1, parent, MPI_STATUS_IGNORE));
    word++;
    CHECK_OK(MPI_Send(&word, 1, MPI_INT, 0, 2, parent));
    CHECK_OK(MPI_Comm_disconnect(&parent));
    if (check_failures) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
    return 0;
}

/* ---- threads: each has a communicator of its own ---- */

struct worker {
    pthread_t id;
    int number;
    MPI_Comm world, alone;
    _Atomic int *left; /* workers that talkers wait for */
    long bad;          /* what was not as it should be, */
    int line;          /* last here */
};

/* As CHECK, but counted by the thread. */
#define NEED(w, cond) ((cond) ? (void)0 : (void)((w)->bad++, (w)->line = __LINE__))

static void *spawn(void *arg)
{
    struct worker *w = arg;
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Comm inter;
        int word = 100 * w->number + i, back = -1;
        NEED(w, !MPI_Comm_spawn(own, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, w->alone, &inter, MPI_ERRCODES_IGNORE));
        NEED(w, !MPI_Send(&word, 1, MPI_INT, 0, 1, inter));
        NEED(w, !MPI_Recv(&back, 1, MPI_INT, 0, 2, inter, MPI_STATUS_IGNORE));
        NEED(w, back == word + 1);
        NEED(w, !MPI_Comm_disconnect(&inter));
    }
    --*w->left;
    return NULL;
}

/* Rank 0 accepts from each other rank in turn; all threads have ports at the same time. */
static void *connect_all(void *arg)
{
    struct worker *w = arg;
    char port[MPI_MAX_PORT_NAME] = "";
    if (check_rank == 0) NEED(w, !MPI_Open_port(MPI_INFO_NULL, port));
    NEED(w, !MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, w->world));
    for (int i = 0; i < ROUNDS * (check_rank ? 1 : check_size - 1); i++) {
        MPI_Comm inter;
        int mine = 1000 * w->number + check_rank, its = -1;
        if (check_rank) NEED(w, !MPI_Comm_connect(port, MPI_INFO_NULL, 0, w->alone, &inter));
        else NEED(w, !MPI_Comm_accept(port, MPI_INFO_NULL, 0, w->alone, &inter));
        NEED(w, !MPI_Sendrecv(&mine, 1, MPI_INT, 0, 3, &its, 1, MPI_INT, 0, 3, inter, MPI_STATUS_IGNORE));
        NEED(w, its / 1000 == w->number && (its % 1000 == 0) == (check_rank != 0));
        NEED(w, !MPI_Comm_disconnect(&inter));
    }
    if (check_rank == 0) NEED(w, !MPI_Close_port(port));
    --*w->left;
    return NULL;
}

/* Sends numbers around until the workers of all ranks are done. */
static void *talk(void *arg)
{
    struct worker *w = arg;
    int next = (check_rank + 1) % check_size, before = (check_rank + check_size - 1) % check_size;
    for (int i = 0, left = 1; left; i++) {
        int mine = 17 * i + check_rank, its = -1, own_left = *w->left;
        NEED(w, !MPI_Sendrecv(&mine, 1, MPI_INT, next, 4, &its, 1, MPI_INT, before, 4, w->world, MPI_STATUS_IGNORE));
        NEED(w, its == 17 * i + before);
        NEED(w, !MPI_Allreduce(&own_left, &left, 1, MPI_INT, MPI_MAX, w->world));
    }
    return NULL;
}

/* A port that is closed while another thread accepts at it. */
static void *close_soon(void *port)
{
    usleep(50000);
    CHECK_OK(MPI_Close_port(port));
    return NULL;
}

static void close_while_accepting(void)
{
    char port[MPI_MAX_PORT_NAME];
    pthread_t closer;
    MPI_Comm inter = MPI_COMM_SELF;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_OK(MPI_Open_port(MPI_INFO_NULL, port));
    pthread_create(&closer, NULL, close_soon, port);
    int rc = MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
    pthread_join(closer, NULL);
    CHECK_CLASS(rc, MPI_ERR_PORT);
    CHECK(inter == MPI_COMM_NULL, "there is a communicator");
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    struct worker w[SPAWNERS + CONNECTORS + TALKERS];
    _Atomic int left = SPAWNERS + CONNECTORS;
    int provided;
    MPI_Comm parent;
    own = realpath(argv[0], NULL);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    CHECK(provided == MPI_THREAD_MULTIPLE, "thread level %d", provided);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) return child(parent);
    for (int i = 0; i < SPAWNERS + CONNECTORS + TALKERS; i++) {
        w[i] = (struct worker){.number = i, .left = &left};
        MPI_Comm_dup(MPI_COMM_WORLD, &w[i].world);
        MPI_Comm_dup(MPI_COMM_SELF, &w[i].alone);
    }
    for (int i = 0; i < SPAWNERS + CONNECTORS + TALKERS; i++)
        pthread_create(&w[i].id, NULL, i < SPAWNERS ? spawn : i < SPAWNERS + CONNECTORS ? connect_all : talk, &w[i]);
    for (int i = 0; i < SPAWNERS + CONNECTORS + TALKERS; i++) {
        pthread_join(w[i].id, NULL);
        CHECK(!w[i].bad, "thread %d: %ld failures, the last one in line %d", i, w[i].bad, w[i].line);
        MPI_Comm_free(&w[i].world);
        MPI_Comm_free(&w[i].alone);
    }
    close_while_accepting();
    free(own);
    return check_done();
}
