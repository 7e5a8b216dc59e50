/* connect.c - see connect.h. */
#include "dpm/connect.h"
#include "base/err.h"
#include "base/var.h"
#include "comm/talk.h"
#include "dpm/connected.h"
#include "dpm/keys.h"
#include "dpm/members.h"
#include "dpm/message.h"
#include "dpm/table.h"
#include "proc/proc.h"
#include "pt2pt/lane.h"
#include "transport/dgram/dgram.h"

#include <stdlib.h>
#include <string.h>

#define TRY_NS 1000000000u /* so long an address is tried that may not lead to the port */
#define LAST_NS 1000000000u /* so long the last message is repeated: only its acknowledgement says that it came (thank, recv_thanks) */

/* ---- messages ---- */

static int no_memory_to_send(void) { return err_set(TERN_ERR_NOMEM, "no memory for a message to another group"); }

static int send_message(struct partner *p, const struct dpm_message *s)
{
    size_t n;
    void *bytes = message_write(s, &n);
    int rc = bytes ? partner_send(p, bytes, n) : no_memory_to_send();
    free(bytes);
    return rc;
}

/* Refuses the other side, with the code and the words of what was wrong. Our words stay. */
static void refuse(struct partner *p, int code)
{
    char words[MESSAGE_WORDS];
    snprintf(words, sizeof words, "%s", err_words());
    if (!send_message(p, &(struct dpm_message){.kind = MESSAGE_NO, .code = code, .words = words})) partner_flush(p, LAST_NS);
    err_set(code, "%s", words);
}

static int strange(void) { return err_set(TERN_ERR_SYSTEM, "the process at the other side of the port sends what it should not"); }

/* The next message of the partner, which is waited for so long (ns) at most; *memory, which is malloc'ed, has it. NO is an error. */
static int recv_message_for(struct partner *p, uint64_t ns, struct dpm_message *s, void **memory)
{
    size_t n;
    int rc = partner_recv_for(p, ns, memory, &n);
    if (rc) return rc;
    if (!message_read(*memory, n, s)) return strange();
    return s->kind == MESSAGE_NO ? err_set(s->code, "the other group refuses the connection: %s", s->words) : 0;
}

/* The process there may be busy for as long as it likes: an acceptor that has not come to MPI_Comm_accept yet. */
static int recv_message(struct partner *p, struct dpm_message *s, void **memory) { return recv_message_for(p, UINT64_MAX, s, memory); }

/* ---- the roots ---- */

/* One exchange: with whom, and what is known of the other side so far. */
struct exchange {
    struct partner *partner; /* NULL: by a communicator */
    const struct own_table *mine;
    uint64_t ctx; /* that this side would take */
    struct connected *connection; /* NULL: none */
};

/*
 * Is it too long for datagrams, or better sent over a connection? TERN_DPM_CONNECTED: a connection costs two round trips more, and
 * datagrams a tag and a header each. tern_tune --connect measures both ways by length; doc/decisions/connecting-groups.md has figures.
 */
static bool needs_connection(uint64_t bytes)
{
    return bytes > DGRAM_MESSAGE - (1 << 16) || bytes > (uint64_t)var_int(VAR_DPM_CONNECTED);
}

/* The context that both take. */
static uint64_t choose_context(uint64_t mine, uint64_t its, const struct table *theirs)
{
    struct proc_name own = jobs_own_name(), other = table_root(theirs);
    return proc_name_before(&own, &other) ? mine : its;
}

/* Are processes of a run in the group? Of a job that is not known here, none are. */
static int check_run_apart(const struct comm *local, struct proc_name name, uint32_t count)
{
    uint32_t index;
    for (uint32_t end = name.rank + count; name.rank < end && jobs_index_of(&name, &index); name.rank++)
        if (rankmap_find(local->local, index) >= 0)
            return err_set(TERN_ERR_COMM, "%s is in both groups; they have to be disjoint", jobs_long_words(index));
    return 0;
}

/* No process is in both groups. */
static int check_apart(const struct comm *local, const struct table *t)
{
    int rc = 0;
    for (uint32_t i = 0; i < t->runs && !rc; i++) {
        struct table_run r = table_run(t, i);
        rc = check_run_apart(local, (struct proc_name){jobs_id(t->job[r.job].name), r.first, 0}, r.count);
    }
    return rc;
}

/* The own job, as others have told of it. */
static int check_own(const struct table_job *j)
{
    if (!strcmp(j->name, proc_self()->job) && j->size == jobs_own_size) return 0;
    return err_set(TERN_ERR_SYSTEM, "what the other group has told of this job is wrong");
}

