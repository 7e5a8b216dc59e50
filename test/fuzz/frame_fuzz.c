/*
 * frame_fuzz.c - a process of the job that has gone mad: it has shaken hands, and from then on sends frames that are
 * right, nearly right, cut off or nothing at all, with the point-to-point protocol behind the transport.
 *
 * This process is rank 0. Rank 1 is the mad one: a connection of it is one end of a pair of sockets, adopted as if the
 * handshake were over, and what it sends is about operations that rank 0 has with it. When rank 0 has given it up, it
 * comes again as if new. Rank 2 is honest: nothing of it may change through what rank 1 sends.
 */
#include "fuzz.h"
#include "fuzz_job.h"

#include "base/err.h"
#include "base/var.h"
#include "obj/group.h"
#include "proc/proc.h"
#include "pt2pt/api.h"
#include "pt2pt/doubt.h"
#include "pt2pt/early.h"
#include "pt2pt/lanes.h"
#include "pt2pt/lost.h"
#include "pt2pt/protocol.h"
#include "transport/tcp/tcp.h"
#include "transport/wires.h"

#include <endian.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define FRAMES 1024  /* of a job */
#define LIFE 24      /* frames of a connection, at most */
#define BYTES 100000 /* of a long message: longer than what goes eagerly */
#define GUARD 64
#define GUARD_BYTE 0xA5

enum { MAD = 1, HONEST = 2, RANKS = 3 };
enum { AM_ABOVE = TP_AM_TESTS }; /* a message of a layer above */

struct task {
    struct request *r;
    uint8_t *mem; /* GUARD bytes, `room` bytes, GUARD bytes */
    size_t room;
};

static const struct plan {
    bool recv, gaps;
    int count, source, tag; /* of bytes, or of pairs of them with a gap behind */
    enum pt_mode mode;
} plan[] = {
    {true, false, BYTES, MAD, 1, PT_STANDARD},    {true, false, 100, MPI_ANY_SOURCE, MPI_ANY_TAG, PT_STANDARD},
    {true, true, BYTES / 2, MAD, 2, PT_STANDARD}, {false, false, BYTES, MAD, 3, PT_STANDARD},
    {false, false, 50, MAD, 4, PT_SYNC},          {false, false, BYTES, MAD, 5, PT_SYNC},
    {true, false, 70000, MAD, 1, PT_STANDARD},    {false, true, BYTES / 2, MAD, 6, PT_STANDARD},
};
enum { OPS = ARRAY_LEN(plan) };

static struct task task[OPS];
static struct task honest[3]; /* a receive that was promised data, a synchronous send, a long send */
static struct comm *world;
static struct type *two, *pairs; /* bytes; and with a gap behind */
static struct peer *mad;
static struct tcp_ep *ep;
static int far, far_honest;
static uint16_t number; /* of the next frame */
static uint64_t was_id; /* of an operation that is over */
static bool reads;      /* the mad one takes what is sent to it */
static bool calm;       /* and has bright moments */
static uint8_t data[BYTES];

static struct count {
    uint64_t frames, taken, lost, left, parked, ended, heard;
} * count;

/* ---- rank 0's side ---- */

/* A long message has come in parts: all of it can be read. */
static void hear(struct peer *from, uint64_t h0, uint64_t h1, const void *text, size_t n)
{
    static volatile uint8_t sum;
    (void)h0, (void)h1;
    FUZZ_RULE(from == mad && n <= PT_MESSAGE_LARGEST, "a message of a layer above is no longer than it may be");
    for (size_t i = 0; i < n; i++) sum = (uint8_t)(sum + ((const uint8_t *)text)[i]);
    count->heard++;
}

static const struct tp_am above = {AM_ABOVE, "of a layer above", hear, NULL, false, 0};

static uint8_t *guarded(size_t room)
{
    uint8_t *mem = malloc(room + 2 * GUARD);
    if (!mem) abort();
    memset(mem, GUARD_BYTE, room + 2 * GUARD);
    return mem;
}

