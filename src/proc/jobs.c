/* jobs.c - see jobs.h. */
#include "proc/jobs.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/scratch.h"
#include "proc/card_pack.h"
#include "proc/dynamic.h"
#include "proc/proc.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A card: packed with others, or alone. */
struct card {
    struct card_pack *pack; /* NULL: alone, if there is one */
    union {
        uint32_t place; /* in the pack */
        struct alone {
            uint32_t n;
            uint8_t bytes[];
        } *alone;
    };
};

/* `all` is sorted by `first`; `ids` has them by `id`. */
struct job_entry {
    struct job_entry *next;
    struct hash_link by_id;
    uint64_t id;
    uint32_t refs, first, size;
    uint32_t number; /* from 0, different from that of every other job that is known now */
    uint8_t known[JOBS_KEY], key[JOBS_KEY];
    jobs_key_fn make_key; /* NULL: `key` is there */
    struct card *cards; /* by rank; the system gives memory for those that are there */
    char name[256];
};

uint32_t jobs_own_size = UINT32_MAX;
static struct proc_name own = {.job = 1}; /* 0 is no job */
static struct job_entry *all;
static struct job_entry *packed; /* from the first one to this there are no gaps; NULL: it is not known */
static struct hash ids;
static struct {
    bool *taken;
    uint32_t room, from; /* all below `from` are taken */
} numbers;
static _Atomic uint32_t count; /* written with the lock. Relaxed: who asks got to know of its jobs before */
static _Atomic uint32_t news = 1; /* relaxed: who needs a new job looks again */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- the table ---- */

uint64_t jobs_id(const char *name)
{
    uint64_t h = 14695981039346656037u;
    for (; *name; name++) h = (h ^ (uint8_t)*name) * 1099511628211u;
    h = (h ^ h >> 29) * 0x9e3779b97f4a7c15u;
    return h ? h : 1;
}

void jobs_open(const char *name, uint32_t rank, uint32_t size)
{
    own = (struct proc_name){jobs_id(name), rank, 0};
    jobs_own_size = size;
}

static void free_card(struct card *c)
{
    if (c->pack) card_pack_unref(c->pack);
    else free(c->alone);
}

static void free_entry(struct job_entry *j)
{
    for (uint32_t r = 0; r < j->size; r++) free_card(&j->cards[r]);
    free(j->cards);
    explicit_bzero(j, sizeof *j);
    free(j);
}

/* Jobs that are still referred to go as well: the process ends. */
void jobs_close(void)
{
    pthread_mutex_lock(&lock);
    while (all) {
        struct job_entry *j = all;
        all = j->next;
        hash_remove(&ids, &j->by_id);
        free_entry(j);
    }
    packed = NULL;
    free(numbers.taken);
    memset(&numbers, 0, sizeof numbers);
    atomic_store_explicit(&count, 0, memory_order_relaxed);
    jobs_own_size = UINT32_MAX;
    pthread_mutex_unlock(&lock);
}

static struct job_entry *find_id(uint64_t id)
{
    struct hash_link *l = hash_find(&ids, id);
    return l ? container_of(l, struct job_entry, by_id) : NULL;
}

static struct job_entry *find_index(uint32_t index)
{
    struct job_entry *j = all;
    while (j && index - j->first >= j->size) j = j->next;
    return j;
}

/* The least that no job has: with n jobs, it is at most n. False: no memory to find out. */
static bool take_number(uint32_t *number)
{
    while (numbers.from < numbers.room && numbers.taken[numbers.from]) numbers.from++;
    if (numbers.from == numbers.room) {
        uint32_t room = numbers.room ? 2 * numbers.room : 64;
        bool *taken = realloc(numbers.taken, room);
        if (!taken) return false;
        memset(taken + numbers.room, 0, room - numbers.room);
        numbers.taken = taken;
        numbers.room = room;
    }
    numbers.taken[numbers.from] = true;
    *number = numbers.from;
    return true;
}

static void give_number(uint32_t number)
{
    numbers.taken[number] = false;
    if (number < numbers.from) numbers.from = number;
}

