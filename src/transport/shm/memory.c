/*
 * memory.c - where the segments lie, and how a process maps those of its peers (doc/decisions/segments.md).
 *
 * Tern's mpiexec makes one memfd for the ranks of a node, with a slot for each (proc_shared). All of it is mapped once,
 * so a peer is reached without a system call, without any right to look at its process, and after the program has
 * closed descriptors that it did not open:
 *
 *     node memory   | segment of local rank 0 | segment of local rank 1 | ... |        slot_bytes each
 *                   | arena of local rank 0 | arena of local rank 1 | ... |            arena_bytes each, mostly unused
 *
 * Arenas lie there only in jobs with processes that cannot open each other's descriptors (`apart`): many processes that
 * touch new pages at once get them faster if each has a file of its own.
 *
 * Without node memory (other launchers, a segment larger than a slot, a limit of files, a later process of the same
 * rank) a process makes a memfd of its own. Peers get a descriptor of it, at the first message, from the launcher of
 * that process (proc_open_file); if that has none, or there is no such launcher, from /proc/<pid>/fd/<fd>. The cards
 * say which is possible: `near` is equal on processes that can get each other's descriptors from a launcher, `host` on
 * those that may open each other's.
 */
#include "base/err.h"
#include "base/memfile.h"
#include "base/var.h"
#include "proc/dynamic.h"
#include "proc/jobs.h"
#include "proc/proc.h"
#include "proc/watcher.h"
#include "transport/shm/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char *node_memory; /* all slots, NULL: they are not mapped together */
static size_t node_bytes;

/* ---- who may open whose descriptors ---- */

/* Of the network name space, which the names of sockets belong to; 0: not known. */
static uint64_t net_space(void)
{
    uint64_t cookie = 0;
    socklen_t n = sizeof cookie;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &n)) cookie = 0;
    if (fd >= 0) close(fd);
    return cookie;
}

static bool is_hidden(void) { return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 1; }

/* Equal on two processes of one host, one user and one network name space: each can take what the launcher of the other
 * hands out. 0: a process that hides itself, from its launcher as well. */
static uint64_t near_key(void)
{
    uint64_t net = is_hidden() ? 0 : net_space();
    uint64_t key = memfile_mix(memfile_boot(), (uint64_t)getuid() << 32 | geteuid());
    return net ? memfile_mix(key, net) : 0;
}

/* Is /proc there, and of the name space whose process ids this process uses? */
static bool procfs_is_own(void)
{
    char text[32];
    ssize_t n = readlink("/proc/self", text, sizeof text - 1);
    if (n <= 0) return false;
    text[n] = 0;
    return atoi(text) == (int)getpid();
}

/* Equal on two processes if each can open the other's descriptors and copy from its memory, by the number of the
 * process, and wake it by a datagram socket (sleep.h); 0: nobody may at this process, or it at others. */
static uint64_t host_key(uint64_t near)
{
    static const char *const spaces[] = {"/proc/self/ns/pid", "/proc/self/ns/user"};
    uint64_t key = near;
    if (!near || !procfs_is_own()) return 0;
    for (size_t i = 0; i < ARRAY_LEN(spaces); i++) {
        struct stat st;
        if (stat(spaces[i], &st)) return 0;
        key = memfile_mix(key, st.st_ino);
    }
    return key ? key : 1;
}

/* ---- the own segment ---- */

#define BOXES_MAX 65536
#define SENDERS_MORE 8192 /* of other jobs, beside those of this node, when all boxes are taken: 256 KB of addresses */
#define SENDERS_LEAST 512
#define HEAP_LEAST ((uint64_t)64 << 10)
#define SEGMENT_SMALL ((uint64_t)128 << 10) /* less makes no difference */