static void check_guards(const struct task *o)
{
    static uint8_t guard[GUARD];
    memset(guard, GUARD_BYTE, GUARD);
    FUZZ_RULE(!memcmp(o->mem, guard, GUARD) && !memcmp(o->mem + GUARD + o->room, guard, GUARD),
              "memory beside a buffer is left alone");
}

static void check_memory(const struct task *o, const struct plan *p)
{
    bool whole = true;
    check_guards(o);
    if (!p->recv) FUZZ_RULE(!memcmp(o->mem + GUARD, data, p->gaps ? 4096 : o->room), "what is sent does not change");
    for (size_t i = 0; p->recv && p->gaps && i < o->room; i += 4) whole &= o->mem[GUARD + i + 2] == GUARD_BYTE;
    FUZZ_RULE(whole, "gaps are left alone");
}

static void start(struct task *o, const struct plan *p, int rank)
{
    struct type *t = p->gaps ? pairs : type_of(MPI_BYTE);
    o->room = (size_t)p->count * (p->gaps ? 4 : 1);
    if (!o->mem) o->mem = guarded(o->room);
    if (!p->recv) memcpy(o->mem + GUARD, data, min_size(o->room, sizeof data));
    int rc = p->recv ? pt_irecv(world, o->mem + GUARD, p->count, t, rank, p->tag, &o->r)
                     : pt_isend(world, o->mem + GUARD, p->count, t, rank, p->tag, p->mode, &o->r);
    FUZZ_RULE(!rc, "operations can be started");
    if (rc) abort();
}

/* As many sends as it takes for others to wait behind them. */
static void fill_connection(void)
{
    int small = 4096;
    struct request *r;
    setsockopt(ep->src.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    for (int i = 0; i < 20 && !mad->waiting; i++) {
        if (pt_isend(world, data, 60000, type_of(MPI_BYTE), MAD, 9, PT_STANDARD, &r)) abort();
        pt_release(r);
    }
    count->parked += mad->waiting != 0;
}

static int adopt(struct peer *p, struct tcp_ep **e_p)
{
    int fd[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd)) abort();
    struct tcp_ep *e = tcp_ep_fill(p, &p->ep);
    struct tcp_half *h = tcp_half_new(fd[0]);
    if (!e || !h || !tcp_watch(&h->src, EPOLLIN)) abort();
    tcp_adopt(e, h);
    p->flags |= PEER_QUOTA_KNOWN; /* there are no cards */
    p->credit = p->quota_there = peer_first_quota();
    *e_p = e;
    return fd[1];
}

static void connect_mad(void)
{
    far = adopt(mad, &ep);
    number = 0;
    reads = fuzz_below(8);
    calm = fuzz_below(2);
    if (!reads && fuzz_below(2)) fill_connection();
    for (int i = 0; i < OPS; i++) start(&task[i], &plan[i], plan[i].source);
}

static void turn(void)
{
    static uint8_t sink[65536];
    if (fuzz_below(2)) wires_progress(1 + (int)fuzz_below(4));
    lane_progress(lanes_first());
    while (reads && recv(far, sink, sizeof sink, MSG_DONTWAIT) > 0) {
    }
}

static void drop_bodies(void)
{
    struct match_body *b;
    for (int half = 0; half < 2; half++)
        while ((b = match_take(&world->pt->match[half], MATCH_ANY_SOURCE, MATCH_ANY_TAG))) pt_drop_body(lanes_first(), b);
    early_close();
}

