/*
 * early_sim_test.c - all orders in which a sender and an early receiver can take their steps (src/pt2pt/rndv/ready.h).
 *
 * A model of the protocol: each look at what the two share, and each change of it, is one step; so is a message that is handed over. All
 * programs of some sends and some receives are run, each in all orders of steps. What must hold is what the protocol promises: a transfer
 * that the sender has taken for a message belongs to the receive that meets this message.
 *
 * The model is worth something if it finds mistakes: each condition that the protocol has is left out in turn (enum mutant), and some
 * program must then fail.
 */
#include "base/compiler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SENDS = 3, OPS = 4, ANY = 2 };

enum mutant {
    NONE,
    SAYS_BEHIND_OTHERS,   /* a receive says that it is ready though one before it has not */
    SAYS_BESIDE_PROBED,   /* ... though MPI_Mprobe has taken a message */
    CANCELS_WITHOUT_WORD, /* a cancelled receive does not withdraw its transfer */
    TELLS_HANDLED_EARLY,  /* the receiver says that a message was handled when it begins to */
    TAKES_BLINDLY,        /* a send takes a transfer though messages before it have not been handled */
    MARKS_ALWAYS,         /* all that was sent is said not to matter, whatever it was */
    LATE_BLINDLY,         /* an offer is replaced though messages before it have not been handled */
    LATE_OUT_OF_TURN,     /* ... by a receive that is not the first */
    LATE_AFTER_MEETING,   /* ... though a receive before has just met a message, perhaps that one */
    MUTANTS
};

/* ---- programs ---- */

enum send_kind { SMALL_0, LARGE_0, LARGE_1, SEND_KINDS };          /* and the tag */
enum op_kind { POST_0, POST_1, POST_ANY, CANCEL, MPROBE, OP_KINDS }; /* CANCEL: the receive that was posted last */

struct program {
    uint8_t send[SENDS], op[OPS];
};

static bool is_large(uint8_t send) { return send != SMALL_0; }
static int tag_of(uint8_t send) { return send == LARGE_1; }

/* ---- states ---- */

enum { XFER_NONE, XFER_OPEN, XFER_TAKEN, XFER_MATCHED, XFER_WITHDRAWN, XFER_CLOSED };
enum { OFFER_NONE, OFFER_MADE, OFFER_MET, OFFER_REPLACED };

/* What a side does next; IDLE: it begins something. */
enum sender_step { S_IDLE, S_DROP, S_SCAN, S_HANDLED, S_FIND, S_WIN, S_FILL, S_KNOWS, S_PUSH };
enum receiver_step { R_IDLE, R_WITHDRAW, R_MEET, R_HANDLED };

struct state {
    /* both; message k is that of send k */
    uint8_t xfer[OPS], by[OPS];  /* of a receive: its transfer, and the send that has taken it, plus 1 */
    uint8_t offer[SENDS];
    uint8_t flag[SENDS];         /* the RTS names this receive's transfer, plus 1 */
    uint8_t sent, handled;       /* messages */
    uint8_t ready[OPS], readies; /* receives that have said that they are ready */
    /* the sender */
    uint8_t s_step, s_looks, s_tag, s_at, s_send, s_xfer; /* s_looks: it looks for an offer of this tag, else it sends; s_xfer: plus 1 */
    uint8_t heard, said[OPS], saids, mark, met;
    /* the receiver */
    uint8_t r_step, r_next, r_recv, begun; /* r_next: the next op; begun: messages */
    uint8_t r_handling;             /* the message, or SENDS */
    uint8_t tag[OPS], posted[OPS], is_ready[OPS], meets[OPS]; /* of a receive, by its op; meets: the message, plus 1 */
    uint8_t unexpected[SENDS], probed;
};

static enum mutant mutant;
static const struct program *program;
static bool failed;

/* ---- the sender ---- */

static void drop(struct state *s, unsigned i)
{
    s->saids--;
    for (; i < s->saids; i++) s->said[i] = s->said[i + 1];
    s->said[s->saids] = 0;
}

/* Looks at one transfer of the list. False: there are no more. */
static bool drop_withdrawn(struct state *s)
{
    if (s->s_at >= s->saids) return false;
    unsigned x = s->said[s->s_at];
    if (s->xfer[x] != XFER_WITHDRAWN) {
        s->s_at++;
        return true;
    }
    s->xfer[x] = XFER_CLOSED;
    drop(s, s->s_at);
    s->met = s->sent;
    return true;
}

/* The place in the list of the first transfer for a tag; `saids`: there is none. */
static unsigned first_for(const struct state *s, int tag)
{
    unsigned i = 0;
    while (i < s->saids && s->tag[s->said[i]] != tag) i++;
    return i;
}

