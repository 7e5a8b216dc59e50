/* keys.c - see keys.h. */
#include "dpm/keys.h"
#include "base/err.h"
#include "dpm/endpoints.h"
#include "proc/dynamic.h"
#include "proc/proc.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* A key of its own for this purpose, made of the job's secret. */
static int own_secret(const struct crypto *c, uint8_t secret[CRYPTO_KEY])
{
    static const char purpose[] = "connections with other jobs";
    uint8_t job[CRYPTO_KEY];
    int rc = proc_secret(job);
    if (!rc) c->tag(secret, purpose, sizeof purpose, job);
    explicit_bzero(job, sizeof job);
    return rc;
}

int keys_public(const struct crypto *c, uint8_t public[CRYPTO_KEY])
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint8_t known[CRYPTO_KEY]; /* it is always the same, and takes long (early.h) */
    static bool made;
    uint8_t secret[CRYPTO_KEY];
    int rc = 0;
    pthread_mutex_lock(&lock);
    if (!made && !(rc = own_secret(c, secret))) {
        c->public_of(known, secret);
        explicit_bzero(secret, sizeof secret);
        made = true;
    }
    memcpy(public, known, CRYPTO_KEY);
    pthread_mutex_unlock(&lock);
    return rc;
}

int keys_pair(const char *job, const uint8_t public[CRYPTO_KEY], uint8_t key[CRYPTO_KEY])
{
    uint8_t secret[CRYPTO_KEY], common[CRYPTO_KEY];
    char both[600];
    const struct crypto *c = endpoints_crypto();
    const char *own = proc_self()->job;
    bool first = strcmp(own, job) < 0;
    int n = snprintf(both, sizeof both, "%s %s", first ? own : job, first ? job : own);
    int rc = c ? own_secret(c, secret) : err_code();
    if (rc) return rc;
    if (c->agree(common, secret, public)) c->tag(key, both, (size_t)n, common);
    else rc = err_set(TERN_ERR_ARG, "the public key of job %s is none", job);
    explicit_bzero(secret, sizeof secret);
    explicit_bzero(common, sizeof common);
    return rc;
}
