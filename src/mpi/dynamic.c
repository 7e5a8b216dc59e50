/*
 * dynamic.c - entry points: processes that did not start together (MPI-5.0 sections 11.8 to 11.10).
 *
 * Arguments that are significant at the root are checked there. A root that has a wrong one still takes part in the call, so that
 * the others fail as well, rather than wait.
 */
#include "dpm/dpm.h"
#include "mpi/dynamic.h"
#include "mpi/report.h"

#include <stdlib.h>

/* What calls on an intracommunicator with a root begin with: *c_p is the communicator; `name` is that of the argument for the new one. */
static int check_group(const char *call, MPI_Comm comm, int root, MPI_Comm *newcomm, const char *name, struct comm **c_p)
{
    struct comm *c = *c_p = comm_of(comm);
    no_comm_yet(newcomm);
    if (!c) return bad_comm(call, comm);
    if (c->inter) return report(c, call, MPI_ERR_COMM, "argument comm is an intercommunicator");
    if (root < 0 || root >= c->size)
        return report(c, call, MPI_ERR_ROOT, "argument root is %d, but comm has ranks 0 to %d", root, c->size - 1);
    return newcomm ? MPI_SUCCESS : bad_null(c, call, name);
}

/* ---- spawning ---- */

/* Set by MPI_Init, until MPI_Comm_disconnect or MPI_Comm_free of it (11.8.2: MPI_COMM_NULL from then on), or MPI_Finalize. */
static struct comm *_Atomic parent_comm;

int dynamic_open(void)
{
    struct comm *made;
    int rc = dpm_parent(comm_world(), &made);
    if (!rc && made) {
        comm_set_name(made, "MPI_COMM_PARENT");
        parent_comm = made;
    }
    return rc;
}

void dynamic_close(void) { parent_comm = NULL; }

void dynamic_forget(const struct comm *c)
{
    if (unlikely(parent_comm == c)) parent_comm = NULL;
}

MPI_ALIAS(Comm_get_parent);
int PMPI_Comm_get_parent(MPI_Comm *parent)
{
    check_running("MPI_Comm_get_parent");
    if (!parent) return bad_null(NULL, "MPI_Comm_get_parent", "parent");
    struct comm *c = parent_comm;
    *parent = c ? comm_handle(c) : MPI_COMM_NULL;
    return MPI_SUCCESS;
}

/* What the root says of its programs; all of it is checked. */
static int check_programs(struct comm *c, const char *call, struct dpm_program *p, int count, char *const commands[], char **const argvs[],
                          const int maxprocs[], const MPI_Info infos[])
{
    for (int i = 0; i < count; i++) {
        struct info *info;
        if (!commands[i] || !*commands[i]) return report(c, call, MPI_ERR_ARG, "command %d is %s", i, commands[i] ? "empty" : "NULL");
        if (maxprocs[i] < 1) return report(c, call, MPI_ERR_ARG, "command %d is to be spawned as %d processes", i, maxprocs[i]);
        if (!info_given(infos[i], &info)) return bad_info(c, call, infos[i]);
        p[i] = (struct dpm_program){.command = commands[i], .argv = argvs ? argvs[i] : NULL, .n = maxprocs[i], .info = info};
    }
    return MPI_SUCCESS;
}

/* A code for each process that was asked for, program by program. */
static void write_codes(int *codes, const struct dpm_count *counts, int programs)
{
    for (int k = 0; k < programs; k++)
        for (int i = 0; i < counts[k].asked; i++) *codes++ = i < counts[k].started ? MPI_SUCCESS : MPI_ERR_SPAWN;
}

static int spawn(const char *call, int count, char *const commands[], char **const argvs[], const int maxprocs[], const MPI_Info infos[],
                 int root, MPI_Comm comm, MPI_Comm *intercomm, int codes[])
{
    struct comm *c, *made = NULL;
    struct dpm_program *p = NULL;
    struct dpm_count *counts;
    int programs, bad = check_group(call, comm, root, intercomm, "intercomm", &c);
    if (bad) return bad;
    if (c->rank == root) {
        if (count < 1) bad = report(c, call, MPI_ERR_COUNT, "argument count is %d", count);
        else if (!commands) bad = bad_null(c, call, "array_of_commands");
        else if (!maxprocs || !infos) bad = bad_null(c, call, maxprocs ? "array_of_info" : "array_of_maxprocs");
        else if (!(p = calloc((size_t)count, sizeof *p))) bad = report_code(c, call, TERN_ERR_NOMEM);
        else bad = check_programs(c, call, p, count, commands, argvs, maxprocs, infos);
    }
    int rc = dpm_spawn(c, root, bad ? NULL : p, count, &made, &counts, &programs);
    free(p);
    if (codes != MPI_ERRCODES_IGNORE) write_codes(codes, counts, programs);
    free(counts);
    if (bad) return bad;
    if (rc) return report_code(c, call, rc);
    *intercomm = comm_handle(made);
    return MPI_SUCCESS;
}

