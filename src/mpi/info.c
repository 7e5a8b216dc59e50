/*
 * info.c - entry points: info objects (MPI-5.0 chapter 10, 16.1).
 *
 * They may be called before MPI_Init, after MPI_Finalize, and by several threads.
 */
#include "obj/info.h"
#include "mpi/report.h"
#include "obj/info_env.h"

#include <stdio.h>
#include <string.h>

/* ---- what can be wrong ---- */

/* The object behind a handle; NULL when that was reported as *rc. */
static struct info *object(const char *call, MPI_Info info, int *rc)
{
    struct info *i = info_of(info);
    if (!i) *rc = bad_info(NULL, call, info);
    return i;
}

/* The same for objects that are to be changed. */
static struct info *own_object(const char *call, MPI_Info info, int *rc)
{
    struct info *i = object(call, info, rc);
    if (!i || !i->predefined) return i;
    *rc = report(NULL, call, MPI_ERR_INFO, "argument info is MPI_INFO_ENV, which cannot be changed");
    return NULL;
}

static int bad_key(const char *call, const char *key)
{
    const int klass = MPI_ERR_INFO_KEY;
    if (!key) return report(NULL, call, klass, "argument key is NULL");
    if (!*key) return report(NULL, call, klass, "argument key is empty");
    return report(NULL, call, klass, "argument key has %zu characters, but at most %d are allowed: %.40s...", strlen(key),
                  MPI_MAX_INFO_KEY - 1, key);
}

static bool key_ok(const char *key) { return key && *key && strnlen(key, MPI_MAX_INFO_KEY) < MPI_MAX_INFO_KEY; }

static int bad_value(const char *call, const char *value)
{
    if (!value) return report(NULL, call, MPI_ERR_INFO_VALUE, "argument value is NULL");
    return report(NULL, call, MPI_ERR_INFO_VALUE, "argument value has %zu characters, but at most %d are allowed", strlen(value),
                  MPI_MAX_INFO_VAL - 1);
}

static bool value_ok(const char *value) { return value && strnlen(value, MPI_MAX_INFO_VAL) < MPI_MAX_INFO_VAL; }

/* ---- making and freeing ---- */

MPI_ALIAS(Info_create);
int PMPI_Info_create(MPI_Info *info)
{
    if (!info) return bad_null(NULL, "MPI_Info_create", "info");
    return give_info(NULL, "MPI_Info_create", info_new(), 0, info);
}

MPI_ALIAS(Info_create_env);
int PMPI_Info_create_env(int argc, char *argv[], MPI_Info *info)
{
    const char *call = "MPI_Info_create_env";
    if (!info) return bad_null(NULL, call, "info");
    if (argc < 0) return report(NULL, call, MPI_ERR_ARG, "argument argc is %d, which is negative", argc);
    return give_info(NULL, call, info_new_env(argc, argv), 0, info);
}

MPI_ALIAS(Info_dup);
int PMPI_Info_dup(MPI_Info info, MPI_Info *newinfo)
{
    int rc = MPI_SUCCESS;
    if (newinfo) *newinfo = MPI_INFO_NULL;
    struct info *i = object("MPI_Info_dup", info, &rc);
    if (!i) return rc;
    if (!newinfo) return bad_null(NULL, "MPI_Info_dup", "newinfo");
    return give_info(NULL, "MPI_Info_dup", info_snapshot(&i), 0, newinfo);
}

MPI_ALIAS(Info_free);
int PMPI_Info_free(MPI_Info *info)
{
    int rc = MPI_SUCCESS;
    if (!info) return bad_null(NULL, "MPI_Info_free", "info");
    struct info *i = own_object("MPI_Info_free", *info, &rc);
    if (!i) return rc;
    info_free(i);
    *info = MPI_INFO_NULL;
    return MPI_SUCCESS;
}

/* ---- pairs ---- */

MPI_ALIAS(Info_set);
int PMPI_Info_set(MPI_Info info, const char *key, const char *value)
{
    int rc = MPI_SUCCESS;
    struct info *i = own_object("MPI_Info_set", info, &rc);
    if (!i) return rc;
    if (!key_ok(key)) return bad_key("MPI_Info_set", key);
    if (!value_ok(value)) return bad_value("MPI_Info_set", value);
    return report_if(NULL, "MPI_Info_set", info_set_shared(i, key, value));
}

