/* meeting.c - see meeting.h. */
#include "comm/meeting.h"
#include "base/err.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- how often we have met ---- */

struct tally {
    uint64_t key;   /* of the purpose, the tag and the members */
    uint64_t times; /* 0: the entry is free */
};

/* By open hashing; at most half full. For the process's life: others go on counting when the library is closed here. */
static struct tally *tallies;
static size_t room, used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct tally *find(struct tally *in, size_t size, uint64_t key)
{
    size_t at = key & (size - 1);
    while (in[at].times && in[at].key != key) at = (at + 1) & (size - 1);
    return &in[at];
}

static bool grow(void)
{
    size_t size = room ? 2 * room : 64;
    struct tally *t = calloc(size, sizeof *t);
    if (!t) return false;
    for (size_t i = 0; i < room; i++)
        if (tallies[i].times) *find(t, size, tallies[i].key) = tallies[i];
    free(tallies);
    tallies = t;
    room = size;
    return true;
}

/* The number of this time, from 1; 0 when memory is out. */
static uint64_t count(uint64_t key)
{
    uint64_t times = 0;
    pthread_mutex_lock(&lock);
    if (2 * used < room || grow()) {
        struct tally *t = find(tallies, room, key);
        used += !t->times;
        t->key = key;
        times = ++t->times;
    }
    pthread_mutex_unlock(&lock);
    return times;
}

/* ---- the context ---- */

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

/* All members find the same numbers: ranks if they are of one job, else jobs and ranks. */
static uint64_t mix_process(uint64_t h, const struct rankmap *members, uint32_t index)
{
    struct proc_name name;
    if (!rankmap_has_others(members)) return mix(h, index);
    jobs_name_of(index, &name);
    return mix(mix(h, name.job), name.rank);
}

static uint64_t key_of(enum meeting_purpose purpose, const char *tag, const struct rankmap *members)
{
    uint64_t h = mix(0x7e51, (uint64_t)purpose);
    for (; *tag; tag++) h = mix(h, (unsigned char)*tag);
    h = mix(h, (uint64_t)members->size + 256); /* a number that is no character ends the tag */
    for (int32_t r = 0; r < members->size; r++) h = mix_process(h, members, rankmap_at(members, r));
    return h;
}

int meeting_open(enum meeting_purpose purpose, const char *tag, struct rankmap *members, const struct comm *like, struct comm **out)
{
    if (!members) return err_set(TERN_ERR_NOMEM, "no memory for the members of a communicator");
    uint64_t key = key_of(purpose, tag, members), times = count(key);
    if (times) return comm_new(comm_meeting_ctx(mix(mix(key, times), times)), members, NULL, like, out);
    rankmap_unref(members);
    return err_set(TERN_ERR_NOMEM, "no memory to count the communicators made from a group");
}
