/* launcher.c - see launcher.h. */
#include "mpiexec/launcher.h"
#include "base/err.h"
#include "base/var.h"
#include "mpiexec/agent.h"
#include "mpiexec/daemon.h"
#include "mpiexec/words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static bool is_here(const char *path) { return *path == '/' && !access(path, X_OK); }

/* The path of this program: as it was called rather than where links lead, which may be another place on other hosts.
 * NULL with errno. */
static char *own_path(const char *argv0)
{
    const char *dirs = getenv("PATH");
    if (is_here(argv0)) return xstrdup(argv0);
    while (!strchr(argv0, '/') && dirs && *dirs) {
        size_t n = strcspn(dirs, ":");
        char *path = xasprintf("%.*s/%s", (int)n, dirs, argv0);
        if (is_here(path)) return path;
        free(path);
        dirs += n + (dirs[n] == ':');
    }
    return realpath("/proc/self/exe", NULL);
}

static int settle_kind(struct launcher_spec *l)
{
    static const char *const kinds[] = {"ssh", "rsh", "fork"};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (!l->kind || !strcasecmp(l->kind, kinds[i])) {
            l->kind = kinds[i];
            return 0;
        }
    say("option -launcher: '%s' is not a way to reach other hosts: ssh, rsh, fork; or -launcher-exec PROGRAM", l->kind);
    return EXIT_USAGE;
}

static int number(enum var_id id, int most, int *out)
{
    int64_t v = var_int(id);
    if (v < 1 || v > most) {
        say("%s is a number from 1 to %d, not '%s'", var_table[id].name, most, var_text(id));
        return EXIT_USAGE;
    }
    *out = (int)v;
    return 0;
}

int launcher_settle(struct spec *s, const char *argv0)
{
    struct launcher_spec *l = &s->launcher;
    int rc = settle_kind(l);
    if (rc) return rc;
    if (var_open()) {
        say("%s", err_words());
        return EXIT_USAGE;
    }
    if (!l->exec && *var_text(VAR_LAUNCHER_EXEC)) l->exec = xstrdup(var_text(VAR_LAUNCHER_EXEC));
    if ((rc = number(VAR_TREE_WIDTH, 1024, &l->width)) || (rc = number(VAR_LAUNCH_TIMEOUT, 86400, &l->seconds)))
        return rc;
    char *path = s->prefix ? xasprintf("%s/bin/mpiexec", s->prefix) : own_path(argv0);
    if (!path) {
        say("the path of this program cannot be found: %s", strerror(errno));
        return EXIT_RESOURCE;
    }
    l->command = xasprintf("%s " DAEMON_OPTION, agent_quote(path));
    return 0;
}
