/* op_avx512.c - the kernels with 64-byte vectors, for x86-64 processors that have AVX-512 BW, DQ and VL. */
#if defined(__x86_64__)
#define KERNEL_SET op_avx512
#define KERNEL_NAME "avx512"
#if defined(__clang__) /* chooses the width itself */
#define KERNEL_TARGET target("avx512f,avx512bw,avx512dq,avx512vl")
#else
#define KERNEL_TARGET target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#endif
#define KERNEL_USABLE                                                                                                  \
    (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&  \
     __builtin_cpu_supports("avx512vl"))
#define KERNEL_WIDE 1
#define KERNEL_NEXT &op_avx2
#define KERNEL_FUSES 1
#include "type/op_kernels.inc"
#else
#include "type/op_kernels.h"
static bool usable(void) { return false; }
const struct op_kernels op_avx512 = {.name = "avx512", .usable = usable};
#endif
