/* shared.c - a bump allocator with a free list for each power of two, over the heap of the segment. A leaf lock guards both. */
#include "transport/shared.h"
#include "base/err.h"
#include "transport/wire_lock.h"

#include <string.h>
#include <sys/mman.h>

#define CLASSES 32 /* 64 bytes << class */

static char *base;              /* what offsets count from */
static uint64_t next_off, end_off;
static bool is_private;
static uint64_t node_base; /* see shared_in_node, plus 1; 0: the segment does not lie there */
static void *freed[CLASSES];    /* first word of a free block: the next one */
static struct lock lock;

int shared_open(char *segment, uint64_t off, uint64_t bytes)
{
    is_private = !segment;
    if (is_private) {
        segment = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (segment == MAP_FAILED) return err_sys("cannot reserve %llu bytes of memory", (unsigned long long)bytes);
        off = 0;
    }
    base = segment;
    next_off = max_size(off, CACHE_LINE); /* no block lies at offset 0, which means "none" on the wire */
    end_off = off + bytes;
    node_base = 0;
    memset(freed, 0, sizeof freed);
    return 0;
}

void shared_in_node(uint64_t offset) { node_base = offset + 1; }

uint64_t shared_node_place(const void *at)
{
    const char *p = at;
    return node_base && p >= base && p < base + end_off ? node_base + (uint64_t)(p - base) : 0;
}

void shared_close(void)
{
    if (base && is_private) munmap(base, end_off);
    base = NULL;
    node_base = 0;
}

static unsigned class_of(size_t bytes)
{
    unsigned c = 0;
    while (c < CLASSES && ((size_t)CACHE_LINE << c) < bytes) c++;
    return c;
}

/* A block of this class; NULL: there is none. */
static char *take(unsigned c)
{
    size_t size = (size_t)CACHE_LINE << c;
    char *p = freed[c];
    if (p) {
        memcpy(&freed[c], p, sizeof freed[c]);
    } else if (size <= end_off - next_off) {
        p = base + next_off;
        next_off += size;
    }
    return p;
}

void *shared_alloc(size_t bytes, uint64_t *offset)
{
    unsigned c = class_of(bytes);
    if (c >= CLASSES) return NULL;
    leaf_take(&lock);
    char *p = take(c);
    leaf_give(&lock);
    if (!p) return NULL;
    memset(p, 0, bytes);
    *offset = (uint64_t)(p - base);
    return p;
}

void shared_free(void *block, size_t bytes)
{
    unsigned c = class_of(bytes);
    leaf_take(&lock);
    memcpy(block, &freed[c], sizeof freed[c]);
    freed[c] = block;
    leaf_give(&lock);
}

void *shared_at(uint64_t offset)
{
    leaf_take(&lock);
    bool known = offset < next_off;
    leaf_give(&lock);
    return known ? base + offset : NULL;
}

bool shared_is_open(void) { return base; }

bool shared_is_public(void) { return base && !is_private; }
