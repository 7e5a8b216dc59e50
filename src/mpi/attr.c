/*
 * attr.c - entry points: attributes of communicators, datatypes and windows
 * (MPI-5.0 section 7.7), and the ones that the library itself gives to communicators
 * (9.1.2, 11.10) and windows (12.2.6).
 */
#include "mpi/attr.h"
#include "mpi/winargs.h"
#include "obj/attr.h"
#include "obj/errcode.h"
#include "proc/proc.h"

#include <pthread.h>
#include <stdio.h>

static struct attr_object of_comm(struct comm *c) { return (struct attr_object){ATTR_COMM, comm_handle(c), &c->attrs}; }
static struct attr_object of_type(struct type *t) { return (struct attr_object){ATTR_TYPE, type_handle(t), &t->attributes}; }

static struct attr_object of_win(struct win *w) { return (struct attr_object){ATTR_WIN, win_handle(w), &w->attrs}; }

/* A positive code is what the user's callback returned, which is the call's result. */
int report_attr(const void *on, const char *call, int rc)
{
    if (rc > 0) return report(on, call, rc, "an attribute's callback returned %d", rc);
    return report_if(on, call, rc);
}

int comm_attrs_copy(struct comm *from, struct comm *to)
{
    struct attr_object a = of_comm(from), b = of_comm(to);
    return attr_copy_all(&a, &b);
}

int comm_attrs_delete(struct comm *c)
{
    struct attr_object o = of_comm(c);
    return attr_delete_all(&o);
}

int type_attrs_copy(struct type *from, struct type *to)
{
    struct attr_object a = of_type(from), b = of_type(to);
    return attr_copy_all(&a, &b);
}

int type_attrs_delete(struct type *t)
{
    struct attr_object o = of_type(t);
    return attr_delete_all(&o);
}

int win_attrs_delete(struct win *w)
{
    struct attr_object o = of_win(w);
    return attr_delete_all(&o);
}

static void comm_gone(struct comm *c) { attr_drop(&c->attrs); }

void attrs_open(void)
{
    static const struct comm_hooks hooks = {.gone = comm_gone};
    comm_set_hooks(2, &hooks);
}

void attrs_close(void)
{
    comm_set_hooks(2, NULL);
    attr_close();
}

/* ---- keys ---- */

static const char *const argument[] = {[ATTR_COMM] = "comm_keyval", [ATTR_TYPE] = "type_keyval", [ATTR_WIN] = "win_keyval"};

static int new_key(const char *call, enum attr_kind kind, attr_fn *copy, attr_fn *delete, int *keyval, void *extra)
{
    check_running(call);
    if (!keyval) return bad_null(NULL, call, argument[kind]);
    return report_if(NULL, call, attr_key_new(kind, copy, delete, extra, keyval));
}

static int free_key(const char *call, enum attr_kind kind, int *keyval)
{
    check_running(call);
    if (!keyval) return bad_null(NULL, call, argument[kind]);
    int rc = attr_key_free(kind, *keyval);
    if (rc) return report_code(NULL, call, rc);
    *keyval = MPI_KEYVAL_INVALID;
    return MPI_SUCCESS;
}

MPI_ALIAS(Comm_create_keyval);
int PMPI_Comm_create_keyval(MPI_Comm_copy_attr_function *comm_copy_attr_fn, MPI_Comm_delete_attr_function *comm_delete_attr_fn,
                            int *comm_keyval, void *extra_state)
{
    return new_key("MPI_Comm_create_keyval", ATTR_COMM, (attr_fn *)comm_copy_attr_fn, (attr_fn *)comm_delete_attr_fn,
                   comm_keyval, extra_state);
}

MPI_ALIAS(Comm_free_keyval);
int PMPI_Comm_free_keyval(int *comm_keyval) { return free_key("MPI_Comm_free_keyval", ATTR_COMM, comm_keyval); }

MPI_ALIAS(Keyval_create);
int PMPI_Keyval_create(MPI_Copy_function *copy_fn, MPI_Delete_function *delete_fn, int *keyval, void *extra_state)
{
    return new_key("MPI_Keyval_create", ATTR_COMM, (attr_fn *)copy_fn, (attr_fn *)delete_fn, keyval, extra_state);
}

MPI_ALIAS(Keyval_free);
int PMPI_Keyval_free(int *keyval) { return free_key("MPI_Keyval_free", ATTR_COMM, keyval); }

MPI_ALIAS(Type_create_keyval);
int PMPI_Type_create_keyval(MPI_Type_copy_attr_function *type_copy_attr_fn, MPI_Type_delete_attr_function *type_delete_attr_fn,
                            int *type_keyval, void *extra_state)
{
    return new_key("MPI_Type_create_keyval", ATTR_TYPE, (attr_fn *)type_copy_attr_fn, (attr_fn *)type_delete_attr_fn,
                   type_keyval, extra_state);
}

