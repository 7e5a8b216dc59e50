/*
 * transfer_sim_test.c - all orders in which two or three parties can take their steps on a transfer (src/transfer), and the death of one of
 * them between any two steps.
 *
 * The code of src/transfer itself runs here: each of its atomic operations is a step, before which any other party may go on. A party is a
 * context with a stack of its own; the world (what they share, their contexts and stacks) is saved, and put back to try the other orders.
 * What a party knows follows from what it has read. So two worlds are the same when their memory is, and what each party has read.
 *
 * The parties use a transfer as pt2pt/rndv and coll/node do. In the end each chunk has been copied exactly once, or both sides have the
 * same error; who sleeps was rung for all that it has to do; nobody touches what is not there any more.
 *
 * The explorer is worth something if it finds mistakes: each atomic operation is made wrong in turn (enum fault), and each rule that the
 * parties keep is broken (enum breach); something must fail then. TERN_SIM_TABLE=1 prints the worlds of each scenario, and what each
 * mistake leads to.
 */
#include "copy/copy.h"
#include "transport/endpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <cmocka.h>

/* ---- steps ---- */

enum fault {
    RIGHT,
    LEFT_OUT, /* nothing is written; a load gives 0 */
    TWO_STEPS, /* an exchange: what happens in between is lost */
    ALWAYS,    /* an exchange with a condition that always holds */
    FAULTS
};

/* The atomic operations of the code, by their place in it. */
enum { SITES = 64 };
static struct site {
    const char *file;
    int line;
    bool exchanges, compares, reached;
} sites[SITES];
static int wrong_site;
static enum fault wrong;

static void yield(void);
static uint32_t note(uint64_t value);

static bool is_wrong(int at, enum fault f) { return wrong == f && wrong_site == at; }

static void reach(int at, const char *file, int line, bool exchanges, bool compares)
{
    sites[at] = (struct site){file, line, exchanges, compares, true};
    yield();
}

static uint32_t load(const void *p, int at, const char *file, int line)
{
    reach(at, file, line, false, false);
    return is_wrong(at, LEFT_OUT) ? 0 : note(__atomic_load_n((const uint32_t *)p, __ATOMIC_SEQ_CST));
}

static void store(void *p, uint32_t v, int at, const char *file, int line)
{
    reach(at, file, line, false, false);
    if (!is_wrong(at, LEFT_OUT)) __atomic_store_n((uint32_t *)p, v, __ATOMIC_SEQ_CST);
}

static uint32_t fetch_add(void *p, uint32_t v, int at, const char *file, int line)
{
    reach(at, file, line, true, false);
    uint32_t was = note(__atomic_load_n((uint32_t *)p, __ATOMIC_SEQ_CST));
    if (is_wrong(at, TWO_STEPS)) yield();
    if (!is_wrong(at, LEFT_OUT)) __atomic_store_n((uint32_t *)p, was + v, __ATOMIC_SEQ_CST);
    return was;
}

static uint32_t swap(void *p, uint32_t v, int at, const char *file, int line)
{
    reach(at, file, line, true, false);
    uint32_t was = note(__atomic_load_n((uint32_t *)p, __ATOMIC_SEQ_CST));
    if (is_wrong(at, TWO_STEPS)) yield();
    if (!is_wrong(at, LEFT_OUT)) __atomic_store_n((uint32_t *)p, v, __ATOMIC_SEQ_CST);
    return was;
}

static bool exchange(void *p, uint32_t was, uint32_t v, int at, const char *file, int line)
{
    reach(at, file, line, true, true);
    bool same = note(__atomic_load_n((uint32_t *)p, __ATOMIC_SEQ_CST) == was || is_wrong(at, ALWAYS));
    if (is_wrong(at, TWO_STEPS)) yield();
    if (same && !is_wrong(at, LEFT_OUT)) __atomic_store_n((uint32_t *)p, v, __ATOMIC_SEQ_CST);
    return same;
}

