/*
 * pmix_rank.c - a PMIx client for the tests of the launcher's server:
 *   pmix_rank exchange   puts, fences and gets a value of every rank; reads what the job is made of
 *   pmix_rank publish    rank 0 publishes, the last rank looks up, then rank 0 takes it back
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

int main(int argc, char **argv)
{
    if (argc < 2) return 97;
    need(PMIx_Init(&me, NULL, 0), "init");
    size = job_number(PMIX_JOB_SIZE, PMIX_RANK_WILDCARD);
    bool last = me.rank == size - 1;
    if (!strcmp(argv[1], "exchange")) exchange();
    if (!strcmp(argv[1], "publish")) publish();
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
