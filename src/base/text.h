/* text.h - texts for people that are as long as what they show. */
#ifndef TERN_BASE_TEXT_H
#define TERN_BASE_TEXT_H

#include <stdio.h>

/* What print(f, what) writes, as a new string, which the caller frees. NULL: no memory for it. Any thread may call it,
 * as far as `print` allows. */
char *text_of(void (*print)(FILE *f, const void *what), const void *what);

#endif