static void check_nothing_left(void)
{
    FUZZ_RULE(lanes_first()->ids.used == ARRAY_LEN(honest) && lanes_first()->ids.made <= 4 * IDS_FIRST, "ids are given back");
    FUZZ_RULE(list_empty(&lanes_first()->steps.active) && list_empty(&lanes_first()->rndv.streams.requests) && list_empty(&lanes_first()->pending), "no transfer is left");
    FUZZ_RULE(!lanes_first()->pool.bodies && !lanes_first()->pool.used && !mad->stored && !mad->arriving, "no message is left");
    FUZZ_RULE(!mad->gather, "nothing of a long message is left");
    FUZZ_RULE(!early_contexts && !tcp_dom.held && !tcp_dom.unsettled, "no state is left");
    for (size_t i = 0; i < ARRAY_LEN(honest); i++)
        FUZZ_RULE(!request_is_complete(honest[i].r), "operations with others go on");
}

/* Operations that are complete are the user's to release, and memory is used again. */
static void renew(void)
{
    for (int i = 0; i < OPS && ep->state == TCP_OPEN; i++) {
        if (!request_is_complete(task[i].r)) continue;
        check_memory(&task[i], &plan[i]);
        pt_release(task[i].r);
        start(&task[i], &plan[i], plan[i].source);
        count->ended++;
    }
}

static void end_operations(void)
{
    for (int i = 0; i < OPS; i++) {
        FUZZ_RULE(request_is_complete(task[i].r), "the loss of a peer ends all that is with it");
        if (!request_is_complete(task[i].r)) abort();
        check_memory(&task[i], &plan[i]);
        pt_release(task[i].r);
        task[i].r = NULL;
    }
}

/* Of one who has left, what is waited for is ended; a receive from any source may be for others. */
static void give_up(void)
{
    struct request *all[OPS];
    for (int i = 0; i < OPS; i++) all[i] = task[i].r;
    pt_doubt_requests(OPS, all, true);
    for (int i = 0; i < OPS; i++)
        if (!request_is_complete(all[i]) && all[i]->kind == REQ_RECV && all[i]->rank == MPI_ANY_SOURCE) pt_cancel(all[i]);
}

/* The peer that sends at random dies; what waits for it ends. */
static void end_mad(void)
{
    close(far);
    for (int i = 0; i < 1000 && ep->state == TCP_OPEN; i++) lane_progress(lanes_first());
    FUZZ_RULE(ep->state >= TCP_LEFT && ep->src.fd < 0, "a connection ends with its peer");
    FUZZ_RULE(ep->state == TCP_LEFT || (mad->lost && *mad->lost), "a loss has words");
    count->left += ep->state == TCP_LEFT;
    count->lost += ep->state == TCP_LOST;
    for (int i = 0; i < 3; i++) lane_progress(lanes_first());
    if (ep->state == TCP_LEFT) give_up();
    end_operations();
    drop_bodies();
    pt_lost_close();
    losses.count = 0;
    world->pt->lost = NULL;
    world->pt->gone = 0;
    mad->credit = mad->quota_there;
    mad->due = mad->quota / 2;
    check_nothing_left();
    tcp_ep_forget(ep);
}

static void check_connection(void)
{
    const struct tcp_in *in = &ep->in;
    const struct tcp_out *out = &ep->out;
    if (ep->state != TCP_OPEN) return;
    FUZZ_RULE(!mad->lost && ep->src.fd >= 0, "who is not lost is connected");
    FUZZ_RULE(in->have < sizeof(struct tcp_frame) && in->skip < 8 && (!in->to || in->left), "a place in a frame");
    FUZZ_RULE(out->start <= out->end && out->end <= TCP_OUT_BYTES, "a place in what waits");
    FUZZ_RULE(!in->own || !in->to || in->frame.bytes <= TCP_SHORT, "no memory of one's own for long messages");
}

/* ---- frames ---- */

static uint8_t frame[sizeof(struct tcp_frame) + 2 * BYTES];

static bool odd(uint64_t n) { return !fuzz_below(calm ? 30 * n : n); }

