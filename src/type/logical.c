/* logical.c - values of Fortran's LOGICAL, see logical.h. */
#include "type/logical.h"

#include <pthread.h>
#include <string.h>

static struct {
    size_t size;
    unsigned char yes[LOGICAL_MAX], no[LOGICAL_MAX];
} value;
static _Atomic bool known; /* release: `value` is set and stays */

bool logical_set(size_t size, const void *yes, const void *no)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    bool first = !atomic_load_explicit(&known, memory_order_relaxed);
    if (first) {
        value.size = size;
        memcpy(value.yes, yes, size);
        memcpy(value.no, no, size);
        atomic_store_explicit(&known, true, memory_order_release); /* pairs with is_known */
    }
    pthread_mutex_unlock(&lock);
    return first;
}

static bool is_known(size_t size) { return atomic_load_explicit(&known, memory_order_acquire) && value.size == size; }

bool logical_get(size_t size, void *yes, void *no)
{
    if (!is_known(size)) return false;
    memcpy(yes, value.yes, size);
    memcpy(no, value.no, size);
    return true;
}

/* ---- operators: true is what is not .FALSE. ---- */

static bool is_true(const char *e) { return memcmp(e, value.no, value.size) != 0; }
static void put(char *e, bool truth) { memcpy(e, truth ? value.yes : value.no, value.size); }

static void land(const void *a, const void *b, void *out, size_t n)
{
    for (size_t i = 0, end = n * value.size; i < end; i += value.size)
        put((char *)out + i, is_true((const char *)a + i) && is_true((const char *)b + i));
}

static void lor(const void *a, const void *b, void *out, size_t n)
{
    for (size_t i = 0, end = n * value.size; i < end; i += value.size)
        put((char *)out + i, is_true((const char *)a + i) || is_true((const char *)b + i));
}

static void lxor(const void *a, const void *b, void *out, size_t n)
{
    for (size_t i = 0, end = n * value.size; i < end; i += value.size)
        put((char *)out + i, is_true((const char *)a + i) != is_true((const char *)b + i));
}

op_kernel *logical_kernel(enum op_index op, const struct type *basic)
{
    if (basic->kind == KIND_U8 || !is_known((size_t)basic->size)) return NULL; /* U8: bool of C and C++ */
    return op == OP_LAND ? land : op == OP_LOR ? lor : op == OP_LXOR ? lxor : NULL;
}
