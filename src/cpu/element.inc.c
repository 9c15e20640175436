/* element.inc.c - the kernels for one element type: TYPE, its storage ELEM, the type of its sums SUM.
 *
 * TO_SUM converts a stored element where it is not one of C's own types. */
#define LANES (VARIANT_BYTES / (int)sizeof(SUM))
#define VEC NAME(vec)
typedef SUM VEC __attribute__((vector_size(VARIANT_BYTES)));

/* LANES elements from x on, and a vector at any address. */
#ifdef TO_SUM
static inline VEC NAME(vector)(const ELEM *x)
{
    SUM v[LANES];
    for (int i = 0; i < LANES; i++) v[i] = TO_SUM(x[i]);
    VEC r;
    memcpy(&r, v, sizeof r);
    return r;
}
#else
#define TO_SUM(x) (x)
typedef SUM NAME(loose) __attribute__((vector_size(VARIANT_BYTES), aligned(sizeof(SUM)), may_alias));
static inline VEC NAME(vector)(const ELEM *x) { return *(const NAME(loose) *)x; }
#endif

/* The first `count` elements of x, `stride` apart, then zeros. */
static inline VEC NAME(vector_some)(const ELEM *x, int64_t stride, int64_t count)
{
    SUM v[LANES] = {0};
    for (int64_t i = 0; i < count; i++) v[i] = TO_SUM(x[i * stride]);
    VEC r;
    memcpy(&r, v, sizeof r);
    return r;
}

/* Row `row` of Y, columns col ... col + count - 1: y = beta y + scale sum. */
static void NAME(store_row)(const fs_matrix *Y, int64_t row, int64_t col, int64_t count, const SUM *sum, SUM scale, SUM beta)
{
    const int64_t at = row * Y->row_stride + col * Y->col_stride;
    if (Y->dtype == fs_dtype_sum(Y->dtype) && Y->col_stride == 1) {
        SUM *y = (SUM *)Y->data + at;
        if (beta == 0)
            for (int64_t c = 0; c < count; c++) y[c] = scale * sum[c];
        else
            for (int64_t c = 0; c < count; c++) y[c] = beta * y[c] + scale * sum[c];
        return;
    }
    for (int64_t c = 0; c < count; c++) {
        const int64_t i = at + c * Y->col_stride;
        SUM y = scale * sum[c];
        if (beta != 0) y = beta * (SUM)fs_load(Y->data, Y->dtype, i) + y;
        fs_store(Y->data, Y->dtype, i, y);
    }
}

#include "gather.inc.c"

static fs_result NAME(apply)(fs_cpu *cpu, const fs_def *S, int64_t row0, double alpha, const fs_matrix *A, double beta,
                             const fs_matrix *Y)
{
    if (S->family != FS_DEF_BLOCKPERM && S->family != FS_DEF_SJLT) return fs_cpu_ref.apply(cpu, S, row0, alpha, A, beta, Y);
    return NAME(gather_apply)(cpu, S, row0, alpha, A, beta, Y);
}

#undef TYPE
#undef ELEM
#undef SUM
#undef TO_SUM
#undef LANES
#undef VEC
