/*
 * pmi_test.c - the PMI bootstraps against a launcher that is a thread of this program: what they understand, how cards
 * travel through short texts, and what they say to a launcher that talks nonsense. Real launchers:
 * test/launch/launchers.test.
 *
 * TERN_FUZZ_SEED repeats the random cases.
 */
#include "base/err.h"
#include "base/var.h"
#include "proc/pmi_map.h"
#include "proc/pmi_wire.h"
#include "proc/proc.h"
#include "proc/usable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- a launcher ---- */

static struct launcher {
    int fd;
    bool frames;
    int value_max;
    const char *map; /* PMI_process_mapping, NULL: it has none */
    int puts, fences, finalizes;
    int keys;
    char key[64][64], value[64][2048];
    pthread_t thread;
} srv;

static bool read_all(char *to, size_t n)
{
    for (size_t have = 0; have < n;) {
        ssize_t k = read(srv.fd, to + have, n - have);
        if (k <= 0) return false;
        have += (size_t)k;
    }
    return true;
}

static bool hear(char *text, size_t cap)
{
    char head[7] = "";
    size_t n = 0;
    if (srv.frames) {
        if (!read_all(head, 6)) return false;
        n = strtoul(head, NULL, 10);
        assert_true(n < cap);
        text[n] = 0;
        return read_all(text, n);
    }
    while (n + 1 < cap && read_all(text + n, 1) && text[n] != '\n') n++;
    text[n] = 0;
    return n > 0;
}

/* By write, which the thread sanitizer knows: what the server did before is seen by those that have its answer. */
static void answer(const char *fmt, ...)
{
    char text[4096], line[sizeof text + 8];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    n = srv.frames ? snprintf(line, sizeof line, "%-6d%s", n, text) : snprintf(line, sizeof line, "%s\n", text);
    assert_int_equal(write(srv.fd, line, (size_t)n), n);
}

/* The value of a field up to the next separator. */
static const char *field(const char *text, const char *name)
{
    static char value[2048];
    const char *at = strstr(text, name);
    if (!at) return "";
    at += strlen(name);
    snprintf(value, sizeof value, "%.*s", (int)strcspn(at, " ;"), at);
    return value;
}

static const char *stored(const char *key)
{
    if (!strcmp(key, "PMI_process_mapping")) return srv.map;
    for (int i = 0; i < srv.keys; i++)
        if (!strcmp(srv.key[i], key)) return srv.value[i];
    return NULL;
}

static void store(const char *text)
{
    assert_true(srv.keys < 64);
    snprintf(srv.key[srv.keys], sizeof srv.key[0], "%s", field(text, "key="));
    snprintf(srv.value[srv.keys], sizeof srv.value[0], "%s", field(text, "value="));
    assert_true(strlen(srv.value[srv.keys]) < (size_t)srv.value_max);
    srv.keys++;
    srv.puts++;
}

static bool is(const char *text, const char *cmd)
{
    size_t n = strlen(cmd);
    return !strncmp(text, "cmd=", 4) && !strncmp(text + 4, cmd, n) && strchr(" ;", text[4 + n]);
}

static void serve1(const char *text)
{
    const char *value = stored(field(text, "key="));
    if (is(text, "get_maxes"))
        answer("cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=%d", srv.value_max);
    else if (is(text, "get_appnum"))
        answer("cmd=appnum appnum=-1");
    else if (is(text, "get_my_kvsname"))
        answer("cmd=my_kvsname kvsname=the_job");
    else if (is(text, "get_universe_size"))
        answer("cmd=universe_size size=8");
    else if (is(text, "put"))
        store(text), answer("cmd=put_result rc=0 msg=success");
    else if (is(text, "barrier_in"))
        srv.fences++, answer("cmd=barrier_out");
    else if (is(text, "get") && value)
        answer("cmd=get_result rc=0 msg=success value=%s", value);
    else if (is(text, "get"))
        answer("cmd=get_result rc=-1 msg=no_such_key value=unknown");
    else if (is(text, "finalize"))
        srv.finalizes++, answer("cmd=finalize_ack");
}