#undef atomic_load_explicit
#undef atomic_load
#undef atomic_store_explicit
#undef atomic_store
#undef atomic_fetch_add_explicit
#undef atomic_exchange_explicit
#undef atomic_compare_exchange_strong_explicit
#define AT __COUNTER__, __FILE__, __LINE__
#define atomic_load_explicit(p, order) ((typeof(+*(p)))load(p, AT))
#define atomic_load(p) ((typeof(+*(p)))load(p, AT))
#define atomic_store_explicit(p, v, order) store(p, (uint32_t)(v), AT)
#define atomic_store(p, v) store(p, (uint32_t)(v), AT)
#define atomic_fetch_add_explicit(p, v, order) fetch_add(p, (uint32_t)(v), AT)
#define atomic_exchange_explicit(p, v, order) ((typeof(+*(p)))swap(p, (uint32_t)(v), AT))
#define atomic_compare_exchange_strong_explicit(p, was, v, order, other) exchange(p, *(was), (uint32_t)(v), AT)
#define copy_part(dst, src, n, whole) move_here(dst, src, n)
static void move_here(void *dst, void *src, size_t n);
#include "transfer/transfer.c"
enum { CODE_SITES = __COUNTER__ };
static_assert((int)CODE_SITES < (int)SITES, "more atomic operations than places to note them");

/* ---- the world ---- */

enum { SENDER, RECEIVER, THIRD, PARTIES };
enum { CHUNKS = 2, CHUNK = 4, STACK = 8 << 10, ROUNDS = 2, DEEPEST = 300 };
enum result { NONE, DONE, FAILED, REFUSED, CANCELLED, UNUSED, LOST };

static struct world {
    struct memory { /* what the parties share, and what happens to it */
        struct transfer t;
        uint32_t freed, offered, ready, left, rounds[2]; /* left: the third looks at it no more; rounds that a side has finished */
        uint8_t dead[2], cut, lost[2]; /* lost: the other side has been told that this one is dead, or out of reach */
        uint8_t result[2], round[2], refused[2], copies, copied[ROUNDS][CHUNKS];
    } m;
    struct party {
        ucontext_t context;
        uint64_t history; /* of all that it has read */
        bool ended, waits, asleep, rung;
        TERN_ALIGNED(16) char stack[STACK];
    } party[PARTIES];
    struct tp_ep ends[2];
} world;
static struct memory *const m = &world.m;
static ucontext_t explorer;
static struct party *running; /* NULL: the explorer */
static const char *failure;

static void fail_with(const char *what)
{
    if (!failure) failure = what;
}

static void yield(void)
{
    if (!running) return;
    note(0); /* it has come to another place */
    (void)swapcontext(&running->context, &explorer);
}

static uint32_t note(uint64_t value)
{
    if (running) running->history = (running->history ^ (value + 1)) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    return (uint32_t)value;
}

/* It is at this place of its text, and knows nothing but this of what it has read before. */
static void stand(int place, unsigned knows)
{
    if (!running) return;
    running->history = 0;
    note((uint64_t)place << 32 | knows);
}

/* A step that writes a word; one that reads it. */
static void set(uint32_t *word, uint32_t value)
{
    yield();
    *word = value;
}

static uint32_t see(const uint32_t *word)
{
    yield();
    return note(*word);
}

static void ring(int other)
{
    yield();
    world.party[other].rung |= world.party[other].asleep;
}

static struct scenario {
    const char *name;
    bool early, cancels; /* the receiver makes the transfer; and takes it back */
    bool gives_back;     /* the sender gives it back, and takes it once more */
    bool in_block;                   /* a transfer of a collective, used in ROUNDS rounds */
    bool own;                        /* and both ends are the sender's; the "receiver" carries chunks when it has nothing else to do */
    bool third;                      /* another thread works for the sender */
    bool dies, cut;                  /* a side dies at some time; the two lose each other */
    uint8_t blind[2];                /* bit i: the side cannot reach the memory of the other in round i */
    uint8_t fails, refuses;          /* bit i: copy i fails, or the system refuses it, and all further ones of that side */
} scenario;

