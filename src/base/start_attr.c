/* start_attr.c - see start_attr.h. */
#include "base/start_attr.h"

void start_attr_open(struct start_attr *s, const sigset_t *mask, const sigset_t *standard)
{
    posix_spawn_file_actions_init(&s->files);
    posix_spawnattr_init(&s->attr);
    posix_spawnattr_setsigmask(&s->attr, mask);
    posix_spawnattr_setsigdefault(&s->attr, standard);
    posix_spawnattr_setpgroup(&s->attr, 0);
    posix_spawnattr_setflags(&s->attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

void start_attr_open_fresh(struct start_attr *s)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    start_attr_open(s, &none, &all);
}

void start_attr_close(struct start_attr *s)
{
    posix_spawn_file_actions_destroy(&s->files);
    posix_spawnattr_destroy(&s->attr);
}
