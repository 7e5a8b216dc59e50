/* report.h - what a daemon tells the root of its ranks, as messages. */
#ifndef TERN_MPIEXEC_REPORT_H
#define TERN_MPIEXEC_REPORT_H

#include "mpiexec/live.h"

void report_exit(const struct live_exit *);
void report_abort(const struct server_abort *);
void report_failed(int code, const char *words); /* the node gives up */
void report_words(const char *words);

/* And back. False: the bytes are something else. */
bool report_get_exit(struct live_exit *, const void *bytes, size_t n);
bool report_get_abort(struct server_abort *, const void *bytes, size_t n);

#endif