static void idle(struct state *s) { s->s_step = S_IDLE, s->s_at = s->s_send = s->s_xfer = s->s_looks = s->s_tag = 0; }

static void begin_to_hear(struct state *s)
{
    s->s_step = S_DROP;
    s->s_at = 0;
}

/* ... whether a transfer can be taken in place of an offer: when it has heard, or the receiver has handled more. */
static void begin_to_look(struct state *s, int tag)
{
    s->s_looks = 1;
    s->s_tag = (uint8_t)tag;
    s->s_step = S_SCAN;
    s->s_at = 0;
}

static void begin_to_send(struct state *s)
{
    s->s_send = s->sent;
    s->s_step = is_large(program->send[s->sent]) && s->saids ? S_KNOWS : S_PUSH;
}

static void push(struct state *s)
{
    unsigned k = s->sent++;
    if (s->s_xfer) {
        s->flag[k] = s->s_xfer;
        for (unsigned i = 0; i < s->saids; i++)
            if (s->said[i] == s->s_xfer - 1) drop(s, i);
    } else if (is_large(program->send[k])) {
        s->offer[k] = OFFER_MADE;
    }
    if (s->s_xfer || mutant == MARKS_ALWAYS) s->mark = s->sent;
    idle(s);
}

/* A look at one offer: is it the oldest that nobody has met? */
static void scan(struct state *s)
{
    unsigned k = s->s_at;
    if (k == s->sent) {
        idle(s);
        return;
    }
    bool is = s->offer[k] == OFFER_MADE && tag_of(program->send[k]) == s->s_tag;
    s->s_send = (uint8_t)k;
    s->s_at = is ? 0 : (uint8_t)(k + 1);
    s->s_step = is ? S_HANDLED : S_SCAN;
}

static void look_at_handled(struct state *s)
{
    if (s->handled < s->s_send && mutant != LATE_BLINDLY) idle(s);
    else s->s_step = S_FIND;
}

static void find_late(struct state *s)
{
    if (drop_withdrawn(s)) return;
    unsigned i = first_for(s, s->s_tag);
    for (unsigned j = i; j < s->saids && mutant == LATE_OUT_OF_TURN; j++)
        if (s->tag[s->said[j]] == s->s_tag) i = j;
    if (i == s->saids || (s->s_send < s->met && mutant != LATE_AFTER_MEETING)) {
        idle(s);
        return;
    }
    s->s_xfer = (uint8_t)(s->said[i] + 1);
    s->s_step = S_WIN;
}

static void find_for_send(struct state *s)
{
    if (drop_withdrawn(s)) return;
    unsigned i = first_for(s, tag_of(program->send[s->s_send]));
    s->s_at = 0;
    s->s_xfer = i < s->saids ? (uint8_t)(s->said[i] + 1) : 0;
    s->s_step = s->s_xfer ? S_WIN : S_PUSH;
}

static void win(struct state *s)
{
    uint8_t *x = &s->xfer[s->s_xfer - 1];
    bool won = *x == XFER_OPEN;
    if (won) *x = XFER_TAKEN;
    if (won) s->s_step = S_FILL;
    else if (s->s_looks) idle(s);
    else s->s_xfer = 0, s->s_step = S_PUSH;
}

static void fill(struct state *s)
{
    unsigned x = s->s_xfer - 1u;
    s->by[x] = (uint8_t)(s->s_send + 1);
    s->xfer[x] = XFER_MATCHED;
    if (!s->s_looks) {
        s->s_step = S_PUSH;
        return;
    }
    if (s->offer[s->s_send] == OFFER_MET) failed = true; /* its descriptor is in use */
    s->offer[s->s_send] = OFFER_REPLACED;
    for (unsigned i = 0; i < s->saids; i++)
        if (s->said[i] == x) drop(s, i);
    idle(s);
}

static void sender_goes_on(struct state *s)
{
    switch ((enum sender_step)s->s_step) {
    case S_IDLE: break;
    case S_DROP:
        if (drop_withdrawn(s)) break;
        s->said[s->saids++] = s->ready[s->heard++];
        idle(s);
        break;
    case S_SCAN: scan(s); break;
    case S_HANDLED: look_at_handled(s); break;
    case S_FIND: s->s_looks ? find_late(s) : find_for_send(s); break;
    case S_WIN: win(s); break;
    case S_FILL: fill(s); break;
    case S_KNOWS: {
        bool knows = s->handled == s->sent || s->mark == s->sent || mutant == TAKES_BLINDLY;
        s->s_step = knows ? S_FIND : S_PUSH;
        s->s_at = 0;
        break;
    }
    case S_PUSH: push(s); break;
    }
}

