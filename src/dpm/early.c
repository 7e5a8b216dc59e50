/* early.c - see early.h. */
#include "dpm/early.h"
#include "base/affinity.h"
#include "base/signals.h"
#include "base/sleep.h"
#include "dpm/endpoints.h"
#include "dpm/keys.h"
#include "proc/proc.h"

#include <pthread.h>

static pthread_t thread;
static bool running;

/* Both are kept where they are made. An error is told to whoever needs them. */
static void *make_ready(void *arg)
{
    const struct crypto *c = endpoints_crypto();
    uint8_t key[CRYPTO_KEY];
    if (c) (void)keys_public(c, key);
    return arg;
}

void early_begin(void)
{
    sigset_t before;
    if (proc_self()->rank || proc_self()->usable_cpus <= proc_self()->local_size || affinity_count(0) == 1) return;
    (void)sleep_membarrier_open(); /* with a second thread it would wait for all cores: 10 ms */
    signals_block(&before);
    running = !pthread_create(&thread, NULL, make_ready, NULL);
    signals_restore(&before);
}

void early_end(void)
{
    if (running) pthread_join(thread, NULL);
    running = false;
}