MPI_ALIAS(Comm_spawn);
int PMPI_Comm_spawn(const char *command, char *argv[], int maxprocs, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *intercomm,
                    int array_of_errcodes[])
{
    char *commands[] = {(char *)(uintptr_t)command};
    char **argvs[] = {argv};
    return spawn("MPI_Comm_spawn", 1, commands, argvs, &maxprocs, &info, root, comm, intercomm, array_of_errcodes);
}

MPI_ALIAS(Comm_spawn_multiple);
int PMPI_Comm_spawn_multiple(int count, char *array_of_commands[], char **array_of_argv[], const int array_of_maxprocs[],
                             const MPI_Info array_of_info[], int root, MPI_Comm comm, MPI_Comm *intercomm, int array_of_errcodes[])
{
    return spawn("MPI_Comm_spawn_multiple", count, array_of_commands, array_of_argv, array_of_maxprocs, array_of_info, root, comm,
                 intercomm, array_of_errcodes);
}

/* ---- ports ---- */

MPI_ALIAS(Open_port);
int PMPI_Open_port(MPI_Info info, char *port_name)
{
    const char *call = "MPI_Open_port";
    struct info *hints;
    check_running(call);
    if (!info_given(info, &hints)) return bad_info(NULL, call, info);
    if (!port_name) return bad_null(NULL, call, "port_name");
    return report_if(NULL, call, dpm_open_port(port_name));
}

MPI_ALIAS(Close_port);
int PMPI_Close_port(const char *port_name)
{
    const char *call = "MPI_Close_port";
    check_running(call);
    if (!port_name) return bad_null(NULL, call, "port_name");
    return report_if(NULL, call, dpm_close_port(port_name));
}

typedef int (*establish_fn)(struct comm *local, int root, const char *port, struct comm **out);

/* MPI_Comm_accept and MPI_Comm_connect. */
static int establish(const char *call, establish_fn by, const char *port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm)
{
    struct comm *c, *made = NULL;
    struct info *hints;
    int bad = check_group(call, comm, root, newcomm, "newcomm", &c);
    if (bad) return bad;
    if (c->rank == root && !info_given(info, &hints)) bad = bad_info(c, call, info);
    else if (c->rank == root && !port_name) bad = bad_null(c, call, "port_name");
    int rc = by(c, root, bad ? NULL : port_name, &made);
    if (bad) return bad;
    if (rc) return report_code(c, call, rc);
    *newcomm = comm_handle(made);
    return MPI_SUCCESS;
}

MPI_ALIAS(Comm_accept);
int PMPI_Comm_accept(const char *port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm)
{
    return establish("MPI_Comm_accept", dpm_accept, port_name, info, root, comm, newcomm);
}

MPI_ALIAS(Comm_connect);
int PMPI_Comm_connect(const char *port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm)
{
    return establish("MPI_Comm_connect", dpm_connect, port_name, info, root, comm, newcomm);
}

MPI_ALIAS(Comm_join);
int PMPI_Comm_join(int fd, MPI_Comm *intercomm)
{
    const char *call = "MPI_Comm_join";
    struct comm *made;
    no_comm_yet(intercomm);
    check_world(call);
    if (!intercomm) return bad_null(NULL, call, "intercomm");
    if (fd < 0) return report(NULL, call, MPI_ERR_ARG, "argument fd is %d, which is no descriptor", fd);
    int rc = dpm_join(fd, &made);
    if (rc) return report_code(NULL, call, rc);
    *intercomm = comm_handle(made);
    return MPI_SUCCESS;
}

/* ---- names ---- */

MPI_ALIAS(Publish_name);
int PMPI_Publish_name(const char *service_name, MPI_Info info, const char *port_name)
{
    const char *call = "MPI_Publish_name";
    struct info *hints;
    check_running(call);
    if (!service_name || !port_name) return bad_null(NULL, call, service_name ? "port_name" : "service_name");
    if (!info_given(info, &hints)) return bad_info(NULL, call, info);
    return report_if(NULL, call, dpm_publish(service_name, port_name));
}

MPI_ALIAS(Unpublish_name);
int PMPI_Unpublish_name(const char *service_name, MPI_Info info, const char *port_name)
{
    const char *call = "MPI_Unpublish_name";
    struct info *hints;
    check_running(call);
    if (!service_name || !port_name) return bad_null(NULL, call, service_name ? "port_name" : "service_name");
    if (!info_given(info, &hints)) return bad_info(NULL, call, info);
    return report_if(NULL, call, dpm_unpublish(service_name));
}

MPI_ALIAS(Lookup_name);
int PMPI_Lookup_name(const char *service_name, MPI_Info info, char *port_name)
{
    const char *call = "MPI_Lookup_name";
    struct info *hints;
    check_running(call);
    if (!service_name || !port_name) return bad_null(NULL, call, service_name ? "port_name" : "service_name");
    if (!info_given(info, &hints)) return bad_info(NULL, call, info);
    return report_if(NULL, call, dpm_lookup(service_name, port_name));
}