/* Of jobs that are known here, the table tells the same. */
static int check_jobs(const struct table *t)
{
    uint64_t own = jobs_own_name().job;
    int rc = 0;
    for (uint32_t k = 0; k < t->jobs && !rc; k++) {
        const struct table_job *j = &t->job[k];
        rc = jobs_id(j->name) == own ? check_own(j) : job_check(j->name, j->size, j->public);
    }
    return rc;
}

/* The table of the other side is checked, and kept in the outcome, whose it is from here on. */
static int take_table(const struct exchange *x, uint64_t its_ctx, void *bytes, size_t n, struct outcome *o)
{
    struct table t;
    o->theirs = bytes;
    o->bytes = n;
    int rc = table_open(&t, bytes, n);
    if (rc) return rc;
    rc = comm_ctx_is_possible(its_ctx) ? check_jobs(&t) : strange();
    if (!rc) rc = check_apart(x->mine->local, &t);
    o->overlaps = rc == TERN_ERR_COMM;
    if (!rc) o->ctx = choose_context(x->ctx, its_ctx, &t);
    table_close(&t);
    return rc;
}

/* The same of one that has come in a message. */
static int copy_table(const struct exchange *x, const struct dpm_message *s, struct outcome *o)
{
    void *copy = malloc(s->bytes);
    if (!copy) return err_set(TERN_ERR_NOMEM, "no memory for the table of another group (%zu bytes)", (size_t)s->bytes);
    memcpy(copy, s->table, s->bytes);
    return take_table(x, s->ctx, copy, s->bytes, o);
}

/* Over the connection. TERN_AGAIN: a message of the partner has come by datagram, and it is nothing good. */
static int recv_table(const struct exchange *x, const struct dpm_message *s, struct outcome *o)
{
    void *bytes;
    int rc = connected_recv(x->connection, s->bytes, &bytes);
    return rc ? rc : take_table(x, s->ctx, bytes, s->bytes, o);
}

/* Why the exchange over the connection has failed: the partner's NO, if one has come by datagram; else `rc`. */
static int why_broken_off(struct partner *p, int rc)
{
    struct dpm_message s;
    void *memory = NULL;
    if (!rc || (rc != TERN_AGAIN && !partner_has_message(p))) return rc;
    err_keep(p, rc);
    int refused = recv_message(p, &s, &memory);
    free(memory);
    if (refused && refused != TERN_ERR_PEER) return refused;
    err_recall(p, rc);
    return rc == TERN_AGAIN ? strange() : rc;
}

/* Of the acceptor: does the caller know all? It may have gone since. One that is there and silent, as it is stopped or means no good,
 * is told that it was given up (see thank), as is one that nobody waits for any more. */
static int recv_thanks(const struct exchange *x)
{
    struct dpm_message s;
    void *memory = NULL;
    int rc = recv_message_for(x->partner, endpoints_patience(), &s, &memory);
    if (!rc && s.kind != MESSAGE_THANKS) rc = strange();
    if (rc == TERN_ERR_PEER && !x->connection && partner_has_acked(x->partner)) rc = 0;
    if (rc == TERN_AGAIN) rc = err_set(TERN_ERR_PORT, "%s", err_words());
    if (rc && rc != TERN_ERR_PEER) refuse(x->partner, rc);
    free(memory);
    return rc;
}

/* ---- the acceptor ---- */

/* The tables, or the longer one, over a connection: first that of the caller, so that it can be refused. */
static int accept_connected(struct exchange *x, const struct dpm_message *hello, struct outcome *o)
{
    struct dpm_message meet = {.kind = MESSAGE_MEET, .ctx = x->ctx, .bytes = x->mine->n};
    int rc = connected_listen(x->partner, &x->connection, &meet.at);
    if (!rc) rc = send_message(x->partner, &meet);
    if (!rc) rc = connected_meet(x->connection);
    if (!rc) rc = hello->table ? copy_table(x, hello, o) : recv_table(x, hello, o);
    if (!rc) rc = connected_send(x->connection, x->mine->bytes, x->mine->n);
    return why_broken_off(x->partner, rc);
}

static int accept_by_datagrams(struct exchange *x, const struct dpm_message *hello, struct outcome *o)
{
    int rc = copy_table(x, hello, o);
    if (rc) return rc;
    return send_message(x->partner, &(struct dpm_message){.kind = MESSAGE_TABLE, .ctx = x->ctx, .bytes = x->mine->n, .table = x->mine->bytes});
}

