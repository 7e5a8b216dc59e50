/* select_test.c - there is an algorithm for every shape; the variables list exactly the algorithms there are, and decide. */
#include "coll/select.h"

#include "base/var.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static struct coll_shape shape(int kind, int size, int64_t bytes, unsigned flags)
{
    return (struct coll_shape){.kind = (uint8_t)kind, .size = size, .bytes = bytes, .flags = (uint16_t)flags, .grain = 1};
}

static void always_something(void **state)
{
    (void)state;
    static const int64_t bytes[] = {0, 1, 255, 256, 4095, 4096, 65535, 65536, 1 << 20, INT64_C(1) << 40};
    static const unsigned flags[] = {0, COLL_ORDERED, COLL_EXACT, COLL_IN_PLACE | COLL_ORDERED};
    for (int kind = 0; kind < COLL_KINDS; kind++)
        for (int size = 1; size <= 130; size++)
            for (size_t b = 0; b < ARRAY_LEN(bytes); b++)
                for (size_t f = 0; f < ARRAY_LEN(flags); f++) {
                    struct coll_shape s = shape(kind, size, bytes[b], flags[f]);
                    coll_select(&s, NULL);
                    assert_true(coll_alg_fits(s.alg, &s));
                    assert_true(s.segment > 0);
                }
}

/* Between two groups, which must both choose the same, whatever each sees: its own size, and the two directions. */
static void groups_agree(void **state)
{
    (void)state;
    for (int kind = 0; kind < COLL_SCAN; kind++)
        for (int n = 1; n <= 80; n += 3)
            for (int m = 1; m <= 80; m += 7)
                for (int64_t bytes = 1; bytes < 1 << 20; bytes *= 8) {
                    struct coll_shape a = shape(kind, n, bytes, COLL_ORDERED), b = shape(kind, m, bytes, COLL_ORDERED);
                    a.remote = m, b.remote = n;
                    if (kind == COLL_ALLGATHER || kind == COLL_ALLTOALL) a.from = b.bytes = 10 * bytes, b.from = bytes;
                    if (kind == COLL_ALLGATHERV) b.bytes = 1 << 20;
                    if (kind == COLL_REDUCE_SCATTER_BLOCK) a.bytes = bytes * m, b.bytes = bytes * n;
                    a.nodes = 1 + n % 3, b.nodes = 1 + m % 2;
                    a.domains = n, b.domains = 2 * b.nodes;
                    coll_select(&a, NULL);
                    coll_select(&b, NULL);
                    assert_int_equal(a.alg, b.alg);
                    assert_true(coll_alg_fits(a.alg, &a) && (coll_algs[a.alg].flags & ALG_INTER));
                }
}

static const struct var *variable(int kind, enum var_id *id)
{
    char name[64] = "TERN_COLL_";
    for (const char *p = coll_kind_name((enum coll_kind)kind); *p; p++)
        name[strlen(name)] = (char)(*p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p);
    for (int i = 0; i < VAR_COUNT; i++)
        if (strcmp(var_table[i].name, name) == 0) {
            *id = (enum var_id)i;
            return &var_table[i];
        }
    fail_msg("no variable %s", name);
    return NULL;
}

/* As the user does it; NULL: not at all. */
static void set(const char *name, const char *value)
{
    assert_int_equal(value ? setenv(name, value, 1) : unsetenv(name), 0);
    var_close();
    assert_int_equal(var_open(), 0);
}

static void variables(void **state)
{
    (void)state;
    for (int kind = 0; kind < COLL_KINDS; kind++) {
        char words[512] = "auto";
        enum var_id id = VAR_COUNT;
        const struct var *v = variable(kind, &id);
        for (int i = 0; i < coll_algs_count; i++) {
            if ((int)coll_algs[i].kind != kind) continue;
            strcat(strcat(words, "|"), coll_algs[i].name);
            assert_int_equal(var_set(id, coll_algs[i].name), 0);
            struct coll_shape s = shape(kind, 8, 100, COLL_EXACT);
            s.remote = coll_algs[i].flags & ALG_INTER ? 3 : 0;
            s.nodes = 2;
            s.domains = 4;
            coll_select(&s, NULL);
            assert_int_equal(s.alg, i);
            s = shape(kind, 7, 100, COLL_ORDERED); /* not where it would be wrong */
            coll_select(&s, NULL);
            assert_true(coll_alg_fits(s.alg, &s));
        }
        for (int w = COLL_WAY_SLOTS; w < COLL_WAYS; w++) {
            if (!coll_way_is_of((enum coll_way)w, (enum coll_kind)kind, COLL_CALLS_ANY)) continue;
            strcat(strcat(words, "|"), coll_ways[w].name);
            set(v->name, coll_ways[w].name);
            struct coll_shape s = shape(kind, 8, 100, 0);
            struct coll_way_list l;
            assert_int_equal(coll_select_ways(&s, true, NULL, &l), 0);
            assert_true(w == COLL_WAY_MESSAGES ? l.n == 0 : l.way[0] == w);
            assert_int_equal(coll_select(&s, NULL), 0); /* by rules */
            assert_true(coll_alg_fits(s.alg, &s));
        }
        set(v->name, NULL);
        assert_string_equal(v->def, words);
    }
}

