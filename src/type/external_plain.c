/* external_plain.c - the loops of external32 for any processor of the kind compiled for. */
#define KERNEL_SET external_plain
#define KERNEL_TARGET /* the build's */
#include "type/external_kernels.inc"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are swapped between memory and the external form");
