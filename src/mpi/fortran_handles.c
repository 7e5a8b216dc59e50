/*
 * fortran_handles.c - entry points: handles and statuses as other languages hold
 * them (MPI-5.0 sections 18.2.4, 18.2.5, 20.3).
 *
 * A handle as an int is the number of its slot in the arena of handles
 * (base/handle.h), a constant is its own number. So the conversions cost a few
 * instructions, any thread may do them at any time, and a number that stands for
 * nothing becomes a handle that every call refuses.
 *
 * MPI_Fint is an int here: a Fortran compiler told to make INTEGER longer needs the
 * _toint functions.
 */
#include "mpi/report.h"

#include <string.h>

static_assert(sizeof(MPI_Fint) == sizeof(int), "_c2f gives what _toint gives");

/* ---- handles and ints ---- */

MPI_ALIAS(Comm_toint);
int PMPI_Comm_toint(MPI_Comm comm) { return handle_to_int(comm); }

MPI_ALIAS(Comm_fromint);
MPI_Comm PMPI_Comm_fromint(int comm) { return handle_from_int(comm); }

MPI_ALIAS(Type_toint);
int PMPI_Type_toint(MPI_Datatype datatype) { return handle_to_int(datatype); }

MPI_ALIAS(Type_fromint);
MPI_Datatype PMPI_Type_fromint(int datatype) { return handle_from_int(datatype); }

MPI_ALIAS(Group_toint);
int PMPI_Group_toint(MPI_Group group) { return handle_to_int(group); }

MPI_ALIAS(Group_fromint);
MPI_Group PMPI_Group_fromint(int group) { return handle_from_int(group); }

MPI_ALIAS(Op_toint);
int PMPI_Op_toint(MPI_Op op) { return handle_to_int(op); }

MPI_ALIAS(Op_fromint);
MPI_Op PMPI_Op_fromint(int op) { return handle_from_int(op); }

MPI_ALIAS(Request_toint);
int PMPI_Request_toint(MPI_Request request) { return handle_to_int(request); }

MPI_ALIAS(Request_fromint);
MPI_Request PMPI_Request_fromint(int request) { return handle_from_int(request); }

MPI_ALIAS(Info_toint);
int PMPI_Info_toint(MPI_Info info) { return handle_to_int(info); }

MPI_ALIAS(Info_fromint);
MPI_Info PMPI_Info_fromint(int info) { return handle_from_int(info); }

MPI_ALIAS(Errhandler_toint);
int PMPI_Errhandler_toint(MPI_Errhandler errhandler) { return handle_to_int(errhandler); }

MPI_ALIAS(Errhandler_fromint);
MPI_Errhandler PMPI_Errhandler_fromint(int errhandler) { return handle_from_int(errhandler); }

MPI_ALIAS(Message_toint);
int PMPI_Message_toint(MPI_Message message) { return handle_to_int(message); }

MPI_ALIAS(Message_fromint);
MPI_Message PMPI_Message_fromint(int message) { return handle_from_int(message); }

MPI_ALIAS(Session_toint);
int PMPI_Session_toint(MPI_Session session) { return handle_to_int(session); }

MPI_ALIAS(Session_fromint);
MPI_Session PMPI_Session_fromint(int session) { return handle_from_int(session); }

MPI_ALIAS(Win_toint);
int PMPI_Win_toint(MPI_Win win) { return handle_to_int(win); }

MPI_ALIAS(Win_fromint);
MPI_Win PMPI_Win_fromint(int win) { return handle_from_int(win); }

MPI_ALIAS(File_toint);
int PMPI_File_toint(MPI_File file) { return handle_to_int(file); }

MPI_ALIAS(File_fromint);
MPI_File PMPI_File_fromint(int file) { return handle_from_int(file); }

/* ---- handles in C and in Fortran ---- */

MPI_ALIAS(Comm_c2f);
MPI_Fint PMPI_Comm_c2f(MPI_Comm comm) { return handle_to_int(comm); }

MPI_ALIAS(Comm_f2c);
MPI_Comm PMPI_Comm_f2c(MPI_Fint comm) { return handle_from_int(comm); }

MPI_ALIAS(Type_c2f);
MPI_Fint PMPI_Type_c2f(MPI_Datatype datatype) { return handle_to_int(datatype); }

MPI_ALIAS(Type_f2c);
MPI_Datatype PMPI_Type_f2c(MPI_Fint datatype) { return handle_from_int(datatype); }

MPI_ALIAS(Group_c2f);
MPI_Fint PMPI_Group_c2f(MPI_Group group) { return handle_to_int(group); }

MPI_ALIAS(Group_f2c);
MPI_Group PMPI_Group_f2c(MPI_Fint group) { return handle_from_int(group); }

MPI_ALIAS(Op_c2f);
MPI_Fint PMPI_Op_c2f(MPI_Op op) { return handle_to_int(op); }

MPI_ALIAS(Op_f2c);
MPI_Op PMPI_Op_f2c(MPI_Fint op) { return handle_from_int(op); }

MPI_ALIAS(Request_c2f);
MPI_Fint PMPI_Request_c2f(MPI_Request request) { return handle_to_int(request); }

MPI_ALIAS(Request_f2c);
MPI_Request PMPI_Request_f2c(MPI_Fint request) { return handle_from_int(request); }

