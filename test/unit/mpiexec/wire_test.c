/* wire_test.c - what other processes send: numbers and texts, the description of a job, a daemon's boot text. All that
 * comes out again is what went in; whatever else comes in does no harm. */
#include "mpiexec/boot.h"
#include "mpiexec/describe.h"
#include "mpiexec/wire.h"
#include "mpiexec/words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static unsigned seed;

/* Bytes at the very end of an allocation, so that a step beyond is noticed by a checker. */
static uint8_t *exact(const void *bytes, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    if (n) memcpy(copy, bytes, n);
    return copy;
}

/* ---- numbers and texts ---- */

static void put_some(struct wire_out *w)
{
    struct strv list = {0};
    strv_push(&list, "one");
    strv_push(&list, "");
    wire_put8(w, 200);
    wire_put32(w, 0xdeadbeef);
    wire_put64(w, UINT64_MAX - 1);
    wire_put_text(w, "text");
    wire_put_text(w, "");
    wire_put_text(w, NULL);
    wire_put_list(w, &list);
    wire_put_raw(w, "raw", 3);
    strv_free(&list);
}

static void test_round_trip(void **state)
{
    struct wire_out out = {0};
    char raw[3];
    (void)state;
    put_some(&out);
    struct wire_in in = wire_of(out.bytes, out.n);
    assert_int_equal(wire_get8(&in), 200);
    assert_int_equal(wire_get32(&in), 0xdeadbeef);
    assert_true(wire_get64(&in) == UINT64_MAX - 1);
    char *text = wire_get_text(&in), *empty = wire_get_text(&in);
    assert_string_equal(text, "text");
    assert_string_equal(empty, "");
    assert_null(wire_get_text(&in));
    struct strv list = {0};
    wire_get_list(&in, &list);
    assert_int_equal(list.n, 2);
    assert_string_equal(list.v[0], "one");
    assert_string_equal(list.v[1], "");
    assert_false(wire_done(&in));
    wire_get_raw(&in, raw, 3);
    assert_memory_equal(raw, "raw", 3);
    assert_true(wire_done(&in));
    strv_free_all(&list);
    free(text);
    free(empty);
    wire_free(&out);
}

static void test_network_order(void **state)
{
    struct wire_out out = {0};
    (void)state;
    wire_put32(&out, 0x01020304);
    assert_memory_equal(out.bytes, "\1\2\3\4", 4);
    wire_free(&out);
}

static void test_missing_bytes(void **state)
{
    static const uint8_t long_text[] = {0, 0, 0, 9, 'x'}, zero_inside[] = {0, 0, 0, 2, 'x', 0},
                         many[] = {0, 16, 0, 0, 1};
    struct wire_in in = wire_of(long_text, sizeof long_text);
    struct strv list = {0};
    (void)state;
    char *text = wire_get_text(&in);
    assert_string_equal(text, "");
    assert_true(in.bad);
    assert_int_equal(wire_get32(&in), 0); /* and stays so */
    free(text);
    in = wire_of(zero_inside, sizeof zero_inside);
    free(wire_get_text(&in));
    assert_true(in.bad);
    in = wire_of(many, sizeof many);
    wire_get_list(&in, &list);
    assert_true(in.bad);
    assert_int_equal(list.n, 0);
    in = wire_of(many, sizeof many);
    assert_int_equal(wire_get_count(&in, 1), 0);
    assert_true(in.bad);
}

/* ---- the description of a job ---- */

