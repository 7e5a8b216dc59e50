/*
 * server_spawn.h - PMIx_Spawn, as our PMIx server serves it: a question to the first mpiexec, like that of a rank of
 * Tern (registry.h). PMIx has a code for what fails; the words are said by the launcher.
 *
 * Called by the PMIx library on its thread, with the signature of its server module.
 */
#ifndef TERN_MPIEXEC_SERVER_SPAWN_H
#define TERN_MPIEXEC_SERVER_SPAWN_H

#include <pmix_server.h>

pmix_status_t server_spawn(const pmix_proc_t *, const pmix_info_t info[], size_t ninfo, const pmix_app_t apps[],
                           size_t napps, pmix_spawn_cbfunc_t, void *arg);

#endif
