/* registry.c - see registry.h. Jobs are found by name and line; of all else there are few. */
#include "mpiexec/registry.h"
#include "base/err.h"
#include "base/hash.h"
#include "mpiexec/answer.h"
#include "mpiexec/spawn.h"
#include "mpiexec/xalloc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define NAMES_MAX 65536 /* published at one time */

struct reg_job {
    char name[sizeof((struct job *)0)->name];
    uint32_t size;
    uint32_t line; /* to its launcher; 0: the job of this mpiexec */
    bool ended;
    struct end {
        uint32_t rank, status, clean;
    } * ends; /* of its processes: [size], in their order */
    uint32_t nends;
    struct hash_link by_name, by_line; /* a name may come again, when the job has ended */
};

struct reg_name {
    char *name, *value;
    const struct reg_job *owner;
    uint32_t rank;
    struct reg_name *next;
};

/* A lookup that waits for a name. */
struct waiter {
    struct asker asker;
    char *name;
    struct waiter *next;
};

/* A process that watches a job. */
struct watcher {
    struct asker asker;
    const struct reg_job *job;
    uint32_t seen; /* ends that it knows of */
    struct watcher *next;
};

/* Two jobs that are connected, as long as a process of either says so. */
struct user {
    const struct reg_job *job;
    uint32_t rank;
    struct user *next;
};

struct pair {
    const struct reg_job *a, *b;
    uint8_t key[ASK_PAIR_KEY];
    struct user *users;
    struct pair *next;
};

static struct {
    struct hash by_name, by_line;
    struct reg_job *first;
    struct reg_name *names;
    size_t nnames;
    struct waiter *waiters;
    struct watcher *watchers;
    struct pair *pairs;
} self;

/* ---- jobs ---- */

static struct reg_job *job_by_line(uint32_t line)
{
    struct hash_link *l = hash_find(&self.by_line, line);
    return l ? container_of(l, struct reg_job, by_line) : NULL;
}

static struct reg_job *job_of(const struct asker *a)
{
    struct reg_job *j = a->route.line ? job_by_line(a->route.line) : NULL;
    return j ? j : self.first;
}

/* `ended`: also one that has ended. */
static struct reg_job *find_job(const char *name, bool ended)
{
    for (struct hash_link *l = hash_find(&self.by_name, hash_text(name)); l; l = hash_more(l)) {
        struct reg_job *j = container_of(l, struct reg_job, by_name);
        if ((ended || !j->ended) && !strcmp(j->name, name)) return j;
    }
    return NULL;
}

static struct reg_job *job_named(const char *name) { return find_job(name, false); }

static struct reg_job *add_job(const char *name, uint32_t size, uint32_t line)
{
    struct reg_job *j = xcalloc(1, sizeof *j);
    *j = (struct reg_job){.size = size, .line = line};
    snprintf(j->name, sizeof j->name, "%s", name);
    j->ends = xcalloc(size, sizeof *j->ends);
    hash_add(&self.by_name, &j->by_name, hash_text(j->name));
    if (line) hash_add(&self.by_line, &j->by_line, line);
    return j;
}

void registry_open(const struct job *j) { self.first = add_job(j->name, (uint32_t)j->size, 0); }

/* ---- names ---- */

static struct reg_name **find_name(const char *name)
{
    struct reg_name **at = &self.names;
    while (*at && strcmp((*at)->name, name)) at = &(*at)->next;
    return at;
}

static void answer_value(const struct asker *a, const struct reg_name *n)
{
    uint8_t room[ASK_VALUE_MAX + ASK_NAME_MAX + 16];
    struct ask_out o = {.bytes = room, .room = sizeof room};
    ask_put_text(&o, n->value);
    ask_put32(&o, n->rank);
    ask_put_text(&o, n->owner->name);
    asks_answer(a, 0, o.bytes, o.n);
}

static void drop_waiter(struct waiter **at)
{
    struct waiter *w = *at;
    *at = w->next;
    free(w->name);
    free(w);
}