/* What crosses a network has rules of its own, where there are any; the others hold for the rest. */
static void far_away(void **state)
{
    (void)state;
    struct coll_shape near = shape(COLL_ALLTOALL, 16, 1000, 0), far = shape(COLL_ALLTOALL, 16, 1000, COLL_FAR);
    coll_select(&near, NULL);
    coll_select(&far, NULL);
    assert_string_equal(coll_algs[near.alg].name, "direct");
    assert_string_equal(coll_algs[far.alg].name, "bruck");
    near = shape(COLL_BCAST, 16, 1000, 0), far = shape(COLL_BCAST, 16, 1000, COLL_FAR);
    far.nodes = 4;
    coll_select(&far, NULL);
    assert_string_equal(coll_algs[far.alg].name, "leaders");
    far.nodes = 16; /* a rank on each */
    coll_select(&near, NULL);
    coll_select(&far, NULL);
    assert_int_equal(near.alg, far.alg);
}

/* Few messages where all ranks share cores, if there are more than a few ranks. */
static void oversubscribed(void **state)
{
    (void)state;
    const enum coll_kind kind[] = {COLL_BCAST, COLL_REDUCE};
    for (int i = 0; i < 2; i++) {
        struct coll_shape own = shape(kind[i], 8, 65536, 0), shared = shape(kind[i], 8, 65536, COLL_OVERSUBSCRIBED);
        coll_select(&own, NULL);
        coll_select(&shared, NULL);
        assert_string_not_equal(coll_algs[own.alg].name, "binomial");
        assert_string_equal(coll_algs[shared.alg].name, "binomial");
    }
}

/* Leaders of domains, where there are many ranks and several in a domain. */
static void domains(void **state)
{
    (void)state;
    for (int nodes = 1; nodes <= 2; nodes++) {
        struct coll_shape s = shape(COLL_ALLREDUCE, 64, 1000, nodes > 1 ? COLL_FAR : 0);
        s.nodes = nodes;
        s.domains = 8;
        coll_select(&s, NULL);
        assert_string_equal(coll_algs[s.alg].name, "domain_leaders");
        s.domains = 64; /* a rank in each */
        coll_select(&s, NULL);
        assert_string_equal(coll_algs[s.alg].name, nodes > 1 ? "leaders" : "doubling");
        s.domains = 8;
        s.flags |= COLL_ORDERED | COLL_SHUFFLED;
        coll_select(&s, NULL);
        assert_string_equal(coll_algs[s.alg].name, nodes > 1 ? "leaders" : "doubling");
    }
}

/* The hints of a communicator come first; what is no hint, or names no algorithm, is not one. */
static void hints(void **state)
{
    (void)state;
    struct coll_choice wanted[COLL_KINDS];
    struct info *i = info_new();
    assert_true(coll_select_hint("tern_coll_bcast", "chain segment 2K"));
    assert_false(coll_select_hint("tern_coll_bcast", "quick"));
    assert_false(coll_select_hint("tern_coll_broadcast", "chain"));
    assert_false(coll_select_hint("bcast", "chain"));
    assert_int_equal(info_set(i, "tern_coll_bcast", "chain segment 2K"), 0);
    assert_int_equal(info_set(i, "tern_coll_reduce", "chain of command"), 0);
    coll_select_hints(i, wanted);
    info_free(i);
    struct coll_shape s = shape(COLL_BCAST, 8, 100, 0);
    coll_select(&s, wanted);
    assert_string_equal(coll_algs[s.alg].name, "chain");
    assert_int_equal(s.segment, 2048);
    assert_int_equal(coll_select_forced(wanted), 1u << COLL_BCAST);
    assert_int_equal(coll_select_forced(NULL), 0);
}