static void lay_out(struct shm_segment *s, uint64_t heap, uint32_t others)
{
    s->box_off = sizeof *s;
    s->sender_off = s->box_off + (s->boxes + 1) * sizeof(struct shm_box);
    s->senders = s->boxes + others + proc_self()->local_size;
    s->ring_off = round_up(s->sender_off + (s->senders - s->boxes) * sizeof(struct shm_sender), 4096);
    s->heap_off = s->ring_off + (uint64_t)(s->boxes + 1) * s->box_bytes;
    s->bytes = s->heap_off + heap;
}

/* What the segment should have, and less of it as long as that is more than `most` bytes. */
static void plan(struct shm_segment *s, uint64_t most)
{
    uint64_t heap = SHM_HEAP_BYTES;
    uint32_t others = SENDERS_MORE;
    *s = (struct shm_segment){
        .magic = SHM_MAGIC, .version = 5, .boxes = (uint32_t)var_int(VAR_SHM_BOXES), .box_bytes = 4096};
    while (s->box_bytes < (uint64_t)var_int(VAR_SHM_BOX) && s->box_bytes < 8u << 20) s->box_bytes *= 2;
    lay_out(s, heap, others);
    while (s->bytes > most && (heap > HEAP_LEAST || s->boxes > 0 || s->box_bytes > 4096 || others > SENDERS_LEAST)) {
        if (others > SENDERS_LEAST)
            others /= 2;
        else if (heap > most / 2 && heap > HEAP_LEAST)
            heap /= 2;
        else if (s->box_bytes > 4096)
            s->box_bytes /= 2;
        else if (s->boxes > 0)
            s->boxes /= 2;
        else
            heap /= 2;
        lay_out(s, heap, others);
    }
}

static rlim_t address_space(void)
{
    struct rlimit r;
    return getrlimit(RLIMIT_AS, &r) ? RLIM_INFINITY : r.rlim_cur;
}

/* Of a limited address space (ulimit -v) the segments of all ranks together get a quarter. */
static uint64_t share_of_address_space(void)
{
    rlim_t all = address_space();
    return all == RLIM_INFINITY ? UINT64_MAX : all / 4 / max_size(proc_self()->local_size, 1);
}

/* Nobody reads it in a core dump, which would make memory of all of it that has never been touched. */
void *shm_memory_mmap(int fd, uint64_t offset, uint64_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, (off_t)offset);
    if (p == MAP_FAILED) return NULL;
    madvise(p, bytes, MADV_DONTDUMP);
    return p;
}

void shm_memory_unmap(void *p, size_t bytes)
{
    if (!node_memory || (char *)p < node_memory || (char *)p >= node_memory + node_bytes) munmap(p, bytes);
}

void shm_memory_close(void)
{
    if (shm_dom.segment) shm_memory_unmap(shm_dom.segment, shm_dom.segment->bytes);
    if (node_memory) munmap(node_memory, node_bytes);
    node_memory = NULL;
    if (shm_dom.own_file) close(shm_dom.fd);
    shm_dom.own_file = false;
    shm_dom.fd = -1;
}

static struct shm_segment *map_slots(const struct proc_shared *node, uint64_t bytes)
{
    if (address_space() != RLIM_INFINITY) return shm_memory_mmap(node->fd, node->own * node->slot_bytes, bytes);
    node_bytes = node->slots * node->slot_bytes;
    node_memory = shm_memory_mmap(node->fd, 0, node_bytes);
    return (struct shm_segment *)(node_memory ? node_memory + node->own * node->slot_bytes : NULL);
}

/* The own slot; NULL: it is too small, or has been used: peers of the process that was this rank before may still look
 * at what that has left. */
static struct shm_segment *open_slot(uint64_t bytes)
{
    const struct proc_shared *node = proc_shared();
    if (!node || !node->fresh || bytes > node->slot_bytes || node->own >= node->slots) return NULL;
    struct shm_segment *s = map_slots(node, bytes);
    if (s && !s->magic) {
        shm_dom.fd = node->fd;
        shm_dom.offset = node->own * node->slot_bytes;
        arena_offer(&(struct arena_room){node->fd, node->arenas + node->own * node->arena_bytes, node->arena_bytes,
                                         node->apart});
        return s;
    }
    if (node_memory) munmap(node_memory, node_bytes);
    else if (s) munmap(s, bytes);
    node_memory = NULL;
    return NULL;
}

