/*
 * pmix_rank.c - a PMIx client for the tests of the launcher's server:
 *   pmix_rank exchange   puts, fences and gets a value of every rank; reads what the job is made of
 *   pmix_rank publish    rank 0 publishes, the last rank looks up, then rank 0 takes it back
 *   pmix_rank odd        looks up what dynamic_rank odd has published
 *   pmix_rank wait       the last rank waits for names that rank 0 publishes later, for some of them, and for none in vain
 *   pmix_rank desert     the last rank waits for a name and ends before it is published
 *   pmix_rank modex      gets a value of every rank without any fence
 *   pmix_rank some       the even ranks fence with each other, many times, and exchange what they put
 *   pmix_rank connect    connects and disconnects with all ranks, and with the last and first only
 *   pmix_rank nodes      rank 0 prints where the ranks are
 *   pmix_rank many N     N fences, each with new values of every rank
 *   pmix_rank abort N    the last rank calls PMIx_Abort with code N, the others wait
 *   pmix_rank leave      the last rank exits with 0 without PMIx_Finalize, the others wait
 */
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pmix_proc_t me;
static uint32_t size;

static void need(pmix_status_t rc, const char *what)
{
    if (rc == PMIX_SUCCESS) return;
    fprintf(stderr, "rank %u: %s: %s\n", me.rank, what, PMIx_Error_string(rc));
    exit(1);
}

static uint32_t job_number(const char *key, uint32_t rank)
{
    pmix_proc_t p = me;
    pmix_value_t *v;
    p.rank = rank;
    need(PMIx_Get(&p, key, NULL, 0, &v), key);
    uint32_t n = v->type == PMIX_UINT16 ? v->data.uint16 : v->data.uint32;
    PMIX_VALUE_RELEASE(v);
    return n;
}

static void fence(void)
{
    pmix_info_t collect;
    bool yes = true;
    PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    need(PMIx_Fence(NULL, 0, &collect, 1), "fence");
}

static void exchange(void)
{
    char text[64];
    pmix_value_t mine = {.type = PMIX_STRING, .data.string = text}, *v;
    pmix_proc_t p = me;
    snprintf(text, sizeof text, "card of %u", me.rank);
    need(PMIx_Put(PMIX_GLOBAL, "test.card", &mine), "put");
    need(PMIx_Commit(), "commit");
    fence();
    for (p.rank = 0; p.rank < size; p.rank++) {
        need(PMIx_Get(&p, "test.card", NULL, 0, &v), "get");
        snprintf(text, sizeof text, "card of %u", p.rank);
        if (strcmp(v->data.string, text)) exit(2);
        PMIX_VALUE_RELEASE(v);
    }
    printf("rank %u of %u local %u of %u universe %u app %u\n", me.rank, size, job_number(PMIX_LOCAL_RANK, me.rank),
           job_number(PMIX_LOCAL_SIZE, PMIX_RANK_WILDCARD), job_number(PMIX_UNIV_SIZE, PMIX_RANK_WILDCARD),
           job_number(PMIX_APPNUM, me.rank));
}

static void put(const char *key, const char *text)
{
    pmix_value_t mine = {.type = PMIX_STRING, .data.string = (char *)text};
    need(PMIx_Put(PMIX_GLOBAL, key, &mine), "put");
    need(PMIx_Commit(), "commit");
}

static void get(uint32_t rank, const char *key, const char *text)
{
    pmix_proc_t p = me;
    pmix_value_t *v;
    p.rank = rank;
    need(PMIx_Get(&p, key, NULL, 0, &v), "get");
    if (strcmp(v->data.string, text)) exit(2);
    PMIX_VALUE_RELEASE(v);
}

static void modex(void)
{
    char text[64];
    snprintf(text, sizeof text, "card of %u", me.rank);
    if (me.rank == size - 1) usleep(200000); /* its value is waited for */
    put("test.card", text);
    for (uint32_t r = 0; r < size; r++) {
        snprintf(text, sizeof text, "card of %u", (r + me.rank) % size);
        get((r + me.rank) % size, "test.card", text);
    }
    fence(); /* who has left answers no questions */
}

/* Every rank of `by` apart; how many. */
static size_t some_ranks(pmix_proc_t *procs, uint32_t by)
{
    size_t n = 0;
    for (uint32_t r = 0; r < size; r += by) {
        procs[n] = me;
        procs[n++].rank = r;
    }
    return n;
}

