/* program.c - search of programs and working directories. */
#include "mpiexec/program.h"
#include "mpiexec/environ.h"
#include "mpiexec/words.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* 0 or errno; a directory is "not executable". */
static int executable(int dir, const char *path)
{
    struct stat st;
    if (fstatat(dir, path, &st, 0)) return errno;
    if (!S_ISREG(st.st_mode)) return S_ISDIR(st.st_mode) ? EISDIR : EACCES;
    return faccessat(dir, path, X_OK, AT_EACCESS) ? errno : 0;
}

/* Searches "dir:dir:..."; *denied gets a file that is there but cannot be executed. */
static char *search(int wdir, const char *dirs, const char *name, char **denied)
{
    while (dirs && *dirs) {
        size_t n = strcspn(dirs, ":");
        char *path = xasprintf("%.*s/%s", n ? (int)n : 1, n ? dirs : ".", name);
        int e = executable(wdir, path);
        if (!e) return path;
        if (e == EACCES && !*denied)
            *denied = path;
        else
            free(path);
        dirs += n + (dirs[n] == ':');
    }
    return NULL;
}

static int open_wdir(struct program *p, const char *wdir)
{
    p->wdir_fd = AT_FDCWD;
    if (!wdir) return 0;
    p->wdir_fd = open(wdir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (p->wdir_fd >= 0 && !faccessat(p->wdir_fd, ".", X_OK, AT_EACCESS)) return 0;
    say("cannot use %s as the ranks' working directory: %s", wdir, strerror(errno));
    return EXIT_USAGE;
}

static int find_by_path(struct program *p, const struct app_spec *a)
{
    int e = executable(p->wdir_fd, a->argv.v[0]);
    p->path = a->argv.v[0];
    if (!e) return 0;
    say("cannot execute %s%s%s: %s", p->path, a->wdir && *p->path != '/' ? " in " : "",
        a->wdir && *p->path != '/' ? a->wdir : "", strerror(e));
    return e == ENOENT || e == ENOTDIR ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

int program_find(struct program *p, const struct app_spec *a, const struct strv *env)
{
    const char *name = a->argv.v[0], *path = environ_get(env, "PATH");
    char *denied = NULL;
    int rc = open_wdir(p, a->wdir);
    if (rc) return rc;
    if (strchr(name, '/')) return find_by_path(p, a);
    if (!path) path = "/usr/local/bin:/usr/bin:/bin";
    p->path = search(p->wdir_fd, a->path, name, &denied);
    if (!p->path) p->path = search(p->wdir_fd, path, name, &denied);
    if (!p->path) p->path = search(p->wdir_fd, ".", name, &denied); /* many scripts leave out the ./ */
    if (p->path) return 0;
    if (denied) {
        say("cannot execute %s: Permission denied", denied);
        return EXIT_CANNOT_RUN;
    }
    say("program %s was not found in the working directory nor in the path (%s%s%s)", name, a->path ? a->path : "",
        a->path ? ":" : "", path);
    return EXIT_NOT_FOUND;
}