static uint64_t some_id(void)
{
    const struct request *r = fuzz_below(16) ? task[fuzz_below(OPS)].r : honest[fuzz_below(ARRAY_LEN(honest))].r;
    switch (fuzz_below(12)) {
    case 0:
        return fuzz_random();
    case 1:
        return was_id;
    case 2:
        return r->id + fuzz_below(3) - 1;
    case 3:
        return fuzz_below(100);
    default:
        return r->id;
    }
}

static uint64_t some_number(void)
{
    static const uint64_t numbers[] = {
        0, 1, 8, 50, 4096, BYTES, BYTES + 1, TCP_SHORT, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};
    switch (fuzz_below(4)) {
    case 0:
        return fuzz_random();
    case 1:
        return fuzz_below(BYTES);
    default:
        return numbers[fuzz_below(ARRAY_LEN(numbers))];
    }
}

static uint64_t some_word(void)
{
    switch (fuzz_below(4)) {
    case 0:
        return some_id();
    case 1:
        return env_pack((int32_t)fuzz_below(5) - 1, (int32_t)fuzz_below(10) - 2);
    case 2:
        return world->ctx | fuzz_below(2);
    default:
        return some_number();
    }
}

static size_t some_length(void)
{
    static const size_t lengths[] = {0, 7, 8, 9, 16, 23, 24, 25, 100, 101, 3000};
    static const size_t long_ones[] = {TCP_SHORT - 1, TCP_SHORT, TCP_SHORT + 1, 65536,
                                       70000,         BYTES - 1, BYTES,         BYTES + 1};
    return fuzz_below(24) ? lengths[fuzz_below(ARRAY_LEN(lengths))] : long_ones[fuzz_below(ARRAY_LEN(long_ones))];
}

/* What a fragment that continues a receive says; false: none is being received. */
static bool next_fragment(struct tcp_frame *f)
{
    for (int i = 0; i < OPS; i++) {
        const struct request *r = task[i].r;
        if (!plan[i].recv || !r->id || request_is_complete(r)) continue;
        uint64_t arrived = r->cookie[2], left = (uint64_t)r->result.bytes - arrived; /* cookie: see stream.c */
        f->h0 = r->id;
        f->h1 = arrived;
        f->bytes = (uint32_t)(1 + fuzz_below(left));
        return true;
    }
    return false;
}

/* An operation that this may be the answer to: often such a one, if there is any. */
static const struct request *asked(uint32_t awaits)
{
    for (int i = 0, first = (int)fuzz_below(OPS); i < OPS; i++) {
        const struct request *r = task[(first + i) % OPS].r;
        if (r->id && (ids_of(&lanes_first()->ids, r)->awaits & awaits)) return r;
    }
    return NULL;
}

static void make_answer(struct tcp_frame *f)
{
    const struct request *r = asked(f->id == AM_CTS ? AWAIT_CTS : f->id == AM_ACK ? AWAIT_ACK : AWAIT_CANCELLED);
    f->h0 = some_id();
    if (r && !odd(8))
        f->h0 = r->id;
    else if (!r && !odd(8))
        f->id = AM_RTS; /* there is nothing to answer */
}

/* What the next part of a long message says, if all parts before it were taken. */
static void next_part(struct tcp_frame *f)
{
    static uint64_t bytes, there;
    if (!mad->gather || !bytes) {
        bytes = sizeof(struct pt_long) + fuzz_below(5000);
        there = 0;
    }
    f->h0 = bytes;
    f->h1 = there;
    f->bytes = (uint32_t)min_size(f->bytes, bytes - there);
    there += f->bytes;
}

static struct pt_rts unasked; /* the last RTS of a message that nobody has asked for */
static bool says_unasked;     /* the frame that is being made is that */

