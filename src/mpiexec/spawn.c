/* spawn.c - see spawn.h: the first mpiexec's side. */
#include "mpiexec/spawn.h"
#include "base/err.h"
#include "mpiexec/registry.h"
#include "mpiexec/watch.h"
#include "mpiexec/words.h"
#include "mpiexec/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define APPS_MAX 1024
#define LIST_MAX 65536 /* texts of one list */

struct child {
    pid_t pid;     /* 0: has ended */
    uint32_t line; /* 0: closed */
    int status;    /* as of waitpid */
    bool answered, started;
    struct asker asker;
    struct stream out, err;
    struct child *next;
};

static struct {
    const struct job *job;
    char *argv0, **own;
    struct child *children;
} self;

void spawn_open(const struct job *j, char *argv0, char **own)
{
    self.job = j;
    self.argv0 = argv0;
    self.own = own;
}

/* ---- the command line ---- */

static void push(struct strv *argv, const char *a, const char *b)
{
    strv_push(argv, xstrdup(a));
    if (b) strv_push(argv, xstrdup(b));
}

/* "a,b:2": the hosts of the first job, if it has named any. */
static void push_hosts(struct strv *argv, const struct hosts *h)
{
    char *list = xstrdup("");
    for (int i = 0; i < h->n; i++) {
        char *longer = xasprintf("%s%s%s:%d", list, i ? "," : "", h->v[i].name, h->v[i].slots ? h->v[i].slots : 1);
        free(list);
        list = longer;
    }
    push(argv, "-hosts", list);
    free(list);
}

/* What holds for all jobs of a user's command line. */
static void push_common(struct strv *argv)
{
    const struct spec *s = self.job->spec;
    const struct launcher_spec *l = &s->launcher;
    if (s->out.tag_rank) push(argv, "-l", NULL);
    if (s->out.tag_stream) push(argv, "-tag-output", NULL);
    if (s->out.tag_time) push(argv, "-timestamp-output", NULL);
    if (s->out.merge) push(argv, "-merge-stderr-to-stdout", NULL);
    if (s->keep_going) push(argv, "-disable-auto-cleanup", NULL);
    if (s->prefix) push(argv, "-prefix", s->prefix);
    if (l->kind) push(argv, "-launcher", l->kind);
    if (l->exec) push(argv, "-launcher-exec", l->exec);
    if (l->iface) push(argv, "-iface", l->iface);
}

static const char *option_of(const char *key)
{
    static const struct {
        const char *key, *option;
    } known[] = {{"host", "-host"},         {"hosts", "-host"},
                 {"hostfile", "-hostfile"}, {"path", "-path"},
                 {"ppn", "-ppn"},           {"npernode", "-ppn"},
                 {"map_by", "-map-by"},     {"map-by", "-map-by"},
                 {"bind_to", "-bind-to"},   {"bind-to", "-bind-to"},
                 {"rank_by", "-rank-by"},   {"wdir", "-wdir"},
                 {"pset", "-pset"},         {"mpi_initial_errhandler", "-initial-errhandler"}};
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (!strcmp(known[i].key, key)) return known[i].option;
    return NULL;
}

/* The texts of a list; false: it cannot be. They lie in the question's bytes. */
static bool get_list(struct ask_in *in, struct strv *list)
{
    uint32_t n = ask_get32(in);
    for (uint32_t i = 0; i < n && n <= LIST_MAX && !in->bad; i++)
        strv_push(list, (char *)(uintptr_t)ask_get_text(in, ASK_BYTES_MAX));
    return n <= LIST_MAX && !in->bad;
}

static bool names_host(const struct strv *info)
{
    for (int i = 0; i + 1 < info->n; i += 2)
        if (strstr(info->v[i], "host")) return true;
    return false;
}

