/*
 * errcode.c - entry points: error classes, codes and their words, the standard's and
 * those that users add (MPI-5.0 sections 9.4, 9.5). All may be called at any time.
 *
 * The codes of this library are the classes.
 */
#include "obj/errcode.h"
#include "mpi/report.h"

#include <stdio.h>
#include <string.h>

static int no_code(const char *call, int code)
{
    return report(NULL, call, MPI_ERR_ARG, "argument errorcode is %d, which is no error code", code);
}

MPI_ALIAS(Error_class);
int PMPI_Error_class(int errorcode, int *errorclass)
{
    if (!errorclass) return bad_null(NULL, "MPI_Error_class", "errorclass");
    if (error_name(errorcode)) *errorclass = errorcode;
    else if (!errcode_class(errorcode, errorclass)) return no_code("MPI_Error_class", errorcode);
    return MPI_SUCCESS;
}

/* The class in words; and where this thread's last failure was of this class, what it was. */
MPI_ALIAS(Error_string);
int PMPI_Error_string(int errorcode, char *string, int *resultlen)
{
    const char *call = "MPI_Error_string";
    if (!string || !resultlen) return bad_null(NULL, call, string ? "resultlen" : "string");
    const char *name = error_name(errorcode);
    const char *details = errorcode == MPI_SUCCESS ? "" : report_last(errorcode);
    if (name) snprintf(string, MPI_MAX_ERROR_STRING, "%s: %s%s%s", name, error_sentence(errorcode), *details ? ": " : "", details);
    else if (!errcode_string(errorcode, string, MPI_MAX_ERROR_STRING)) return no_code(call, errorcode);
    *resultlen = (int)strlen(string);
    return MPI_SUCCESS;
}

/* ---- those that users add and remove ---- */

MPI_ALIAS(Add_error_class);
int PMPI_Add_error_class(int *errorclass)
{
    if (!errorclass) return bad_null(NULL, "MPI_Add_error_class", "errorclass");
    return report_if(NULL, "MPI_Add_error_class", errcode_add_class(errorclass));
}

MPI_ALIAS(Add_error_code);
int PMPI_Add_error_code(int errorclass, int *errorcode)
{
    const char *call = "MPI_Add_error_code";
    if (!errorcode) return bad_null(NULL, call, "errorcode");
    if (errorclass <= MPI_ERR_LASTCODE && !error_name(errorclass))
        return report(NULL, call, MPI_ERR_ARG, "argument errorclass is %d, which is no error class", errorclass);
    return report_if(NULL, call, errcode_add(errorclass, errorcode));
}

MPI_ALIAS(Add_error_string);
int PMPI_Add_error_string(int errorcode, const char *string)
{
    const char *call = "MPI_Add_error_string";
    if (!string) return bad_null(NULL, call, "string");
    if (strlen(string) >= MPI_MAX_ERROR_STRING)
        return report(NULL, call, MPI_ERR_ARG, "argument string has %zu characters, but may have %d", strlen(string), MPI_MAX_ERROR_STRING - 1);
    return report_if(NULL, call, errcode_set_string(errorcode, string));
}

MPI_ALIAS(Remove_error_class);
int PMPI_Remove_error_class(int errorclass)
{
    return report_if(NULL, "MPI_Remove_error_class", errcode_remove_class(errorclass));
}

MPI_ALIAS(Remove_error_code);
int PMPI_Remove_error_code(int errorcode) { return report_if(NULL, "MPI_Remove_error_code", errcode_remove(errorcode)); }

MPI_ALIAS(Remove_error_string);
int PMPI_Remove_error_string(int errorcode)
{
    return report_if(NULL, "MPI_Remove_error_string", errcode_remove_string(errorcode));
}
