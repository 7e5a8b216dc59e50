/* table_test.c - rules read from text decide as they say, come out as they went in, and what is wrong is said in words. */
#include "coll/table.h"

#include "base/err.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct coll_shape shape(int kind, int size, int64_t bytes)
{
    return (struct coll_shape){.kind = (uint8_t)kind, .size = size, .nodes = 1, .bytes = bytes, .grain = 1};
}

static const char *name_for(const struct coll_table *t, const struct coll_shape *s)
{
    const struct coll_rule *r = coll_table_find(t, s);
    return r ? coll_algs[r->use.alg].name : "none";
}

static struct coll_table read_table(const char *text)
{
    struct coll_table t;
    if (coll_table_read(&t, text, "test")) fail_msg("%s", err_words());
    return t;
}

static void ranks_and_bytes(void **state)
{
    (void)state;
    struct coll_table t = read_table("# a table\n\nbcast ranks 2-4 from 1K below 64K : chain radix 3 segment 2K # 12 us\n"
                                     "bcast ranks 9+ : scatter\n\tbcast  ranks 7 : binomial");
    assert_int_equal(t.n, 3);
    static const struct {
        int size;
        int64_t bytes;
        const char *name;
    } want[] = {{2, 1024, "chain"}, {4, 65535, "chain"}, {4, 65536, "none"}, {4, 1023, "none"}, {5, 2000, "none"},
                {9, 0, "scatter"}, {1000, 1 << 30, "scatter"}, {7, 5, "binomial"}, {8, 5, "none"}, {1, 2000, "none"}};
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        struct coll_shape s = shape(COLL_BCAST, want[i].size, want[i].bytes);
        assert_string_equal(name_for(&t, &s), want[i].name);
    }
    assert_int_equal(t.rule[0].use.radix, 3);
    assert_int_equal(t.rule[0].use.segment, 2048);
    assert_int_equal(t.rule[0].line, 3);
    coll_table_free(&t);
}

/* Comments have no bound: tern_tune writes the figures of many algorithms there. Rules have. */
static void long_lines(void **state)
{
    (void)state;
    enum { LONG = 5000 };
    static char text[LONG + 100];
    memset(text, 'x', LONG);
    text[0] = '#';
    strcpy(text + LONG, "\nbcast : chain");
    struct coll_table t = read_table(text);
    assert_int_equal(t.n, 1);
    assert_int_equal(t.rule[0].line, 2);
    coll_table_free(&t);
    text[0] = 'x';
    assert_int_equal(coll_table_read(&t, text, "test"), TERN_ERR_ARG);
    assert_non_null(strstr(err_words(), "line 1 is too long"));
}

static void domains(void **state)
{
    (void)state;
    struct coll_table t = read_table("bcast domain_leaders domains 9+ : domain_leaders\nbcast domain_leaders : chain\n"
                                     "bcast nodes 2-3 : linear\nbcast domains 2+ : scatter\nbcast : binomial\n");
    struct coll_shape s = shape(COLL_BCAST, 32, 100);
    assert_string_equal(name_for(&t, &s), "binomial");
    s.domains = 16;
    assert_string_equal(name_for(&t, &s), "domain_leaders");
    s.domains = 32; /* each rank in one of its own */
    assert_string_equal(name_for(&t, &s), "scatter");
    s.domains = 4;
    assert_string_equal(name_for(&t, &s), "chain");
    s.domains = 0; /* not known: the nodes */
    s.nodes = 3;
    assert_string_equal(name_for(&t, &s), "linear");
    s.nodes = 4;
    assert_string_equal(name_for(&t, &s), "scatter");
    coll_table_free(&t);
}