static int accept_one(struct exchange *x, struct outcome *o)
{
    struct dpm_message s;
    void *memory = NULL;
    int rc = recv_message(x->partner, &s, &memory);
    if (!rc && s.kind != MESSAGE_HELLO) rc = strange();
    if (!rc && (!s.table || needs_connection(x->mine->n))) rc = accept_connected(x, &s, o);
    else if (!rc) rc = accept_by_datagrams(x, &s, o);
    free(memory);
    if (rc && rc != TERN_ERR_PEER) refuse(x->partner, rc);
    return rc ? rc : recv_thanks(x);
}

/* The caller may come late, and may need this core to come: this thread sleeps. Once it has called, its answers come soon: from then on
 * this thread yields. */
static int await_caller(struct endpoint *e, struct partner **p)
{
    lane_wait_so(LANE_SLEEPS);
    int rc = endpoint_await(e, p);
    lane_wait_so(LANE_YIELDS);
    return rc;
}

/* May another one call if this has failed? Where only one may, it has been told what was wrong, unless it was lost (PEER) or fell silent
 * (PORT): it tries its addresses in turn, and leaves those that are not the best without a word. */
static bool may_come(int rc, bool only) { return !only || rc == TERN_ERR_PEER || rc == TERN_ERR_PORT; }

static int accept_callers(struct endpoint *endpoint, bool only, const struct own_table *mine, struct outcome *o)
{
    while (mine->bytes) {
        struct exchange x = {.mine = mine, .ctx = comm_fresh_wide_ctx()};
        int rc = await_caller(endpoint, &x.partner);
        if (!rc) rc = accept_one(&x, o);
        lane_wait_so(LANE_POLLS);
        if (!x.partner) return rc;
        err_keep(&x, rc);
        connected_close(x.connection);
        partner_leave(x.partner);
        err_recall(&x, rc);
        if (!rc) return 0;
        bool overlaps = o->overlaps;
        free(o->theirs);
        *o = (struct outcome){0};
        if (overlaps || !may_come(rc, only)) return rc; /* overlaps: a mistake of the program, which has to be told */
    }
    return mine->code;
}

int connect_accept(void *endpoint, const struct own_table *mine, struct outcome *o) { return accept_callers(endpoint, false, mine, o); }

int connect_accept_children(void *endpoint, const struct own_table *mine, struct outcome *o)
{
    return accept_callers(endpoint, true, mine, o);
}

/* ---- the caller ---- */

/*
 * All has come, in both directions. The caller closes before the acceptor hears of that: who closes first keeps the port
 * for a minute (TIME_WAIT), which the caller's system finds again for other connections, but no acceptor can listen there.
 * With 14,000 such ports, a minute of connecting without a pause, a bind took 5 ms.
 */
static void hang_up(struct exchange *x)
{
    connected_close(x->connection);
    x->connection = NULL;
}

static int call_connected(struct exchange *x, bool sent, const struct dpm_message *meet, struct outcome *o)
{
    int rc = connected_dial(x->partner, &meet->at, &x->connection);
    if (!rc && !sent) rc = connected_send(x->connection, x->mine->bytes, x->mine->n);
    if (!rc) rc = recv_table(x, meet, o);
    if (!rc) hang_up(x);
    return why_broken_off(x->partner, rc);
}

/* What the acceptor answers, and what follows from it. */
static int recv_answer(struct exchange *x, bool sent, struct outcome *o)
{
    struct dpm_message s;
    void *memory = NULL;
    int rc = recv_message(x->partner, &s, &memory);
    if (!rc && s.kind == MESSAGE_TABLE && sent) rc = copy_table(x, &s, o);
    else if (!rc) rc = s.kind == MESSAGE_MEET ? call_connected(x, sent, &s, o) : strange();
    free(memory);
    return rc;
}

/* If THANKS is acknowledged, the acceptor has it. If not, the acceptor has gone, with or without it, or it has given this caller up and
 * said so (NO). */
static int thank(struct exchange *x)
{
    struct dpm_message s;
    void *memory = NULL;
    int rc = send_message(x->partner, &(struct dpm_message){.kind = MESSAGE_THANKS});
    if (rc || partner_flush(x->partner, LAST_NS) || !partner_has_message(x->partner)) return rc;
    rc = recv_message(x->partner, &s, &memory);
    free(memory);
    return rc ? rc : strange();
}

/* With the words of how it was found out. */
static int no_answer(void) { return err_set(TERN_ERR_PORT, "the process of the port does not answer: %s", err_words()); }

