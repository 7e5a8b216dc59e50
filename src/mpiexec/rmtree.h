/* rmtree.h - removing a directory with all that is in it. */
#ifndef TERN_MPIEXEC_RMTREE_H
#define TERN_MPIEXEC_RMTREE_H

/* Follows no links, stays on the file system, ignores what cannot be removed. An empty path does nothing. */
void rmtree(const char *path);

#endif