/* What the next data of such a message say; an RTS, if there is none. */
static void next_unasked(struct tcp_frame *f)
{
    static uint64_t there;
    says_unasked = !mad->ahead || there == unasked.bytes;
    f->h0 = world->ctx;
    if (says_unasked) {
        unasked = (struct pt_rts){fuzz_below(4), 1 + fuzz_below(BYTES), RTS_AHEAD};
        there = 0;
        f->id = AM_RTS;
        f->h1 = env_pack(MAD, (int32_t)fuzz_below(8));
        f->bytes = sizeof unasked;
    } else {
        f->h1 = unasked.send << 32 | there;
        f->bytes = (uint32_t)min_size(f->bytes, unasked.bytes - there);
        there += f->bytes;
    }
}

/* The fields that such a message should have. */
static void make_likely(struct tcp_frame *f)
{
    if (f->id == AM_FRAG && !next_fragment(f) && !odd(8)) f->id = AM_RTS;
    if (f->id == AM_CTS || f->id == AM_ACK || f->id == AM_CANCELLED) make_answer(f);
    bool matched = f->id <= AM_RTS || f->id == AM_CANCEL;
    if (matched) f->h0 = world->ctx | !fuzz_below(8);
    if (matched) f->h1 = env_pack(MAD, (int32_t)fuzz_below(8));
    if (f->id == AM_RTS) f->bytes = sizeof(struct pt_rts);
    if (f->id == AM_CTS) f->bytes = sizeof(struct pt_cts), f->h1 = odd(8);
    if (f->id == AM_CANCEL) f->bytes = 8;
    if (f->id == AM_CANCELLED) f->h1 = fuzz_below(2);
    if (f->id == AM_CREDIT) f->h0 = fuzz_below(2) ? 0 : (uint64_t)(mad->quota_there - mad->credit) + odd(4);
    if (f->id == AM_EAGER_SYNC && f->bytes < 8) f->bytes += 8;
    if (f->id == AM_PART) next_part(f);
    if (f->id == AM_AHEAD) next_unasked(f);
}

static size_t put_frame(const struct tcp_frame *f)
{
    struct tcp_frame wire = {htole32(f->bytes), f->id, 0, htole16(number++), htole64(f->h0), htole64(f->h1)};
    size_t n = round_up(f->bytes, 8);
    memcpy(frame, &wire, sizeof wire);
    bool likely_body = !odd(8); /* bytes, of which there are not too many, and so on */
    for (size_t i = 0; i < 4 && 8 * i < n; i++) {
        uint64_t word = likely_body && i ? (f->id == AM_RTS ? i == 1 : 1) * fuzz_below(BYTES) : some_word();
        if (likely_body && f->id == AM_PART && i == 2) word = AM_ABOVE; /* as in struct pt_long */
        if (says_unasked && i < 3) word = (uint64_t[]){unasked.send, unasked.bytes, unasked.offer}[i];
        word = htole64(word);
        memcpy(frame + sizeof wire + 8 * i, &word, 8);
    }
    return sizeof wire + n;
}

static size_t make_frame(void)
{
    static const uint8_t ids[] = {AM_EAGER,  AM_EAGER,     AM_EAGER_SYNC, AM_RTS,  AM_RTS, AM_CTS,
                                  AM_CTS,    AM_FRAG,      AM_FRAG,       AM_FRAG, AM_ACK, AM_CREDIT,
                                  AM_CANCEL, AM_CANCELLED, AM_ASK,        AM_OVER, AM_PART, AM_PART, AM_AHEAD, AM_AHEAD, AM_SIGNATURE, AM_PAD};
    struct tcp_frame f = {
        .id = ids[fuzz_below(ARRAY_LEN(ids) - !!fuzz_below(4) * 2)], .h0 = some_word(), .h1 = some_word()};
    f.bytes = (uint32_t)some_length();
    says_unasked = false;
    if (!odd(8)) make_likely(&f);
    if (f.id == AM_PAD && fuzz_below(2)) f.h0 = TCP_NOTE_LEAVE, f.bytes = 0;
    return put_frame(&f);
}

