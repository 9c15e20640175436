/* vector_load.cuh - rows of a matrix 16 bytes at a time.
 *
 * Kernels that gather rows give each thread V neighbouring columns: V = 16 / sizeof(T) where the matrix allows 16-byte
 * loads (fsi_wide), otherwise V = 1 and any strides.  A vector is the result of one load; it is converted only when it
 * is added, so that several loads can be in flight.  fsi_vector_store is fsi_output_put for V columns at once, with the
 * same roundings. */
#ifndef FSI_CUDA_RUNTIME_VECTOR_LOAD_CUH
#define FSI_CUDA_RUNTIME_VECTOR_LOAD_CUH

#include "cuda/runtime/element.cuh"

template <class T, int V> struct fsi_vector {
    union {
        uint4 raw;
        T at[V];
    };
};

/* Whether vectors of 16 bytes, or a multiple of that, lie aligned in every row of m. */
static inline int fsi_wide(const fs_matrix *m)
{
    return m->col_stride == 1 && (uintptr_t)m->data % 16 == 0 && m->row_stride % (16 / fsi_dtype_size(m->dtype)) == 0;
}

/* The first `count` of V elements from `from` on, zeros for the others.  WHOLE: count is V or 0, and `from` is
 * aligned to the vector.  ONCE: the elements are not expected to be read again soon and should not evict others from
 * L2. */
template <class T, int V, bool WHOLE, bool ONCE>
static __device__ __forceinline__ fsi_vector<T, V> fsi_vector_load(const T *from, int count)
{
    fsi_vector<T, V> x;
    x.raw = make_uint4(0, 0, 0, 0);
    if constexpr (WHOLE && V > 1) {
        if (count) x.raw = ONCE ? __ldcs((const uint4 *)from) : __ldg((const uint4 *)from);
    } else {
#pragma unroll
        for (int v = 0; v < V; v++)
            if (v < count) x.at[v] = from[v];
    }
    return x;
}

/* sum += +-x */
template <class T, int V> static __device__ __forceinline__ void fsi_vector_add(const fsi_vector<T, V> &x, bool minus,
                                                                                typename fsi_sum<T>::type *sum)
{
#pragma unroll
    for (int v = 0; v < V; v++) sum[v] += minus ? -fsi_widen(x.at[v]) : fsi_widen(x.at[v]);
}

static __device__ __forceinline__ float fsi_finish(const fsi_output &to, float sum, float old)
{
    const float y = __fmul_rn((float)to.factor, sum);
    return to.beta != 0.0 ? __fadd_rn(__fmul_rn((float)to.beta, old), y) : y;
}
static __device__ __forceinline__ void fsi_narrow(float x, __half *to) { *to = __float2half_rn(x); }
static __device__ __forceinline__ void fsi_narrow(float x, __nv_bfloat16 *to) { *to = __float2bfloat16_rn(x); }

template <class H>
static __device__ __forceinline__ void fsi_vector_store_halves(const fsi_output &to, int64_t at, const float *sum)
{
    uint4 *p = (uint4 *)((H *)to.data + at);
    fsi_vector<H, 8> y;
    y.raw = to.beta != 0.0 ? *p : make_uint4(0, 0, 0, 0);
#pragma unroll
    for (int v = 0; v < 8; v++) fsi_narrow(fsi_finish(to, sum[v], fsi_widen(y.at[v])), &y.at[v]);
    *p = y.raw;
}

/* Columns j ... j + V - 1 of row i, of which `count` exist; wide is fsi_wide of the output.  V is 4 for f32, 8 for
 * f16 and bf16 inputs, whose output may be f32. */
template <int V> static __device__ __forceinline__ void fsi_vector_store(const fsi_output &to, int wide, int64_t i,
                                                                         int64_t j, const float *sum, int count)
{
    if (V == 1 || !wide || count < V) {
#pragma unroll
        for (int v = 0; v < V; v++)
            if (v < count) fsi_output_put(to, i, j + v, sum[v]);
        return;
    }
    const int64_t at = i * to.row_stride + j;
    if (to.dtype == FS_F32) {
#pragma unroll
        for (int v = 0; v + 4 <= V; v += 4) {
            float4 *p = (float4 *)((float *)to.data + at + v);
            float4 y = to.beta != 0.0 ? *p : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            y.x = fsi_finish(to, sum[v], y.x);
            y.y = fsi_finish(to, sum[v + 1], y.y);
            y.z = fsi_finish(to, sum[v + 2], y.z);
            y.w = fsi_finish(to, sum[v + 3], y.w);
            *p = y;
        }
    } else if constexpr (V == 8) {
        if (to.dtype == FS_F16) fsi_vector_store_halves<__half>(to, at, sum);
        else fsi_vector_store_halves<__nv_bfloat16>(to, at, sum);
    }
}
/* f64: a warp's scalar stores of two neighbours fill whole sectors between them. */
template <int V> static __device__ __forceinline__ void fsi_vector_store(const fsi_output &to, int, int64_t i,
                                                                         int64_t j, const double *sum, int count)
{
#pragma unroll
    for (int v = 0; v < V; v++)
        if (v < count) fsi_output_put(to, i, j + v, sum[v]);
}

/* RUN(T, V) with T the type of m's elements and V the vectors it allows. */
#define FSI_BY_PIECE(m, RUN) \
    (!fsi_wide(m)           ? ((m)->dtype == FS_F32   ? RUN(float, 1) \
                               : (m)->dtype == FS_F64 ? RUN(double, 1) \
                               : (m)->dtype == FS_F16 ? RUN(__half, 1) \
                                                      : RUN(__nv_bfloat16, 1)) \
     : (m)->dtype == FS_F32 ? RUN(float, 4) \
     : (m)->dtype == FS_F64 ? RUN(double, 2) \
     : (m)->dtype == FS_F16 ? RUN(__half, 8) \
                            : RUN(__nv_bfloat16, 8))

#endif
