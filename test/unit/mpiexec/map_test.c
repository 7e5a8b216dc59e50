/* map_test.c - which rank runs where. The rules are in map.h; those of default sizes in Hydra's and Open MPI's manuals.
 */
#include "mpiexec/map.h"
#include "mpiexec/cpus.h"
#include "mpiexec/words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* A program: its own hosts (NULL: none named) and ranks (0: not said). */
struct program {
    const char *hosts;
    int n;
};

/* The hosts of the ranks in their order, "a b b"; "!" if it is refused. */
static const char *map_of(struct spec *s, const struct program *p, int n)
{
    static char text[4096], *program[] = {"true"};
    struct map m;
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        struct app_spec *a = spec_app(s);
        a->n = p[i].n;
        if (p[i].hosts && hosts_list(&a->list, p[i].hosts)) return "!";
        strv_push(&a->argv, program[0]);
    }
    if (spec_settle(s)) return "!";
    if (map_ranks(s, &m)) return "!";
    text[0] = 0;
    for (int r = 0; r < s->size; r++) {
        const struct map_node *node = &m.nodes[m.node[r]];
        assert_int_equal(node->ranks[m.local[r]], r);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", r ? " " : "",
                               node->host->self ? "SELF" : node->host->name);
    }
    int total = 0;
    for (int i = 0; i < m.nnodes; i++) {
        assert_true(m.nodes[i].nranks > 0);
        total += m.nodes[i].nranks;
    }
    assert_int_equal(total, s->size);
    map_free(&m);
    return text;
}

/* Another specification in the place of this one. */
static void renew(struct spec *s, struct spec other)
{
    spec_free(s);
    *s = other;
}

static const char *one(const char *hosts, int n, int ppn, enum unit map)
{
    struct spec s = {.ppn = ppn, .place.map = map};
    const char *text = map_of(&s, &(struct program){hosts, n}, 1);
    spec_free(&s);
    return text;
}

