/* launcher.h - how other hosts are reached: options and variables, settled once the map says that there are any. */
#ifndef TERN_MPIEXEC_LAUNCHER_H
#define TERN_MPIEXEC_LAUNCHER_H

#include "mpiexec/spec.h"

/* `argv0`: as this program was called. 0 or an exit code after saying why. */
int launcher_settle(struct spec *, const char *argv0);

#endif
