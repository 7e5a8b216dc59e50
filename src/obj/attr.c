/* attr.c - keys, values and callbacks of attributes; see attr.h. */
#include "obj/attr.h"
#include "base/err.h"

#include <pthread.h>
#include <stdlib.h>

#define FIRST_KEY 0x10000 /* above all values that the standard's binary interface gives a meaning */

struct key {
    enum attr_kind kind;
    attr_fn *copy, *delete;
    void *extra;
    int value; /* the user's */
    int uses;  /* values stored under it */
    bool freed;
};

struct attr {
    struct attr *next; /* older */
    struct key *key;
    void *value;
};

static struct key **keys;
static int key_room;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- keys ---- */

static struct key *find_key(enum attr_kind kind, int keyval)
{
    int i = keyval - FIRST_KEY;
    struct key *k = i >= 0 && i < key_room ? keys[i] : NULL;
    return k && k->kind == kind ? k : NULL; /* a freed one, too, as long as values are stored under it (7.7.2) */
}

static int no_key(enum attr_kind kind, int keyval)
{
    static const char *const argument[] = {[ATTR_COMM] = "comm_keyval", [ATTR_TYPE] = "type_keyval", [ATTR_WIN] = "win_keyval"};
    if (keyval == MPI_KEYVAL_INVALID) return err_set(TERN_ERR_KEYVAL, "argument %s is MPI_KEYVAL_INVALID", argument[kind]);
    return err_set(TERN_ERR_KEYVAL, "argument %s is %d, which was not made for this kind of object, or was freed", argument[kind], keyval);
}

/* A free place in the table; -1 when memory is out. */
static int find_place(void)
{
    for (int i = 0; i < key_room; i++)
        if (!keys[i]) return i;
    int old = key_room, room = old ? 2 * old : 16;
    struct key **more = realloc(keys, (size_t)room * sizeof *more);
    if (!more) return -1;
    for (int i = old; i < room; i++) more[i] = NULL;
    keys = more;
    key_room = room;
    return old;
}

int attr_key_new(enum attr_kind kind, attr_fn *copy, attr_fn *delete, void *extra, int *keyval_p)
{
    struct key *k = malloc(sizeof *k);
    pthread_mutex_lock(&lock);
    int i = k ? find_place() : -1;
    if (i >= 0) {
        *k = (struct key){.kind = kind, .copy = copy, .delete = delete, .extra = extra, .value = FIRST_KEY + i};
        keys[i] = k;
    }
    pthread_mutex_unlock(&lock);
    if (i < 0) {
        free(k);
        return err_set(TERN_ERR_NOMEM, "no memory for an attribute key");
    }
    *keyval_p = FIRST_KEY + i;
    return 0;
}

static void drop_unused(struct key *k)
{
    if (!k->freed || k->uses) return;
    keys[k->value - FIRST_KEY] = NULL;
    free(k);
}

int attr_key_free(enum attr_kind kind, int keyval)
{
    pthread_mutex_lock(&lock);
    struct key *k = find_key(kind, keyval);
    if (k) {
        k->freed = true;
        drop_unused(k);
    }
    pthread_mutex_unlock(&lock);
    return k ? 0 : no_key(kind, keyval);
}

/* ---- callbacks ---- */

static int call_copy(const struct key *k, void *handle, void *in, void **out, int *flag)
{
    if (k->copy == ATTR_NULL_FN) return 0;
    if (k->copy == ATTR_DUP_FN) {
        *out = in;
        *flag = 1;
        return 0;
    }
    switch (k->kind) {
    case ATTR_COMM: return ((MPI_Comm_copy_attr_function *)k->copy)(handle, k->value, k->extra, in, out, flag);
    case ATTR_TYPE: return ((MPI_Type_copy_attr_function *)k->copy)(handle, k->value, k->extra, in, out, flag);
    case ATTR_WIN: break;
    }
    return ((MPI_Win_copy_attr_function *)k->copy)(handle, k->value, k->extra, in, out, flag);
}

