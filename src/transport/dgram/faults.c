/* faults.c - see faults.h. */
#include "transport/dgram/faults.h"

#include "base/err.h"
#include "base/list.h"
#include "transport/dgram/packet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELD 1024 /* datagrams held back at a time; more are lost */
#define REORDER_NS 2000000u

struct setting {
    const char *name;
    uint64_t value, most;
};
enum { SEED, LOSS, DUP, CORRUPT, REORDER, DELAY, SETTINGS };

struct held {
    struct link link;
    struct dgram_addr to;
    uint64_t due;    /* ns */
    unsigned behind; /* goes when so many more have been sent */
    size_t n;
    uint8_t bytes[];
};

struct faults {
    struct dgram_wire wire;
    struct dgram_wire *inner;
    struct setting set[SETTINGS];
    unsigned types; /* bit t: packets of type t */
    uint64_t random, now;
    uint64_t latest; /* `due` of the last one delayed */
    struct faults_count count;
    struct link delayed, reordered;
    unsigned held;
    uint8_t room[];
};

static struct faults *faults_of(const struct dgram_wire *w) { return container_of(w, struct faults, wire); }

/* ---- words ---- */

static const char *const type_names[] = {"", "data", "ack", "probe", "door", "gone"};

static bool read_types(const char *words, size_t n, unsigned *types)
{
    *types = 0;
    for (size_t at = 0, len; at < n; at += len + 1) {
        len = strcspn(words + at, "|,");
        unsigned t = 1;
        while (t < ARRAY_LEN(type_names) && (strlen(type_names[t]) != len || strncmp(type_names[t], words + at, len)))
            t++;
        if (len == 3 && !strncmp(words + at, "all", 3))
            *types = ~0u;
        else if (t < ARRAY_LEN(type_names))
            *types |= 1u << t;
        else
            return false;
    }
    return *types != 0;
}

static bool read_setting(struct faults *f, const char *word, size_t n)
{
    const char *equals = memchr(word, '=', n);
    if (!equals) return false;
    size_t name = (size_t)(equals - word);
    if (name == 5 && !strncmp(word, "types", 5)) return read_types(equals + 1, n - name - 1, &f->types);
    for (int i = 0; i < SETTINGS; i++) {
        struct setting *s = &f->set[i];
        char *end;
        if (strlen(s->name) != name || strncmp(s->name, word, name)) continue;
        s->value = strtoull(equals + 1, &end, 10);
        return end == word + n && end > equals + 1 && equals[1] >= '0' && equals[1] <= '9' && s->value <= s->most;
    }
    return false;
}

static int read_words(struct faults *f, const char *words)
{
    for (size_t at = 0, n; words[at]; at += n + (words[at + n] == ',')) {
        n = strcspn(words + at, ",");
        if (!read_setting(f, words + at, n))
            return err_set(TERN_ERR_ARG,
                           "TERN_DGRAM_FAULTS: '%.*s' is not understood; write e.g. "
                           "seed=1,loss=20,dup=20,reorder=20,corrupt=1,delay_us=100,types=data|ack, percents up to 100",
                           (int)n, words + at);
    }
    return 0;
}

/* ---- the wire ---- */

static uint64_t draw(struct faults *f) /* xorshift64* */
{
    f->random ^= f->random >> 12;
    f->random ^= f->random << 25;
    f->random ^= f->random >> 27;
    return f->random * 0x2545f4914f6cdd1du >> 16;
}

static bool happens(struct faults *f, int what) { return draw(f) % 100 < f->set[what].value; }

static bool pass_on(struct faults *f, const struct dgram_addr *to, const void *bytes, size_t n)
{
    void *room = f->inner->ops->room(f->inner);
    if (!room) return false; /* lost: a fault like another */
    memcpy(room, bytes, n);
    f->inner->ops->send(f->inner, to, n);
    return true;
}

static void hold(struct faults *f, struct link *list, const struct dgram_addr *to, const void *bytes, size_t n,
                 uint64_t due, unsigned behind)
{
    struct held *h = f->held < HELD ? malloc(sizeof *h + n) : NULL;
    if (!h) return;
    *h = (struct held){.to = *to, .due = due, .behind = behind, .n = n};
    memcpy(h->bytes, bytes, n);
    list_push(list, &h->link);
    f->held++;
}

static void release(struct faults *f, struct held *h)
{
    list_remove(&h->link);
    f->held--;
    pass_on(f, &h->to, h->bytes, h->n);
    free(h);
}

/* Those that were to be overtaken, and have been. */
static void overtake(struct faults *f)
{
    list_each(l, next, &f->reordered)
    {
        struct held *h = container_of(l, struct held, link);
        if (!--h->behind) release(f, h);
    }
}

static void send_once(struct faults *f, const struct dgram_addr *to, const void *bytes, size_t n)
{
    if (happens(f, REORDER)) {
        f->count.reordered++;
        hold(f, &f->reordered, to, bytes, n, f->now + REORDER_NS, 1 + (unsigned)(draw(f) % 8));
        return;
    }
    if (f->set[DELAY].value) {
        uint64_t due = f->now + draw(f) % (f->set[DELAY].value * 1000 + 1);
        f->latest = due > f->latest ? due : f->latest;
        hold(f, &f->delayed, to, bytes, n, f->latest, 0);
    } else {
        pass_on(f, to, bytes, n);
    }
    overtake(f);
}

