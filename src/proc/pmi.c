/*
 * pmi.c - bootstrap through PMI, the text protocol of the launchers that do not speak PMIx: Hydra (MPICH's mpiexec),
 * Flux, Slurm's `srun --mpi=pmi2`.
 *
 * The launcher keeps short texts by name. A card goes there in hexadecimal, its length before it, in as many pieces as
 * the launcher's limit makes necessary:
 *
 *     tern-card-7     "01f0" hex hex ...       (0x1f0 bytes in all)
 *     tern-card-7.1   hex hex ...
 *
 * There is no waiting for a single text, so everybody's cards are made known by one fence at the start. After that,
 * each is asked for when somebody wants to talk to its owner. The job's secret lies there too, beside rank 0's card.
 *
 * Leave-taking: a launcher takes a process that ends without a word for a failure, and one that has taken its leave
 * cannot come back. So it is taken when the process ends; or by MPI_Finalize, after which a program may end in any way.
 *
 * Threads: `lock` lets one question after the other to the launcher.
 */
#include "proc/pmi.h"
#include "base/err.h"
#include "base/hex.h"
#include "proc/pmi_map.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define PIECES_MAX 64     /* of one card */
#define JOB_MAX (1 << 24) /* processes: more than that is a mistake of the launcher's */

static const struct pmi_dialect *dialect;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t my_rank, job_size;
static uint32_t *node_table; /* by rank */
static size_t piece_max;     /* signs of one text */
static bool left;            /* by MPI_Finalize */

int pmi_begin(int version, int subversion)
{
    struct pmi_answer a;
    int rc = pmi_ask(&a, "response_to_init", "cmd=init pmi_version=%d pmi_subversion=%d", version, subversion);
    if (!rc) rc = pmi_good(&a, "this version of PMI");
    if (rc) return rc;
    int64_t got = pmi_number(&a, "pmi_version", version);
    return got == version
               ? 0
               : err_set(TERN_ERR_SYSTEM, "the launcher speaks PMI-%lld, not PMI-%d", (long long)got, version);
}

int pmi_value(const struct pmi_answer *a, char value[PMI_VALUE_MAX])
{
    if (pmi_field(a, "value", value, PMI_VALUE_MAX)) return 0;
    return err_set(TERN_ERR_SYSTEM, "the launcher (PMI) gave no value, or one of more than %d bytes: '%.100s'",
                   PMI_VALUE_MAX, a->text);
}

/* ---- bytes in the store ---- */

static void piece_key(char key[64], const char *name, int piece)
{
    if (piece)
        snprintf(key, 64, "%s.%d", name, piece);
    else
        snprintf(key, 64, "%s", name);
}

/* At most 64 KB. What is as long as a value is not on the stack: programs have threads with 16 KB of it. */
static int put_bytes(const char *name, const void *bytes, size_t n)
{
    char key[64], *hex = malloc(4 + 2 * n + 1), *piece = malloc(PMI_VALUE_MAX);
    int rc = hex && piece ? 0 : err_set(TERN_ERR_NOMEM, "no memory for %zu bytes to publish", n);
    if (!rc) hex_put(hex + sprintf(hex, "%04zx", n), bytes, n);
    for (size_t at = 0, i = 0; !rc && at < 4 + 2 * n; at += piece_max, i++) {
        snprintf(piece, PMI_VALUE_MAX, "%.*s", (int)piece_max, hex + at);
        piece_key(key, name, (int)i);
        rc = dialect->put(key, piece);
    }
    free(hex);
    free(piece);
    return rc;
}

