/*
 * jobs.h - the jobs that this process knows: its own, and those that it has been connected with.
 *
 * A process is (job, rank). Inside this process it has an index, which only this process gives and understands:
 *
 *     index   | own job, by rank | another job, by rank | free | a third one, by rank | free ...
 *             0                  own size
 *
 * A job is given a range of indices when it becomes known, so a group of any size is a few runs of indices
 * (obj/rankmap.h), and a process that nobody has talked to costs nothing here. The range is free again, for another
 * job, when the last reference to the job is gone: maps of ranks hold one (obj/rankmap.c), as does each peer
 * (transport/peer.h), and whoever has added the job.
 *
 * What other processes are told is a struct proc_name: the job by a number made from its name, the same everywhere,
 * and the rank in it.
 *
 * Threads: any (a lock inside). A pointer to a job is good while the caller holds a reference.
 */
#ifndef TERN_PROC_JOBS_H
#define TERN_PROC_JOBS_H

#include "base/compiler.h"

#define JOBS_PLACES ((uint32_t)1 << 20) /* indices for processes of other jobs, at one time */
#define JOBS_KEY 32                     /* bytes of a key */

struct job_entry;

/* A process, as others are told of it. */
struct proc_name {
    uint64_t job; /* jobs_id */
    uint32_t rank, zero;
};
static_assert(sizeof(struct proc_name) == 16, "sent as it is, between processes of one kind of machine");

static inline bool proc_name_same(const struct proc_name *a, const struct proc_name *b)
{
    return a->job == b->job && a->rank == b->rank;
}

/* An order that all processes find the same. */
static inline bool proc_name_before(const struct proc_name *a, const struct proc_name *b)
{
    return a->job != b->job ? a->job < b->job : a->rank < b->rank;
}

/* Called by proc_open and proc_close. Before jobs_open, every index is taken for one of the own job. */
void jobs_open(const char *name, uint32_t rank, uint32_t size);
void jobs_close(void);

/* ---- jobs ---- */

/* The number of a job with this name in a proc_name: a hash, never 0. */
uint64_t jobs_id(const char *name);

/* The key for connections with a job: of its name, and of what is known of it (job_add). 0 or a code with words. */
typedef int (*jobs_key_fn)(const char *name, const uint8_t known[JOBS_KEY], uint8_t key[JOBS_KEY]);

/* Another job. `known` is what the key that its processes and those of this job use for their connections is made of, by `make_key`,
 * when there is a first connection; NULL: it is the key. A job that is known already gets one more reference, if size and `known` are
 * the same. NULL with words: TERN_ERR_ARG (the own job, no process, too many, or too long a name), TERN_ERR_ABSENT (known with another
 * size or key), TERN_ERR_NOMEM. */
struct job_entry *job_add(const char *name, uint32_t size, const uint8_t known[JOBS_KEY], jobs_key_fn make_key);

/* Would job_add take that, if there is memory? 0 or its code with words. */
int job_check(const char *name, uint32_t size, const uint8_t known[JOBS_KEY]);
struct job_entry *job_ref(struct job_entry *);
void job_unref(struct job_entry *);

uint32_t job_index(const struct job_entry *, uint32_t rank);
uint32_t job_entry_size(const struct job_entry *);

/* The card of one of its processes, copied, in place of one that it had; at most 512 bytes. 0, or a code with words. */
int job_card_put(struct job_entry *, uint32_t rank, const void *card, size_t n);

/* The same of a card that is in a pack (card_pack.h), which gets a reference. */
struct card_pack;
int job_card_put_packed(struct job_entry *, uint32_t rank, struct card_pack *, uint32_t place);

/* The job, with one more reference, that an index belongs to; NULL: the own one, or none that is known. */
struct job_entry *jobs_of_index(uint32_t index);

/* The key for connections with that job, copied; of the own job see proc_secret. 0 or a code with words: TERN_ERR_PEER (the job is
 * not known), what make_key says. */
int jobs_key(uint64_t job, uint8_t key[JOBS_KEY]);

/*
 * jobs_others: how many jobs are known besides the own one.
 * jobs_news: a number, never 0, that changes when a job becomes known and with each jobs_look_again. A transport that
 * has put something off, since the sender's job was not known or its old connection was still open, looks again when
 * the number has changed.
 */
uint32_t jobs_others(void);
uint32_t jobs_news(void);
void jobs_look_again(void);

/* ---- processes, by index ---- */

extern TERN_HIDDEN uint32_t jobs_own_size; /* indices from here on are of other jobs; read only */
static inline bool jobs_is_own(uint32_t index) { return likely(index < jobs_own_size); }

struct proc_name jobs_own_name(void);
bool jobs_name_of(uint32_t index, struct proc_name *); /* false: it is nobody's */
bool jobs_index_of(const struct proc_name *, uint32_t *index); /* false: there is no such process, as far as is known */
bool jobs_before(uint32_t a, uint32_t b); /* proc_name_before of their names: the same wherever it is asked */
uint32_t jobs_rank_of(uint32_t index);    /* the rank in its job; the index itself, if it is nobody's */

/* "rank 3", or "rank 3 of the job"; of another job "rank 3 of job NAME". Valid until this thread has asked eight more
 * times. */
const char *jobs_words(uint32_t index);
const char *jobs_long_words(uint32_t index);

/* As the functions of proc.h, for processes of all jobs. Of another job: jobs_card_get does not wait (TERN_ERR_ABSENT:
 * there is no card), jobs_never_came is false, jobs_note_loss does nothing. Where the processes of another job are is
 * not known here, so all processes of such a job have the same node number, which no node of the own job and no other
 * job has. */
int jobs_card_get(uint32_t index, void *buf, size_t cap);
bool jobs_card_there(uint32_t index);
bool jobs_never_came(uint32_t index);
uint32_t jobs_node_of(uint32_t index);
void jobs_note_loss(uint32_t index);

/* As proc_open_file (dynamic.h), by the index of the process that has the file. Also TERN_ERR_ABSENT: the index is
 * nobody's. */
int jobs_open_file(uint32_t index, uint32_t fd, uint64_t key, int *opened);

#endif