static int open_own_file(uint64_t bytes)
{
    shm_dom.fd = memfd_create("tern-segment", MFD_CLOEXEC);
    if (shm_dom.fd < 0) return err_sys("cannot create shared memory (memfd)");
    shm_dom.own_file = true;
    if (!memfile_resize(shm_dom.fd, bytes))
        return err_sys("cannot size shared memory to %llu bytes (ulimit -f allows files of %llu)",
                       (unsigned long long)bytes, (unsigned long long)memfile_limit());
    shm_dom.segment = shm_memory_mmap(shm_dom.fd, 0, bytes);
    if (shm_dom.segment) return 0;
    shm_memory_close();
    return err_set(TERN_ERR_NOMEM, "cannot map shared memory of %llu bytes (see ulimit -v)", (unsigned long long)bytes);
}

static int open_file(struct shm_segment *head, uint64_t most)
{
    plan(head, most);
    shm_dom.segment = open_slot(head->bytes);
    if (shm_dom.segment) return 0;
    plan(head, (uint64_t)min_size(most, memfile_limit()));
    return open_own_file(head->bytes);
}

/* Sets `apart` for the node if this rank cannot open the descriptors of the launcher or of the first rank that came
 * here: arenas that are made from then on lie in the node memory. */
static void compare_hosts(void)
{
    uint64_t first = 0;
    const struct proc_shared *node = proc_shared();
    if (!node) return;
    bool same = shm_dom.host && proc_self()->launcher &&
                (atomic_compare_exchange_strong_explicit(node->host, &first, shm_dom.host, memory_order_relaxed,
                                                         memory_order_relaxed) ||
                 first == shm_dom.host);
    if (!same) atomic_store_explicit(node->apart, 1, memory_order_relaxed);
}

int shm_memory_open(void)
{
    struct shm_segment head;
    int64_t boxes = var_int(VAR_SHM_BOXES);
    if (boxes < 0 || boxes > BOXES_MAX)
        return err_set(TERN_ERR_ARG, "variable TERN_SHM_BOXES: %lld is not between 0 and %d", (long long)boxes,
                       BOXES_MAX);
    int rc = open_file(&head, share_of_address_space());
    while (rc == TERN_ERR_NOMEM && head.bytes > SEGMENT_SMALL) rc = open_file(&head, head.bytes / 2);
    if (rc) return rc;
    uint64_t id = memfile_id_of(shm_dom.fd);
    if (!id) return err_sys("the file of the shared memory");
    shm_dom.file = memfile_key(id);
    uint64_t near = near_key();
    shm_dom.host = host_key(near);
    shm_dom.near = proc_opens_files() ? near : 0;
    compare_hosts();
    head.name = jobs_own_name();
    *shm_dom.segment = head;
    return 0;
}

/* ---- segments of peers ---- */

bool shm_memory_reaches(const struct shm_card *c)
{
    return c->file == shm_dom.file || shm_is_open_to(c) || shm_is_near(c);
}

int shm_open_node(void)
{
    if (memfile_key(memfile_id_of(shm_dom.fd)) == shm_dom.file) return fcntl(shm_dom.fd, F_DUPFD_CLOEXEC, 0);
    errno = EBADF;
    return -1;
}

static int open_by_proc(uint32_t pid, uint32_t fd, uint64_t file)
{
    uint64_t id = memfile_id_at((int)pid, (int)fd);
    if (id && memfile_key(id) == file) return memfile_open_at((int)pid, (int)fd, id);
    if (id) errno = EBADF;
    return -1;
}

