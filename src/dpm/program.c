/* program.c - see program.h. */
#include "dpm/program.h"
#include "base/err.h"
#include "dpm/soft.h"
#include "obj/info.h"
#include "proc/ask.h"
#include "proc/launcher_vars.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define FILE_MOST 65536 /* bytes of a file of info pairs */

/* ---- memory: all that a list points to ---- */

struct block {
    struct block *next;
    char bytes[];
};

static void *take(struct program_list *l, size_t n)
{
    struct block *b = calloc(1, sizeof *b + n);
    if (!b) return NULL;
    b->next = l->own;
    l->own = b;
    return b->bytes;
}

void program_free(struct program_list *l)
{
    for (struct block *b = l->own, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    *l = (struct program_list){0};
}

static int no_memory(void) { return err_set(TERN_ERR_NOMEM, "no memory to spawn processes"); }

/* Twice the room for n bytes; NULL with words. The old one is freed with the list. */
static char *more_room(struct program_list *l, const char *old, size_t n)
{
    char *all = take(l, 2 * n + 1);
    if (!all) no_memory();
    else memcpy(all, old, n);
    return all;
}

/* The file, of at most `most` bytes of it, with a final zero; NULL with words. */
static char *read_file(struct program_list *l, const char *path, size_t most, size_t *n_p)
{
    size_t n = 0, room = 4096;
    char *all = take(l, room + 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t k = 0;
    if (fd < 0) err_sys("cannot open %s", path);
    else if (!all) no_memory();
    while (all && fd >= 0 && n < most && (k = read(fd, all + n, room - n)) > 0) {
        n += (size_t)k;
        if (n < room) continue;
        all = more_room(l, all, room);
        room *= 2;
    }
    if (k < 0) err_sys("cannot read %s", path);
    if (fd >= 0) close(fd);
    *n_p = n;
    return fd < 0 || k < 0 ? NULL : all;
}

/* ---- info ---- */

/* "key=value" of a line, without blanks around both; false: it is none. A line with a '#' in front, or nothing, has no key. */
static bool split(char *line, char **key, char **value)
{
    line += strspn(line, " \t\r");
    *key = NULL;
    if (!*line || *line == '#') return true;
    *value = strchr(line, '=');
    if (!*value || *value == line) return false;
    char *end = *value;
    while (end > line && strchr(" \t", end[-1])) end--;
    ++*value;
    *end = 0;
    *value += strspn(*value, " \t");
    for (end = *value + strlen(*value); end > *value && strchr(" \t\r", end[-1]);) *--end = 0;
    *key = line;
    return true;
}

/* Adds the pairs of a file to those that are there. */
static int add_file(struct program_list *l, struct info *all, const char *path)
{
    size_t n;
    char *line = read_file(l, path, FILE_MOST, &n);
    if (!line) return err_code();
    if (n >= FILE_MOST) return err_set(TERN_ERR_INFO, "info key file: %s has more than %d bytes", path, FILE_MOST - 1);
    for (char *rest = line; (line = strsep(&rest, "\n"));) {
        char *key, *value;
        if (!split(line, &key, &value)) return err_set(TERN_ERR_INFO, "info key file: %s: '%.40s' is no key=value", path, line);
        int rc = key && !info_get(all, key) ? info_set(all, key, value) : 0;
        if (rc) return rc;
    }
    return 0;
}

static int check_arch(const char *arch)
{
    struct utsname here;
    if (uname(&here)) return err_sys("the kind of this processor is not known");
    if (!strcmp(arch, here.machine)) return 0;
    return err_set(TERN_ERR_SPAWN, "info key arch: no host of kind '%.60s' is known; this one is %s", arch, here.machine);
}

/* Keys and values in turn, as copies. */
static const char **list_pairs(struct program_list *l, const struct info *info)
{
    const char **list = take(l, (2 * (size_t)info->n + 1) * sizeof *list);
    for (int i = 0; list && i < info->n; i++) {
        char *key = take(l, strlen(info->pair[i].key) + 1), *value = take(l, strlen(info->pair[i].value) + 1);
        if (!key || !value) return NULL;
        list[2 * i] = strcpy(key, info->pair[i].key);
        list[2 * i + 1] = strcpy(value, info->pair[i].value);
    }
    return list;
}

/* What the caller means by a name: the launcher has another working directory. NULL: memory is out. */
static const char *from_here(struct program_list *l, const char *name, const char *here)
{
    size_t n = strlen(here) + strlen(name) + 2;
    char *all = take(l, n);
    if (all) snprintf(all, n, "%s%s%s", *name == '/' ? "" : here, *name == '/' ? "" : "/", name);
    return all;
}

/* The directory, which is no info any more; NULL: memory is out. */
static const char *take_wdir(struct program_list *l, struct info *info, const char *here)
{
    const char *wdir = info_get(info, "wdir"), *all = wdir ? from_here(l, wdir, here) : here;
    if (wdir) (void)info_delete(info, "wdir");
    return all;
}

static int find_hostfiles(struct program_list *l, struct info *info, const char *here)
{
    static const char *const keys[] = {"hostfile", "add-hostfile"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *name = info_get(info, keys[i]), *all = name ? from_here(l, name, here) : NULL;
        if (name && !all) return no_memory();
        int rc = name ? info_set(info, keys[i], all) : 0;
        if (rc) return rc;
    }
    return 0;
}

/* ---- the environment ---- */

/* Not that this process was told to have no launcher: the new ones have one. */
static bool is_inherited(const char *variable)
{
    return strchr(variable, '=') && !is_launchers_variable(variable) && strcmp(variable, "TERN_BOOTSTRAP=single") != 0;
}

/* The variables of this process, `parent_variable`, and the lines of `env`. NULL with words. */
static const char **make_environment(struct program_list *l, const char *parent_variable, const char *env)
{
    size_t n = 0, name = strcspn(parent_variable, "=") + 1, lines = 1, k = 0;
    while (environ && environ[n]) n++; /* NULL: behind clearenv */
    for (const char *at = env; at && *at; at++) lines += *at == '\n';
    const char **list = take(l, (n + 1 + lines + 1) * sizeof *list);
    char *copy = env ? take(l, strlen(env) + 1) : NULL;
    if (!list || (env && !copy)) {
        no_memory();
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        if (strncmp(environ[i], parent_variable, name) && is_inherited(environ[i])) list[k++] = environ[i];
    list[k++] = parent_variable;
    if (copy) strcpy(copy, env);
    for (char *line; copy && (line = strsep(&copy, "\n"));) {
        if (*line && (*line == '=' || !strchr(line, '='))) {
            err_set(TERN_ERR_INFO, "info key env: '%.40s' is no NAME=value", line);
            return NULL;
        }
        if (*line) list[k++] = line;
    }
    return list;
}

/* ---- the whole ---- */

static const char **make_argv(struct program_list *l, const struct dpm_program *p)
{
    size_t n = 0;
    while (p->argv && p->argv[n]) n++;
    const char **argv = take(l, (n + 2) * sizeof *argv);
    if (!argv) return NULL;
    argv[0] = p->command;
    for (size_t i = 0; i < n; i++) argv[i + 1] = p->argv[i];
    return argv;
}

static int make_app(struct program_list *l, struct proc_app *a, const struct dpm_program *p, struct info *info,
                    const char *parent_variable, const char *here)
{
    const char *file = info_get(info, "file"), *env, *soft, *arch;
    int n = p->n, rc = file ? add_file(l, info, file) : 0;
    if (!rc && (arch = info_get(info, "arch"))) rc = check_arch(arch);
    if (!rc && (soft = info_get(info, "soft"))) rc = soft_largest(soft, p->n, &n);
    if (rc) return rc;
    env = info_get(info, "env");
    const char **variables = make_environment(l, parent_variable, env);
    if (!variables) return err_code();
    if ((rc = info_set(info, ASK_WHOLE_ENV, "1")) || (rc = find_hostfiles(l, info, here))) return rc;
    *a = (struct proc_app){.n = (uint32_t)n, .argv = make_argv(l, p), .env = variables, .wdir = take_wdir(l, info, here)};
    a->info = list_pairs(l, info);
    return a->argv && a->info && a->wdir ? 0 : no_memory();
}

int program_make(struct program_list *l, const struct dpm_program *p, int count, const char *parent_variable)
{
    char *cwd = getcwd(NULL, 0), *here = cwd ? take(l, strlen(cwd) + 1) : NULL;
    l->n = count;
    l->app = take(l, (size_t)count * sizeof *l->app);
    int rc = !cwd ? err_sys("the directory of this process") : here && l->app ? 0 : no_memory();
    if (here) strcpy(here, cwd);
    free(cwd);
    for (int i = 0; i < count && !rc; i++) {
        struct info *info = info_dup(p[i].info);
        rc = info ? make_app(l, &l->app[i], &p[i], info, parent_variable, here) : err_code();
        if (info) info_free(info);
    }
    return rc;
}