static void serve2(const char *text)
{
    const char *value = stored(field(text, "key="));
    if (is(text, "fullinit"))
        answer("cmd=fullinit-response;rc=0;pmi-version=2;pmi-subversion=0;rank=0;size=1;appnum=3;");
    else if (is(text, "job-getid"))
        answer("cmd=job-getid-response;rc=0;jobid=the_job;");
    else if (is(text, "kvs-put"))
        store(text), answer("cmd=kvs-put-response;rc=0;");
    else if (is(text, "kvs-fence"))
        srv.fences++, answer("cmd=kvs-fence-response;rc=0;");
    else if (is(text, "finalize"))
        srv.finalizes++, answer("cmd=finalize-response;rc=0;");
    else {
        const char *cmd = is(text, "kvs-get") ? "kvs-get" : "info-getjobattr";
        if (value)
            answer("cmd=%s-response;rc=0;found=TRUE;value=%s;", cmd, value);
        else
            answer("cmd=%s-response;rc=0;found=FALSE;", cmd);
    }
}

static void *serve(void *arg)
{
    char text[4096];
    (void)arg;
    while (hear(text, sizeof text)) {
        bool two = strstr(text, "pmi_version=2");
        if (is(text, "init"))
            answer("cmd=response_to_init rc=0 pmi_version=%d pmi_subversion=0", two ? 2 : 1);
        else if (srv.frames)
            serve2(text);
        else
            serve1(text);
        if (is(text, "init")) srv.frames = two;
    }
    close(srv.fd);
    return NULL;
}

/* The process's end of a connection, by name in the environment; the other end. */
static int connection(const char *rank, const char *size)
{
    int fd[2];
    char text[16];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    snprintf(text, sizeof text, "%d", fd[0]);
    setenv("PMI_FD", text, 1);
    setenv("PMI_RANK", rank, 1);
    setenv("PMI_SIZE", size, 1);
    return fd[1];
}

static void launch(int value_max, const char *map)
{
    memset(&srv, 0, sizeof srv);
    srv.value_max = value_max;
    srv.map = map;
    srv.fd = connection("0", "1");
    assert_int_equal(pthread_create(&srv.thread, NULL, serve, NULL), 0);
}

/* ---- nodes ---- */

static void the_mapping_says_who_is_where(void **state)
{
    static const struct {
        const char *text;
        uint32_t size, node[8];
    } good[] = {
        {"(vector,(0,1,1))", 1, {0}},
        {"(vector,(0,1,2),(1,1,1))", 3, {0, 0, 1}},
        {"(vector,(0,2,2))", 6, {0, 0, 1, 1, 0, 0}}, /* again from the first block */
        {"(vector,(0,3,1))", 5, {0, 1, 2, 0, 1}},
        {"(vector,(4,1,1),(2,1,0),(0,0,9),(1,2,1))", 4, {4, 1, 2, 4}},
        {" ( vector , ( 0 , 1 , 2 ) , ( 7 , 1 , 1 ) ) ", 4, {0, 0, 7, 0}},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        uint32_t node[8];
        assert_int_equal(pmi_map_fill(good[i].text, node, good[i].size), 0);
        assert_memory_equal(node, good[i].node, good[i].size * sizeof *node);
    }
}

static void a_mapping_that_is_none_is_refused(void **state)
{
    static const char *const bad[] = {
        "(vector)",
        "(vector,)",
        "(vector,(0,1))",
        "(vector,(0,1,1)",
        "(vector,(0,1,1)))",
        "(vector,(0,1,1)) x",
        "(vector,(0,0,4))",
        "(vector,(0,4,0))",
        "(vector,(-1,1,1))",
        "(vector,(0,1,1),(",
        "(vector,(0,1,x))",
        "(vector(0,1,1))",
        "(vector,(0,1,1)(1,1,1))",
        "(vector,(0,9999999999,1))",
        "(vector,(1073741823,2,1))",
        "(vector,(0,1,1),",
        "(vector,((0,1,1)))",
        "(vector,(0,,1))",
        "(vector,(0,1,1,1))",
        "(vectors,(0,1,1))",
    };
    uint32_t node[4];
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        err_clear();
        assert_int_equal(pmi_map_fill(bad[i], node, 4), TERN_ERR_SYSTEM);
        assert_non_null(strstr(err_words(), "PMI_process_mapping"));
    }
    assert_int_equal(pmi_map_fill("", node, 4), TERN_ERR_NOT_FOUND);
    assert_int_equal(pmi_map_fill("(matrix,(0,1,1))", node, 4), TERN_ERR_NOT_FOUND);
}

/* ---- cards ---- */