static void one_program(void **state)
{
    static const struct {
        const char *hosts;
        int n, ppn;
        enum unit map;
        const char *means;
    } table[] = {
        {NULL, 0, 0, UNIT_NONE, "SELF"},
        {NULL, 3, 0, UNIT_NONE, "SELF SELF SELF"},
        {NULL, 0, 2, UNIT_NONE, "SELF SELF"},
        {NULL, 3, 0, UNIT_NODE, "SELF SELF SELF"},
        {"a,b", 0, 0, UNIT_NONE, "a b"},
        {"a:2,b:3", 0, 0, UNIT_NONE, "a a b b b"},
        {"a:2,b:3", 3, 0, UNIT_NONE, "a a b"},
        {"a:2,b:3", 1, 0, UNIT_NONE, "a"},
        {"a,b:2", 7, 0, UNIT_NONE, "a b b a b b a"},
        {"a:2,b:2", 6, 0, UNIT_NONE, "a a b b a a"},
        {"a,b", 5, 2, UNIT_NONE, "a a b b a"},
        {"a:4,b:4", 4, 1, UNIT_NONE, "a b a b"},
        {"a:9,b:9", 0, 2, UNIT_NONE, "a a b b"}, /* so many a host, whatever the slots */
        {"a:4,b:2", 6, 0, UNIT_NODE, "a b a b a a"},
        {"a:1,b:1", 4, 0, UNIT_NODE, "a b a b"},
        {"a:2,b:1", 6, 0, UNIT_NODE, "a b a a b a"},
        {"a:2,b:2,c:2", 4, 0, UNIT_NODE, "a b c a"},
        {"a:2,b:2", 4, 0, UNIT_SOCKET, "a a b b"},
        {"localhost,b", 4, 0, UNIT_NONE, "SELF b SELF b"},
        {"a,localhost:2", 0, 0, UNIT_NONE, "a SELF SELF"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        assert_string_equal(one(table[i].hosts, table[i].n, table[i].ppn, table[i].map), table[i].means);
}

static void spread_and_numbers(void **state)
{
    static const struct {
        struct place_spec place;
        const char *hosts;
        int n;
        const char *means;
    } table[] = {
        {{.order = RANK_BY_NODE}, "a:2,b:2", 4, "a b a b"},
        {{.order = RANK_BY_NODE}, "a:3,b:1", 4, "a b a a"},
        {{.order = RANK_BY_NODE}, "a:1,b:2", 6, "a b a b b b"}, /* two rounds of a b b */
        {{.order = RANK_BY_SLOT, .map = UNIT_NODE}, "a:2,b:2", 4, "a a b b"},
        {{.order = RANK_BY_UNIT, .order_unit = UNIT_SOCKET, .order_units = 2, .order_span = true},
         "a:4,b:4",
         8,
         "a a b b a a b b"},
        {{.order = RANK_BY_UNIT, .order_unit = UNIT_SOCKET, .order_units = 2}, "a:2,b:2", 4, "a a b b"},
        {{.map = UNIT_SOCKET, .span = true, .map_units = 2}, "a:4,b:4", 4, "a a b b"},
        {{.map = UNIT_SOCKET, .map_units = 2}, "a:4,b:4", 4, "a a a a"},
        {{.map = UNIT_SOCKET, .span = true, .map_units = 2}, "a:3,b:4", 8, "a a b b a b b a"},
        {{.refuse_more = true}, "a:2,b:2", 4, "a a b b"},
        {{.refuse_more = true}, "a:2,b:2", 5, "!"},
        {{.refuse_more = true, .cores = 2}, NULL, 2, "SELF SELF"},
        {{.refuse_more = true, .cores = 2}, NULL, 3, "!"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct spec s = {.place = table[i].place};
        assert_string_equal(map_of(&s, &(struct program){table[i].hosts, table[i].n}, 1), table[i].means);
        spec_free(&s);
    }
}

static void hosts_left_out_and_sorted(void **state)
{
    (void)state;
    struct spec s = {.no_local = true};
    assert_string_equal(map_of(&s, &(struct program){"a,localhost,b", 3}, 1), "a b a");
    renew(&s, (struct spec){.no_local = true});
    assert_string_equal(map_of(&s, &(struct program){NULL, 3}, 1), "!");
    renew(&s, (struct spec){.no_local = true});
    const struct program two[] = {{"a", 1}, {"localhost", 1}};
    assert_string_equal(map_of(&s, two, 2), "!");
    renew(&s, (struct spec){.host_order = HOSTS_UP});
    assert_string_equal(map_of(&s, &(struct program){"a:2,b:1,c:2", 0}, 1), "b a a c c");
    renew(&s, (struct spec){.host_order = HOSTS_DOWN});
    assert_string_equal(map_of(&s, &(struct program){"a:1,b:3,c:1", 0}, 1), "b b b a c");
    spec_free(&s);
}

/* A rank file with this text. */
static int read_file(struct rankfile *f, const char *text)
{
    char path[] = "/tmp/tern-ranks-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    int rc = rankfile_read(f, path);
    f->path = "FILE";
    unlink(path);
    return rc;
}

static void rank_files(void **state)
{
    (void)state;
    struct spec s = {0};
    assert_int_equal(read_file(&s.rankfile, "# all\n rank 1 = a slots=0:1\nrank 0=localhost\n\nrank 2=+n1 slot=2\n"),
                     0);
    assert_string_equal(map_of(&s, &(struct program){NULL, 0}, 1), "SELF a SELF"); /* +n1: the second that was named */
    assert_string_equal(s.rankfile.v[1].slots, "0:1");
    assert_null(s.rankfile.v[0].slots);
    renew(&s, (struct spec){0});
    read_file(&s.rankfile, "rank 0=a\nrank 1=b\n");
    assert_string_equal(map_of(&s, &(struct program){"b,c", 1}, 1),
                        "a"); /* of the lines there may be more than ranks */
    renew(&s, (struct spec){0});
    read_file(&s.rankfile, "rank 0=a\nrank 2=b\n");
    assert_string_equal(map_of(&s, &(struct program){NULL, 0}, 1), "!"); /* rank 1 has none */
    spec_free(&s);
    static const char *const refused[] = {"rank 0=a\nrank 0=b\n", "# nothing\n", "rank 99999999=a\n"};
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct rankfile f = {0};
        assert_int_equal(read_file(&f, refused[i]), EXIT_USAGE);
        rankfile_free(&f);
    }
}

static void several_programs(void **state)
{
    static const struct {
        struct program p[3];
        int n;
        const char *means;
    } table[] = {
        {{{"a,b", 1}, {NULL, 1}}, 2, "a b"},             /* hosts of the first hold for the second */
        {{{"a:2,b:2", 3}, {NULL, 3}}, 2, "a a b b a a"}, /* and it goes on where that ended */
        {{{"a", 2}, {"b", 2}}, 2, "a a b b"},
        {{{"b", 2}, {"a,b", 2}}, 2, "b b a a"}, /* a has had fewer */
        {{{"a,b", 2}, {"a,b", 2}}, 2, "a b a b"},
        {{{"a,b", 1}, {"a,b", 1}}, 2, "a b"},
        {{{"a:2", 0}, {"b:3", 0}}, 2, "a a b b b"},
        {{{"a", 1}, {NULL, 3}, {"b:2", 1}}, 3, "a b b a b"}, /* the middle one has all */
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct spec s = {0};
        assert_string_equal(map_of(&s, table[i].p, table[i].n), table[i].means);
        spec_free(&s);
    }
}

static void universe(void **state)
{
    (void)state;
    struct spec s = {0};
    map_of(&s, &(struct program){"a:4,b:4", 2}, 1);
    assert_int_equal(spec_universe(&s), 8);
    renew(&s, (struct spec){0});
    map_of(&s, &(struct program){"a", 5}, 1);
    assert_int_equal(spec_universe(&s), 5);
    renew(&s, (struct spec){.usize = 3});
    map_of(&s, &(struct program){"a:9", 1}, 1);
    assert_int_equal(spec_universe(&s), 3);
    spec_free(&s);
}

/* A manager started alone sees that it has room for workers. */
static void universe_of_this_host(void **state)
{
    int cpus = cpus_usable();
    (void)state;
    struct spec s = {.no_manager = true};
    map_of(&s, &(struct program){NULL, 1}, 1);
    assert_int_equal(spec_universe(&s), cpus);
    renew(&s, (struct spec){.no_manager = true});
    map_of(&s, &(struct program){NULL, cpus + 1}, 1);
    assert_int_equal(spec_universe(&s), cpus + 1);
    spec_free(&s);
}

static void resource_managers(void **state)
{
    (void)state;
    setenv("SLURM_JOB_NODELIST", "n[1-2]", 1);
    setenv("SLURM_TASKS_PER_NODE", "2(x2)", 1);
    struct spec s = {0};
    assert_string_equal(map_of(&s, &(struct program){NULL, 0}, 1), "n1 n1 n2 n2");
    renew(&s, (struct spec){0});
    assert_string_equal(map_of(&s, &(struct program){"a", 0}, 1), "a"); /* what is named counts more */
    renew(&s, (struct spec){.no_manager = true});
    assert_string_equal(map_of(&s, &(struct program){NULL, 0}, 1), "SELF");
    unsetenv("SLURM_JOB_NODELIST");
    unsetenv("SLURM_TASKS_PER_NODE");
    spec_free(&s);
}

static void hosts_without_ranks_are_no_nodes(void **state)
{
    (void)state;
    struct spec s = {0};
    struct map m;
    map_of(&s, &(struct program){"a:2,b:2,c:2", 3}, 1);
    map_ranks(&s, &m);
    assert_int_equal(m.nnodes, 2);
    assert_string_equal(m.nodes[1].host->name, "b");
    assert_int_equal(m.nodes[1].nranks, 1);
    map_free(&m);
    spec_free(&s);
}

int main(void)
{
    static const char *const managers[] = {
        "SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE", "PBS_NODEFILE",
        "LSB_MCPU_HOSTS",     "LSB_HOSTS"};
    for (size_t i = 0; i < ARRAY_LEN(managers); i++) unsetenv(managers[i]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_program),        cmocka_unit_test(several_programs),
        cmocka_unit_test(spread_and_numbers), cmocka_unit_test(hosts_left_out_and_sorted),
        cmocka_unit_test(rank_files),         cmocka_unit_test(universe),
        cmocka_unit_test(universe_of_this_host),
        cmocka_unit_test(resource_managers),  cmocka_unit_test(hosts_without_ranks_are_no_nodes)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
