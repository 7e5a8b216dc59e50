/* job_map.c - see job_map.h. */
#include "proc/job_map.h"
#include "base/err.h"

#include <sys/mman.h>
#include <sys/stat.h>

static bool block_ok(const struct job_head *j, uint64_t bytes, uint32_t rank)
{
    uint64_t place, card;
    return j->magic == JOB_MAGIC && j->version == JOB_VERSION && j->bytes == bytes && rank < j->size &&
           job_layout(j->size, &place, &card) <= bytes && j->place_off == place && j->card_off == card;
}

/* The last byte of the names is a zero, so that none runs out of the block. */
static bool psets_ok(struct job_head *j)
{
    if (!j->pset_bytes) return true;
    return j->pset_off <= j->bytes && j->pset_bytes <= j->bytes - j->pset_off && !job_psets(j)[j->pset_bytes - 1];
}

int job_map(int fd, const char *from, uint32_t rank, struct job_head **out)
{
    struct stat st;
    if (fstat(fd, &st)) return err_sys("the job block (descriptor %d, from %s)", fd, from);
    if (!S_ISREG(st.st_mode) || (size_t)st.st_size < sizeof **out)
        return err_set(TERN_ERR_SYSTEM, "descriptor %d, from %s, is not a job block", fd, from);
    struct job_head *j = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (j == MAP_FAILED) return err_sys("cannot map the job block");
    if (!block_ok(j, (uint64_t)st.st_size, rank) || !psets_ok(j)) {
        munmap(j, (size_t)st.st_size);
        return err_set(TERN_ERR_SYSTEM, "the job block is not one of this version of Tern (rank %u)", rank);
    }
    *out = j;
    return 0;
}

void job_unmap(struct job_head *j) { munmap(j, j->bytes); }
