/*
 * limits.c - runs a program with something taken away from it:
 *     limits WHAT... -- PROGRAM [ARGUMENT...]
 *   no-cma    process_vm_readv and process_vm_writev fail with EPERM, as in many containers
 *   as=MB     address space
 *   memlock=0 locked memory
 *   nofile=N  open files
 * Exit code 77 and words when the system does not let it be taken.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static int forbid_cma(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int limit(int what, const char *value, rlim_t unit)
{
    struct rlimit r;
    r.rlim_cur = r.rlim_max = strtoul(value, NULL, 10) * unit;
    return setrlimit(what, &r);
}

static int take(const char *what)
{
    if (!strcmp(what, "no-cma")) return forbid_cma();
    if (!strncmp(what, "as=", 3)) return limit(RLIMIT_AS, what + 3, (rlim_t)1 << 20);
    if (!strncmp(what, "memlock=", 8)) return limit(RLIMIT_MEMLOCK, what + 8, 1);
    if (!strncmp(what, "nofile=", 7)) return limit(RLIMIT_NOFILE, what + 7, 1);
    errno = EINVAL;
    return -1;
}

int main(int argc, char **argv)
{
    int i = 1;
    for (; i < argc && strcmp(argv[i], "--"); i++)
        if (take(argv[i])) {
            fprintf(stderr, "limits: %s: %s\n", argv[i], strerror(errno));
            return 77;
        }
    if (i + 1 >= argc) return 97;
    execvp(argv[i + 1], argv + i + 1);
    fprintf(stderr, "limits: %s: %s\n", argv[i + 1], strerror(errno));
    return 127;
}
