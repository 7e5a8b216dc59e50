/* members.c - see members.h. */
#include "dpm/members.h"
#include "base/err.h"
#include "base/var.h"
#include "coll/coll.h"
#include "dpm/ends.h"
#include "dpm/keys.h"
#include "dpm/table.h"
#include "proc/dynamic.h"
#include "proc/proc.h"
#include "pt2pt/lane.h"
#include "pt2pt/lanes.h"
#include "transport/peer.h"

#include <stdlib.h>
#include <string.h>

/* The first thing that each member tells. */
struct told {
    int32_t code; /* 0, or why there is no card */
    uint32_t card_bytes, job_bytes, node;
    struct proc_name name;
};
static_assert(sizeof(struct told) == 32, "sent as it is");

/* The second: its card, and what there is to be said of its job. */
struct told_more {
    uint8_t bytes[PEER_CARD_MAX + PROC_NAME_MAX + CRYPTO_KEY + 8];
};

/* ---- a member ---- */

/* Of several jobs, the first member of each speaks for it. */
static bool speaks_for_job(const struct comm *c, int root)
{
    if (!comm_has_others(c)) return c->rank == root;
    for (int32_t r = 0; r < c->rank; r++)
        if (jobs_is_own(rankmap_at(c->local, r))) return false;
    return true;
}

static int tell_card(uint8_t *card)
{
    lane_enter(lanes_first());
    int n = peers_meet_others();
    if (!n) n = peer_card(card, PEER_CARD_MAX);
    lane_leave(lanes_first());
    return n;
}

static int tell_job(struct ask_out *o)
{
    const struct crypto *c = ends_crypto();
    uint8_t public[CRYPTO_KEY];
    int rc = c ? keys_public(c, public) : err_code();
    if (rc) return rc;
    ask_put_text(o, proc_self()->job);
    ask_put32(o, proc_self()->size);
    ask_put(o, public, sizeof public);
    return 0;
}

static int tell(const struct comm *c, int root, struct told *t, struct told_more *more)
{
    *t = (struct told){.name = jobs_own_name(), .node = jobs_node_of(proc_self()->rank)};
    int n = tell_card(more->bytes), rc = n < 0 ? n : 0;
    struct ask_out o = {.bytes = more->bytes, .n = n < 0 ? 0 : (size_t)n, .room = sizeof more->bytes};
    if (!rc && speaks_for_job(c, root)) rc = tell_job(&o);
    if (rc) return t->code = rc;
    t->card_bytes = (uint32_t)n;
    t->job_bytes = (uint32_t)(o.n - (size_t)n);
    return 0;
}

/* ---- the root ---- */

/* What it has been told. All malloc'ed. */
struct heard {
    uint32_t size, jobs;
    struct told *told;
    int64_t *counts, *places; /* of the second in `more`, in bytes */
    uint8_t *more;
    struct table_job *job;
    struct job_number {
        uint64_t id;
        uint32_t k;
    } *number; /* of the jobs, sorted by id */
    struct table_entry *entry;
};

static void free_heard(struct heard *h)
{
    free(h->told);
    free(h->counts);
    free(h->places);
    free(h->more);
    free(h->job);
    free(h->number);
    free(h->entry);
}

static int no_memory(const struct heard *h) { return err_set(TERN_ERR_NOMEM, "no memory for what %u processes tell of themselves", h->size); }

static int make_room(struct heard *h)
{
    h->told = malloc(h->size * sizeof *h->told);
    h->counts = malloc(h->size * sizeof *h->counts);
    h->places = malloc(h->size * sizeof *h->places);
    h->entry = malloc(h->size * sizeof *h->entry);
    return h->told && h->counts && h->places && h->entry ? 0 : no_memory(h);
}

/* Where the second things go. */
static int place_all(struct heard *h)
{
    int64_t at = 0;
    for (uint32_t i = 0; i < h->size; i++) {
        h->counts[i] = h->told[i].card_bytes + (int64_t)h->told[i].job_bytes;
        h->places[i] = at;
        at += h->counts[i];
        h->jobs += h->told[i].job_bytes > 0;
    }
    h->more = malloc((size_t)at + 1);
    h->job = calloc(h->jobs + 1, sizeof *h->job);
    h->number = calloc(h->jobs + 1, sizeof *h->number);
    return h->more && h->job && h->number ? 0 : no_memory(h);
}

