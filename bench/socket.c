/*
 * socket - what TCP itself gives on a path: the figures of mpi/pt2pt.c that have to do with it, without any MPI.
 *
 *     socket [-a ADDRESS] [COMMAND...]     ADDRESS (127.0.0.1) is of this side; the other side is started by COMMAND
 *                                          ("ssh host"), to which the program's own path and arguments are added
 *
 *   lat_SIZE_us       half round trip; both sides ask for data again and again, as an MPI does
 *   block_lat_8_us    the same, sleeping in the read
 *   bw_SIZE_MBs       one direction, windows of 64 messages and an answer
 *   busy_send_SIZE_us until the system has taken a message whose receiver reads it after 20 ms (as the program "rndv_overlap" only)
 * (MB = 10^6 bytes; every figure is the median of several blocks of repetitions)
 *
 * BENCH_FIGURES in the environment, a list as "lat_8 bw_64K", leaves out all others.
 *
 * The sides take the first and the second processor that they may use.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { WINDOW = 64, BLOCKS = 9, LARGEST = 4 << 20 };
static int sock;
static bool first; /* this side is the one that measures */
static bool is_busy; /* it is called rndv_overlap */
static char *buf;

static void fail(const char *what)
{
    fprintf(stderr, "socket: %s: %s\n", what, errno ? strerror(errno) : "the other side has gone");
    exit(1);
}

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v)
{
    qsort(v, BLOCKS, sizeof *v, compare);
    return v[BLOCKS / 2];
}

/* The k-th of the processors that this process may use; the last one if there are not so many. */
static void pin(int k)
{
    cpu_set_t may, one;
    int found = -1;
    if (sched_getaffinity(0, sizeof may, &may)) return;
    for (int c = 0; c < CPU_SETSIZE && k >= 0; c++)
        if (CPU_ISSET(c, &may)) found = c, k--;
    CPU_ZERO(&one);
    CPU_SET(found, &one);
    sched_setaffinity(0, sizeof one, &one);
}

/* ---- The two ends ---- */

/* All n bytes; `ask`: without sleeping in the kernel. */
static void take(size_t n, bool ask)
{
    for (size_t have = 0; have < n;) {
        ssize_t k = recv(sock, buf + have, n - have, ask ? MSG_DONTWAIT : 0);
        if (k > 0)
            have += (size_t)k;
        else if (k == 0 || (errno != EAGAIN && errno != EINTR)) {
            if (k == 0) errno = 0;
            fail("receiving");
        }
    }
}

static void give(size_t n, bool ask)
{
    for (size_t sent = 0; sent < n;) {
        ssize_t k = send(sock, buf + sent, n - sent, MSG_NOSIGNAL | (ask ? MSG_DONTWAIT : 0));
        if (k >= 0)
            sent += (size_t)k;
        else if (errno != EAGAIN && errno != EINTR)
            fail("sending");
    }
}

static double latency(size_t n, bool ask, int reps)
{
    double v[BLOCKS];
    for (int b = -1; b < BLOCKS; b++) {
        double t = now();
        for (int i = 0; i < reps; i++) {
            if (first) give(n, ask);
            take(n, ask);
            if (!first) give(n, ask);
        }
        if (b >= 0) v[b] = (now() - t) / reps / 2;
    }
    return median(v);
}

static double bandwidth(size_t n, int rounds)
{
    double v[BLOCKS];
    for (int b = -1; b < BLOCKS; b++) {
        double t = now();
        for (int i = 0; i < rounds; i++) {
            for (int w = 0; w < WINDOW; w++)
                if (first)
                    give(n, false);
                else
                    take(n, false);
            if (first)
                take(1, true);
            else
                give(1, true);
        }
        if (b >= 0) v[b] = WINDOW * rounds * (double)n / (now() - t) / 1e6;
    }
    return median(v);
}

/* Between two messages the other side says that it will be busy; it then reads, and this side is idle for that long. */
static double busy_send(size_t n)
{
    const struct timespec busy = {.tv_nsec = 20000000};
    double v[BLOCKS];
    for (int b = 0; b < BLOCKS; b++) {
        double t = 0;
        if (first) {
            take(1, true);
            t = now();
            give(n, false);
        } else {
            give(1, true);
            nanosleep(&busy, NULL);
            take(n, false);
        }
        v[b] = now() - t;
    }
    return median(v);
}

