/* directory.c - see directory.h. */
#include "mpiexec/directory.h"
#include "mpiexec/names.h"
#include "mpiexec/post.h"
#include "mpiexec/tree.h"
#include "mpiexec/wire.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>

#define KEEPER 0        /* the node that has the names */
#define COUNT_MAX 65536 /* keys or infos of one call */

enum what { PUBLISH, LOOKUP, UNPUBLISH };

/* A client's call that is on its way. */
struct call {
    struct post post; /* first: it is posted as that */
    uint32_t id;
    enum what what;
    char *bytes; /* packed */
    size_t n;
    pmix_op_cbfunc_t done;
    pmix_lookup_cbfunc_t found;
    void *arg;
    struct call *next;
};

static struct {
    struct job *job;
    bool far; /* another node has the names */
    struct call *open;
    uint32_t last_id;
} self;

/* ---- packing, by the library, which knows all kinds of values ---- */

static bool pack(pmix_data_buffer_t *b, const void *what, size_t n, pmix_data_type_t type)
{
    return !n || PMIx_Data_pack(NULL, b, (void *)(uintptr_t)what, (int32_t)n, type) == PMIX_SUCCESS;
}

static bool pack_count(pmix_data_buffer_t *b, size_t n)
{
    uint32_t count = (uint32_t)n;
    return n <= COUNT_MAX && pack(b, &count, 1, PMIX_UINT32);
}

static bool unpack(pmix_data_buffer_t *b, void *what, size_t n, pmix_data_type_t type)
{
    int32_t got = (int32_t)n;
    return !n || (PMIx_Data_unpack(NULL, b, what, &got, type) == PMIX_SUCCESS && got == (int32_t)n);
}

static bool unpack_count(pmix_data_buffer_t *b, size_t *n)
{
    uint32_t count = 0;
    bool ok = unpack(b, &count, 1, PMIX_UINT32) && count <= COUNT_MAX;
    *n = ok ? count : 0;
    return ok;
}

/* The bytes are copied: the library frees those of a buffer. */
static void load(pmix_data_buffer_t *b, const void *bytes, size_t n)
{
    char *copy = xcalloc(n, 1);
    memcpy(copy, bytes, n);
    PMIX_DATA_BUFFER_CONSTRUCT(b);
    PMIX_DATA_BUFFER_LOAD(b, copy, n);
}

/* ---- who asks ---- */

static void send_call(struct post *post)
{
    struct call *c = (struct call *)post;
    struct wire_out w = {0};
    c->id = ++self.last_id;
    c->next = self.open;
    self.open = c;
    wire_put32(&w, c->id);
    wire_put8(&w, (uint8_t)c->what);
    wire_put_raw(&w, c->bytes, c->n);
    free(c->bytes);
    tree_send(KEEPER, TREE_NAMES_ASK, w.bytes, w.n);
    wire_free(&w);
}

/* `items` are infos, or strings. */
static pmix_status_t ask(struct call how, const pmix_proc_t *p, const void *items, size_t n, pmix_data_type_t type)
{
    pmix_data_buffer_t b;
    PMIX_DATA_BUFFER_CONSTRUCT(&b);
    if (!pack(&b, p, 1, PMIX_PROC) || !pack_count(&b, n) || !pack(&b, items, n, type)) {
        PMIX_DATA_BUFFER_DESTRUCT(&b);
        return PMIX_ERR_PACK_FAILURE;
    }
    struct call *c = xcalloc(1, sizeof *c);
    *c = how;
    PMIX_DATA_BUFFER_UNLOAD(&b, c->bytes, c->n);
    post_run(&c->post, send_call);
    return PMIX_SUCCESS;
}

static void found(struct call *c, pmix_status_t status, const void *bytes, size_t n)
{
    pmix_data_buffer_t b;
    size_t count = 0;
    load(&b, bytes, n);
    bool ok = status == PMIX_SUCCESS && unpack_count(&b, &count);
    pmix_pdata_t *data = xcalloc(count, sizeof *data);
    ok = ok && unpack(&b, data, count, PMIX_PDATA);
    if (ok)
        c->found(PMIX_SUCCESS, data, count, c->arg); /* copies */
    else
        c->found(status == PMIX_SUCCESS ? PMIX_ERR_UNPACK_FAILURE : status, NULL, 0, c->arg);
    names_free(data, ok ? count : 0);
    PMIX_DATA_BUFFER_DESTRUCT(&b);
}

static bool on_answer(int from, const void *bytes, size_t n)
{
    struct wire_in w = wire_of(bytes, n);
    uint32_t id = wire_get32(&w);
    int status = (int)wire_get32(&w);
    struct call **at = &self.open;
    while (*at && (*at)->id != id) at = &(*at)->next;
    struct call *c = *at;
    if (w.bad || !c || launch_node_of(self.job, from) != KEEPER) return false;
    *at = c->next;
    if (c->found)
        found(c, status, w.at, wire_left(&w));
    else
        c->done(status, c->arg);
    free(c);
    return true;
}

/* ---- who has the names ---- */

