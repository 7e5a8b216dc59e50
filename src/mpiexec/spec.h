/*
 * spec.h - what is to be run: the command line in a form the rest of the launcher understands. Filled by options.c,
 * completed by spec_settle, then read only.
 */
#ifndef TERN_MPIEXEC_SPEC_H
#define TERN_MPIEXEC_SPEC_H

#include "mpiexec/hosts.h"
#include "mpiexec/rankfile.h"
#include "mpiexec/xalloc.h"

/* Which of the launcher's own variables a rank sees, and changes on top. */
struct env_spec {
    enum env_base { ENV_UNSAID, ENV_ALL, ENV_NONE, ENV_LIST } base;
    struct strv list; /* ENV_LIST: names */
    struct strv sets; /* "NAME=value", or "NAME" = as the launcher has it */
};

/* One program of the job (what stands between two ':'). */
struct app_spec {
    struct strv argv;
    int n; /* ranks; 0 = not said */
    const char *wdir, *path;
    const char *pset;        /* the process set that the ranks belong to; NULL: none of its own */
    struct hosts list, file; /* hosts as they were named, by option and by file */
    struct hosts hosts;      /* what that comes to, after map_hosts; none: those of the job */
    struct env_spec env;
};

enum unit { UNIT_NONE, UNIT_HWTHREAD, UNIT_CORE, UNIT_L1, UNIT_L2, UNIT_L3, UNIT_NUMA, UNIT_SOCKET, UNIT_NODE };

/* How ranks are numbered once it is known where they run: RANK_MAPPED as they were mapped. */
enum rank_order { RANK_MAPPED, RANK_BY_SLOT, RANK_BY_NODE, RANK_BY_UNIT };

/* Where ranks go on a node and what they are tied to. */
struct place_spec {
    enum unit map;       /* UNIT_NONE = in order of the cores */
    int per_unit;        /* ranks of each mapping unit before the next (ppr); 0 = one after the other in turn */
    bool span;           /* the mapping units of all nodes in turn, not those of one node first */
    bool bind_said;      /* --bind-to was given */
    enum unit bind;      /* UNIT_NONE = the kernel decides */
    int width;           /* units a rank is bound to, or cores it maps to (PE); 0 = not said */
    bool hwthreads;      /* hardware threads count as cores do */
    const char *user;    /* --bind-to user:LIST */
    const char *cpu_set; /* the cores of each node that are used (cpulist.h); NULL = all */
    bool cpu_each;       /* the i-th rank of a node is bound to the i-th of these */
    enum rank_order order;
    enum unit order_unit; /* RANK_BY_UNIT */
    bool order_fill;      /* all ranks of a unit before those of the next */
    bool order_span;      /* the units of all nodes in turn */
    bool refuse_more;     /* more ranks than slots are an error */
    bool report;
    /* After place_count_units, of this node: units of the kind that ranks are mapped by, numbered by, and cores. */
    int map_units, order_units, cores;
};

struct out_spec {
    bool tag_rank, tag_stream, tag_time;
    const char *out_pattern, *err_pattern; /* files instead of our own output; %r rank, %h host */
    const char *tee_out, *tee_err; /* to these files beside our own output; %R is the rank with leading zeros ... */
    bool tee_only;                         /* ... and not to our own output */
    bool make_dirs;                        /* make the directories of files */
    bool merge;                            /* ranks write both streams into the first */
};

struct in_spec {
    enum in_kind { IN_RANK, IN_ALL, IN_NONE } kind;
    int rank;
};

/* How other hosts are reached (agent.h). */
struct launcher_spec {
    const char *kind;    /* ssh, rsh, fork; NULL = ssh */
    const char *exec;    /* the program in its place, perhaps with options */
    const char *iface;   /* the interface that daemons connect to; NULL = any */
    const char *command; /* what is to run there */
    int width;           /* daemons that each one starts */
    int seconds;         /* for a daemon to report */
};

struct spec {
    struct app_spec *apps;
    int napps;
    int size; /* ranks of all apps, after spec_settle */
    struct env_spec env;
    struct place_spec place;
    struct out_spec out;
    struct in_spec in;
    struct launcher_spec launcher;
    const char *prefix;
    const char *report_pid; /* write our process number to this file, "-" standard output, "+" standard error */
    double timeout;         /* seconds; 0 = none */
    bool stack_traces;      /* of the ranks, when it is over */
    bool keep_going;        /* when a rank fails, the others are not ended */
    int ppn;            /* ranks a node; 0 = not said */
    struct hosts hosts; /* all that were named or given, in their order, after map_hosts; at least this one */
    bool hosts_named;   /* else it is this host for want of another */
    int slots;          /* of these; where none was named, the cpus of this one */
    bool no_manager;    /* do not ask the environment for hosts */
    bool no_local;      /* no ranks on this host */
    enum host_order { HOSTS_AS_NAMED, HOSTS_UP, HOSTS_DOWN } host_order;
    struct rankfile rankfile;
    bool show_hosts, show_map, show_rank_map;
    bool no_launch;
    int usize; /* MPI_UNIVERSE_SIZE; 0 = not said */
    bool print_exitcodes;
};

/* The app that options being read belong to: the last one as long as it has no program yet, else a new one. */
struct app_spec *spec_app(struct spec *);

/* MPI_UNIVERSE_SIZE: what was said, else the slots of the hosts, but not less than the ranks of the job. */
static inline int spec_universe(const struct spec *s)
{
    if (s->usize) return s->usize;
    return s->slots > s->size ? s->slots : s->size;
}

/* Fills in what was not said (number of ranks) and checks the whole. 0, or an exit code after saying why. */
int spec_settle(struct spec *);

/* Frees its lists and tables. The strings in them are those of the command line, and stay. */
void spec_free(struct spec *);

#endif
