/*
 * spawn_command.h - the command line of a spawned job's launcher: the question of a rank (ASK_SPAWN) in the options that a user
 * would give.
 *
 * Threads: the main one only.
 */
#ifndef TERN_MPIEXEC_SPAWN_COMMAND_H
#define TERN_MPIEXEC_SPAWN_COMMAND_H

#include "mpiexec/launch.h"
#include "mpiexec/schedule.h"
#include "proc/ask.h"

/* What was asked for, besides the command line. */
struct spawn_wish {
    struct schedule_load load; /* the places that were chosen; the caller's to release */
    bool fatal;                /* the job's failure is the end of all (info key tern_failure) */
};

/* `argv` gets the options behind the program's name; the texts are malloc'ed. NULL or what is wrong with the question. */
const char *spawn_command(const struct job *, struct ask_in *, struct strv *argv, struct spawn_wish *);

#endif