/* The program's words as options do not take them otherwise. NULL or what is wrong. */
static const char *check_program(const struct strv *words)
{
    if (!words->n || !*words->v[0]) return "no program to be spawned";
    if (*words->v[0] == '-') return "a program whose name begins with '-'";
    for (int i = 0; i < words->n; i++)
        if (!strcmp(words->v[i], ":")) return "an argument ':', which separates programs";
    return NULL;
}

static const char *push_app(struct strv *argv, struct ask_in *in)
{
    struct strv words = {0}, env = {0}, info = {0};
    uint32_t n = ask_get32(in);
    const char *wdir = ask_get_text(in, ASK_BYTES_MAX);
    bool whole = get_list(in, &words) && get_list(in, &env) && get_list(in, &info) && info.n % 2 == 0 && n;
    const char *why = whole ? check_program(&words) : "a message that cannot be";
    if (!why) {
        char *number = xasprintf("%u", n);
        push(argv, "-n", number);
        free(number);
        if (*wdir) push(argv, "-wdir", wdir);
        for (int i = 0; i + 1 < info.n; i += 2)
            if (option_of(info.v[i])) push(argv, option_of(info.v[i]), info.v[i + 1]);
        if (!names_host(&info) && self.job->spec->hosts_named) push_hosts(argv, &self.job->spec->hosts);
        for (int i = 0; i < env.n; i++) push(argv, "-env", env.v[i]);
        for (int i = 0; i < words.n; i++) push(argv, words.v[i], NULL);
    }
    strv_free(&words);
    strv_free(&env);
    strv_free(&info);
    return why;
}

static const char *make_argv(struct strv *argv, const char *parent, int line, struct ask_in *in)
{
    uint32_t n = ask_get32(in);
    const char *why = n && n <= APPS_MAX ? NULL : "a message that cannot be";
    push(argv, self.argv0, SPAWNED_OPTION);
    strv_push(argv, xasprintf("%d:%llu:%s", line, (unsigned long long)self.job->nofile.rlim_cur, parent));
    push_common(argv);
    for (uint32_t i = 0; i < n && !why; i++) {
        if (i) push(argv, ":", NULL);
        why = push_app(argv, in);
    }
    return why || ask_done(in) ? why : "a message that cannot be";
}

static void free_argv(struct strv *argv)
{
    for (int i = 0; i < argv->n; i++) free(argv->v[i]);
    strv_free(argv);
}

/* ---- life ---- */

static struct child *child_of(uint32_t line)
{
    struct child *c = self.children;
    while (c && c->line != line) c = c->next;
    return c;
}

static int exit_code(const struct child *c)
{
    return WIFSIGNALED(c->status) ? 128 + WTERMSIG(c->status) : WEXITSTATUS(c->status);
}

/* It is over when its launcher has ended and has been heard to the end. */
static void check_over(struct child *c)
{
    struct child **at = &self.children;
    if (c->pid || c->line) return;
    if (!c->answered)
        asks_refuse(&c->asker, TERN_ERR_SPAWN,
                    "the launcher of the spawned job has ended (exit code %d) without a word", exit_code(c));
    output_detach(&c->out);
    output_detach(&c->err);
    int code = c->started ? exit_code(c) : 0;
    while (*at != c) at = &(*at)->next;
    *at = c->next;
    free(c);
    watch_release(code);
}

static void hear(struct line *l, const struct ask_head *h, const void *bytes) { asks_take(l, h, false, bytes); }

static void gone(struct line *l)
{
    struct child *c = child_of(line_number(l));
    registry_end(line_number(l));
    asks_lose(l);
    if (!c) return;
    c->line = 0;
    check_over(c);
}

static const struct line_calls calls = {hear, gone};

bool spawn_exited(pid_t pid, int status)
{
    struct child *c = self.children;
    while (c && c->pid != pid) c = c->next;
    if (!c) return false;
    c->pid = 0;
    c->status = status;
    check_over(c);
    return true;
}

void spawn_signal(int sig)
{
    for (struct child *c = self.children; c; c = c->next)
        if (c->pid) kill(c->pid, sig);
}

