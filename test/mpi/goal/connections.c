/*
 * connections.c - a schedule connects whom it sends to when it runs, and another one to the same ranks needs nothing more
 * (GOAL-17). Over TCP, where a connection is a socket of this process.
 */
#include "../check.h"

#include <dirent.h>
#include <goal.h>
#include <unistd.h>

/* How many sockets this process has. */
static int sockets(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[300], text[64] = "";
        snprintf(path, sizeof path, "/proc/self/fd/%s", e->d_name);
        n += readlink(path, text, sizeof text - 1) > 0 && !strncmp(text, "socket:", 7);
    }
    if (d) closedir(d);
    return n;
}

static GOAL_Schedule exchange(int64_t word[2], int distance)
{
    GOAL_Schedule s;
    CHECK_OK(GOAL_Create(MPI_COMM_WORLD, 0, &s));
    CHECK_OK(GOAL_Send(s, &word[0], GOAL_USERSPACE, 8, (check_rank + distance) % check_size, 0, NULL));
    CHECK_OK(GOAL_Recv(s, &word[1], GOAL_USERSPACE, 8, (check_rank + check_size - distance) % check_size, 0, NULL));
    CHECK_OK(GOAL_Compile(s));
    return s;
}

/* Runs it until there are as many sockets as expected: where both sides connect at once, one has to give way. */
static int run_until(GOAL_Schedule s, const int64_t word[2], int distance, int expected)
{
    GOAL_Request r;
    for (int t = 0; t < 200; t++) {
        CHECK_OK(GOAL_Run(s, &r));
        CHECK_OK(GOAL_Wait(&r));
        CHECK(word[1] == (check_rank + check_size - distance) % check_size, "received %lld", (long long)word[1]);
        if (sockets() != expected) usleep(5000);
    }
    return sockets();
}

int main(int argc, char **argv)
{
    int64_t word[2];
    check_start(&argc, &argv);
    if (check_size < 5) return check_skip("ranks at distance 2 are others than those at distance 1 from five ranks on");
    word[0] = check_rank;
    int before = sockets();
    GOAL_Schedule s = exchange(word, 1), again, far;
    CHECK(sockets() == before, "%d sockets when a schedule is made, %d before", sockets(), before);
    int near = run_until(s, word, 1, before + 2);
    CHECK(near == before + 2, "%d sockets after the first schedule, %d before", near, before);
    again = exchange(word, 1);
    int same = run_until(again, word, 1, near);
    CHECK(same == near, "%d sockets after another schedule to the same ranks, %d before", same, near);
    far = exchange(word, 2);
    int more = run_until(far, word, 2, near + 2);
    CHECK(more == near + 2, "%d sockets after a schedule to others, %d before", more, near);
    CHECK_OK(GOAL_Free(&s));
    CHECK_OK(GOAL_Free(&again));
    CHECK_OK(GOAL_Free(&far));
    return check_done();
}