/* One field of the header is at the end of what it may be, or beyond. */
static void spoil_field(void)
{
    static const uint32_t lengths[] = {0,
                                       1,
                                       TCP_SHORT - 1,
                                       TCP_SHORT,
                                       TCP_SHORT + 1,
                                       TCP_STAGE_BYTES,
                                       TCP_LONG_MAX - 1u,
                                       TCP_LONG_MAX,
                                       TCP_LONG_MAX + 1u,
                                       INT32_MAX,
                                       UINT32_MAX};
    struct tcp_frame f;
    memcpy(&f, frame, sizeof f);
    switch (fuzz_below(6)) {
    case 0:
        f.bytes = htole32(lengths[fuzz_below(ARRAY_LEN(lengths))]);
        break;
    case 1:
        f.id = (uint8_t)fuzz_below(fuzz_below(2) ? TP_AM_MAX + 1 : 256);
        break;
    case 2:
        f.zero = (uint8_t)fuzz_below(256);
        break;
    case 3:
        f.number = htole16((uint16_t)(number + fuzz_below(3)));
        break;
    case 4:
        f.h0 = fuzz_random();
        break;
    default:
        f.h1 = fuzz_random();
        break;
    }
    memcpy(frame, &f, sizeof f);
}

/* Changes a frame of n bytes, or not; how many bytes of it are sent. */
static size_t spoil(size_t n)
{
    if (!odd(4)) return n;
    switch (fuzz_below(6)) {
    case 0:
        spoil_field();
        return n;
    case 1:
        fuzz_mutate(frame, sizeof(struct tcp_frame));
        return n;
    case 2:
        fuzz_mutate(frame, n);
        return n;
    case 3:
        frame[n - 1] ^= 1;
        return n; /* padding, often */
    case 4:
        return 1 + fuzz_below(n - 1); /* the next one begins in the middle of it */
    default:
        fuzz_bytes(frame, n = 1 + fuzz_below(500));
        return n;
    }
}

/* False when rank 0 has hung up. */
static bool say(size_t n)
{
    size_t piece = fuzz_below(3) ? n : 1 + fuzz_below(n < 200 ? n : 20000);
    for (size_t at = 0; at < n;) {
        ssize_t sent = send(far, frame + at, min_size(piece, n - at), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) at += (size_t)sent;
        turn();
        if (ep->state != TCP_OPEN) return false;
    }
    return true;
}

/* ---- one who is honest ---- */

static void say_honest(unsigned id, uint64_t h0, uint64_t h1, const void *p, size_t n)
{
    static uint16_t count_honest;
    struct tcp_frame f = {htole32((uint32_t)n), (uint8_t)id, 0, htole16(count_honest++), htole64(h0), htole64(h1)};
    struct iovec v[2] = {{&f, sizeof f}, {(void *)(uintptr_t)p, n}};
    if (n % 8 || writev(far_honest, v, 2) != (ssize_t)(sizeof f + n)) abort();
    for (int i = 0; i < 10; i++) lane_progress(lanes_first());
}

static void meet_honest(void)
{
    static const struct plan has[] = {{true, false, 40000, HONEST, 1, PT_STANDARD},
                                      {false, false, 50, HONEST, 2, PT_SYNC},
                                      {false, false, BYTES, HONEST, 3, PT_SYNC}};
    struct pt_rts rts = {77, 40000, 0};
    struct tcp_ep *e;
    far_honest = adopt(peer_of_sender(HONEST), &e);
    for (size_t i = 0; i < ARRAY_LEN(has); i++) start(&honest[i], &has[i], HONEST);
    say_honest(AM_RTS, world->ctx, env_pack(HONEST, 1), &rts, sizeof rts);
    FUZZ_RULE(honest[0].r->id && honest[1].r->id && honest[2].r->id, "operations that peers know of have ids");
}

