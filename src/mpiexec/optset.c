/* optset.c - what each option of the command line does. One function an option, then the table. */
#include "mpiexec/optset.h"
#include "config.h"
#include "mpiexec/configfile.h"
#include "mpiexec/cpulist.h"
#include "mpiexec/hosts.h"
#include "mpiexec/options.h"
#include "mpiexec/placeopt.h"
#include "mpiexec/words.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/utsname.h>

static int number(const char *option, const char *text, int least, int *out)
{
    char *end;
    long v = strtol(text, &end, 10);
    if (end == text || *end || v < least || v > 1 << 30) {
        say("option -%s: '%s' is not a number of at least %d", option, text, least);
        return EXIT_USAGE;
    }
    *out = (int)v;
    return 0;
}

/* --- programs ---------------------------------------------------------------------------------------------------- */

static int set_n(struct spec *s, char **v) { return number("n", v[0], 1, &spec_app(s)->n); }

static int set_wdir(struct spec *s, char **v)
{
    spec_app(s)->wdir = v[0];
    return 0;
}

static int set_path(struct spec *s, char **v)
{
    spec_app(s)->path = v[0];
    return 0;
}

static int set_pset(struct spec *s, char **v)
{
    if (!*v[0] || strlen(v[0]) >= MPI_MAX_PSET_NAME_LEN || !strncasecmp(v[0], "mpi://", 6) ||
        !strncmp(v[0], "tern://", 7)) {
        say("option -pset: '%s' cannot be the name of a process set (1 to %d characters, not beginning with mpi:// or "
            "tern://)",
            v[0], MPI_MAX_PSET_NAME_LEN - 1);
        return EXIT_USAGE;
    }
    spec_app(s)->pset = v[0];
    return 0;
}

