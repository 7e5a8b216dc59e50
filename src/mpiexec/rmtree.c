/* rmtree.c - removes a directory tree. */
#include "mpiexec/rmtree.h"

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    remove(path);
    return 0;
}

void rmtree(const char *path)
{
    if (*path) nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}