static void places_and_orders(void **state)
{
    (void)state;
    struct coll_table t = read_table("bcast oversubscribed : linear\nbcast near : binomial\nbcast leaders : scatter\nbcast far : chain\n"
                                     "reduce ordered : halving\nreduce commutes : chain\n");
    struct coll_shape s = shape(COLL_BCAST, 8, 100);
    assert_string_equal(name_for(&t, &s), "binomial");
    s.flags = COLL_OVERSUBSCRIBED;
    assert_string_equal(name_for(&t, &s), "linear");
    s.flags = COLL_FAR;
    assert_string_equal(name_for(&t, &s), "chain");
    s.nodes = 8; /* one rank on each */
    assert_string_equal(name_for(&t, &s), "chain");
    s.nodes = 3;
    assert_string_equal(name_for(&t, &s), "scatter");
    s = shape(COLL_REDUCE, 8, 100);
    assert_string_equal(name_for(&t, &s), "chain");
    s.flags = COLL_ORDERED;
    assert_string_equal(name_for(&t, &s), "halving");
    coll_table_free(&t);
}

/* Ranks of a gatherv know their own blocks only, and must choose alike. */
static void blocks_have_no_bytes(void **state)
{
    (void)state;
    struct coll_table t = read_table("gatherv below 1K : staged\ngatherv : linear\n");
    struct coll_shape small = shape(COLL_GATHERV, 8, 100), large = shape(COLL_GATHERV, 8, 10000);
    assert_string_equal(name_for(&t, &small), "staged");
    assert_string_equal(name_for(&t, &large), "staged");
    coll_table_free(&t);
}

/* An algorithm that cannot be used leaves the choice to later rules. */
static void what_does_not_fit(void **state)
{
    (void)state;
    struct coll_table t = read_table("allgather : doubling\nallgather : ring\n");
    struct coll_shape s = shape(COLL_ALLGATHER, 8, 100);
    assert_string_equal(name_for(&t, &s), "doubling");
    s.size = 7;
    assert_string_equal(name_for(&t, &s), "ring");
    coll_table_free(&t);
}

static const char *ways(const struct coll_table *t, const struct coll_shape *s, bool blocking)
{
    static char text[80];
    struct coll_way_list l = {0};
    bool end = coll_table_ways(t, s, blocking, &l);
    *text = 0;
    for (unsigned i = 0; i < l.n; i++) sprintf(text + strlen(text), "%s ", coll_ways[l.way[i]].name);
    return strcat(text, end ? "end" : "-");
}

/* Rules with ways are in the order in which they stand, each way once, and none behind messages; they do not choose algorithms. */
static void ways_in_order(void **state)
{
    (void)state;
    struct coll_table t = read_table("bcast from 1M : messages\nbcast oversubscribed : wide slices 4\n"
                                     "bcast nonblocking ranks 2-4 : copy_once\nbcast : chain\nbcast blocking from 16K : copy_once\n"
                                     "bcast : wide slices 2\nreduce : wide\nbcast : slots\n");
    struct coll_shape s = shape(COLL_BCAST, 4, 100), shared = s;
    struct coll_shape large = shape(COLL_BCAST, 8, 1 << 14), huge = shape(COLL_BCAST, 8, 1 << 20);
    shared.flags = COLL_OVERSUBSCRIBED;
    assert_string_equal(ways(&t, &s, true), "wide slots -");
    assert_string_equal(ways(&t, &s, false), "copy_once wide slots -");
    assert_string_equal(ways(&t, &large, true), "copy_once wide slots -");
    assert_string_equal(ways(&t, &large, false), "wide slots -");
    assert_string_equal(ways(&t, &huge, true), "end");
    struct coll_way_list l = {0};
    coll_table_ways(&t, &shared, true, &l);
    assert_true(l.n == 2 && l.way[0] == COLL_WAY_WIDE && l.slices == 4);
    assert_string_equal(name_for(&t, &huge), "chain");
    coll_table_free(&t);
}

