/*
 * tune_output.c - the result of tern_tune. A file appears under its name when all of it is written, in place of the one
 * that was there, or not at all; where the system can, it has no name before that, so that nothing is left behind by a
 * process that is killed.
 */
#include "tool/tune.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char final[PATH_MAX]; /* where it will be; "": it is written there as it comes */
static char temporary[PATH_MAX + 32];
static bool named; /* the temporary name exists */

/* Symbolic links stay what they are. False: the name is too long. */
static bool find_names(const char *output)
{
    if (!realpath(output, final) && snprintf(final, sizeof final, "%s", output) >= (int)sizeof final) return false;
    snprintf(temporary, sizeof temporary, "%s.%d.new", final, (int)getpid());
    return true;
}

/* In the folder of the file, without a name if there is such a thing there. */
static int open_beside(void)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", final);
    char *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = 0;
    int fd = open(slash ? folder : ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return fd;
    fd = open(temporary, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    named = fd >= 0;
    return fd;
}

static FILE *open_file(const char *output)
{
    struct stat st;
    bool there = stat(output, &st) == 0;
    if (there && !S_ISREG(st.st_mode)) return fopen(output, "w"); /* a terminal, a pipe ... */
    if (there && access(output, W_OK)) return NULL;
    if (!find_names(output)) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    int fd = open_beside();
    return fd < 0 ? NULL : fdopen(fd, "w");
}

FILE *tune_output(const struct tune_options *o)
{
    FILE *f = o->output ? open_file(o->output) : stdout;
    if (!f) fprintf(stderr, "tern_tune: %s: %s\n", o->output, strerror(errno));
    return f;
}

/* The file gets its name. */
static bool publish(FILE *f)
{
    char by_number[64];
    snprintf(by_number, sizeof by_number, "/proc/self/fd/%d", fileno(f));
    if (fsync(fileno(f))) return false;
    if (!named && linkat(AT_FDCWD, by_number, AT_FDCWD, temporary, AT_SYMLINK_FOLLOW)) return false;
    named = true;
    if (rename(temporary, final)) return false;
    named = false;
    return true;
}

bool tune_close(FILE *f)
{
    bool good = fflush(f) == 0 && !ferror(f) && (!*final || publish(f));
    int reason = errno;
    if (named) unlink(temporary);
    if (f != stdout && fclose(f)) good = false;
    if (!good) fprintf(stderr, "tern_tune: the result could not be written: %s\n", strerror(reason));
    return good;
}
