/*
 * dpm_fuzz.c - what connecting groups are told, made up or nearly right: names of ports (dpm/port.h), messages of roots (message.h), tables
 * (table.h). It is refused, or all that is read lies within; no name is taken that was changed.
 */
#include "fuzz.h"

#include "base/err.h"
#include "dpm/port.h"
#include "dpm/message.h"
#include "dpm/table.h"

#include <stdlib.h>
#include <string.h>

enum { MEMBERS = 40, ROOM = 20000 };

/* ---- ports ---- */

static void ports(void)
{
    struct port p = {.card_bytes = 1 + fuzz_below(DGRAM_CARD)}, q;
    char name[PORT_NAME + 1], was[PORT_NAME + 1];
    fuzz_bytes(p.card, p.card_bytes);
    fuzz_bytes(p.key, sizeof p.key);
    memset(name, 0, sizeof name);
    port_write(&p, &tern_crypto_sodium, name);
    FUZZ_RULE(!port_read(name, &tern_crypto_sodium, &q) && !memcmp(q.key, p.key, sizeof p.key), "a name is read as it was written");
    memcpy(was, name, sizeof was);
    if (fuzz_below(2)) fuzz_mutate((uint8_t *)name, strlen(name));
    else name[fuzz_below(strlen(name))] = 0;
    name[PORT_NAME] = 0;
    if (strcmp(name, was)) FUZZ_RULE(port_read(name, &tern_crypto_sodium, &q) == TERN_ERR_PORT, "a changed name is none");
}

/* ---- messages ---- */

/* Reads from memory that ends with the bytes. */
static void read_message(const uint8_t *bytes, size_t n)
{
    uint8_t *own = malloc(n + !n);
    struct dpm_message s;
    if (!own) abort();
    memcpy(own, bytes, n);
    if (message_read(own, n, &s)) {
        const uint8_t *table = s.table;
        FUZZ_RULE(!table || (table >= own && s.bytes <= n && table + s.bytes == own + n), "a table lies within");
        FUZZ_RULE(s.kind != MESSAGE_NO || (s.code < 0 && s.code > TERN_ERR_LAST && strlen(s.words) < MESSAGE_WORDS), "a refusal has code and words");
        FUZZ_RULE(s.kind != MESSAGE_MEET || (s.at.port && (s.at.family == 4 || s.at.family == 6)), "an address is one");
        FUZZ_RULE(s.kind == MESSAGE_NO || s.kind == MESSAGE_THANKS || (s.bytes && s.bytes <= MESSAGE_TABLE_MAX), "a table has a length");
    }
    free(own);
}

static void message(void)
{
    uint8_t table[300];
    struct dpm_message s = {.kind = (enum dpm_message_kind)(MESSAGE_HELLO + fuzz_below(5)), .ctx = fuzz_random(), .code = -1 - (int)fuzz_below(30),
                    .words = "why", .bytes = 1 + fuzz_below(sizeof table), .at = {.family = 4, .port = 4000}}, r;
    size_t n = 0;
    fuzz_bytes(table, sizeof table);
    if (s.kind == MESSAGE_TABLE || (s.kind == MESSAGE_HELLO && fuzz_below(2))) s.table = table;
    uint8_t *bytes = message_write(&s, &n);
    if (!bytes) abort();
    FUZZ_RULE(message_read(bytes, n, &r) && r.kind == s.kind && !r.table == !s.table, "what was sent is received");
    FUZZ_RULE(!s.table || (r.bytes == s.bytes && !memcmp(r.table, table, s.bytes)), "with its table");
    read_message(bytes, fuzz_below(n));
    fuzz_mutate(bytes, n);
    read_message(bytes, n);
    fuzz_bytes(bytes, n);
    read_message(bytes, n);
    free(bytes);
}

/* ---- tables ---- */

static size_t make_table(uint8_t *to)
{
    static const uint8_t public[CRYPTO_KEY];
    static uint8_t card[MEMBERS][CARD_MAX];
    struct table_job job[2] = {{"one", MEMBERS, public}, {"two", MEMBERS, public}};
    struct table_entry e[MEMBERS];
    uint32_t n = 1 + (uint32_t)fuzz_below(MEMBERS);
    void *bytes = NULL;
    size_t len = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t like = i && fuzz_below(4) ? (uint32_t)fuzz_below(i) : i, length = like == i ? 1 + (uint32_t)fuzz_below(200) : e[like].card_bytes;
        if (like == i) fuzz_bytes(card[i], CARD_MAX);
        else memcpy(card[i], card[like], CARD_MAX);
        fuzz_bytes(card[i] + fuzz_below(100), 6);
        e[i] = (struct table_entry){fuzz_below(8) ? 0 : 1, i, (uint32_t)fuzz_below(3), length, card[i]};
    }
    if (table_write(job, 2, e, n, (uint32_t)fuzz_below(n), (uint32_t)fuzz_below(20), &bytes, &len) || len > ROOM) return free(bytes), 0;
    memcpy(to, bytes, len);
    free(bytes);
    return len;
}

/* All that a process does with a table that is accepted. */
static void use(const struct table *t, void *memory)
{
    struct card_pack *p = card_pack_open(memory, t->cards, t->card_bytes);
    uint32_t members = 0, place = 0;
    uint8_t card[CARD_MAX];
    if (!p) abort();
    for (uint32_t i = 0; i < t->runs; i++) {
        struct table_run r = table_run(t, i);
        FUZZ_RULE(r.job < t->jobs && r.count && (uint64_t)r.first + r.count <= t->job[r.job].size, "members are processes of their jobs");
        for (uint32_t k = 0; k < r.count; k++, members++, place = card_pack_next(p, place)) {
            size_t n = card_pack_get(p, place, card);
            FUZZ_RULE(n && n <= CARD_MAX, "a card has a length");
        }
    }
    FUZZ_RULE(members == t->size && place == t->card_bytes && t->root < t->size, "so many members, and nothing else");
    (void)table_root(t);
    card_pack_unref(p);
}

static void open_table(const uint8_t *bytes, size_t n)
{
    uint8_t *own = malloc(n + !n);
    struct table t;
    if (!own) abort();
    memcpy(own, bytes, n);
    if (table_open(&t, own, n)) {
        FUZZ_RULE(err_code() == TERN_ERR_SYSTEM && *err_words(), "what is no table is said to be none");
        free(own);
        return;
    }
    use(&t, own);
    table_close(&t);
}

static void tables(void)
{
    uint8_t bytes[ROOM];
    size_t n = make_table(bytes);
    if (!n) return;
    open_table(bytes, n);
    open_table(bytes, fuzz_below(n));
    fuzz_mutate(bytes, n);
    open_table(bytes, n);
    fuzz_mutate(bytes, n < 24 ? n : 24); /* the numbers at its beginning */
    open_table(bytes, n);
    fuzz_bytes(bytes, n);
    open_table(bytes, n);
}

int main(void)
{
    static const struct fuzz_part parts[] = {
        {"a changed name of a port is none", ports, 2},
        {"a message of a root is received as it was sent, or refused", message, 1},
        {"tables are read within their limits, or refused", tables, 2},
    };
    return fuzz_main(parts, sizeof parts / sizeof *parts, 100000);
}
