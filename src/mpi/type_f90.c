/* type_f90.c - entry points: types for Fortran's selected kinds (MPI-5.0 section 19.1.9). */
#include "mpi/report.h"
#include "type/f90.h"

static int give(const char *call, int combiner, int p, int r, MPI_Datatype *newtype)
{
    struct type *t;
    check_running(call);
    no_type_yet(newtype);
    if (!newtype) return bad_null(NULL, call, "newtype");
    int rc = type_f90(combiner, p, r, &t);
    if (!rc) *newtype = type_handle(t);
    return report_if(NULL, call, rc);
}

MPI_ALIAS(Type_create_f90_real);
int PMPI_Type_create_f90_real(int p, int r, MPI_Datatype *newtype)
{
    return give("MPI_Type_create_f90_real", MPI_COMBINER_F90_REAL, p, r, newtype);
}

MPI_ALIAS(Type_create_f90_complex);
int PMPI_Type_create_f90_complex(int p, int r, MPI_Datatype *newtype)
{
    return give("MPI_Type_create_f90_complex", MPI_COMBINER_F90_COMPLEX, p, r, newtype);
}

MPI_ALIAS(Type_create_f90_integer);
int PMPI_Type_create_f90_integer(int r, MPI_Datatype *newtype)
{
    return give("MPI_Type_create_f90_integer", MPI_COMBINER_F90_INTEGER, MPI_UNDEFINED, r, newtype);
}
