/* report.c - see report.h. */
#include "mpiexec/report.h"
#include "mpiexec/tree.h"
#include "mpiexec/wire.h"

#include <stdio.h>
#include <stdlib.h>

static void send_up(enum tree_type type, struct wire_out *w)
{
    tree_send(TREE_ROOT, type, w->bytes, w->n);
    wire_free(w);
}

void report_exit(const struct live_exit *e)
{
    struct wire_out w = {0};
    wire_put32(&w, (uint32_t)e->rank);
    wire_put32(&w, (uint32_t)e->pid);
    wire_put32(&w, (uint32_t)e->status);
    wire_put8(&w, (uint8_t)e->life);
    wire_put32(&w, e->aborted);
    send_up(TREE_EXIT, &w);
}

bool report_get_exit(struct live_exit *e, const void *bytes, size_t n)
{
    struct wire_in w = wire_of(bytes, n);
    e->rank = (int)wire_get32(&w);
    e->pid = (pid_t)wire_get32(&w);
    e->status = (int)wire_get32(&w);
    e->life = wire_get8(&w);
    e->aborted = wire_get32(&w);
    return wire_done(&w) && e->life <= JOB_LIFE_FINALISED;
}

void report_abort(const struct server_abort *a)
{
    struct wire_out w = {0};
    wire_put32(&w, (uint32_t)a->rank);
    wire_put32(&w, (uint32_t)a->code);
    wire_put_text(&w, a->words);
    send_up(TREE_ABORT, &w);
}

bool report_get_abort(struct server_abort *a, const void *bytes, size_t n)
{
    struct wire_in w = wire_of(bytes, n);
    a->rank = (int)wire_get32(&w);
    a->code = (int)wire_get32(&w);
    char *words = wire_get_text(&w);
    snprintf(a->words, sizeof a->words, "%s", words ? words : "");
    free(words);
    return wire_done(&w);
}

void report_failed(int code, const char *words)
{
    struct wire_out w = {0};
    wire_put32(&w, (uint32_t)code);
    wire_put_text(&w, words);
    send_up(TREE_FAILED, &w);
}

void report_words(const char *words)
{
    struct wire_out w = {0};
    wire_put_text(&w, words);
    send_up(TREE_WORDS, &w);
}
