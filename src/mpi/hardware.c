/*
 * hardware.c - entry points: types of hardware (MPI-5.0 section 9.1.3).
 */
#include "comm/hwsplit.h"
#include "mpi/report.h"

/* Adds a type; the value says whether this process is restricted to one instance of it. */
static int add(struct info *i, const char *name, bool restricted) { return info_set(i, name, restricted ? "true" : "false"); }

/* All types that the machine has. Where nothing is known of it, there are none. */
static int describe(struct info *i)
{
    struct machine_place p;
    char name[HW_NAME];
    int rc = machine_open();
    if (rc) return rc == TERN_ERR_NOT_FOUND ? 0 : rc;
    machine_place(&p);
    rc = add(i, "hwloc://Machine", true);
    for (int level = 0; level < MACHINE_LEVELS && !rc; level++)
        if (machine_count(level)) rc = add(i, hw_name(level, name), p.at[level] >= 0);
    return rc;
}

MPI_ALIAS(Get_hw_resource_info);
int PMPI_Get_hw_resource_info(MPI_Info *hw_info)
{
    const char *call = "MPI_Get_hw_resource_info";
    check_running(call);
    if (!hw_info) return bad_null(NULL, call, "hw_info");
    struct info *i = info_new();
    return give_info(NULL, call, i, i ? describe(i) : 0, hw_info);
}
