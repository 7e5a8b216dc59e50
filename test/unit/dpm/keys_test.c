/* keys_test.c - rules of src/dpm/keys.h: any two processes of two jobs find the same key, nobody else does, and no message is needed. */
#include "../transport/party.h"
#include "dpm/endpoints.h"
#include "dpm/keys.h"
#include "proc/proc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the party's page, by job: its public key, its name, and the key that its processes have found. */
struct told {
    uint8_t public[CRYPTO_KEY], key[CRYPTO_KEY];
    char name[64];
};
static struct told *told(uint32_t job)
{
    static_assert(2 * sizeof(struct told) <= sizeof party->sign, "there is room");
    return (struct told *)&party->sign[0] + job;
}

static bool find_keys(void)
{
    struct told *own = told(party_job), *other = told(1 - party_job);
    const struct crypto *c = endpoints_crypto();
    uint8_t public[CRYPTO_KEY], key[CRYPTO_KEY];
    PARTY_CHECK(c && !keys_public(c, public));
    if (party_rank == 0) memcpy(own->public, public, sizeof public);
    if (party_rank == 0) snprintf(own->name, sizeof own->name, "%.63s", proc_self()->job);
    party_meet();
    PARTY_CHECK(!memcmp(own->public, public, sizeof public)); /* the same in all processes of a job */
    PARTY_CHECK(memcmp(own->public, other->public, sizeof public));
    PARTY_CHECK(!keys_pair(other->name, other->public, key));
    if (party_rank == 0) memcpy(own->key, key, sizeof key);
    party_meet();
    PARTY_CHECK(!memcmp(own->key, key, sizeof key) && !memcmp(other->key, key, sizeof key));
    uint8_t wrong[CRYPTO_KEY];
    PARTY_CHECK(!keys_pair("another name", other->public, wrong) && memcmp(wrong, key, sizeof key));
    PARTY_CHECK(!keys_pair(other->name, own->public, wrong) && memcmp(wrong, key, sizeof key));
    memset(wrong, 0, sizeof wrong);
    PARTY_CHECK(keys_pair(other->name, wrong, key)); /* of small order: nobody's key */
    return true;
}

static bool member(void)
{
    MPI_Init(NULL, NULL);
    PARTY_CHECK(find_keys());
    party_meet();
    MPI_Finalize();
    exit(0);
}

static void both_jobs_find_one_key(void **state)
{
    static const uint32_t n[2] = {2, 3};
    (void)state;
    assert_true(party_run_two(n, member));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(both_jobs_find_one_key)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
