/* bsend.c - buffered sends; see bsend.h. */
#include "pt2pt/bsend.h"
#include "base/err.h"
#include "base/list.h"
#include "obj/session.h"
#include "pt2pt/api.h"
#include "pt2pt/lane.h"
#include "type/cursor.h"

#include <stdlib.h>

/* A piece of the buffer, free or with a message in it. */
struct segment {
    struct link all; /* in the order of addresses (in that of sending when automatic) */
    struct bsend_buffer *buffer;
    size_t size; /* of the whole piece, this head included */
    uint64_t epoch; /* flushes begun before the message came */
    bool used;
    TERN_ALIGNED(16) char data[];
};
static_assert(sizeof(struct segment) + 16 <= MPI_BSEND_OVERHEAD / 4, "the smallest buffer holds several small messages");

struct bsend_buffer {
    void *user;   /* as attached */
    int64_t size;
    bool automatic;
    struct link segments;
    struct link flushes; /* requests that wait for messages to leave */
    uint64_t epoch;
    int64_t used; /* segments with a message */
};

#define ALIGN 16

static void *of_process;

/* Places hold a struct bsend_buffer *, which the owner of the place does not look into. */
static struct bsend_buffer *at(void **place) { return *place; }

void **bsend_process(void) { return &of_process; }

/* ---- attaching ---- */

static void open_segments(struct bsend_buffer *b)
{
    uintptr_t start = round_up((uintptr_t)b->user, ALIGN), end = ((uintptr_t)b->user + (size_t)b->size) & ~(uintptr_t)(ALIGN - 1);
    if (b->automatic || end < start + sizeof(struct segment)) return; /* too small for any message */
    struct segment *s = (struct segment *)start;
    *s = (struct segment){.buffer = b, .size = end - start};
    list_push(&b->segments, &s->all);
}

int bsend_attach(void **place, void *buffer, int64_t size)
{
    struct bsend_buffer *b = malloc(sizeof *b);
    if (!b) return err_set(TERN_ERR_NOMEM, "no memory to attach a buffer");
    *b = (struct bsend_buffer){.user = buffer, .size = size, .automatic = buffer == MPI_BUFFER_AUTOMATIC};
    if (b->automatic) b->size = 0;
    list_init(&b->segments);
    list_init(&b->flushes);
    lane_enter(&lane0);
    bool taken = *place != NULL;
    if (!taken) {
        open_segments(b);
        *place = b;
    }
    lane_leave(&lane0);
    if (!taken) return 0;
    free(b);
    return err_set(TERN_ERR_BUFFER, "a buffer is attached already; detach it first");
}

/* ---- segments ---- */

/* First fit; a rest that is of use stays free. */
static struct segment *take_segment(struct bsend_buffer *b, size_t size)
{
    list_each(l, next, &b->segments) {
        struct segment *s = container_of(l, struct segment, all);
        if (s->used || s->size < size) continue;
        if (s->size - size >= sizeof *s + ALIGN) {
            struct segment *rest = (struct segment *)((char *)s + size);
            *rest = (struct segment){.buffer = b, .size = s->size - size};
            rest->all = (struct link){s->all.next, &s->all};
            s->all.next->prev = &rest->all;
            s->all.next = &rest->all;
            s->size = size;
        }
        return s;
    }
    return NULL;
}

/* The messages that left make room only when somebody looks: so look, as long as that changes anything. */
static struct segment *find_segment(struct bsend_buffer *b, struct lane *l, size_t size)
{
    struct segment *s;
    while (!(s = take_segment(b, size)))
        if (!lane_progress(l)) break;
    return s;
}

static struct segment *new_segment(struct bsend_buffer *b, size_t size)
{
    struct segment *s = malloc(size);
    if (!s) return NULL;
    *s = (struct segment){.buffer = b, .size = size};
    list_push(&b->segments, &s->all);
    return s;
}

static void join_next(struct bsend_buffer *b, struct segment *s)
{
    if (s->all.next == &b->segments) return;
    struct segment *next = container_of(s->all.next, struct segment, all);
    if (next->used) return;
    list_remove(&next->all);
    s->size += next->size;
}

static void give_back(struct bsend_buffer *b, struct segment *s)
{
    if (b->automatic) {
        list_remove(&s->all);
        free(s);
        return;
    }
    s->used = false;
    join_next(b, s);
    if (s->all.prev == &b->segments) return;
    struct segment *before = container_of(s->all.prev, struct segment, all);
    if (!before->used) join_next(b, before);
}

/* ---- flushes: a request counts the messages that it waits for ---- */

enum { EPOCH, LEFT }; /* in request.cookie */

static void tell_flushes(struct bsend_buffer *b, uint64_t epoch)
{
    list_each(l, next, &b->flushes) {
        struct request *f = container_of(l, struct request, link);
        if (epoch > f->cookie[EPOCH] || --f->cookie[LEFT]) continue;
        list_remove(l);
        lane_finish(f, 0);
    }
}

/* Starts a flush; the request's memory is the caller's. Lock held. */
static void start_flush(struct bsend_buffer *b, struct request *f)
{
    f->cookie[EPOCH] = b->epoch++;
    f->cookie[LEFT] = (uint64_t)b->used;
    if (b->used) list_push(&b->flushes, &f->link);
    else lane_finish(f, 0);
}

