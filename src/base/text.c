/* text.c - see text.h. */
#include "base/text.h"

#include <stdlib.h>

char *text_of(void (*print)(FILE *f, const void *what), const void *what)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f) return NULL;
    print(f, what);
    if (fclose(f) == 0) return text;
    free(text);
    return NULL;
}