/* What the first algorithm says of messages counts, for blocking calls. */
static void algorithms_by_messages(void **state)
{
    (void)state;
    struct coll_table t = read_table("bcast ranks 2-4 : binomial\nbcast : chain messages\nbcast : copy_once\n"
                                     "allgather : doubling messages\nallgather : wide\n");
    struct coll_shape few = shape(COLL_BCAST, 4, 100), more = shape(COLL_BCAST, 5, 100);
    assert_string_equal(ways(&t, &few, true), "copy_once -");
    assert_string_equal(ways(&t, &more, true), "end");
    assert_string_equal(ways(&t, &more, false), "copy_once -");
    few = shape(COLL_ALLGATHER, 4, 100), more = shape(COLL_ALLGATHER, 5, 100);
    assert_string_equal(ways(&t, &few, true), "end");
    assert_string_equal(ways(&t, &more, true), "wide -"); /* for which there is no doubling */
    coll_table_free(&t);
}

static void in_and_out(void **state)
{
    (void)state;
    static const char text[] = "bcast                  near ranks 2-4 from 1K below 3M : chain radix 3 segment 2G messages\n"
                               "reduce                 commutes ranks 5 below 100 : binomial\n"
                               "alltoall               leaders ranks 3+ : bruck\n"
                               "bcast                  domain_leaders ranks 3 nodes 2-4 domains 5+ : leaders\n"
                               "bcast                  near nonblocking from 2M : copy_once\n"
                               "allreduce              oversubscribed blocking ordered ranks 2 below 1K : wide slices 12\n"
                               "gatherv                : slots\n"
                               "scan                   nonblocking : messages\n";
    struct coll_table t = read_table(text);
    char *out = coll_table_print(&t);
    assert_string_equal(out, text);
    free(out);
    coll_table_free(&t);
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } bad[] = {
        {"broadcast : chain", "test, line 1: 'broadcast' is not a collective operation"},
        {"\nbcast : fast", "test, line 2: 'fast' is not an algorithm or way of bcast"},
        {"bcast chain", "'chain' is not a condition"},
        {"bcast ranks 4-2 : chain", "'4-2' is not a number of ranks"},
        {"bcast ranks 0 : chain", "'0' is not a number of ranks"},
        {"bcast ranks 99999999999 : chain", "is not a number of ranks"},
        {"bcast nodes 0 : chain", "'0' is not a number of nodes"},
        {"bcast domains 4-x : chain", "'4-x' is not a number of domains"},
        {"bcast ranks", "the end, where a number of ranks"},
        {"bcast from 1X : chain", "'1X' is not a size"},
        {"bcast below 99999999999G : chain", "is not a size"},
        {"bcast below -1 : chain", "'-1' is not a size"},
        {"bcast from 2K below 2K : chain", "empty range"},
        {"bcast : chain radix 1", "'1' is not a radix"},
        {"bcast : chain segment 0", "'0' is not a size"},
        {"bcast : chain quickly", "'quickly' is not 'radix', 'segment' or 'messages'"},
        {"bcast :", "the end, where an algorithm or way of bcast"},
        {"bcast", "the end, where a condition"},
        {"bcast near : chain\nbcast oversubscribed : scatter", "line 2: this rule of bcast never decides, since that of line 1 does first"},
        {"bcast : chain\nbcast far : scatter", "line 2: this rule of bcast never decides, since that of line 1 does first"},
        {"bcast nonblocking : wide", "'wide' is not a way of nonblocking bcast"},
        {"\nbcast blocking : chain", "line 2: 'chain' is not a way of blocking bcast"},
        {"scan : copy_once", "'copy_once' is not an algorithm or way of scan"},
        {"neighbor_allgather : slots", "'slots' is not an algorithm or way of neighbor_allgather"},
        {"bcast : wide slices 0", "'0' is not a number of slices"},
        {"bcast : wide slices", "the end, where a number of slices"},
        {"bcast : wide radix 2", "'radix' is not 'slices'"},
        {"bcast : copy_once slices 2", "'slices' is not the end of a rule for a way"},
        {"bcast : chain slices 2", "'slices' is not 'radix', 'segment' or 'messages'"},
        {"bcast blocking :", "the end, where a way of blocking bcast"},
        {"bcast : wide\nbcast near : wide slices 3", "line 2: this rule of bcast never decides, since that of line 1 does first"},
        {"bcast from 1K : messages\nbcast from 4K blocking : wide", "line 2: this rule"},
        {"bcast ranks 2-8 : chain\nbarrier : dissemination\nbcast ranks 4 below 1K : chain", "line 3: this rule"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct coll_table t;
        assert_int_equal(coll_table_read(&t, bad[i].text, "test"), TERN_ERR_ARG);
        if (!strstr(err_words(), bad[i].words)) fail_msg("'%s': %s", bad[i].text, err_words());
        assert_null(t.rule);
    }
}

