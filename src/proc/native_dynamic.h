/* native_dynamic.h - the services of Tern's mpiexec, by questions to it (channel.h, which native.c opens). */
#ifndef TERN_PROC_NATIVE_DYNAMIC_H
#define TERN_PROC_NATIVE_DYNAMIC_H

#include "proc/dynamic.h"

extern const struct proc_dynamic native_dynamic;

#endif
