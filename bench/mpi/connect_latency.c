/*
 * connect_latency - the time of MPI_Comm_accept and MPI_Comm_connect, by a launcher that lets the machine be oversubscribed.
 *
 *     connect_latency [-s SECONDS]
 *
 * With 2 K ranks, the lower half accepts and the upper one connects:
 *   connect_K_ms            the call, behind a barrier of all, at the rank where it takes longest
 *   connect_K_trip_us       behind that, a first message from one root to the other and back
 *   connect_K_disconnect_ms MPI_Comm_disconnect, at the rank where it takes longest
 *   port_open_us, port_close_us   MPI_Open_port and MPI_Close_port, by the root that accepts
 * With 1 rank, it spawns 1, 2 and 4 children, which connect to a port of it: the same keys, with "child" for "connect".
 * K is the size of the group that connects. Medians of 5 to 51 repetitions, as many as SECONDS (5) allow, after one that does not
 * count; one port serves them all.
 */
#include "bench.h"

#include <stdbool.h>

enum { LEAST_REPS = 5, MOST_REPS = 51, PORTS = 15 };

/* Two groups that know each other by `all`: an intracommunicator of both, or the intercommunicator of parent and children. */
struct sides {
    MPI_Comm all, group; /* group: this side */
    bool accepts, inter;
    int members; /* of the group that connects */
    char port[MPI_MAX_PORT_NAME];
};

static double connected[MOST_REPS], trip[MOST_REPS], parted[MOST_REPS];

static bool is_root(const struct sides *s)
{
    int rank;
    MPI_Comm_rank(s->group, &rank);
    return rank == 0;
}

/* From the root that accepts to all others. */
static void tell(const struct sides *s, void *p, int bytes)
{
    int root = s->inter && s->accepts ? is_root(s) ? MPI_ROOT : MPI_PROC_NULL : 0;
    MPI_Bcast(p, bytes, MPI_BYTE, root, s->all);
}

/* The largest value of all processes, at the root that accepts. */
static double largest(const struct sides *s, double mine)
{
    double most = mine, others = 0;
    if (!s->inter) {
        MPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, 0, s->all);
        return most;
    }
    MPI_Reduce(&mine, &others, 1, MPI_DOUBLE, MPI_MAX, s->accepts ? MPI_ROOT : 0, s->all); /* this side has one process */
    return s->accepts && others > mine ? others : mine;
}

/* A message of the connecting root there and back. */
static void one_trip(const struct sides *s, MPI_Comm c)
{
    int word = 1;
    if (!is_root(s)) return;
    if (!s->accepts) MPI_Send(&word, 1, MPI_INT, 0, 1, c);
    MPI_Recv(&word, 1, MPI_INT, 0, 1, c, MPI_STATUS_IGNORE);
    if (s->accepts) MPI_Send(&word, 1, MPI_INT, 0, 1, c);
}

static void repeat(const struct sides *s, int r)
{
    MPI_Comm c;
    MPI_Barrier(s->all);
    double t0 = now();
    if (s->accepts) MPI_Comm_accept(s->port, MPI_INFO_NULL, 0, s->group, &c);
    else MPI_Comm_connect(s->port, MPI_INFO_NULL, 0, s->group, &c);
    double t1 = now();
    MPI_Barrier(s->all);
    double t2 = now();
    one_trip(s, c);
    double t3 = now();
    MPI_Barrier(s->all);
    double t4 = now();
    MPI_Comm_disconnect(&c);
    double t5 = now();
    connected[r] = largest(s, t1 - t0);
    trip[r] = largest(s, s->accepts ? 0 : t3 - t2);
    parted[r] = largest(s, t5 - t4);
}

/* All repetitions; the root that accepts decides how many, and prints. */
static void measure(struct sides *s, double seconds, const char *name)
{
    int go = 1, reps = 0;
    bool tells = s->accepts && is_root(s);
    tell(s, s->port, MPI_MAX_PORT_NAME);
    repeat(s, 0);
    for (double end = now() + seconds;; reps++) {
        if (tells) go = reps < LEAST_REPS || (reps < MOST_REPS && now() < end);
        tell(s, &go, sizeof go);
        if (!go) break;
        repeat(s, reps);
    }
    if (!tells) return;
    printf("%s_%d_ms %.3f\n", name, s->members, 1e3 * median(connected, reps));
    printf("%s_%d_trip_us %.3f\n", name, s->members, 1e6 * median(trip, reps));
    printf("%s_%d_disconnect_ms %.3f\n", name, s->members, 1e3 * median(parted, reps));
    fflush(stdout);
}

static void time_ports(void)
{
    double open[PORTS], close[PORTS];
    for (int i = 0; i < PORTS; i++) {
        char port[MPI_MAX_PORT_NAME];
        double t0 = now();
        MPI_Open_port(MPI_INFO_NULL, port);
        double t1 = now();
        MPI_Close_port(port);
        close[i] = now() - t1;
        open[i] = t1 - t0;
    }
    printf("port_open_us %.3f\nport_close_us %.3f\n", 1e6 * median(open, PORTS), 1e6 * median(close, PORTS));
}

static void halves(int rank, int size, double seconds)
{
    struct sides s = {.all = MPI_COMM_WORLD, .accepts = rank < size / 2, .members = size - size / 2};
    MPI_Comm_split(MPI_COMM_WORLD, s.accepts, rank, &s.group);
    if (rank == 0) time_ports();
    if (rank == 0) MPI_Open_port(MPI_INFO_NULL, s.port);
    measure(&s, seconds, "connect");
    if (rank == 0) MPI_Close_port(s.port);
    MPI_Comm_free(&s.group);
}

static void with_children(const char *self, double seconds)
{
    for (int n = 1; n <= 4; n *= 2) {
        struct sides s = {.group = MPI_COMM_SELF, .accepts = true, .inter = true, .members = n};
        MPI_Comm_spawn(self, MPI_ARGV_NULL, n, MPI_INFO_NULL, 0, MPI_COMM_SELF, &s.all, MPI_ERRCODES_IGNORE);
        MPI_Open_port(MPI_INFO_NULL, s.port);
        measure(&s, seconds, "child");
        MPI_Close_port(s.port);
        MPI_Comm_disconnect(&s.all);
    }
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    int rank, size;
    double seconds = 5;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    if (argc == 3 && !strcmp(argv[1], "-s")) seconds = atof(argv[2]);
    if (parent != MPI_COMM_NULL) {
        struct sides s = {.all = parent, .group = MPI_COMM_WORLD, .inter = true, .members = size};
        measure(&s, seconds, "child");
        MPI_Comm_disconnect(&parent);
    } else if (size == 1) {
        with_children(self_path(argv[0]), seconds);
    } else {
        halves(rank, size, seconds);
    }
    MPI_Finalize();
    return 0;
}