static void find_packed(void)
{
    if (!packed && all && all->first == jobs_own_size) packed = all;
    while (packed && packed->next && packed->next->first == packed->first + packed->size) packed = packed->next;
}

/* The first gap that is large enough. */
static bool place(struct job_entry *j)
{
    uint64_t at = packed ? packed->first + packed->size : jobs_own_size, end = (uint64_t)jobs_own_size + JOBS_PLACES;
    struct job_entry **where = packed ? &packed->next : &all;
    for (; *where && (*where)->first - at < j->size; where = &(*where)->next) at = (*where)->first + (*where)->size;
    if (at + j->size > end || end > INT32_MAX || !take_number(&j->number)) return false;
    j->first = (uint32_t)at;
    j->next = *where;
    *where = j;
    hash_add(&ids, &j->by_id, j->id);
    find_packed();
    atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&news, 2, memory_order_relaxed);
    return true;
}

static struct job_entry *new_entry(const char *name, uint32_t size, const uint8_t known[JOBS_KEY], jobs_key_fn make_key)
{
    struct job_entry *j = calloc(1, sizeof *j);
    if (j) j->cards = calloc(size, sizeof *j->cards);
    if (!j || !j->cards) {
        free(j);
        err_set(TERN_ERR_NOMEM, "no memory for a job of %u processes", size);
        return NULL;
    }
    j->id = jobs_id(name);
    j->refs = 1;
    j->size = size;
    snprintf(j->name, sizeof j->name, "%s", name);
    memcpy(j->known, known, sizeof j->known);
    memcpy(j->key, known, sizeof j->key);
    j->make_key = make_key;
    if (place(j)) return j;
    free_entry(j);
    err_set(TERN_ERR_NOMEM, "no room for a job of %u processes: at most %u of other jobs can be connected at a time",
            size, JOBS_PLACES);
    return NULL;
}

enum { NAME_WORDS = 80 };

/* Without its last part, which nobody can guess, and which serves as a key (mpiexec, name_job). */
static int words_of_name(const char *name)
{
    const char *last = strrchr(name, '.');
    size_t n = last ? (size_t)(last - name) : strlen(name);
    return (int)min_size(n, NAME_WORDS);
}

/* *j: the entry of that name, NULL: there is none. */
static int check(const char *name, uint32_t size, const uint8_t *known, struct job_entry **j)
{
    *j = find_id(jobs_id(name));
    if (!size || size > JOBS_PLACES || !*name || strlen(name) >= sizeof (*j)->name || jobs_id(name) == own.job)
        return err_set(TERN_ERR_ARG, "'%.*s', of %u processes, cannot be another job", words_of_name(name), name, size);
    if (*j && (strcmp((*j)->name, name) || (*j)->size != size || memcmp((*j)->known, known, sizeof (*j)->known)))
        return err_set(TERN_ERR_ABSENT, "job %.*s is known already, with another size or key", words_of_name(name), name);
    return 0;
}

int job_check(const char *name, uint32_t size, const uint8_t known[JOBS_KEY])
{
    struct job_entry *j;
    pthread_mutex_lock(&lock);
    int rc = check(name, size, known, &j);
    pthread_mutex_unlock(&lock);
    return rc;
}

struct job_entry *job_add(const char *name, uint32_t size, const uint8_t known[JOBS_KEY], jobs_key_fn make_key)
{
    struct job_entry *j;
    pthread_mutex_lock(&lock);
    if (check(name, size, known, &j)) j = NULL;
    else if (!j) j = new_entry(name, size, known, make_key);
    else j->refs++;
    pthread_mutex_unlock(&lock);
    return j;
}

struct job_entry *job_ref(struct job_entry *j)
{
    pthread_mutex_lock(&lock);
    j->refs++;
    pthread_mutex_unlock(&lock);
    return j;
}

static void drop(struct job_entry *j)
{
    struct job_entry **at = &all;
    while (*at && *at != j) at = &(*at)->next;
    if (!*at || --j->refs) return; /* not there: jobs_close was faster */
    *at = j->next;
    if (packed && j->first <= packed->first) packed = NULL;
    hash_remove(&ids, &j->by_id);
    give_number(j->number);
    atomic_fetch_sub_explicit(&count, 1, memory_order_relaxed);
    free_entry(j);
}