MPI_ALIAS(Type_free_keyval);
int PMPI_Type_free_keyval(int *type_keyval) { return free_key("MPI_Type_free_keyval", ATTR_TYPE, type_keyval); }

MPI_ALIAS(Win_create_keyval);
int PMPI_Win_create_keyval(MPI_Win_copy_attr_function *win_copy_attr_fn, MPI_Win_delete_attr_function *win_delete_attr_fn,
                           int *win_keyval, void *extra_state)
{
    return new_key("MPI_Win_create_keyval", ATTR_WIN, (attr_fn *)win_copy_attr_fn, (attr_fn *)win_delete_attr_fn, win_keyval,
                   extra_state);
}

MPI_ALIAS(Win_free_keyval);
int PMPI_Win_free_keyval(int *win_keyval) { return free_key("MPI_Win_free_keyval", ATTR_WIN, win_keyval); }

/* ---- the library's own attributes: the user gets the address of an int ---- */

static int tag_ub = INT32_MAX, host = MPI_PROC_NULL, io = MPI_ANY_SOURCE;
static int wtime_is_global, appnum, universe; /* by find_out */

/* Is the monotonic clock that of the kernel, and not shifted by a time namespace of this process's? */
static bool clock_is_the_kernels(void)
{
    FILE *f = fopen("/proc/self/timens_offsets", "re");
    long long s = 0, ns = 0;
    if (!f) return true; /* a kernel without such namespaces */
    int n = fscanf(f, "monotonic %lld %lld", &s, &ns);
    fclose(f);
    return n < 2 || (s == 0 && ns == 0);
}

static void find_out(void)
{
    const struct proc_info *me = proc_self();
    wtime_is_global = me->size == 1 || (me->nodes == 1 && clock_is_the_kernels()); /* all ranks read one clock */
    appnum = me->appnum == PROC_NO_APPNUM ? -1 : (int)me->appnum;
    universe = (int)me->universe;
}

/* The value of a predefined key; NULL if it has none here. */
static int *predefined(int keyval)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_out);
    switch (keyval) {
    case MPI_TAG_UB: return &tag_ub;
    case MPI_HOST: return &host;
    case MPI_IO: return &io;
    case MPI_WTIME_IS_GLOBAL: return &wtime_is_global;
    case MPI_LASTUSEDCODE: return errcode_last();
    case MPI_APPNUM: return appnum >= 0 ? &appnum : NULL;
    case MPI_UNIVERSE_SIZE: return universe ? &universe : NULL;
    }
    return NULL;
}

static bool is_predefined(int keyval) { return keyval >= MPI_TAG_UB && keyval <= MPI_UNIVERSE_SIZE; }

static int read_only(const void *on, const char *call, int keyval)
{
    return report(on, call, MPI_ERR_KEYVAL, "key %d is one of the library's own, which users cannot change", keyval);
}

static int get(const void *on, const char *call, const struct attr_object *o, int keyval, void *value, int *flag)
{
    void *found_value;
    bool found;
    if (!value || !flag) return bad_null(on, call, value ? "flag" : "attribute_val");
    if (o->kind == ATTR_COMM && is_predefined(keyval)) {
        found_value = predefined(keyval);
        found = found_value != NULL;
    } else {
        int rc = attr_get(o, keyval, &found_value, &found);
        if (rc) return report_code(on, call, rc);
    }
    *flag = found;
    if (found) *(void **)value = found_value;
    return MPI_SUCCESS;
}

static int comm_get(const char *call, MPI_Comm comm, int keyval, void *value, int *flag)
{
    struct comm *c = comm_of_local(comm);
    if (!c) return bad_comm(call, comm);
    struct attr_object o = of_comm(c);
    return get(c, call, &o, keyval, value, flag);
}

static int comm_set(const char *call, MPI_Comm comm, int keyval, void *value)
{
    struct comm *c = comm_of_local(comm);
    if (!c) return bad_comm(call, comm);
    if (is_predefined(keyval)) return read_only(c, call, keyval);
    struct attr_object o = of_comm(c);
    return report_attr(c, call, attr_set(&o, keyval, value));
}

static int comm_delete(const char *call, MPI_Comm comm, int keyval)
{
    struct comm *c = comm_of_local(comm);
    if (!c) return bad_comm(call, comm);
    if (is_predefined(keyval)) return read_only(c, call, keyval);
    struct attr_object o = of_comm(c);
    return report_attr(c, call, attr_delete(&o, keyval));
}

MPI_ALIAS(Comm_get_attr);
int PMPI_Comm_get_attr(MPI_Comm comm, int comm_keyval, void *attribute_val, int *flag)
{
    return comm_get("MPI_Comm_get_attr", comm, comm_keyval, attribute_val, flag);
}

