/*
 * tree_fuzz.c - what the processes of a job's tree (src/mpiexec/tree.h) are told by each other and by strangers: the
 * readers of numbers and texts, the job's description, the text that a daemon is started with, reports of ranks, and
 * the link, its handshake and its frames, over a socket pair.
 */
#include "fuzz.h"

#include "mpiexec/boot.h"
#include "mpiexec/describe.h"
#include "mpiexec/report.h"
#include "mpiexec/tree.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Bytes that end with their memory, so that a sanitizer sees what is read beyond. */
static uint8_t *exactly(const void *bytes, size_t n)
{
    uint8_t *own = malloc(n + 1);
    if (!own) abort();
    if (n) memcpy(own + 1, bytes, n);
    return own; /* they begin at own + 1 */
}

/* ---- numbers and texts ---- */

static void readers(void)
{
    uint8_t bytes[200];
    size_t n = fuzz_below(sizeof bytes);
    fuzz_bytes(bytes, n);
    for (size_t i = 0; i + 4 <= n; i += 4)
        if (fuzz_below(2)) memset(bytes + i, 0, 3); /* short lengths */
    uint8_t *own = exactly(bytes, n);
    struct wire_in w = wire_of(own + 1, n);
    while (wire_left(&w) && !w.bad) {
        struct strv list = {0};
        uint64_t raw[4];
        switch (fuzz_below(6)) {
        case 0:
            wire_get8(&w);
            break;
        case 1:
            wire_get64(&w);
            break;
        case 2:
            free(wire_get_text(&w));
            break;
        case 3:
            wire_get_raw(&w, raw, fuzz_below(sizeof raw + 1));
            break;
        case 4:
            FUZZ_RULE(wire_get_count(&w, 8) <= n / 8, "no more elements than there are bytes for");
            break;
        default:
            wire_get_list(&w, &list);
            for (int i = 0; i < list.n; i++) free(list.v[i]);
            strv_free(&list);
        }
        FUZZ_RULE(w.at <= w.end && w.end == own + 1 + n, "a reader stays in its bytes");
    }
    if (w.bad) FUZZ_RULE(wire_get32(&w) == 0 && w.bad, "what is bad stays bad");
    free(own);
}

/* ---- the description of a job ---- */

static void fill_job(struct job *j, struct spec *s, struct app_spec *specs, struct app *apps, struct node *nodes,
                     struct rank *ranks)
{
    static char *argv[] = {"program", "an argument", "", NULL}, *env[] = {"A=1", "PATH=/bin", NULL};
    *s = (struct spec){
        .apps = specs, .napps = 1 + (int)fuzz_below(3), .launcher = {.command = "mpiexec", .width = 32, .seconds = 60}};
    *j = (struct job){.spec = s,
                      .name = "mpiexec-1-2@host",
                      .nnodes = 1 + (int)fuzz_below(4),
                      .apps = apps,
                      .nodes = nodes,
                      .ranks = ranks};
    for (int i = 0; i < s->napps; i++) {
        specs[i] = (struct app_spec){.argv = {argv, 3}, .n = 1 + (int)fuzz_below(4), .wdir = "/tmp"};
        apps[i] = (struct app){.spec = &specs[i], .env = {env, 2}};
        j->size += specs[i].n;
    }
    for (int i = 0; i < j->nnodes; i++) nodes[i] = (struct node){.name = "node", .slots = 2};
    for (int r = 0; r < j->size; r++) ranks[r].node = (int)fuzz_below((uint64_t)j->nnodes);
}

static void check_parsed(const struct job *j, const struct spec *s, int node)
{
    FUZZ_RULE(j->size > 0 && j->size == s->size && s->napps > 0 && j->nnodes > node, "sizes");
    for (int r = 0; r < j->size; r++)
        FUZZ_RULE(j->ranks[r].node >= 0 && j->ranks[r].node < j->nnodes && j->ranks[r].appnum < s->napps,
                  "ranks are on nodes");
    for (int i = 0; i < s->napps; i++) FUZZ_RULE(s->apps[i].argv.n > 0 && s->apps[i].argv.v[0], "apps have programs");
    for (int i = 0; i < j->nnodes; i++) FUZZ_RULE(j->nodes[i].name && *j->nodes[i].name, "nodes have names");
}

static void describe_once(void)
{
    struct app_spec specs[3];
    struct app apps[3];
    struct node nodes[4];
    struct rank ranks[12] = {0};
    struct spec spec, got_spec = {0};
    struct job job, got = {0};
    struct wire_out w = {0};
    char *cwd = NULL;
    fill_job(&job, &spec, specs, apps, nodes, ranks);
    describe_job(&w, &job, "/home");
    bool changed = fuzz_below(8), cut = changed && !fuzz_below(4);
    size_t n = cut ? fuzz_below(w.n) : w.n;
    if (changed && !cut) fuzz_mutate(w.bytes, n);
    uint8_t *own = exactly(w.bytes, n);
    const char *why = describe_parse(&got, &got_spec, &cwd, 0, own + 1, n);
    if (!changed) FUZZ_RULE(!why, "what was described is understood");
    if (cut) FUZZ_RULE(why, "what is cut off is noticed");
    if (!why) check_parsed(&got, &got_spec, 0);
}

