/* connect.c - see connect.h. */
#include "dpm/connect.h"
#include "base/err.h"
#include "comm/talk.h"
#include "dpm/keys.h"
#include "dpm/members.h"
#include "dpm/table.h"
#include "proc/proc.h"
#include "pt2pt/lane.h"

#include <stdlib.h>
#include <string.h>

/* What the roots say: a number, and what belongs to it. */
enum say {
    SAY_HELLO = 1, /* context, table */
    SAY_TABLE,     /* context, table */
    SAY_NO,        /* code, words */
    SAY_THANKS     /* nothing */
};

#define WORDS 400
#define LAST_NS 1000000000u /* so long the last word is repeated: if it is lost, the other side may have gone (port.h) */

/* ---- what is said ---- */

static int say(struct partner *p, enum say what, uint64_t ctx, const struct own_table *t)
{
    struct ask_out o = {.bytes = malloc(12 + t->n), .room = 12 + t->n};
    if (!o.bytes) return err_set(TERN_ERR_NOMEM, "no memory for what two groups tell each other (%zu bytes)", t->n);
    ask_put32(&o, what);
    ask_put64(&o, ctx);
    ask_put(&o, t->bytes, t->n);
    int rc = partner_say(p, o.bytes, o.n);
    free(o.bytes);
    return rc;
}

static int say_thanks(struct partner *p)
{
    uint8_t room[4];
    struct ask_out o = {.bytes = room, .room = sizeof room};
    ask_put32(&o, SAY_THANKS);
    return partner_say(p, o.bytes, o.n);
}

/* Refuses the caller, with the code and the words of what was wrong. Our words stay. */
static void say_no(struct partner *p, int code)
{
    uint8_t room[WORDS + 16];
    char words[WORDS];
    struct ask_out o = {.bytes = room, .room = sizeof room};
    snprintf(words, sizeof words, "%s", err_words());
    ask_put32(&o, SAY_NO);
    ask_put32(&o, (uint32_t)-code);
    ask_put_text(&o, words);
    if (!partner_say(p, o.bytes, o.n)) partner_has_all(p, LAST_NS);
    err_set(code, "%s", words);
}

static int strange(void) { return err_set(TERN_ERR_SYSTEM, "the process at the other side of the port says what it should not"); }

static int refused(struct ask_in *in)
{
    uint32_t code = ask_get32(in);
    const char *words = ask_get_text(in, WORDS);
    if (!ask_done(in) || !code || code >= -TERN_ERR_LAST) return strange();
    return err_set(-(int)code, "the other group refuses the connection: %s", words);
}

/* ---- the roots ---- */

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

/* What the other root has said: its table, which is checked. `bytes` are kept in the outcome. */
static int take_table(const struct own_table *mine, uint64_t ctx, struct ask_in *in, struct outcome *o)
{
    struct table t;
    uint64_t its = ask_get64(in);
    size_t n = (size_t)(in->end - in->at);
    if (in->bad) return strange();
    int rc = table_open(&t, in->at, n);
    if (rc) return rc;
    rc = check_apart(mine->local, &t);
    if (!rc && !(o->theirs = malloc(n))) rc = err_set(TERN_ERR_NOMEM, "no memory for the table of another group (%zu bytes)", n);
    if (!rc) {
        memcpy(o->theirs, in->at, n);
        o->bytes = n;
        o->ctx = choose_context(ctx, its, &t);
    }
    table_close(&t);
    return rc;
}

static int hear_table(struct partner *p, enum say what, const struct own_table *mine, uint64_t ctx, struct outcome *o)
{
    void *bytes = NULL;
    size_t n = 0;
    int rc = partner_hear(p, &bytes, &n);
    if (rc) return rc;
    struct ask_in in = ask_of(bytes, n);
    uint32_t heard = ask_get32(&in);
    if (heard == (uint32_t)what) rc = take_table(mine, ctx, &in, o);
    else rc = heard == SAY_NO && what != SAY_HELLO ? refused(&in) : strange();
    free(bytes);
    return rc;
}

static bool has_thanked(struct partner *p)
{
    void *bytes = NULL;
    size_t n = 0;
    int rc = partner_hear(p, &bytes, &n);
    free(bytes);
    return !rc || partner_had_all(p);
}

/* The keys that `make` will want, while the other side looks at our table. */
static void prepare_keys(const struct outcome *o)
{
    struct table t;
    uint8_t key[CRYPTO_KEY];
    if (table_open(&t, o->theirs, o->bytes)) return;
    for (uint32_t k = 0; k < t.jobs; k++)
        if (strcmp(t.job[k].name, proc_self()->job)) (void)keys_pair(ends_crypto(), t.job[k].name, t.job[k].public, key);
    explicit_bzero(key, sizeof key);
    table_close(&t);
}

int connect_accept(void *end, const struct own_table *mine, struct outcome *o)
{
    for (;;) {
        struct partner *p;
        uint64_t ctx = comm_fresh_wide_ctx();
        int rc = end_await(end, &p);
        if (rc) return rc;
        rc = hear_table(p, SAY_HELLO, mine, ctx, o);
        if (rc) say_no(p, rc);
        bool good = !rc && !say(p, SAY_TABLE, ctx, mine);
        if (good) prepare_keys(o);
        good = good && has_thanked(p);
        partner_leave(p);
        if (good) return 0;
        free(o->theirs);
        *o = (struct outcome){0};
        if (rc == TERN_ERR_COMM || rc == TERN_ERR_NOMEM) return rc; /* as the next one would */
    }
}