/* What may look so, but does not: rules that others can come behind. */
static void not_hidden(void **state)
{
    (void)state;
    static const char *const good[] = {"bcast : chain\nbcast : wide\n",
                                       "bcast : messages\nbcast : chain\n",
                                       "bcast : chain messages\nbcast : copy_once\n",
                                       "bcast : wide slices 3\nbcast : wide\n",
                                       "bcast blocking : copy_once\nbcast : copy_once\n",
                                       "bcast blocking : messages\nbcast nonblocking : copy_once\n",
                                       "bcast : inter_linear messages\nbcast blocking : wide\n",
                                       "bcast : chain messages\nbcast blocking ranks 2-4 : wide\n"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct coll_table t = read_table(good[i]);
        assert_int_equal(t.n, 2);
        coll_table_free(&t);
    }
}

/* Random texts of the words of the language: read or refused, and what is read comes out so that it is read again. */
static void random_texts(void **state)
{
    (void)state;
    static const char *const words[] = {"bcast", "reduce", "near", "oversubscribed", "far", "leaders", "domain_leaders", "commutes", "ordered", "ranks", "nodes", "domains", "from",
                                        "below", "1-4", "5+", "7", "1K", "0", "64K", ":", "chain", "binomial", "radix",
                                        "segment", "blocking", "nonblocking",
                                        "slots", "wide", "slices", "copy_once", "messages", "\n", "\n", "#", "x", "-", "99999999999999999999"};
    unsigned seed = (unsigned)getpid();
    const char *given = getenv("TERN_TEST_SEED");
    if (given) seed = (unsigned)atoi(given);
    print_message("# seed %u (TERN_TEST_SEED)\n", seed);
    srandom(seed);
    int good = 0;
    for (int n = 0; n < 50000; n++) {
        char text[600] = "";
        size_t at = 0;
        for (long k = random() % 14; k >= 0; k--)
            at += (size_t)sprintf(text + at, "%s ", words[(size_t)random() % ARRAY_LEN(words)]);
        if (n % 2) sprintf(text, "bcast %s %s : chain", words[(size_t)random() % 7], text[0] == 'b' ? "" : "ranks 7");
        struct coll_table t, again;
        if (coll_table_read(&t, text, "random")) continue;
        char *out = coll_table_print(&t);
        assert_int_equal(coll_table_read(&again, out, "printed"), 0);
        good += t.n > 0;
        assert_int_equal(again.n, t.n);
        free(out);
        coll_table_free(&t);
        coll_table_free(&again);
    }
    assert_true(good > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_and_bytes), cmocka_unit_test(places_and_orders),
        cmocka_unit_test(domains),
        cmocka_unit_test(blocks_have_no_bytes), cmocka_unit_test(what_does_not_fit),
        cmocka_unit_test(ways_in_order), cmocka_unit_test(algorithms_by_messages), cmocka_unit_test(not_hidden),
        cmocka_unit_test(in_and_out),      cmocka_unit_test(refused),           cmocka_unit_test(random_texts),
        cmocka_unit_test(long_lines),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("tables of choices", tests, NULL, NULL);
}
