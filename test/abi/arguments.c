/*
 * arguments.c - runs the generated calls, each with one wrong argument, and judges them: the error class that the kind of
 * argument has (MPI-5.0 section 9.4), words that name the argument, results left alone, handles null. See
 * maint/gen_argument_test.
 */
#include "arguments.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SLOTS = 20, SLOT_BYTES = 1024, PATTERN = 0xa5, SHOWN = 200, RANKS = 8, SECONDS = 50 };

int rank, size;
MPI_Comm comm, inter = MPI_COMM_NULL, cart, graph, dist, freed_comm;
MPI_Group group, freed_group;
MPI_Info info;
MPI_Session session;
MPI_Win win, dynamic_win, freed_win;
int keyval, type_keyval, win_keyval;
MPI_Message message = MPI_MESSAGE_NO_PROC;
MPI_Status status;
MPI_F08_status f08_status;
MPI_Fint fortran_status[MPI_F_STATUS_SIZE];
static int room[65];
int *const buffer = room + 1, *const before_buffer = room, other_buffer[64];
int ones[] = {1, 1, 1, 1, 1, 1, 1, 1}, ramp[] = {0, 1, 2, 3, 4, 5, 6, 7}, zeros[RANKS];
MPI_Count large_ones[] = {1, 1, 1, 1, 1, 1, 1, 1};
int minus_ones[] = {-1, -1, -1, -1, -1, -1, -1, -1};
MPI_Count large_minus_ones[] = {-1, -1, -1, -1, -1, -1, -1, -1};
int most[] = {INT_MAX, INT_MAX, INT_MAX, INT_MAX, INT_MAX, INT_MAX, INT_MAX, INT_MAX};
MPI_Count large_most[RANKS], share, shares[RANKS];
MPI_Datatype types[RANKS], bad_types[RANKS], committed, derived, freed_type, giant, giants[RANKS];
MPI_Op freed_op, user_op;
MPI_Errhandler freed_errhandler;

void user_function(void *in, void *inout, int *len, MPI_Datatype *type) { (void)in, (void)inout, (void)len, (void)type; }
void user_function_c(void *in, void *inout, MPI_Count *len, MPI_Datatype *type) { (void)in, (void)inout, (void)len, (void)type; }
void comm_handler(MPI_Comm *c, int *code, ...) { (void)c, (void)code; }
void session_handler(MPI_Session *s, int *code, ...) { (void)s, (void)code; }
void win_handler(MPI_Win *w, int *code, ...) { (void)w, (void)code; }

/* ---- judging ---- */

static _Alignas(16) unsigned char slots[SLOTS][SLOT_BYTES];
static void *nulls[SLOTS]; /* what a call that fails writes into a slot, if not NULL */
static const char *now; /* the function being tested */
static int judged, failed;

void *out(int i) { return slots[i]; }

void *none_made(int i, void *null)
{
    nulls[i] = null;
    return slots[i];
}

void begin(const char *function)
{
    now = function;
    memset(slots, PATTERN, sizeof slots);
    memset(nulls, 0, sizeof nulls);
}

/* Slots that have their null handle are as they were; false: one has not got it. */
static bool take_nulls(void)
{
    bool all = true;
    for (int i = 0; i < SLOTS; i++) {
        if (!nulls[i]) continue;
        all = all && !memcmp(slots[i], &nulls[i], sizeof nulls[i]);
        memset(slots[i], PATTERN, sizeof nulls[i]);
    }
    return all;
}

/* The first slot that was written to, -1 if none. */
static int touched(void)
{
    for (int i = 0; i < SLOTS; i++)
        for (int k = 0; k < SLOT_BYTES; k++)
            if (slots[i][k] != PATTERN) return i;
    return -1;
}

static void complain(const char *argument, const char *value, const char *what)
{
    if (failed++ < SHOWN) fprintf(stderr, "rank %d of %d: %s with %s = %s: %s\n", rank, size, now, argument, value, what);
}

static const char *class_name(int class)
{
    static char text[2][32], turn;
    turn ^= 1;
    snprintf(text[(int)turn], sizeof text[0], "%d", class);
    return text[(int)turn];
}

