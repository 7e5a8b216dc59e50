/* record.c - see record.h. */
#include "transport/tcp/record.h"

#include <endian.h>
#include <string.h>

size_t record_seal(struct record_way *w, uint8_t *to, const void *bytes, size_t n)
{
    uint32_t head = htole32((uint32_t)n);
    memcpy(to, &head, sizeof head);
    w->crypto->seal(to + RECORD_HEAD, bytes, n, (uint32_t)n, w->number++, w->key);
    return n + RECORD_MORE;
}

bool record_size(const uint8_t *bytes, size_t n, size_t *size)
{
    uint32_t head;
    *size = 0;
    if (n < sizeof head) return true;
    memcpy(&head, bytes, sizeof head);
    head = le32toh(head);
    if (!head || head > RECORD_MAX) return false;
    *size = head + RECORD_MORE;
    return true;
}

bool record_open(struct record_way *w, void *to, const uint8_t *record, size_t size)
{
    size_t n = size - RECORD_MORE;
    return w->crypto->unseal(to, record + RECORD_HEAD, n, (uint32_t)n, w->number++, w->key);
}
