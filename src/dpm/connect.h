/*
 * connect.h - how two groups become those of an intercommunicator: the messages of the roots to each other, and to their groups.
 */
#ifndef TERN_DPM_CONNECT_H
#define TERN_DPM_CONNECT_H

#include "dpm/dpm.h"
#include "dpm/endpoints.h"

/* What the exchange gives the root: the table of the other group (malloc'ed), and the context that both groups take. */
struct outcome {
    void *theirs;
    size_t bytes;
    uint64_t ctx;
    bool overlaps; /* a process is in both groups */
};
struct own_table {
    struct comm *local;
    const void *bytes; /* NULL: there is none, ... */
    size_t n;
    int code; /* ... and this is why, with words */
};
typedef int (*connect_fn)(void *arg, const struct own_table *, struct outcome *);

/* Collective over `local`. The root does `by(arg)`, unless it comes with a code (with words) that says why it cannot. */
int connect_groups(struct comm *local, int root, int code, connect_fn by, void *arg, struct comm **out);

/* Ways of doing it: at an endpoint, whose port the others call at: any, or only the children that know it; by calling at the port of this
 * name (char *). One more is dpm_inter_create. */
int connect_accept(void *endpoint, const struct own_table *, struct outcome *);
int connect_accept_children(void *endpoint, const struct own_table *, struct outcome *);
int connect_call(void *name, const struct own_table *, struct outcome *);

#endif