static bool is_lost(int side)
{
    if (!scenario.dies && !scenario.cut) return false;
    yield();
    return note(m->lost[!side]);
}

/* ---- what is done, and what is done wrong ---- */

enum breach {
    KEPT,
    CLOSES_EARLY,    /* a side says that it looks no more, and does */
    FREES_EARLY,     /* its maker frees a transfer that the other side may look at */
    ENDS_EARLY,      /* a side ends when nothing is left to be claimed */
    CANCELS_BLINDLY, /* a receiver cancels though the transfer is taken */
    TAKES_BLINDLY,   /* a sender uses a transfer that it could not take */
    TELLS_NOBODY,    /* who does the last of it does not ring */
    SLEEPS_BLINDLY,  /* who goes to sleep does not look once more */
    STOPS_NOTHING,   /* who hears that the other is lost does not stop the work */
    RENEWS_LATE,     /* a sender begins the work anew behind saying its end */
    LEAVES_AT_ONCE,  /* a member that ends before the transfer is over does not wait for what the other has claimed */
    CARRIES_ON,      /* who carries for another one says that it has finished the round, and goes on with that */
    BREACHES
};
static enum breach breach;

/* ---- memory, and who can reach it ---- */

static char from_memory[CHUNKS * CHUNK], to_memory[CHUNKS * CHUNK];

static void touch(void)
{
    if (m->freed) fail_with("a transfer is looked at that is not there any more");
}

/* One chunk. It was claimed in the same step. */
static int move(bool side, const struct iovec *from, const struct iovec *to)
{
    size_t at = (size_t)((char *)from->iov_base - from_memory), i = at / CHUNK;
    unsigned copy = m->copies++, round = m->round[side];
    int sides = scenario.own ? 1 : 2; /* whose memory it is */
    for (int s = 0; s < sides; s++)
        if (m->result[s] && !m->dead[s]) fail_with("a chunk is claimed of an operation that is over");
    yield();
    if (m->refused[side] || scenario.refuses >> copy & 1) {
        m->refused[side] = 1;
        return TERN_ERR_UNSUPPORTED;
    }
    if (scenario.fails >> copy & 1) return TERN_ERR_SYSTEM;
    for (int s = 0; s < sides; s++)
        if (m->result[s] && (m->result[s] != LOST || scenario.in_block) && !m->dead[s])
            fail_with("memory is copied of an operation that is over");
    bool right = i < CHUNKS && round < ROUNDS && to->iov_base == to_memory + at && from->iov_len == CHUNK;
    if (!right || m->copied[round][i]) fail_with("a chunk is copied twice, or to where it does not belong");
    if (right) m->copied[round][i] = 1;
    return 0;
}

static int get(struct tp_ep *ep, const struct iovec *local, int nl, const struct iovec *remote, int nr)
{
    (void)nl, (void)nr;
    if (!scenario.own) return move(ep == &world.ends[RECEIVER], remote, local);
    yield(); /* to a buffer; it goes on from there */
    return 0;
}

static int put(struct tp_ep *ep, const struct iovec *local, int nl, const struct iovec *remote, int nr)
{
    (void)nl, (void)nr;
    struct iovec came_from = {from_memory + ((char *)remote->iov_base - to_memory), remote->iov_len};
    return move(ep == &world.ends[RECEIVER], scenario.own ? &came_from : local, remote);
}

/* By the sender, which reaches both ends. */
static void move_here(void *dst, void *src, size_t n)
{
    struct iovec from = {src, n}, to = {dst, n};
    if (move(SENDER, &from, &to)) fail_with("memory of one's own cannot be copied");
}

static const struct tp_ops ops = {.get = get, .put = put};

static unsigned go_on(int side)
{
    bool blind = scenario.blind[side] >> m->round[side] & 1;
    struct tp_ep *ep = &world.ends[side];
    ep->ops = &ops;
    ep->caps = blind || note(m->refused[side]) ? 0 : TP_CAP_GETPUT;
    if (scenario.own) return side == SENDER ? transfer_go_on_here(&m->t) : transfer_carry(&m->t, ep, NULL);
    return transfer_go_on(&m->t, (enum transfer_side)side, ep);
}

