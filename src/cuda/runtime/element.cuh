/* element.cuh - matrices in the form that kernels read and write: elements of four types, views with strides, and the
 * one function that stores sums.
 *
 * Sums are float, or double for double.  A finished sum is stored by fsi_output_put, which scales it once, adds beta
 * times what was there and rounds to the output's type: the same three roundings as every CPU variant, so that kernels
 * and the reference implementation agree exactly on integers. */
#ifndef FSI_CUDA_RUNTIME_ELEMENT_CUH
#define FSI_CUDA_RUNTIME_ELEMENT_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "base/dtype.h"
#include "flashsketch.h"

template <class T> struct fsi_sum {
    typedef float type;
};
template <> struct fsi_sum<double> {
    typedef double type;
};

/* So many bytes, whatever they hold, in one load or store. */
template <int BYTES> struct raw;
template <> struct raw<2> {
    typedef uint16_t type;
};
template <> struct raw<4> {
    typedef uint32_t type;
};
template <> struct raw<8> {
    typedef uint2 type;
};
template <> struct raw<16> {
    typedef uint4 type;
};

/* VECTOR neighbours that one load or store of at most 16 bytes moves. */
template <class T, int VECTOR> struct __align__(sizeof(T) * VECTOR > 16 ? 16 : sizeof(T) * VECTOR) pack
{
    T x[VECTOR];
};

static __device__ __forceinline__ float fsi_widen(float x) { return x; }
static __device__ __forceinline__ double fsi_widen(double x) { return x; }
static __device__ __forceinline__ float fsi_widen(__half x) { return __half2float(x); }
static __device__ __forceinline__ float fsi_widen(__nv_bfloat16 x) { return __bfloat162float(x); }

/* An element of a type that is known at run time. */
static __device__ __forceinline__ double fsi_element_at(const void *data, fs_dtype dtype, int64_t at)
{
    if (dtype == FS_F64) return ((const double *)data)[at];
    if (dtype == FS_F32) return (double)((const float *)data)[at];
    if (dtype == FS_F16) return (double)fsi_widen(((const __half *)data)[at]);
    return (double)fsi_widen(((const __nv_bfloat16 *)data)[at]);
}

/* x with its sign changed where bit 31 of `sign` is set. */
static __device__ __forceinline__ float fsi_turned(float x, uint32_t sign)
{
    return __uint_as_float(__float_as_uint(x) ^ (sign & 0x80000000u));
}
static __device__ __forceinline__ double fsi_turned(double x, uint32_t sign) { return sign & 0x80000000u ? -x : x; }

/* A matrix to read: element (i, j) is data[i row_stride + j col_stride]. */
template <class T> struct fsi_input {
    const T *data;
    int64_t row_stride, col_stride;
    __device__ __forceinline__ typename fsi_sum<T>::type at(int64_t i, int64_t j) const
    {
        return fsi_widen(data[i * row_stride + j * col_stride]);
    }
};
template <class T> static fsi_input<T> fsi_input_of(const fs_matrix *m)
{
    const fsi_input<T> in = {(const T *)m->data, m->row_stride, m->col_stride};
    return in;
}

/* A matrix to write: to = beta to + factor sum. */
typedef struct fsi_output {
    void *data;
    int64_t row_stride, col_stride;
    double factor, beta;
    fs_dtype dtype;
} fsi_output;

static inline fsi_output fsi_output_of(const fs_matrix *m, double factor, double beta)
{
    const fsi_output out = {m->data, m->row_stride, m->col_stride, factor, beta, m->dtype};
    return out;
}
static __device__ __forceinline__ void fsi_output_put(const fsi_output &to, int64_t i, int64_t j, float sum)
{
    const int64_t at = i * to.row_stride + j * to.col_stride;
    float y = __fmul_rn((float)to.factor, sum);
    if (to.dtype == FS_F32) {
        float *p = (float *)to.data + at;
        if (to.beta != 0.0) y = __fadd_rn(__fmul_rn((float)to.beta, *p), y);
        *p = y;
    } else if (to.dtype == FS_F16) {
        __half *p = (__half *)to.data + at;
        if (to.beta != 0.0) y = __fadd_rn(__fmul_rn((float)to.beta, __half2float(*p)), y);
        *p = __float2half_rn(y);
    } else {
        __nv_bfloat16 *p = (__nv_bfloat16 *)to.data + at;
        if (to.beta != 0.0) y = __fadd_rn(__fmul_rn((float)to.beta, __bfloat162float(*p)), y);
        *p = __float2bfloat16_rn(y);
    }
}
static __device__ __forceinline__ void fsi_output_put(const fsi_output &to, int64_t i, int64_t j, double sum)
{
    double *p = (double *)to.data + i * to.row_stride + j * to.col_stride;
    double y = __dmul_rn(to.factor, sum);
    if (to.beta != 0.0) y = __dadd_rn(__dmul_rn(to.beta, *p), y);
    *p = y;
}

/* Entry i of a device array of 32- or 64-bit indices, and a value put there. */
static __device__ __forceinline__ int64_t fsi_index_at(const void *array, fs_index_type type, int64_t i)
{
    return type == FS_INDEX32 ? ((const int32_t *)array)[i] : ((const int64_t *)array)[i];
}
static __device__ __forceinline__ void fsi_index_put(void *array, fs_index_type type, int64_t i, int64_t value)
{
    if (type == FS_INDEX32) ((int32_t *)array)[i] = (int32_t)value;
    else ((int64_t *)array)[i] = value;
}

/* RUN(T) with T the C type of a dtype. */
#define FSI_BY_DTYPE(dtype, RUN) \
    ((dtype) == FS_F32   ? RUN(float) \
     : (dtype) == FS_F64 ? RUN(double) \
     : (dtype) == FS_F16 ? RUN(__half) \
                         : RUN(__nv_bfloat16))

#endif