static int call(struct exchange *x, struct outcome *o)
{
    struct dpm_message hello = {.kind = MESSAGE_HELLO, .ctx = x->ctx, .bytes = x->mine->n, .table = x->mine->bytes};
    if (needs_connection(hello.bytes)) hello.table = NULL;
    int rc = send_message(x->partner, &hello);
    if (!rc) rc = recv_answer(x, hello.table, o);
    if (rc && rc != TERN_ERR_PEER) {
        refuse(x->partner, rc);
        return rc;
    }
    if (!rc) rc = thank(x);
    return rc == TERN_ERR_PEER ? no_answer() : rc;
}

/* *silent: nobody has answered there. Who has sent its table has; it may refuse afterwards. */
static int call_at(const struct port *port, unsigned i, uint64_t patience, const struct own_table *mine, struct outcome *o, bool *silent)
{
    struct exchange x = {.mine = mine, .ctx = comm_fresh_wide_ctx()};
    struct endpoint *e;
    int rc = endpoint_call(port, i, patience, &e, &x.partner);
    *silent = rc == TERN_ERR_SYSTEM || rc == TERN_ERR_PEER;
    if (rc) return rc == TERN_ERR_PEER ? no_answer() : rc;
    rc = err_keep(&x, call(&x, o));
    *silent = rc == TERN_ERR_PORT && !o->theirs;
    connected_close(x.connection);
    partner_leave(x.partner);
    endpoint_close(e);
    err_recall(&x, rc);
    return rc;
}

/* Each address for a while; then for long the one that is the best by its looks, as the process there may be busy. */
static int call_port(const struct port *port, const struct own_table *mine, struct outcome *o)
{
    uint8_t order[1 + PORT_MORE];
    unsigned n = endpoint_order(port, order);
    bool silent = true;
    int rc = 0;
    for (unsigned i = 0; i < n && n > 1 && silent; i++) rc = call_at(port, order[i], TRY_NS, mine, o, &silent);
    return silent ? call_at(port, order[0], 0, mine, o, &silent) : rc;
}

int connect_call(void *name, const struct own_table *mine, struct outcome *o)
{
    if (!mine->bytes) return mine->code;
    const struct crypto *c = endpoints_crypto();
    struct port port;
    int rc = c ? port_read(name, c, &port) : err_code();
    lane_wait_so(LANE_YIELDS);
    if (!rc) rc = call_port(&port, mine, o);
    lane_wait_so(LANE_POLLS);
    explicit_bzero(&port, sizeof port);
    return rc;
}

/* ---- by a communicator that both roots are in ---- */

struct connect_peer {
    struct comm *comm;
    int rank, tag; /* of the other root */
};

struct announced {
    uint64_t bytes, ctx; /* bytes 0: there is no table */
};

/* The tables themselves. Without memory for the other one nothing is taken; the other root has ours all the same. */
static int swap_tables(const struct connect_peer *p, const struct exchange *x, const struct announced *theirs, struct outcome *o)
{
    void *bytes = malloc(theirs->bytes);
    size_t room = bytes ? theirs->bytes : 0;
    int rc = talk_swap(p->comm, x->mine->bytes, x->mine->n, bytes, room, p->rank, p->tag);
    if (!bytes) return err_set(TERN_ERR_NOMEM, "no memory for the table of another group (%zu bytes)", (size_t)theirs->bytes);
    return rc ? free(bytes), rc : take_table(x, theirs->ctx, bytes, theirs->bytes, o);
}

static int connect_swap(void *peer, const struct own_table *mine, struct outcome *o)
{
    const struct connect_peer *p = peer;
    struct exchange x = {.mine = mine, .ctx = comm_fresh_wide_ctx()};
    struct announced here = {mine->bytes ? mine->n : 0, x.ctx}, there;
    int own = mine->bytes ? 0 : err_keep(&x, mine->code);
    int rc = talk_swap(p->comm, &here, sizeof here, &there, sizeof there, p->rank, p->tag);
    err_recall(&x, own);
    if (own || rc) return own ? own : rc;
    if (!there.bytes) return err_set(TERN_ERR_PEER, "the other group has a process that cannot be reached; its leader has the reason");
    return swap_tables(p, &x, &there, o);
}

int dpm_inter_create(struct comm *local, int leader, struct comm *peer, int remote_leader, int tag, struct comm **out)
{
    struct connect_peer p = {peer, remote_leader, tag};
    return connect_groups(local, leader, 0, connect_swap, &p, out);
}

/* ---- all ---- */

