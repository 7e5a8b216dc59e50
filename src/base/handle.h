/*
 * handle.h - the common header of every object whose address is given to users,
 * and the arena that such objects live in.
 *
 * Objects are taken from one reserved address range, so that any value can be
 * checked without touching memory that is not ours: below HANDLE_PREDEFINED_END
 * it is an index into the table of predefined objects; inside the range and
 * aligned, it is an object slot, whose header says what it holds (HANDLE_DEAD
 * when freed); anything else is not a handle.
 *
 *   slot:  | kind (4) | refs (4) | object ...                 |
 *
 * Handles as ints, which Fortran and the standard's _toint functions want, are the
 * number of the slot: no table is needed.
 *
 * Threads: alloc and release may be called by any thread, also before MPI_Init says
 * how many there will be (a lock inside). References are atomic from
 * handle_set_threaded on: ref is relaxed (who refs already owns one), unref is
 * acq_rel so that the last owner sees all writes of the others.
 *
 * A look-up is also where a thread is noticed that calls the library for the first time, for one instruction at most: what
 * a look-up compares with is the thread's own, and nothing is a handle until the thread is known (handle_know_thread).
 */
#ifndef TERN_BASE_HANDLE_H
#define TERN_BASE_HANDLE_H

#include "base/compiler.h"
#include <stdatomic.h>

enum handle_kind {
    HANDLE_DEAD = 0,
    HANDLE_COMM = 0x7e510001, /* high half: a pattern that stray data seldom has */
    HANDLE_GROUP,
    HANDLE_TYPE,
    HANDLE_OP,
    HANDLE_REQUEST,
    HANDLE_ERRHANDLER,
    HANDLE_INFO,
    HANDLE_MESSAGE,
    HANDLE_SESSION,
    HANDLE_WIN,
    HANDLE_FILE,
    HANDLE_COMM_RESERVED, /* a communicator whose making has not ended */
    HANDLE_SCHEDULE       /* of the public goal.h */
};

#define HANDLE_PREDEFINED_END 4096 /* values below are the standard's constants */

struct handle {
    uint32_t kind; /* enum handle_kind */
    _Atomic int32_t refs;
};
static_assert(sizeof(struct handle) == 8, "objects are laid out behind 8 bytes of header");

extern TERN_HIDDEN struct handle *handle_predefined[1024]; /* by constant value; &handle_none where there is none */
extern TERN_HIDDEN struct handle handle_none;              /* dead for ever: stands for what is no handle */
/* Relaxed: who looks up a handle got it by a way that orders it behind its making. */
extern TERN_HIDDEN _Atomic uintptr_t handle_base; /* start of the reserved range, 0 before first use */
extern TERN_HIDDEN _Atomic uintptr_t handle_used; /* bytes of it that hold slots, live or dead */

/* What handle_at compares with, in each thread: until the thread is known no value passes. */
struct handle_bounds {
    uintptr_t predefined;  /* values below are in the table: its length, or 0 */
    struct handle **table; /* handle_predefined, for code that looks up several constants: a register for all of them */
    uintptr_t odd;         /* an address that has one of these bits is no slot: those below HANDLE_SLOT, or all */
};
extern TERN_HIDDEN _Thread_local struct handle_bounds handle_bounds __attribute__((tls_model("initial-exec")));

/*
 * The thread becomes known, if it is not. handle_thread_came, which a layer above may set while the library is loaded, is
 * called once by each thread, in no lane and with no lock held. A thread of the library's own calls handle_thread_is_own
 * instead, and nobody is told. handle_get and handle_alloc do the first by themselves; handle_at does not.
 */
extern TERN_HIDDEN void (*handle_thread_came)(void);
void handle_thread_comes(void) TERN_COLD;
void handle_thread_is_own(void);
static inline void handle_know_thread(void)
{
    if (unlikely(!handle_bounds.predefined)) handle_thread_comes();
}

/* A zeroed object of `size` bytes with kind set and one reference; NULL when memory is out. */
void *handle_alloc(uint32_t kind, size_t size);

/* Returns the memory. The kind becomes HANDLE_DEAD at once, so that a stale handle is noticed. */
void handle_release(void *object, size_t size);

/* Makes `object` (static or allocated) the one behind the predefined constant `value`; NULL: there is none any more. */
void handle_define(uintptr_t value, void *object);

/*
 * One lock for all state of objects that threads may set and read at the same time, and that is seldom used: names,
 * error handlers, hints, the pairs of info objects, the layout of a type that is committed. Works before MPI_Init and
 * after MPI_Finalize, and is taken whatever the level of thread support: without a second thread it costs 20 ns.
 *
 * It is held to copy a text, or a pointer and the reference that keeps what is behind it; never while a user's function
 * runs, while something is waited for, or while another lock than those of memory is taken.
 */
void handle_state_lock(void);
void handle_state_unlock(void);

/* All of the arena is given back; for the end of the library's life and for tests. */
void handle_close(void);

/* From now on several threads may count references at the same time. */
void handle_set_threaded(bool threaded);

