/*
 * stranger.c - connects to whatever listens on this host, as port scanners and mistaken programs do:
 *
 *     stranger SECONDS SEED ADDRESS...
 *
 * Again and again, at each of the addresses: it says nothing, or a few random bytes, one byte now and then, a lot of
 * them, or takes its leave at once, by FIN or by RST; up to 200 connections are held at a time, and the oldest is given
 * up for a new one. "strangers: N" is printed at the end: how many connections there were. It refuses to run anywhere
 * but on the test hosts of test/system/hosts.sh.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HELD = 200, PORTS = 1000 };
static int held[HELD];
static long connections;
static uint64_t state;

static uint64_t next(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

/* The ports that something listens at (state 0A). */
static int listening(const char *file, uint16_t *ports, int n)
{
    char line[512];
    unsigned port, is;
    FILE *f = fopen(file, "r");
    while (f && n < PORTS && fgets(line, sizeof line, f))
        if (sscanf(line, "%*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &port, &is) == 2 && is == 10)
            ports[n++] = (uint16_t)port;
    if (f) fclose(f);
    return n;
}

static int connect_to(const char *address, uint16_t port)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    bool is_v4 = inet_pton(AF_INET, address, &v4.sin_addr) == 1;
    if (!is_v4 && inet_pton(AF_INET6, address, &v6.sin6_addr) != 1) return -1;
    int s = socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval limit = {.tv_usec = 200000}; /* of connecting, too */
    setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(s, is_v4 ? (void *)&v4 : (void *)&v6, is_v4 ? sizeof v4 : sizeof v6)) {
        close(s);
        return -1;
    }
    connections++;
    fcntl(s, F_SETFL, O_NONBLOCK);
    return s;
}

static void babble(int s, size_t n)
{
    unsigned char bytes[4096];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)next();
    for (; n > 0; n -= n < sizeof bytes ? n : sizeof bytes)
        if (send(s, bytes, n < sizeof bytes ? n : sizeof bytes, MSG_NOSIGNAL) < 0) return;
}

static void behave(int s)
{
    struct linger at_once = {1, 0};
    int *place = &held[next() % HELD];
    switch (next() % 6) {
    case 0:
        break; /* silent */
    case 1:
        babble(s, 1 + next() % 63);
        break;
    case 2:
        babble(s, 1 + next() % 1000000);
        break;
    case 3:
        shutdown(s, SHUT_WR);
        break;
    case 4:
        setsockopt(s, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once); /* fallthrough */
    default:
        close(s);
        return;
    }
    if (*place >= 0) close(*place);
    *place = s;
}

/* Some who have said a little say one byte more. */
static void drip(void)
{
    for (int i = 0; i < HELD; i++)
        if (held[i] >= 0 && next() % 16 == 0) babble(held[i], 1);
}

/* Only they have this interface. */
static bool on_test_host(void) { return if_nametoindex("docker0-end") != 0; }

int main(int argc, char **argv)
{
    static uint16_t ports[PORTS];
    struct timespec pause = {0, 5000000};
    if (argc < 4 || !on_test_host()) {
        fprintf(stderr, "stranger: SECONDS SEED ADDRESS..., on a test host\n");
        return 2;
    }
    time_t end = time(NULL) + atol(argv[1]);
    state = strtoull(argv[2], NULL, 10);
    memset(held, -1, sizeof held);
    while (time(NULL) < end) {
        int n = listening("/proc/self/net/tcp6", ports, listening("/proc/self/net/tcp", ports, 0));
        for (int i = 0; i < n; i++) {
            int s = connect_to(argv[3 + next() % (uint64_t)(argc - 3)], ports[i]);
            if (s >= 0) behave(s);
        }
        drip();
        nanosleep(&pause, NULL);
    }
    printf("strangers: %ld\n", connections);
    return 0;
}
