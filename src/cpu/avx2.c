/* avx2.c - the kernels for the instruction set "avx2". */
#define VARIANT avx2
#define VARIANT_BYTES 32
#include "cpu/kernels.inc.c"
