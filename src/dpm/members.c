/* members.c - see members.h. */
#include "dpm/members.h"
#include "base/err.h"
#include "base/var.h"
#include "comm/talk.h"
#include "dpm/endpoints.h"
#include "dpm/keys.h"
#include "dpm/table.h"
#include "proc/dynamic.h"
#include "proc/proc.h"
#include "pt2pt/lane.h"
#include "pt2pt/lanes.h"
#include "transport/peer.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* What each member sends: who it is; then its card, and what there is to know of its job. */
struct member {
    int32_t code; /* 0, or why there is no card */
    uint32_t card_bytes, job_bytes, node;
    struct proc_name name;
};
struct member_message {
    struct member member;
    uint8_t bytes[PEER_CARD_MAX + PROC_NAME_MAX + CRYPTO_KEY + 8];
};
static_assert(sizeof(struct member) == 32 && offsetof(struct member_message, bytes) == sizeof(struct member), "sent as it is");

#define FIRST_ROOM 65536 /* bytes: memory for what members send grows with what has come of it */

/* ---- a member ---- */

/* Of several jobs, the first member of each describes it. */
static bool describes_job(const struct comm *c, int root)
{
    if (!comm_has_others(c)) return c->rank == root;
    for (int32_t r = 0; r < c->rank; r++)
        if (jobs_is_own(rankmap_at(c->local, r))) return false;
    return true;
}

static int put_card(uint8_t *card)
{
    lane_enter(lanes_first());
    int n = peers_meet_others();
    if (!n) n = peer_card(card, PEER_CARD_MAX);
    lane_leave(lanes_first());
    return n;
}

static int put_job(struct ask_out *o)
{
    const struct crypto *c = endpoints_crypto();
    uint8_t public[CRYPTO_KEY];
    int rc = c ? keys_public(c, public) : err_code();
    if (rc) return rc;
    ask_put_text(o, proc_self()->job);
    ask_put32(o, proc_self()->size);
    ask_put(o, public, sizeof public);
    return 0;
}

static int put_self(const struct comm *c, int root, struct member_message *m)
{
    struct member *t = &m->member;
    *t = (struct member){.name = jobs_own_name(), .node = jobs_node_of(proc_self()->rank)};
    int n = put_card(m->bytes), rc = n < 0 ? n : 0;
    struct ask_out o = {.bytes = m->bytes, .n = n < 0 ? 0 : (size_t)n, .room = sizeof m->bytes};
    if (!rc && describes_job(c, root)) rc = put_job(&o);
    if (rc) return t->code = rc;
    t->card_bytes = (uint32_t)n;
    t->job_bytes = (uint32_t)(o.n - (size_t)n);
    return 0;
}

static size_t member_bytes(const struct member *t) { return (size_t)t->card_bytes + t->job_bytes; }

/* ---- the root ---- */

/* What has come. All malloc'ed. */
struct gathered {
    uint32_t size, jobs;
    struct member *member;
    size_t *place; /* of what each has sent, in `more`, in bytes */
    uint8_t *more;
    size_t n, room; /* of `more` */
    struct table_job *job;
    struct job_number {
        uint64_t id;
        uint32_t k;
    } *number; /* of the jobs, sorted by id */
    struct table_entry *entry;
};

static void free_gathered(struct gathered *h)
{
    free(h->member);
    free(h->place);
    free(h->more);
    free(h->job);
    free(h->number);
    free(h->entry);
}

static int no_memory(const struct gathered *h) { return err_set(TERN_ERR_NOMEM, "no memory for what %u processes send of themselves", h->size); }

static int make_room(struct gathered *h)
{
    h->member = malloc(h->size * sizeof *h->member);
    h->place = malloc(h->size * sizeof *h->place);
    h->entry = malloc(h->size * sizeof *h->entry);
    return h->member && h->place && h->entry ? 0 : no_memory(h);
}

static int room_for(struct gathered *h, size_t n)
{
    size_t room = h->room ? h->room : FIRST_ROOM;
    while (room < h->n + n) room *= 2;
    if (h->more && room == h->room) return 0;
    uint8_t *more = realloc(h->more, room);
    if (!more) return no_memory(h);
    h->more = more;
    h->room = room;
    return 0;
}

static int keep(struct gathered *h, int rank, const struct member_message *m)
{
    int rc = room_for(h, member_bytes(&m->member));
    if (rc) return rc;
    h->member[rank] = m->member;
    h->place[rank] = h->n;
    memcpy(h->more + h->n, m->bytes, member_bytes(&m->member));
    h->n += member_bytes(&m->member);
    h->jobs += m->member.job_bytes > 0;
    return 0;
}