void job_unref(struct job_entry *j)
{
    pthread_mutex_lock(&lock);
    drop(j);
    pthread_mutex_unlock(&lock);
}

uint32_t job_index(const struct job_entry *j, uint32_t rank) { return j->first + rank; }
uint32_t job_entry_size(const struct job_entry *j) { return j->size; }

uint32_t jobs_others(void) { return atomic_load_explicit(&count, memory_order_relaxed); }
uint32_t jobs_news(void) { return atomic_load_explicit(&news, memory_order_relaxed); }
void jobs_look_again(void) { atomic_fetch_add_explicit(&news, 2, memory_order_relaxed); }

struct job_entry *jobs_of_index(uint32_t index)
{
    if (jobs_is_own(index)) return NULL;
    pthread_mutex_lock(&lock);
    struct job_entry *j = find_index(index);
    if (j) j->refs++;
    pthread_mutex_unlock(&lock);
    return j;
}

/* Lock held. */
static int know_key(struct job_entry *j)
{
    int rc = j->make_key ? j->make_key(j->name, j->known, j->key) : 0;
    if (!rc) j->make_key = NULL;
    return rc;
}

int jobs_key(uint64_t job, uint8_t key[JOBS_KEY])
{
    pthread_mutex_lock(&lock);
    struct job_entry *j = find_id(job);
    int rc = j ? know_key(j) : TERN_ERR_PEER;
    if (!rc) memcpy(key, j->key, JOBS_KEY);
    pthread_mutex_unlock(&lock);
    if (!j) err_set(TERN_ERR_PEER, "there is no key for connections with the job %016llx: it is not known", (unsigned long long)job);
    return rc;
}

/* ---- names ---- */

struct proc_name jobs_own_name(void) { return own; }

bool jobs_name_of(uint32_t index, struct proc_name *name)
{
    *name = (struct proc_name){own.job, index, 0};
    if (jobs_is_own(index)) return true;
    pthread_mutex_lock(&lock);
    const struct job_entry *j = find_index(index);
    if (j) *name = (struct proc_name){j->id, index - j->first, 0};
    pthread_mutex_unlock(&lock);
    return j != NULL;
}

bool jobs_index_of(const struct proc_name *name, uint32_t *index)
{
    *index = name->rank;
    if (likely(name->job == own.job)) return name->rank < jobs_own_size;
    pthread_mutex_lock(&lock);
    const struct job_entry *j = find_id(name->job);
    bool known = j && name->rank < j->size;
    if (known) *index = j->first + name->rank;
    pthread_mutex_unlock(&lock);
    return known;
}

bool jobs_before(uint32_t a, uint32_t b)
{
    struct proc_name x, y;
    jobs_name_of(a, &x);
    jobs_name_of(b, &y);
    return proc_name_before(&x, &y);
}

uint32_t jobs_rank_of(uint32_t index)
{
    struct proc_name name;
    return jobs_name_of(index, &name) ? name.rank : index;
}

/* Of each thread: what words() has said last. */
enum { WORDS_KEPT = 8, WORDS = 128 };

static const char *words(uint32_t index, const char *of_own)
{
    static struct said {
        unsigned turn;
        char text[WORDS_KEPT][WORDS];
    } common;
    static struct scratch kept = SCRATCH_INIT(common);
    struct said *said = scratch(&kept);
    char *text = said->text[said->turn++ % WORDS_KEPT];
    pthread_mutex_lock(&lock);
    const struct job_entry *j = jobs_is_own(index) ? NULL : find_index(index);
    if (j)
        snprintf(text, WORDS, "rank %u of job %.*s", index - j->first, words_of_name(j->name), j->name);
    else
        snprintf(text, WORDS, "rank %u%s", index, of_own);
    pthread_mutex_unlock(&lock);
    return text;
}