/* Is something wrong with a member? */
static int check_members(const struct heard *h)
{
    for (uint32_t i = 0; i < h->size; i++)
        if (h->told[i].code)
            return err_set(h->told[i].code, "rank %u cannot be reached by processes of other jobs: that process has the reason", i);
    return 0;
}

static int by_id(const void *a, const void *b)
{
    const struct job_number *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static void find_jobs(struct heard *h)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < h->size; i++) {
        const struct told *t = &h->told[i];
        struct ask_in in = ask_of(h->more + h->places[i] + t->card_bytes, t->job_bytes);
        if (!t->job_bytes) continue;
        h->job[k].name = ask_get_text(&in, PROC_NAME_MAX);
        h->job[k].size = ask_get32(&in);
        h->job[k].public = ask_get(&in, CRYPTO_KEY);
        h->number[k] = (struct job_number){t->name.job, k};
        k++;
    }
    qsort(h->number, k, sizeof *h->number, by_id);
}

/* False: of a job that nobody has spoken for. */
static bool find_members(struct heard *h)
{
    const struct job_number *n = NULL;
    for (uint32_t i = 0; i < h->size; i++) {
        const struct told *t = &h->told[i];
        struct job_number wanted = {t->name.job, 0};
        if (!n || n->id != wanted.id) n = bsearch(&wanted, h->number, h->jobs, sizeof *n, by_id);
        if (!n) return false;
        h->entry[i] = (struct table_entry){n->k, t->name.rank, t->node, t->card_bytes, h->more + h->places[i]};
    }
    return true;
}

static int make_table(struct heard *h, uint32_t root, void **bytes_p, size_t *n_p)
{
    int64_t padding = min_int64(var_int(VAR_DPM_PADDING), 1 << 30);
    int rc = check_members(h);
    if (rc) return rc;
    find_jobs(h);
    if (!find_members(h)) return err_set(TERN_ERR_INTERN, "a job of the group has no first member");
    return table_write(h->job, h->jobs, h->entry, h->size, root, (uint32_t)padding, bytes_p, n_p);
}

/* ---- all ---- */

static int gather_told(struct comm *c, int root, const struct told *t, struct told *all)
{
    struct coll_call a = {.kind = COLL_GATHER, .sendbuf = t, .scount = sizeof *t, .recvbuf = all, .rcount = sizeof *t,
                          .stype = type_of(MPI_BYTE), .rtype = type_of(MPI_BYTE), .root = root};
    return coll_run(c, &a);
}

static int gather_more(struct comm *c, int root, const struct told *t, const struct told_more *more, const struct heard *h)
{
    struct coll_call a = {.kind = COLL_GATHERV, .sendbuf = more->bytes, .scount = t->card_bytes + (int64_t)t->job_bytes, .recvbuf = h->more,
                          .rcounts = h->counts, .rdispls = h->places, .stype = type_of(MPI_BYTE), .rtype = type_of(MPI_BYTE), .root = root};
    return coll_run(c, &a);
}


int members_table(struct comm *c, int root, void **bytes_p, size_t *n_p)
{
    struct told mine;
    struct told_more more;
    struct heard h = {.size = (uint32_t)c->size};
    bool is_root = c->rank == root;
    *bytes_p = NULL;
    *n_p = 0;
    int bad = tell(c, root, &mine, &more);
    err_keep(&mine, bad);
    int rc = is_root ? make_room(&h) : 0;
    if (!rc) rc = gather_told(c, root, &mine, h.told);
    if (!rc && is_root) rc = place_all(&h);
    if (!rc) rc = gather_more(c, root, &mine, &more, &h);
    err_recall(&mine, bad);
    if (!rc) rc = bad;
    if (!rc && is_root) rc = make_table(&h, (uint32_t)root, bytes_p, n_p);
    free_heard(&h);
    return rc;
}