/* ---- what all parties do ---- */

static void say_end(int side, uint32_t number)
{
    touch();
    if (side == SENDER) m->t.chunk = CHUNK, m->t.first = 1;
    transfer_say(&m->t, (enum transfer_side)side, number, side == SENDER ? from_memory : to_memory, 0, sizeof from_memory);
}

static bool is_met(uint32_t number)
{
    touch();
    return transfer_is_said(&m->t, TRANSFER_FROM, number) && transfer_is_said(&m->t, TRANSFER_TO, number);
}

static bool has_to_do(int side, uint32_t number)
{
    if (!is_met(number)) return false;
    if (transfer_is_over(&m->t)) return true;
    return transfer_has_work(&m->t) && !atomic_load_explicit(&m->t.end[side].helpless, memory_order_relaxed);
}

/* What a party waits for: one of these. */
struct wanted {
    const uint32_t *word; /* is at least `least` */
    uint32_t least;
    uint32_t number; /* something is to be done for the transfer with this number */
    bool closed;     /* the other side looks at it no more */
};

static bool is_there(const struct wanted *w, int side)
{
    if (w->word) return see(w->word) >= w->least;
    if (w->closed) return transfer_life(&m->t) == TRANSFER_CLOSED;
    return has_to_do(side, w->number);
}

static void go_to_sleep(void)
{
    yield();
    running->asleep = true;
}

static void wait_or_get_up(bool waits)
{
    running->waits = waits;
    if (waits) yield();
    running->waits = running->asleep = running->rung = false;
}

/* Sleeps until it is rung, unless it is there; a process that is lost rings as well. */
static void sleep_for(const struct wanted *w, int side)
{
    go_to_sleep();
    wait_or_get_up(breach == SLEEPS_BLINDLY || !(is_there(w, side) || is_lost(side)));
}

/* False: the other side is lost. */
static bool await(const struct wanted *w, int side)
{
    while (stand(__LINE__, 0), !is_there(w, side)) {
        if (is_lost(side)) return false;
        sleep_for(w, side);
    }
    return true;
}

static bool await_word(const uint32_t *word, uint32_t least, int side)
{
    return await(&(struct wanted){.word = word, .least = least}, side);
}

/* A member hears of a loss: that of the other one, or of a third that they both need. What the other has claimed is done soon, unless it is
 * dead. */
static void end_early(int side, uint32_t number)
{
    uint32_t claimed = transfer_retract(&m->t);
    stand(__LINE__, claimed);
    while (breach != LEAVES_AT_ONCE && !m->dead[!side] && is_met(number) && !transfer_is_quiet(&m->t, claimed)) {
        go_to_sleep();
        wait_or_get_up(is_met(number) && !transfer_is_quiet(&m->t, claimed));
        stand(__LINE__, claimed);
    }
}

/* The result of the transfer with this number. */
static enum result work(int side, uint32_t number)
{
    for (;;) {
        stand(__LINE__, 0);
        if (is_lost(side)) {
            if (breach != STOPS_NOTHING && scenario.in_block) end_early(side, number);
            else if (breach != STOPS_NOTHING) transfer_stop(&m->t);
            return LOST;
        }
        if (is_met(number)) {
            stand(__LINE__, 0);
            unsigned did = go_on(side);
            stand(__LINE__, did);
            if (did & TRANSFER_ENDED && breach != TELLS_NOBODY) ring(!side);
            if (scenario.in_block && scenario.cut) ring(!side); /* one that leaves looks again and again */
            if (breach == ENDS_EARLY ? !transfer_has_work(&m->t) : transfer_is_over(&m->t)) break;
            if (did) continue;
        }
        sleep_for(&(struct wanted){.number = number}, side);
    }
    stand(__LINE__, 0);
    int error = transfer_error(&m->t);
    return error == TERN_ERR_UNSUPPORTED ? REFUSED : error ? FAILED : DONE;
}