/* The text of all pieces, into hex (room signs and a zero), until its length is what it says. */
static int gather(const char *name, char *hex, size_t room, char piece[PMI_VALUE_MAX])
{
    char key[64];
    uint8_t length[2] = {0};
    size_t have = 0, want = 4;
    for (int i = 0; have < want && i < PIECES_MAX; i++) {
        piece_key(key, name, i);
        int rc = dialect->get(key, piece);
        if (rc) return rc;
        size_t n = strlen(piece);
        if (!n || n > room - have) return TERN_ERR_NOT_FOUND;
        memcpy(hex + have, piece, n + 1);
        have += n;
        if (have >= 4 && !hex_get(hex, length, 2)) return TERN_ERR_NOT_FOUND;
        if (have >= 4) want = 4 + 2 * ((size_t)length[0] << 8 | length[1]);
    }
    return have == want ? 0 : TERN_ERR_NOT_FOUND;
}

/* Returns how many bytes, or a code; TERN_ERR_NOT_FOUND: none are there, or something else. */
static int get_bytes(const char *name, void *buf, size_t cap)
{
    size_t room = 4 + 2 * cap;
    char *hex = malloc(room + 1 + PMI_VALUE_MAX);
    if (!hex) return err_set(TERN_ERR_NOMEM, "no memory for %zu bytes of another process", cap);
    int rc = gather(name, hex, room, hex + room + 1);
    size_t n = rc ? 0 : (strlen(hex) - 4) / 2;
    if (!rc && !hex_get(hex + 4, buf, n)) rc = TERN_ERR_NOT_FOUND;
    free(hex);
    return rc ? rc : (int)n;
}

/* As get_bytes, with words for everything. */
static int fetch(const char *name, void *buf, size_t cap, const char *what)
{
    pthread_mutex_lock(&lock);
    int rc =
        left ? err_set(TERN_ERR_PEER,
                       "this process has taken its leave of the launcher in MPI_Finalize, and PMI takes nobody back: "
                       "%s can no longer be asked for",
                       what)
             : get_bytes(name, buf, cap);
    pthread_mutex_unlock(&lock);
    return rc == TERN_ERR_NOT_FOUND ? err_set(TERN_ERR_PEER, "the launcher (PMI) does not know %s", what) : rc;
}

static void card_key(char key[64], uint32_t rank) { snprintf(key, 64, "tern-card-%u", rank); }

static int put_secret(void)
{
    uint8_t key[32];
    if (my_rank) return 0;
    if (getrandom(key, sizeof key, 0) != sizeof key) return err_sys("no random numbers for the job's secret");
    return put_bytes("tern-secret", key, sizeof key);
}

static int boot_card_put(const void *card, size_t len)
{
    char key[64];
    card_key(key, my_rank);
    pthread_mutex_lock(&lock);
    int rc = put_bytes(key, card, len);
    if (!rc) rc = put_secret();
    if (!rc) rc = dialect->fence();
    pthread_mutex_unlock(&lock);
    return rc;
}

static int boot_card_get(uint32_t rank, void *buf, size_t cap)
{
    char key[64], what[64];
    if (rank >= job_size) return err_set(TERN_ERR_RANK, "the job has no rank %u", rank);
    card_key(key, rank);
    snprintf(what, sizeof what, "the address of rank %u", rank);
    return fetch(key, buf, cap, what);
}

/* The fence of boot_card_put has made all of them known. */
static bool boot_card_there(uint32_t rank) { return rank < job_size; }

static int boot_secret(uint8_t key[32])
{
    int n = fetch("tern-secret", key, 32, "the job's secret");
    return n < 0     ? n
           : n == 32 ? 0
                     : err_set(TERN_ERR_SYSTEM, "what the launcher (PMI) has as the job's secret is none");
}

/* ---- nodes ---- */

/* Without a word of the launcher: all on one node if it says at least so many are on this one, else each on its own. */
static void guess_nodes(void)
{
    bool together = proc_env_number("MPI_LOCALNRANKS") == (long)job_size;
    for (uint32_t r = 0; r < job_size; r++) node_table[r] = together ? 0 : r;
}

static int find_nodes(void)
{
    char map[PMI_VALUE_MAX];
    node_table = calloc(job_size, sizeof *node_table);
    if (!node_table) return err_set(TERN_ERR_NOMEM, "no memory for the nodes of %u processes", job_size);
    int rc = dialect->about_job("PMI_process_mapping", map);
    if (!rc) rc = pmi_map_fill(map, node_table, job_size);
    if (rc != TERN_ERR_NOT_FOUND) return rc;
    guess_nodes();
    return 0;
}

