/*
 * split_type.c - splitting by memory, hardware and process sets (MPI-5.0 sections 7.4.2, 9.1.3), on a machine that is
 * made up: 2 packages with a NUMA node each, 4 L3 caches, 8 cores. Where the ranks are on it is TERN_MACHINE_CPUS.
 */
#include "../check.h"

#define CPUS 8
#define MAX_RANKS 8

static const struct level {
    const char *name;
    int cpus; /* of one instance */
} levels[] = {{"mpi_shared_memory", CPUS}, {"hwloc://Package", 4}, {"hwloc://NUMANode", 4}, {"hwloc://L3Cache", 2},
              {"hwloc://Core", 1},         {"hwloc://PU", 1}};
#define LEVELS 6

static int first_cpu[MAX_RANKS], last_cpu[MAX_RANKS];

/* The places of all ranks, as TERN_MACHINE_CPUS has them. */
static void find_places(void)
{
    const char *list = getenv("TERN_MACHINE_CPUS"), *s = list;
    for (int r = 0; r < check_size; r++) {
        first_cpu[r] = last_cpu[r] = r % CPUS;
        if (!list || !*list) continue;
        int n = sscanf(s, "%d-%d", &first_cpu[r], &last_cpu[r]);
        if (n == 1) last_cpu[r] = first_cpu[r];
        s = strchr(s, ',') ? strchr(s, ',') + 1 : list;
    }
}

/* The instance of a level that a rank of the world is restricted to, -1: none. */
static int instance(int rank, int level)
{
    int n = levels[level].cpus;
    return first_cpu[rank] / n == last_cpu[rank] / n ? first_cpu[rank] / n : -1;
}

/* The ranks in the world of a communicator's members; returns how many. */
static int members(MPI_Comm c, int *ranks)
{
    int n;
    MPI_Comm_size(c, &n);
    CHECK_OK(MPI_Allgather(&check_rank, 1, MPI_INT, ranks, 1, MPI_INT, c));
    return n;
}

/* `c` has those of the n ranks that are with me in an instance of the level, the last first; frees it. */
static void consists(MPI_Comm c, const int *ranks, int n, int level, const char *what)
{
    int got[MAX_RANKS], want[MAX_RANKS], wanted = 0, mine = instance(check_rank, level);
    CHECK((c == MPI_COMM_NULL) == (mine < 0), "%s: null %d, instance %d", what, c == MPI_COMM_NULL, mine);
    if (c == MPI_COMM_NULL) return;
    for (int i = n; i-- > 0;)
        if (instance(ranks[i], level) == mine) want[wanted++] = ranks[i];
    int size = members(c, got);
    CHECK(size == wanted, "%s: %d members instead of %d", what, size, wanted);
    for (int i = 0; i < size && i < wanted; i++) CHECK(got[i] == want[i], "%s: member %d is %d, not %d", what, i, got[i], want[i]);
    MPI_Comm_free(&c);
}

/* A split of the world with one pair as info; keys turn the order around. */
static MPI_Comm split(int type, const char *key, const char *value)
{
    MPI_Info info;
    MPI_Comm c = MPI_COMM_WORLD;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    CHECK_OK(MPI_Comm_split_type(MPI_COMM_WORLD, type, -check_rank, info, &c));
    MPI_Info_free(&info);
    return c;
}

static int world[MAX_RANKS];

static void guided(int type)
{
    for (int l = 0; l < LEVELS; l++)
        consists(split(type, "mpi_hw_resource_type", levels[l].name), world, check_size, l, levels[l].name);
    consists(split(type, "mpi_hw_resource_type", "L3Cache"), world, check_size, 3, "without provider");
    consists(split(type, "mpi_hw_resource_type", "hwloc://l3cache"), world, check_size, 3, "lower case");
    consists(split(type, "mpi_hw_resource_type", "hwloc://Machine"), world, check_size, 0, "machine");
}

/* What gives nobody a communicator: no info, no key, no such type, hardware that is not there. */
static void guided_by_nothing(int type)
{
    MPI_Comm c = MPI_COMM_WORLD;
    CHECK_OK(MPI_Comm_split_type(MPI_COMM_WORLD, type, 0, MPI_INFO_NULL, &c));
    CHECK(c == MPI_COMM_NULL, "without info");
    CHECK(split(type, "shmem_topo", "machine") == MPI_COMM_NULL, "another key");
    CHECK(split(type, "mpi_hw_resource_type", "gold") == MPI_COMM_NULL, "an unknown type");
    CHECK(split(type, "mpi_hw_resource_type", "") == MPI_COMM_NULL, "an empty type");
    CHECK(split(type, "mpi_hw_resource_type", "hwloc://L2Cache") == MPI_COMM_NULL, "hardware that the machine lacks");
}

