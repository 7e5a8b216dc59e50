/*
 * mismatch.c - with TERN_CHECK=types a receive whose types are not those of what was sent fails with MPI_ERR_TYPE,
 * in words that name both sides; whatever matches goes through (MPI-5.0 section 3.3.1).
 */
#include "../check.h"

enum { LARGE = 200000 };
static double source[LARGE], target[LARGE];

static int comm_mode; /* how it is sent and received: see ways */
static const char *const ways[] = {"eager, unexpected", "eager, expected", "synchronous", "nonblocking", "large", "probed"};

/* One message of rank 1 to rank 0; the receive's code in rank 0, the words in `words`. */
static int transfer(int scount, MPI_Datatype stype, int rcount, MPI_Datatype rtype, char *words)
{
    int token = 0, rc = MPI_SUCCESS, len;
    MPI_Status st;
    MPI_Request req;
    *words = 0;
    if (check_rank == 1) {
        if (comm_mode == 1) MPI_Recv(&token, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, &st);
        if (comm_mode == 2) CHECK_OK(MPI_Ssend(source, scount, stype, 0, 1, MPI_COMM_WORLD));
        else CHECK_OK(MPI_Send(source, scount, stype, 0, 1, MPI_COMM_WORLD));
        if (comm_mode == 0) MPI_Send(&token, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
    } else if (check_rank == 0) {
        if (comm_mode == 0) MPI_Recv(&token, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &st);
        if (comm_mode == 1 || comm_mode == 3) {
            MPI_Irecv(target, rcount, rtype, 1, 1, MPI_COMM_WORLD, &req);
            if (comm_mode == 1) MPI_Send(&token, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
            rc = MPI_Wait(&req, &st);
        } else if (comm_mode == 5) {
            MPI_Message m;
            MPI_Mprobe(1, 1, MPI_COMM_WORLD, &m, &st);
            rc = MPI_Mrecv(target, rcount, rtype, &m, &st);
        } else {
            rc = MPI_Recv(target, rcount, rtype, 1, 1, MPI_COMM_WORLD, &st);
        }
        if (rc) MPI_Error_string(rc, words, &len);
    }
    return rc;
}

static void fails(int scount, MPI_Datatype stype, int rcount, MPI_Datatype rtype, int class, const char *sender, const char *receiver)
{
    char words[MPI_MAX_ERROR_STRING];
    int rc = transfer(scount, stype, rcount, rtype, words), is = MPI_SUCCESS;
    if (check_rank) return;
    if (rc) MPI_Error_class(rc, &is);
    CHECK(is == class, "%s: class %d: %s", ways[comm_mode], is, words);
    CHECK(strstr(words, sender) && strstr(words, receiver), "%s: the words are: %s", ways[comm_mode], words);
}

static void passes(int scount, MPI_Datatype stype, int rcount, MPI_Datatype rtype)
{
    char words[MPI_MAX_ERROR_STRING];
    int rc = transfer(scount, stype, rcount, rtype, words);
    CHECK(!rc, "%s: %s", ways[comm_mode], words);
}

static void small(void)
{
    MPI_Datatype pair, floats, members[2] = {MPI_INT, MPI_DOUBLE};
    MPI_Aint at[2] = {0, 8};
    MPI_Type_create_struct(2, (int[]){1, 1}, at, members, &pair);
    MPI_Type_vector(2, 2, 3, MPI_FLOAT, &floats);
    MPI_Type_commit(&pair);
    MPI_Type_commit(&floats);
    fails(3, MPI_INT, 3, MPI_FLOAT, MPI_ERR_TYPE, "rank 1 sent 3 of MPI_INT", "3 of MPI_FLOAT (tag 1)");
    fails(2, MPI_INT, 10, MPI_DOUBLE, MPI_ERR_TYPE, "2 of MPI_INT", "10 of MPI_DOUBLE");
    fails(8, MPI_CHAR, 2, MPI_INT, MPI_ERR_TYPE, "8 of MPI_CHAR", "2 of MPI_INT");
    fails(1, pair, 4, MPI_INT, MPI_ERR_TYPE, "1 of a type of 2 elements", "4 of MPI_INT");
    fails(1, floats, 8, MPI_INT, MPI_ERR_TYPE, "1 of a type made of MPI_FLOAT", "8 of MPI_INT");
    fails(5, MPI_INT, 4, MPI_INT, MPI_ERR_TRUNCATE, "", "");
    passes(3, MPI_INT, 10, MPI_INT);
    passes(0, MPI_INT, 10, MPI_DOUBLE);
    passes(1, MPI_INT, 1, pair); /* a beginning matches */
    passes(1, floats, 4, MPI_FLOAT);
    passes(12, MPI_BYTE, 3, MPI_INT); /* bytes match anything */
    passes(1, MPI_2INT, 2, MPI_INT);
    MPI_Type_free(&pair);
    MPI_Type_free(&floats);
}

static void large(void)
{
    MPI_Datatype gaps;
    MPI_Type_vector(LARGE / 2, 1, 2, MPI_DOUBLE, &gaps);
    MPI_Type_commit(&gaps);
    fails(LARGE, MPI_DOUBLE, LARGE, MPI_LONG, MPI_ERR_TYPE, "200000 of MPI_DOUBLE", "200000 of MPI_LONG");
    fails(LARGE / 2, MPI_LONG, 1, gaps, MPI_ERR_TYPE, "100000 of MPI_LONG", "1 of a type made of MPI_DOUBLE");
    passes(LARGE / 2, MPI_DOUBLE, 1, gaps);
    passes(1, gaps, LARGE, MPI_DOUBLE);
    MPI_Type_free(&gaps);
}

/* Ranks that disagree in a collective are told, too. */
static void collective(void)
{
    int len;
    char words[MPI_MAX_ERROR_STRING] = "";
    int rc = MPI_Bcast(source, 2, check_rank ? MPI_INT : MPI_FLOAT, 0, MPI_COMM_WORLD);
    if (rc) MPI_Error_string(rc, words, &len);
    if (check_rank == 1) CHECK(strstr(words, "inside a collective operation"), "code %d: %s", rc, words);
    CHECK_OK(MPI_Barrier(MPI_COMM_WORLD));
    double one = 1, sum = 0;
    CHECK_OK(MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == check_size, "sum %g", sum);
}

int main(int argc, char **argv)
{
    setenv("TERN_CHECK", "types", 1);
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (comm_mode = 0; comm_mode < 6; comm_mode++) small();
    comm_mode = 4;
    large();
    collective();
    return check_done();
}