MPI_ALIAS(Info_delete);
int PMPI_Info_delete(MPI_Info info, const char *key)
{
    int rc = MPI_SUCCESS;
    struct info *i = own_object("MPI_Info_delete", info, &rc);
    if (!i) return rc;
    if (!key_ok(key)) return bad_key("MPI_Info_delete", key);
    handle_state_lock();
    rc = info_delete(i, key);
    handle_state_unlock();
    if (rc)
        return report(NULL, "MPI_Info_delete", MPI_ERR_INFO_NOKEY, "argument key is \"%s\", which is not in the info object", key);
    return MPI_SUCCESS;
}

/* What the calls that look up a key have in common: the object and a copy of its value, NULL where there is none. */
static int look_up(const char *call, MPI_Info info, const char *key, int *flag, char copy[MPI_MAX_INFO_VAL],
                   const char **value_p)
{
    int rc = MPI_SUCCESS;
    struct info *i = object(call, info, &rc);
    if (!i) return rc;
    if (!key_ok(key)) return bad_key(call, key);
    if (!flag) return bad_null(NULL, call, "flag");
    *value_p = info_copy_value(i, key, copy);
    return MPI_SUCCESS;
}

MPI_ALIAS(Info_get_string);
int PMPI_Info_get_string(MPI_Info info, const char *key, int *buflen, char *value, int *flag)
{
    const char *call = "MPI_Info_get_string", *v = NULL;
    char copy[MPI_MAX_INFO_VAL];
    int rc = look_up(call, info, key, flag, copy, &v);
    if (rc) return rc;
    if (!buflen) return bad_null(NULL, call, "buflen");
    if (*buflen < 0) return report(NULL, call, MPI_ERR_ARG, "argument buflen is %d, which is negative", *buflen);
    if (*buflen && !value) return bad_null(NULL, call, "value");
    *flag = v != NULL;
    if (!v) return MPI_SUCCESS;
    if (*buflen) snprintf(value, (size_t)*buflen, "%s", v);
    *buflen = (int)strlen(v) + 1; /* what it takes, whatever was there */
    return MPI_SUCCESS;
}

MPI_ALIAS(Info_get);
int PMPI_Info_get(MPI_Info info, const char *key, int valuelen, char *value, int *flag)
{
    const char *call = "MPI_Info_get", *v = NULL;
    char copy[MPI_MAX_INFO_VAL];
    int rc = look_up(call, info, key, flag, copy, &v);
    if (rc) return rc;
    if (valuelen < 0) return report(NULL, call, MPI_ERR_ARG, "argument valuelen is %d, which is negative", valuelen);
    if (!value) return report(NULL, call, MPI_ERR_INFO_VALUE, "argument value is NULL");
    *flag = v != NULL;
    if (v) snprintf(value, (size_t)valuelen + 1, "%s", v); /* the room for the end is not counted in valuelen */
    return MPI_SUCCESS;
}

MPI_ALIAS(Info_get_valuelen);
int PMPI_Info_get_valuelen(MPI_Info info, const char *key, int *valuelen, int *flag)
{
    const char *call = "MPI_Info_get_valuelen", *v = NULL;
    char copy[MPI_MAX_INFO_VAL];
    int rc = look_up(call, info, key, flag, copy, &v);
    if (rc) return rc;
    if (!valuelen) return bad_null(NULL, call, "valuelen");
    *flag = v != NULL;
    if (v) *valuelen = (int)strlen(v);
    return MPI_SUCCESS;
}

MPI_ALIAS(Info_get_nkeys);
int PMPI_Info_get_nkeys(MPI_Info info, int *nkeys)
{
    int rc = MPI_SUCCESS;
    struct info *i = object("MPI_Info_get_nkeys", info, &rc);
    if (!i) return rc;
    if (!nkeys) return bad_null(NULL, "MPI_Info_get_nkeys", "nkeys");
    handle_state_lock();
    *nkeys = i->n;
    handle_state_unlock();
    return MPI_SUCCESS;
}

MPI_ALIAS(Info_get_nthkey);
int PMPI_Info_get_nthkey(MPI_Info info, int n, char *key)
{
    int rc = MPI_SUCCESS;
    struct info *i = object("MPI_Info_get_nthkey", info, &rc);
    if (!i) return rc;
    if (!key) return bad_null(NULL, "MPI_Info_get_nthkey", "key");
    handle_state_lock();
    int keys = i->n;
    bool known = n >= 0 && n < keys;
    if (known) snprintf(key, MPI_MAX_INFO_KEY, "%s", i->pair[n].key);
    handle_state_unlock();
    if (known) return MPI_SUCCESS;
    return report(NULL, "MPI_Info_get_nthkey", MPI_ERR_ARG, "argument n is %d, but the info object has %d keys, from 0",
                  n, keys);
}