/* ---- the receiver ---- */

static bool takes(const struct state *s, unsigned r, unsigned k)
{
    return s->posted[r] && (s->tag[r] == ANY || s->tag[r] == tag_of(program->send[k]));
}

/* The receive that meets message k, or OPS. They were posted in this order. */
static unsigned receive_for(const struct state *s, unsigned k)
{
    unsigned r = 0;
    while (r < OPS && !takes(s, r, k)) r++;
    return r;
}

static bool is_next(const struct state *s, unsigned own)
{
    if (s->probed && mutant != SAYS_BESIDE_PROBED) return false;
    for (unsigned r = 0; r < own; r++) {
        bool same = s->posted[r] && (s->tag[r] == ANY || s->tag[r] == s->tag[own]);
        if (same && !s->is_ready[r] && mutant != SAYS_BEHIND_OTHERS) return false;
    }
    return true;
}

static void over(struct state *s)
{
    s->handled = mutant == TELLS_HANDLED_EARLY ? s->handled : (uint8_t)(s->r_handling + 1);
    s->r_handling = SENDS;
    s->r_step = R_IDLE;
    s->r_recv = 0;
}

static void begin_to_handle(struct state *s, unsigned k)
{
    unsigned r = receive_for(s, k);
    s->r_handling = (uint8_t)k;
    if (mutant == TELLS_HANDLED_EARLY) s->handled = (uint8_t)(k + 1);
    if (r == OPS) {
        s->unexpected[k] = 1;
        failed |= s->flag[k] != 0;
        s->r_step = R_HANDLED;
        return;
    }
    s->r_recv = (uint8_t)r;
    s->posted[r] = 0;
    s->meets[r] = (uint8_t)(k + 1);
    s->r_step = s->is_ready[r] ? R_WITHDRAW : R_MEET;
}

/* The receive has said that it is ready: has the message taken its transfer? */
static void refuse(struct state *s)
{
    unsigned r = s->r_recv, k = s->r_handling;
    bool is_open = s->xfer[r] == XFER_OPEN;
    bool taken = s->flag[k] ? s->flag[k] == r + 1 : !is_open && is_large(program->send[k]);
    if (is_open) s->xfer[r] = XFER_WITHDRAWN;
    failed |= (s->flag[k] && !taken) || (!is_open && !taken);
    s->r_step = taken ? R_HANDLED : R_MEET;
}

static void meet(struct state *s)
{
    unsigned k = s->r_handling;
    failed |= s->flag[k] != 0 || s->offer[k] == OFFER_REPLACED;
    if (s->offer[k] == OFFER_MADE) s->offer[k] = OFFER_MET;
    s->r_step = R_HANDLED;
}

static void receiver_goes_on(struct state *s)
{
    switch ((enum receiver_step)s->r_step) {
    case R_IDLE: break;
    case R_WITHDRAW: refuse(s); break;
    case R_MEET: meet(s); break;
    case R_HANDLED: over(s); break;
    }
}

/* An unexpected message for a receive, or for MPI_Mprobe, or SENDS. */
static unsigned unexpected_for(const struct state *s, int tag)
{
    for (unsigned k = 0; k < SENDS; k++)
        if (s->unexpected[k] && (tag == ANY || tag == tag_of(program->send[k]))) return k;
    return SENDS;
}

static void post(struct state *s, unsigned r, int tag)
{
    unsigned k = unexpected_for(s, tag);
    s->tag[r] = (uint8_t)tag;
    if (k < SENDS) {
        s->unexpected[k] = 0;
        s->meets[r] = (uint8_t)(k + 1);
        failed |= s->offer[k] == OFFER_REPLACED;
        if (s->offer[k] == OFFER_MADE) s->offer[k] = OFFER_MET;
        return;
    }
    s->posted[r] = 1;
    if (tag == ANY || !is_next(s, r)) return;
    s->is_ready[r] = 1;
    s->xfer[r] = XFER_OPEN;
    s->ready[s->readies++] = (uint8_t)r;
}

static void cancel(struct state *s, unsigned before)
{
    unsigned r = before;
    while (r && program->op[r - 1] > POST_ANY) r--;
    if (!r-- || !s->posted[r]) return;
    bool withdrawn = !s->is_ready[r] || s->xfer[r] == XFER_OPEN;
    if (!withdrawn) return; /* its message is on its way */
    if (s->is_ready[r] && mutant != CANCELS_WITHOUT_WORD) s->xfer[r] = XFER_WITHDRAWN;
    s->posted[r] = 0;
}