static void part_from_honest(void)
{
    static uint8_t sink[65536];
    struct pt_cts cts = {5, BYTES, UINT64_MAX};
    say_honest(AM_FRAG, honest[0].r->id, 0, data, 24000);
    say_honest(AM_FRAG, honest[0].r->id, 24000, data + 24000, 16000);
    say_honest(AM_ACK, honest[1].r->id, 0, NULL, 0);
    say_honest(AM_CTS, honest[2].r->id, 0, &cts, sizeof cts);
    for (int i = 0; i < 1000 && !request_is_complete(honest[2].r); i++) {
        while (recv(far_honest, sink, sizeof sink, MSG_DONTWAIT) > 0) {
        }
        lane_progress(lanes_first());
    }
    FUZZ_RULE(!memcmp(honest[0].mem + GUARD, data, 40000), "what comes from others is right");
    for (size_t i = 0; i < ARRAY_LEN(honest); i++) {
        FUZZ_RULE(request_is_complete(honest[i].r) && !honest[i].r->result.error, "operations with others succeed");
        check_guards(&honest[i]);
        pt_release(honest[i].r);
        free(honest[i].mem);
    }
    close(far_honest);
}

/* ---- the job ---- */

static bool open_layers(void)
{
    fuzz_job(RANKS);
    if (var_open() || proc_open()) return false;
    errh_open();
    group_open(0);
    if (request_open() || type_open() || pt_register() || tp_am_register(&above, 1) || peers_open() || pt_open(false) || comm_open(0) ||
        comm_world_open(RANKS))
        return false;
    world = comm_world();
    if (tcp_dom.epoll < 0) return false;
    mad = peer_of_sender(MAD);
    return mad && !type_vector(1, 2, 2, TYPE_ELEMENTS, type_of(MPI_BYTE), &two) && !type_resized(two, 0, 4, &pairs) &&
           !type_commit(pairs);
}

static void close_layers(void)
{
    comm_close();
    pt_close();
    peers_close();
    type_close();
    group_close();
    proc_close();
    var_close();
    handle_close();
}

static bool play(void)
{
    fuzz_bytes(data, sizeof data);
    if (!open_layers()) {
        printf("# %s\n", err_words());
        return false;
    }
    meet_honest();
    for (int frames = 0; frames < FRAMES && fuzz_ok();) {
        connect_mad();
        for (int i = 0, life = 1 + (int)fuzz_below(LIFE); i < life && ep->state == TCP_OPEN && fuzz_ok();
             i++, frames++) {
            was_id = some_id();
            say(spoil(make_frame()));
            for (int k = 0; k < 5; k++) turn();
            check_connection();
            if (fuzz_below(2)) renew();
        }
        count->taken += ep->number_in;
        end_mad();
    }
    count->frames += FRAMES;
    part_from_honest();
    for (int i = 0; i < OPS; i++) free(task[i].mem);
    type_unref(pairs);
    type_unref(two);
    close_layers();
    return fuzz_ok();
}

static void job(void) { fuzz_fork(play, "rank 0 lives on"); }

static void reached(void)
{
    printf("# %llu frames, %llu taken by the transport; %llu losses, %llu farewells; %llu operations done, %llu times "
           "others waited, %llu long messages\n",
           (unsigned long long)count->frames, (unsigned long long)count->taken, (unsigned long long)count->lost,
           (unsigned long long)count->left, (unsigned long long)count->ended, (unsigned long long)count->parked, (unsigned long long)count->heard);
    FUZZ_RULE(count->taken > count->frames / 4 && count->lost > count->frames / 50 && count->ended > count->frames / 50 && count->heard > count->frames / 1000,
              "frames get to where they are judged");
}

int main(void)
{
    static const struct fuzz_part parts[] = {
        {"a process of the job that sends what it likes harms itself only", job, FRAMES},
        {"its messages are taken and judged", reached, UINT_MAX},
    };
    count = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (count == MAP_FAILED) abort();
    setvbuf(stdout, NULL, _IOLBF, 0); /* what a rank says before its death is heard */
    return fuzz_main(parts, 2, 4 * FRAMES);
}
