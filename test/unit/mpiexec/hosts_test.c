/* hosts_test.c - lists of hosts, in all the forms they come in. */
#include "mpiexec/hosts.h"
#include "mpiexec/words.h"
#include "mpiexec/xalloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const manager_variables[] = {
    "SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE", "PBS_NODEFILE",
    "LSB_MCPU_HOSTS",     "LSB_HOSTS"};

static int no_manager(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(manager_variables); i++) unsetenv(manager_variables[i]);
    return 0;
}

/* "a:1 b:2"; "!" for an error. This host is "SELF". Frees the list. */
static const char *words(struct hosts *h, int rc)
{
    static char text[4096];
    size_t n = 0;
    text[0] = 0;
    for (int i = 0; i < h->n && n < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s:%d", i ? " " : "", h->v[i].self ? "SELF" : h->v[i].name,
                              h->v[i].slots);
    hosts_free(h);
    return rc ? "!" : text;
}

static const char *list(const char *text)
{
    struct hosts h = {0};
    return words(&h, hosts_list(&h, text));
}

static const char *file(const char *text)
{
    char path[] = "/tmp/tern-hosts-XXXXXX";
    struct hosts h = {0};
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    int rc = hosts_file(&h, path);
    unlink(path);
    return words(&h, rc);
}