static struct job *sample(struct spec *s)
{
    static struct job j;
    static struct app_spec specs[2];
    static struct app apps[2];
    static struct node nodes[3] = {
        {.name = "first.example.org", .slots = 4}, {.name = "::1", .own = true}, {.name = "x"}};
    if (j.size) return &j;
    *s = (struct spec){
        .apps = specs,
        .napps = 2,
        .size = 5,
        .slots = 9,
        .usize = 7,
        .place = {.map = UNIT_SOCKET,
                  .per_unit = 2,
                  .bind_said = true,
                  .bind = UNIT_CORE,
                  .width = 3,
                  .user = "0,1",
                  .cpu_set = "2-3",
                  .cpu_each = true,
                  .hwthreads = true,
                  .order = RANK_BY_UNIT,
                  .order_unit = UNIT_NUMA,
                  .order_fill = true,
                  .report = true},
        .out = {.merge = true},
        .rankfile = {.path = "ranks"},
        .in = {.kind = IN_RANK, .rank = 3},
        .launcher = {
            .kind = "ssh", .exec = "an agent", .command = "'/bin/mpiexec' --tern-daemon", .width = 2, .seconds = 60}};
    specs[0] = (struct app_spec){.n = 2, .wdir = "/w", .pset = "set"};
    specs[1] = (struct app_spec){.n = 3, .path = "/a:/b"};
    strv_push(&specs[0].argv, "prog");
    strv_push(&specs[0].argv, "an argument");
    strv_push(&specs[1].argv, "other");
    for (int i = 0; i < 2; i++) {
        apps[i].spec = &specs[i];
        strv_push(&apps[i].env, "A=1");
        strv_push(&apps[i].env, "PATH=/bin");
    }
    j = (struct job){.spec = s, .name = "tern.1.2", .size = 5, .apps = apps, .nodes = nodes, .nnodes = 3, .root = true};
    memset(j.key, 'k', sizeof j.key);
    memset(j.secret, 's', sizeof j.secret);
    launch_make_ranks(&j);
    for (int r = 0; r < j.size; r++) j.ranks[r].node = r % 3;
    j.ranks[3].slots = "1:0";
    launch_number_locals(&j);
    return &j;
}

static void test_description(void **state)
{
    static struct spec in_spec;
    struct spec spec = {0};
    struct job job = {0}, *j = sample(&in_spec);
    struct wire_out w = {0};
    char *cwd;
    (void)state;
    describe_job(&w, j, "/where");
    assert_null(memmem(w.bytes, w.n, "kkkkkkkk", 8)); /* no key is ever sent */
    assert_null(memmem(w.bytes, w.n, "ssssssss", 8));
    assert_null(describe_parse(&job, &spec, &cwd, 2, w.bytes, w.n));
    assert_string_equal(cwd, "/where");
    assert_string_equal(job.name, "tern.1.2");
    assert_int_equal(job.node, 2);
    assert_false(job.root);
    assert_int_equal(job.size, 5);
    assert_int_equal(job.nnodes, 3);
    assert_string_equal(job.nodes[0].name, "first.example.org");
    assert_int_equal(job.nodes[0].slots, 4);
    assert_true(job.nodes[1].own && !job.nodes[2].own);
    assert_int_equal(job.nodes[1].nranks, 2);
    assert_int_equal(job.nodes[1].ranks[1], 4);
    assert_int_equal(job.ranks[4].local, 1);
    assert_int_equal(job.ranks[4].appnum, 1);
    assert_int_equal(spec.napps, 2);
    assert_string_equal(spec.apps[0].argv.v[1], "an argument");
    assert_string_equal(spec.apps[0].wdir, "/w");
    assert_null(spec.apps[1].wdir);
    assert_string_equal(job.apps[1].env.v[1], "PATH=/bin");
    assert_null(job.apps[1].env.v[2]);
    assert_string_equal(spec.launcher.exec, "an agent");
    assert_null(spec.launcher.iface);
    assert_int_equal(spec.launcher.width, 2);
    assert_int_equal(spec.place.map, UNIT_SOCKET);
    assert_string_equal(spec.place.user, "0,1");
    assert_string_equal(spec.place.cpu_set, "2-3");
    assert_true(spec.place.cpu_each && spec.place.hwthreads && spec.place.order_fill && spec.out.merge);
    assert_int_equal(spec.place.order, RANK_BY_UNIT);
    assert_int_equal(spec.place.order_unit, UNIT_NUMA);
    assert_string_equal(job.ranks[3].slots, "1:0");
    assert_null(job.ranks[4].slots);
    assert_int_equal(spec.in.rank, 3);
    assert_int_equal(spec.slots, 9);
    describe_free(&job, &spec);
    free(cwd);
    wire_free(&w);
}

