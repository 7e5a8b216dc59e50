/*
 * nomem_test.c - the n-th allocation fails, for every n that the scenario reaches. Each time the library either hands
 * out TERN_ERR_NOMEM, or, where a message cannot be dropped and nobody can be told, ends the job in words; it neither
 * crashes nor hangs, and what it reports as received is right. (Linked with --wrap for malloc and its relatives.)
 */
#include "mock_job.h"
#include "base/err.h"
#include "base/var.h"
#include "obj/group.h"
#include "proc/proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static long countdown = -1; /* allocations that still succeed; < 0: all do */
static bool failed;    /* one did not */

static bool refuse(void)
{
    if (countdown < 0 || countdown-- > 0) return false;
    countdown = -1; /* one failure; what follows works */
    failed = true;
    return true;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_aligned_alloc(size_t align, size_t n);
char *__real_strdup(const char *s);
void *__real_mmap(void *at, size_t n, int prot, int flags, int fd, off_t off);
int __real_mprotect(void *at, size_t n, int prot);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t n);
char *__wrap_strdup(const char *s);
void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t off);
int __wrap_mprotect(void *at, size_t n, int prot);

void *__wrap_malloc(size_t n) { return refuse() ? NULL : __real_malloc(n); }
void *__wrap_calloc(size_t n, size_t size) { return refuse() ? NULL : __real_calloc(n, size); }
void *__wrap_aligned_alloc(size_t align, size_t n) { return refuse() ? NULL : __real_aligned_alloc(align, n); }
char *__wrap_strdup(const char *s) { return refuse() ? NULL : __real_strdup(s); }
void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t off)
{
    return refuse() ? MAP_FAILED : __real_mmap(at, n, prot, flags, fd, off);
}
int __wrap_mprotect(void *at, size_t n, int prot) { return refuse() ? -1 : __real_mprotect(at, n, prot); }

/* ---- the scenario: 0, or the first error ---- */

enum { BYTES = 40000 };
static char out[BYTES], in[BYTES];

/* Messages of a layer above. */
enum { AM_ABOVE = TP_AM_TESTS };
static int heard;

static void hear(struct peer *from, uint64_t h0, uint64_t h1, const void *data, size_t n)
{
    (void)from;
    heard = h0 == n && filled(data, n, h1) ? heard + 1 : -1000;
}

static const struct tp_am above = {AM_ABOVE, "of a layer above", hear, NULL, false, 0};

static int start_layers(void)
{
    int rc;
    if ((rc = var_open()) || (rc = proc_open())) return rc;
    errh_open();
    group_open(0);
    if ((rc = request_open()) || (rc = type_open()) || (rc = pt_register()) || (rc = tp_am_register(&above, 1)) || (rc = peers_open()) || (rc = pt_open(false))) return rc;
    return (rc = comm_open(0)) ? rc : comm_world_open(1);
}

static int message(struct comm *c, int64_t n, bool expected, enum pt_mode mode)
{
    struct request *s = NULL, *r = NULL;
    int rc = expected ? pt_irecv(c, in, BYTES, type_of(MPI_BYTE), 0, 1, &r) : 0;
    if (rc) return rc;
    fill(out, (size_t)n, (uint64_t)n);
    if ((rc = pt_isend(c, out, n, type_of(MPI_BYTE), 0, 1, mode, &s))) return rc;
    lane_progress(lanes_first());
    if (!expected && (rc = pt_irecv(c, in, BYTES, type_of(MPI_BYTE), 0, 1, &r))) return rc;
    if ((rc = pt_wait(s)) || (rc = pt_wait(r))) return rc;
    if (r->result.bytes != n || !filled(in, (size_t)n, (uint64_t)n)) return TERN_ERR_INTERN;
    pt_release(s);
    pt_release(r);
    return 0;
}

static int matched_probe(struct comm *c)
{
    struct pt_message *m = NULL;
    struct request_result res;
    struct request *r = NULL;
    bool found = false;
    int rc = pt_send(c, out, 100, type_of(MPI_BYTE), 0, 1, PT_STANDARD);
    if (!rc) rc = pt_mprobe(c, 0, 1, true, &found, &m, &res);
    if (!rc) rc = pt_imrecv(m, in, 100, type_of(MPI_BYTE), &r);
    if (!rc) rc = pt_wait(r);
    if (!rc) pt_release(r);
    return rc;
}