static pmix_status_t publish(pmix_data_buffer_t *b, const pmix_proc_t *p, size_t n)
{
    pmix_info_t *info;
    PMIX_INFO_CREATE(info, n);
    pmix_status_t rc = unpack(b, info, n, PMIX_INFO) ? names_publish(p, info, n) : PMIX_ERR_UNPACK_FAILURE;
    PMIX_INFO_FREE(info, n);
    return rc;
}

/* A lookup's data are packed into `out`. */
static pmix_status_t by_keys(enum what what, pmix_data_buffer_t *b, const pmix_proc_t *p, size_t n,
                             pmix_data_buffer_t *out)
{
    char **keys = xcalloc(n + 1, sizeof *keys);
    pmix_status_t rc = PMIX_ERR_UNPACK_FAILURE;
    if (unpack(b, keys, n, PMIX_STRING)) {
        if (what == UNPUBLISH) {
            rc = names_unpublish(p, n ? keys : NULL);
        } else {
            pmix_pdata_t *data;
            size_t count;
            rc = names_lookup(keys, &data, &count);
            if (rc == PMIX_SUCCESS && (!pack_count(out, count) || !pack(out, data, count, PMIX_PDATA)))
                rc = PMIX_ERR_PACK_FAILURE;
            names_free(data, count);
        }
    }
    for (size_t i = 0; i < n; i++) free(keys[i]);
    free(keys);
    return rc;
}

static void reply(int node, uint32_t id, pmix_status_t status, pmix_data_buffer_t *packed)
{
    struct wire_out w = {0};
    char *bytes = NULL;
    size_t n = 0;
    PMIX_DATA_BUFFER_UNLOAD(packed, bytes, n);
    wire_put32(&w, id);
    wire_put32(&w, (uint32_t)status);
    if (status == PMIX_SUCCESS) wire_put_raw(&w, bytes, n);
    free(bytes);
    tree_send(node, TREE_NAMES, w.bytes, w.n);
    wire_free(&w);
}

static bool on_ask(int from, const void *bytes, size_t n)
{
    struct wire_in w = wire_of(bytes, n);
    uint32_t id = wire_get32(&w);
    enum what what = wire_get8(&w);
    int node = launch_node_of(self.job, from);
    pmix_data_buffer_t in, out;
    pmix_proc_t p;
    size_t count;
    if (w.bad || what > UNPUBLISH || node == NODE_NONE) return false;
    load(&in, w.at, wire_left(&w));
    PMIX_DATA_BUFFER_CONSTRUCT(&out);
    bool ok = unpack(&in, &p, 1, PMIX_PROC) && unpack_count(&in, &count) && p.rank < (uint32_t)self.job->size &&
              self.job->ranks[p.rank].node == node;
    if (ok) reply(node, id, what == PUBLISH ? publish(&in, &p, count) : by_keys(what, &in, &p, count, &out), &out);
    PMIX_DATA_BUFFER_DESTRUCT(&in);
    return ok;
}

void directory_open(struct job *j)
{
    self.job = j;
    self.far = j->node != KEEPER;
    if (self.far)
        tree_handlers[TREE_NAMES] = on_answer;
    else
        tree_handlers[TREE_NAMES_ASK] = on_ask;
}

/* ---- upcalls ---- */

static size_t count_keys(char **keys)
{
    size_t n = 0;
    while (keys && keys[n]) n++;
    return n;
}

/* The library takes this for the end of the call, without `done`. */
static pmix_status_t at_once(pmix_status_t rc) { return rc == PMIX_SUCCESS ? PMIX_OPERATION_SUCCEEDED : rc; }

pmix_status_t directory_publish(const pmix_proc_t *p, const pmix_info_t info[], size_t ninfo, pmix_op_cbfunc_t done,
                                void *arg)
{
    if (!self.far) return at_once(names_publish(p, info, ninfo));
    return ask((struct call){.what = PUBLISH, .done = done, .arg = arg}, p, info, ninfo, PMIX_INFO);
}

pmix_status_t directory_lookup(const pmix_proc_t *p, char **keys, const pmix_info_t info[], size_t ninfo,
                               pmix_lookup_cbfunc_t found_it, void *arg)
{
    (void)info, (void)ninfo;
    if (self.far)
        return ask((struct call){.what = LOOKUP, .found = found_it, .arg = arg}, p, keys, count_keys(keys),
                   PMIX_STRING);
    pmix_pdata_t *data;
    size_t n;
    pmix_status_t rc = names_lookup(keys, &data, &n);
    if (rc == PMIX_SUCCESS) found_it(PMIX_SUCCESS, data, n, arg); /* copies */
    names_free(data, n);
    return rc;
}

pmix_status_t directory_unpublish(const pmix_proc_t *p, char **keys, const pmix_info_t info[], size_t ninfo,
                                  pmix_op_cbfunc_t done, void *arg)
{
    (void)info, (void)ninfo;
    if (!self.far) return at_once(names_unpublish(p, keys));
    return ask((struct call){.what = UNPUBLISH, .done = done, .arg = arg}, p, keys, count_keys(keys), PMIX_STRING);
}
