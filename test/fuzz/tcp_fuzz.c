/*
 * tcp_fuzz.c - a process with the TCP transport, to which others connect that are not what they should be: strangers
 * who send anything, handshakes that are changed, and processes of the job that send frames that cannot be.
 *
 * The process is rank 0 of a job whose other ranks this file plays, over loopback, from within the same process. A peer
 * that is lost stays lost, so each rank plays one case; and each batch of them is a job of its own.
 */
#include "fuzz.h"
#include "fuzz_job.h"

#include "base/err.h"
#include "base/var.h"
#include "proc/proc.h"
#include "transport/peer.h"
#include "transport/wires.h"
#include "transport/tcp/tcp.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RANKS 256
#define FRAMES 8

enum { AM_PLAIN = TP_AM_TESTS, AM_SUNK };
#define PAYLOAD 70000 /* bytes of the longest frame that is meant well: longer than a short message may be */

static char *sunk; /* where long messages go: as much address space as a frame can name */

/* What rank 0 has seen of the rank whose turn it is. */
static struct {
    uint32_t rank;
    uint64_t came, right; /* messages; those from the beginning on that were as they had been sent */
    unsigned lost, strange;
    size_t bytes;
} saw;

static size_t size_of(uint64_t number, unsigned id)
{
    return id == AM_SUNK ? number * 9973 % PAYLOAD : number * 331 % 3000;
}

static void take(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    const uint8_t *bytes = data;
    bool right = h0 == saw.came && n == size_of(h0, (unsigned)h1);
    for (size_t i = 0; i<n; i += n> 100000 ? 4096 : 1) {
        saw.bytes += bytes[i];
        right &= bytes[i] == (uint8_t)h0;
    }
    saw.strange += from->index != saw.rank;
    if (right && saw.right == saw.came) saw.right++;
    saw.came++;
}

static void *sink(struct peer *from, uint64_t h0, uint64_t h1, size_t n)
{
    (void)from;
    (void)h0;
    (void)h1;
    return n <= TCP_LONG_MAX ? sunk : NULL;
}

static void lost(struct peer *p, int code)
{
    saw.lost++;
    saw.strange += p->index != saw.rank || !code || !*err_words();
}

/* ---- one who connects ---- */

static int call(void)
{
    struct sockaddr_storage s;
    socklen_t n = sizeof s;
    if (getsockname(tcp_dom.listener[0].fd, (struct sockaddr *)&s, &n)) abort();
    int fd = socket(s.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), small = 4096;
    if (fd < 0 || connect(fd, (struct sockaddr *)&s, n) || fcntl(fd, F_SETFL, O_NONBLOCK)) abort();
    if (!fuzz_below(4)) setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    return fd;
}

/* Sends n bytes in pieces; false when rank 0 has hung up. */
static bool say(int fd, const uint8_t *bytes, size_t n)
{
    for (size_t at = 0; at < n;) {
        size_t most = n - at, some = fuzz_below(2) ? most : 1 + fuzz_below(most);
        ssize_t sent = send(fd, bytes + at, some, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0)
            at += (size_t)sent;
        else if (errno != EAGAIN)
            return false;
        wires_progress(1 + (int)fuzz_below(64));
    }
    return true;
}

/* Nothing has come: let the system work, and then others. */
static void wait_a_little(int turn)
{
    if (turn > 200) usleep(100);
}

/* The next n bytes of rank 0, within two seconds. */
static bool hear(int fd, uint8_t *bytes, size_t n)
{
    size_t have = 0;
    for (int i = 0; i < 20000 && have < n; i++) {
        wires_progress(64);
        ssize_t got = recv(fd, bytes + have, n - have, MSG_DONTWAIT);
        if (got > 0)
            have += (size_t)got;
        else if (!got || errno != EAGAIN)
            return false;
        else
            wait_a_little(i);
    }
    return have == n;
}

static bool key_of(uint64_t job, uint8_t key[CRYPTO_KEY])
{
    (void)job;
    memcpy(key, fuzz_key, CRYPTO_KEY);
    return true;
}

static bool shake_hands(int fd, uint32_t rank, unsigned changed)
{
    struct handshake h;
    uint8_t bytes[HANDSHAKE_OUT];
    handshake_connect(&h, &tern_crypto_sodium, fuzz_key, HANDSHAKE_RANK, rank, 0);
    handshake_between(&h, jobs_own_name().job, jobs_own_name().job, key_of);
    for (unsigned step = 0; step < 2; step++) {
        if (step == changed) fuzz_mutate(h.out, h.out_len);
        if (!say(fd, h.out, h.out_len)) return false;
        h.out_len = 0;
        size_t n = handshake_wants(&h);
        if (!hear(fd, bytes, n) || handshake_input(&h, bytes, n) == HANDSHAKE_BAD) return false;
    }
    return h.verdict == VERDICT_WELCOME;
}

