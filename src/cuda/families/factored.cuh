/* factored.cuh - factored input in the form that kernels read: the factors as factored.cu has copied them, and the
 * pairs. */
#ifndef FSI_CUDA_FAMILIES_FACTORED_CUH
#define FSI_CUDA_FAMILIES_FACTORED_CUH

#include <stdint.h>

/* F[row][token][example] in f32.  Behind its rows is a row of ones, so that a single row is a product too.  Rows begin
 * at multiples of 256 bytes; behind the last example are zeros up to one of those. */
typedef struct fsi_factors {
    const float *data;
    const int32_t *pairs;  /* NULL: no products */
    uint32_t row, token;   /* bytes from row to row, from token to token */
    int32_t width, tokens; /* `width` rows, then the ones */
} fsi_factors;

/* The rows of pair i; x is -1 where it names a row that does not exist. */
static __device__ __forceinline__ int2 fsi_pair_at(const fsi_factors &F, int64_t i)
{
    const int32_t a = F.pairs[2 * i], b = F.pairs[2 * i + 1];
    const bool there = a >= 0 && a < F.width && b >= -1 && b < F.width;
    return make_int2(there ? a : -1, b < 0 ? F.width : b);
}

/* Where example `column` of a row is, at token 0. */
static __device__ __forceinline__ const char *fsi_factor_at(const fsi_factors &F, int32_t row, int64_t column)
{
    return (const char *)(F.data + column) + (uint64_t)(uint32_t)row * F.row;
}
/* The product of two rows that exist, summed over the tokens. */
static __device__ __forceinline__ float fsi_product_at(const fsi_factors &F, int2 pair, int64_t column)
{
    const char *a = fsi_factor_at(F, pair.x, column), *b = fsi_factor_at(F, pair.y, column);
    float sum = __fmul_rn(*(const float *)a, *(const float *)b);
    for (int t = 1; t < F.tokens; t++) {
        a += F.token, b += F.token;
        sum = __fmaf_rn(*(const float *)a, *(const float *)b, sum);
    }
    return sum;
}

#endif