/* The widest level at which the ranks are not all in one instance, nor all in none; LEVELS: there is none. */
static int dividing_level(const int *ranks, int n)
{
    for (int l = 0; l < LEVELS; l++)
        for (int i = 1; i < n; i++)
            if (instance(ranks[i], l) != instance(ranks[0], l)) return l;
    return LEVELS;
}

/* Step by step down to MPI_COMM_NULL; the info says which type each step took. */
static void descend(void)
{
    MPI_Comm c, part;
    MPI_Info info;
    int ranks[MAX_RANKS], steps = 0, flag, n;
    char type[64];
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    for (; c != MPI_COMM_NULL && steps <= LEVELS; steps++) {
        n = members(c, ranks);
        int level = dividing_level(ranks, n);
        MPI_Info_create(&info);
        part = MPI_COMM_WORLD;
        CHECK_OK(MPI_Comm_split_type(c, MPI_COMM_TYPE_HW_UNGUIDED, 0, info, &part));
        CHECK_OK(MPI_Info_get(info, "mpi_hw_resource_type", sizeof type - 1, type, &flag));
        CHECK(flag == (part != MPI_COMM_NULL), "the type is told to members: %d", flag);
        if (level == LEVELS) CHECK(part == MPI_COMM_NULL, "no level divides the %d ranks", n);
        else CHECK((part == MPI_COMM_NULL) == (instance(check_rank, level) < 0), "%s, %d ranks", levels[level].name, n);
        if (part != MPI_COMM_NULL) {
            int size = members(part, ranks);
            CHECK(size < n, "%d of %d is no strict part", size, n);
            CHECK(level < LEVELS && !strcmp(type, levels[level].name), "the type is %s", type);
        }
        MPI_Info_free(&info);
        MPI_Comm_free(&c);
        c = part;
    }
    CHECK(c == MPI_COMM_NULL, "no end after %d steps", steps);
}

static void unguided_without_info(void)
{
    MPI_Comm c = MPI_COMM_WORLD;
    int level = dividing_level(world, check_size);
    CHECK_OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_UNGUIDED, -check_rank, MPI_INFO_NULL, &c));
    if (level < LEVELS) consists(c, world, check_size, level, "unguided");
    else CHECK(c == MPI_COMM_NULL, "nothing divides the world");
}

static void process_sets(void)
{
    const int type = MPI_COMM_TYPE_RESOURCE_GUIDED;
    consists(split(type, "mpi_pset_name", "mpi://WORLD"), world, check_size, 0, "mpi://WORLD");
    consists(split(type, "mpi_pset_name", "MPI://world"), world, check_size, 0, "MPI://world");
    consists(split(type, "mpi_pset_name", "tern://node"), world, check_size, 0, "tern://node");
    consists(split(type, "mpi_pset_name", "mpi://SELF"), &check_rank, 1, 0, "mpi://SELF");
    CHECK(split(type, "mpi_pset_name", "nobody") == MPI_COMM_NULL, "an unknown set");
    CHECK(split(MPI_COMM_TYPE_HW_GUIDED, "mpi_pset_name", "mpi://WORLD") == MPI_COMM_NULL, "sets guide no hardware");
}

/* Who says MPI_UNDEFINED is in no part, whatever the others say. */
static void undefined(void)
{
    static const int types[] = {MPI_COMM_TYPE_SHARED, MPI_COMM_TYPE_HW_UNGUIDED};
    for (int t = 0; t < 2; t++) {
        MPI_Comm c = MPI_COMM_WORLD;
        CHECK_OK(MPI_Comm_split_type(MPI_COMM_WORLD, check_rank ? types[t] : MPI_UNDEFINED, 0, MPI_INFO_NULL, &c));
        if (!check_rank) CHECK(c == MPI_COMM_NULL, "undefined");
        if (check_rank && !t) CHECK(c != MPI_COMM_NULL, "the others");
        if (c != MPI_COMM_NULL) MPI_Comm_free(&c);
    }
}