static void tell_waiters(const struct reg_name *n)
{
    for (struct waiter **at = &self.waiters; *at;) {
        if (strcmp((*at)->name, n->name)) {
            at = &(*at)->next;
            continue;
        }
        struct asker asker = (*at)->asker;
        drop_waiter(at);
        answer_value(&asker, n);
        at = &self.waiters; /* an asker in this process may have asked again */
    }
}

static void publish(const struct asker *a, struct ask_in *in)
{
    const char *name = ask_get_text(in, ASK_NAME_MAX), *value = ask_get_text(in, ASK_VALUE_MAX);
    if (!ask_done(in)) {
        asks_refuse(a, TERN_ERR_ARG, "a name to be published that cannot be");
    } else if (*find_name(name)) {
        asks_refuse(a, TERN_ERR_DUPLICATE, "the name '%s' is published already, by rank %u of job %s", name,
                    (*find_name(name))->rank, (*find_name(name))->owner->name);
    } else if (self.nnames == NAMES_MAX) {
        asks_refuse(a, TERN_ERR_NOMEM, "%d names are published already, more cannot be", NAMES_MAX);
    } else {
        struct reg_name *n = xcalloc(1, sizeof *n);
        *n = (struct reg_name){
            .name = xstrdup(name), .value = xstrdup(value), .owner = job_of(a), .rank = a->rank, .next = self.names};
        self.names = n;
        self.nnames++;
        asks_answer(a, 0, NULL, 0);
        tell_waiters(n);
    }
}

static void drop_name(struct reg_name **at)
{
    struct reg_name *n = *at;
    *at = n->next;
    self.nnames--;
    free(n->name);
    free(n->value);
    free(n);
}

/* Any process of the job that has published a name may take it back. */
static void unpublish(const struct asker *a, struct ask_in *in)
{
    const char *name = ask_get_text(in, ASK_NAME_MAX);
    struct reg_name **at = find_name(name);
    if (!ask_done(in)) {
        asks_refuse(a, TERN_ERR_ARG, "a name to be unpublished that cannot be");
    } else if (!*at) {
        asks_refuse(a, TERN_ERR_NOT_FOUND, "no name '%s' is published", name);
    } else if ((*at)->owner != job_of(a)) {
        asks_refuse(a, TERN_ERR_ARG, "the name '%s' was published by job %s, which alone can unpublish it", name,
                    (*at)->owner->name);
    } else {
        drop_name(at);
        asks_answer(a, 0, NULL, 0);
    }
}

/* As PMIx_Unpublish: only what this very process has published. */
static void withdraw(const struct asker *a, struct ask_in *in)
{
    const char *name = ask_get_text(in, ASK_NAME_MAX);
    const struct reg_job *own = job_of(a);
    bool good = ask_done(in);
    for (struct reg_name **at = &self.names; good && *at;)
        if ((*at)->owner == own && (*at)->rank == a->rank && (!*name || !strcmp((*at)->name, name)))
            drop_name(at);
        else
            at = &(*at)->next;
    if (good)
        asks_answer(a, 0, NULL, 0);
    else
        asks_refuse(a, TERN_ERR_ARG, "a name to be withdrawn that cannot be");
}

static void lookup(const struct asker *a, struct ask_in *in)
{
    uint32_t wait = ask_get32(in);
    const char *name = ask_get_text(in, ASK_NAME_MAX);
    if (!ask_done(in)) {
        asks_refuse(a, TERN_ERR_ARG, "a name to be looked up that cannot be");
    } else if (*find_name(name)) {
        answer_value(a, *find_name(name));
    } else if (!wait) {
        asks_refuse(a, TERN_ERR_NOT_FOUND, "no name '%s' is published", name);
    } else {
        struct waiter *w = xcalloc(1, sizeof *w);
        *w = (struct waiter){.asker = *a, .name = xstrdup(name), .next = self.waiters};
        self.waiters = w;
    }
}

/* ---- connections ---- */

static struct pair **find_pair(const struct reg_job *x, const struct reg_job *y)
{
    struct pair **at = &self.pairs;
    while (*at && !((*at)->a == x && (*at)->b == y) && !((*at)->a == y && (*at)->b == x)) at = &(*at)->next;
    return at;
}

