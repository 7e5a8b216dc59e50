/* party_cycles.c - see party_cycles.h. */
#include "party_cycles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long number;
static const char *only;

bool cycles_arguments(int argc, char **argv, long number_by_default)
{
    number = argc > 1 ? atol(argv[1]) : number_by_default;
    only = argc > 2 ? argv[2] : NULL;
    return argc > 1;
}

bool cycles_run_by(const char *transports, const uint32_t n[2], bool (*member)(void))
{
    if (only && strcmp(only, transports)) return true;
    setenv("TERN_TRANSPORTS", transports, 1);
    setenv("TERN_SHM_BOX", "4K", 1);
    bool well = party_run_two(n, member);
    unsetenv("TERN_SHM_BOX");
    return well;
}

bool cycles_run(const uint32_t n[2], bool (*member)(void))
{
    bool boxes = cycles_run_by("self,shm", n, member);
    setenv("TERN_SHM_BOXES", "0", 1);
    bool common = cycles_run_by("self,shm", n, member);
    unsetenv("TERN_SHM_BOXES");
    return cycles_run_by("self,tcp", n, member) && boxes && common;
}

static bool count(const struct cycles *c, struct party_usage *usage)
{
    PARTY_CHECK(!c->settle || c->settle());
    *usage = party_usage_at_rest();
    return true;
}

bool cycles_go(const struct cycles *c)
{
    struct party_usage early = {0}, late = {0};
    alarm(number > 1000 ? 3600 : 120);
    for (long i = 0; i < number; i++) {
        if (i == 0 || i == number / 2)
            PARTY_CHECK(count(c, &early)); /* the first time brings in what it needs itself */
        PARTY_CHECK(c->once(i));
    }
    PARTY_CHECK(count(c, &late));
    if (party_job == 0 && party_rank == 0)
        fprintf(stderr, "# %s, %ld cycles: pages %ld -> %ld, mappings %ld -> %ld, descriptors %ld -> %ld\n",
                getenv("TERN_TRANSPORTS"), number, early.pages, late.pages, early.maps, late.maps, early.files,
                late.files);
    /* The wires keep a few buffers, and the C library some of its heap; the common ring is touched all round once (25 pages). A
     * sanitizer's allocator maps in steps of its own. */
    PARTY_CHECK(late.maps <= early.maps + (PARTY_SANITIZED ? 16 : 4) && late.files <= early.files + c->files);
    PARTY_CHECK(PARTY_SANITIZED || late.pages <= early.pages + 32);
    return true;
}