static void some(void)
{
    pmix_proc_t *even = calloc(size, sizeof *even);
    size_t n = some_ranks(even, 2);
    pmix_info_t collect;
    bool yes = true;
    PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    for (int i = 0; i < 20 && me.rank % 2 == 0; i++) {
        char key[32], text[64];
        snprintf(key, sizeof key, "test.%d", i);
        snprintf(text, sizeof text, "%d of %u", i, me.rank);
        put(key, text);
        need(PMIx_Fence(even, n, &collect, 1), "fence of some");
        uint32_t r = (me.rank + 2 * (uint32_t)i) % size / 2 * 2;
        snprintf(text, sizeof text, "%d of %u", i, r);
        get(r, key, text);
    }
    fence();
    free(even);
}

static void connect_all(void)
{
    pmix_proc_t ends[2] = {me, me}, all = me;
    all.rank = PMIX_RANK_WILDCARD;
    ends[0].rank = size - 1;
    ends[1].rank = 0;
    for (int i = 0; i < 3; i++) {
        need(PMIx_Connect(&all, 1, NULL, 0), "connect");
        need(PMIx_Disconnect(&all, 1, NULL, 0), "disconnect");
        if (me.rank && me.rank != size - 1) continue;
        need(PMIx_Connect(ends, 2, NULL, 0), "connect of two");
        need(PMIx_Disconnect(ends, 2, NULL, 0), "disconnect of two");
    }
    fence();
}

/* Of the job's data: by itself the library (4.2) looks among those of nodes, where it finds its own only. */
static uint32_t node_of(uint32_t rank)
{
    pmix_proc_t p = me;
    pmix_info_t of_job;
    pmix_value_t *v;
    p.rank = rank;
    PMIX_INFO_LOAD(&of_job, PMIX_JOB_INFO, NULL, PMIX_BOOL);
    need(PMIx_Get(&p, PMIX_NODEID, &of_job, 1, &v), "node");
    uint32_t n = v->data.uint32;
    PMIX_VALUE_RELEASE(v);
    return n;
}

static void nodes(void)
{
    char *list = NULL;
    for (uint32_t r = 0; r < size && !me.rank; r++) {
        pmix_proc_t p = me;
        pmix_value_t *v;
        p.rank = r;
        need(PMIx_Get(&p, PMIX_HOSTNAME, NULL, 0, &v), "host");
        printf("rank %u: node %u local %u host %s\n", r, node_of(r), job_number(PMIX_LOCAL_RANK, r), v->data.string);
        PMIX_VALUE_RELEASE(v);
    }
    need(PMIx_Resolve_nodes(me.nspace, &list), "nodes");
    if (!me.rank) printf("%u nodes: %s\n", job_number(PMIX_NUM_NODES, PMIX_RANK_WILDCARD), list);
    free(list);
    fence();
}

static void many(int fences)
{
    for (int i = 0; i < fences; i++) {
        char key[32], text[64];
        uint32_t other = (me.rank + (uint32_t)i + 1) % size;
        snprintf(key, sizeof key, "test.%d", i);
        snprintf(text, sizeof text, "%d of %u", i, me.rank);
        put(key, text);
        fence();
        snprintf(text, sizeof text, "%d of %u", i, other);
        get(other, key, text);
    }
}

/* Regression: when a call was refused that published a value without a name, all that the process had published went.
 */
static void publish_nameless(const pmix_info_t *taken)
{
    pmix_info_t two[2];
    char *keys[] = {"", NULL};
    PMIX_INFO_LOAD(&two[0], "", "port 8", PMIX_STRING);
    PMIX_INFO_LOAD(&two[1], taken->key, "port 8", PMIX_STRING);
    if (PMIx_Publish(two, 1) == PMIX_SUCCESS || PMIx_Publish(two, 2) == PMIX_SUCCESS) exit(5);
    if (PMIx_Unpublish(keys, NULL, 0) == PMIX_SUCCESS) exit(6);
}

/* Regression: a text that begins like a packed value and is none was found as an empty value of no type. */
static void odd(void)
{
    static const char *const texts[] = {"\1", "\1zz", "\1zzzz", "\1zzzzzzzz", "\1-0-0-0-0", "\1 0 0"};
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++) {
        pmix_pdata_t d;
        PMIX_PDATA_CONSTRUCT(&d);
        snprintf(d.key, sizeof d.key, "odd %d", i);
        for (int tries = 0; PMIx_Lookup(&d, 1, NULL, 0) != PMIX_SUCCESS; tries++) {
            if (tries == 2000) need(PMIX_ERR_NOT_FOUND, d.key);
            usleep(10000);
        }
        if (d.value.type == PMIX_STRING && !strcmp(d.value.data.string, texts[i])) continue;
        fprintf(stderr, "%s: a value of type %d\n", d.key, (int)d.value.type);
        exit(7);
    }
}