static void lists(void **state)
{
    static const struct {
        const char *list, *means;
    } table[] = {
        {"a", "a:1"},
        {"a,b:2", "a:1 b:2"},
        {"a,b,a,a:3,B", "a:5 b:2"},
        {"a.b.example.org:3,a", "a.b.example.org:3 a:1"}, /* two names, two hosts */
        {"10.0.0.1:2,10.0.0.2", "10.0.0.1:2 10.0.0.2:1"},
        {"10.255.255.254,10.255.255.253", "10.255.255.254:1 10.255.255.253:1"}, /* no short names of each other */
        {"2001:db8::1,[2001:db8::2]:4,[2001:db8::3]", "2001:db8::1:1 2001:db8::2:4 2001:db8::3:1"},
        {"fe80::1%eth0", "fe80::1%eth0:1"},
        {"me@a:2", "me@a:2"},
        {"localhost:2,127.0.0.1,::1", "SELF:4"},
        {",a,,b,", "a:1 b:1"},
        {"", "!"},
        {",", "!"},
        {"a:0", "!"},
        {"a:-1", "!"},
        {"a:x", "!"},
        {"a:", "!"},
        {"a:99999999999", "!"},
        {"a:1048576,a:1048576", "!"},
        {"-oProxyCommand=x", "!"},
        {"a b", "!"},
        {"$(id)", "!"},
        {"a;b", "!"},
        {"[::1", "!"},
        {"[::1]4", "!"},
        {"^a", "!"},
        {"+n0", "!"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) assert_string_equal(list(table[i].list), table[i].means);
}

static void own_name(void **state)
{
    (void)state;
    char *twice = xasprintf("%s,LOCALHOST:2,%s.example.org", hosts_self(), hosts_self());
    assert_string_equal(list(twice), strchr(hosts_self(), '.') ? list(twice) : "SELF:4");
    free(twice);
}

static void files(void **state)
{
    (void)state;
    assert_string_equal(file("# both dialects\na:2\n\nb slots=3 max_slots=5\r\nc max-slots=4 # more\nd"),
                        "a:2 b:3 c:4 d:1");
    assert_string_equal(file("a\nb\na\nb slots=2\n"), "a:2 b:3");
    assert_string_equal(file("a:2 ifname=ib0 user=me\n"), "a:2");
    assert_string_equal(file("[2001:db8::1]:2\n2001:db8::2 slots=2\n"), "2001:db8::1:2 2001:db8::2:2");
    assert_string_equal(file("# none\n"), "!");
    assert_string_equal(file("a slots=0\n"), "!");
    assert_string_equal(file("a slots=many\n"), "!");
    struct hosts h = {0};
    assert_int_equal(hosts_file(&h, "/no/such/file"), EXIT_USAGE);
    assert_int_equal(hosts_file(&h, "/"), EXIT_USAGE);
}

static const char *picked(const char *all, const char *wanted)
{
    struct hosts a = {0}, w = {0};
    hosts_list(&a, all);
    hosts_list(&w, wanted);
    int rc = hosts_pick(&a, &w);
    hosts_free(&w);
    return words(&a, rc);
}

static void lists_pick_from_files(void **state)
{
    (void)state;
    assert_string_equal(picked("a:4,b:4,c:4", "c,a:2"), "c:4 a:2");
    assert_string_equal(picked("a:4", "a,a"), "a:2");
    assert_string_equal(picked("a:4", "b"), "!");
}

static const char *environment(const char *name, const char *value, const char *also, const char *also_value)
{
    struct hosts h = {0};
    no_manager(NULL);
    setenv(name, value, 1);
    if (also) setenv(also, also_value, 1);
    const char *w = words(&h, hosts_environment(&h));
    no_manager(NULL);
    return w;
}

static void slurm(void **state)
{
    static const struct {
        const char *list, *tasks, *means;
    } table[] = {
        {"n1", NULL, "n1:1"},
        {"n[1-3]", NULL, "n1:1 n2:1 n3:1"},
        {"n[08-10,2],m-1,x[1,3]y", "2(x3),1", "n08:2 n09:2 n10:2 n2:1 m-1:1 x1y:1 x3y:1"},
        {"r[1-2]c[1-2]", "4(x4)", "r1c1:4 r1c2:4 r2c1:4 r2c2:4"},
        {"n[1-2].example.org", "3,5", "n1.example.org:3 n2.example.org:5"},
        {"n[1-2", NULL, "!"},
        {"n[]", NULL, "!"},
        {"n[2-1]", NULL, "!"},
        {"n[1-x]", NULL, "!"},
        {"n[1-2-3]", NULL, "!"},
        {"n[1,]", NULL, "!"},
        {"n[0-99999999999]", NULL, "!"},
        {"n[0-16383],m", NULL, "!"}, /* more than there may be */
        {"n 1", NULL, "!"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        assert_string_equal(environment("SLURM_JOB_NODELIST", table[i].list,
                                        table[i].tasks ? "SLURM_TASKS_PER_NODE" : NULL, table[i].tasks),
                            table[i].means);
    assert_string_equal(environment("SLURM_NODELIST", "a,b", "SLURM_JOB_CPUS_PER_NODE", "8(x2)"), "a:8 b:8");
}

static void other_managers(void **state)
{
    (void)state;
    assert_string_equal(environment("LSB_HOSTS", "a a b a", NULL, NULL), "a:3 b:1");
    assert_string_equal(environment("LSB_MCPU_HOSTS", "a 2 b 4", "LSB_HOSTS", "x"), "a:2 b:4");
    assert_string_equal(environment("LSB_MCPU_HOSTS", "a 2 b", NULL, NULL), "!");
    assert_string_equal(environment("PBS_NODEFILE", "/no/such/file", NULL, NULL), "!");
    assert_string_equal(environment("PATH", "/usr/bin:/bin", NULL, NULL), "");
}

/* Any text is a list, or an error: nothing worse. */
static void random_text(void **state)
{
    static const char letters[] = "an019[]-,:.x( )@";
    (void)state;
    unsigned seed = (unsigned)getpid();
    print_message("# seed %u\n", seed);
    srand(seed);
    for (int i = 0; i < 3000; i++) {
        char text[40];
        size_t n = (size_t)rand() % (sizeof text - 1);
        for (size_t k = 0; k < n; k++) text[k] = letters[(size_t)rand() % (sizeof letters - 1)];
        text[n] = 0;
        struct hosts h = {0};
        setenv("SLURM_JOB_NODELIST", text, 1);
        int rc = i % 2 ? hosts_environment(&h) : hosts_list(&h, text);
        assert_true(rc == 0 || rc == EXIT_USAGE);
        for (int k = 0; k < h.n; k++) assert_true(h.v[k].slots >= 1 && h.v[k].name[0] != '-');
        hosts_free(&h);
    }
    no_manager(NULL);
}

int main(void)
{
    if (!getenv("TERN_TEST_LOUD") && !freopen("/dev/null", "w", stderr)) return 99; /* the launcher's words */
    const struct CMUnitTest tests[] = {cmocka_unit_test(lists),          cmocka_unit_test(own_name),
                                       cmocka_unit_test(files),          cmocka_unit_test(slurm),
                                       cmocka_unit_test(other_managers), cmocka_unit_test(lists_pick_from_files),
                                       cmocka_unit_test(random_text)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, no_manager, NULL);
}