static void next_op(struct state *s)
{
    unsigned i = s->r_next++, k;
    switch ((enum op_kind)program->op[i]) {
    case POST_0: post(s, i, 0); break;
    case POST_1: post(s, i, 1); break;
    case POST_ANY: post(s, i, ANY); break;
    case CANCEL: cancel(s, i); break;
    case MPROBE:
        k = unexpected_for(s, ANY);
        if (k < SENDS) s->unexpected[k] = 0, s->probed |= is_large(program->send[k]);
        break;
    case OP_KINDS: break;
    }
}

/* ---- all orders ---- */

#define ROOM (1u << 18)

static struct state seen[ROOM], todo[ROOM];
static uint32_t used[ROOM]; /* by the number of the program */
static uint32_t number, states;
static size_t todos;

static bool is_new(const struct state *s)
{
    const uint8_t *b = (const uint8_t *)s;
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < sizeof *s; i++) h = (h ^ b[i]) * 1099511628211u;
    uint32_t at = (uint32_t)(h ^ h >> 29) % ROOM;
    while (used[at] == number && memcmp(&seen[at], s, sizeof *s)) at = (at + 1) % ROOM;
    if (used[at] == number) return false;
    used[at] = number;
    seen[at] = *s;
    if (++states > ROOM / 2) fail_msg("there are more states than there is room for");
    return true;
}

static void add(const struct state *s)
{
    if (!failed && is_new(s)) todo[todos++] = *s;
}

static void after_sender(const struct state *s)
{
    struct state t = *s;
    if (t.s_step != S_IDLE) {
        sender_goes_on(&t);
        add(&t);
        return;
    }
    if (t.heard < t.readies) {
        begin_to_hear(&t);
        add(&t);
        t = *s;
    }
    for (int tag = 0; tag < 2; tag++, t = *s) {
        if (first_for(s, tag) == s->saids) continue;
        begin_to_look(&t, tag);
        add(&t);
    }
    if (t.sent < SENDS) {
        begin_to_send(&t);
        add(&t);
    }
}

static void after_receiver(const struct state *s)
{
    struct state t = *s;
    if (t.r_step != R_IDLE) {
        receiver_goes_on(&t);
        add(&t);
        return;
    }
    if (t.begun < t.sent) {
        begin_to_handle(&t, t.begun++);
        add(&t);
        t = *s;
    }
    if (t.r_next < OPS) {
        next_op(&t);
        add(&t);
    }
}

/* At any time: a transfer that has been taken is that of the receive that the message meets, if it has met one. */
static bool is_wrong(const struct state *s)
{
    for (unsigned r = 0; r < OPS; r++) {
        if (!s->by[r]) continue;
        if (s->meets[r] && s->meets[r] != s->by[r]) return true;
        for (unsigned q = 0; q < OPS; q++)
            if (q != r && s->meets[q] == s->by[r]) return true;
    }
    return false;
}

/* False: some order of steps leads to something wrong. */
static bool holds(const struct program *p)
{
    struct state start;
    memset(&start, 0, sizeof start);
    start.r_handling = SENDS;
    program = p;
    failed = false;
    number++;
    states = 0;
    todos = 0;
    add(&start);
    while (todos && !failed) {
        struct state s = todo[--todos];
        failed |= is_wrong(&s);
        after_sender(&s);
        after_receiver(&s);
    }
    return !failed;
}

/* The program with this number; false: there are no more. */
static bool program_at(unsigned n, struct program *p)
{
    for (int i = 0; i < SENDS; i++, n /= SEND_KINDS) p->send[i] = (uint8_t)(n % SEND_KINDS);
    for (int i = 0; i < OPS; i++, n /= OP_KINDS) p->op[i] = (uint8_t)(n % OP_KINDS);
    return n == 0;
}

/* How many programs fail; at most `most` are looked for. */
static unsigned failures(enum mutant m, unsigned most)
{
    struct program p;
    unsigned found = 0;
    mutant = m;
    for (unsigned n = 0; program_at(n, &p) && found < most; n++) found += !holds(&p);
    return found;
}

static void the_protocol_holds(void **state)
{
    (void)state;
    assert_int_equal(failures(NONE, 1), 0);
}

static void each_condition_is_needed(void **state)
{
    (void)state;
    for (int m = NONE + 1; m < MUTANTS; m++)
        if (!failures((enum mutant)m, 1)) fail_msg("mutant %d is not found", m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_protocol_holds),
        cmocka_unit_test(each_condition_is_needed),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
