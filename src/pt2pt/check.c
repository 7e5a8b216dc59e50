/* check.c - see check.h. */
#include "pt2pt/check.h"
#include "base/err.h"
#include "base/var.h"
#include "pt2pt/lost.h"
#include "pt2pt/protocol.h"
#include "type/signature.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool pt_checking;

struct pt_signature {
    uint64_t hash;
    int64_t elements; /* basic ones */
    int64_t count;    /* as the sender said it, of `type` */
    uint32_t untyped; /* has bytes or packed data in it, which match anything */
    char type[36];    /* in words, cut */
};
static_assert(sizeof(struct pt_signature) == 64, "wire format");

/* ---- signatures that came and whose messages have not been received yet, by peer or by body ---- */

#define BUCKETS 1024

static struct kept {
    struct kept *next;
    const void *key;
    struct pt_signature s;
} **kept; /* BUCKETS of them, from pt_check_open to pt_check_close; transports may deliver outside of that as well */

/* Of the message that is being handled; none: the sender does not check. */
static struct pt_signature arrived;
static bool has_arrived;

static struct kept **place_of(const void *key)
{
    struct kept **at = &kept[((uintptr_t)key * 0x9e3779b97f4a7c15u) >> 54];
    while (*at && (*at)->key != key) at = &(*at)->next;
    return at;
}

static void keep(const void *key, const struct pt_signature *s)
{
    if (!kept) return;
    struct kept **at = place_of(key); /* a message that was dropped may have left one */
    if (!*at) *at = calloc(1, sizeof **at);
    if (!*at) lane_fatal("no memory for the signature of a message");
    (*at)->key = key;
    (*at)->s = *s;
}

static void take(const void *key)
{
    struct kept **at = kept ? place_of(key) : NULL, *k = at ? *at : NULL;
    has_arrived = k != NULL;
    if (!k) return;
    arrived = k->s;
    *at = k->next;
    free(k);
}

void pt_check_keep(const void *body)
{
    if (has_arrived) keep(body, &arrived);
}

void pt_check_recall(const void *body) { take(body); }

/* ---- the handlers: each message finds its signature, then is handled as ever ---- */

static void on_signature(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    struct pt_signature s;
    (void)h0, (void)h1;
    if (from->lost) return;
    if (n != sizeof s) {
        pt_violation(from, "the signature of a message, of %zu bytes", n);
        return;
    }
    memcpy(&s, data, sizeof s);
    keep(from, &s);
}

static void on_eager(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    take(from);
    pt_on_eager(from, h0, h1, data, n);
}

static void on_eager_sync(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    take(from);
    pt_on_eager_sync(from, h0, h1, data, n);
}

static void on_rts(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    take(from);
    pt_on_rts(from, h0, h1, data, n);
}

#define RTS_BYTES (sizeof(struct pt_rts) + sizeof(struct pt_offer))

static const struct tp_am unchecked[] = {
    {AM_EAGER, "eager", pt_on_eager, pt_sink_eager, false, 0},
    {AM_EAGER_SYNC, "eager, synchronous", pt_on_eager_sync, NULL, false, 0},
    {AM_RTS, "request to send", pt_on_rts, NULL, false, RTS_BYTES},
};

static const struct tp_am checked[] = {
    {AM_EAGER, "eager", on_eager, pt_sink_eager, false, 0},
    {AM_EAGER_SYNC, "eager, synchronous", on_eager_sync, NULL, false, 0},
    {AM_RTS, "request to send", on_rts, NULL, false, RTS_BYTES},
    {AM_SIGNATURE, "signature", on_signature, NULL, false, sizeof(struct pt_signature)},
};

static bool is_wanted(void) { return var_has(VAR_CHECK, "types"); }

int pt_check_register(void)
{
    return is_wanted() ? tp_am_register(checked, ARRAY_LEN(checked)) : tp_am_register(unchecked, ARRAY_LEN(unchecked));
}

void pt_check_unregister(void)
{
    tp_am_unregister(unchecked, ARRAY_LEN(unchecked));
    tp_am_unregister(checked, ARRAY_LEN(checked));
}

int pt_check_open(void)
{
    pt_checking = is_wanted();
    if (!pt_checking) return 0;
    kept = calloc(BUCKETS, sizeof(struct kept *));
    if (!kept) return err_set(TERN_ERR_NOMEM, "no memory to compare the types of messages");
    return var_set(VAR_COLL_NODE, "0"); /* what goes through shared blocks has no signature: let it be messages */
}

void pt_check_close(void)
{
    for (int i = 0; kept && i < BUCKETS; i++)
        while (kept[i]) {
            struct kept *k = kept[i];
            kept[i] = k->next;
            free(k);
        }
    free(kept);
    kept = NULL;
    pt_checking = false;
}

/* ---- both ends ---- */

static void describe(const struct type *t, char *words, size_t room)
{
    const char *name = type_name(t);
    if (*name) snprintf(words, room, "%s", name);
    else if (t->basic && t->basic != t) snprintf(words, room, "a type made of %s", type_name(t->basic));
    else snprintf(words, room, "a type of %lld elements", (long long)t->elements);
}

int pt_check_announce(struct request *r)
{
    struct signature s = type_signature(r->type, r->count);
    struct pt_signature out = {s.hash, r->count * r->type->elements, r->count, r->type->untyped, ""};
    if (r->course & REQ_ANNOUNCED) return 0;
    describe(r->type, out.type, sizeof out.type);
    int rc = r->peer->ep.am_short(&r->peer->ep, AM_SIGNATURE, 0, 0, &out, sizeof out);
    if (!rc) r->course |= REQ_ANNOUNCED;
    return rc;
}

int pt_check_receive(const struct request *r, int32_t source, int32_t tag, uint64_t bytes)
{
    char type[sizeof arrived.type];
    if (!has_arrived || arrived.untyped || r->type->untyped || bytes > (uint64_t)r->bytes) return 0;
    if (arrived.elements <= r->count * r->type->elements && signature_of_first(r->type, arrived.elements).hash == arrived.hash) return 0;
    describe(r->type, type, sizeof type);
    err_set(TERN_ERR_TYPE,
            "the types do not match: rank %d sent %lld of %.*s, rank %d of this communicator receives up to %lld of %s (tag %d%s)",
            source, (long long)arrived.count, (int)sizeof arrived.type, arrived.type, r->comm->rank, (long long)r->count, type, tag,
            r->ctx & CTX_COLL ? ", inside a collective operation" : "");
    return err_keep(r, TERN_ERR_TYPE);
}
