/* goal_dot.h - schedules as a picture. */
#ifndef TERN_TOOL_GOAL_DOT_H
#define TERN_TOOL_GOAL_DOT_H

#include "tool/goal_files.h"

/* Writes the programs as a graph in the language of Graphviz to standard output. False: memory is out. */
bool goal_dot(const struct goal_texts *);

#endif
