/* base.c - the kernels for the instruction set "base". */
#define VARIANT base
#define VARIANT_BYTES 16
#include "cpu/kernels.inc.c"