/* A member may be of another job, and wrong. */
static int recv_member(struct comm *c, int rank, struct member_message *m)
{
    const struct member *t = &m->member;
    size_t n;
    int rc = talk_recv_some(c, m, sizeof *m, rank, TALK_CREATE, &n);
    if (rc) return rc;
    if (n >= sizeof *t && t->card_bytes <= PEER_CARD_MAX && n - sizeof *t == member_bytes(t)) return 0;
    return err_set(TERN_ERR_SYSTEM, "rank %d sends what it should not of itself", rank);
}

/* Receives all, also if memory is out: what is not received now would be received by a later call. */
static int gather_all(struct comm *c, const struct member_message *mine, struct gathered *h)
{
    int rc = err_keep(h, make_room(h));
    for (int r = 0; r < c->size; r++) {
        struct member_message its;
        int now = r == c->rank ? 0 : recv_member(c, r, &its);
        if (rc) continue;
        if (!now) now = keep(h, r, r == c->rank ? mine : &its);
        if (now) rc = err_keep(h, now);
    }
    err_recall(h, rc);
    return rc;
}

/* Is something wrong with a member? */
static int check_members(const struct gathered *h)
{
    for (uint32_t i = 0; i < h->size; i++)
        if (h->member[i].code)
            return err_set(h->member[i].code, "rank %u cannot be reached by processes of other jobs: that process has the reason", i);
    return 0;
}

static int by_id(const void *a, const void *b)
{
    const struct job_number *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int find_jobs(struct gathered *h)
{
    uint32_t k = 0;
    h->job = calloc(h->jobs + 1, sizeof *h->job);
    h->number = calloc(h->jobs + 1, sizeof *h->number);
    if (!h->job || !h->number) return no_memory(h);
    for (uint32_t i = 0; i < h->size; i++) {
        const struct member *t = &h->member[i];
        struct ask_in in = ask_of(h->more + h->place[i] + t->card_bytes, t->job_bytes);
        if (!t->job_bytes) continue;
        h->job[k].name = ask_get_text(&in, PROC_NAME_MAX);
        h->job[k].size = ask_get32(&in);
        h->job[k].public = ask_get(&in, CRYPTO_KEY);
        if (!ask_done(&in)) return err_set(TERN_ERR_SYSTEM, "rank %u sends what it should not of its job", i);
        h->number[k] = (struct job_number){t->name.job, k};
        k++;
    }
    qsort(h->number, k, sizeof *h->number, by_id);
    return 0;
}

/* False: of a job that nobody has described. */
static bool find_members(struct gathered *h)
{
    const struct job_number *n = NULL;
    for (uint32_t i = 0; i < h->size; i++) {
        const struct member *t = &h->member[i];
        struct job_number wanted = {t->name.job, 0};
        if (!n || n->id != wanted.id) n = bsearch(&wanted, h->number, h->jobs, sizeof *n, by_id);
        if (!n) return false;
        h->entry[i] = (struct table_entry){n->k, t->name.rank, t->node, t->card_bytes, h->more + h->place[i]};
    }
    return true;
}

static int make_table(struct gathered *h, uint32_t root, void **bytes_p, size_t *n_p)
{
    int64_t padding = min_int64(var_int(VAR_DPM_PADDING), 1 << 30);
    int rc = check_members(h);
    if (!rc) rc = find_jobs(h);
    if (rc) return rc;
    if (!find_members(h)) return err_set(TERN_ERR_INTERN, "a job of the group has no first member");
    return table_write(h->job, h->jobs, h->entry, h->size, root, (uint32_t)padding, bytes_p, n_p);
}

/* ---- all ---- */

int members_table(struct comm *c, int root, void **bytes_p, size_t *n_p)
{
    struct member_message mine;
    struct gathered h = {.size = (uint32_t)c->size};
    *bytes_p = NULL;
    *n_p = 0;
    int bad = err_keep(&mine, put_self(c, root, &mine)), rc;
    if (c->rank == root) rc = gather_all(c, &mine, &h);
    else rc = talk_send(c, &mine, sizeof mine.member + member_bytes(&mine.member), root, TALK_CREATE);
    if (bad) {
        err_recall(&mine, bad);
        rc = bad;
    }
    if (!rc && c->rank == root) rc = make_table(&h, (uint32_t)root, bytes_p, n_p);
    free_gathered(&h);
    return rc;
}
