/* grow.c - see grow.h. */
#include "mpiexec/grow.h"
#include "mpiexec/boot.h"
#include "mpiexec/standing.h"
#include "mpiexec/words.h"

#include <errno.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BACKLOG 128
#define STRANGERS 64    /* connections whose handshake is under way; one of them makes room for one more */
#define AFTER_AGENT_S 5 /* for a daemon whose agent has ended with success */

static struct {
    struct job *job;
    struct boot boot; /* of the children */
    const struct grow_calls *calls;
    struct child *children;
    int n, coming;
    struct evconnlistener *listener;
    struct tree_link *strangers[STRANGERS];
    int nstrangers;
    struct event *limit;
} self;

static const struct launcher_spec *how(void) { return &self.job->spec->launcher; }
static const char *host_of(const struct child *c) { return self.job->nodes[c->node].name; }

/* --- waiting for them -------------------------------------------------------------------------------------------- */

static void forget_stranger(const struct tree_link *l)
{
    for (int i = 0; i < self.nstrangers; i++) {
        if (self.strangers[i] != l) continue;
        memmove(&self.strangers[i], &self.strangers[i + 1], sizeof l * (size_t)(--self.nstrangers - i));
        return;
    }
}

static void close_listener(void)
{
    if (!self.listener) return;
    while (self.nstrangers) link_close(self.strangers[--self.nstrangers]);
    evconnlistener_free(self.listener);
    event_free(self.limit);
    self.listener = NULL;
}

static void not_coming(struct child *c)
{
    c->state = CHILD_GONE;
    agent_detach(&c->agent); /* the end of its input tells the daemon, if there is one */
    if (!--self.coming) close_listener();
}

