/*
 * removed.c - entry points: datatype functions of MPI-1 that MPI-3.0 removed (MPI-5.0
 * section 17.1). Programs of that age, the Linpack benchmark among them, still call
 * them. The markers MPI_LB and MPI_UB are not here: the binary interface has no
 * values for them, and MPI_Type_create_resized does what they did.
 */
#include "mpi/report.h"

MPI_ALIAS(Address);
int PMPI_Address(void *location, MPI_Aint *address)
{
    if (!address) return bad_null(NULL, "MPI_Address", "address");
    *address = (MPI_Aint)(uintptr_t)location;
    return MPI_SUCCESS;
}

MPI_ALIAS(Type_hvector);
int PMPI_Type_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return PMPI_Type_create_hvector(count, blocklength, stride, oldtype, newtype);
}

MPI_ALIAS(Type_hindexed);
int PMPI_Type_hindexed(int count, int array_of_blocklengths[], MPI_Aint array_of_displacements[], MPI_Datatype oldtype,
                       MPI_Datatype *newtype)
{
    return PMPI_Type_create_hindexed(count, array_of_blocklengths, array_of_displacements, oldtype, newtype);
}

MPI_ALIAS(Type_struct);
int PMPI_Type_struct(int count, int array_of_blocklengths[], MPI_Aint array_of_displacements[], MPI_Datatype array_of_types[],
                     MPI_Datatype *newtype)
{
    return PMPI_Type_create_struct(count, array_of_blocklengths, array_of_displacements, array_of_types, newtype);
}

/* ---- bounds ---- */

static int bound(const char *call, MPI_Datatype datatype, const void *out, const char *name, const struct type **t)
{
    *t = type_of(datatype);
    if (!*t) return bad_type(NULL, call, datatype, "datatype");
    return out ? MPI_SUCCESS : bad_null(NULL, call, name);
}

MPI_ALIAS(Type_extent);
int PMPI_Type_extent(MPI_Datatype datatype, MPI_Aint *extent)
{
    const struct type *t;
    int rc = bound("MPI_Type_extent", datatype, extent, "extent", &t);
    if (!rc) *extent = t->size == MPI_UNDEFINED ? MPI_UNDEFINED : t->extent;
    return rc;
}

MPI_ALIAS(Type_lb);
int PMPI_Type_lb(MPI_Datatype datatype, MPI_Aint *displacement)
{
    const struct type *t;
    int rc = bound("MPI_Type_lb", datatype, displacement, "displacement", &t);
    if (!rc) *displacement = t->lb;
    return rc;
}

MPI_ALIAS(Type_ub);
int PMPI_Type_ub(MPI_Datatype datatype, MPI_Aint *displacement)
{
    const struct type *t;
    int rc = bound("MPI_Type_ub", datatype, displacement, "displacement", &t);
    if (!rc) *displacement = type_ub(t);
    return rc;
}
