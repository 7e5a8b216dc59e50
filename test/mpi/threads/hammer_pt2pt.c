/* hammer_pt2pt.c - rounds of hammer.c with point-to-point messages between the threads of one number. */
#include "hammer.h"

enum { MOST = 24 /* messages of a burst */ };

/* ---- completion ---- */

static void wait_any(struct thread *t, MPI_Request *r, int n, MPI_Status *st)
{
    for (int done = 0; done < n; done++) {
        MPI_Status s;
        int i = -1;
        DO(t, MPI_Waitany(n, r, &i, &s));
        IS(t, i >= 0 && i < n, "MPI_Waitany: index %d", i);
        if (i >= 0 && i < n) st[i] = s;
    }
}

static void test_any(struct thread *t, MPI_Request *r, int n, MPI_Status *st)
{
    do_at(t, __LINE__, "MPI_Testany in a loop");
    for (int done = 0; done < n;) {
        MPI_Status s;
        int i = -1, flag = 0;
        MPI_Testany(n, r, &i, &flag, &s);
        if (!flag) continue;
        IS(t, i >= 0 && i < n, "MPI_Testany: index %d, %d of %d are done", i, done, n);
        if (i < 0 || i >= n) return;
        st[i] = s;
        done++;
    }
}

static void some(struct thread *t, int (*call)(int, MPI_Request[], int *, int[], MPI_Status[]), const char *name,
                 MPI_Request *r, int n, MPI_Status *st)
{
    MPI_Status s[2 * MOST];
    int index[2 * MOST];
    do_at(t, __LINE__, name);
    for (int done = 0, got = 0; done < n; done += got) {
        call(n, r, &got, index, s);
        IS(t, got != MPI_UNDEFINED, "%s: nothing is active, %d of %d are done", name, done, n);
        if (got == MPI_UNDEFINED) return;
        for (int i = 0; i < got; i++) st[index[i]] = s[i];
    }
}

static void test_all(struct thread *t, MPI_Request *r, int n, MPI_Status *st)
{
    do_at(t, __LINE__, "MPI_Testall in a loop");
    for (int flag = 0; !flag;) MPI_Testall(n, r, &flag, st);
}

static void each(struct thread *t, MPI_Request *r, int n, MPI_Status *st)
{
    for (int i = n - 1; i >= 0; i--)
        if (draw_own(t, 2)) {
            DO(t, MPI_Wait(&r[i], &st[i]));
        } else {
            do_at(t, __LINE__, "MPI_Test in a loop");
            for (int flag = 0; !flag;) MPI_Test(&r[i], &flag, &st[i]);
        }
}

void finish(struct thread *t, MPI_Request *r, int n, MPI_Status *st)
{
    switch (draw_own(t, 7)) {
    case 0:
        wait_any(t, r, n, st);
        break;
    case 1:
        test_any(t, r, n, st);
        break;
    case 2:
        some(t, MPI_Waitsome, "MPI_Waitsome in a loop", r, n, st);
        break;
    case 3:
        some(t, MPI_Testsome, "MPI_Testsome in a loop", r, n, st);
        break;
    case 4:
        test_all(t, r, n, st);
        break;
    case 5:
        each(t, r, n, st);
        break;
    default:
        DO(t, MPI_Waitall(n, r, st));
    }
}

void is_message(struct thread *t, const MPI_Status *st, int from, int tag, int n, const void *in, int i)
{
    int got = -1;
    MPI_Get_count(st, MPI_BYTE, &got);
    IS(t, st->MPI_SOURCE == from && st->MPI_TAG == tag && got == n,
       "a message of %d bytes from %d with tag %d instead of %d from %d with tag %d", got, st->MPI_SOURCE, st->MPI_TAG,
       n, from, tag);
    IS(t, !check_differ(in, (size_t)n, seed_of(t, from, i)), "%d bytes from rank %d are not what was sent", n, from);
}

static void fill(struct thread *t, int n) { check_fill(t->out, (size_t)n, seed_of(t, hammer_rank, 0)); }

/* ---- the rounds ---- */

/* Tells the rank that sends here, and hears from the one that is sent to, that the receive is posted (for the ready
 * mode). */
static void posted(struct thread *t, struct partners p)
{
    DO(t, MPI_Sendrecv(NULL, 0, MPI_BYTE, p.from, t->tag + 1, NULL, 0, MPI_BYTE, p.to, t->tag + 1, t->comm,
                       MPI_STATUS_IGNORE));
}