static void TERN_PRINTF(2, 3) fail(struct child *c, const char *fmt, ...)
{
    char what[256], said[512], why[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    agent_words(&c->agent, said, sizeof said);
    snprintf(why, sizeof why, "host %s: %s%s%s", host_of(c), what, *said ? ": " : "", said);
    not_coming(c);
    agent_kill(&c->agent, SIGTERM);
    self.calls->lost(c, why);
}

/* The timer goes to the earliest deadline. */
static void set_limit(void)
{
    double first = 1e300, now = launch_now();
    for (int i = 0; i < self.n; i++)
        if (self.children[i].state == CHILD_COMING && self.children[i].deadline < first)
            first = self.children[i].deadline;
    if (first == 1e300) return;
    long us = first > now ? (long)((first - now) * 1e6) + 1 : 1;
    struct timeval t = {.tv_sec = us / 1000000, .tv_usec = us % 1000000};
    evtimer_add(self.limit, &t);
}

static void on_limit(evutil_socket_t fd, short what, void *arg)
{
    double now = launch_now();
    (void)fd, (void)what, (void)arg;
    for (int i = 0; i < self.n; i++)
        if (self.children[i].state == CHILD_COMING && self.children[i].deadline <= now)
            fail(&self.children[i], "no daemon of mpiexec reported from there within %d s (TERN_LAUNCH_TIMEOUT)%s",
                 how()->seconds, self.children[i].agent.said_length ? "; the agent said" : "");
    if (self.listener) set_limit();
}

static void judge_agent(struct child *c)
{
    int status = c->agent.status;
    const char *name = agent_name(how());
    if (WIFSIGNALED(status))
        fail(c, "%s was killed by signal %d (%s)", name, WTERMSIG(status), signal_words(WTERMSIG(status)));
    else if (WEXITSTATUS(status))
        fail(c, "%s ended with code %d before a daemon of mpiexec reported", name, WEXITSTATUS(status));
    else { /* it may have let go of the daemon */
        double soon = launch_now() + AFTER_AGENT_S;
        if (soon < c->deadline) c->deadline = soon;
        set_limit();
    }
}

bool grow_exited(pid_t pid, int status)
{
    for (int i = 0; i < self.n; i++) {
        struct child *c = &self.children[i];
        if (c->agent.pid != pid) continue;
        c->agent.pid = 0;
        c->agent.status = status;
        if (c->state == CHILD_COMING) judge_agent(c);
        return true;
    }
    return false;
}

/* --- connections ------------------------------------------------------------------------------------------------- */

static bool on_message(struct tree_link *l, const struct link_head *h, const void *bytes)
{
    return self.calls->message(link_arg(l), h, bytes);
}

static void on_lost(struct tree_link *l, const char *reason)
{
    struct child *c = link_arg(l);
    char said[512], why[1024];
    agent_words(&c->agent, said, sizeof said); /* a daemon that breaks down says so there */
    snprintf(why, sizeof why, "the daemon on host %s was lost: %s%s%s%s", host_of(c), reason, *said ? " (" : "", said,
             *said ? ")" : "");
    c->state = CHILD_GONE;
    c->link = NULL;
    link_close(l);
    self.calls->lost(c, why);
}

static bool child_wanted(struct tree_link *l, uint64_t from)
{
    (void)l;
    for (int i = 0; i < self.n; i++)
        if ((uint64_t)self.children[i].vertex == from) return self.children[i].state == CHILD_COMING;
    return false;
}

static const struct link_calls child_calls = {child_wanted, NULL, on_message, on_lost};

static void stranger_opened(struct tree_link *l)
{
    uint64_t from = link_from(l);
    struct child *c = self.children;
    while ((uint64_t)c->vertex != from) c++;
    forget_stranger(l);
    link_set_calls(l, &child_calls, c);
    c->link = l;
    c->state = CHILD_OPEN;
    agent_detach(&c->agent);
    if (!--self.coming) close_listener();
    self.calls->opened(c);
}

static void stranger_lost(struct tree_link *l, const char *why)
{
    say_verbose("a connection to the launcher's port was refused: %s", why);
    forget_stranger(l);
    link_close(l);
}

static const struct link_calls stranger_calls = {child_wanted, stranger_opened, NULL, stranger_lost};

/* The oldest that has said nothing yet, else the oldest. A daemon that is turned out so tries again (reach.c). */
static void turn_out_stranger(void)
{
    int i = 0;
    while (i < self.nstrangers && link_has_spoken(self.strangers[i])) i++;
    struct tree_link *l = self.strangers[i < self.nstrangers ? i : 0];
    forget_stranger(l);
    link_close(l);
}

static void on_accept(struct evconnlistener *from, evutil_socket_t fd, struct sockaddr *addr, int n, void *arg)
{
    (void)from, (void)addr, (void)n, (void)arg;
    if (self.nstrangers == STRANGERS) turn_out_stranger();
    evutil_make_socket_closeonexec(fd);
    self.strangers[self.nstrangers++] =
        link_accept(self.job->base, fd, self.boot.key, (uint64_t)self.boot.parent, &stranger_calls, NULL);
}

/* -1 with errno. */
static int close_with_errno(int fd)
{
    int error = errno;
    if (fd >= 0) close(fd);
    errno = error;
    return -1;
}

static int socket_at(const struct sockaddr *any, socklen_t n)
{
    int off = 0, fd = socket(any->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && any->sa_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    return fd < 0 || bind(fd, any, n) ? close_with_errno(fd) : fd;
}

/* A socket for both families where there are both. Its port, or 0 with errno. */
static int listen_anywhere(void)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in four = {.sin_family = AF_INET};
    socklen_t n = sizeof six;
    int fd = socket_at((void *)&six, sizeof six);
    if (fd < 0) fd = socket_at((void *)&four, sizeof four);
    if (fd < 0) return 0;
    self.listener = evconnlistener_new(self.job->base, on_accept, NULL, LEV_OPT_CLOSE_ON_FREE, BACKLOG, fd);
    if (!self.listener) close_with_errno(fd);
    if (!self.listener || getsockname(fd, (void *)&six, &n)) return 0;
    return ntohs(six.sin6_port); /* at the same place in both */
}

/* --- start ------------------------------------------------------------------------------------------------------- */

static void on_standing(void *arg, int status, const void *bytes, size_t n);

static int start_child(struct child *c, bool by_agent)
{
    self.boot.node = c->node;
    self.boot.vertex = c->vertex;
    char *text = boot_text(&self.boot);
    int rc = 0;
    if (by_agent || !standing_ask(host_of(c), text, on_standing, c)) {
        say_verbose("%s starts a daemon on %s: %s", agent_name(how()), host_of(c), how()->command);
        rc = agent_start(&c->agent, self.job->base, how(), host_of(c), how()->command, text);
    }
    explicit_bzero(text, strlen(text));
    free(text);
    c->state = CHILD_COMING;
    c->deadline = launch_now() + how()->seconds;
    return rc;
}

/* The first job's daemon there has started one for us, or an agent has to. */
static void on_standing(void *arg, int status, const void *bytes, size_t n)
{
    struct child *c = arg;
    (void)bytes, (void)n;
    if (status && c->state == CHILD_COMING && start_child(c, true)) fail(c, "no daemon can be started");
}

int grow_open(struct job *j, int vertex, struct child *children, int n, const struct grow_calls *calls)
{
    int rc = 0, port;
    self.job = j;
    self.calls = calls;
    self.children = children;
    for (int i = 0; i < n; i++) children[i].agent.in = children[i].agent.out = -1;
    if (!n) return 0;
    memcpy(self.boot.key, j->key, sizeof self.boot.key);
    self.boot.parent = vertex;
    self.boot.seconds = how()->seconds;
    if (!(port = listen_anywhere())) {
        say("cannot listen for the daemons of other hosts: %s", strerror(errno));
        return EXIT_RESOURCE;
    }
    boot_addresses(&self.boot, how()->iface, port);
    if (!self.boot.naddresses) {
        say("no network interface%s%s with an address is up: other hosts cannot be used", how()->iface ? " named " : "",
            how()->iface ? how()->iface : "");
        return EXIT_RESOURCE;
    }
    self.limit = evtimer_new(j->base, on_limit, NULL);
    while (self.n < n && !(rc = start_child(&children[self.n], false))) self.n++;
    self.coming = self.n;
    set_limit();
    return rc;
}

/* --- end --------------------------------------------------------------------------------------------------------- */

void grow_give_up(void)
{
    for (int i = 0; i < self.n; i++) {
        if (self.children[i].state != CHILD_COMING) continue;
        not_coming(&self.children[i]);
        agent_kill(&self.children[i].agent, SIGTERM);
    }
}

int grow_links(void)
{
    int n = 0;
    for (int i = 0; i < self.n; i++) n += self.children[i].state == CHILD_OPEN;
    return n;
}

int grow_agents(void)
{
    int n = 0;
    for (int i = 0; i < self.n; i++) n += self.children[i].agent.pid != 0;
    return n;
}

void grow_kill_agents(int sig)
{
    for (int i = 0; i < self.n; i++) agent_kill(&self.children[i].agent, sig);
}
