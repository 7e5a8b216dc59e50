/* tree.h - removing a directory with all that is in it. */
#ifndef TERN_MPIEXEC_TREE_H
#define TERN_MPIEXEC_TREE_H

/* Follows no links, stays on the file system, ignores what cannot be removed. An empty path does nothing. */
void tree_remove(const char *path);

#endif