int shm_open_foreign(uint32_t index, uint32_t pid, uint32_t fd, uint64_t file, bool near)
{
    int own, rc = near ? jobs_open_file(index, fd, file, &own) : TERN_ERR_UNSUPPORTED;
    if (!rc) return own;
    own = pid ? open_by_proc(pid, fd, file) : -1;
    if (own >= 0) return own;
    const char *by_proc = pid ? strerror(errno) : "not possible between these two";
    if (pid && proc_has_ended((pid_t)pid)) {
        err_set(TERN_ERR_PEER, "%s has ended", jobs_words(index));
    } else {
        char words[300];
        snprintf(words, sizeof words, "%s", near ? err_words() : "does not hand it out");
        err_set(TERN_ERR_PEER,
                "cannot open the shared memory of %s (descriptor %u of process %u): by the launcher: %s; by /proc: %s (does a "
                "program close descriptors that it did not open?)",
                jobs_words(index), fd, pid, words, by_proc);
    }
    return -1;
}

void shm_note_end(uint32_t index, uint32_t pid)
{
    if (!pid || !proc_has_ended((pid_t)pid)) return;
    jobs_note_loss(index);
    if (!jobs_is_own(index) || !proc_tells_deaths()) watcher_note(index);
}

static uint32_t pid_of(const struct shm_card *c) { return shm_is_open_to(c) ? c->pid : 0; }

static int map_single(const struct shm_card *c, uint32_t index, struct shm_segment **s)
{
    bool same = c->file == shm_dom.file;
    int fd = same ? shm_open_node()
                  : shm_open_foreign(index, pid_of(c), c->fd, c->file, shm_is_near(c));
    if (fd < 0)
        return same ? err_sys("cannot open the shared memory of %s (descriptor %d of this process: does a program close "
                              "descriptors that it did not open?)",
                              jobs_words(index), shm_dom.fd)
                    : TERN_ERR_PEER;
    *s = shm_memory_mmap(fd, c->offset, c->bytes);
    close(fd);
    return *s ? 0
              : err_sys("cannot map the shared memory of %s (%llu bytes; see ulimit -v)", jobs_words(index),
                        (unsigned long long)c->bytes);
}

static bool within_node_memory(const struct shm_card *c)
{
    return node_memory && c->file == shm_dom.file && c->offset <= node_bytes && c->bytes <= node_bytes - c->offset;
}

/* Does it belong to that process, and lie within what is mapped? */
static bool is_of(const struct shm_segment *s, const struct shm_card *c, uint32_t index)
{
    struct proc_name name;
    if (c->bytes < sizeof *s || s->magic != SHM_MAGIC || s->bytes != c->bytes) return false;
    return jobs_name_of(index, &name) && proc_name_same(&s->name, &name);
}

int shm_memory_map(const struct shm_card *c, uint32_t index, struct shm_segment **s)
{
    int rc = 0;
    if (within_node_memory(c))
        *s = (struct shm_segment *)(node_memory + c->offset);
    else
        rc = map_single(c, index, s);
    if (rc) {
        shm_note_end(index, pid_of(c));
        return rc;
    }
    if (is_of(*s, c, index)) return 0;
    shm_memory_unmap(*s, c->bytes);
    return err_set(TERN_ERR_ABSENT, "the shared memory of %s is not what its card says", jobs_words(index));
}

int shm_memory_map_head(const struct shm_card *c, uint32_t index, struct shm_segment **s)
{
    struct shm_card head = *c;
    head.bytes = SHM_HEAD_BYTES;
    int rc = c->bytes < head.bytes ? TERN_ERR_ABSENT : 0;
    if (!rc && within_node_memory(c)) *s = (struct shm_segment *)(node_memory + c->offset);
    else if (!rc) rc = map_single(&head, index, s);
    if (rc) return rc;
    if (is_of(*s, c, index)) return 0;
    shm_memory_unmap(*s, head.bytes);
    return TERN_ERR_ABSENT;
}
