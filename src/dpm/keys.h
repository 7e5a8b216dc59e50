/*
 * keys.h - the key that two jobs use for their connections (proc/jobs.h), which each of their processes finds by itself: the
 * secret that both jobs can compute from their own secret and the other one's public key (X25519). So what two groups send
 * each other has no secret in it, and any process of one job gets the same key for any of the other, whoever connects them first.
 *
 * Functions that return int return 0 or a code with words. Threads: any.
 */
#ifndef TERN_DPM_KEYS_H
#define TERN_DPM_KEYS_H

#include "base/crypto.h"

/* The public key of this process's job. May wait, as proc_secret does. */
int keys_public(const struct crypto *, uint8_t public[CRYPTO_KEY]);

/* The key with the job of this name and public key: for job_add, as it takes 60 us, and is needed by those who make connections
 * only. TERN_ERR_ARG: no job has such a public key. */
int keys_pair(const char *job, const uint8_t public[CRYPTO_KEY], uint8_t key[CRYPTO_KEY]);

#endif
