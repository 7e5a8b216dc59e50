/*
 * small_stack.c - threads with the smallest stacks that the system gives may communicate: messages that have to be
 * packed, and blocks of many lengths, are not put on the stack.
 */
#include "../check.h"

#include <limits.h>
#include <pthread.h>

enum { COLUMN = 4000, BLOCK = 100000 };

static int right, left;
static MPI_Datatype column; /* of every other byte */

static void *exchange(void *bad)
{
    static unsigned char out[2 * COLUMN], in[2 * COLUMN];
    for (int i = 0; i < 2 * COLUMN; i++) out[i] = (unsigned char)(i * 7 + check_rank);
    MPI_Sendrecv(out, 1, column, right, 1, in, 1, column, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 2 * COLUMN; i += 2) *(int *)bad += in[i] != (unsigned char)(i * 7 + left);
    return NULL;
}

/* Long blocks for some, none for others. */
static void *vectors(void *bad)
{
    int *counts = calloc(2 * (size_t)check_size, sizeof *counts), *displs = counts + check_size;
    char *out = malloc(BLOCK), *in = malloc(BLOCK);
    counts[right] = BLOCK;
    int *from = calloc((size_t)check_size, sizeof *from);
    from[left] = BLOCK;
    check_fill(out, BLOCK, (unsigned long)check_rank);
    for (int i = 0; i < 5; i++)
        MPI_Alltoallv(out, counts, displs, MPI_BYTE, in, from, displs, MPI_BYTE, MPI_COMM_WORLD);
    *(int *)bad += check_differ(in, BLOCK, (unsigned long)left) != 0;
    free(from);
    free(in);
    free(out);
    free(counts);
    return NULL;
}

static int run(void *(*body)(void *), size_t stack)
{
    pthread_attr_t attributes;
    pthread_t id;
    int bad = 0;
    pthread_attr_init(&attributes);
    CHECK(!pthread_attr_setstacksize(&attributes, stack), "a stack of %zu bytes is refused", stack);
    CHECK(!pthread_create(&id, &attributes, body, &bad), "no thread with a stack of %zu bytes", stack);
    pthread_join(id, NULL);
    return bad;
}

int main(int argc, char **argv)
{
    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return check_skip("sanitizers need larger stacks");
#endif
    right = (check_rank + 1) % check_size;
    left = (check_rank + check_size - 1) % check_size;
    MPI_Type_vector(COLUMN, 1, 2, MPI_BYTE, &column);
    MPI_Type_commit(&column);
    CHECK(run(exchange, PTHREAD_STACK_MIN) == 0, "what was packed is wrong");
    CHECK(run(vectors, PTHREAD_STACK_MIN + 8192) == 0, "the blocks are wrong");
    MPI_Type_free(&column);
    return check_done();
}
