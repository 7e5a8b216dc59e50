/* wire.c - see wire.h. */
#include "mpiexec/wire.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define NO_TEXT UINT32_MAX /* the length of NULL */

void wire_put_raw(struct wire_out *w, const void *bytes, size_t n)
{
    if (!n) return;
    if (w->n + n > w->room) {
        w->room = (w->n + n) * 2;
        w->bytes = xrealloc(w->bytes, w->room);
    }
    memcpy(w->bytes + w->n, bytes, n);
    w->n += n;
}

void wire_put8(struct wire_out *w, uint8_t v) { wire_put_raw(w, &v, sizeof v); }

void wire_put32(struct wire_out *w, uint32_t v)
{
    v = htobe32(v);
    wire_put_raw(w, &v, sizeof v);
}

void wire_put64(struct wire_out *w, uint64_t v)
{
    v = htobe64(v);
    wire_put_raw(w, &v, sizeof v);
}

void wire_put_text(struct wire_out *w, const char *s)
{
    size_t n = s ? strlen(s) : 0;
    wire_put32(w, s ? (uint32_t)n : NO_TEXT);
    wire_put_raw(w, s, n);
}

void wire_put_list(struct wire_out *w, const struct strv *list)
{
    wire_put32(w, (uint32_t)list->n);
    for (int i = 0; i < list->n; i++) wire_put_text(w, list->v[i]);
}

void wire_free(struct wire_out *w)
{
    free(w->bytes);
    *w = (struct wire_out){0};
}

void wire_get_raw(struct wire_in *w, void *bytes, size_t n)
{
    if (w->bad || wire_left(w) < n) {
        w->bad = true;
        memset(bytes, 0, n);
        return;
    }
    if (n) memcpy(bytes, w->at, n);
    w->at += n;
}

uint8_t wire_get8(struct wire_in *w)
{
    uint8_t v;
    wire_get_raw(w, &v, sizeof v);
    return v;
}

uint32_t wire_get32(struct wire_in *w)
{
    uint32_t v;
    wire_get_raw(w, &v, sizeof v);
    return be32toh(v);
}

uint64_t wire_get64(struct wire_in *w)
{
    uint64_t v;
    wire_get_raw(w, &v, sizeof v);
    return be64toh(v);
}

char *wire_get_text(struct wire_in *w)
{
    uint32_t n = wire_get32(w);
    if (n == NO_TEXT) return NULL;
    if (w->bad || n > wire_left(w) || memchr(w->at, 0, n)) {
        w->bad = true;
        return xstrdup("");
    }
    char *s = xstrndup((const char *)w->at, n);
    w->at += n;
    return s;
}

uint32_t wire_get_count(struct wire_in *w, size_t each)
{
    uint32_t n = wire_get32(w);
    if (n <= wire_left(w) / each) return n;
    w->bad = true;
    return 0;
}

void wire_get_list(struct wire_in *w, struct strv *list)
{
    for (uint32_t n = wire_get_count(w, sizeof(uint32_t)); n && !w->bad; n--) {
        char *s = wire_get_text(w);
        if (s)
            strv_push(list, s);
        else
            w->bad = true;
    }
}