static void card_there_and_back(const struct proc_boot *boot, int value_max)
{
    struct proc_info me = {0};
    uint8_t card[496], got[496], key[32], again[32];
    launch(value_max, "(vector,(0,1,1))");
    for (size_t i = 0; i < sizeof card; i++) card[i] = (uint8_t)(i * 37);
    assert_int_equal(boot->open(&me), 0);
    assert_string_equal(me.job, "the_job");
    assert_int_equal(me.rank, 0);
    assert_int_equal(me.size, 1);
    assert_int_equal(me.nodes, 1);
    assert_int_equal(me.local_size, 1);
    assert_int_equal(boot->card_put(card, sizeof card), 0);
    assert_int_equal(srv.fences, 1);
    assert_int_equal(srv.puts,
                     (4 + 2 * 496 + value_max - 2) / (value_max - 1) + (4 + 64 + value_max - 2) / (value_max - 1));
    assert_int_equal(boot->card_get(0, got, sizeof got), sizeof card);
    assert_memory_equal(card, got, sizeof card);
    assert_true(boot->card_get(0, got, sizeof card - 1) < 0);
    assert_int_equal(boot->card_get(1, got, sizeof got), TERN_ERR_RANK);
    assert_int_equal(boot->secret(key), 0);
    assert_int_equal(boot->secret(again), 0);
    assert_memory_equal(key, again, sizeof key);
    boot->close();
    pthread_join(srv.thread, NULL);
    assert_int_equal(srv.finalizes, 1);
}

static void cards_travel_in_pieces(void **state)
{
    (void)state;
    card_there_and_back(&proc_pmi1, 1024);
    card_there_and_back(&proc_pmi1, 998);
    card_there_and_back(&proc_pmi1, 997); /* one piece just full */
    card_there_and_back(&proc_pmi1, 996);
    card_there_and_back(&proc_pmi1, 32);
    card_there_and_back(&proc_pmi2, 1024);
}

static void a_launcher_for_nothing_but_short_texts_is_refused(void **state)
{
    struct proc_info me = {0};
    (void)state;
    launch(16, NULL);
    assert_true(proc_pmi1.open(&me) < 0);
    assert_non_null(strstr(err_words(), "too little"));
    pthread_join(srv.thread, NULL);
}

static void damaged_cards_are_refused(void **state)
{
    static const char *const bad[] = {"", "0001", "0001zz", "0001aabb", "00", "ffff00", "zzzz00", "0002aa", "0001AA"};
    struct proc_info me = {0};
    uint8_t got[16];
    (void)state;
    launch(1024, NULL);
    assert_int_equal(proc_pmi1.open(&me), 0);
    assert_int_equal(proc_pmi1.card_put("card", 4), 0);
    assert_int_equal(proc_pmi1.card_get(0, got, sizeof got), 4);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        snprintf(srv.value[0], sizeof srv.value[0], "%s", bad[i]);
        assert_true(proc_pmi1.card_get(0, got, sizeof got) < 0);
        assert_non_null(strstr(err_words(), "rank 0"));
    }
    proc_pmi1.close();
    pthread_join(srv.thread, NULL);
}

/* A launcher takes nobody back: what was not asked for before MPI_Finalize is out of reach, in words. */
static void leave_is_for_good(void **state)
{
    struct proc_info me = {0};
    uint8_t got[16];
    (void)state;
    launch(1024, NULL);
    assert_int_equal(proc_pmi1.open(&me), 0);
    assert_int_equal(proc_pmi1.card_put("card", 4), 0);
    proc_pmi1.leave();
    assert_int_equal(srv.finalizes, 1);
    assert_true(proc_pmi1.card_get(0, got, sizeof got) < 0);
    assert_non_null(strstr(err_words(), "MPI_Finalize"));
    proc_pmi1.close();
    pthread_join(srv.thread, NULL);
    assert_int_equal(srv.finalizes, 1);
}

/* ---- cpus ---- */

/* Opens as a rank of a launcher that is this process's parent, under Slurm if `granted` is not NULL. */
static void open_as_rank(const char *granted)
{
    launch(1024, NULL);
    if (granted) setenv("SLURM_CPUS_ON_NODE", granted, 1);
    else unsetenv("SLURM_CPUS_ON_NODE");
    setenv("TERN_BOOTSTRAP", "pmi1", 1);
    assert_int_equal(var_open(), 0);
    assert_int_equal(proc_open(), 0);
    assert_string_equal(proc_self()->bootstrap, "pmi1");
}

static void close_rank(void)
{
    proc_close();
    var_close();
    pthread_join(srv.thread, NULL);
}

