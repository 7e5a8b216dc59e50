/* native_dynamic.c - see native_dynamic.h. */
#include "proc/native_dynamic.h"
#include "base/err.h"
#include "base/memfile.h"
#include "proc/channel.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static_assert(PROC_KEY == ASK_PAIR_KEY && PROC_NAME_MAX == ASK_NAME_MAX && PROC_VALUE_MAX == ASK_VALUE_MAX, "limits");

/* A question of a few fields: a number (if there is one) and texts. */
#define FIELDS_MAX (ASK_NAME_MAX + 64)

static int ask_text(enum ask_type type, const char *text, struct channel_answer *a)
{
    uint8_t room[FIELDS_MAX];
    struct ask_out q = {.bytes = room, .room = sizeof room};
    ask_put_text(&q, text);
    return channel_ask(type, &q, -1, a);
}

static int ask_number_text(enum ask_type type, uint32_t number, const char *text, int wait_ms, struct channel_answer *a)
{
    uint8_t room[FIELDS_MAX];
    struct ask_out q = {.bytes = room, .room = sizeof room};
    ask_put32(&q, number);
    ask_put_text(&q, text);
    return channel_ask(type, &q, wait_ms, a);
}

static int wrong_answer(void) { return err_set(TERN_ERR_SYSTEM, "the launcher's answer is none"); }

static int publish(const char *name, const char *value)
{
    struct channel_answer a;
    struct ask_out q = {.room = strlen(name) + strlen(value) + 16};
    if (!(q.bytes = malloc(q.room))) return err_set(TERN_ERR_NOMEM, "no memory to publish a name");
    ask_put_text(&q, name);
    ask_put_text(&q, value);
    int rc = channel_ask(ASK_PUBLISH, &q, -1, &a);
    free(q.bytes);
    free(a.bytes);
    return rc;
}

static int unpublish(const char *name)
{
    struct channel_answer a;
    int rc = ask_text(ASK_UNPUBLISH, name, &a);
    free(a.bytes);
    return rc;
}

static int take_value(const struct channel_answer *a, char *value, size_t cap)
{
    struct ask_in in = ask_of(a->bytes, a->n);
    const char *text = ask_get_text(&in, ASK_VALUE_MAX);
    ask_get32(&in); /* whose it is */
    ask_get_text(&in, ASK_NAME_MAX);
    if (!ask_done(&in)) return wrong_answer();
    if (strlen(text) >= cap)
        return err_set(TERN_ERR_TRUNCATE, "what was published has %zu bytes, and there is room for %zu",
                       strlen(text) + 1, cap);
    strcpy(value, text);
    return 0;
}

static int lookup(const char *name, int wait_ms, char *value, size_t cap)
{
    struct channel_answer a;
    int rc = ask_number_text(ASK_LOOKUP, wait_ms != 0, name, wait_ms ? wait_ms : -1, &a);
    if (rc == TERN_AGAIN)
        return err_set(TERN_ERR_NOT_FOUND, "nobody has published the name '%s' within %d ms", name, wait_ms);
    if (!rc) rc = take_value(&a, value, cap);
    free(a.bytes);
    return rc;
}

static int connect_to(const char *job, struct proc_job *j)
{
    struct channel_answer a;
    int rc = ask_text(ASK_CONNECT, job, &a);
    if (rc) return rc;
    struct ask_in in = ask_of(a.bytes, a.n);
    uint32_t size = ask_get32(&in);
    const void *key = ask_get(&in, sizeof j->key);
    if (ask_done(&in)) {
        j->size = size;
        memcpy(j->key, key, sizeof j->key);
    } else {
        rc = wrong_answer();
    }
    explicit_bzero(a.bytes, a.n);
    free(a.bytes);
    return rc;
}

static int disconnect_from(const char *job)
{
    struct channel_answer a;
    int rc = ask_text(ASK_DISCONNECT, job, &a);
    free(a.bytes);
    return rc;
}

static int job_card(const char *job, uint32_t rank, void *buf, size_t cap)
{
    struct channel_answer a;
    int rc = ask_number_text(ASK_CARD, rank, job, -1, &a);
    if (rc) return rc;
    if (a.n > cap)
        rc = err_set(TERN_ERR_INTERN, "the card of rank %u of job %s has %zu bytes", rank, job, a.n);
    else
        memcpy(buf, a.bytes, a.n);
    free(a.bytes);
    return rc ? rc : (int)a.n;
}