static struct user **find_user(struct pair *p, const struct reg_job *j, uint32_t rank)
{
    struct user **at = &p->users;
    while (*at && ((*at)->job != j || (*at)->rank != rank)) at = &(*at)->next;
    return at;
}

/* NULL with errno: there is no key to be had. */
static struct pair *make_pair(const struct reg_job *a, const struct reg_job *b)
{
    uint8_t key[ASK_PAIR_KEY];
    if (getrandom(key, sizeof key, 0) != sizeof key) return NULL;
    struct pair *p = xcalloc(1, sizeof *p);
    *p = (struct pair){.a = a, .b = b, .next = self.pairs};
    memcpy(p->key, key, sizeof key);
    explicit_bzero(key, sizeof key);
    return self.pairs = p;
}

static void drop_user(struct user **at)
{
    struct user *u = *at;
    *at = u->next;
    free(u);
}

static void drop_pair(struct pair **at)
{
    struct pair *p = *at;
    *at = p->next;
    while (p->users) drop_user(&p->users);
    explicit_bzero(p->key, sizeof p->key);
    free(p);
}

static void use(struct pair *p, const struct reg_job *j, uint32_t rank)
{
    if (*find_user(p, j, rank)) return;
    struct user *u = xcalloc(1, sizeof *u);
    *u = (struct user){.job = j, .rank = rank, .next = p->users};
    p->users = u;
}

static void connect_to(const struct asker *a, struct ask_in *in)
{
    const char *name = ask_get_text(in, ASK_NAME_MAX);
    const struct reg_job *own = job_of(a), *other = job_named(name);
    uint8_t room[sizeof(uint32_t) + ASK_PAIR_KEY];
    struct ask_out o = {.bytes = room, .room = sizeof room};
    if (!ask_done(in) || !other) {
        asks_refuse(a, TERN_ERR_NOT_FOUND, "there is no job '%s' here (any more)", name);
        return;
    }
    struct pair *p = *find_pair(own, other);
    if (!p && !(p = make_pair(own, other))) {
        asks_refuse(a, TERN_ERR_SYSTEM, "no random numbers for a key: %s", strerror(errno));
        return;
    }
    use(p, own, a->rank);
    ask_put32(&o, other->size);
    ask_put(&o, p->key, sizeof p->key);
    asks_answer(a, 0, o.bytes, o.n);
    explicit_bzero(room, sizeof room);
}

static void disconnect_from(const struct asker *a, struct ask_in *in)
{
    const char *name = ask_get_text(in, ASK_NAME_MAX);
    const struct reg_job *own = job_of(a), *other = job_named(name);
    struct pair **pair = ask_done(in) && other ? find_pair(own, other) : NULL;
    struct user **user = pair && *pair ? find_user(*pair, own, a->rank) : NULL;
    if (!user || !*user) {
        asks_refuse(a, TERN_ERR_NOT_FOUND, "this process is not connected to a job '%s'", name);
        return;
    }
    drop_user(user);
    if (!(*pair)->users) drop_pair(pair);
    asks_answer(a, 0, NULL, 0);
}

static void part_rank(const struct reg_job *j, uint32_t rank)
{
    for (struct pair **at = &self.pairs; *at;) {
        struct user **user = find_user(*at, j, rank);
        if (*user) drop_user(user);
        if ((*at)->users)
            at = &(*at)->next;
        else
            drop_pair(at);
    }
}

/* ---- events ---- */

#define TELL_MAX 1024 /* ends in one answer */

static bool has_news(const struct reg_job *j, uint32_t seen) { return j->ended || seen < j->nends; }

static void tell(const struct asker *a, const struct reg_job *j, uint32_t seen)
{
    uint32_t n = seen < j->nends ? j->nends - seen : 0;
    if (n > TELL_MAX) n = TELL_MAX;
    struct ask_out o = {.room = (2 + 3 * (size_t)n) * sizeof(uint32_t)};
    o.bytes = xcalloc(1, o.room);
    ask_put32(&o, j->ended && seen + n >= j->nends);
    ask_put32(&o, n);
    for (uint32_t i = seen; i < seen + n; i++) {
        ask_put32(&o, j->ends[i].rank);
        ask_put32(&o, j->ends[i].status);
        ask_put32(&o, j->ends[i].clean);
    }
    asks_answer(a, 0, o.bytes, o.n);
    free(o.bytes);
}

