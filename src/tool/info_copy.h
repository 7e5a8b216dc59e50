/* info_copy.h - what tern_info --copy prints. */
#ifndef TERN_TOOL_INFO_COPY_H
#define TERN_TOOL_INFO_COPY_H

/* Measures copies on this machine, and prints the figures, with what is chosen by them. Needs var_open. Exit code. */
int info_copy(void);

#endif