/* The jobs of the other group are known from here on, until they are let go; the own one stays NULL. */
static int know_jobs(const struct table *t, struct job_entry **job)
{
    uint64_t own = jobs_own_name().job;
    int rc = 0;
    for (uint32_t k = 0; k < t->jobs && !rc; k++) {
        const struct table_job *j = &t->job[k];
        if (jobs_id(j->name) == own) rc = check_own(j);
        else if (!(job[k] = job_add(j->name, j->size, j->public, keys_pair))) rc = err_code();
    }
    return rc;
}

/* The members by rank: their indices. */
static int know_members(const struct table *t, struct card_pack *cards, struct job_entry *const *job, uint32_t *index)
{
    uint32_t place = 0;
    int rc = 0;
    for (uint32_t i = 0; i < t->runs; i++) {
        struct table_run r = table_run(t, i);
        struct job_entry *of = job[r.job];
        for (uint32_t k = 0; k < r.count && !rc; k++, place = card_pack_next(cards, place)) {
            *index++ = of ? job_index(of, r.first + k) : r.first + k;
            if (of) rc = job_card_put_packed(of, r.first + k, cards, place);
        }
    }
    return rc;
}

static void no_memory_for(const struct table *t) { err_set(TERN_ERR_NOMEM, "no memory for a group of %u processes", t->size); }

/* The processes of a table, by rank. */
static struct rankmap *know_group(const struct table *t, struct card_pack *cards)
{
    struct job_entry **job = calloc(t->jobs, sizeof *job);
    uint32_t *index = malloc(t->size * sizeof *index);
    struct rankmap *m = NULL;
    if (!job || !index) no_memory_for(t);
    else if (!know_jobs(t, job) && !know_members(t, cards, job, index) && !(m = rankmap_list((int32_t)t->size, index))) no_memory_for(t);
    for (uint32_t k = 0; job && k < t->jobs; k++)
        if (job[k]) job_unref(job[k]);
    free(job);
    free(index);
    return m;
}

/* Of the table, whose memory is given away: the cards stay in it. */
static int make(struct comm *local, struct outcome *o, uint64_t within, struct comm **out)
{
    struct table t;
    int rc = table_open(&t, o->theirs, o->bytes);
    if (rc) return rc;
    struct card_pack *cards = card_pack_open(o->theirs, t.cards, t.card_bytes);
    if (cards) o->theirs = NULL;
    struct rankmap *remote = cards ? know_group(&t, cards) : NULL;
    if (cards) card_pack_unref(cards);
    table_close(&t);
    return remote ? comm_new_inter(o->ctx, within, rankmap_ref(local->local), remote, local, out) : err_code();
}

/* What the root sends to its group. */
struct verdict {
    int32_t rc;
    uint32_t zero;
    uint64_t ctx, within, bytes;
};

static int spread_verdict(struct comm *local, int root, struct verdict *v, struct outcome *o)
{
    int own = local->rank == root ? err_keep(v, v->rc) : 0;
    lane_wait_so(LANE_SLEEPS); /* until the root has its answer */
    int rc = talk_spread(local, v, sizeof *v, root);
    lane_wait_so(LANE_POLLS);
    err_recall(v, own);
    if (own || rc) return own ? own : rc;
    if (v->rc) return err_set(v->rc, "the call has failed at the root, rank %d, which has the reason", root);
    if (local->rank != root) *o = (struct outcome){.bytes = v->bytes, .ctx = v->ctx};
    return talk_spread_new(local, &o->theirs, o->bytes, root);
}

int connect_groups(struct comm *local, int root, int code, connect_fn by, void *arg, struct comm **out)
{
    struct own_table mine = {.local = local};
    struct outcome o = {0};
    struct verdict v = {.within = comm_fresh_ctx_of(local)};
    void *bytes = NULL;
    char words[MESSAGE_WORDS];
    *out = NULL;
    snprintf(words, sizeof words, "%s", err_words());
    int rc = members_table(local, root, &bytes, &mine.n);
    mine.bytes = bytes;
    mine.code = rc;
    if (local->rank == root) {
        if (code) v.rc = err_set(code, "%s", words);
        else v.rc = by(arg, &mine, &o);
        v.ctx = o.ctx;
        v.bytes = o.bytes;
        rc = 0;
    }
    free(bytes);
    if (rc) err_keep(&mine, rc);
    int spread = spread_verdict(local, root, &v, &o);
    if (rc) err_recall(&mine, rc);
    else rc = spread;
    if (!rc) rc = make(local, &o, v.within, out);
    free(o.theirs);
    return rc;
}
