/* single.c - bootstrap of a process started alone: a job of one rank. */
#include "base/err.h"
#include "proc/proc.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static char own_card[512];
static size_t own_len;

static int single_open(struct proc_info *p)
{
    uint64_t random = 0; /* the number of the process may be another one's elsewhere */
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0) random = 0;
    snprintf(p->job, sizeof p->job, "single.%d.%016llx", (int)getpid(), (unsigned long long)random);
    p->size = p->local_size = p->nodes = 1;
    return 0;
}

static int single_card_put(const void *card, size_t len)
{
    if (len > sizeof own_card) return err_set(TERN_ERR_INTERN, "card of %zu bytes does not fit", len);
    memcpy(own_card, card, len);
    own_len = len;
    return 0;
}

static int single_card_get(uint32_t rank, void *buf, size_t cap)
{
    if (rank || own_len > cap) return err_set(TERN_ERR_RANK, "a process started alone has no rank %u", rank);
    memcpy(buf, own_card, own_len);
    return (int)own_len;
}

static uint32_t single_node_of(uint32_t rank)
{
    (void)rank;
    return 0;
}

/* Nobody else has it */
static int single_secret(uint8_t key[32])
{
    static uint8_t secret[32];
    static bool made;
    if (!made && getrandom(secret, sizeof secret, 0) != sizeof secret) return err_sys("no random numbers for the job's secret");
    made = true;
    memcpy(key, secret, sizeof secret);
    return 0;
}

static bool single_abort(int code, const char *words)
{
    (void)code;
    (void)words;
    return true;
}

static void single_state(int state) { (void)state; }
static void single_close(void) {}

const struct proc_boot proc_single = {
    .name = "single",
    .open = single_open,
    .card_put = single_card_put,
    .card_get = single_card_get,
    .node_of = single_node_of,
    .secret = single_secret,
    .abort = single_abort,
    .state = single_state,
    .close = single_close,
};