static void prepare_flush(struct request *f)
{
    pt_prepare(f, REQ_FLUSH, comm_self(), PT_USER, NULL, 0, type_of(MPI_BYTE), MPI_PROC_NULL, MPI_ANY_TAG, PT_STANDARD);
    f->result = (struct request_result){.source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG};
}

static int no_buffer(void) { return err_set(TERN_ERR_BUFFER, "no buffer is attached"); }

int bsend_flush(void **place)
{
    struct request f = {0};
    prepare_flush(&f);
    lane_enter(&lane0);
    bool attached = *place != NULL;
    if (attached) start_flush(at(place), &f);
    lane_leave(&lane0);
    return attached ? pt_wait(&f) : no_buffer();
}

int bsend_iflush(void **place, struct request **req_p)
{
    struct request *f = request_new(REQ_FLUSH);
    if (!f) return TERN_ERR_NOMEM;
    prepare_flush(f);
    lane_enter(&lane0);
    bool attached = *place != NULL;
    if (attached) {
        comm_ref(f->comm);
        start_flush(at(place), f);
    }
    lane_leave(&lane0);
    if (!attached) {
        request_free(f);
        return no_buffer();
    }
    *req_p = f;
    return 0;
}

/* The buffer leaves its place first: whoever sends or detaches meanwhile finds none, and nothing is added any more. */
int bsend_detach(void **place, void **buffer_p, int64_t *size_p)
{
    struct request f = {0};
    prepare_flush(&f);
    lane_enter(&lane0);
    struct bsend_buffer *b = at(place);
    *place = NULL;
    if (b) start_flush(b, &f);
    lane_leave(&lane0);
    if (!b) return no_buffer();
    pt_wait(&f); /* which does not fail: it counts messages */
    *buffer_p = b->user;
    *size_p = b->size;
    free(b);
    return 0;
}

void bsend_drop(void **place)
{
    void *buffer;
    int64_t size;
    if (*place) bsend_detach(place, &buffer, &size);
}

/* ---- sending ---- */

/* The message has left its segment. Lock held. */
static void message_gone(struct request *r)
{
    struct segment *s = r->owner;
    struct bsend_buffer *b = s->buffer;
    uint64_t epoch = s->epoch;
    b->used--;
    give_back(b, s);
    tell_flushes(b, epoch);
}

static int no_room(const struct bsend_buffer *b, size_t size)
{
    if (b->automatic) return err_set(TERN_ERR_NOMEM, "no memory for a buffered message of %zu bytes", size);
    return err_set(TERN_ERR_BUFFER,
                   "no room for a message of %zu bytes in the attached buffer of %lld bytes, where %lld messages wait to be "
                   "received (a message takes its size and up to MPI_BSEND_OVERHEAD)",
                   size, (long long)b->size, (long long)b->used);
}

/* The message goes into the buffer, and from there on its way. Lock held. */
static int send_locked(struct comm *c, struct bsend_buffer *b, struct type_cursor *data, int dest, int tag)
{
    size_t size = round_up(sizeof(struct segment) + data->total, ALIGN);
    struct request *r = request_new(REQ_SEND);
    if (!r) return TERN_ERR_NOMEM;
    struct segment *s = b->automatic ? new_segment(b, size) : find_segment(b, c->lane, size);
    if (!s) {
        request_free(r);
        return no_room(b, data->total);
    }
    s->used = true;
    s->epoch = b->epoch;
    b->used++;
    type_pack(data, s->data, data->total);
    r->flags |= REQ_DETACHED | REQ_INTERNAL; /* its end frees it */
    r->done = message_gone;
    r->owner = s;
    pt_prepare(r, REQ_SEND, comm_ref(c), PT_USER, s->data, (int64_t)data->total, type_of(MPI_BYTE), dest, tag, PT_STANDARD);
    pt_send_start(r);
    return 0;
}

int bsend_send(struct comm *c, const void *buf, int64_t count, struct type *t, int dest, int tag)
{
    struct type_cursor data;
    if (dest == MPI_PROC_NULL) return 0;
    type_cursor_init(&data, t, count, buf);
    lane_enter(c->lane);
    struct bsend_buffer *b = c->bsend ? c->bsend : c->session && c->session->bsend ? c->session->bsend : of_process;
    int rc = b ? send_locked(c, b, &data, dest, tag) : err_set(TERN_ERR_BUFFER, "no buffer is attached for buffered sends");
    lane_leave(c->lane);
    return rc;
}

static int bsend_start(struct request *r)
{
    r->result = (struct request_result){.source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG};
    int rc = bsend_send(r->comm, r->buf, r->count, r->type, r->rank, r->tag);
    if (!rc) r->flags |= REQ_ACTIVE; /* and complete: `complete` is set since it was made */
    return rc;
}

static const struct request_hooks hooks = {.start = bsend_start};

int bsend_init(struct comm *c, const void *buf, int64_t count, struct type *t, int dest, int tag, struct request **req_p)
{
    int rc = pt_send_init(c, buf, count, t, dest, tag, PT_STANDARD, req_p);
    if (rc) return rc;
    (*req_p)->kind = REQ_BSEND;
    (*req_p)->flags |= REQ_HOOKED;
    (*req_p)->hooks = &hooks;
    return 0;
}
