/* textfile.c - see textfile.h. */
#include "mpiexec/textfile.h"
#include "mpiexec/words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int refuse(const char *path, const char *what, int reason)
{
    say("cannot read %s %s: %s", what, path, strerror(reason));
    return EXIT_USAGE;
}

int textfile_read(const char *path, const char *what, int (*take)(void *arg, int number, char *line), void *arg)
{
    FILE *f = fopen(path, "re");
    char *line = NULL;
    size_t cap = 0;
    int rc = 0;
    if (!f) return refuse(path, what, errno);
    for (int number = 1; !rc; number++) {
        errno = 0;
        if (getline(&line, &cap, f) >= 0)
            rc = take(arg, number, line);
        else if (feof(f))
            break;
        else
            rc = refuse(path, what, errno);
    }
    free(line);
    fclose(f);
    return rc;
}