void spawn_started(const struct asker *a, struct ask_in *in)
{
    struct child *c = child_of(a->way.line);
    uint32_t size = ask_get32(in);
    const char *name = ask_get_text(in, ASK_NAME_MAX);
    uint8_t room[ASK_NAME_MAX + 16];
    struct ask_out o = {.bytes = room, .room = sizeof room};
    if (!c || c->answered || !ask_done(in) || !size || !registry_add(name, size, a->way.line)) {
        asks_refuse(a, TERN_ERR_ARG, "a job that was started already, or cannot be");
        return;
    }
    asks_answer(a, 0, NULL, 0);
    ask_put32(&o, size);
    ask_put_text(&o, name);
    c->answered = c->started = true;
    asks_answer(&c->asker, 0, o.bytes, o.n);
}

void spawn_failed(const struct asker *a, struct ask_in *in)
{
    struct child *c = child_of(a->way.line);
    const char *words = ask_get_text(in, ASK_BYTES_MAX);
    if (!c || c->answered || !ask_done(in)) return;
    c->answered = true;
    asks_refuse(&c->asker, TERN_ERR_SPAWN, "%s", words);
}

/* ---- start ---- */

static int start(struct child *c, char **argv, const int ends[3])
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t standard;
    sigemptyset(&standard);
    const int ours[] = {SIGPIPE, SIGXFSZ, SIGTTIN, SIGTTOU, SIGTSTP};
    for (size_t i = 0; i < ARRAY_LEN(ours); i++) sigaddset(&standard, ours[i]);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attr);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, ends[0], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&files, ends[2], ends[2]); /* kept open */
    posix_spawnattr_setsigmask(&attr, &self.job->signal_mask);
    posix_spawnattr_setsigdefault(&attr, &standard);
    posix_spawnattr_setpgroup(&attr, 0); /* the terminal's signals come by this mpiexec */
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int error = posix_spawn(&c->pid, "/proc/self/exe", &files, &attr, argv, self.own);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    return error;
}

/* Our ends of the two pipes and the line, and the child's; false with errno: all are closed. */
static bool make_ends(int own[3], int childs[3])
{
    int pair[2], n = 0;
    for (; n < 3; n++) {
        if (n < 2 ? pipe2(pair, O_CLOEXEC) : socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) break;
        own[n] = pair[0];
        childs[n] = pair[1];
    }
    if (n == 3) return true;
    int error = errno;
    while (n--) {
        close(own[n]);
        close(childs[n]);
    }
    errno = error;
    return false;
}

static void adopt(struct child *c, const int own[3])
{
    c->line = line_number(line_open(self.job->base, own[2], &calls, 0));
    c->next = self.children;
    self.children = c;
    output_join(&c->out, own[0], "stdout");
    output_join(&c->err, own[1], "stderr");
    watch_hold();
}

void spawn_take(const struct asker *a, const char *parent, struct ask_in *in)
{
    int own[3], childs[3];
    struct strv argv = {0};
    if (!watch_running()) {
        asks_refuse(a, TERN_ERR_SPAWN, "the job is ending");
        return;
    }
    if (!make_ends(own, childs)) {
        asks_refuse(a, TERN_ERR_SPAWN, "no descriptors for the launcher of a new job: %s", strerror(errno));
        return;
    }
    struct child *c = xcalloc(1, sizeof *c);
    c->asker = *a;
    const char *why = make_argv(&argv, parent, childs[2], in);
    int error = why ? 0 : start(c, argv.v, childs);
    for (int i = 0; i < 3; i++) close(childs[i]);
    if (!why && !error) {
        adopt(c, own);
    } else {
        asks_refuse(a, why ? TERN_ERR_ARG : TERN_ERR_SPAWN, "%s%s",
                    why ? why : "cannot start the launcher of a new job: ", why ? "" : strerror(error));
        for (int i = 0; i < 3; i++) close(own[i]);
        free(c);
    }
    free_argv(&argv);
}