/* A daemon keeps the job until it ends; so each batch of cases is a process of its own. */
static void describe(void)
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid < 0) abort();
    if (!pid) {
        for (int i = 0; i < 100; i++) describe_once();
        fflush(stdout);
        _exit(fuzz_ok() ? 0 : 1);
    }
    if (waitpid(pid, &status, 0) != pid) abort();
    FUZZ_RULE(status == 0, "the description of a job is read, or refused");
}

/* ---- the text that a daemon is started with ---- */

static void boot(void)
{
    struct boot b = {.node = 3, .vertex = 2, .parent = 1, .seconds = 60}, got;
    fuzz_bytes(b.key, sizeof b.key);
    b.naddresses = 1 + (int)fuzz_below(BOOT_ADDRESSES);
    for (int i = 0; i < b.naddresses; i++) {
        struct sockaddr_in *v4 = (void *)&b.addresses[i];
        struct sockaddr_in6 *v6 = (void *)&b.addresses[i];
        if (i % 2)
            *v4 = (struct sockaddr_in){AF_INET, 4711, {(uint32_t)fuzz_random()}, {0}};
        else
            *v6 = (struct sockaddr_in6){
                .sin6_family = AF_INET6, .sin6_port = 4711, .sin6_addr = {{{0x20, 1, (uint8_t)i}}}};
    }
    char *text = boot_text(&b);
    size_t n = strlen(text);
    bool changed = fuzz_below(4);
    if (changed) fuzz_mutate((uint8_t *)text, n);
    if (changed && !fuzz_below(4)) n = fuzz_below(n);
    uint8_t *own = exactly(text, n);
    const char *why = boot_parse(&got, (char *)own + 1, n);
    if (!changed)
        FUZZ_RULE(!why && got.naddresses == b.naddresses && !memcmp(got.key, b.key, sizeof b.key),
                  "what was written is read");
    if (!why)
        FUZZ_RULE(got.naddresses >= 1 && got.naddresses <= BOOT_ADDRESSES && got.seconds > 0 && got.vertex > got.parent,
                  "what is read is checked");
    free(own);
    free(text);
}

/* The text without one of its lines. */
static void boot_without(void)
{
    static const char *const lines[] = {"tern-daemon 1\n",
                                        "key 4142434445464748494a4b4c4d4e4f505152535455565758595a616263646566\n",
                                        "place 3 2 1\n",
                                        "seconds 60\n",
                                        "address 10.0.0.1 40123\n",
                                        "end\n"};
    char text[400] = "";
    struct boot got;
    unsigned without = (unsigned)fuzz_below(7); /* 6: none */
    for (unsigned i = 0; i < 6; i++)
        if (i != without) strcat(text, lines[i]);
    FUZZ_RULE(!boot_parse(&got, text, strlen(text)) == (without == 6), "each line is needed");
}

/* ---- reports of ranks ---- */

static uint8_t sent[600];
static size_t sent_n;

void tree_send(int to, enum tree_type type, const void *bytes, size_t n)
{
    (void)to;
    (void)type;
    if (n > sizeof sent) abort();
    memcpy(sent, bytes, n);
    sent_n = n;
}

static void reports(void)
{
    struct live_exit e = {.rank = 7, .pid = 4711, .status = 256, .life = JOB_LIFE_FINALISED, .aborted = 3}, e2;
    struct server_abort a = {.rank = 3, .code = 9, .words = "out of patience"}, a2;
    bool exits = fuzz_below(2), changed = fuzz_below(4);
    if (exits)
        report_exit(&e);
    else
        report_abort(&a);
    if (changed) fuzz_mutate(sent, sent_n);
    if (changed && fuzz_below(2)) sent_n = fuzz_below(sent_n);
    uint8_t *own = exactly(sent, sent_n);
    bool good = exits ? report_get_exit(&e2, own + 1, sent_n) : report_get_abort(&a2, own + 1, sent_n);
    if (good && exits) FUZZ_RULE(e2.life <= JOB_LIFE_FINALISED, "lives are checked");
    if (good && !exits) FUZZ_RULE(memchr(a2.words, 0, sizeof a2.words), "words end");
    if (!changed)
        FUZZ_RULE(good && (exits ? e2.pid == 4711 && e2.aborted == 3 : !strcmp(a2.words, a.words)),
                  "what was sent is understood");
    free(own);
}

/* ---- the link ---- */

