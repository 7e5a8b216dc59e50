/* op_avx2.c - the kernels with 32-byte vectors, for x86-64 processors since about 2013. */
#if defined(__x86_64__)
#define KERNEL_SET op_avx2
#define KERNEL_NAME "avx2"
#define KERNEL_TARGET target("avx2")
#define KERNEL_USABLE __builtin_cpu_supports("avx2") && op_half.usable()
#define KERNEL_WIDE 1
#define KERNEL_NEXT &op_half
#define KERNEL_FUSES 0
#include "type/op_kernels.inc"
#else
#include "type/op_kernels.h"
static bool usable(void) { return false; }
const struct op_kernels op_avx2 = {.name = "avx2", .usable = usable};
#endif