static void count_nodes(struct proc_info *p)
{
    p->node = node_table[p->rank];
    for (uint32_t r = 0; r < p->size; r++) {
        if (node_table[r] >= p->nodes) p->nodes = node_table[r] + 1;
        if (node_table[r] != p->node) continue;
        if (r < p->rank) p->local_rank++;
        p->local_size++;
    }
}

static uint32_t boot_node_of(uint32_t rank) { return rank < job_size ? node_table[rank] : UINT32_MAX; }

/* ---- life ---- */

static void part(void)
{
    if (pmi_wire_is_open()) dialect->leave();
    pmi_wire_close();
}

static void boot_leave(void)
{
    pthread_mutex_lock(&lock);
    part();
    left = true;
    pthread_mutex_unlock(&lock);
}

static void boot_close(void)
{
    part();
    free(node_table);
    node_table = NULL;
}

static int describe(struct proc_info *p)
{
    size_t value_max = 0;
    int rc = dialect->join(p, &value_max);
    if (rc) return rc;
    if (p->rank >= p->size || p->size > JOB_MAX)
        return err_set(TERN_ERR_SYSTEM, "the launcher says (PMI_RANK, PMI_SIZE) that this is rank %u of a job of %u",
                       p->rank, p->size);
    my_rank = p->rank;
    job_size = p->size;
    piece_max = min_size(value_max, PMI_VALUE_MAX) - 1;
    rc = find_nodes();
    if (!rc) count_nodes(p);
    return rc;
}

static int boot_open(const struct pmi_dialect *d, struct proc_info *p)
{
    long rank = proc_env_number("PMI_RANK"), size = proc_env_number("PMI_SIZE");
    p->rank = rank >= 0 ? (uint32_t)rank : UINT32_MAX;
    p->size = size > 0 ? (uint32_t)size : 0;
    int rc = pmi_wire_open(&p->rank, &p->size);
    if (rc) return rc;
    dialect = d;
    left = false;
    rc = describe(p);
    if (rc) {
        pmi_wire_close();
        boot_close();
    }
    return rc;
}

static int open_pmi1(struct proc_info *p) { return boot_open(&pmi1_dialect, p); }
static int open_pmi2(struct proc_info *p) { return boot_open(&pmi2_dialect, p); }

static bool is_mute(void) { return true; }

/* The lock is not taken, since who has it may wait for a process that never comes; nothing is answered. */
static bool boot_abort(int code, const char *words)
{
    (void)words;
    if (pmi_wire_is_open()) dialect->abort(code & 0xff ? code & 0xff : 1);
    return true;
}

static void boot_state(int state) { (void)state; }

/* Which dialect a launcher speaks is not to be seen from outside: Slurm's both, but its PMI-1 knows less. */
const struct proc_boot *pmi_guess(void)
{
    if (!pmi_wire_here()) return NULL;
    return getenv("SLURM_STEP_ID") && getenv("PMI_JOBID") ? &proc_pmi2 : &proc_pmi1;
}

const struct proc_boot proc_pmi1 = {
    .name = "pmi1",
    .open = open_pmi1,
    .card_put = boot_card_put,
    .card_get = boot_card_get,
    .card_there = boot_card_there,
    .node_of = boot_node_of,
    .secret = boot_secret,
    .mute = is_mute,
    .abort = boot_abort,
    .state = boot_state,
    .leave = boot_leave,
    .close = boot_close,
};

const struct proc_boot proc_pmi2 = {
    .name = "pmi2",
    .open = open_pmi2,
    .card_put = boot_card_put,
    .card_get = boot_card_get,
    .card_there = boot_card_there,
    .node_of = boot_node_of,
    .secret = boot_secret,
    .mute = is_mute,
    .abort = boot_abort,
    .state = boot_state,
    .leave = boot_leave,
    .close = boot_close,
};