static const char *try(const void *bytes, size_t n, int node)
{
    struct spec spec = {0};
    struct job job = {0};
    char *cwd;
    uint8_t *copy = exact(bytes, n);
    const char *why = describe_parse(&job, &spec, &cwd, node, copy, n);
    free(copy);
    if (!why) assert_true(job.size > 0 && job.ranks[job.size - 1].node < job.nnodes);
    if (why) assert_true(!job.ranks && !spec.apps && !cwd);
    describe_free(&job, &spec);
    free(cwd);
    words_verbose = false;
    return why;
}

static void test_damaged_description(void **state)
{
    static struct spec in_spec;
    struct wire_out w = {0};
    (void)state;
    describe_job(&w, sample(&in_spec), NULL);
    assert_null(try(w.bytes, w.n, 0));
    assert_non_null(try(w.bytes, w.n, 1)); /* the root's own */
    assert_non_null(try(w.bytes, w.n, 3));
    for (size_t n = 0; n < w.n; n++) assert_non_null(try(w.bytes, n, 0));
    for (int round = 0; round < 4000; round++) {
        uint8_t *bytes = exact(w.bytes, w.n);
        for (int k = rand_r(&seed) % 3; k >= 0; k--) bytes[(size_t)rand_r(&seed) % w.n] = (uint8_t)rand_r(&seed);
        try(bytes, w.n, 0);
        free(bytes);
    }
    wire_free(&w);
}

/* ---- boot text ---- */

static void test_boot_text(void **state)
{
    struct boot b = {.node = 4, .vertex = 3, .parent = 1, .seconds = 60}, c;
    (void)state;
    for (int i = 0; i < CRYPTO_KEY; i++) b.key[i] = (uint8_t)(200 + i);
    boot_addresses(&b, NULL, 12345);
    assert_true(b.naddresses > 0);
    char *text = boot_text(&b);
    assert_null(boot_parse(&c, text, strlen(text)));
    assert_memory_equal(c.key, b.key, CRYPTO_KEY);
    assert_true(c.node == 4 && c.vertex == 3 && c.parent == 1 && c.seconds == 60);
    assert_int_equal(c.naddresses, b.naddresses);
    char *again = boot_text(&c);
    assert_string_equal(text, again);
    for (size_t n = 0; n < strlen(text) - 1; n++) assert_non_null(boot_parse(&c, text, n));
    for (int round = 0; round < 4000; round++) {
        uint8_t *bytes = exact(text, strlen(text));
        for (int k = rand_r(&seed) % 3; k >= 0; k--)
            bytes[(size_t)rand_r(&seed) % strlen(text)] = (uint8_t)rand_r(&seed);
        const char *why = boot_parse(&c, (char *)bytes, strlen(text));
        if (!why) assert_true(c.naddresses > 0 && c.naddresses <= BOOT_ADDRESSES && c.vertex > c.parent);
        free(bytes);
    }
    free(again);
    free(text);
}

static void test_boot_address_families(void **state)
{
    static const char head[] = "tern-daemon 1\nkey 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
                               "place 0 1 0\nseconds 5\n";
    static const struct {
        const char *address;
        bool good;
    } cases[] = {{"10.0.0.1 80", true},     {"fd77::1 65535", true},  {"10.0.0.1 0", false},
                 {"10.0.0.1 65536", false}, {"host 80", false},       {"10.0.0.1", false},
                 {"10.0.0.1 80 x", false},  {"10.0.0.1.5 80", false}, {"fe80::1%eth0 9", false}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct boot b;
        char text[256];
        snprintf(text, sizeof text, "%saddress %s\nend\n", head, cases[i].address);
        assert_true(!boot_parse(&b, text, strlen(text)) == cases[i].good);
    }
}

int main(void)
{
    const char *given = getenv("TERN_TEST_SEED");
    seed = given ? (unsigned)strtoul(given, NULL, 10) : (unsigned)time(NULL);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    printf("# TERN_TEST_SEED=%u\n", seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),           cmocka_unit_test(test_network_order),
        cmocka_unit_test(test_missing_bytes),        cmocka_unit_test(test_description),
        cmocka_unit_test(test_damaged_description),  cmocka_unit_test(test_boot_text),
        cmocka_unit_test(test_boot_address_families)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