/* A buffered message may find the buffer full of others' messages: small ones only. */
static int buffered(int n) { return n < 4000 ? n : 4000; }

static void modes(struct thread *t)
{
    struct partners p = draw_partners(t);
    MPI_Request r[2];
    MPI_Status st[2];
    int how = draw(t, 8), n = draw_size(t), count = 1;
    if (how == 2 || how == 6) n = buffered(n);
    fill(t, n);
    DO(t, MPI_Irecv(t->in, LARGEST, MPI_BYTE, p.from, t->tag + 2, t->comm, &r[0]));
    if (how == 3 || how == 7) posted(t, p);
    switch (how) {
    case 0:
        DO(t, MPI_Send(t->out, n, MPI_BYTE, p.to, t->tag + 2, t->comm));
        break;
    case 1:
        DO(t, MPI_Ssend(t->out, n, MPI_BYTE, p.to, t->tag + 2, t->comm));
        break;
    case 2:
        DO(t, MPI_Bsend(t->out, n, MPI_BYTE, p.to, t->tag + 2, t->comm));
        break;
    case 3:
        DO(t, MPI_Rsend(t->out, n, MPI_BYTE, p.to, t->tag + 2, t->comm));
        break;
    case 4:
        DO(t, MPI_Isend(t->out, n, MPI_BYTE, p.to, t->tag + 2, t->comm, &r[count++]));
        break;
    case 5:
        DO(t, MPI_Issend(t->out, n, MPI_BYTE, p.to, t->tag + 2, t->comm, &r[count++]));
        break;
    case 6:
        DO(t, MPI_Ibsend(t->out, n, MPI_BYTE, p.to, t->tag + 2, t->comm, &r[count++]));
        break;
    default:
        DO(t, MPI_Irsend(t->out, n, MPI_BYTE, p.to, t->tag + 2, t->comm, &r[count++]));
    }
    finish(t, r, count, st);
    is_message(t, &st[0], p.from, t->tag + 2, n, t->in, 0);
}

/* Many messages each way; some receives are posted when their messages are there already, others before. */
static void burst(struct thread *t)
{
    enum { PART = LARGEST / MOST };
    struct partners p = draw_partners(t);
    int count = 1 + draw(t, MOST), early = draw_own(t, count + 1), n[MOST];
    MPI_Request r[2 * MOST];
    MPI_Status st[2 * MOST];
    for (int i = 0; i < count; i++) {
        n[i] = draw(t, draw(t, 3) ? 100 : PART);
        check_fill(t->out + i * PART, (size_t)n[i], seed_of(t, hammer_rank, i));
    }
    for (int i = 0; i < early; i++)
        DO(t, MPI_Irecv(t->in + i * PART, PART, MPI_BYTE, p.from, t->tag + 3 + i % 3, t->comm, &r[i]));
    for (int i = 0; i < count; i++)
        if (draw(t, 4))
            DO(t, MPI_Isend(t->out + i * PART, n[i], MPI_BYTE, p.to, t->tag + 3 + i % 3, t->comm, &r[count + i]));
        else
            DO(t, MPI_Issend(t->out + i * PART, n[i], MPI_BYTE, p.to, t->tag + 3 + i % 3, t->comm, &r[count + i]));
    for (int i = early; i < count; i++)
        DO(t, MPI_Irecv(t->in + i * PART, PART, MPI_BYTE, p.from, t->tag + 3 + i % 3, t->comm, &r[i]));
    finish(t, r, 2 * count, st);
    for (int i = 0; i < count; i++) is_message(t, &st[i], p.from, t->tag + 3 + i % 3, n[i], t->in + i * PART, i);
}

static void persistent(struct thread *t)
{
    struct partners p = draw_partners(t);
    MPI_Request r[2];
    MPI_Status st[2];
    int how = draw(t, 4), n = draw_size(t);
    if (how == 2) n = buffered(n);
    DO(t, MPI_Recv_init(t->in, LARGEST, MPI_BYTE, p.from, t->tag + 6, t->comm, &r[0]));
    switch (how) {
    case 0:
        DO(t, MPI_Send_init(t->out, n, MPI_BYTE, p.to, t->tag + 6, t->comm, &r[1]));
        break;
    case 1:
        DO(t, MPI_Ssend_init(t->out, n, MPI_BYTE, p.to, t->tag + 6, t->comm, &r[1]));
        break;
    case 2:
        DO(t, MPI_Bsend_init(t->out, n, MPI_BYTE, p.to, t->tag + 6, t->comm, &r[1]));
        break;
    default:
        DO(t, MPI_Rsend_init(t->out, n, MPI_BYTE, p.to, t->tag + 6, t->comm, &r[1]));
    }
    for (int i = 0; i < 3; i++) {
        check_fill(t->out, (size_t)n, seed_of(t, hammer_rank, i));
        if (how == 3) {
            DO(t, MPI_Start(&r[0]));
            posted(t, p);
            DO(t, MPI_Start(&r[1]));
        } else {
            DO(t, MPI_Startall(2, r));
        }
        finish(t, r, 2, st);
        is_message(t, &st[0], p.from, t->tag + 6, n, t->in, i);
    }
    for (int i = 0; i < 2; i++) DO(t, MPI_Request_free(&r[i]));
}