const char *jobs_words(uint32_t index) { return words(index, ""); }
const char *jobs_long_words(uint32_t index) { return words(index, " of the job"); }

/* ---- cards ---- */

static void put(struct job_entry *j, uint32_t rank, struct card c)
{
    pthread_mutex_lock(&lock);
    struct card old = j->cards[rank];
    j->cards[rank] = c;
    pthread_mutex_unlock(&lock);
    free_card(&old);
}

static int no_card(const struct job_entry *j, uint32_t rank, size_t n)
{
    return err_set(TERN_ERR_ABSENT, "rank %u of job %s has no card of %zu bytes", rank, j->name, n);
}

int job_card_put(struct job_entry *j, uint32_t rank, const void *card, size_t n)
{
    if (rank >= j->size || !n || n > CARD_MAX) return no_card(j, rank, n);
    struct alone *c = malloc(sizeof *c + n);
    if (!c) return err_set(TERN_ERR_NOMEM, "no memory for a card");
    c->n = (uint32_t)n;
    memcpy(c->bytes, card, n);
    put(j, rank, (struct card){.alone = c});
    return 0;
}

int job_card_put_packed(struct job_entry *j, uint32_t rank, struct card_pack *pack, uint32_t place)
{
    if (rank >= j->size) return no_card(j, rank, 0);
    put(j, rank, (struct card){.pack = card_pack_ref(pack), .place = place});
    return 0;
}

/* With the lock. */
static const struct card *card_of(uint32_t index)
{
    const struct job_entry *j = find_index(index);
    const struct card *c = j ? &j->cards[index - j->first] : NULL;
    return c && (c->pack || c->alone) ? c : NULL;
}

static int copy_card(uint32_t index, void *buf, size_t cap)
{
    uint8_t unpacked[CARD_MAX];
    pthread_mutex_lock(&lock);
    const struct card *c = card_of(index);
    size_t n = !c ? 0 : c->pack ? card_pack_get(c->pack, c->place, unpacked) : c->alone->n;
    bool fits = n && n <= cap;
    if (fits) memcpy(buf, c->pack ? unpacked : c->alone->bytes, n);
    pthread_mutex_unlock(&lock);
    return fits ? (int)n : TERN_ERR_ABSENT;
}

int jobs_card_get(uint32_t index, void *buf, size_t cap)
{
    if (jobs_is_own(index)) return proc_card_get(index, buf, cap);
    int n = copy_card(index, buf, cap);
    return n < 0 ? err_set(n, "there is no card of %s here", jobs_words(index)) : n;
}

bool jobs_card_there(uint32_t index)
{
    if (jobs_is_own(index)) return proc_card_there(index);
    pthread_mutex_lock(&lock);
    bool there = card_of(index) != NULL;
    pthread_mutex_unlock(&lock);
    return there;
}

bool jobs_never_came(uint32_t index) { return jobs_is_own(index) && proc_never_came(index); }

/* Those of the own job are less than twice its size. */
uint32_t jobs_node_of(uint32_t index)
{
    if (jobs_is_own(index)) return proc_node_of(index);
    pthread_mutex_lock(&lock);
    const struct job_entry *j = find_index(index);
    uint32_t node = 2 * jobs_own_size + (j ? j->number : count);
    pthread_mutex_unlock(&lock);
    return node;
}

/* The launcher that may report the death of a process is that of its own job. */
void jobs_note_loss(uint32_t index)
{
    if (jobs_is_own(index)) proc_note_loss(index);
}

int jobs_open_file(uint32_t index, uint32_t fd, uint64_t key, int *opened)
{
    char name[sizeof((struct job_entry *)0)->name] = "";
    pthread_mutex_lock(&lock);
    const struct job_entry *j = jobs_is_own(index) ? NULL : find_index(index);
    uint32_t rank = j ? index - j->first : index;
    if (j) strcpy(name, j->name);
    pthread_mutex_unlock(&lock);
    if (!j && !jobs_is_own(index)) return err_set(TERN_ERR_ABSENT, "no process with index %u is known here", index);
    return proc_open_file(name, rank, fd, key, opened);
}
