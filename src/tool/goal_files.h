/*
 * goal_files.h - what tern_goal works on: programs read from texts, one or several in a file, put in the order
 * of their ranks.
 */
#ifndef TERN_TOOL_GOAL_FILES_H
#define TERN_TOOL_GOAL_FILES_H

#include "coll/goal/goal.h"

struct goal_text { /* one program, and where it came from */
    const char *file;
    int line; /* of its first operation */
    struct goal_prog *prog;
};

struct goal_texts {
    struct goal_text *all;
    int n;
    int ranks; /* that each program says there are; 0: they disagree, or there is none */
    int near;  /* ranks of the first group: all, unless there are two */
    bool whole; /* there is one for each rank: all[] by rank, and by group */
};

/* What reading came to; what is wrong has been told. */
enum goal_read { GOAL_READ, GOAL_READ_WRONG, GOAL_READ_FAILED }; /* ... the text is wrong; the file cannot be read */

/* Appends the programs of a file, "-" for standard input. The name is kept. */
enum goal_read goal_texts_read(struct goal_texts *, const char *file);

/*
 * Puts them in order. near > 0: the first so many of them are of one group, the others of a second one. False, and told, if
 * two are for one rank or they disagree about the number of ranks.
 */
bool goal_texts_sort(struct goal_texts *, int near);

void goal_texts_close(struct goal_texts *);

/* The place of a program among all: by rank, the second group behind the first. */
int goal_texts_place(const struct goal_texts *, int i);

/* "tern_goal: FILE:LINE: words" to standard error; line 0 is left out. */
void goal_tell(const char *file, int line, const char *words);

#endif