static bool by_messages(int size, int64_t bytes)
{
    struct coll_shape s = shape(COLL_BCAST, size, bytes, 0);
    struct coll_way_list l;
    assert_int_equal(coll_select_ways(&s, true, NULL, &l), 0);
    return l.n == 0;
}

/* Hints can name a way; it is the first then, and messages are the only one. */
static void hints_for_ways(void **state)
{
    (void)state;
    struct coll_choice wanted[COLL_KINDS];
    struct coll_shape s = shape(COLL_BCAST, 4, 40000, 0), other = shape(COLL_REDUCE, 4, 40000, 0);
    struct coll_way_list l;
    struct info *i = info_new();
    assert_true(coll_select_hint("tern_coll_bcast", "wide slices 3"));
    assert_false(coll_select_hint("tern_coll_scan", "copy_once"));
    assert_int_equal(info_set(i, "tern_coll_bcast", "wide slices 3"), 0);
    assert_int_equal(info_set(i, "tern_coll_reduce", "messages"), 0);
    coll_select_hints(i, wanted);
    info_free(i);
    assert_int_equal(coll_select_ways(&s, true, wanted, &l), 0);
    assert_true(l.n == 3 && l.way[0] == COLL_WAY_WIDE && l.slices == 3 && l.way[1] == COLL_WAY_SLOTS && l.way[2] == COLL_WAY_ONCE);
    assert_int_equal(coll_select_ways(&other, false, wanted, &l), 0);
    assert_int_equal(l.n, 0);
    assert_int_equal(coll_select_forced(wanted), 0);
    assert_int_equal(coll_select_asked(wanted, true), 1u << COLL_BCAST | 1u << COLL_REDUCE);
    assert_int_equal(coll_select_asked(wanted, false), 1u << COLL_BCAST | 1u << COLL_REDUCE);
    assert_int_equal(coll_select(&s, wanted), 0);
    assert_string_equal(coll_algs[s.alg].name, "scatter");
}

/* A user's table may say that calls go by messages; the variable of its file is read at the start only. */
static void messages(void **state)
{
    (void)state;
    char path[64];
    int fd = memfd_create("table", 0);
    static const char text[] = "bcast ranks 4 from 1K : chain messages\nbcast : binomial\nbarrier : linear\n";
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    assert_int_equal(coll_select_asked(NULL, true), 0);
    assert_int_equal(var_set(VAR_COLL_TABLE, path), 0);
    coll_select_close();
    int rc = coll_select_open();
    close(fd);
    assert_int_equal(rc, 0);
    assert_int_equal(coll_select_asked(NULL, true), 1u << COLL_BCAST);
    assert_int_equal(coll_select_asked(NULL, false), 0);
    assert_true(by_messages(4, 2000));
    assert_false(by_messages(4, 1000));
    assert_false(by_messages(5, 2000));
    assert_int_equal(var_set(VAR_COLL_TABLE, ""), 0);
    coll_select_close();
    assert_int_equal(coll_select_open(), 0);
}

static void printable(void **state)
{
    (void)state;
    char *text = coll_select_print();
    for (int kind = 0; kind < COLL_KINDS; kind++) assert_non_null(strstr(text, coll_kind_name((enum coll_kind)kind)));
    assert_non_null(strstr(text, "bcast                  below 16K : binomial\n"));
    assert_non_null(strstr(text, "bcast                  from 16K : copy_once\n"));
    assert_non_null(strstr(text, "allgather              oversubscribed nonblocking ranks 9+ : messages\n"));
    struct coll_table again;
    assert_int_equal(coll_table_read(&again, text, "printed"), 0);
    coll_table_free(&again);
    free(text);
    text = coll_select_print_algs();
    for (int i = 0; i < coll_algs_count; i++) assert_non_null(strstr(text, coll_algs[i].meaning));
    for (int w = 0; w < COLL_WAYS; w++) assert_non_null(strstr(text, coll_ways[w].meaning));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(always_something),
        cmocka_unit_test(groups_agree),
        cmocka_unit_test(variables),
        cmocka_unit_test(far_away),
        cmocka_unit_test(oversubscribed),
        cmocka_unit_test(domains),
        cmocka_unit_test(hints),
        cmocka_unit_test(hints_for_ways),
        cmocka_unit_test(messages),
        cmocka_unit_test(printable),
    };
    if (var_open() || coll_select_open()) return 1;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("selection of algorithms", tests, NULL, NULL);
}