static void drop_watcher(struct watcher **at)
{
    struct watcher *w = *at;
    *at = w->next;
    free(w);
}

/* An asker in this process, as the PMIx server is, may ask the next question while it gets the answer: it is added to the
 * list. */
static void tell_watchers(const struct reg_job *j)
{
    for (struct watcher **at = &self.watchers; *at;) {
        struct watcher w = **at;
        if (w.job != j || !has_news(j, w.seen)) {
            at = &(*at)->next;
            continue;
        }
        drop_watcher(at);
        tell(&w.asker, j, w.seen);
        at = &self.watchers;
    }
}

static void watch(const struct asker *a, struct ask_in *in)
{
    uint32_t seen = ask_get32(in);
    const char *name = ask_get_text(in, ASK_NAME_MAX);
    const struct reg_job *j = find_job(name, true);
    if (!ask_done(in) || !j) {
        asks_refuse(a, TERN_ERR_NOT_FOUND, "there is no job '%s' here (any more)", name);
    } else if (has_news(j, seen)) {
        tell(a, j, seen);
    } else {
        struct watcher *w = xcalloc(1, sizeof *w);
        *w = (struct watcher){.asker = *a, .job = j, .seen = seen, .next = self.watchers};
        self.watchers = w;
    }
}

/* A question that waits is cancelled by its own number, or with all that came its way. */
static bool is_meant(const struct asker *a, const struct asker *waits)
{
    return asks_same(waits, a) || (!a->id && asks_same(waits, &(struct asker){.route = a->route, .id = waits->id}));
}

void registry_cancel(const struct asker *a)
{
    for (struct waiter **at = &self.waiters; *at;)
        if (is_meant(a, &(*at)->asker))
            drop_waiter(at);
        else
            at = &(*at)->next;
    for (struct watcher **at = &self.watchers; *at;)
        if (is_meant(a, &(*at)->asker))
            drop_watcher(at);
        else
            at = &(*at)->next;
}

/* What belongs to a job goes with it. Its record stays until its launcher has ended: for who watches it. */
static void finish(struct reg_job *j)
{
    j->ended = true;
    for (struct reg_name **n = &self.names; *n;)
        if ((*n)->owner == j)
            drop_name(n);
        else
            n = &(*n)->next;
    for (struct pair **p = &self.pairs; *p;)
        if ((*p)->a == j || (*p)->b == j)
            drop_pair(p);
        else
            p = &(*p)->next;
    tell_watchers(j);
}

static void note_end(struct reg_job *j, const struct end *e)
{
    if (j->nends == j->size || j->ended) return;
    j->ends[j->nends++] = *e;
    part_rank(j, e->rank);
    if (j->nends == j->size)
        finish(j);
    else
        tell_watchers(j);
}

static void ignore_answer(void *arg, int status, const void *bytes, size_t n) { (void)arg, (void)status, (void)bytes, (void)n; }

void registry_rank_ended(uint32_t rank, int status, bool clean)
{
    struct end e = {.rank = rank, .status = (uint32_t)status, .clean = clean};
    struct route route;
    uint8_t room[3 * sizeof(uint32_t)];
    struct ask_out o = {.bytes = room, .room = sizeof room};
    if (self.first) note_end(self.first, &e);
    if (!spawned_route(&route)) return;
    ask_put32(&o, e.rank);
    ask_put32(&o, e.status);
    ask_put32(&o, e.clean);
    asks_send(route, ASK_ENDED, 0, o.bytes, o.n, ignore_answer, NULL);
}

