/* textfile.h - files that the command line names and that are read line by line: of hosts, of ranks, of options. */
#ifndef TERN_MPIEXEC_TEXTFILE_H
#define TERN_MPIEXEC_TEXTFILE_H

/*
 * Calls take(arg, number, line) for each line of the file, counted from 1; the line may be changed, and ends with '\n'
 * unless it is the last. Stops when take returns another value than 0, and returns that. `what` is the file's name in
 * words, such as "the host file". 0, the value of take, or EXIT_USAGE after saying why the file cannot be read.
 */
int textfile_read(const char *path, const char *what, int (*take)(void *arg, int number, char *line), void *arg);

#endif
