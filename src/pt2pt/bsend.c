/* bsend.c - buffered sends; see bsend.h. */
#include "pt2pt/bsend.h"
#include "base/err.h"
#include "base/list.h"
#include "base/lock.h"
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
    bool leaving; /* somebody detaches it, and waits for its messages */
    struct link segments;
    struct link flushes; /* requests that wait for messages to leave */
    uint64_t epoch;
    int64_t used; /* segments with a message */
};

#define ALIGN 16

static void *of_process;

static struct lock lock; /* of all places, buffers and segments; no other is taken inside of it */

/* Places hold a struct bsend_buffer *, which the owner of the place does not look into. A buffer that somebody detaches stays in
 * its place until its messages have left, so that its memory cannot be attached again before; to others it is gone. */
static struct bsend_buffer *in_use(void *there)
{
    struct bsend_buffer *b = there;
    return b && !b->leaving ? b : NULL;
}

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
    lock_take(&lock);
    bool taken = *place != NULL;
    if (!taken) {
        open_segments(b);
        *place = b;
    }
    lock_give(&lock);
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

/* Flushes that wait for nothing more go to `over`. */
static void tell_flushes(struct bsend_buffer *b, uint64_t epoch, struct link *over)
{
    list_each(l, next, &b->flushes) {
        struct request *f = container_of(l, struct request, link);
        if (epoch > f->cookie[EPOCH] || --f->cookie[LEFT]) continue;
        list_remove(l);
        list_push(over, l);
    }
}

/* Starts a flush, which nobody else knows yet; the request's memory is the caller's. */
static void start_flush(struct bsend_buffer *b, struct request *f)
{
    f->cookie[EPOCH] = b->epoch++;
    f->cookie[LEFT] = (uint64_t)b->used;
    if (b->used) list_push(&b->flushes, &f->link);
    else atomic_store_explicit(&f->complete, 1, memory_order_relaxed);
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
    lock_take(&lock);
    struct bsend_buffer *b = in_use(*place);
    if (b) start_flush(b, &f);
    lock_give(&lock);
    return b ? pt_wait(&f) : no_buffer();
}

int bsend_iflush(void **place, struct request **req_p)
{
    struct request *f = request_new(REQ_FLUSH);
    if (!f) return TERN_ERR_NOMEM;
    prepare_flush(f);
    comm_ref(f->comm);
    lock_take(&lock);
    struct bsend_buffer *b = in_use(*place);
    if (b) start_flush(b, f);
    lock_give(&lock);
    if (!b) {
        comm_unref(f->comm);
        request_free(f);
        return no_buffer();
    }
    *req_p = f;
    return 0;
}

/* From the beginning on whoever sends or detaches finds no buffer: nothing is added any more. */
int bsend_detach(void **place, void **buffer_p, int64_t *size_p)
{
    struct request f = {0};
    prepare_flush(&f);
    lock_take(&lock);
    struct bsend_buffer *b = in_use(*place);
    if (b) {
        b->leaving = true;
        start_flush(b, &f);
    }
    lock_give(&lock);
    if (!b) return no_buffer();
    pt_wait(&f); /* which does not fail: it counts messages */
    lock_take(&lock);
    *place = NULL;
    lock_give(&lock);
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

/* A flush that is over. */
struct over {
    struct mail mail;
    struct request *f;
};

static void open_over(struct lane *l, struct mail *m)
{
    struct over *o = container_of(m, struct over, mail);
    (void)l;
    lane_finish(o->f, 0);
    free(o);
}

/* Its lane need not be that of the message. */
static void end_flush(struct request *f)
{
    if (likely(lane_is_mine(lane_of(f)))) {
        lane_finish(f, 0);
        return;
    }
    struct over *o = malloc(sizeof *o);
    if (!o) lane_fatal("no memory for the end of a flush");
    *o = (struct over){.mail.open = open_over, .f = f};
    lane_post(lane_of(f), &o->mail);
}

/* The message has left its segment. In the lane. */
static void message_gone(struct request *r)
{
    struct segment *s = r->owner;
    struct bsend_buffer *b = s->buffer;
    uint64_t epoch = s->epoch;
    struct link over = LIST_INIT(over);
    lock_take(&lock);
    b->used--;
    give_back(b, s);
    tell_flushes(b, epoch, &over);
    lock_give(&lock);
    for (struct link *a; (a = list_pop(&over));) end_flush(container_of(a, struct request, link));
}

static int no_room(const struct bsend_buffer *b, size_t size)
{
    if (b->automatic) return err_set(TERN_ERR_NOMEM, "no memory for a buffered message of %zu bytes", size);
    return err_set(TERN_ERR_BUFFER,
                   "no room for a message of %zu bytes in the attached buffer of %lld bytes, where %lld messages wait to be "
                   "received (a message takes its size and up to MPI_BSEND_OVERHEAD)",
                   size, (long long)b->size, (long long)b->used);
}

/* A piece of the buffer that is attached for the communicator, for so many bytes of data. 0, or a code with words. */
static int reserve(const struct comm *c, size_t bytes, struct segment **s_p)
{
    size_t size = round_up(sizeof(struct segment) + bytes, ALIGN);
    lock_take(&lock);
    struct bsend_buffer *b = in_use(c->bsend);
    if (!b && c->session) b = in_use(c->session->bsend);
    if (!b) b = in_use(of_process);
    struct segment *s = !b ? NULL : b->automatic ? new_segment(b, size) : take_segment(b, size);
    if (s) {
        s->used = true;
        s->epoch = b->epoch;
        b->used++;
    }
    int rc = s ? 0 : b ? no_room(b, bytes) : err_set(TERN_ERR_BUFFER, "no buffer is attached for buffered sends");
    lock_give(&lock);
    *s_p = s;
    return rc;
}

/* The messages that left make room only when somebody looks: so look, as long as that changes anything. In the lane. */
static int find_segment(const struct comm *c, size_t bytes, struct segment **s_p)
{
    int rc;
    while ((rc = reserve(c, bytes, s_p)) == TERN_ERR_BUFFER)
        if (!lane_progress(c->lane)) break;
    return rc;
}

/* The message goes into the buffer, and from there on its way. In the lane. */
static int send_locked(struct comm *c, struct type_cursor *data, int dest, int tag)
{
    struct segment *s;
    struct request *r = request_new(REQ_SEND);
    if (!r) return TERN_ERR_NOMEM;
    int rc = find_segment(c, data->total, &s);
    if (rc) {
        request_free(r);
        return rc;
    }
    type_pack(data, s->data, data->total);
    r->flags |= REQ_INTERNAL;
    r->course |= REQ_DETACHED; /* its end frees it */
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
    int rc = send_locked(c, &data, dest, tag);
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