/* ---- memory of other processes ---- */

#define FILE_WAIT_MS 5000 /* for a launcher that is stopped: there may be another way to the memory */

static int open_file(const char *job, uint32_t rank, uint32_t fd, uint64_t key, int *own)
{
    struct channel_answer a;
    uint8_t room[FIELDS_MAX];
    struct ask_out q = {.bytes = room, .room = sizeof room};
    ask_put32(&q, rank);
    ask_put32(&q, fd);
    ask_put64(&q, key);
    ask_put_text(&q, job);
    int rc = channel_ask(ASK_FILE, &q, FILE_WAIT_MS, &a);
    if (rc == TERN_AGAIN) return err_set(TERN_ERR_SYSTEM, "the launcher does not answer within %d s", FILE_WAIT_MS / 1000);
    if (rc) return rc;
    struct ask_in in = ask_of(a.bytes, a.n);
    uint64_t socket_id = ask_get64(&in);
    const void *ticket = ask_get(&in, ASK_TICKET);
    rc = ask_done(&in) ? channel_take(socket_id, ticket, FILE_WAIT_MS, own) : wrong_answer();
    free(a.bytes);
    if (!rc && memfile_key(memfile_id_of(*own)) != key) {
        close(*own);
        rc = err_set(TERN_ERR_SYSTEM, "the launcher has handed out another file than it was asked for");
    }
    return rc;
}

/* ---- spawning ---- */

static size_t count(const char *const *list)
{
    size_t n = 0;
    while (list && list[n]) n++;
    return n;
}

static void put_list(struct ask_out *q, const char *const *list)
{
    size_t n = count(list);
    ask_put32(q, (uint32_t)n);
    for (size_t i = 0; i < n; i++) ask_put_text(q, list[i]);
}

static void put_app(struct ask_out *q, const struct proc_app *a)
{
    ask_put32(q, a->n);
    ask_put_text(q, a->wdir ? a->wdir : "");
    put_list(q, a->argv);
    put_list(q, a->env);
    put_list(q, a->info);
}

static int take_job(const struct channel_answer *a, struct proc_spawned *s)
{
    struct ask_in in = ask_of(a->bytes, a->n);
    uint32_t n = ask_get32(&in);
    const char *name = ask_get_text(&in, PROC_NAME_MAX);
    uint64_t ns = ask_get64(&in);
    bool curious = ask_get32(&in);
    if (!ask_done(&in)) return wrong_answer();
    *s = (struct proc_spawned){.size = n, .scheduling_ns = ns, .curious = curious};
    strcpy(s->job, name);
    return 0;
}

static int spawn(const struct proc_app *apps, int napps, struct proc_spawned *s)
{
    struct channel_answer a;
    struct ask_out q = {.bytes = malloc(ASK_BYTES_MAX), .room = ASK_BYTES_MAX}; /* untouched pages cost nothing */
    if (!q.bytes) return err_set(TERN_ERR_NOMEM, "no memory to describe a job to be spawned");
    ask_put32(&q, (uint32_t)napps);
    for (int i = 0; i < napps; i++) put_app(&q, &apps[i]);
    int rc = q.bad ? err_set(TERN_ERR_ARG,
                             "programs, arguments and variables of a job to be spawned have more than %u bytes",
                             ASK_BYTES_MAX)
                   : channel_ask(ASK_SPAWN, &q, -1, &a);
    free(q.bytes);
    if (rc) return rc;
    rc = take_job(&a, s);
    free(a.bytes);
    return rc;
}

static int connected(const char *job, uint64_t ns)
{
    struct channel_answer a;
    uint8_t room[FIELDS_MAX];
    struct ask_out q = {.bytes = room, .room = sizeof room};
    ask_put_text(&q, job);
    ask_put64(&q, ns);
    int rc = channel_ask(ASK_CONNECTED, &q, -1, &a);
    free(a.bytes);
    return rc;
}

static void event_signal(struct proc_signal *s)
{
    *s = (struct proc_signal){.word = channel_events(), .fd = channel_post_fd()};
}

const struct proc_dynamic native_dynamic = {
    .publish = publish,
    .unpublish = unpublish,
    .lookup = lookup,
    .connect = connect_to,
    .disconnect = disconnect_from,
    .job_card = job_card,
    .open_file = open_file,
    .spawn = spawn,
    .connected = connected,
    .watch = native_watch,
    .unwatch = native_unwatch,
    .event = native_event,
    .event_signal = event_signal,
};
