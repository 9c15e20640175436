/* port.h - portability: one source of the definition for C11, C++17 and CUDA.
 *
 * FSI_DEF marks every function of src/def.  It is keyed on __CUDACC__, never on __CUDA_ARCH__, so that a
 * function is the same in nvcc's host pass and in its device pass.  The three float helpers pin
 * single IEEE operations: host targets are compiled with -ffp-contract=off, device code names the
 * rounding, so no compiler may fuse a product into a sum and change the last bit of a Gaussian entry. */
#ifndef FSI_DEF_PORT_H
#define FSI_DEF_PORT_H

#include <stdint.h>

#ifdef __CUDACC__
#define FSI_DEF static __host__ __device__ inline
#else
#define FSI_DEF static inline
#endif

/* FSI_ROLLED before a loop: not unrolled on GPUs, where instruction fetches dominate code that runs once. */
#ifdef __CUDA_ARCH__
#define FSI_ROLLED _Pragma("unroll 1")
FSI_DEF float fsi_mulf(float a, float b) { return __fmul_rn(a, b); }
FSI_DEF float fsi_addf(float a, float b) { return __fadd_rn(a, b); }
FSI_DEF float fsi_sqrtf(float a) { return __fsqrt_rn(a); }
/* Written as two 32-bit halves because ptxas 13.0 emits a redundant add of 0 for the 64-bit product. */
FSI_DEF uint64_t fsi_mul_wide(uint32_t a, uint32_t b) { return (uint64_t)__umulhi(a, b) << 32 | a * b; }
#else
#define FSI_ROLLED
FSI_DEF float fsi_mulf(float a, float b) { return a * b; }
FSI_DEF float fsi_addf(float a, float b) { return a + b; }
FSI_DEF float fsi_sqrtf(float a) { return __builtin_sqrtf(a); }
FSI_DEF uint64_t fsi_mul_wide(uint32_t a, uint32_t b) { return (uint64_t)a * b; }
#endif

/* The float whose bits are u, and the bits of a float: the only type punning in the definition. */
FSI_DEF float fsi_float_of_bits(uint32_t u)
{
    union {
        uint32_t u;
        float f;
    } x;
    x.u = u;
    return x.f;
}
FSI_DEF uint32_t fsi_bits_of_float(float f)
{
    union {
        uint32_t u;
        float f;
    } x;
    x.f = f;
    return x.u;
}

#endif
