/* mock_job.c - see mock_job.h. */
#include "mock_job.h"
#include "../seed.h"
#include "base/err.h"
#include "base/var.h"
#include "obj/group.h"
#include "obj/hints.h"
#include "proc/proc.h"
#include "pt2pt/lost.h"
#include "type/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_open;

/* The bootstrap knows of one rank, and hands out its card as that of rank 0. */
static void be_rank_1_of_2(void)
{
    struct proc_info *self = (struct proc_info *)(uintptr_t)proc_self();
    self->rank = 1;
    self->size = self->local_size = 2;
    jobs_close();
    jobs_open(self->job, self->rank, self->size);
}

static struct comm *open_layers(const struct mock_script *script, bool threaded)
{
    mock_script = script ? *script : (struct mock_script)MOCK_SCRIPT;
    mock_count = (struct mock_count){.refused = 0};
    setenv("TERN_TRANSPORTS", "mock", 1);
    setenv("TERN_BOOTSTRAP", "single", 1);
    alarm(60);
    err_clear();
    assert_int_equal(var_open(), 0);
    assert_int_equal(proc_open(), 0);
    if (mock_script.played) be_rank_1_of_2();
    handle_set_threaded(threaded);
    errh_open();
    group_open(proc_self()->rank);
    assert_int_equal(request_open(), 0);
    assert_int_equal(type_open(), 0);
    assert_int_equal(pt_register(), 0);
    assert_int_equal(peers_open(), 0);
    assert_int_equal(pt_open(threaded), 0);
    assert_int_equal(comm_open(proc_self()->rank), 0);
    assert_int_equal(comm_world_open(proc_self()->size), 0);
    is_open = true;
    return comm_world();
}

struct comm *job_open(const struct mock_script *script) { return open_layers(script, false); }
struct comm *job_open_threaded(void) { return open_layers(NULL, true); }

struct comm *job_open_played(const struct mock_script *script)
{
    struct mock_script s = script ? *script : (struct mock_script)MOCK_SCRIPT;
    s.played = true;
    struct comm *c = open_layers(&s, false);
    assert_non_null(job_peer());
    return c;
}

struct peer *job_peer(void) { return peer_get(0); }

void job_settle(void)
{
    for (int quiet = 0; quiet < 20; quiet++)
        if (lane_progress(lanes_first())) quiet = 0;
}

struct request *job_isend(struct comm *c, const void *data, int64_t n, int tag, enum pt_mode mode)
{
    struct request *r = NULL;
    assert_int_equal(pt_isend(c, data, n, type_of(MPI_BYTE), 0, tag, mode, &r), 0);
    return r;
}

struct request *job_irecv(struct comm *c, void *room, int64_t n, int tag)
{
    struct request *r = NULL;
    assert_int_equal(pt_irecv(c, room, n, type_of(MPI_BYTE), 0, tag, &r), 0);
    return r;
}

void job_end(struct request *r, int code)
{
    assert_int_equal(pt_wait(r), code);
    pt_release(r);
}

void job_cancel(struct request *r)
{
    assert_int_equal(pt_cancel(r), 0);
    assert_true(request_is_complete(r) && r->result.cancelled);
    job_end(r, 0);
}

/* ---- a played peer ---- */

struct mock_message job_sent(void *payload, size_t room)
{
    struct mock_message m;
    assert_true(mock_take(&m, payload, room));
    return m;
}

void job_sent_nothing(void)
{
    struct mock_message m;
    assert_false(mock_take(&m, NULL, 0));
}

void job_lose_peer(void)
{
    err_set(TERN_ERR_PEER, "the other one is gone");
    pt_lose(job_peer());
    job_settle();
}

uint64_t job_offered_in_vain(struct request *s)
{
    struct pt_cts nothing = {0, 0, 0};
    struct pt_rts rts;
    assert_int_equal(job_sent(&rts, sizeof rts).id, AM_RTS);
    assert_false(request_is_complete(s));
    tp_handlers[AM_CTS](job_peer(), rts.send, 0, &nothing, sizeof nothing);
    mock_script.handled++;
    job_end(s, 0);
    return rts.offer;
}

