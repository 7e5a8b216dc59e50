/*
 * spawn_keys.h - info keys of MPI_Comm_spawn, and the names that PMIx has for some of them. Any other key goes by PMIx under its own
 * name: Tern's server knows what our launcher knows, and other servers leave out what they do not know.
 */
#ifndef TERN_PROC_PMIX_SPAWN_KEYS_H
#define TERN_PROC_PMIX_SPAWN_KEYS_H

#include "base/compiler.h"

#include <pmix.h>
#include <string.h>

static const struct {
    const char *mpi, *pmix;
} spawn_keys[] = {{"host", PMIX_HOST},     {"hostfile", PMIX_HOSTFILE}, {"wdir", PMIX_WDIR},
                  {"map_by", PMIX_MAPBY}, {"bind_to", PMIX_BINDTO},    {"rank_by", PMIX_RANKBY}};

static inline const char *spawn_key_to_pmix(const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(spawn_keys); i++)
        if (!strcmp(spawn_keys[i].mpi, key)) return spawn_keys[i].pmix;
    return key;
}

/* NULL: one of PMIx that has no counterpart. */
static inline const char *spawn_key_of_pmix(const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(spawn_keys); i++)
        if (!strncmp(spawn_keys[i].pmix, key, PMIX_MAX_KEYLEN)) return spawn_keys[i].mpi;
    return strncmp(key, "pmix.", 5) ? key : NULL;
}

#endif
