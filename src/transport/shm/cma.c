/*
 * cma.c - single copies between the memories of two processes by cross-memory
 * attach (process_vm_readv, process_vm_writev). Tried once for each peer at connect;
 * where it is forbidden the capability is not announced, silently.
 */
#include "base/err.h"
#include "proc/jobs.h"
#include "proc/proc.h"
#include "proc/watcher.h"
#include "transport/shm/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/prctl.h>
#include <unistd.h>

typedef ssize_t (*vm_fn)(pid_t, const struct iovec *, unsigned long, const struct iovec *, unsigned long, unsigned long);

/* Yama's default elsewhere than at "0" (everybody of the same user may) is that only ancestors may. */
static bool yama_restricts(void)
{
    char scope = '0';
    int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    bool known = read(fd, &scope, 1) == 1;
    close(fd);
    return known && scope == '1'; /* beyond that nothing helps */
}

void shm_cma_allow(void)
{
    unsigned long launcher = (unsigned long)proc_self()->launcher; /* it and its descendants */
    if (yama_restricts()) prctl(PR_SET_PTRACER, launcher ? launcher : PR_SET_PTRACER_ANY, 0, 0, 0);
}

bool shm_cma_works(pid_t pid, uint64_t probe_at, uint64_t probe)
{
    uint64_t seen = 0;
    struct iovec local = {&seen, sizeof seen}, remote = {(void *)(uintptr_t)probe_at, sizeof seen};
    return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)sizeof seen && seen == probe;
}

/* Drops `done` bytes from the front of a list of *n pieces; returns where it starts now. */
static struct iovec *advance(struct iovec *v, int *n, size_t done)
{
    while (*n && done >= v->iov_len) {
        done -= v->iov_len;
        v++;
        (*n)--;
    }
    if (*n) {
        v->iov_base = (char *)v->iov_base + done;
        v->iov_len -= done;
    }
    return v;
}

/* Its memory is gone. The layers above hear of that in the next turn of progress, where what it has sent is delivered
 * first. */
static TERN_COLD void note_end(const struct shm_ep *e)
{
    jobs_note_loss(e->peer->index);
    watcher_note(e->peer->index);
}

static int move(struct tp_ep *ep, vm_fn vm, const struct iovec *local, int nl, const struct iovec *remote, int nr)
{
    struct shm_ep *e = ep->priv;
    struct iovec lv[64], rv[64], *l = lv, *r = rv;
    if (nl > 64 || nr > 64) return err_set(TERN_ERR_INTERN, "more than 64 pieces in one copy between processes");
    size_t left = 0;
    for (int i = 0; i < nl; i++) left += (lv[i] = local[i]).iov_len;
    for (int i = 0; i < nr; i++) rv[i] = remote[i];
    while (left) {
        ssize_t n = vm(e->pid, l, (unsigned long)nl, r, (unsigned long)nr, 0);
        if (n <= 0) {
            if (n < 0 && (errno == EPERM || errno == ENOSYS)) {
                ep->caps &= ~(uint32_t)TP_CAP_GETPUT;
                return TERN_ERR_UNSUPPORTED;
            }
            if (n < 0 && errno == ESRCH) {
                note_end(e);
                return err_set(TERN_ERR_PEER, "%s has ended (pid %d)", jobs_words(e->peer->index), (int)e->pid);
            }
            return err_sys("copying between processes (pid %d)", (int)e->pid);
        }
        left -= (size_t)n;
        l = advance(l, &nl, (size_t)n);
        r = advance(r, &nr, (size_t)n);
    }
    return 0;
}

int shm_get(struct tp_ep *ep, const struct iovec *local, int nl, const struct iovec *remote, int nr)
{
    return move(ep, process_vm_readv, local, nl, remote, nr);
}

int shm_put(struct tp_ep *ep, const struct iovec *local, int nl, const struct iovec *remote, int nr)
{
    return move(ep, process_vm_writev, local, nl, remote, nr);
}
