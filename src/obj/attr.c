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
    bool found = k != NULL;
    if (found) {
        k->freed = true;
        drop_unused(k);
    }
    pthread_mutex_unlock(&lock);
    return found ? 0 : no_key(kind, keyval);
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

/*
 * ---- values ----
 *
 * A value is deleted by its callback first and taken away or replaced then. While the callback runs, the lock is free,
 * others see the old value, and a thread that wants to change it, too, waits: a value is deleted once. What the
 * callback itself does to it is let through.
 */

/* A callback at work; on the stack of its thread. */
struct change {
    struct change *next;
    void **list;
    const struct key *key;
    pthread_t by;
};
static struct change *changes;
static pthread_cond_t change_over = PTHREAD_COND_INITIALIZER;

static bool another_changes(void **list, const struct key *k)
{
    for (const struct change *c = changes; c; c = c->next)
        if (c->list == list && c->key == k && !pthread_equal(c->by, pthread_self())) return true;
    return false;
}

/* Where the list points to the value under `k`, or to its end. Lock held. */
static struct attr **find(void **list, const struct key *k)
{
    struct attr **at = (struct attr **)list;
    while (*at && (*at)->key != k) at = &(*at)->next;
    return at;
}

static void use(struct key *k) { k->uses++; }

static void use_no_more(struct key *k)
{
    k->uses--;
    drop_unused(k);
}

/* The key, which the caller uses from now on, when no other thread changes the value under it; NULL: there is none.
 * Lock held, but not while others are waited for. */
static struct key *await_turn(const struct attr_object *o, int keyval)
{
    struct key *k;
    while ((k = find_key(o->kind, keyval)) && another_changes(o->list, k)) pthread_cond_wait(&change_over, &lock);
    if (k) use(k);
    return k;
}

/* Runs the callback for the value under `k`, if there is one. Lock held, but not meanwhile; the key is in use. */
static int delete_value(const struct attr_object *o, struct key *k)
{
    struct attr *a = *find(o->list, k);
    if (!a) return 0;
    struct change mine = {changes, o->list, k, pthread_self()};
    changes = &mine;
    void *value = a->value;
    pthread_mutex_unlock(&lock);
    int rc = call_delete(k, o->handle, value);
    pthread_mutex_lock(&lock);
    struct change **at = &changes;
    while (*at != &mine) at = &(*at)->next;
    *at = mine.next;
    pthread_cond_broadcast(&change_over);
    return rc;
}

/* Lock held, as for the next two. */
static int insert(void **list, struct key *k, void *value)
{
    struct attr *a = malloc(sizeof *a);
    if (!a) return err_set(TERN_ERR_NOMEM, "no memory for an attribute");
    *a = (struct attr){*list, k, value};
    *list = a;
    use(k);
    return 0;
}

/* The callback before may have done anything: what it has left is replaced. */
static int store(const struct attr_object *o, struct key *k, void *value)
{
    struct attr *a = *find(o->list, k);
    if (!a && k->freed) return no_key(o->kind, k->value);
    if (!a) return insert(o->list, k, value);
    a->value = value;
    return 0;
}

static void take_out(void **list, struct key *k)
{
    struct attr **at = find(list, k), *a = *at;
    if (!a) return;
    *at = a->next;
    free(a);
    k->uses--; /* not the last use: the caller's */
}

static int set(const struct attr_object *o, int keyval, void *value)
{
    struct key *k = await_turn(o, keyval);
    if (!k) return no_key(o->kind, keyval);
    int rc = k->freed ? no_key(o->kind, keyval) : delete_value(o, k);
    if (!rc) rc = store(o, k, value);
    use_no_more(k);
    return rc;
}

int attr_set(const struct attr_object *o, int keyval, void *value)
{
    pthread_mutex_lock(&lock);
    int rc = set(o, keyval, value);
    pthread_mutex_unlock(&lock);
    return rc;
}

int attr_get(const struct attr_object *o, int keyval, void **value_p, bool *found_p)
{
    pthread_mutex_lock(&lock);
    struct key *k = find_key(o->kind, keyval);
    struct attr *a = k ? *find(o->list, k) : NULL;
    if (k) *found_p = a != NULL;
    if (a) *value_p = a->value;
    pthread_mutex_unlock(&lock);
    return k ? 0 : no_key(o->kind, keyval);
}

static int remove_value(const struct attr_object *o, int keyval)
{
    struct key *k = await_turn(o, keyval);
    if (!k) return no_key(o->kind, keyval);
    bool found = *find(o->list, k);
    int rc = delete_value(o, k);
    if (!rc) take_out(o->list, k);
    use_no_more(k);
    return found ? rc : err_set(TERN_ERR_KEYVAL, "the object has no attribute under key %d", keyval);
}

int attr_delete(const struct attr_object *o, int keyval)
{
    pthread_mutex_lock(&lock);
    int rc = remove_value(o, keyval);
    pthread_mutex_unlock(&lock);
    return rc;
}

int attr_delete_all(const struct attr_object *o)
{
    int rc = 0;
    pthread_mutex_lock(&lock);
    while (!rc && *o->list) rc = remove_value(o, ((struct attr *)*o->list)->key->value);
    pthread_mutex_unlock(&lock);
    return rc;
}

/* ---- copies ---- */

/* The values of a list, the oldest first, and how many; their keys are in use. NULL when memory is out. Lock held. */
static struct attr *copy_list(void **list, int *n_p)
{
    int n = 0;
    for (struct attr *a = *list; a; a = a->next) n++;
    struct attr *copy = malloc(((size_t)n + 1) * sizeof *copy);
    *n_p = copy ? n : 0;
    for (struct attr *a = *list; a && copy; a = a->next) {
        use(a->key);
        copy[--n] = *a;
    }
    return copy;
}

/* Lock held, but not while the callback runs. */
static int copy_value(const struct attr *a, const struct attr_object *from, const struct attr_object *to)
{
    int flag = 0;
    void *value = NULL;
    pthread_mutex_unlock(&lock);
    int rc = call_copy(a->key, from->handle, a->value, &value, &flag);
    pthread_mutex_lock(&lock);
    return rc || !flag ? rc : insert(to->list, a->key, value);
}

int attr_copy_all(const struct attr_object *from, const struct attr_object *to)
{
    int n;
    pthread_mutex_lock(&lock);
    struct attr *all = copy_list(from->list, &n);
    int rc = all ? 0 : err_set(TERN_ERR_NOMEM, "no memory to copy attributes");
    for (int i = 0; i < n; i++) {
        if (!rc) rc = copy_value(&all[i], from, to);
        use_no_more(all[i].key);
    }
    pthread_mutex_unlock(&lock);
    free(all);
    return rc;
}

void attr_drop(void **list)
{
    pthread_mutex_lock(&lock);
    for (struct attr *a = *list, *next; a; a = next) {
        next = a->next;
        use_no_more(a->key);
        free(a);
    }
    *list = NULL;
    pthread_mutex_unlock(&lock);
}

void attr_close(void)
{
    for (int i = 0; i < key_room; i++) free(keys[i]);
    free(keys);
    keys = NULL;
    key_room = 0;
}
