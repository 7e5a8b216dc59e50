/* message.c - see message.h. */
#include "dpm/message.h"
#include "base/err.h"
#include "proc/ask.h"

#include <stdlib.h>

#define FIRST 64 /* bytes of what is not table nor words, at most */

static bool tells_context(const struct dpm_message *s) { return s->kind == MESSAGE_HELLO || s->kind == MESSAGE_TABLE || s->kind == MESSAGE_MEET; }

static void put_address(struct ask_out *o, const struct net_addr *a)
{
    ask_put32(o, a->family);
    ask_put32(o, a->port);
    ask_put(o, a->bytes, sizeof a->bytes);
}

void *message_write(const struct dpm_message *s, size_t *n_p)
{
    size_t room = FIRST + MESSAGE_WORDS + (s->table ? s->bytes : 0);
    struct ask_out o = {.bytes = malloc(room), .room = room};
    if (!o.bytes) return NULL;
    ask_put32(&o, s->kind);
    if (tells_context(s)) {
        ask_put64(&o, s->ctx);
        ask_put64(&o, s->bytes);
    }
    if (s->table) ask_put(&o, s->table, s->bytes);
    if (s->kind == MESSAGE_MEET) put_address(&o, &s->at);
    if (s->kind == MESSAGE_NO) {
        ask_put32(&o, (uint32_t)-s->code);
        ask_put_text(&o, s->words);
    }
    *n_p = o.n;
    return o.bytes;
}

static void get_address(struct ask_in *in, struct net_addr *a)
{
    uint32_t family = ask_get32(in), port = ask_get32(in);
    const void *bytes = ask_get(in, sizeof a->bytes);
    if (!bytes || (family != 4 && family != 6) || !port || port > 65535) {
        in->bad = true;
        return;
    }
    a->family = (uint8_t)family;
    a->port = (uint16_t)port;
    memcpy(a->bytes, bytes, sizeof a->bytes);
}

static void get_table(struct ask_in *in, struct dpm_message *s)
{
    s->ctx = ask_get64(in);
    s->bytes = ask_get64(in);
    if (!s->bytes || s->bytes > MESSAGE_TABLE_MAX) in->bad = true;
    if (s->kind == MESSAGE_MEET || (s->kind == MESSAGE_HELLO && in->at == in->end)) return;
    s->table = ask_get(in, s->bytes);
}

static void get_no(struct ask_in *in, struct dpm_message *s)
{
    uint32_t code = ask_get32(in);
    s->words = ask_get_text(in, MESSAGE_WORDS);
    if (!code || code >= -TERN_ERR_LAST) in->bad = true;
    else s->code = -(int)code;
}

bool message_read(const void *bytes, size_t n, struct dpm_message *s)
{
    struct ask_in in = ask_of(bytes, n);
    uint32_t kind = ask_get32(&in);
    *s = (struct dpm_message){.kind = kind};
    if (kind < MESSAGE_HELLO || kind > MESSAGE_MEET) return false;
    if (tells_context(s)) get_table(&in, s);
    if (kind == MESSAGE_MEET) get_address(&in, &s->at);
    if (kind == MESSAGE_NO) get_no(&in, s);
    return ask_done(&in);
}