MPI_ALIAS(Info_c2f);
MPI_Fint PMPI_Info_c2f(MPI_Info info) { return handle_to_int(info); }

MPI_ALIAS(Info_f2c);
MPI_Info PMPI_Info_f2c(MPI_Fint info) { return handle_from_int(info); }

MPI_ALIAS(Errhandler_c2f);
MPI_Fint PMPI_Errhandler_c2f(MPI_Errhandler errhandler) { return handle_to_int(errhandler); }

MPI_ALIAS(Errhandler_f2c);
MPI_Errhandler PMPI_Errhandler_f2c(MPI_Fint errhandler) { return handle_from_int(errhandler); }

MPI_ALIAS(Message_c2f);
MPI_Fint PMPI_Message_c2f(MPI_Message message) { return handle_to_int(message); }

MPI_ALIAS(Message_f2c);
MPI_Message PMPI_Message_f2c(MPI_Fint message) { return handle_from_int(message); }

MPI_ALIAS(Session_c2f);
MPI_Fint PMPI_Session_c2f(MPI_Session session) { return handle_to_int(session); }

MPI_ALIAS(Session_f2c);
MPI_Session PMPI_Session_f2c(MPI_Fint session) { return handle_from_int(session); }

MPI_ALIAS(Win_c2f);
MPI_Fint PMPI_Win_c2f(MPI_Win win) { return handle_to_int(win); }

MPI_ALIAS(Win_f2c);
MPI_Win PMPI_Win_f2c(MPI_Fint win) { return handle_from_int(win); }

MPI_ALIAS(File_c2f);
MPI_Fint PMPI_File_c2f(MPI_File file) { return handle_to_int(file); }

MPI_ALIAS(File_f2c);
MPI_File PMPI_File_f2c(MPI_Fint file) { return handle_from_int(file); }

/* ---- statuses: the same eight ints in the same order in C, mpif.h and mpi_f08 ---- */

static_assert(sizeof(MPI_Status) == 8 * sizeof(MPI_Fint), "a status of mpif.h has MPI_STATUS_SIZE ints");
static_assert(sizeof(MPI_F08_status) == sizeof(MPI_Status), "TYPE(MPI_Status) is that of C");

/* What Fortran's MPI_STATUS_IGNORE and its like are to C. The Fortran interface puts the addresses of its constants here;
 * until then nothing equals them. */
static MPI_Fint no_status[8];
static MPI_F08_status no_f08_status;

MPI_VARIABLE(F_STATUS_IGNORE);
MPI_Fint *MPI_F_STATUS_IGNORE = no_status;
MPI_VARIABLE(F_STATUSES_IGNORE);
MPI_Fint *MPI_F_STATUSES_IGNORE = no_status;
MPI_VARIABLE(F08_STATUS_IGNORE);
MPI_F08_status *MPI_F08_STATUS_IGNORE = &no_f08_status;
MPI_VARIABLE(F08_STATUSES_IGNORE);
MPI_F08_status *MPI_F08_STATUSES_IGNORE = &no_f08_status;

static bool ignored(const void *status)
{
    return !status || status == MPI_F_STATUS_IGNORE || status == MPI_F_STATUSES_IGNORE || status == MPI_F08_STATUS_IGNORE ||
           status == MPI_F08_STATUSES_IGNORE;
}

/* The value MPI_STATUS_IGNORE cannot be converted (18.2.5). */
static int convert(const char *call, const void *from, const char *from_name, void *to, const char *to_name)
{
    const char *wrong = ignored(from) ? from_name : ignored(to) ? to_name : NULL;
    if (wrong) return report(NULL, call, MPI_ERR_ARG, "argument %s is NULL or a value that stands for no status", wrong);
    memcpy(to, from, sizeof(MPI_Status));
    return MPI_SUCCESS;
}

MPI_ALIAS(Status_c2f);
int PMPI_Status_c2f(const MPI_Status *c_status, MPI_Fint *f_status)
{
    return convert("MPI_Status_c2f", c_status, "c_status", f_status, "f_status");
}

MPI_ALIAS(Status_f2c);
int PMPI_Status_f2c(const MPI_Fint *f_status, MPI_Status *c_status)
{
    return convert("MPI_Status_f2c", f_status, "f_status", c_status, "c_status");
}

MPI_ALIAS(Status_c2f08);
int PMPI_Status_c2f08(const MPI_Status *c_status, MPI_F08_status *f08_status)
{
    return convert("MPI_Status_c2f08", c_status, "c_status", f08_status, "f08_status");
}

MPI_ALIAS(Status_f082c);
int PMPI_Status_f082c(const MPI_F08_status *f08_status, MPI_Status *c_status)
{
    return convert("MPI_Status_f082c", f08_status, "f08_status", c_status, "c_status");
}

MPI_ALIAS(Status_f2f08);
int PMPI_Status_f2f08(const MPI_Fint *f_status, MPI_F08_status *f08_status)
{
    return convert("MPI_Status_f2f08", f_status, "f_status", f08_status, "f08_status");
}

MPI_ALIAS(Status_f082f);
int PMPI_Status_f082f(const MPI_F08_status *f08_status, MPI_Fint *f_status)
{
    return convert("MPI_Status_f082f", f08_status, "f08_status", f_status, "f_status");
}
