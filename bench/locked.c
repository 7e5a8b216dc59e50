/*
 * locked.c - counts what callgrind cannot tell apart: instructions, and those of them that lock memory (the lock prefix, and
 * xchg with memory).
 *
 *     locked NAME COUNT PROGRAM [ARGUMENT...]
 *
 * Runs the program, whose main thread executes int3 where the counting is to begin, and once more where it is to end; the
 * second time may come again and again, each pair is counted. The thread is stepped in between, one instruction at a time.
 * Prints "NAME_instructions N" and "NAME_locked N", both divided by COUNT, and exits as the program does. x86_64 on Linux.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONGEST 15 /* bytes of an instruction */
#define INT3 0xCC

static pid_t child;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "locked: %s: %s\n", what, strerror(errno));
    kill(child, SIGKILL);
    exit(2);
}

static void read_code(uint64_t at, uint8_t code[2 * sizeof(long)])
{
    for (size_t i = 0; i < 2; i++) {
        errno = 0;
        long word = ptrace(PTRACE_PEEKTEXT, child, (void *)(uintptr_t)(at + i * sizeof word), NULL);
        if (errno && !i) fail("PTRACE_PEEKTEXT");
        memcpy(code + i * sizeof word, &word, sizeof word);
    }
}

static bool is_prefix(uint8_t b)
{
    return b == 0x66 || b == 0x67 || b == 0x2E || b == 0x36 || b == 0x3E || b == 0x26 || b == 0x64 || b == 0x65 || b == 0xF2 ||
           b == 0xF3;
}

static bool locks(const uint8_t *code)
{
    int i = 0;
    while (i < LONGEST - 2 && is_prefix(code[i])) i++;
    if (code[i] == 0xF0) return true;
    if ((code[i] & 0xF0) == 0x40) i++; /* REX */
    return (code[i] == 0x86 || code[i] == 0x87) && code[i + 1] < 0xC0; /* xchg, not of two registers */
}

static uint64_t where(void)
{
    struct user_regs_struct r;
    if (ptrace(PTRACE_GETREGS, child, NULL, &r)) fail("PTRACE_GETREGS");
    return r.rip;
}

/* Lets it go on in that way until the next SIGTRAP: false when it has ended. Other signals are handed on. */
static bool go(long how, int *status)
{
    int signal = 0;
    for (;;) {
        if (ptrace((enum __ptrace_request)how, child, NULL, (void *)(intptr_t)signal)) fail("ptrace");
        if (waitpid(child, status, 0) != child) fail("waitpid");
        if (!WIFSTOPPED(*status)) return false;
        if (WSTOPSIG(*status) == SIGTRAP) return true;
        signal = WSTOPSIG(*status);
    }
}

int main(int argc, char **argv)
{
    int status;
    uint64_t instructions = 0, locked = 0;
    uint8_t code[2 * sizeof(long)];
    if (argc < 4 || atoi(argv[2]) < 1) return fprintf(stderr, "locked NAME COUNT PROGRAM [ARGUMENT...]\n"), 2;
    child = fork();
    if (child < 0) fail("fork");
    if (!child) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL)) _exit(126);
        execvp(argv[3], argv + 3);
        _exit(127);
    }
    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) fail("the program cannot be traced");
    while (go(PTRACE_CONT, &status)) {
        for (;;) {
            read_code(where(), code);
            if (code[0] == INT3) break; /* the second one: go on behind it */
            instructions++;
            locked += locks(code);
            if (!go(PTRACE_SINGLESTEP, &status)) break;
        }
        if (!WIFSTOPPED(status)) break;
        if (!go(PTRACE_SINGLESTEP, &status)) break;
    }
    printf("%s_instructions %.1f\n%s_locked %.2f\n", argv[1], (double)instructions / atoi(argv[2]), argv[1],
           (double)locked / atoi(argv[2]));
    if (!instructions) fprintf(stderr, "locked: nothing was counted\n");
    return WIFEXITED(status) && instructions ? WEXITSTATUS(status) : 1;
}
