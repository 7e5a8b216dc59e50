/* fuzz_job.c - see fuzz_job.h. */
#include "fuzz_job.h"
#include "fuzz.h"
#include "proc/job_block.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

uint8_t fuzz_key[32];

static int make_block(uint32_t ranks)
{
    uint64_t place_off, card_off, bytes = job_layout(ranks, &place_off, &card_off);
    int fd = memfd_create("tern-test-job", 0);
    if (fd < 0 || ftruncate(fd, (off_t)bytes)) abort();
    struct job_head *h = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (h == MAP_FAILED) abort();
    h->magic = JOB_MAGIC;
    atomic_store_explicit(&h->socket_state, JOB_SOCKET_CLOSED, memory_order_relaxed); /* there is no launcher */
    h->version = JOB_VERSION;
    h->bytes = bytes;
    h->size = h->local_size = ranks;
    h->nodes = 1;
    h->usable_cpus = 1;
    h->place_off = place_off;
    h->card_off = card_off;
    strcpy(h->name, "fuzz");
    memcpy(h->secret, fuzz_key, sizeof fuzz_key);
    for (uint32_t r = 0; r < ranks; r++) job_places(h)[r] = (struct job_place){.local_rank = r, .l3 = -1, .numa = -1};
    munmap(h, bytes);
    return fd;
}

void fuzz_job(uint32_t ranks)
{
    char text[16], dir[4096];
    const char *top = getenv("top_builddir");
    for (size_t i = 0; i < sizeof fuzz_key; i++) fuzz_key[i] = (uint8_t)(7 * i + 1);
    snprintf(text, sizeof text, "%d", make_block(ranks));
    snprintf(dir, sizeof dir, "%s/lib/tern", top ? top : ".");
    setenv("TERN_MODULE_DIR", dir, 1);
    setenv(JOB_ENV_FD, text, 1);
    setenv(JOB_ENV_RANK, "0", 1);
    setenv("TERN_BOOTSTRAP", "native", 1);
    setenv("TERN_TRANSPORTS", "self,tcp", 1);
}

void fuzz_fork(bool (*play)(void), const char *rule)
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid < 0) abort();
    if (!pid) {
        alarm(300);
        bool good = play();
        fflush(stdout);
        exit(good ? 0 : 1);
    }
    if (waitpid(pid, &status, 0) != pid) abort();
    FUZZ_RULE(status == 0, rule);
}