void judge(const char *argument, const char *value, int class, int code)
{
    char words[MPI_MAX_ERROR_STRING], what[MPI_MAX_ERROR_STRING + 100];
    bool nulled = take_nulls();
    int is = code, n = 0, slot = touched();
    judged++;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &is);
    if (is != class) {
        snprintf(what, sizeof what, "error class %s instead of %s", class_name(is), class_name(class));
        complain(argument, value, what);
        return;
    }
    if (slot >= 0) {
        snprintf(what, sizeof what, "result in argument %d was written", slot);
        complain(argument, value, what);
    }
    if (!nulled) complain(argument, value, "the handle of what was not made is not the null one");
    MPI_Error_string(code, words, &n);
    if (strstr(words, argument)) return;
    snprintf(what, sizeof what, "the words do not name the argument: %s", words);
    complain(argument, value, what);
}

/* ---- before and after ---- */

static void on_alarm(int signal)
{
    (void)signal;
    fprintf(stderr, "rank %d of %d: %s does not return\n", rank, size, now);
    _exit(1);
}

static void make_wrong(void)
{
    MPI_Comm c;
    MPI_Group g;
    MPI_Op op;
    MPI_Errhandler h;
    MPI_Datatype type;
    MPI_Comm_dup(MPI_COMM_SELF, &c);
    freed_comm = c;
    MPI_Comm_free(&c);
    MPI_Comm_group(MPI_COMM_SELF, &g);
    freed_group = g;
    MPI_Group_free(&g);
    MPI_Op_create(user_function, 1, &op);
    freed_op = op;
    MPI_Op_free(&op);
    MPI_Comm_create_errhandler(comm_handler, &h);
    freed_errhandler = h;
    MPI_Errhandler_free(&h);
    MPI_Type_contiguous(2, MPI_INT, &type);
    MPI_Type_contiguous(3, MPI_INT, &derived);
    freed_type = type;
    MPI_Type_free(&type);
}

static void make_right(void)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_group(comm, &group);
    MPI_Type_contiguous(2, MPI_INT, &committed);
    MPI_Type_commit(&committed);
    MPI_Info_create(&info);
    MPI_Info_set(info, "key", "value");
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &type_keyval, NULL);
    for (int i = 0; i < RANKS; i++) types[i] = MPI_INT, bad_types[i] = MPI_DATATYPE_NULL;
    MPI_Type_contiguous_c((MPI_Count)1 << 40, MPI_BYTE, &giant);
    MPI_Type_commit(&giant);
    share = ((MPI_Count)1 << 61) / size + 1;
    for (int i = 0; i < RANKS; i++) giants[i] = giant, large_most[i] = INT64_MAX, shares[i] = share;
    if (size == 2) MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 1 - rank, 1, &inter);
}

static void make_topologies(void)
{
    MPI_Cart_create(MPI_COMM_SELF, 1, ones, zeros, 0, &cart);
    MPI_Graph_create(MPI_COMM_SELF, 1, ones, zeros, 0, &graph);
    MPI_Dist_graph_create_adjacent(comm, 1, zeros, MPI_UNWEIGHTED, 1, zeros, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &dist);
}

static void make_windows(void)
{
    MPI_Win w;
    MPI_Win_create(buffer, 64 * sizeof *buffer, 1, MPI_INFO_NULL, comm, &win);
    MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &dynamic_win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_set_errhandler(dynamic_win, MPI_ERRORS_RETURN);
    MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_SELF, &w);
    freed_win = w;
    MPI_Win_free(&w);
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &win_keyval, NULL);
    MPI_Op_create(user_function, 1, &user_op);
}

static void clean_up(void)
{
    MPI_Win_free(&win);
    MPI_Win_free(&dynamic_win);
    MPI_Win_free_keyval(&win_keyval);
    MPI_Op_free(&user_op);
    MPI_Comm_free(&cart);
    MPI_Comm_free(&graph);
    MPI_Comm_free(&dist);
    if (inter != MPI_COMM_NULL) MPI_Comm_free(&inter);
    MPI_Comm_free_keyval(&keyval);
    MPI_Type_free_keyval(&type_keyval);
    MPI_Info_free(&info);
    MPI_Session_finalize(&session);
    MPI_Type_free(&committed);
    MPI_Type_free(&derived);
    MPI_Type_free(&giant);
    MPI_Group_free(&group);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    signal(SIGALRM, on_alarm);
    alarm(SECONDS);
    make_right();
    make_topologies();
    make_windows();
    make_wrong();
    for (int i = 0; i < n_tests; i++) tests[i]();
    int mine[2] = {judged, failed}, all[2];
    MPI_Allreduce(mine, all, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("functions: %d, pairs: %d, calls judged: %d, failed: %d\n", n_tests, n_pairs, all[0], all[1]);
    clean_up();
    MPI_Finalize();
    return all[1] != 0 || all[0] == 0;
}