static int call(struct end *e, struct port *port, const struct own_table *mine, struct outcome *o)
{
    struct partner *p;
    uint64_t ctx = comm_fresh_wide_ctx();
    int rc = end_call(e, port, &p);
    if (rc) return rc;
    rc = say(p, SAY_HELLO, ctx, mine);
    if (!rc) rc = hear_table(p, SAY_TABLE, mine, ctx, o);
    if (!rc && !(rc = say_thanks(p))) partner_has_all(p, LAST_NS); /* it has heard, or has gone */
    if (rc == TERN_ERR_PEER) rc = err_set(TERN_ERR_PORT, "the process of the port does not answer: %s", err_words());
    err_keep(p, rc);
    partner_leave(p);
    err_recall(p, rc);
    return rc;
}

int connect_call(void *arg, const struct own_table *mine, struct outcome *o)
{
    struct port *port = arg;
    struct end *e;
    int rc = end_open(port->key, &e);
    if (rc) return rc;
    rc = err_keep(port, call(e, port, mine, o));
    end_close(e);
    err_recall(port, rc);
    return rc;
}

/* ---- all ---- */

/* The own job, as others have told of it. */
static int check_own(const struct table_job *j)
{
    if (!strcmp(j->name, proc_self()->job) && j->size == jobs_own_size) return 0;
    return err_set(TERN_ERR_SYSTEM, "what the other group has told of this job is wrong");
}

/* The jobs of the other group are known from here on, until they are let go; the own one stays NULL. */
static int know_jobs(const struct table *t, struct job_entry **job)
{
    const struct crypto *c = ends_crypto();
    uint64_t own = jobs_own_name().job;
    int rc = c ? 0 : err_code();
    for (uint32_t k = 0; k < t->jobs && !rc; k++) {
        uint8_t key[JOBS_KEY];
        bool is_own = jobs_id(t->job[k].name) == own;
        rc = is_own ? check_own(&t->job[k]) : keys_pair(c, t->job[k].name, t->job[k].public, key);
        if (!rc && !is_own && !(job[k] = job_add(t->job[k].name, t->job[k].size, key))) rc = err_code();
        explicit_bzero(key, sizeof key);
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

/* The processes of a table, by rank. */
static struct rankmap *know_group(const struct table *t, struct card_pack *cards)
{
    struct job_entry **job = calloc(t->jobs, sizeof *job);
    uint32_t *index = malloc(t->size * sizeof *index);
    struct rankmap *m = NULL;
    if (!job || !index) err_set(TERN_ERR_NOMEM, "no memory for a group of %u processes", t->size);
    else if (!know_jobs(t, job) && !know_members(t, cards, job, index)) m = rankmap_list((int32_t)t->size, index);
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

/* What the root tells its group. */
struct news {
    int32_t rc;
    uint32_t zero;
    uint64_t ctx, within, bytes;
};

static int tell(struct comm *local, int root, struct news *n, struct outcome *o)
{
    int own = local->rank == root ? err_keep(n, n->rc) : 0;
    lane_sleep_soon(true); /* until the root has its answer */
    int rc = talk_spread(local, n, sizeof *n, root);
    lane_sleep_soon(false);
    err_recall(n, own);
    if (own || rc) return own ? own : rc;
    if (n->rc) return err_set(n->rc, "the root, rank %d, came to no agreement with another group", root);
    if (local->rank != root) {
        *o = (struct outcome){.theirs = malloc(n->bytes), .bytes = n->bytes, .ctx = n->ctx};
        if (!o->theirs) return err_set(TERN_ERR_NOMEM, "no memory for the table of another group");
    }
    return talk_spread(local, o->theirs, o->bytes, root);
}

/* The other group may take its time, and its processes may need this core. */
static int reach(connect_fn by, void *arg, const struct own_table *mine, struct outcome *o)
{
    lane_sleep_soon(true);
    int rc = by(arg, mine, o);
    lane_sleep_soon(false);
    return rc;
}

int connect_groups(struct comm *local, int root, int code, connect_fn by, void *arg, struct comm **out)
{
    struct own_table mine = {.local = local};
    struct outcome o = {0};
    struct news n = {.within = comm_fresh_ctx_of(local)};
    void *bytes = NULL;
    char words[WORDS];
    *out = NULL;
    snprintf(words, sizeof words, "%s", err_words());
    int rc = members_table(local, root, &bytes, &mine.n);
    mine.bytes = bytes;
    if (local->rank == root) {
        if (code) n.rc = err_set(code, "%s", words);
        else n.rc = rc ? rc : reach(by, arg, &mine, &o);
        n.ctx = o.ctx;
        n.bytes = o.bytes;
        rc = 0;
    }
    free(bytes);
    int told = tell(local, root, &n, &o);
    if (!rc) rc = told;
    if (!rc) rc = make(local, &o, n.within, out);
    free(o.theirs);
    return rc;
}