/* More than there is room for, so that some wait; one long one in parts. */
static int messages_above(void)
{
    static const size_t sizes[] = {8, 3000, BYTES, 100, 0, 20};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        fill(out, sizes[i], i);
        int rc = pt_message(0, AM_ABOVE, sizes[i], i, out, sizes[i]);
        if (rc) return rc;
    }
    for (int i = 0; i < 100; i++) lane_progress(lanes_first());
    const char *lost = peer_table[0]->lost;
    if (lost) return err_set(TERN_ERR_PEER, "%s", lost);
    return heard == ARRAY_LEN(sizes) ? 0 : TERN_ERR_INTERN;
}

static int scenario(uint32_t caps)
{
    struct comm *d = NULL;
    mock_script = (struct mock_script)MOCK_SCRIPT;
    mock_script.caps = caps;
    mock_script.room = 3;
    int rc = start_layers();
    if (rc) return rc;
    struct comm *c = comm_world();
    for (int expected = 0; expected < 2; expected++)
        for (enum pt_mode mode = PT_STANDARD; mode <= PT_SYNC; mode++) {
            static const int64_t sizes[] = {0, 8, 3000, BYTES};
            for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
                if ((rc = message(c, sizes[i], expected, mode))) return rc;
        }
    if ((rc = matched_probe(c)) || (rc = messages_above())) return rc;
    if ((rc = comm_new(comm_fresh_ctx(), rankmap_line(1, 0, 1), NULL, c, &d))) return rc;
    comm_unref(d);
    return 0;
}

/* In a process of its own: exit code 0: no allocation failed; 2: an error in words; 1: ended by lane_fatal. */
static int run(long n, uint32_t caps, char *text, size_t cap)
{
    int fd[2], status = 0;
    assert_int_equal(pipe(fd), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (!pid) {
        dup2(fd[1], STDERR_FILENO);
        alarm(20);
        err_clear();
        countdown = n;
        int rc = scenario(caps);
        countdown = -1;
        if (rc) fprintf(stderr, "%d: %s\n", rc, err_words());
        _exit(rc == TERN_ERR_NOMEM || rc == TERN_ERR_SYSTEM || rc == TERN_ERR_PEER ? 2 : rc ? 3 : failed ? 4 : 0);
    }
    close(fd[1]);
    size_t k = 0;
    for (ssize_t got; k < cap - 1 && (got = read(fd[0], text + k, cap - 1 - k)) > 0;) k += (size_t)got;
    text[k] = 0;
    close(fd[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void every_allocation_may_fail(void **state)
{
    static const uint32_t caps[] = {TP_CAP_BCOPY | TP_CAP_GETPUT | TP_CAP_MAP, TP_CAP_BULK, 0};
    char text[4096];
    (void)state;
    setenv("TERN_TRANSPORTS", "mock", 1);
    setenv("TERN_BOOTSTRAP", "single", 1);
    for (size_t i = 0; i < ARRAY_LEN(caps); i++) {
        long n = 0, errors = 0, ends = 0, survived = 0;
        for (;; n++) {
            int code = run(n, caps[i], text, sizeof text);
            if (code == 0) break;
            if (code == 2 && strstr(text, "no memory") == NULL && strstr(text, "annot") == NULL)
                fail_msg("allocation %ld: an error without words: %s", n, text);
            if (code == 1 && !strstr(text, "cannot go on")) fail_msg("allocation %ld: the end without words: %s", n, text);
            if (code != 1 && code != 2 && code != 4) fail_msg("allocation %ld: %d: %s", n, code, text);
            errors += code == 2;
            ends += code == 1;
            survived += code == 4;
        }
        printf("# %ld allocations: %ld errors, %ld ends of the job, %ld done without\n", n, errors, ends, survived);
        assert_true(errors > 50 && ends > 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