/* What fails before or beside any MPI object: the library reads the variable (src/obj/errhandler.c). */
static int set_errhandler(struct spec *s, char **v)
{
    static const char *const words[] = {"mpi_errors_are_fatal", "mpi_errors_abort", "mpi_errors_return"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (!strcasecmp(v[0], words[i])) {
            strv_push(&spec_app(s)->env.sets, xasprintf("TERN_INITIAL_ERRHANDLER=%s", words[i]));
            return 0;
        }
    say("option -initial-errhandler: '%s' is not mpi_errors_are_fatal, mpi_errors_abort or mpi_errors_return", v[0]);
    return EXIT_USAGE;
}

/* -soft "a,b:c,d:e:f": numbers of ranks that would do; the largest is taken, for there is always room. */
static int set_soft(struct spec *s, char **v)
{
    int most = 0;
    for (const char *p = v[0]; *p; p += strcspn(p, ","), p += *p == ',') {
        int a = 0, b = 0, by = 1, got = sscanf(p, "%d:%d:%d", &a, &b, &by);
        int last = got < 2 ? a : by > 0 && b >= a ? b - (b - a) % by : a;
        if (got < 1) break;
        if (last > most) most = last;
    }
    if (most < 1) {
        say("option -soft: no positive number of ranks in '%s'", v[0]);
        return EXIT_USAGE;
    }
    if (!spec_app(s)->n) spec_app(s)->n = most;
    return 0;
}

static int set_arch(struct spec *s, char **v)
{
    struct utsname u;
    (void)s;
    if (!uname(&u) && !strcasecmp(u.machine, v[0])) return 0;
    say("option -arch %s: this host is %s, and all hosts of a job must be alike", v[0], u.machine);
    return EXIT_USAGE;
}

static int set_configfile(struct spec *s, char **v) { return configfile_read(s, v[0]); }

static int set_prefix(struct spec *s, char **v)
{
    s->prefix = v[0];
    return 0;
}

/* --- hosts ------------------------------------------------------------------------------------------------------- */

static int set_hosts(struct spec *s, char **v) { return hosts_list(&spec_app(s)->list, v[0]); }
static int set_hostfile(struct spec *s, char **v) { return hosts_file(&spec_app(s)->file, v[0]); }
static int set_ppn(struct spec *s, char **v) { return number("ppn", v[0], 1, &s->ppn); }
/* In Hydra's words: SYSTEM is what the hosts have, which is the default; INFINITE more than any job needs. */
static int set_usize(struct spec *s, char **v)
{
    s->usize = !strcasecmp(v[0], "INFINITE") ? 1 << 30 : 0;
    if (s->usize || !strcasecmp(v[0], "SYSTEM")) return 0;
    return number("usize", v[0], 1, &s->usize);
}

static int set_pernode(struct spec *s, char **v)
{
    (void)v;
    s->ppn = 1;
    return 0;
}

static int set_launcher(struct spec *s, char **v)
{
    s->launcher.kind = v[0];
    return 0;
}

static int set_launcher_exec(struct spec *s, char **v)
{
    s->launcher.exec = v[0];
    return 0;
}

static int set_iface(struct spec *s, char **v)
{
    s->launcher.iface = v[0];
    return 0;
}

static int set_no_manager(struct spec *s, char **v)
{
    (void)v;
    s->no_manager = true;
    return 0;
}

/* Hydra's name of the resource manager to ask: each is asked anyway, so only the ones that mean none count. */
static int set_rmk(struct spec *s, char **v)
{
    s->no_manager = !strcasecmp(v[0], "none") || !strcasecmp(v[0], "user");
    return 0;
}

static int show_map(struct spec *s, char **v)
{
    (void)v;
    s->show_map = true;
    return 0;
}

static int show_hosts(struct spec *s, char **v)
{
    (void)v;
    s->show_hosts = true;
    return 0;
}

static int set_no_launch(struct spec *s, char **v)
{
    (void)v;
    s->no_launch = true;
    return 0;
}

static int set_no_local(struct spec *s, char **v)
{
    (void)v;
    s->no_local = true;
    return 0;
}

static int set_rankfile(struct spec *s, char **v) { return rankfile_read(&s->rankfile, v[0]); }

static int set_order(struct spec *s, char **v)
{
    if (!strcasecmp(v[0], "ascending") || !strcasecmp(v[0], "up"))
        s->host_order = HOSTS_UP;
    else if (!strcasecmp(v[0], "descending") || !strcasecmp(v[0], "down"))
        s->host_order = HOSTS_DOWN;
    else {
        say("option -order-nodes: '%s' is not ascending or descending", v[0]);
        return EXIT_USAGE;
    }
    return 0;
}

static int show_rank_map(struct spec *s, char **v)
{
    (void)v;
    s->show_rank_map = true;
    return 0;
}

/* --display map,allocation,bind */
static int set_display(struct spec *s, char **v)
{
    char *copy = xstrdup(v[0]), *word;
    while ((word = strsep(&copy, ",:"))) {
        if (!strcasecmp(word, "map"))
            s->show_map = true;
        else if (!strcasecmp(word, "allocation") || !strcasecmp(word, "alloc"))
            s->show_hosts = true;
        else if (!strncasecmp(word, "bind", 4))
            s->place.report = true;
        else {
            say("--display %s is not understood: map, allocation, bind", word);
            return EXIT_USAGE;
        }
    }
    return 0;
}

/* --- environment ------------------------------------------------------------------------------------------------- */

static int env_base(struct env_spec *e, enum env_base base)
{
    e->base = base;
    return 0;
}

static int env_list(struct env_spec *e, char *names)
{
    char *copy = xstrdup(names), *name;
    e->base = ENV_LIST;
    while ((name = strsep(&copy, ",")))
        if (*name) strv_push(&e->list, name);
    return 0;
}

static int env_set(struct env_spec *e, char **v)
{
    bool one_word = strchr(v[0], '=');
    if (!*v[0] || *v[0] == '=') {
        say("'%s' is not the name of a variable (-env NAME VALUE, or NAME=VALUE)", v[0]);
        return EXIT_USAGE;
    }
    strv_push(&e->sets, one_word ? xstrdup(v[0]) : xasprintf("%s=%s", v[0], v[1]));
    return 0;
}

static int set_genv(struct spec *s, char **v) { return env_set(&s->env, v); }
static int set_env(struct spec *s, char **v) { return env_set(&spec_app(s)->env, v); }
static int set_genvall(struct spec *s, char **v) { return (void)v, env_base(&s->env, ENV_ALL); }
static int set_genvnone(struct spec *s, char **v) { return (void)v, env_base(&s->env, ENV_NONE); }
static int set_genvlist(struct spec *s, char **v) { return env_list(&s->env, v[0]); }
static int set_envall(struct spec *s, char **v) { return (void)v, env_base(&spec_app(s)->env, ENV_ALL); }
static int set_envnone(struct spec *s, char **v) { return (void)v, env_base(&spec_app(s)->env, ENV_NONE); }
static int set_envlist(struct spec *s, char **v) { return env_list(&spec_app(s)->env, v[0]); }

/* -x NAME[=value]; a list NAME,NAME exports several. */
static int set_x(struct spec *s, char **v)
{
    char *copy = xstrdup(v[0]), *name;
    if (*copy == '=' || !*copy) {
        say("option -x: '%s' has no name of a variable", v[0]);
        return EXIT_USAGE;
    }
    if (strchr(copy, '=')) {
        strv_push(&s->env.sets, copy);
        return 0;
    }
    while ((name = strsep(&copy, ",")))
        if (*name) strv_push(&s->env.sets, name);
    return 0;
}

/* --- placement --------------------------------------------------------------------------------------------------- */

static int set_bind(struct spec *s, char **v) { return placeopt_bind(&s->place, v[0]); }
static int set_map(struct spec *s, char **v) { return placeopt_map(&s->place, v[0], &s->ppn); }
static int set_rank_by(struct spec *s, char **v) { return placeopt_rank(&s->place, v[0]); }
static int set_bind_core(struct spec *s, char **v) { return (void)v, placeopt_bind(&s->place, "core"); }
static int set_bind_socket(struct spec *s, char **v) { return (void)v, placeopt_bind(&s->place, "socket"); }
static int set_bind_none(struct spec *s, char **v) { return (void)v, placeopt_bind(&s->place, "none"); }
static int set_bynode(struct spec *s, char **v) { return (void)v, placeopt_map(&s->place, "node", &s->ppn); }
static int set_bycore(struct spec *s, char **v) { return (void)v, placeopt_map(&s->place, "core", &s->ppn); }
static int set_bysocket(struct spec *s, char **v) { return (void)v, placeopt_map(&s->place, "socket", &s->ppn); }
static int set_byslot(struct spec *s, char **v) { return (void)v, placeopt_map(&s->place, "slot", &s->ppn); }
static int set_oversubscribe(struct spec *s, char **v)
{
    return (void)v, placeopt_map(&s->place, ":oversubscribe", NULL);
}
static int set_nooversubscribe(struct spec *s, char **v)
{
    return (void)v, placeopt_map(&s->place, ":nooversubscribe", NULL);
}
static int set_hwthreads(struct spec *s, char **v) { return (void)v, placeopt_map(&s->place, ":hwtcpus", NULL); }

static int set_npersocket(struct spec *s, char **v)
{
    s->place.map = UNIT_SOCKET;
    return number("npersocket", v[0], 1, &s->place.per_unit);
}

static int set_cpu_set(struct spec *s, char **v)
{
    s->place.cpu_set = v[0];
    if (cpulist_is_list(v[0])) return 0;
    say("--cpu-set, --cpu-list: '%s' is not a list of cores like 0,2-3 (of at most %d numbers)", v[0], CPULIST_MAX);
    return EXIT_USAGE;
}

static int set_width(struct spec *s, char **v) { return number("cpus-per-rank", v[0], 1, &s->place.width); }

static int set_report(struct spec *s, char **v)
{
    (void)v;
    s->place.report = true;
    return 0;
}

/* --- input and output -------------------------------------------------------------------------------------------- */

static int set_stdin(struct spec *s, char **v)
{
    if (!strcasecmp(v[0], "all"))
        s->in.kind = IN_ALL;
    else if (!strcasecmp(v[0], "none"))
        s->in.kind = IN_NONE;
    else {
        s->in.kind = IN_RANK;
        return number("stdin", v[0], 0, &s->in.rank);
    }
    return 0;
}

static int set_prepend(struct spec *s, char **v)
{
    (void)v;
    s->out.tag_rank = true;
    return 0;
}

static int set_tag(struct spec *s, char **v)
{
    (void)v;
    s->out.tag_stream = true;
    return 0;
}

static int set_timestamp(struct spec *s, char **v)
{
    (void)v;
    s->out.tag_time = true;
    return 0;
}

static int set_outfile(struct spec *s, char **v)
{
    s->out.out_pattern = v[0];
    return 0;
}

static int set_errfile(struct spec *s, char **v)
{
    s->out.err_pattern = v[0];
    return 0;
}

/* --output tag,timestamp,file=NAME[:nocopy]: NAME.<rank> gets both streams of a rank. */
static int set_output(struct spec *s, char **v)
{
    char *copy = xstrdup(v[0]), *word;
    while ((word = strsep(&copy, ","))) {
        if (!strcasecmp(word, "tag"))
            s->out.tag_stream = true;
        else if (!strcasecmp(word, "rank"))
            s->out.tag_rank = true;
        else if (!strcasecmp(word, "timestamp"))
            s->out.tag_time = true;
        else if (!strncasecmp(word, "file=", 5) && word[5]) {
            char *modifier = strrchr(word, ':');
            if (modifier && !strcasecmp(modifier, ":nocopy")) {
                *modifier = 0;
                s->out.tee_only = true;
            }
            s->out.tee_out = s->out.tee_err = xasprintf("%s.%%r", word + 5);
        } else {
            say("--output %s is not understood: tag, rank, timestamp, file=NAME[:nocopy]", word);
            return EXIT_USAGE;
        }
    }
    return 0;
}

/* --output-filename DIR[:nocopy,nojobid]: DIR/1/rank.<rank>/stdout and stderr, the rank with leading zeros; the 1 is
 * the job. */
static int set_output_files(struct spec *s, char **v)
{
    char *name = xstrdup(v[0]), *colon = strrchr(name, ':'), *word, *rest = colon ? colon + 1 : NULL;
    const char *job = "1/";
    if (colon) *colon = 0;
    while ((word = strsep(&rest, ","))) {
        if (!strcasecmp(word, "nocopy"))
            s->out.tee_only = true;
        else if (!strcasecmp(word, "nojobid"))
            job = "";
        else {
            say("--output-filename %s: '%s' is not nocopy or nojobid", v[0], word);
            return EXIT_USAGE;
        }
    }
    s->out.tee_out = xasprintf("%s/%srank.%%R/stdout", name, job);
    s->out.tee_err = xasprintf("%s/%srank.%%R/stderr", name, job);
    s->out.make_dirs = true;
    return 0;
}

static int set_merge(struct spec *s, char **v)
{
    (void)v;
    s->out.merge = true;
    return 0;
}

/* --- running ----------------------------------------------------------------------------------------------------- */

static int set_timeout(struct spec *s, char **v)
{
    char *end;
    double t = strtod(v[0], &end);
    if (end == v[0] || *end || !isfinite(t) || t <= 0 || t > 1e9) {
        say("'%s' is not a time limit in seconds (--timeout, MPIEXEC_TIMEOUT)", v[0]);
        return EXIT_USAGE;
    }
    s->timeout = t;
    return 0;
}

static int set_traces(struct spec *s, char **v)
{
    (void)v;
    s->stack_traces = true;
    return 0;
}

static int set_report_pid(struct spec *s, char **v)
{
    s->report_pid = v[0];
    return 0;
}

static int set_keep_going(struct spec *s, char **v)
{
    (void)v;
    s->keep_going = true;
    return 0;
}

static int set_print_codes(struct spec *s, char **v)
{
    (void)v;
    s->print_exitcodes = true;
    return 0;
}

static int set_verbose(struct spec *s, char **v)
{
    (void)s, (void)v;
    words_verbose = true;
    return 0;
}

static int show_version(struct spec *s, char **v)
{
    (void)s, (void)v;
    printf("mpiexec (Tern MPI) %s, MPI standard %d.%d\n", PACKAGE_VERSION, MPI_VERSION, MPI_SUBVERSION);
    return OPTIONS_DONE;
}

static int show_help(struct spec *s, char **v)
{
    (void)s, (void)v;
    options_help();
    return OPTIONS_DONE;
}

/* Options that ask for what is the case anyway, or that choose among ways to reach other hosts. */
static int set_needless(struct spec *s, char **v)
{
    (void)s, (void)v;
    return 0;
}

/* The parameters of that other MPI that let a job go on without a rank that has failed. */
static bool is_recovery(char **v)
{
    bool on = !strcmp(v[1], "1") || !strcasecmp(v[1], "true") || !strcasecmp(v[1], "yes");
    bool off = !strcmp(v[1], "0") || !strcasecmp(v[1], "false") || !strcasecmp(v[1], "no");
    return (on && (!strcmp(v[0], "orte_enable_recovery") || !strcmp(v[0], "prte_enable_recovery"))) ||
           (off && (!strcmp(v[0], "orte_abort_on_non_zero_status") || !strcmp(v[0], "prte_abort_on_non_zero_status")));
}

/* Some of that other MPI have a meaning here too: those above, and the name of the agent (a list of names: the first). */
static int note_mca(struct spec *s, char **v)
{
    static bool noted;
    if (is_recovery(v)) return set_keep_going(s, v);
    if (!strcmp(v[0], "plm_rsh_agent") || !strcmp(v[0], "plm_ssh_agent")) {
        s->launcher.exec = xstrndup(v[1], strcspn(v[1], ":"));
        return 0;
    }
    if (!noted)
        say("note: --mca %s is a parameter of another MPI and means nothing here; tern_info lists Tern's", v[0]);
    noted = true;
    return 0;
}

/* clang-format off */
const struct optset optset_table[] = {
    {"Programs (hold up to the next ':')", 0, NULL, NULL, NULL},
    {"n|np|c", 1, set_n, "N", "number of ranks (1, or what -ppn or the slots of the hosts say)"},
    {"wdir|wd", 1, set_wdir, "DIR", "working directory of the ranks"},
    {"path", 1, set_path, "DIRS", "where programs are searched before PATH, with ':' between"},
    {"soft", 1, set_soft, "RANGES", "numbers of ranks that would do (the largest is taken)"},
    {"pset", 1, set_pset, "NAME", "name of a process set that the ranks belong to (MPI_Session_get_nth_pset)"},
    {"initial-errhandler", 1, set_errhandler, "NAME", "mpi_errors_are_fatal (the default), mpi_errors_abort, mpi_errors_return"},
    {"arch", 1, set_arch, "NAME", "architecture the program needs"},
    {"configfile|app|file", 1, set_configfile, "FILE", "one program with its options a line"},
    {"prefix", 1, set_prefix, "DIR", "put DIR/bin before PATH and DIR/lib before LD_LIBRARY_PATH of the ranks"},

    {"Hosts (of the next program; of all, if no other names hosts)", 0, NULL, NULL, NULL},
    {"host|hosts|hostlist|H", 1, set_hosts, "HOST[:N],...", "hosts and the ranks meant for each; with a host file, picks from it"},
    {"hostfile|machinefile|default-hostfile|f", 1, set_hostfile, "FILE", "the same, one host a line: HOST[:N] or HOST slots=N"},
    {"ppn|perhost|N|npernode|ranks-per-node", 1, set_ppn, "N", "ranks of each host before the next"},
    {"pernode|rr", 0, set_pernode, "", "one rank on each host before the next"},
    {"rmk", 1, set_rmk, "NAME", "none or user: no hosts from Slurm, PBS or LSF (all others: if no host is named)"},
    {"localhost-only", 0, set_no_manager, "", "the same"},
    {"launcher|bootstrap", 1, set_launcher, "NAME", "how other hosts are reached: ssh (the default), rsh, fork (not at all: a test)"},
    {"launcher-exec|bootstrap-exec", 1, set_launcher_exec, "PROGRAM", "the program to be called for that, as PROGRAM HOST COMMAND"},
    {"iface", 1, set_iface, "NAME", "the network interface that the daemons of other hosts connect to"},
    {"nolocal", 0, set_no_local, "", "no ranks on this host"},
    {"order-nodes", 1, set_order, "ascending|descending", "use the hosts in the order of their slots"},
    {"rankfile|rf", 1, set_rankfile, "FILE", "host and cores of each rank, as rank N=HOST slot=SOCKET:CORES"},
    {"display-map", 0, show_map, "", "print which rank goes to which host"},
    {"display-allocation", 0, show_hosts, "", "print the hosts"},
    {"print-rank-map", 0, show_rank_map, "", "the same, as (host:0,1)"},
    {"display", 1, set_display, "WHAT", "map, allocation, bind"},
    {"do-not-launch", 0, set_no_launch, "", "print what was asked for, and start nothing"},
    {"usize", 1, set_usize, "N|SYSTEM|INFINITE", "size of the universe (MPI_UNIVERSE_SIZE)"},

    {"Environment (g...: of all programs; otherwise of the next)", 0, NULL, NULL, NULL},
    {"x", 1, set_x, "NAME[=VALUE]", "export a variable to all ranks"},
    {"genv", OPTION_ASSIGNS, set_genv, "NAME VALUE|NAME=VALUE", "set a variable for all ranks"},
    {"genvlist", 1, set_genvlist, "NAMES", "pass only these variables"},
    {"genvall", 0, set_genvall, "", "pass all variables (the default)"},
    {"genvnone", 0, set_genvnone, "", "pass none"},
    {"env", OPTION_ASSIGNS, set_env, "NAME VALUE|NAME=VALUE", "set a variable for the ranks of the next program"},
    {"envlist", 1, set_envlist, "NAMES", "pass only these to the next program"},
    {"envall", 0, set_envall, "", "pass all to the next program"},
    {"envnone", 0, set_envnone, "", "pass none to the next program"},

    {"Placement (default: the kernel places)", 0, NULL, NULL, NULL},
    {"bind-to|binding", 1, set_bind, "WHAT",
     "none, hwthread, core, l1cache, l2cache, l3cache, numa, socket, user:LIST, cpu-list:ordered"},
    {"bind-to-none", 0, set_bind_none, "", "the same as -bind-to none"},
    {"bind-to-core", 0, set_bind_core, "", "the same as -bind-to core"},
    {"bind-to-socket", 0, set_bind_socket, "", "the same as -bind-to socket"},
    {"map-by", 1, set_map, "WHAT",
     "slot, core, socket, numa, l3cache, node, ppr:N:unit; with :PE=N for N cores a rank, :SPAN, :NOOVERSUBSCRIBE"},
    {"bynode", 0, set_bynode, "", "the same as -map-by node"},
    {"byslot", 0, set_byslot, "", "the same as -map-by slot"},
    {"bycore", 0, set_bycore, "", "the same as -map-by core"},
    {"bysocket", 0, set_bysocket, "", "the same as -map-by socket"},
    {"npersocket", 1, set_npersocket, "N", "the same as -map-by ppr:N:socket"},
    {"rank-by", 1, set_rank_by, "WHAT", "number the mapped ranks by slot, node, core, socket ...; with :SPAN, :FILL"},
    {"cpu-set|cpu-list", 1, set_cpu_set, "LIST", "use only these cores of each host, as 0,2-3"},
    {"use-hwthread-cpus", 0, set_hwthreads, "", "hardware threads count as cores do"},
    {"oversubscribe", 0, set_oversubscribe, "", "more ranks than slots are fine (the default)"},
    {"nooversubscribe", 0, set_nooversubscribe, "", "more ranks than slots are refused"},
    {"cpus-per-rank|cpus-per-proc", 1, set_width, "N", "cores of each rank (as PE=N)"},
    {"report-bindings", 0, set_report, "", "say which rank is bound where"},

    {"Input and output", 0, NULL, NULL, NULL},
    {"stdin|s", 1, set_stdin, "N|all|none", "who reads the standard input (rank 0)"},
    {"l|prepend-rank", 0, set_prepend, "", "begin each line with [rank]"},
    {"tag-output", 0, set_tag, "", "begin each line with [job,rank]<stream>:"},
    {"timestamp-output", 0, set_timestamp, "", "begin each line with the time"},
    {"output", 1, set_output, "WHAT", "tag, rank, timestamp, file=NAME[:nocopy] (NAME.<rank>)"},
    {"output-filename", 1, set_output_files, "DIR[:nocopy]", "copies in DIR/1/rank.<rank>/stdout and stderr"},
    {"merge-stderr-to-stdout", 0, set_merge, "", "ranks write both into their standard output"},
    {"outfile|outfile-pattern", 1, set_outfile, "PATTERN", "standard output to files; %r is the rank, %h the host"},
    {"errfile|errfile-pattern", 1, set_errfile, "PATTERN", "the same for standard error"},

    {"Running", 0, NULL, NULL, NULL},
    {"timeout", 1, set_timeout, "SECONDS", "end the job after this time, exit code 124 (also MPIEXEC_TIMEOUT)"},
    {"get-stack-traces", 0, set_traces, "", "print where each rank is before a time limit ends the job"},
    {"disable-auto-cleanup|enable-recovery|continuous", 0, set_keep_going, "", "when a rank fails, the others go on"},
    {"report-pid", 1, set_report_pid, "FILE|-|+", "write the process number of mpiexec to FILE, standard output or error"},
    {"print-all-exitcodes", 0, set_print_codes, "", "print the exit code of every rank at the end"},
    {"v|verbose", 0, set_verbose, "", "say what is done and how long it takes"},
    {"version|V|info", 0, show_version, "", "print the version"},
    {"help|h", 0, show_help, "", "print this"},

    {"Accepted, and needless here", 0, NULL, NULL, NULL},
    {"allow-run-as-root|q|quiet|disable-hostname-propagation|hetero-nodes|leave-session-attached|novm", 0, set_needless, "", "root is fine, names are kept, hosts may differ"},
    {"localhost|launch-agent", 1, set_needless, "X", "ways to reach other hosts"},
    {"demux|topolib", 1, set_needless, "X", "how the launcher waits (epoll) and finds the topology (hwloc)"},
    {"mca|gmca|prtemca|pmixmca", 2, note_mca, "NAME VALUE", "noted as meaningless"},
    {NULL, 0, NULL, NULL, NULL},
};
/* clang-format on */
