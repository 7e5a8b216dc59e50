/* op_scalar.c - the kernels for any processor of the kind compiled for (with SSE2 or NEON where that is the base). */
#define KERNEL_SET op_scalar
#define KERNEL_NAME "scalar"
#define KERNEL_TARGET /* the build's */
#define KERNEL_USABLE true
#define KERNEL_WIDE 0
#define KERNEL_NEXT NULL
#define KERNEL_FUSES 0
#include "type/op_kernels.inc"
