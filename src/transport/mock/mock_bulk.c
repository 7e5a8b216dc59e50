/* mock_bulk.c - see mock_bulk.h. */
#include "transport/mock/mock_bulk.h"
#include "base/err.h"
#include "transport/mock/mock.h"

#include <stdlib.h>
#include <string.h>

struct bulk {
    struct link link; /* in sends or receives, then in ended */
    struct mock_bulk is;
    int rc; /* of one that has ended */
};

static struct bulk *bulk_of(const struct link *l) { return container_of(l, struct bulk, link); }

void mock_bulks_open(struct mock_bulks *b)
{
    list_init(&b->sends);
    list_init(&b->receives);
    list_init(&b->ended);
    b->begun[false] = b->begun[true] = 0;
}

void mock_bulks_close(struct mock_bulks *b)
{
    struct link *lists[] = {&b->sends, &b->receives, &b->ended};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        for (struct link *l; (l = list_pop(lists[i]));) free(bulk_of(l));
}

static struct bulk *find(const struct link *head, uint64_t tag)
{
    for (struct link *l = head->next; l != head; l = l->next)
        if (bulk_of(l)->is.tag == tag) return bulk_of(l);
    return NULL;
}

/* Both sides are there: the code that the receive ends with. */
static int move(const struct mock_bulk *send, const struct mock_bulk *receive)
{
    memcpy(receive->at, send->at, min_size(send->n, receive->n));
    mock_count.bulk++;
    if (send->n == receive->n) return 0;
    return err_set(TERN_ERR_PEER, "mock: a bulk transfer of %zu bytes where %zu were to come", send->n, receive->n);
}

static void end(struct mock_bulks *b, struct bulk *one, bool sends, int rc)
{
    list_remove(&one->link);
    list_push(&b->ended, &one->link);
    b->begun[sends]--;
    one->rc = rc;
}

/* Meets what has begun at the other side. */
static int end_at_once(struct mock_bulks *b, const struct mock_bulk *own, struct bulk *there, bool sends)
{
    int rc = sends ? move(own, &there->is) : move(&there->is, own);
    end(b, there, !sends, sends ? rc : 0);
    if (sends || !rc) return TERN_DONE;
    own->op->done(own->op, rc);
    return 0;
}

int mock_bulk_begin(struct mock_bulks *b, const struct mock_bulk *own, bool sends)
{
    if (mock_script.no_bulk) return err_set(TERN_ERR_UNSUPPORTED, "mock: no bulk transfers");
    if (b->begun[sends] >= mock_script.room) return TERN_AGAIN;
    struct bulk *there = find(sends ? &b->receives : &b->sends, own->tag);
    if (there && mock_script.bulk_at_once) return end_at_once(b, own, there, sends);
    struct bulk *one = malloc(sizeof *one);
    if (!one) return err_set(TERN_ERR_NOMEM, "no memory for a bulk transfer");
    *one = (struct bulk){.is = *own};
    list_push(sends ? &b->sends : &b->receives, &one->link);
    b->begun[sends]++;
    return 0;
}

static void tell(struct bulk *one, int rc)
{
    struct tp_op *op = one->is.op;
    list_remove(&one->link);
    free(one);
    op->done(op, rc);
}

/* The receive that was posted last and whose data is there; NULL: none. */
static struct bulk *meeting(const struct mock_bulks *b, struct bulk **send)
{
    for (const struct link *l = b->receives.prev; l != &b->receives; l = l->prev)
        if ((*send = find(&b->sends, bulk_of(l)->is.tag))) return bulk_of(l);
    return NULL;
}

static void tell_one_ended(struct mock_bulks *b)
{
    struct bulk *one = bulk_of(b->ended.next);
    if (one->rc) err_set(one->rc, "mock: a bulk transfer of another length than %zu bytes", one->is.n);
    tell(one, one->rc);
}

int mock_bulk_deliver(struct mock_bulks *b)
{
    struct bulk *send, *receive;
    if (!list_empty(&b->ended)) {
        tell_one_ended(b);
        return 1;
    }
    receive = meeting(b, &send);
    if (!receive) return 0;
    int rc = move(&send->is, &receive->is);
    end(b, send, true, 0);
    b->begun[false]--;
    tell(receive, rc);
    return 1;
}

bool mock_bulks_ready(const struct mock_bulks *b)
{
    struct bulk *send;
    return !list_empty(&b->ended) || meeting(b, &send);
}

bool mock_bulks_wait(const struct mock_bulks *b) { return !list_empty(&b->sends) || !list_empty(&b->receives); }

void mock_bulks_tell_ended(struct mock_bulks *b)
{
    while (!list_empty(&b->ended)) tell_one_ended(b);
}

void mock_bulk_fail(struct mock_bulks *b, int code)
{
    bool sends = !list_empty(&b->sends);
    tell(bulk_of(sends ? b->sends.next : b->receives.next), code);
}
