/* port_test.c - rules of src/dpm/port.h: a name says what was written; one that was cut, mistyped or made up is none. */
#include "../seed.h"
#include "base/err.h"
#include "dpm/port.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <ctype.h>
#include <mpi.h>
#include <string.h>

static uint64_t seed;
static uint64_t below(uint64_t n) { return seed_next(&seed) % n; }

static struct port any_port(void)
{
    struct port p = {.card_bytes = 1 + below(DGRAM_CARD)};
    for (size_t i = 0; i < p.card_bytes; i++) p.card[i] = (uint8_t)below(256);
    for (size_t i = 0; i < CRYPTO_KEY; i++) p.key[i] = (uint8_t)below(256);
    return p;
}

static void assert_none(const char *name)
{
    struct port p;
    assert_int_equal(port_read(name, &tern_crypto_sodium, &p), TERN_ERR_PORT);
    assert_non_null(strstr(err_words(), "port"));
}

static void round_trip(void **state)
{
    char name[PORT_NAME];
    size_t longest = 0;
    (void)state;
    for (int i = 0; i < 2000; i++) {
        struct port p = any_port(), q;
        if (i == 0) p.card_bytes = DGRAM_CARD;
        port_write(&p, &tern_crypto_sodium, name);
        assert_int_equal(port_read(name, &tern_crypto_sodium, &q), 0);
        assert_int_equal(q.card_bytes, p.card_bytes);
        assert_memory_equal(q.card, p.card, p.card_bytes);
        assert_memory_equal(q.key, p.key, CRYPTO_KEY);
        if (strlen(name) > longest) longest = strlen(name);
        for (const char *c = name; *c; c++) assert_true(isgraph((unsigned char)*c)); /* as a word of a shell, or a line of a file */
    }
    assert_true(longest < PORT_NAME && longest < MPI_MAX_PORT_NAME);
}

static void damaged(void **state)
{
    char name[PORT_NAME], bad[PORT_NAME + 2];
    struct port p = any_port();
    (void)state;
    port_write(&p, &tern_crypto_sodium, name);
    size_t n = strlen(name);
    for (size_t cut = 0; cut < n; cut++) {
        snprintf(bad, sizeof bad, "%.*s", (int)cut, name);
        assert_none(bad);
        assert_none(name + cut + 1);
    }
    for (size_t i = 0; i < n; i++)
        for (const char *c = "0f:zG \n"; *c; c++) {
            strcpy(bad, name);
            if (bad[i] == *c) continue;
            bad[i] = *c;
            assert_none(bad);
        }
    for (const char *c = "0: a"; *c; c++) {
        snprintf(bad, sizeof bad, "%s%c", name, *c);
        assert_none(bad);
    }
    char twice[2 * PORT_NAME];
    snprintf(twice, sizeof twice, "%s%s", name, name);
    assert_none(twice);
}

/* A version that is not known is said to be so. */
static void versions(void **state)
{
    char name[PORT_NAME];
    struct port p = any_port();
    (void)state;
    port_write(&p, &tern_crypto_sodium, name);
    assert_int_equal(name[4], '0' + PORT_VERSION);
    name[4] = '9';
    assert_none(name);
    assert_non_null(strstr(err_words(), "another version"));
}

static void made_up(void **state)
{
    static const char *const none[] = {"", "tern", "tern1", "tern1:", "tern1::", "tern1:::", "tern1::::", "tern2:00:00:00", "tern-1:00:00:00",
                                       "tern1:0:0:0", "tern99999:00:00:00", "tag#0$description#host$", "1234.0;tcp://10.0.0.1:4000:300"};
    char name[4000];
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(none); i++) assert_none(none[i]);
    for (int i = 0; i < 2000; i++) {
        size_t n = below(sizeof name);
        int from = snprintf(name, sizeof name, "%s", below(2) ? "tern1:" : "");
        for (size_t k = (size_t)from; k < n; k++) name[k] = below(4) ? "0123456789abcdef:"[below(17)] : (char)(1 + below(255));
        name[n > (size_t)from ? n : (size_t)from] = 0;
        assert_none(name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(damaged),
        cmocka_unit_test(versions),
        cmocka_unit_test(made_up),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    seed = seed_open();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