/* Send and receive in one call. */
static void exchange(struct thread *t)
{
    struct partners p = draw_partners(t);
    MPI_Request r;
    MPI_Status st;
    int n = draw_size(t), tag = t->tag + 7;
    fill(t, n);
    memcpy(t->in, t->out, (size_t)n);
    switch (draw(t, 4)) {
    case 0:
        DO(t, MPI_Sendrecv(t->out, n, MPI_BYTE, p.to, tag, t->in, LARGEST, MPI_BYTE, p.from, tag, t->comm, &st));
        break;
    case 1:
        DO(t, MPI_Sendrecv_replace(t->in, n, MPI_BYTE, p.to, tag, p.from, tag, t->comm, &st));
        break;
    case 2:
        DO(t, MPI_Isendrecv(t->out, n, MPI_BYTE, p.to, tag, t->in, LARGEST, MPI_BYTE, p.from, tag, t->comm, &r));
        finish(t, &r, 1, &st);
        break;
    default:
        DO(t, MPI_Isendrecv_replace(t->in, n, MPI_BYTE, p.to, tag, p.from, tag, t->comm, &r));
        finish(t, &r, 1, &st);
    }
    is_message(t, &st, p.from, tag, n, t->in, 0);
}

static void probes(struct thread *t)
{
    struct partners p = draw_partners(t);
    MPI_Request s, r;
    MPI_Status st = {.MPI_TAG = -1}, sent;
    MPI_Message m = MPI_MESSAGE_NULL;
    int n = draw_size(t), tag = t->tag + 8, flag = 0, told = -1;
    fill(t, n);
    DO(t, MPI_Isend(t->out, n, MPI_BYTE, p.to, tag, t->comm, &s));
    switch (draw_own(t, 4)) {
    case 0:
        DO(t, MPI_Probe(p.from, tag, t->comm, &st));
        break;
    case 1:
        do_at(t, __LINE__, "MPI_Iprobe in a loop");
        while (!flag) MPI_Iprobe(p.from, tag, t->comm, &flag, &st);
        break;
    case 2:
        DO(t, MPI_Mprobe(p.from, tag, t->comm, &m, &st));
        break;
    default:
        do_at(t, __LINE__, "MPI_Improbe in a loop");
        while (!flag) MPI_Improbe(p.from, tag, t->comm, &flag, &m, &st);
    }
    MPI_Get_count(&st, MPI_BYTE, &told);
    IS(t, told == n && st.MPI_SOURCE == p.from && st.MPI_TAG == tag, "probed %d bytes instead of %d", told, n);
    if (m == MPI_MESSAGE_NULL) {
        DO(t, MPI_Recv(t->in, n, MPI_BYTE, p.from, tag, t->comm, &st));
    } else if (draw_own(t, 2)) {
        DO(t, MPI_Mrecv(t->in, n, MPI_BYTE, &m, &st));
    } else {
        DO(t, MPI_Imrecv(t->in, n, MPI_BYTE, &m, &r));
        finish(t, &r, 1, &st);
    }
    is_message(t, &st, p.from, tag, n, t->in, 0);
    finish(t, &s, 1, &sent);
}

/* Cancels a receive that nobody sends to; and one whose message may come at the same time: it is cancelled or received.
 */