static void ended(const struct asker *a, struct ask_in *in)
{
    struct reg_job *j = job_of(a);
    struct end e = {.rank = ask_get32(in)};
    e.status = ask_get32(in);
    e.clean = ask_get32(in);
    if (!ask_done(in) || !j->line || e.rank >= j->size) {
        asks_refuse(a, TERN_ERR_ARG, "the end of a process that cannot be");
        return;
    }
    note_end(j, &e);
    asks_answer(a, 0, NULL, 0);
}

/* ---- spawned jobs ---- */

bool registry_add(const char *name, uint32_t size, uint32_t line)
{
    if (!*name || strlen(name) >= sizeof self.first->name || job_named(name)) return false;
    add_job(name, size, line);
    return true;
}

void registry_end(uint32_t line)
{
    struct reg_job *j = job_by_line(line);
    if (!j) return;
    finish(j);
    hash_remove(&self.by_name, &j->by_name);
    hash_remove(&self.by_line, &j->by_line);
    free(j->ends);
    free(j);
}

/* ---- cards ---- */

/* Of a rank of any job: `type` asks the launcher of that job, `here` answers for our own. */
static void of_rank(const struct asker *a, struct ask_in *in, enum ask_type type,
                    void (*here)(const struct asker *, uint32_t rank))
{
    uint32_t rank = ask_get32(in);
    const char *name = ask_get_text(in, ASK_NAME_MAX);
    const struct reg_job *j = job_named(name);
    uint8_t room[sizeof rank];
    struct ask_out o = {.bytes = room, .room = sizeof room};
    ask_put32(&o, rank);
    if (!ask_done(in) || !j)
        asks_refuse(a, TERN_ERR_NOT_FOUND, "there is no job '%s' here (any more)", name);
    else if (rank >= j->size)
        asks_refuse(a, TERN_ERR_RANK, "job %s has no rank %u", name, rank);
    else if (j->line)
        asks_forward(a, (struct route){.line = j->line}, type, o.bytes, o.n);
    else
        here(a, rank);
}

static void file(const struct asker *a, const void *question, size_t n)
{
    struct ask_in in = ask_of(question, n);
    ask_get(&in, ASK_OFFER_BYTES);
    const char *name = ask_get_text(&in, ASK_NAME_MAX);
    const struct reg_job *j = job_named(name);
    if (!ask_done(&in) || !j)
        asks_refuse(a, TERN_ERR_NOT_FOUND, "there is no job '%s' here (any more)", name);
    else if (j->line)
        asks_forward(a, (struct route){.line = j->line}, ASK_OFFER, question, ASK_OFFER_BYTES);
    else
        answer_offer(a, question, ASK_OFFER_BYTES);
}

void registry_take(const struct asker *a, enum ask_type type, const void *bytes, size_t n)
{
    struct ask_in in = ask_of(bytes, n);
    switch (type) {
    case ASK_PUBLISH:
        publish(a, &in);
        break;
    case ASK_UNPUBLISH:
        unpublish(a, &in);
        break;
    case ASK_LOOKUP:
        lookup(a, &in);
        break;
    case ASK_CONNECT:
        connect_to(a, &in);
        break;
    case ASK_DISCONNECT:
        disconnect_from(a, &in);
        break;
    case ASK_CARD:
        of_rank(a, &in, ASK_FETCH, answer_fetch);
        break;
    case ASK_MODEX:
        of_rank(a, &in, ASK_MODEX_OF, answer_modex);
        break;
    case ASK_WITHDRAW:
        withdraw(a, &in);
        break;
    case ASK_FILE:
        file(a, bytes, n);
        break;
    case ASK_WATCH:
        watch(a, &in);
        break;
    case ASK_SPAWN:
        spawn_take(a, job_of(a)->name, &in);
        break;
    case ASK_CONNECTED:
        spawn_connected(a, &in);
        break;
    case ASK_LAUNCHER:
        spawn_order_taken(a, &in);
        break;
    case ASK_STARTED:
        spawn_started(a, &in);
        break;
    case ASK_FAILED:
        spawn_failed(a, &in);
        break;
    case ASK_ENDED:
        ended(a, &in);
        break;
    default:
        asks_refuse(a, TERN_ERR_UNSUPPORTED, "a question of kind %d, which this launcher does not know", (int)type);
    }
}
