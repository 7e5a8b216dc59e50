/* pmi_map.c - see pmi_map.h. */
#include "proc/pmi_map.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

#define NODE_MAX ((uint32_t)1 << 30)

struct block {
    uint32_t first, nodes, each;
};

static const char *blanks(const char *at) { return at + strspn(at, " "); }

/* One number below NODE_MAX and the sign that must follow it; what is behind, or NULL. */
static const char *number(const char *at, char sign, uint32_t *n)
{
    char *end;
    at = blanks(at);
    if (*at < '0' || *at > '9') return NULL;
    unsigned long v = strtoul(at, &end, 10);
    if (v >= NODE_MAX) return NULL;
    *n = (uint32_t)v;
    at = blanks(end);
    return *at == sign ? at + 1 : NULL;
}

/* ",(first,nodes,each)"; what is behind, or NULL. */
static const char *parse_block(const char *at, struct block *b)
{
    at = blanks(at);
    if (*at != ',') return NULL;
    at = blanks(at + 1);
    if (*at != '(') return NULL;
    at = number(at + 1, ',', &b->first);
    if (at) at = number(at, ',', &b->nodes);
    if (at) at = number(at, ')', &b->each);
    return at && b->first + b->nodes <= NODE_MAX ? at : NULL;
}

/* Places ranks from `rank` on in one block; returns the first that has no place there. */
static uint32_t place(const struct block *b, uint32_t *node, uint32_t rank, uint32_t size)
{
    for (uint32_t n = 0; b->each && n < b->nodes && rank < size; n++)
        for (uint32_t i = 0; i < b->each && rank < size; i++) node[rank++] = b->first + n;
    return rank;
}

/* Once through all blocks. An empty text of blocks, and what is none, is an error. */
static int place_all(const char *at, uint32_t *node, uint32_t *rank, uint32_t size)
{
    struct block b;
    do {
        at = parse_block(at, &b);
        if (!at) return TERN_ERR_SYSTEM;
        *rank = place(&b, node, *rank, size);
        at = blanks(at);
    } while (*at != ')');
    return at[1 + strspn(at + 1, " ")] ? TERN_ERR_SYSTEM : 0;
}

int pmi_map_fill(const char *text, uint32_t *node, uint32_t size)
{
    uint32_t rank = 0;
    text = blanks(text);
    if (*text != '(') return TERN_ERR_NOT_FOUND;
    const char *at = blanks(text + 1);
    if (strncmp(at, "vector", 6)) return TERN_ERR_NOT_FOUND;
    while (rank < size) {
        uint32_t before = rank;
        if (place_all(at + 6, node, &rank, size) || rank == before)
            return err_set(TERN_ERR_SYSTEM, "the launcher's PMI_process_mapping cannot be understood: '%.200s'", text);
    }
    return 0;
}