static void publish(void)
{
    pmix_info_t i;
    pmix_pdata_t d;
    char *keys[] = {"service", NULL};
    PMIX_INFO_LOAD(&i, "service", "port 7", PMIX_STRING);
    PMIX_PDATA_CONSTRUCT(&d);
    PMIX_LOAD_KEY(d.key, "service");
    if (!me.rank) need(PMIx_Publish(&i, 1), "publish");
    if (!me.rank && PMIx_Publish(&i, 1) == PMIX_SUCCESS) exit(3); /* taken */
    if (!me.rank) publish_nameless(&i);
    fence();
    if (me.rank == size - 1) {
        need(PMIx_Lookup(&d, 1, NULL, 0), "lookup");
        printf("found %s of rank %u\n", d.value.data.string, d.proc.rank);
    }
    fence();
    if (!me.rank) need(PMIx_Unpublish(keys, NULL, 0), "unpublish");
    fence();
    if (me.rank == size - 1 && PMIx_Lookup(&d, 1, NULL, 0) == PMIX_SUCCESS) exit(4);
}

static void publish_one(const char *key)
{
    pmix_info_t i;
    PMIX_INFO_LOAD(&i, key, key, PMIX_STRING);
    need(PMIx_Publish(&i, 1), "publish");
}

/* Of two names: waits for so many of them (-1: does not wait), `seconds` at most. What was found is in d. */
static pmix_status_t look(pmix_pdata_t d[2], const char *a, const char *b, int values, int seconds)
{
    pmix_info_t how[2];
    PMIX_INFO_LOAD(&how[0], PMIX_TIMEOUT, &seconds, PMIX_INT);
    PMIX_INFO_LOAD(&how[1], PMIX_WAIT, &values, PMIX_INT);
    for (int i = 0; i < 2; i++) PMIX_PDATA_CONSTRUCT(&d[i]);
    PMIX_LOAD_KEY(d[0].key, a);
    PMIX_LOAD_KEY(d[1].key, b);
    return PMIx_Lookup(d, 2, how, values < 0 ? 1 : 2);
}

static bool found(const pmix_pdata_t *d) { return d->value.type == PMIX_STRING && !strcmp(d->value.data.string, d->key); }

static void wait_for_names(void)
{
    pmix_pdata_t d[2];
    if (!me.rank) publish_one("early");
    fence();
    if (!me.rank) {
        sleep(1);
        publish_one("late 1");
        usleep(300000);
        publish_one("late 2");
    }
    if (me.rank == size - 1) {
        if (look(d, "late 1", "late 2", -1, 5) != PMIX_ERR_NOT_FOUND) exit(5);
        need(look(d, "never", "late 1", 1, 0), "a wait for one of two");
        if (found(&d[0]) || !found(&d[1])) exit(6);
        need(look(d, "late 2", "early", 0, 20), "a wait for all");
        if (!found(&d[0]) || !found(&d[1])) exit(7);
        if (look(d, "never", "early", 2, 1) != PMIX_ERR_TIMEOUT) exit(8);
        printf("waited\n");
    }
    fence();
}

static void nobody(pmix_status_t status, pmix_pdata_t data[], size_t n, void *arg)
{
    (void)status, (void)data, (void)n, (void)arg;
}

static void desert(void)
{
    static char *keys[] = {"late", NULL};
    static pmix_info_t how;
    int all = 0;
    PMIX_INFO_LOAD(&how, PMIX_WAIT, &all, PMIX_INT);
    if (me.rank == size - 1) {
        need(PMIx_Lookup_nb(keys, &how, 1, nobody, NULL), "lookup");
        return;
    }
    sleep(1);
    if (!me.rank) publish_one("late");
    usleep(200000);
}

int main(int argc, char **argv)
{
    if (argc < 2) return 97;
    need(PMIx_Init(&me, NULL, 0), "init");
    size = job_number(PMIX_JOB_SIZE, PMIX_RANK_WILDCARD);
    bool last = me.rank == size - 1;
    if (!strcmp(argv[1], "exchange")) exchange();
    if (!strcmp(argv[1], "publish")) publish();
    if (!strcmp(argv[1], "odd")) odd();
    if (!strcmp(argv[1], "wait")) wait_for_names();
    if (!strcmp(argv[1], "desert")) desert();
    if (!strcmp(argv[1], "modex")) modex();
    if (!strcmp(argv[1], "some")) some();
    if (!strcmp(argv[1], "connect")) connect_all();
    if (!strcmp(argv[1], "nodes")) nodes();
    if (!strcmp(argv[1], "many") && argc == 3) many(atoi(argv[2]));
    if (!strcmp(argv[1], "abort") && argc == 3) {
        if (last) PMIx_Abort(atoi(argv[2]), "no more water", NULL, 0);
        sleep(30);
    }
    if (!strcmp(argv[1], "leave")) {
        if (last) _exit(0);
        sleep(30);
    }
    need(PMIx_Finalize(NULL, 0), "finalize");
    return 0;
}