/* What lies behind the user's value `h`: never NULL, never faults; the kind tells what it is, HANDLE_DEAD that it is
 * nothing. For hot code, which compares the kind itself, and asks handle_get before it says that something is no handle: the
 * thread may not be known yet. */
static TERN_INLINED void *handle_in(struct handle **table, const void *h)
{
    uintptr_t v = (uintptr_t)h;
    if (likely(v < handle_bounds.predefined)) return table[v];
    /* the rest of the predefined values is below the range, too */
    uintptr_t at = v - atomic_load_explicit(&handle_base, memory_order_relaxed);
    return likely(at < atomic_load_explicit(&handle_used, memory_order_relaxed) && !(v & handle_bounds.odd)) ? (void *)v
                                                                                                             : &handle_none;
}
static inline void *handle_at(const void *h) { return handle_in(handle_bounds.table, h); }

/* Is what handle_at found of that kind? Looked at as a bare header: it may be an object of another kind. */
static inline bool handle_is(const void *object, uint32_t kind)
{
    return ((const struct handle *)object)->kind == kind;
}

/* The object behind the user's value `h` if it is a live one of `kind`, else NULL. */
void *handle_get_anew(const void *h, uint32_t kind) TERN_COLD; /* the same, for one that handle_at has not found */
static inline void *handle_get(const void *h, uint32_t kind)
{
    struct handle *o = handle_in(handle_predefined, h);
    return likely(o->kind == kind) ? o : handle_get_anew(h, kind);
}

#define HANDLE_SLOT ((uintptr_t)64)                 /* bytes that objects are aligned to */
#define HANDLE_RANGE_MAX ((uintptr_t)1 << 34)       /* bytes of address space at most; not memory */
#define HANDLE_NOT ((void *)UINTPTR_MAX)            /* no handle, whatever the arena holds */
static_assert(HANDLE_RANGE_MAX / HANDLE_SLOT + HANDLE_PREDEFINED_END <= INT32_MAX, "the number of a slot fits an int");

/* The user's value `h` as an int: a constant is its own number, an object >= HANDLE_PREDEFINED_END and the same as long
 * as it lives; -1: no handle. */
static inline int handle_to_int(const void *h)
{
    uintptr_t v = (uintptr_t)h;
    if (v < HANDLE_PREDEFINED_END) return (int)v;
    uintptr_t at = v - atomic_load_explicit(&handle_base, memory_order_relaxed);
    bool inside = at < atomic_load_explicit(&handle_used, memory_order_relaxed) && !(v % HANDLE_SLOT);
    return inside ? (int)(at / HANDLE_SLOT + HANDLE_PREDEFINED_END) : -1;
}

/* The other way; for an int that stands for nothing it is a value that handle_at knows to be nothing. */
static inline void *handle_from_int(int i)
{
    if (i >= 0 && i < HANDLE_PREDEFINED_END) return (void *)(uintptr_t)i;
    uintptr_t at = ((uintptr_t)i - HANDLE_PREDEFINED_END) * HANDLE_SLOT;
    if (i < 0 || at >= atomic_load_explicit(&handle_used, memory_order_relaxed)) return HANDLE_NOT;
    return (void *)(atomic_load_explicit(&handle_base, memory_order_relaxed) + at);
}

/*
 * The next live object of `kind`, from offset *at of the arena on (0: the first), and the offset behind its first slot;
 * NULL: there is none. For rare work: every slot is looked at. What lies inside of a larger object may look like a
 * header, so the caller checks more than the kind.
 */
void *handle_next(uint32_t kind, uintptr_t *at);

/* Set by handle_set_threaded, also while a thread is inside (pt2pt/share.c). Relaxed: ordered by the quiet that is
 * waited for there. */
extern TERN_HIDDEN _Atomic bool handle_threaded;
static inline bool handle_is_threaded(void) { return atomic_load_explicit(&handle_threaded, memory_order_relaxed); }

/* Without threads a plain addition does, which costs a quarter of a locked one. */
static inline void handle_ref_many(struct handle *h, int32_t n)
{
    if (unlikely(handle_is_threaded())) {
        atomic_fetch_add_explicit(&h->refs, n, memory_order_relaxed);
        return;
    }
    int32_t refs = atomic_load_explicit(&h->refs, memory_order_relaxed);
    atomic_store_explicit(&h->refs, refs + n, memory_order_relaxed);
}
static inline void handle_ref(struct handle *h) { handle_ref_many(h, 1); }

/* n at once. True when those were the last references: the caller destroys the object. */
static inline bool handle_unref_many(struct handle *h, int32_t n)
{
    if (unlikely(handle_is_threaded())) return atomic_fetch_sub_explicit(&h->refs, n, memory_order_acq_rel) == n;
    int32_t left = atomic_load_explicit(&h->refs, memory_order_relaxed) - n;
    atomic_store_explicit(&h->refs, left, memory_order_relaxed);
    return !left;
}
static inline bool handle_unref(struct handle *h) { return handle_unref_many(h, 1); }

#endif