/* Is the figure asked for? The first side knows, and tells the other one. */
static bool chosen(const char *what, const char *size)
{
    char word[40], all[1000], yes;
    const char *list = getenv("BENCH_FIGURES");
    snprintf(word, sizeof word, " %s_%s ", what, size);
    snprintf(all, sizeof all, " %s ", list ? list : "");
    yes = !list || strstr(all, word);
    if (first ? write(sock, &yes, 1) != 1 : recv(sock, &yes, 1, MSG_WAITALL) != 1) fail("the other side");
    return yes;
}

static const struct {
    const char *name;
    size_t n;
    int reps;
} sizes[] = {
    {"8", 8, 1000},      {"64", 64, 1000},     {"512", 512, 1000},  {"4K", 4096, 1000}, {"16K", 16384, 200},
    {"64K", 65536, 200}, {"256K", 262144, 20}, {"1M", 1 << 20, 20}, {"4M", LARGEST, 6},
};

static void measure_busy(void)
{
    for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        if (sizes[k].n < 65536 || !chosen("busy_send", sizes[k].name)) continue;
        double s = busy_send(sizes[k].n);
        if (first) printf("busy_send_%s_us %.3f\n", sizes[k].name, 1e6 * s);
    }
}

static void measure(void)
{
    int on = 1;
    setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (is_busy) {
        measure_busy();
        return;
    }
    for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        bool lat = chosen("lat", sizes[k].name), bw = chosen("bw", sizes[k].name);
        double l = lat ? latency(sizes[k].n, true, sizes[k].reps) : 0;
        double b = bw ? bandwidth(sizes[k].n, sizes[k].reps / 8 + 1) : 0;
        if (first && lat) printf("lat_%s_us %.3f\n", sizes[k].name, 1e6 * l);
        if (first && bw) printf("bw_%s_MBs %.1f\n", sizes[k].name, b);
        fflush(stdout);
    }
    if (!chosen("block_lat", "8")) return;
    double l = latency(8, false, 1000);
    if (first) printf("block_lat_8_us %.3f\n", 1e6 * l);
}

/* ---- Finding each other ---- */

static struct addrinfo *resolve(const char *address, const char *port)
{
    struct addrinfo want = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found;
    int rc = getaddrinfo(address, port, &want, &found);
    if (rc == 0) return found;
    fprintf(stderr, "socket: %s: %s\n", address, gai_strerror(rc));
    exit(1);
}

static int connect_to(const char *address, const char *port)
{
    struct addrinfo *a = resolve(address, port);
    sock = socket(a->ai_family, SOCK_STREAM, 0);
    if (sock < 0 || connect(sock, a->ai_addr, a->ai_addrlen)) fail(address);
    pin(1);
    measure();
    return 0;
}

static int listen_at(const char *address, char *port, size_t size)
{
    struct addrinfo *a = resolve(address, "0");
    struct sockaddr_storage at;
    socklen_t n = sizeof at;
    int s = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s < 0 || bind(s, a->ai_addr, a->ai_addrlen) || listen(s, 1) || getsockname(s, (struct sockaddr *)&at, &n))
        fail(address);
    if (getnameinfo((struct sockaddr *)&at, n, NULL, 0, port, (socklen_t)size, NI_NUMERICSERV)) fail(address);
    return s;
}

/* Starts COMMAND... SELF -c ADDRESS PORT. */
static void start_other(char **command, int words, const char *address, char *port)
{
    char **argv = calloc((size_t)words + 5, sizeof *argv), self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (!argv || n < 0) fail("own path");
    self[n] = 0;
    memcpy(argv, command, (size_t)words * sizeof *argv);
    argv[words] = self, argv[words + 1] = "-c", argv[words + 2] = (char *)(uintptr_t)address, argv[words + 3] = port;
    pid_t pid = fork();
    if (pid < 0) fail("fork");
    if (pid) return;
    execvp(argv[0], argv);
    fail(argv[0]);
}

int main(int argc, char **argv)
{
    const char *address = "127.0.0.1";
    char port[32];
    int i = 1;
    is_busy = strstr(argv[0], "rndv_overlap") != NULL;
    buf = calloc(1, LARGEST);
    if (!buf) fail("memory");
    if (argc == 4 && !strcmp(argv[1], "-c")) return connect_to(argv[2], argv[3]);
    if (argc > 2 && !strcmp(argv[1], "-a")) address = argv[2], i = 3;
    int s = listen_at(address, port, sizeof port);
    start_other(argv + i, argc - i, address, port);
    alarm(30); /* for the other side to come */
    sock = accept(s, NULL, NULL);
    if (sock < 0) fail("accept");
    alarm(0);
    close(s);
    first = true;
    pin(0);
    measure();
    return 0;
}