MPI_ALIAS(Comm_set_attr);
int PMPI_Comm_set_attr(MPI_Comm comm, int comm_keyval, void *attribute_val)
{
    return comm_set("MPI_Comm_set_attr", comm, comm_keyval, attribute_val);
}

MPI_ALIAS(Comm_delete_attr);
int PMPI_Comm_delete_attr(MPI_Comm comm, int comm_keyval) { return comm_delete("MPI_Comm_delete_attr", comm, comm_keyval); }

MPI_ALIAS(Attr_get);
int PMPI_Attr_get(MPI_Comm comm, int keyval, void *attribute_val, int *flag)
{
    return comm_get("MPI_Attr_get", comm, keyval, attribute_val, flag);
}

MPI_ALIAS(Attr_put);
int PMPI_Attr_put(MPI_Comm comm, int keyval, void *attribute_val)
{
    return comm_set("MPI_Attr_put", comm, keyval, attribute_val);
}

MPI_ALIAS(Attr_delete);
int PMPI_Attr_delete(MPI_Comm comm, int keyval) { return comm_delete("MPI_Attr_delete", comm, keyval); }

/* ---- datatypes ---- */

MPI_ALIAS(Type_get_attr);
int PMPI_Type_get_attr(MPI_Datatype datatype, int type_keyval, void *attribute_val, int *flag)
{
    struct type *t = type_of(datatype);
    if (!t) return bad_type(NULL, "MPI_Type_get_attr", datatype, "datatype");
    struct attr_object o = of_type(t);
    return get(NULL, "MPI_Type_get_attr", &o, type_keyval, attribute_val, flag);
}

MPI_ALIAS(Type_set_attr);
int PMPI_Type_set_attr(MPI_Datatype datatype, int type_keyval, void *attribute_val)
{
    struct type *t = type_of(datatype);
    if (!t) return bad_type(NULL, "MPI_Type_set_attr", datatype, "datatype");
    struct attr_object o = of_type(t);
    return report_attr(NULL, "MPI_Type_set_attr", attr_set(&o, type_keyval, attribute_val));
}

MPI_ALIAS(Type_delete_attr);
int PMPI_Type_delete_attr(MPI_Datatype datatype, int type_keyval)
{
    struct type *t = type_of(datatype);
    if (!t) return bad_type(NULL, "MPI_Type_delete_attr", datatype, "datatype");
    struct attr_object o = of_type(t);
    return report_attr(NULL, "MPI_Type_delete_attr", attr_delete(&o, type_keyval));
}

/* ---- windows ---- */

/* The value of a predefined key; NULL: it is none. */
static void *win_predefined(struct win *w, int keyval)
{
    switch (keyval) {
    case MPI_WIN_BASE: return w->base;
    case MPI_WIN_SIZE: return &w->bytes;
    case MPI_WIN_DISP_UNIT: return &w->unit_int;
    case MPI_WIN_CREATE_FLAVOR: return &w->flavor;
    case MPI_WIN_MODEL: return &w->model;
    }
    return NULL;
}

static bool is_of_windows(int keyval)
{
    return keyval == MPI_WIN_BASE || keyval == MPI_WIN_SIZE || keyval == MPI_WIN_DISP_UNIT || keyval == MPI_WIN_CREATE_FLAVOR ||
           keyval == MPI_WIN_MODEL;
}

MPI_ALIAS(Win_get_attr);
int PMPI_Win_get_attr(MPI_Win win, int win_keyval, void *attribute_val, int *flag)
{
    const char *call = "MPI_Win_get_attr";
    struct win *w = win_of(win);
    if (!w) return bad_win(call, win);
    struct attr_object o = of_win(w);
    if (!attribute_val || !flag || !is_of_windows(win_keyval)) return get(w, call, &o, win_keyval, attribute_val, flag);
    *(void **)attribute_val = win_predefined(w, win_keyval);
    *flag = 1;
    return MPI_SUCCESS;
}

MPI_ALIAS(Win_set_attr);
int PMPI_Win_set_attr(MPI_Win win, int win_keyval, void *attribute_val)
{
    struct win *w = win_of(win);
    if (!w) return bad_win("MPI_Win_set_attr", win);
    if (is_of_windows(win_keyval)) return read_only(w, "MPI_Win_set_attr", win_keyval);
    struct attr_object o = of_win(w);
    return report_attr(w, "MPI_Win_set_attr", attr_set(&o, win_keyval, attribute_val));
}

MPI_ALIAS(Win_delete_attr);
int PMPI_Win_delete_attr(MPI_Win win, int win_keyval)
{
    struct win *w = win_of(win);
    if (!w) return bad_win("MPI_Win_delete_attr", win);
    if (is_of_windows(win_keyval)) return read_only(w, "MPI_Win_delete_attr", win_keyval);
    struct attr_object o = of_win(w);
    return report_attr(w, "MPI_Win_delete_attr", attr_delete(&o, win_keyval));
}