void job_dies(void (*act)(void), const char *words)
{
    char text[1000] = "";
    int fd[2], status;
    assert_int_equal(pipe(fd), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (!pid) {
        dup2(fd[1], STDERR_FILENO);
        act();
        _exit(0);
    }
    close(fd[1]);
    assert_true(read(fd[0], text, sizeof text - 1) > 0);
    close(fd[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    assert_non_null(strstr(text, words));
}

/* ---- the end ---- */

static void close_layers(void)
{
    if (!is_open) return;
    is_open = false;
    comm_close();
    pt_close();
    peers_close();
    pt_unregister();
    type_close();
    group_close();
    proc_close();
    request_close();
    var_close();
    handle_set_threaded(false);
    handle_close();
    alarm(0);
}

void job_abandon(void) { close_layers(); }

static void check_lane(const struct lane *l)
{
    assert_true(list_empty(&l->pending));
    assert_true(list_empty(&l->rndv.incoming.requests));
    assert_true(list_empty(&l->rndv.outgoing.requests));
    assert_true(list_empty(&l->rndv.streams.requests));
    assert_true(list_empty(&l->rndv.bulks.requests) && !l->rndv.bulks_under_way);
    const struct link *a = l->steps.active.next;
    if (lanes_are_several() && !lane_threaded()) {
        assert_ptr_equal(a, &l->others.link);
        a = a->next;
    }
    assert_ptr_equal(a, &l->steps.active);
    assert_int_equal(l->pool.bodies, 0);
    assert_int_equal(l->ids.used, 0);
}

struct comm *job_comm_in(struct comm *world, const char *lane)
{
    struct comm *c = NULL;
    struct info *hints = info_new();
    assert_int_equal(info_set(hints, "tern_lane", lane), 0);
    assert_int_equal(comm_reserve(rankmap_ref(world->map), NULL, world, &c), 0);
    assert_int_equal(comm_hints_set(c, hints), 0);
    assert_int_equal(comm_found(c, comm_fresh_ctx()), 0);
    info_free(hints);
    return c;
}

void job_close(void)
{
    struct lane *l;
    job_settle();
    for (uint32_t i = 0; (l = lanes_at(i)); i++) {
        check_lane(l);
        pt_settle_tally(l);
    }
    struct peer *p = peer_table[0];
    if (p && !mock_script.played)
        assert_int_equal(p->credit + p->quota / 2 - p->due,
                         p->quota); /* every eager byte was consumed and accounted for */
    if (p) assert_true(!p->stored && !p->arriving);
    close_layers();
}

int job_clean(void **state)
{
    static const char *const variables[] = {"TERN_TRANSPORTS",   "TERN_BOOTSTRAP",   "TERN_EAGER_SHM",
                                            "TERN_EAGER_CREDIT", "TERN_EAGER_STORE", "TERN_CHUNK_CMA",
                                            "TERN_CHUNK_STREAM", "TERN_EAGER_TCP",   "TERN_SPIN",      "TERN_BULK",
                                            "TERN_LANES",        "TERN_EARLY_RECEIVERS"};
    (void)state;
    close_layers();
    for (size_t i = 0; i < ARRAY_LEN(variables); i++) unsetenv(variables[i]);
    return 0;
}

static unsigned char pattern(uint64_t seed, size_t i) { return (unsigned char)((seed * 131 + i) * 0x9e3779b1u >> 13); }

void fill(void *buf, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) ((unsigned char *)buf)[i] = pattern(seed, i);
}

bool filled(const void *buf, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        if (((const unsigned char *)buf)[i] != pattern(seed, i)) return false;
    return true;
}

struct type *gaps_type(void)
{
    struct type *two = NULL, *four = NULL;
    assert_int_equal(type_contiguous(2, type_of(MPI_BYTE), &two), 0);
    assert_int_equal(type_resized(two, 0, 4, &four), 0);
    assert_int_equal(type_commit(four), 0);
    type_unref(two);
    return four;
}

size_t gaps_place(size_t k, bool with_gaps) { return with_gaps ? k / 2 * 4 + k % 2 : k; }

uint64_t random_open(void) { return seed_open(); }

uint64_t random_next(uint64_t *state) { return seed_next(state); }
