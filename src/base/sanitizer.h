/*
 * sanitizer.h - what the thread sanitizer cannot see: an order between two threads of this process that comes about
 * by the quiet of one of them (quiet.h), or through another process, in memory that both have mapped.
 *
 *     thread A               the other process        thread B
 *     release of a word  ->  acquire, release     ->  acquire of another word
 *
 * A says sanitizer_released, B sanitizer_acquired, of the same address. A's word itself is written behind that, and B may
 * write there too: sanitizer_store_release is a release that the sanitizer sees as such, and not as a write. Where no such
 * sanitizer is built in the first two do nothing, and the third is the store.
 *
 * A process that clone makes in the caller's memory is a fork to it, behind which it takes no note of what the caller locks.
 * sanitizer_clone is clone by a name that it does not know.
 */
#ifndef TERN_BASE_SANITIZER_H
#define TERN_BASE_SANITIZER_H

#include <stdatomic.h>
#include <stdint.h>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
extern int __clone(int (*)(void *), void *stack, int flags, void *arg, ...);
#define sanitizer_clone __clone
static inline void sanitizer_released(void *at) { __tsan_release(at); }
static inline void sanitizer_acquired(void *at) { __tsan_acquire(at); }
static __attribute__((noinline, no_sanitize("thread"), unused)) void sanitizer_store_unseen(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
}
static inline void sanitizer_store_release(_Atomic uint64_t *word, uint64_t value)
{
    __tsan_release((void *)word);
    sanitizer_store_unseen(word, value);
}
#else
#define sanitizer_clone clone
static inline void sanitizer_released(void *at) { (void)at; }
static inline void sanitizer_acquired(void *at) { (void)at; }
static inline void sanitizer_store_release(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
}
#endif

#endif