/* The operation is over: its memory is the program's again. */
static void end(int side, enum result r)
{
    yield();
    m->result[side] = (uint8_t)r;
    stand(__LINE__, r);
}

/* The maker frees the transfer when the other side looks at it no more: never, if that is lost before. */
static void free_it(int side)
{
    if (breach == FREES_EARLY || await(&(struct wanted){.closed = true}, side)) m->freed = 1;
}

static void close_it(int side)
{
    transfer_close(&m->t);
    ring(!side);
}

/* ---- the parties ---- */

static void offering_sender(void)
{
    say_end(SENDER, 1);
    set(&m->offered, 1);
    ring(RECEIVER);
    enum result r = work(SENDER, 1);
    if (scenario.third) await_word(&m->left, 1, SENDER);
    end(SENDER, r);
    free_it(SENDER);
}

static void late_receiver(void)
{
    if (!await_word(&m->offered, 1, RECEIVER)) {
        end(RECEIVER, LOST);
        return;
    }
    say_end(RECEIVER, 1);
    ring(SENDER);
    ring(THIRD);
    if (breach == CLOSES_EARLY) close_it(RECEIVER);
    enum result r = work(RECEIVER, 1);
    end(RECEIVER, r);
    if (r != LOST && breach != CLOSES_EARLY) close_it(RECEIVER);
}

/* Another thread of the sender: it is in the library until nothing is left to be claimed. */
static void third(void)
{
    while (stand(__LINE__, 0), !is_met(1) && !is_lost(SENDER)) {
        go_to_sleep();
        wait_or_get_up(!is_met(1) && !is_lost(SENDER));
    }
    for (unsigned did = is_met(1); did;) {
        did = go_on(SENDER);
        stand(__LINE__, did);
        if (did & TRANSFER_ENDED && breach != TELLS_NOBODY) ring(SENDER), ring(RECEIVER);
    }
    set(&m->left, 1);
    ring(SENDER);
}

static void early_receiver(void)
{
    say_end(RECEIVER, 1);
    set(&m->ready, 1);
    ring(SENDER);
    if (scenario.cancels && (transfer_withdraw(&m->t) || breach == CANCELS_BLINDLY)) {
        end(RECEIVER, CANCELLED);
        free_it(RECEIVER);
        return;
    }
    enum result r = LOST;
    if (await_word(&m->offered, 1, RECEIVER)) r = work(RECEIVER, 1);
    else transfer_stop(&m->t);
    end(RECEIVER, r);
    free_it(RECEIVER);
}

/* It takes what a receiver has left, if that is there still. */
static void taking_sender(void)
{
    enum result r = UNUSED;
    if (!await_word(&m->ready, 1, SENDER)) {
        end(SENDER, LOST);
        return;
    }
    touch();
    bool taken = transfer_take(&m->t) || breach == TAKES_BLINDLY;
    if (taken && scenario.gives_back) {
        transfer_give_back(&m->t);
        taken = transfer_take(&m->t);
    }
    if (taken) {
        say_end(SENDER, 1);
        set(&m->offered, 1);
        ring(RECEIVER);
        if (breach == CLOSES_EARLY) close_it(SENDER);
        r = work(SENDER, 1);
    }
    end(SENDER, r);
    if (r != LOST && !(taken && breach == CLOSES_EARLY)) close_it(SENDER);
}

/* Of a collective. The transfer is used again when both have finished a round. */
static void member(int side)
{
    enum result r = DONE;
    for (uint32_t i = 0; i < ROUNDS && r != LOST; i++) {
        if (!await_word(&m->rounds[!side], i, side)) {
            r = LOST;
            break;
        }
        yield();
        m->round[side] = (uint8_t)i;
        if (side == SENDER && breach != RENEWS_LATE) transfer_renew(&m->t);
        say_end(side, i + 1);
        if (side == SENDER && breach == RENEWS_LATE) transfer_renew(&m->t);
        ring(!side);
        r = work(side, i + 1);
        set(&m->rounds[side], i + 1);
        ring(!side);
    }
    end(side, r);
}

