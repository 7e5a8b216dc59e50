/*
 * find.h - which transports there are: those of the library, in one table, and modules.
 *
 * The transport NAME that is not in the table is looked for as the module tern_tp_NAME (proc/module.h), which exports a
 * struct tp_module by the name tern_transport.
 *
 * Threads: under the lane's lock.
 */
#ifndef TERN_TRANSPORT_FIND_H
#define TERN_TRANSPORT_FIND_H

#include "transport/transport.h"

/* What is built in, by name; ends with NULL. */
extern const struct tp_ops *const tp_built_in[];

/* Their names: "self, shm, tcp and mock". */
const char *tp_names(char *text, size_t room);

/* The transport of this name, which has `len` bytes. 0; or a code with words: TERN_ERR_NOT_FOUND (there is none), or
 * TERN_ERR_SYSTEM (there is a module, but it cannot be used). */
int tp_find(const char *name, size_t len, const struct tp_ops **ops);

/* Has the list of transports "a,b,c:DOMAIN" one that goes through memory that processes of a node share? */
bool tp_list_shares(const char *list);

#endif