static int call_delete(const struct key *k, void *handle, void *value)
{
    if (k->delete == ATTR_NULL_FN) return 0;
    switch (k->kind) {
    case ATTR_COMM: return ((MPI_Comm_delete_attr_function *)k->delete)(handle, k->value, value, k->extra);
    case ATTR_TYPE: return ((MPI_Type_delete_attr_function *)k->delete)(handle, k->value, value, k->extra);
    case ATTR_WIN: break;
    }
    return ((MPI_Win_delete_attr_function *)k->delete)(handle, k->value, value, k->extra);
}

/* ---- values ---- */

/* Where the list points to the value under `k`, or to its end. Lock held. */
static struct attr **find(void **list, const struct key *k)
{
    struct attr **at = (struct attr **)list;
    while (*at && (*at)->key != k) at = &(*at)->next;
    return at;
}

/* Takes `a` out of the list after its callback agreed; a list that changed meanwhile is looked through again. */
static int remove_attr(const struct attr_object *o, struct attr *a)
{
    int rc = call_delete(a->key, o->handle, a->value);
    if (rc) return rc;
    pthread_mutex_lock(&lock);
    struct attr **at = (struct attr **)o->list;
    while (*at && *at != a) at = &(*at)->next;
    if (*at) {
        *at = a->next;
        a->key->uses--;
        drop_unused(a->key);
        free(a);
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

static struct attr *look(const struct attr_object *o, int keyval, struct key **key_p)
{
    pthread_mutex_lock(&lock);
    *key_p = find_key(o->kind, keyval);
    struct attr *a = *key_p ? *find(o->list, *key_p) : NULL;
    pthread_mutex_unlock(&lock);
    return a;
}

static int insert(const struct attr_object *o, struct key *k, void *value)
{
    struct attr *a = malloc(sizeof *a);
    if (!a) return err_set(TERN_ERR_NOMEM, "no memory for an attribute");
    pthread_mutex_lock(&lock);
    *a = (struct attr){*o->list, k, value};
    *o->list = a;
    k->uses++;
    pthread_mutex_unlock(&lock);
    return 0;
}

int attr_set(const struct attr_object *o, int keyval, void *value)
{
    struct key *k;
    struct attr *a = look(o, keyval, &k);
    if (!k || k->freed) return no_key(o->kind, keyval);
    int rc = a ? call_delete(k, o->handle, a->value) : 0;
    if (rc) return rc;
    a = look(o, keyval, &k); /* the callback may have done anything */
    if (!k) return no_key(o->kind, keyval);
    if (!a) return insert(o, k, value);
    a->value = value;
    return 0;
}

int attr_get(const struct attr_object *o, int keyval, void **value_p, bool *found_p)
{
    struct key *k;
    struct attr *a = look(o, keyval, &k);
    if (!k) return no_key(o->kind, keyval);
    *found_p = a != NULL;
    if (a) *value_p = a->value;
    return 0;
}

int attr_delete(const struct attr_object *o, int keyval)
{
    struct key *k;
    struct attr *a = look(o, keyval, &k);
    if (!k) return no_key(o->kind, keyval);
    if (!a) return err_set(TERN_ERR_KEYVAL, "the object has no attribute under key %d", keyval);
    return remove_attr(o, a);
}

int attr_delete_all(const struct attr_object *o)
{
    while (*o->list) {
        int rc = remove_attr(o, *o->list);
        if (rc) return rc;
    }
    return 0;
}

/* From the oldest on: the list has the newest in front. */
static int copy_from(const struct attr *a, const struct attr_object *from, const struct attr_object *to)
{
    if (!a) return 0;
    int rc = copy_from(a->next, from, to), flag = 0;
    void *value = NULL;
    if (!rc) rc = call_copy(a->key, from->handle, a->value, &value, &flag);
    return rc || !flag ? rc : insert(to, a->key, value);
}

int attr_copy_all(const struct attr_object *from, const struct attr_object *to) { return copy_from(*from->list, from, to); }

void attr_drop(void **list)
{
    for (struct attr *a = *list, *next; a; a = next) {
        next = a->next;
        a->key->uses--;
        drop_unused(a->key);
        free(a);
    }
    *list = NULL;
}

void attr_close(void)
{
    for (int i = 0; i < key_room; i++) free(keys[i]);
    free(keys);
    keys = NULL;
    key_room = 0;
}