/* Its own block: again when the other one has finished the round before. */
static void owner(void)
{
    enum result r = DONE;
    for (uint32_t i = 0; i < ROUNDS && r != LOST; i++) {
        if (!await_word(&m->rounds[RECEIVER], i, SENDER)) {
            r = LOST;
            break;
        }
        yield();
        m->round[SENDER] = (uint8_t)i;
        transfer_renew(&m->t);
        say_end(RECEIVER, i + 1);
        say_end(SENDER, i + 1);
        r = work(SENDER, i + 1);
    }
    end(SENDER, r);
}

/* Whoever carries chunks of it, as long as there are some: it need not come in time, but ends a round for the lines to be used again. */
static void carrier(void)
{
    for (uint32_t i = 0; i < ROUNDS; i++) {
        yield();
        m->round[RECEIVER] = (uint8_t)i;
        if (breach == CARRIES_ON) set(&m->rounds[RECEIVER], i + 1);
        while (stand(__LINE__, 0), !is_lost(RECEIVER) && transfer_is_said(&m->t, TRANSFER_FROM, i + 1) && transfer_has_work(&m->t)) {
            unsigned did = go_on(RECEIVER);
            stand(__LINE__, did);
            if (did & TRANSFER_ENDED && breach != TELLS_NOBODY) ring(SENDER);
            if (scenario.cut) ring(SENDER);
        }
        set(&m->rounds[RECEIVER], i + 1);
        ring(SENDER);
    }
    end(RECEIVER, DONE);
}

static void entry(void)
{
    struct party *own = running;
    int me = (int)(own - world.party);
    if (scenario.own) (me == SENDER ? owner : carrier)();
    else if (scenario.in_block) member(me);
    else if (me == THIRD) third();
    else if (scenario.early) (me == SENDER ? taking_sender : early_receiver)();
    else (me == SENDER ? offering_sender : late_receiver)();
    own->ended = true;
}

/* ---- what must hold ---- */

/* Of the last round. */
static bool all_copied(void)
{
    bool all = true;
    for (int k = 0; k < CHUNKS; k++) all &= m->copied[scenario.in_block ? ROUNDS - 1 : 0][k];
    return all;
}

/* Nobody can go on. */
static void judge(void)
{
    uint8_t s = m->result[SENDER], r = m->result[RECEIVER];
    bool lost = m->cut || m->dead[SENDER] || m->dead[RECEIVER];
    for (int p = 0; p < PARTIES; p++)
        if (!world.party[p].ended && !m->dead[p == RECEIVER]) fail_with("a party sleeps for ever");
    if ((s == DONE || (r == DONE && !scenario.own)) && !all_copied()) fail_with("an operation is over, and not all of its data are there");
    if (lost) return;
    bool undone = s == UNUSED && r == CANCELLED;
    if (s != r && !undone) fail_with("the two sides have different results");
    if (undone && !scenario.cancels) fail_with("nothing was to be cancelled");
    if (s == FAILED && !scenario.fails) fail_with("a copy fails that does not");
    bool blind = scenario.blind[SENDER] & scenario.blind[RECEIVER];
    if (s == REFUSED && !scenario.refuses && !blind) fail_with("one of the two could have copied it");
    if (s == DONE && !scenario.in_block && (scenario.fails || blind)) fail_with("all is well that is not");
    if (s != DONE && scenario.in_block) fail_with("a round fails in which nothing went wrong");
    if (s == LOST) fail_with("nobody is lost");
    if (!m->freed && !scenario.in_block) fail_with("the transfer is never freed");
}

/* ---- all orders ---- */

enum { TABLE = 1 << 21 };
static uint64_t table[TABLE]; /* worlds that have been seen */
static unsigned seen, run_number;
static struct world *saved; /* [DEEPEST] */