static void cancel_receive(struct thread *t)
{
    struct partners p = draw_partners(t);
    MPI_Request never, r, s;
    MPI_Status st;
    int n = draw_size(t), tag = t->tag + 9, cancelled = 0;
    fill(t, n);
    DO(t, MPI_Irecv(NULL, 0, MPI_BYTE, p.from, tag + 1, t->comm, &never));
    DO(t, MPI_Irecv(t->in, LARGEST, MPI_BYTE, p.from, tag, t->comm, &r));
    DO(t, MPI_Isend(t->out, n, MPI_BYTE, p.to, tag, t->comm, &s));
    DO(t, MPI_Cancel(&never));
    DO(t, MPI_Cancel(&r));
    DO(t, MPI_Wait(&never, &st));
    DO(t, MPI_Test_cancelled(&st, &cancelled));
    IS(t, cancelled, "a receive without a message was not cancelled");
    finish(t, &r, 1, &st);
    DO(t, MPI_Test_cancelled(&st, &cancelled));
    if (cancelled) DO(t, MPI_Recv(t->in, LARGEST, MPI_BYTE, p.from, tag, t->comm, &st));
    is_message(t, &st, p.from, tag, n, t->in, 0);
    finish(t, &s, 1, &st);
}

/* Cancels a send that nobody has posted a receive for; tells the receiver whether it has to receive it. */
static void cancel_send(struct thread *t)
{
    struct partners p = draw_partners(t);
    MPI_Request s;
    MPI_Status st;
    int n = draw_size(t), tag = t->tag + 11, cancelled[2] = {-1, -1};
    fill(t, n);
    DO(t, MPI_Issend(t->out, n, MPI_BYTE, p.to, tag, t->comm, &s));
    DO(t, MPI_Cancel(&s));
    DO(t, MPI_Wait(&s, &st));
    DO(t, MPI_Test_cancelled(&st, &cancelled[0]));
    DO(t, MPI_Sendrecv(&cancelled[0], 1, MPI_INT, p.to, tag + 1, &cancelled[1], 1, MPI_INT, p.from, tag + 1, t->comm,
                       &st));
    if (cancelled[1]) {
        int there = 1;
        DO(t, MPI_Iprobe(p.from, tag, t->comm, &there, &st));
        IS(t, !there, "the message of a cancelled send is there");
    } else {
        DO(t, MPI_Recv(t->in, LARGEST, MPI_BYTE, p.from, tag, t->comm, &st));
        is_message(t, &st, p.from, tag, n, t->in, 0);
    }
    posted(t, p); /* until then the sender sends no other message of this tag */
}

static void to_nobody(struct thread *t)
{
    MPI_Request r[2];
    MPI_Status st[2];
    DO(t, MPI_Irecv(t->in, 10, MPI_BYTE, MPI_PROC_NULL, t->tag, t->comm, &r[0]));
    DO(t, MPI_Isend(t->out, 10, MPI_BYTE, MPI_PROC_NULL, t->tag, t->comm, &r[1]));
    finish(t, r, 2, st);
    IS(t, st[0].MPI_SOURCE == MPI_PROC_NULL, "a message from rank %d instead of nobody", st[0].MPI_SOURCE);
}

/* Any source and any tag: what arrives comes in the order in which the one sender has sent it. */
static void wild(struct thread *t)
{
    struct partners p = draw_partners(t);
    int count = 1 + draw(t, 8), n = draw(t, 2000);
    MPI_Request s[8];
    MPI_Status st, sent[8];
    fill(t, n);
    for (int i = 0; i < count; i++) DO(t, MPI_Isend(t->out, n, MPI_BYTE, p.to, t->tag + 13 + i, t->comm, &s[i]));
    for (int i = 0; i < count; i++) {
        DO(t, MPI_Recv(t->in, LARGEST, MPI_BYTE, i % 2 ? p.from : MPI_ANY_SOURCE, MPI_ANY_TAG, t->comm, &st));
        is_message(t, &st, p.from, t->tag + 13 + i, n, t->in, 0);
    }
    finish(t, s, count, sent);
    DO(t, MPI_Barrier(t->comm)); /* no message of the next round is taken here */
}

static const struct round own_rounds[] = {{"modes", modes},
                                          {"burst", burst},
                                          {"persistent", persistent},
                                          {"exchange", exchange},
                                          {"probes", probes},
                                          {"cancelled receive", cancel_receive},
                                          {"cancelled send", cancel_send},
                                          {"nobody", to_nobody},
                                          {"any source and tag", wild},
                                          {NULL, NULL}};
static const struct round shared_rounds[] = {{"modes", modes},
                                             {"burst", burst},
                                             {"persistent", persistent},
                                             {"exchange", exchange},
                                             {"probes", probes},
                                             {"cancelled receive", cancel_receive},
                                             {"cancelled send", cancel_send},
                                             {"nobody", to_nobody},
                                             {NULL, NULL}};
struct kind kind_own = {"own", own_rounds, MPI_COMM_NULL, NULL};
struct kind kind_shared = {"shared", shared_rounds, MPI_COMM_NULL, NULL};
