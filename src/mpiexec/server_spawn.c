/* server_spawn.c - see server_spawn.h. */
#include "mpiexec/server_spawn.h"
#include "base/err.h"
#include "mpiexec/asks.h"
#include "mpiexec/post.h"
#include "mpiexec/tree.h"
#include "mpiexec/words.h"
#include "mpiexec/xalloc.h"
#include "proc/pmix/spawn_keys.h"

#include <pmix.h>
#include <stdlib.h>

/* A client's call that is on its way. */
struct call {
    struct post post; /* first: it is posted as that */
    uint32_t rank;
    struct ask_out question;
    pmix_spawn_cbfunc_t done;
    void *arg;
};

/* ---- on the library's thread ---- */

static bool has_meaning(const pmix_info_t *i)
{
    return spawn_key_of_pmix(i->key) && i->value.type == PMIX_STRING && i->value.data.string;
}

static void put_list(struct ask_out *q, char *const *list)
{
    uint32_t n = 0;
    while (list && list[n]) n++;
    ask_put32(q, n);
    for (uint32_t i = 0; i < n; i++) ask_put_text(q, list[i]);
}

/* argv[0] may be missing, or be another name than the file's. */
static void put_argv(struct ask_out *q, const pmix_app_t *a)
{
    uint32_t n = 0;
    while (a->argv && a->argv[n]) n++;
    ask_put32(q, n ? n : 1);
    ask_put_text(q, a->cmd);
    for (uint32_t i = 1; i < n; i++) ask_put_text(q, a->argv[i]);
}

/* Of the job and of the program, which comes last and is taken therefore. */
static void put_infos(struct ask_out *q, const pmix_info_t *job, size_t njob, const pmix_app_t *a)
{
    uint32_t n = 0;
    for (size_t i = 0; i < njob; i++) n += has_meaning(&job[i]);
    for (size_t i = 0; i < a->ninfo; i++) n += has_meaning(&a->info[i]);
    ask_put32(q, 2 * n);
    for (size_t i = 0; i < njob + a->ninfo; i++) {
        const pmix_info_t *info = i < njob ? &job[i] : &a->info[i - njob];
        if (!has_meaning(info)) continue;
        ask_put_text(q, spawn_key_of_pmix(info->key));
        ask_put_text(q, info->value.data.string);
    }
}

static void put_app(struct ask_out *q, const pmix_info_t *job, size_t njob, const pmix_app_t *a)
{
    ask_put32(q, a->maxprocs > 0 ? (uint32_t)a->maxprocs : 1);
    ask_put_text(q, a->cwd ? a->cwd : "");
    put_argv(q, a);
    put_list(q, a->env);
    put_infos(q, job, njob, a);
}

/* ---- on the main thread ---- */

static void answered(void *arg, int status, const void *bytes, size_t n)
{
    struct call *c = arg;
    struct ask_in in = ask_of(bytes, n);
    pmix_nspace_t job = {0};
    if (!status) ask_get32(&in); /* the size, which the client knows */
    const char *text = ask_get_text(&in, ASK_BYTES_MAX);
    if (status)
        say("rank %u cannot spawn a job by PMIx_Spawn: %s", c->rank, text);
    else
        snprintf(job, sizeof job, "%s", text);
    c->done(status ? PMIX_ERR_PROC_FAILED_TO_START : PMIX_SUCCESS, job, c->arg);
    free(c->question.bytes);
    free(c);
}

static void send_call(struct post *post)
{
    struct call *c = (struct call *)post;
    asks_send((struct route){.node = TREE_ROOT}, ASK_SPAWN, c->rank, c->question.bytes, c->question.n, answered, c);
}

pmix_status_t server_spawn(const pmix_proc_t *p, const pmix_info_t info[], size_t ninfo, const pmix_app_t apps[],
                           size_t napps, pmix_spawn_cbfunc_t done, void *arg)
{
    struct call *c = xcalloc(1, sizeof *c);
    bool named = napps > 0;
    *c = (struct call){.rank = p->rank, .done = done, .arg = arg};
    c->question = (struct ask_out){.bytes = xcalloc(1, ASK_BYTES_MAX), .room = ASK_BYTES_MAX};
    ask_put32(&c->question, (uint32_t)napps);
    for (size_t i = 0; i < napps && named; i++)
        if ((named = apps[i].cmd != NULL)) put_app(&c->question, info, ninfo, &apps[i]);
    if (named && !c->question.bad) {
        post_run(&c->post, send_call);
        return PMIX_SUCCESS;
    }
    free(c->question.bytes);
    free(c);
    return PMIX_ERR_BAD_PARAM;
}