static uint64_t hash(void)
{
    uint64_t h = run_number + 1;
    const unsigned char *b = (const unsigned char *)m;
    for (size_t i = 0; i < sizeof *m; i++) h = (h ^ b[i]) * UINT64_C(0x100000001b3);
    for (int p = 0; p < PARTIES; p++) {
        const struct party *q = &world.party[p];
        h = (h ^ q->history ^ (uint64_t)(q->ended << 3 | q->waits << 2 | q->asleep << 1 | q->rung)) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    return h ? h : 1;
}

static uint64_t path[DEEPEST]; /* the worlds that have led here */

/* Is this world new? One that leads to itself goes on for ever. */
static bool is_new(unsigned depth)
{
    uint64_t h = path[depth] = hash();
    for (unsigned i = 0; i < depth; i++)
        if (path[i] == h) fail_with("it goes on for ever");
    for (size_t at = h % TABLE; table[at] != h; at = (at + 1) % TABLE) {
        if (table[at]) continue;
        table[at] = h;
        if (++seen > TABLE / 2) fail_with("there are more orders than the explorer has room for");
        return true;
    }
    return false;
}

static bool may_run(int p)
{
    const struct party *q = &world.party[p];
    return !q->ended && !m->dead[p == RECEIVER] && (!q->waits || q->rung);
}

static void run(int p)
{
    running = &world.party[p];
    (void)swapcontext(&explorer, &running->context);
    running = NULL;
}

/* This side is told that the other is lost, and who sleeps there gets up. */
static void tell(int side)
{
    m->lost[!side] = 1;
    for (int p = 0; p < PARTIES; p++)
        if (side == (p == RECEIVER)) world.party[p].rung |= world.party[p].asleep;
}

enum { STEP, DIE = STEP + PARTIES, CUT = DIE + 2, TELL, EVENTS = TELL + 2 };

/* False: this cannot happen now. */
static bool happens(int event)
{
    int side = event >= TELL ? event - TELL : event - DIE;
    if (event < DIE) {
        if (!may_run(event - STEP)) return false;
        run(event - STEP);
    } else if (event < CUT) {
        if (!scenario.dies || m->dead[SENDER] || m->dead[RECEIVER] || world.party[side].ended) return false;
        m->dead[side] = 1;
        tell(!side);
    } else if (event == CUT) {
        if (!scenario.cut || m->cut) return false;
        m->cut = 1;
    } else {
        if (!m->cut || m->lost[!side]) return false;
        tell(side);
    }
    return true;
}

static void explore(unsigned depth)
{
    bool goes_on = false;
    if (depth == DEEPEST) fail_with("it takes more steps than the explorer has room for");
    if (failure || !is_new(depth)) return;
    saved[depth] = world;
    for (int e = 0; e < EVENTS && !failure; e++) {
        if (!happens(e)) continue;
        goes_on |= e < DIE || e > CUT;
        explore(depth + 1);
        world = saved[depth];
    }
    if (!goes_on && !failure) judge();
}

/* Why it goes wrong in some order; NULL: in none. */
static const char *wrong_in(const struct scenario *s)
{
    scenario = *s;
    failure = NULL;
    run_number++;
    if (seen > TABLE / 8) {
        memset(table, 0, sizeof table);
        seen = 0;
    }
    memset(&world, 0, sizeof world);
    for (int p = 0; p < PARTIES; p++) {
        struct party *q = &world.party[p];
        q->ended = p == THIRD && !s->third;
        getcontext(&q->context);
        q->context.uc_stack.ss_sp = q->stack;
        q->context.uc_stack.ss_size = sizeof q->stack;
        q->context.uc_link = &explorer;
        makecontext(&q->context, entry, 0);
    }
    explore(0);
    return failure;
}

static const struct scenario scenarios[] = {
    {.name = "a late receiver"},
    {.name = "the sender cannot reach the receiver", .blind = {1, 0}},
    {.name = "the receiver cannot reach the sender", .blind = {0, 1}},
    {.name = "neither can", .blind = {1, 1}},
    {.name = "the first copy fails", .fails = 1},
    {.name = "the second copy fails", .fails = 2},
    {.name = "both fail", .fails = 3},
    {.name = "the system refuses the first copy", .refuses = 1},
    {.name = "the system refuses the second copy", .refuses = 2},
    {.name = "one dies", .dies = true},
    {.name = "one dies, and one cannot copy", .dies = true, .blind = {1, 0}},
    {.name = "they lose each other", .cut = true},
    {.name = "an early receiver", .early = true},
    {.name = "which cancels", .early = true, .cancels = true},
    {.name = "and the sender gives it back", .early = true, .cancels = true, .gives_back = true},
    {.name = "an early receiver, and one dies", .early = true, .dies = true},
    {.name = "which cancels, and one dies", .early = true, .cancels = true, .dies = true},
    {.name = "an early receiver, and they lose each other", .early = true, .cut = true},
    {.name = "a collective", .in_block = true},
    {.name = "of which the sides are blind in turn", .in_block = true, .blind = {1, 2}},
    {.name = "and the other way round", .in_block = true, .blind = {2, 1}},
    {.name = "of which the first copy fails", .in_block = true, .fails = 1},
    {.name = "of which one dies", .in_block = true, .dies = true},
    {.name = "that ends by the loss of a third one", .in_block = true, .cut = true},
    {.name = "what a rank has for itself", .in_block = true, .own = true},
    {.name = "of which one dies", .in_block = true, .own = true, .dies = true},
    {.name = "and ends by the loss of a third one", .in_block = true, .own = true, .cut = true},
    {.name = "a late receiver, and the sender has a second thread", .third = true},
    {.name = "which fails", .third = true, .fails = 2},
};

/* What goes wrong in some scenario; NULL: nothing. */
static const char *anything_wrong(void)
{
    for (size_t i = 0; i < ARRAY_LEN(scenarios); i++) {
        const char *why = wrong_in(&scenarios[i]);
        if (why) return why;
    }
    return NULL;
}

static void nothing_goes_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(scenarios); i++) {
        unsigned before = seen;
        const char *why = wrong_in(&scenarios[i]);
        if (why) fail_msg("%s: %s", scenarios[i].name, why);
        if (getenv("TERN_SIM_TABLE")) print_message("%s: %u worlds\n", scenarios[i].name, seen - (seen < before ? 0 : before));
    }
}

