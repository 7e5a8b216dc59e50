/* two_jobs.c - see two_jobs.h. */
#include "two_jobs.h"
#include "base/err.h"
#include "obj/comm.h"
#include "proc/jobs.h"
#include "pt2pt/api.h"
#include "transport/peer.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

int two_rank, two_size, two_others;

bool two_run_over_all(const uint32_t n[2], bool (*member)(void))
{
    static const struct {
        const char *transports, *variable, *value;
    } ways[] = {{"self,shm", NULL, NULL},
                {"self,shm", "TERN_SHM_BOXES", "0"},
                {"self,tcp", NULL, NULL},
                {"self,shm", "TERN_PROGRESS", "helper"}};
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        setenv("TERN_TRANSPORTS", ways[i].transports, 1);
        if (ways[i].variable) setenv(ways[i].variable, ways[i].value, 1);
        bool well = party_run_two(n, member);
        if (ways[i].variable) unsetenv(ways[i].variable);
        if (well) continue;
        fprintf(stderr, "# that was with TERN_TRANSPORTS=%s %s=%s\n", ways[i].transports,
                ways[i].variable ? ways[i].variable : "", ways[i].variable ? ways[i].value : "");
        return false;
    }
    return true;
}

bool two_open(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &two_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &two_size);
    two_others = (int)party->job_size[1 - party_job];
    PARTY_CHECK(two_size == (int)party->job_size[party_job]);
    party_put_card();
    party_meet();
    return true;
}

void two_close(void)
{
    MPI_Finalize();
    party_meet();
    exit(0);
}

bool two_make(uint64_t number, MPI_Comm *inter)
{
    struct comm *world = comm_world(), *made = NULL;
    struct job_entry *job = party_learn();
    PARTY_CHECK(job);
    struct rankmap *theirs = rankmap_line(two_others, job_index(job, 0), 1);
    PARTY_CHECK(comm_new_inter(comm_meeting_ctx(number << 32), comm_meeting_ctx(number << 32 | 256u << party_job),
                               rankmap_ref(world->map), theirs, world, &made) == 0);
    job_unref(job);
    *inter = comm_handle(made);
    return true;
}

bool two_connect(uint64_t number, MPI_Comm *inter)
{
    party_meet();
    return two_make(number, inter);
}

bool two_apart(void)
{
    uint64_t end = clock_ns() + 20000000000u;
    while (jobs_others() && clock_ns() < end) {
        pt_progress_once(NULL);
        sched_yield();
    }
    PARTY_CHECK(jobs_others() == 0 && peer_count == party->job_size[party_job] && peer_other_quotas == 0);
    return true;
}