static void faults_send(struct dgram_wire *w, const struct dgram_addr *to, size_t n)
{
    struct faults *f = faults_of(w);
    f->count.sent++;
    if (!(f->types >> dgram_packet_type(f->room, n) & 1)) {
        pass_on(f, to, f->room, n);
        return;
    }
    if (happens(f, LOSS)) {
        f->count.lost++;
        return;
    }
    bool twice = happens(f, DUP);
    f->count.doubled += twice;
    if (twice) send_once(f, to, f->room, n);
    if (happens(f, CORRUPT)) {
        f->count.damaged++;
        f->room[draw(f) % n] ^= (uint8_t)(1 << draw(f) % 8);
    }
    send_once(f, to, f->room, n);
}

static void release_due(struct faults *f, struct link *list)
{
    list_each(l, next, list)
    {
        struct held *h = container_of(l, struct held, link);
        if (h->due <= f->now) release(f, h);
    }
}

static void faults_flush(struct dgram_wire *w, uint64_t now)
{
    struct faults *f = faults_of(w);
    f->now = now;
    release_due(f, &f->delayed);
    release_due(f, &f->reordered);
    f->inner->ops->flush(f->inner, now);
    w->trouble = f->inner->trouble;
    w->trouble_to = f->inner->trouble_to;
}

static int faults_poll(struct dgram_wire *w, uint64_t now, int budget, dgram_take_fn take, void *arg)
{
    struct faults *f = faults_of(w);
    f->now = now;
    return f->inner->ops->poll(f->inner, now, budget, take, arg);
}

static uint64_t faults_due(const struct dgram_wire *w)
{
    const struct faults *f = faults_of(w);
    uint64_t at = f->inner->ops->due(f->inner);
    if (!list_empty(&f->delayed)) at = min_size(at, container_of(f->delayed.next, struct held, link)->due);
    if (!list_empty(&f->reordered)) at = min_size(at, container_of(f->reordered.next, struct held, link)->due);
    return at;
}

static void *faults_room(struct dgram_wire *w) { return faults_of(w)->room; }

static bool faults_valid(const struct dgram_wire *w, const struct dgram_addr *a)
{
    return faults_of(w)->inner->ops->valid(faults_of(w)->inner, a);
}

static bool faults_refused(struct dgram_wire *w, struct dgram_addr *a)
{
    struct dgram_wire *inner = faults_of(w)->inner;
    return inner->ops->refused && inner->ops->refused(inner, a);
}

static bool faults_near(const struct dgram_wire *w, const struct dgram_addr *a)
{
    struct dgram_wire *inner = faults_of(w)->inner;
    return inner->ops->near && inner->ops->near(inner, a);
}

static void faults_text(const struct dgram_wire *w, const struct dgram_addr *a, char *buf, size_t n)
{
    faults_of(w)->inner->ops->text(faults_of(w)->inner, a, buf, n);
}

static void faults_free(struct faults *f)
{
    for (struct link *l; (l = list_pop(&f->delayed));) free(container_of(l, struct held, link));
    for (struct link *l; (l = list_pop(&f->reordered));) free(container_of(l, struct held, link));
    free(f);
}

static void faults_close(struct dgram_wire *w)
{
    struct faults *f = faults_of(w);
    f->inner->ops->close(f->inner);
    faults_free(f);
}

static const struct dgram_wire_ops ops = {
    .name = "a faulty wire",
    .close = faults_close,
    .room = faults_room,
    .send = faults_send,
    .flush = faults_flush,
    .poll = faults_poll,
    .due = faults_due,
    .valid = faults_valid,
    .refused = faults_refused,
    .near = faults_near,
    .text = faults_text,
};

int faults_wrap(struct dgram_wire **wire_p, const char *words)
{
    struct dgram_wire *inner = *wire_p;
    if (!*words) return 0;
    struct faults *f = calloc(1, sizeof *f + inner->mtu);
    if (!f) return err_set(TERN_ERR_NOMEM, "no memory for the fault shim of datagrams");
    f->wire = *inner;
    f->wire.ops = &ops;
    f->inner = inner;
    f->types = ~0u;
    struct setting none[SETTINGS] = {{"seed", 1, UINT64_MAX}, {"loss", 0, 100},    {"dup", 0, 100},
                                     {"corrupt", 0, 100},     {"reorder", 0, 100}, {"delay_us", 0, 10000000}};
    memcpy(f->set, none, sizeof none);
    list_init(&f->delayed);
    list_init(&f->reordered);
    int rc = read_words(f, words);
    f->random = f->set[SEED].value * 0x9e3779b97f4a7c15u | 1;
    if (rc)
        faults_free(f);
    else
        *wire_p = &f->wire;
    return rc;
}

struct faults_count faults_count(const struct dgram_wire *w)
{
    return w->ops == &ops ? faults_of(w)->count : (struct faults_count){0};
}