static void each_operation_is_needed(void **state)
{
    unsigned missed = 0, faults = 0;
    (void)state;
    for (int at = 0; at < CODE_SITES; at++) {
        const struct site *s = &sites[at];
        for (int f = LEFT_OUT; s->reached && f < FAULTS; f++) {
            if ((f == TWO_STEPS && !s->exchanges) || (f == ALWAYS && !s->compares)) continue;
            wrong_site = at;
            wrong = (enum fault)f;
            const char *why = anything_wrong();
            wrong = RIGHT;
            faults++;
            if (getenv("TERN_SIM_TABLE")) print_message("%s:%d, fault %d: %s\n", s->file, s->line, f, why ? why : "NOT FOUND");
            missed += !why;
        }
        if (!s->reached) fail_msg("an operation is never reached: number %d", at);
    }
    assert_true(faults > 0);
    assert_int_equal(missed, 0);
}

static void each_rule_is_needed(void **state)
{
    (void)state;
    for (int b = KEPT + 1; b < BREACHES; b++) {
        breach = (enum breach)b;
        const char *why = anything_wrong();
        breach = KEPT;
        if (getenv("TERN_SIM_TABLE")) print_message("breach %d: %s\n", b, why ? why : "NOT FOUND");
        if (!why) fail_msg("the parties break rule %d, and nothing goes wrong", b);
    }
}

int main(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    printf("1..0 # SKIP it moves stacks, which this sanitizer does not follow\n");
    return 0;
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_goes_wrong),
        cmocka_unit_test(each_operation_is_needed),
        cmocka_unit_test(each_rule_is_needed),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    saved = malloc(DEEPEST * sizeof *saved);
    int rc = saved ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
    free(saved);
    return rc;
}
