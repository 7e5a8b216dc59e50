/*
 * hosts.h - lists of hosts. This version starts ranks on its own host only: lists that name nothing else are taken,
 * others refused in words. No name is ever resolved.
 */
#ifndef TERN_MPIEXEC_HOSTS_H
#define TERN_MPIEXEC_HOSTS_H

/* The name of this host, as the kernel has it. */
const char *hosts_self(void);

/* Takes "host[:slots],host ...". Adds the slots named (1 an entry that names none) to *slots. 0 or an exit code. */
int hosts_list(const char *list, int *slots);

/* The same for a file with "host[:n] [slots=n]" a line; '#' starts a comment. */
int hosts_file(const char *path, int *slots);

#endif
