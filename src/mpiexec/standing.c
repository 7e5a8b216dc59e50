/* standing.c - see standing.h. */
#include "mpiexec/standing.h"
#include "base/crypto.h"
#include "base/err.h"
#include "base/start_attr.h"
#include "mpiexec/boot.h"
#include "mpiexec/daemon.h"
#include "mpiexec/spawn.h"
#include "mpiexec/words.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#define SALT 16 /* bytes */

/* ---- sealing ---- */

static void make_key(const struct job *j, const uint8_t salt[SALT], uint8_t key[CRYPTO_KEY])
{
    uint8_t what[SALT + 16] = "daemon's boot";
    memcpy(what + 16, salt, SALT);
    tern_crypto_sodium.tag(key, what, sizeof what, j->key);
}

/* ---- the root of a spawned job ---- */

bool standing_ask(const char *host, const char *boot, asks_done_fn done, void *arg)
{
    struct route route;
    uint8_t room[BOOT_TEXT + 512];
    struct ask_out o = {.bytes = room, .room = sizeof room};
    if (!spawned_own_route(&route)) return false;
    ask_put_text(&o, host);
    ask_put_text(&o, boot);
    if (!o.bad) asks_send(route, ASK_STANDING, 0, o.bytes, o.n, done, arg);
    explicit_bzero(room, sizeof room);
    return !o.bad;
}

/* ---- the first mpiexec ---- */

static int node_named(const struct job *j, const char *host)
{
    for (int i = 0; i < j->nnodes; i++)
        if (!j->nodes[i].own && !strcmp(j->nodes[i].name, host)) return i;
    return NODE_NONE;
}

void standing_forward(const struct job *j, const struct asker *a, struct ask_in *in)
{
    const char *host = ask_get_text(in, ASK_BYTES_MAX), *boot = ask_get_text(in, BOOT_TEXT);
    int node = node_named(j, host);
    uint8_t key[CRYPTO_KEY], sealed[SALT + BOOT_TEXT + CRYPTO_SEAL];
    size_t n = strlen(boot) + 1;
    if (!ask_done(in) || node == NODE_NONE) {
        asks_refuse(a, TERN_ERR_NOT_FOUND, "the first job has no daemon on host %s", host);
        return;
    }
    if (getrandom(sealed, SALT, 0) != SALT || !tern_crypto_sodium.start()) {
        asks_refuse(a, TERN_ERR_SYSTEM, "no random numbers");
        return;
    }
    make_key(j, sealed, key);
    tern_crypto_sodium.seal(sealed + SALT, boot, n, (uint32_t)n, 0, key);
    explicit_bzero(key, sizeof key);
    asks_forward(a, (struct route){.node = node}, ASK_DAEMON, sealed, SALT + n + CRYPTO_SEAL);
}

/* ---- a daemon ---- */

/* Those that were started, until they end: while their input is open, they wait for their parent (boot.h). */
static struct started {
    struct started *next;
    pid_t pid;
    int in;
} * started;

static char **own_environment;

void standing_keep_environment(void) { own_environment = environ; /* as in main.c: what setenv adds later is in a copy */ }

/* As an agent would start it: this process has changed its environment and its limit since. 0 or the system's error. */
static int start(const struct job *j, struct started *s, const char *boot)
{
    char name[] = "mpiexec", option[] = DAEMON_OPTION, *argv[] = {name, option, NULL};
    struct start_attr how;
    int pipe[2];
    if (pipe2(pipe, O_CLOEXEC)) return errno;
    start_attr_open_fresh(&how);
    posix_spawn_file_actions_adddup2(&how.files, pipe[0], STDIN_FILENO);
    int error = posix_spawn(&s->pid, "/proc/self/exe", &how.files, &how.attr, argv, own_environment);
    start_attr_close(&how);
    close(pipe[0]);
    s->in = pipe[1];
    if (!error) prlimit(s->pid, RLIMIT_NOFILE, &j->nofile, NULL); /* it looks at that when it has been told its boot */
    if (!error && write(s->in, boot, strlen(boot)) < 0) error = errno; /* it fits into a pipe */
    if (error) close(s->in);
    return error;
}

static bool unseal(const struct job *j, const uint8_t *bytes, size_t n, char boot[BOOT_TEXT])
{
    uint8_t key[CRYPTO_KEY];
    if (n <= SALT + CRYPTO_SEAL || n - SALT - CRYPTO_SEAL > BOOT_TEXT || !tern_crypto_sodium.start()) return false;
    n -= SALT + CRYPTO_SEAL;
    make_key(j, bytes, key);
    bool good = tern_crypto_sodium.unseal(boot, bytes + SALT, n, (uint32_t)n, 0, key) && !boot[n - 1];
    explicit_bzero(key, sizeof key);
    return good;
}

void standing_take(const struct job *j, const struct asker *a, const void *bytes, size_t n)
{
    char boot[BOOT_TEXT];
    if (!unseal(j, bytes, n, boot)) {
        asks_refuse(a, TERN_ERR_ARG, "what a daemon is to be told is none");
        return;
    }
    struct started *s = xcalloc(1, sizeof *s);
    int error = start(j, s, boot);
    explicit_bzero(boot, sizeof boot);
    if (error) {
        free(s);
        asks_refuse(a, TERN_ERR_SYSTEM, "cannot start a daemon: %s", strerror(error));
        return;
    }
    s->next = started;
    started = s;
    asks_answer(a, 0, NULL, 0);
}

bool standing_exited(pid_t pid)
{
    struct started **at = &started, *s;
    while ((s = *at) && s->pid != pid) at = &s->next;
    if (!s) return false;
    *at = s->next;
    close(s->in);
    free(s);
    return true;
}
