/* scratch.c - see scratch.h. */
#include "base/scratch.h"
#include "base/compiler.h"

#include <stdatomic.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct scratch *first; /* those that have a key */

static bool has_key(struct scratch *s)
{
    /* acquire: pairs with the release in make_key */
    return __atomic_load_n(&s->made, __ATOMIC_ACQUIRE);
}

static void free_buffer(void *buffer)
{
    bool own = true;
    pthread_mutex_lock(&lock);
    for (struct scratch *s = first; s; s = s->next) own = own && buffer != s->common;
    pthread_mutex_unlock(&lock);
    if (own) free(buffer);
}

static TERN_COLD bool make_key(struct scratch *s)
{
    pthread_mutex_lock(&lock);
    if (!s->made && !pthread_key_create(&s->key, free_buffer)) {
        s->next = first;
        first = s;
        __atomic_store_n(&s->made, true, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return has_key(s);
}

static TERN_COLD void *make_buffer(struct scratch *s)
{
    void *buffer = calloc(1, s->size);
    if (!buffer) buffer = s->common;
    if (!pthread_setspecific(s->key, buffer)) return buffer;
    if (buffer != s->common) free(buffer);
    return s->common;
}

void *scratch(struct scratch *s)
{
    if (unlikely(!has_key(s)) && !make_key(s)) return s->common;
    void *buffer = pthread_getspecific(s->key);
    return likely(buffer != NULL) ? buffer : make_buffer(s);
}

/* The library is unloaded, or the process ends: what threads that end later have is lost. */
static __attribute__((destructor)) void forget_keys(void)
{
    for (struct scratch *s = first; s; s = s->next) {
        void *buffer = pthread_getspecific(s->key);
        if (buffer != s->common) free(buffer);
        pthread_key_delete(s->key);
        s->made = false;
    }
    first = NULL;
}