static const uint8_t key[CRYPTO_KEY] = "a key of thirty-two bytes, no m";
static struct event_base *base;
static struct {
    unsigned opened, messages, lost, wrong;
    size_t bytes;
} link_saw;

static bool on_wanted(struct tree_link *l, uint64_t from)
{
    (void)l;
    return from == 5;
}
static void on_opened(struct tree_link *l)
{
    (void)l;
    link_saw.opened++;
}

static bool on_message(struct tree_link *l, const struct link_head *h, const void *bytes)
{
    link_saw.messages++;
    link_saw.wrong +=
        !link_is_open(l) || h->type == TREE_NONE || h->type >= TREE_TYPES || h->length > TREE_MESSAGE_MAX || h->zero;
    for (size_t i = 0; i < h->length; i++) link_saw.bytes += ((const uint8_t *)bytes)[i] != 0;
    return h->type != TREE_BYE;
}

static void on_lost(struct tree_link *l, const char *why)
{
    (void)l;
    link_saw.lost++;
    link_saw.wrong += !why || !*why;
}

static const struct link_calls calls = {on_wanted, on_opened, on_message, on_lost};

static void turn(void) { event_base_loop(base, EVLOOP_NONBLOCK); }

/* Writes n bytes in pieces; the link may have hung up. */
static void write_pieces(int fd, const uint8_t *bytes, size_t n)
{
    for (size_t at = 0; at < n;) {
        size_t some = 1 + fuzz_below(n - at);
        if (send(fd, bytes + at, some, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)some) return;
        at += some;
        turn();
    }
}

/* The connector's part; `step` is the message that is changed, 2: none. */
static bool come_in(int fd, unsigned step)
{
    struct handshake h;
    handshake_connect(&h, &tern_crypto_sodium, key, HANDSHAKE_TREE, fuzz_below(8) ? 5 : 6, 9);
    for (unsigned i = 0; i < 2; i++) {
        uint8_t in[HANDSHAKE_OUT];
        if (i == step) fuzz_mutate(h.out, h.out_len);
        write_pieces(fd, h.out, h.out_len);
        h.out_len = 0;
        turn();
        ssize_t n = recv(fd, in, handshake_wants(&h), MSG_DONTWAIT);
        if (n <= 0 || handshake_input(&h, in, (size_t)n) == HANDSHAKE_BAD) return false;
    }
    return h.verdict == VERDICT_WELCOME;
}

/* Frames that are right but for some; whether all were. */
static bool send_frames(int fd)
{
    bool right = true;
    for (uint64_t k = fuzz_below(6); k; k--) {
        uint8_t frame[16 + 300];
        uint32_t length = (uint32_t)fuzz_below(300),
                 head[4] = {htobe32(length), htobe32((1 + (uint32_t)fuzz_below(TREE_TYPES - 1)) << 16), 0, 0};
        if ((be32toh(head[1]) >> 16) == TREE_BYE) right = false;
        memcpy(frame, head, 16);
        fuzz_bytes(frame + 16, length);
        if (!fuzz_below(3)) {
            fuzz_mutate(frame, 8);
            right = false;
        }
        write_pieces(fd, frame, 16 + length);
    }
    return right;
}

static void links(void)
{
    int pair[2];
    uint8_t noise[300];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair)) abort();
    memset(&link_saw, 0, sizeof link_saw);
    struct tree_link *l = link_accept(base, pair[0], key, 9, &calls, NULL);
    unsigned step = (unsigned)fuzz_below(4);
    bool in = false, right = true;
    if (step == 3) {
        fuzz_bytes(noise, sizeof noise);
        write_pieces(pair[1], noise, sizeof noise);
    } else if ((in = come_in(pair[1], step))) {
        right = send_frames(pair[1]);
    }
    turn();
    FUZZ_RULE(link_saw.opened == in, "only who has the key comes in");
    FUZZ_RULE(in || !link_saw.messages, "strangers say nothing");
    if (in && right) FUZZ_RULE(!link_saw.lost, "right frames are taken");
    close(pair[1]);
    turn();
    turn();
    FUZZ_RULE(link_saw.lost == 1 && !link_saw.wrong, "the end is told once, with a reason");
    link_close(l);
}

int main(void)
{
    static const struct fuzz_part parts[] = {
        {"readers of numbers and texts stay in their bytes", readers, 1},
        {"descriptions of jobs are read, or refused", describe, 100},
        {"the text that starts a daemon is read, or refused", boot, 1},
        {"the text that starts a daemon is refused without any of its lines", boot_without, 10},
        {"reports of ranks are read, or refused", reports, 1},
        {"links take nothing from strangers, and no frame that cannot be", links, 10},
    };
    if (!(base = event_base_new())) return 99;
    int rc = fuzz_main(parts, 6, 20000);
    event_base_free(base);
    return rc;
}
