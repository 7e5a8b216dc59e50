/* external_avx2.c - the loops of external32 with 32-byte vectors, for x86-64 processors since about 2013. */
#if defined(__x86_64__)
#define KERNEL_SET external_avx2
#define KERNEL_TARGET target("avx2")
#include "type/external_kernels.inc"
bool external_avx2_usable(void) { return __builtin_cpu_supports("avx2"); }
#else
#include "type/external_kernels.h"
const struct external_kernels external_avx2 = {.pack = {NULL}};
bool external_avx2_usable(void) { return false; }
#endif
