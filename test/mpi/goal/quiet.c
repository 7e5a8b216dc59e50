/*
 * quiet.c - a look at a run that is over enters no kernel (GOAL-10): a child of fork looks, in the mode in which the
 * kernel kills whoever calls it for anything but reading, writing and the end.
 */
#include "../check.h"

#include <goal.h>
#include <signal.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REFUSED = 9, SEEN = 3 };

/* Only the thread that enters the kernel is killed: a sanitizer's would stay behind, and the child with it. */
static int has_threads(void)
{
    struct stat st;
    return stat("/proc/self/task", &st) || st.st_nlink > 3; /* ".", ".." and one */
}

/* In the child: its end says what it has seen. */
static void look(GOAL_Request *r, int wait, int enter)
{
    int flag = 0;
    if (has_threads() || prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) _exit(REFUSED);
    if (enter) getppid(); /* the test of the test */
    int ok = GOAL_Finished(r);
    if (wait) flag = GOAL_Wait(r) == MPI_SUCCESS;
    else ok = ok && GOAL_Test(r, &flag) == MPI_SUCCESS;
    syscall(SYS_exit, ok && flag ? SEEN : 1);
}

/* How a child that looks ends: its code, or minus its signal. */
static int child(GOAL_Request *r, int wait, int enter)
{
    int status;
    fflush(NULL);
    pid_t pid = fork();
    if (!pid) look(r, wait, enter);
    if (pid < 0 || waitpid(pid, &status, 0) != pid) return REFUSED;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int main(int argc, char **argv)
{
    int64_t out = 1, in = 0;
    GOAL_Schedule s;
    GOAL_Request r;
    check_start(&argc, &argv);
    int left = (check_rank + check_size - 1) % check_size, right = (check_rank + 1) % check_size;
    CHECK_OK(GOAL_Create(MPI_COMM_WORLD, 0, &s));
    CHECK_OK(GOAL_Send(s, &out, GOAL_USERSPACE, 8, right, 0, NULL));
    CHECK_OK(GOAL_Recv(s, &in, GOAL_USERSPACE, 8, left, 0, NULL));
    CHECK_OK(GOAL_Compile(s));
    CHECK_OK(GOAL_Run(s, &r));
    while (!GOAL_Finished(&r)) MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &(int){0}, MPI_STATUS_IGNORE); /* progress */
    int control = child(&r, 0, 1);
    if (control == REFUSED) printf("# this kernel has no seccomp, or a sanitizer has a thread in each process\n");
    else {
        CHECK(control == -SIGKILL, "a system call is noticed: %d", control);
        CHECK(child(&r, 0, 0) == SEEN, "GOAL_Test");
        CHECK(child(&r, 1, 0) == SEEN, "GOAL_Wait");
    }
    CHECK_OK(GOAL_Wait(&r));
    CHECK(in == 1, "received %lld", (long long)in);
    CHECK_OK(GOAL_Free(&s));
    return check_done();
}