static cpu_set_t all_cpus;

/* In a group of its own, as launchers start processes. False, and a word: the launcher's cpus have to be this process's, and two. */
static bool begin_as_rank(void)
{
    cpu_set_t parent;
    assert_int_equal(sched_getaffinity(0, sizeof all_cpus, &all_cpus), 0);
    assert_int_equal(sched_getaffinity(getppid(), sizeof parent, &parent), 0);
    bool good = CPU_EQUAL(&all_cpus, &parent) && CPU_COUNT(&parent) > 1;
    if (!good) print_message("# one CPU is not enough for it\n");
    if (getpgrp() != getpid()) assert_int_equal(setpgid(0, 0), 0);
    return good;
}

static void bind_to_one(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &all_cpus)) CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
}

static int unbind(void **state)
{
    (void)state;
    unsetenv("SLURM_CPUS_ON_NODE");
    return sched_setaffinity(0, sizeof all_cpus, &all_cpus);
}

/* A rank that the launcher has bound, and one that it has not, find the same. */
static void what_ranks_share_is_the_launchers(void **state)
{
    static const char *const granted[] = {NULL, "100000", "1", "nonsense"};
    (void)state;
    if (!begin_as_rank()) skip();
    uint32_t all = usable_here();
    for (uint32_t bound = 0; bound < 2; bound++) {
        if (bound) bind_to_one();
        for (size_t i = 0; i < 4; i++) {
            open_as_rank(granted[i]);
            assert_int_equal(proc_self()->bound, bound);
            assert_int_equal(proc_self()->usable_cpus, i == 2 ? 1 : all);
            close_rank();
        }
    }
}

/* It may bind some of the ranks that it starts. */
static void a_script_between_is_no_launcher(void **state)
{
    int status = 0;
    (void)state;
    if (!begin_as_rank()) skip();
    uint32_t all = usable_here();
    bind_to_one();
    launch(1024, NULL);
    setenv("TERN_BOOTSTRAP", "pmi1", 1);
    pid_t child = fork();
    if (!child) {
        bool good = !var_open() && !proc_open() && proc_self()->usable_cpus == all && proc_self()->bound == 1;
        proc_close();
        _exit(good ? 7 : 1);
    }
    close(atoi(getenv("PMI_FD")));
    assert_int_equal(waitpid(child, &status, 0), child);
    pthread_join(srv.thread, NULL);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
}

/* ---- what is no launcher ---- */

static void only_an_open_socket_is_a_launcher(void **state)
{
    char text[16];
    struct proc_info me = {0};
    int fd = open("/dev/null", O_RDWR);
    (void)state;
    snprintf(text, sizeof text, "%d", fd);
    static const char *const bad[] = {"", "-1", "x", "3x", "99999", "99999999999999999999"};
    for (size_t i = 0; i <= ARRAY_LEN(bad); i++) {
        setenv("PMI_FD", i < ARRAY_LEN(bad) ? bad[i] : text, 1);
        assert_false(pmi_wire_here());
        assert_int_equal(proc_pmi1.open(&me), TERN_ERR_NOT_FOUND);
    }
    close(fd);
    unsetenv("PMI_FD");
}

/* What a launcher sends right at the start, and nothing more: an error with words, or all that was needed. */
static int talk(const struct proc_boot *boot, const void *bytes, size_t n, const char *rank, const char *size)
{
    struct proc_info me = {0};
    int fd = connection(rank, size);
    assert_int_equal(write(fd, bytes, n), n);
    shutdown(fd, SHUT_WR);
    err_clear();
    int rc = boot->open(&me);
    if (rc) assert_true(strlen(err_words()) > 10);
    else boot->close();
    assert_false(pmi_wire_is_open());
    close(fd);
    return rc;
}

static void hostile(const struct proc_boot *boot, const void *bytes, size_t n, const char *rank, const char *size)
{
    assert_true(talk(boot, bytes, n, rank, size) < 0);
}

#define INIT1 "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
#define INIT2 "cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n"
#define JOB1                                                                                                           \
    INIT1 "cmd=maxes keylen_max=64 vallen_max=1024\ncmd=my_kvsname kvsname=j\ncmd=appnum appnum=0\ncmd=universe_size " \
          "size=1\n"