/* Both groups of an intercommunicator: members on each side, or no communicator. */
static void inter(void)
{
    MPI_Comm half, ic, c = MPI_COMM_NULL;
    int side = check_rank % 2, near = 0, far = 0, size;
    MPI_Info info;
    MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half);
    CHECK_OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !side, 5, &ic));
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_hw_resource_type", "hwloc://L3Cache");
    CHECK_OK(MPI_Comm_split_type(ic, MPI_COMM_TYPE_HW_GUIDED, 0, info, &c));
    for (int r = 0; r < check_size; r++)
        if (instance(check_rank, 3) >= 0 && instance(r, 3) == instance(check_rank, 3)) *(r % 2 == side ? &near : &far) += 1;
    CHECK((c != MPI_COMM_NULL) == (near && far), "null %d with %d here and %d there", c == MPI_COMM_NULL, near, far);
    if (c != MPI_COMM_NULL) {
        MPI_Comm_size(c, &size);
        CHECK(size == near, "%d here", size);
        MPI_Comm_remote_size(c, &size);
        CHECK(size == far, "%d there", size);
        MPI_Comm_free(&c);
    }
    CHECK_OK(MPI_Comm_split_type(ic, MPI_COMM_TYPE_HW_UNGUIDED, 0, MPI_INFO_NULL, &c));
    if (c != MPI_COMM_NULL) MPI_Comm_free(&c);
    CHECK_OK(MPI_Comm_split_type(ic, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &c));
    MPI_Comm_size(c, &near);
    MPI_Comm_size(half, &size);
    CHECK(near == size, "one machine: %d of %d", near, size);
    MPI_Comm_free(&c);
    MPI_Info_free(&info);
    MPI_Comm_free(&ic);
    MPI_Comm_free(&half);
}

/* MPI_Get_hw_resource_info tells the machine's types, and which of them this process is restricted to. */
static void resources(void)
{
    MPI_Info info = MPI_INFO_NULL;
    char value[8];
    int n, flag;
    CHECK_OK(MPI_Get_hw_resource_info(&info));
    CHECK_OK(MPI_Info_get_nkeys(info, &n));
    CHECK(n == LEVELS, "%d types", n); /* the machine in place of its memory */
    for (int l = 1; l < LEVELS; l++) {
        CHECK_OK(MPI_Info_get(info, levels[l].name, 7, value, &flag));
        CHECK(flag && !strcmp(value, instance(check_rank, l) < 0 ? "false" : "true"), "%s: %s", levels[l].name, flag ? value : "none");
    }
    CHECK_OK(MPI_Info_get(info, "hwloc://Machine", 7, value, &flag));
    CHECK(flag && !strcmp(value, "true"), "hwloc://Machine");
    CHECK_OK(MPI_Info_free(&info));
    CHECK_CLASS(MPI_Get_hw_resource_info(NULL), MPI_ERR_ARG);
}

static void wrong_arguments(void)
{
    MPI_Comm c = MPI_COMM_NULL;
    MPI_Info info;
    char words[MPI_MAX_ERROR_STRING];
    int n;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_hw_resource_type", "hwloc://PU");
    MPI_Info_set(info, "mpi_pset_name", "mpi://WORLD");
    CHECK_CLASS(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, info, &c), MPI_ERR_INFO);
    CHECK_CLASS(MPI_Comm_split_type(MPI_COMM_WORLD, 7, 0, MPI_INFO_NULL, &c), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Comm_split_type(MPI_COMM_NULL, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &c), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, (MPI_Info)MPI_INT, &c), MPI_ERR_INFO);
    CHECK_CLASS(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, NULL), MPI_ERR_ARG);
    MPI_Info_free(&info);
    if (check_size > 1) { /* every rank is told */
        int type = check_rank == 1 ? MPI_COMM_TYPE_HW_UNGUIDED : MPI_COMM_TYPE_SHARED;
        int code = MPI_Comm_split_type(MPI_COMM_WORLD, type, 0, MPI_INFO_NULL, &c);
        CHECK_CLASS(code, MPI_ERR_ARG);
        MPI_Error_string(code, words, &n);
        CHECK(strstr(words, "rank 1 gave MPI_COMM_TYPE_HW_UNGUIDED"), "%s", words);
    }
    CHECK(c == MPI_COMM_NULL, "a failing call gave a handle");
}

int main(int argc, char **argv)
{
    MPI_Info hardware;
    int types;
    setenv("TERN_MACHINE", "pack:2 [numa] l3:2 core:2 pu:1", 1);
    check_start(&argc, &argv);
    MPI_Get_hw_resource_info(&hardware);
    MPI_Info_get_nkeys(hardware, &types);
    MPI_Info_free(&hardware);
    if (!types) return check_skip("built without hwloc");
    find_places();
    for (int r = 0; r < check_size; r++) world[r] = r;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    guided(MPI_COMM_TYPE_HW_GUIDED);
    guided(MPI_COMM_TYPE_RESOURCE_GUIDED);
    guided_by_nothing(MPI_COMM_TYPE_HW_GUIDED);
    guided_by_nothing(MPI_COMM_TYPE_RESOURCE_GUIDED);
    descend();
    unguided_without_info();
    process_sets();
    undefined();
    if (check_size > 1) inter();
    resources();
    wrong_arguments();
    return check_done();
}
