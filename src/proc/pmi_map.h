/*
 * pmi_map.h - which node each rank is on, from the text in which PMI launchers say so:
 *
 *     (vector,(0,2,4),(2,1,3))      from node 0 on, 2 nodes with 4 ranks each; then node 2 with 3
 *
 * The ranks are counted through the blocks in their order, and again from the first one when there are more.
 */
#ifndef TERN_PROC_PMI_MAP_H
#define TERN_PROC_PMI_MAP_H

#include "base/compiler.h"

/* Fills node[0..size-1]. TERN_ERR_NOT_FOUND: the text is of another kind (not an error); else a code with words. */
int pmi_map_fill(const char *text, uint32_t *node, uint32_t size);

#endif
