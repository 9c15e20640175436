/* avx512.c - the kernels for the instruction set "avx512". */
#define VARIANT avx512
#define VARIANT_BYTES 64
#include "cpu/kernels.inc.c"