static void nonsense_is_an_error_in_words(void **state)
{
    static const char *const one[] = {
        "",
        "\n",
        "cmd=\n",
        "cmd=maxes\n",
        "hello\n",
        "cmd=response_to_init",
        INIT2,
        "cmd=response_to_init rc=-1\n",
        INIT1,
        INIT1 "cmd=maxes\n",
        INIT1 "cmd=maxes keylen_max=64 vallen_max=-5\n",
        INIT1 "cmd=maxes keylen_max=64x vallen_max=64\n",
        INIT1 "cmd=maxes keylen_max=64 vallen_max=1024\ncmd=my_kvsname\n",
        INIT1 "\x7f\n",
        INIT1 "cmd=ma\txes\n",
        INIT1 "cmd=m\xff\n",
        JOB1 "cmd=get_result rc=0 value=(vector,(0,1,1)\n",
        JOB1 "cmd=get_result rc=0\n",
    };
    static const char *const two[] = {
        INIT2,
        INIT1,
        INIT2 "     x",
        INIT2 "     0",
        INIT2 "-1    cmd",
        INIT2 "999999",
        INIT2 "1 2   cmd",
        INIT2 "    10cmd=a",
        INIT2 "    11cmd=nothing",
        INIT2 "    22cmd=fullinit-response;",
        INIT2 "    43cmd=fullinit-response;rc=0;rank=5;size=5;....",
        INIT2 "    27cmd=fullinit-response;rc=1;",
    };
    char *long_line = malloc(100000);
    (void)state;
    assert_non_null(long_line);
    memset(long_line, 'a', 100000);
    for (size_t i = 0; i < ARRAY_LEN(one); i++) hostile(&proc_pmi1, one[i], strlen(one[i]), "0", "1");
    for (size_t i = 0; i < ARRAY_LEN(two); i++) hostile(&proc_pmi2, two[i], strlen(two[i]), "0", "1");
    hostile(&proc_pmi1, long_line, 100000, "0", "1");
    hostile(&proc_pmi1, INIT1 "cmd=maxes\0\n", sizeof INIT1 + 10, "0", "1");
    hostile(&proc_pmi1, JOB1 "cmd=get_result rc=-1\n", sizeof JOB1 + 20, "1", "1");
    hostile(&proc_pmi1, JOB1 "cmd=get_result rc=-1\n", sizeof JOB1 + 20, "-1", "1");
    hostile(&proc_pmi1, JOB1 "cmd=get_result rc=-1\n", sizeof JOB1 + 20, "0", "4000000000");
    assert_int_equal(talk(&proc_pmi1, JOB1 "cmd=get_result rc=-1\n", sizeof JOB1 + 20, "0", "1"), 0);
    free(long_line);
}

static void random_bytes_do_no_harm(void **state)
{
    static const char talk1[] = JOB1 "cmd=get_result rc=0 value=(vector,(0,1,1)\n";
    static const char talk2[] =
        INIT2 "    48cmd=fullinit-response;rc=0;rank=0;size=1;......;    36cmd=job-getid-response;rc=0;jobid=x;";
    const char *given = getenv("TERN_FUZZ_SEED");
    unsigned seed = given ? (unsigned)strtoul(given, NULL, 10) : (unsigned)time(NULL);
    (void)state;
    print_message("seed %u\n", seed);
    for (int i = 0; i < 400; i++) {
        const char *script = i % 2 ? talk1 : talk2;
        size_t n = i % 2 ? sizeof talk1 - 1 : sizeof talk2 - 1;
        char bytes[512];
        memcpy(bytes, script, n);
        for (int k = rand_r(&seed) % 4; k >= 0; k--) bytes[(size_t)rand_r(&seed) % n] = (char)rand_r(&seed);
        talk(i % 2 ? &proc_pmi1 : &proc_pmi2, bytes, (size_t)rand_r(&seed) % (n + 1), "0", "1");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mapping_says_who_is_where),
        cmocka_unit_test(a_mapping_that_is_none_is_refused),
        cmocka_unit_test(cards_travel_in_pieces),
        cmocka_unit_test(a_launcher_for_nothing_but_short_texts_is_refused),
        cmocka_unit_test(damaged_cards_are_refused),
        cmocka_unit_test(leave_is_for_good),
        cmocka_unit_test_teardown(what_ranks_share_is_the_launchers, unbind),
        cmocka_unit_test_teardown(a_script_between_is_no_launcher, unbind),
        cmocka_unit_test(only_an_open_socket_is_a_launcher),
        cmocka_unit_test(nonsense_is_an_error_in_words),
        cmocka_unit_test(random_bytes_do_no_harm),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