static size_t make_frame(uint8_t *to, uint16_t number, unsigned id)
{
    size_t n = size_of(number, id);
    struct tcp_frame f = {htole32((uint32_t)n), (uint8_t)id, 0, htole16(number), htole64(number), htole64(id)};
    memcpy(to, &f, sizeof f);
    memset(to + sizeof f, number, round_up(n, 8));
    return sizeof f + round_up(n, 8);
}

/* Until there is nothing more to come of what was sent. */
static void settle(uint64_t came, unsigned lost_peers)
{
    for (int i = 0; i < 20000 && (saw.came < came || saw.lost < lost_peers); i++)
        if (!wires_progress(64)) wait_a_little(i);
}

static size_t leave_frame(uint8_t *to, uint16_t number)
{
    struct tcp_frame f = {0, AM_PAD, 0, htole16(number), htole64(TCP_NOTE_LEAVE), 0};
    memcpy(to, &f, sizeof f);
    return sizeof f;
}

/* ---- cases ---- */

/* A process of the job; frame number `bad` of it is changed in what the transport looks at. */
static void member(uint32_t rank)
{
    static uint8_t bytes[sizeof(struct tcp_frame) + PAYLOAD + 8];
    unsigned frames = (unsigned)fuzz_below(FRAMES), bad = fuzz_below(2) ? (unsigned)fuzz_below(FRAMES) : FRAMES;
    int fd = call();
    bool up = shake_hands(fd, rank, 2), good = bad >= frames, leave = good && fuzz_below(2);
    FUZZ_RULE(up, "a genuine handshake is welcome");
    for (unsigned i = 0; i < frames && up; i++) {
        size_t n = make_frame(bytes, (uint16_t)i, fuzz_below(2) ? AM_SUNK : AM_PLAIN);
        if (i == bad) fuzz_mutate(bytes, 8);
        up = say(fd, bytes, n);
    }
    FUZZ_RULE(up || !good, "right frames are taken");
    if (up && leave) say(fd, bytes, leave_frame(bytes, (uint16_t)frames));
    shutdown(fd, SHUT_WR);
    settle(good ? frames : bad, !leave);
    FUZZ_RULE(saw.right >= (good ? frames : bad), "what is right is delivered, in order");
    FUZZ_RULE(!good || saw.came == frames, "and nothing else");
    FUZZ_RULE(saw.lost == !leave, "the loss of a peer is told once, unless it has taken its leave");
    close(fd);
}

static void stranger(uint32_t rank)
{
    uint8_t noise[500];
    size_t n = fuzz_below(sizeof noise);
    int fd = call();
    if (fuzz_below(2)) {
        FUZZ_RULE(!shake_hands(fd, rank, (unsigned)fuzz_below(2)), "a changed handshake is not welcome");
    } else {
        fuzz_bytes(noise, n);
        say(fd, noise, n);
    }
    for (int i = 0; i < 4; i++) wires_progress(64);
    if (fuzz_below(2)) say(fd, noise, n);
    close(fd);
    for (int i = 0; i < 4; i++) wires_progress(64);
    FUZZ_RULE(!saw.came && !saw.lost, "strangers have no effect");
}

/* ---- the job ---- */

static bool open_rank0(void)
{
    fuzz_job(RANKS);
    static const struct tp_am messages[] = {{AM_PLAIN, "plain", take, NULL, false, 0}, {AM_SUNK, "sunk", take, sink, false, 0}};
    if (tp_am_register(messages, ARRAY_LEN(messages))) return false;
    tp_lost = lost;
    sunk = mmap(NULL, TCP_LONG_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (sunk != MAP_FAILED && !var_open() && !proc_open() && !peers_open()) return true;
    printf("# %s\n", err_words());
    return false;
}

static int descriptors(void)
{
    int n = 0;
    for (int fd = 0; fd < 1024; fd++) n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static bool play(void)
{
    if (!open_rank0()) return false;
    int before = descriptors();
    for (uint32_t rank = 1; rank < RANKS && fuzz_ok(); rank++) {
        memset(&saw, 0, sizeof saw);
        saw.rank = rank;
        if (fuzz_below(4))
            member(rank);
        else
            stranger(rank);
        FUZZ_RULE(!saw.strange, "messages and losses are those of the one who connected");
    }
    for (int i = 0; i < 20000 && descriptors() > before; i++)
        if (!wires_progress(64)) wait_a_little(i);
    FUZZ_RULE(descriptors() <= before, "nothing is left open");
    peers_close();
    proc_close();
    var_close();
    munmap(sunk, TCP_LONG_MAX);
    return fuzz_ok();
}

static void job(void) { fuzz_fork(play, "rank 0 lives on"); }

int main(void)
{
    static const struct fuzz_part parts[] = {
        {"TCP takes nothing from strangers, and no frame that cannot be", job, RANKS}};
    return fuzz_main(parts, 1, 2 * RANKS);
}
