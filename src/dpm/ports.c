/* ports.c - the ports of this process, and the calls that accept and connect; see dpm.h. */
#include "base/err.h"
#include "dpm/connect.h"
#include "pt2pt/lane.h"
#include "pt2pt/lanes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A port that the program has opened. */
struct open_port {
    struct link link; /* in `ports`, until it is closed */
    struct endpoint *endpoint;
    unsigned users; /* accepting calls; the last one frees it, if it is closed meanwhile */
    bool closed;
    char name[PORT_NAME];
};

static struct link ports = LIST_INIT(ports);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int dpm_open_port(char *name)
{
    struct open_port *p = calloc(1, sizeof *p);
    if (!p) return err_set(TERN_ERR_NOMEM, "no memory for a port");
    int rc = endpoint_open(&p->endpoint);
    if (rc) {
        free(p);
        return rc;
    }
    endpoint_name(p->endpoint, p->name);
    strcpy(name, p->name);
    pthread_mutex_lock(&lock);
    list_push(&ports, &p->link);
    pthread_mutex_unlock(&lock);
    return 0;
}

/* Lock held. */
static struct open_port *find(const char *name)
{
    list_each (at, next, &ports) {
        struct open_port *p = container_of(at, struct open_port, link);
        if (!strcmp(p->name, name)) return p;
    }
    err_set(TERN_ERR_PORT, "this process has no port '%.40s%s': it has not opened it, or has closed it", name,
            strlen(name) > 40 ? "..." : "");
    return NULL;
}

static void shut(struct open_port *p)
{
    endpoint_close(p->endpoint);
    explicit_bzero(p, sizeof *p);
    free(p);
}

int dpm_close_port(const char *name)
{
    pthread_mutex_lock(&lock);
    struct open_port *p = find(name);
    bool used = p && p->users;
    if (p) list_remove(&p->link);
    if (used) {
        p->closed = true;
        lane_enter(lanes_first());
        endpoint_give_up(p->endpoint, TERN_ERR_PORT, "the port was closed");
        lane_leave(lanes_first());
    }
    pthread_mutex_unlock(&lock);
    if (!p) return TERN_ERR_PORT;
    if (!used) shut(p);
    return 0;
}

/* For a call that accepts; NULL with words: there is no such port. */
static struct open_port *use(const char *name)
{
    pthread_mutex_lock(&lock);
    struct open_port *p = find(name);
    if (p) p->users++;
    pthread_mutex_unlock(&lock);
    return p;
}

static void let_go(struct open_port *p)
{
    pthread_mutex_lock(&lock);
    bool last = !--p->users && p->closed;
    pthread_mutex_unlock(&lock);
    if (last) shut(p);
}

void dpm_close_ports(void)
{
    for (struct link *l; (l = list_pop(&ports));) shut(container_of(l, struct open_port, link));
    endpoints_close();
}

static int no_name(void) { return err_set(TERN_ERR_PORT, "the root has given no port"); }

int dpm_accept(struct comm *local, int root, const char *name, struct comm **out)
{
    struct open_port *p = local->rank == root && name ? use(name) : NULL;
    int rc = local->rank != root || p ? 0 : name ? TERN_ERR_PORT : no_name();
    rc = connect_groups(local, root, rc, connect_accept, p ? p->endpoint : NULL, out);
    if (!p) return rc;
    err_keep(p, rc);
    let_go(p);
    err_recall(p, rc);
    return rc;
}

int dpm_connect(struct comm *local, int root, const char *name, struct comm **out)
{
    int rc = local->rank != root || name ? 0 : no_name();
    return connect_groups(local, root, rc, connect_call, (void *)(uintptr_t)name, out);
}
