/* tile.inc.c - loads and stores of matrices: vectors, transpositions, tiles of sums, whatever the strides.
 *
 * A tile is rows x width sums in scratch, columns past the matrix zero; LANES sums may be read from any of its columns.
 * */
#define LANES (VARIANT_BYTES / SUM_BYTES)
#define VEC NAME(vec)
#define TILE (TILE_VECTORS * LANES) /* columns held in registers */
typedef SUM VEC __attribute__((vector_size(VARIANT_BYTES)));
typedef SUM NAME(loose)
    __attribute__((vector_size(VARIANT_BYTES), aligned(sizeof(SUM)), may_alias)); /* at any address */

/* LANES elements from x on, which may lie at any address. */
#ifdef TO_SUM
#if VARIANT_BYTES == 64
static inline VEC NAME(vector_of)(__m256i x)
{
    return IS_F16 ? (VEC)_mm512_cvtph_ps(x) : (VEC)_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16);
}
#elif VARIANT_BYTES == 32
static inline VEC NAME(vector_of)(__m128i x)
{
    return IS_F16 ? (VEC)_mm256_cvtph_ps(x) : (VEC)_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16);
}
#endif
static inline VEC NAME(vector)(const ELEM *x)
{
#if VARIANT_BYTES == 64
    return NAME(vector_of)(_mm256_loadu_si256((const __m256i *)x));
#elif VARIANT_BYTES == 32
    return NAME(vector_of)(_mm_loadu_si128((const __m128i *)x));
#elif defined(__aarch64__) && IS_F16
    return (VEC)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(x)));
#elif defined(__aarch64__)
    return (VEC)vshll_n_u16(vld1_u16(x), 16);
#else
    SUM v[LANES];
    for (int i = 0; i < LANES; i++) v[i] = TO_SUM(x[i]);
    VEC r;
    memcpy(&r, v, sizeof r);
    return r;
#endif
}
#else
#define TO_SUM(x) (x)
static inline VEC NAME(vector)(const ELEM *x) { return *(const NAME(loose) *)x; }
#endif

/* sum + pm x with pm = +-1: the product is exact, so a fused multiply-add has the same bits and half the instructions.
 * */
static inline VEC NAME(add_signed)(VEC sum, VEC x, SUM pm)
{
#if VARIANT_BYTES == 64 && SUM_BYTES == 4
    return (VEC)_mm512_fmadd_ps((__m512)x, _mm512_set1_ps(pm), (__m512)sum);
#elif VARIANT_BYTES == 64
    return (VEC)_mm512_fmadd_pd((__m512d)x, _mm512_set1_pd(pm), (__m512d)sum);
#elif VARIANT_BYTES == 32 && SUM_BYTES == 4
    return (VEC)_mm256_fmadd_ps((__m256)x, _mm256_set1_ps(pm), (__m256)sum);
#elif VARIANT_BYTES == 32
    return (VEC)_mm256_fmadd_pd((__m256d)x, _mm256_set1_pd(pm), (__m256d)sum);
#elif defined(__aarch64__) && SUM_BYTES == 4
    return (VEC)vfmaq_n_f32((float32x4_t)sum, (float32x4_t)x, pm);
#elif defined(__aarch64__)
    return (VEC)vfmaq_n_f64((float64x2_t)sum, (float64x2_t)x, pm);
#else
    return sum + x * pm;
#endif
}

/* The first `count` elements of x, `stride` apart, then zeros. */
static inline VEC NAME(vector_some)(const ELEM *x, int64_t stride, int64_t count)
{
    SUM v[LANES] = {0};
    for (int64_t i = 0; i < count; i++) v[i] = TO_SUM(x[i * stride]);
    VEC r;
    memcpy(&r, v, sizeof r);
    return r;
}
/* The same of neighbours, count < LANES; what lies behind them is not read. */
static inline VEC NAME(vector_first)(const ELEM *x, int64_t count)
{
#if VARIANT_BYTES == 64 && SUM_BYTES == 8
    return (VEC)_mm512_maskz_loadu_pd((__mmask8)((1u << count) - 1), x);
#elif VARIANT_BYTES == 64 && defined(IS_F16)
    return NAME(vector_of)(_mm256_maskz_loadu_epi16((__mmask16)((1u << count) - 1), x));
#elif VARIANT_BYTES == 64
    return (VEC)_mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), x);
#elif VARIANT_BYTES == 32 && SUM_BYTES == 4 && !defined(IS_F16)
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return (VEC)_mm256_maskload_ps(x, _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), lane));
#else
    ELEM some[LANES] = {0};
    for (int64_t i = 0; i < count; i++) some[i] = x[i];
    return NAME(vector)(some);
#endif
}

/* Row `row` of Y, columns col ... col + count - 1: y = beta y + scale sum. */
static void NAME(store_row)(const fs_matrix *Y, int64_t row, int64_t col, int64_t count, const SUM *sum, SUM scale,
                            SUM beta)
{
    const int64_t at = row * Y->row_stride + col * Y->col_stride;
    if (Y->dtype == fsi_dtype_sum(Y->dtype) && Y->col_stride == 1) {
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
        if (beta != 0) y = beta * (SUM)fsi_load(Y->data, Y->dtype, i) + y;
        fsi_store(Y->data, Y->dtype, i, y);
    }
}

#if LANES == 16
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH(a, b) __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif LANES == 8
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#elif LANES == 4
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#else
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 2)
#define HIGH(a, b) __builtin_shufflevector(a, b, 1, 3)
#endif

/* LANES x LANES: log2(LANES) perfect shuffles of the rows are a transposition. */
static inline void NAME(transpose)(VEC *v)
{
    VEC w[LANES];
    for (int step = 1; step < LANES; step *= 2) {
#pragma GCC unroll 8
        for (int i = 0; i < LANES / 2; i++) {
            w[2 * i] = LOW(v[i], v[i + LANES / 2]);
            w[2 * i + 1] = HIGH(v[i], v[i + LANES / 2]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++) v[i] = w[i];
    }
}

#undef LOW
#undef HIGH

/* tile = rows row ... of A, or of the list of its rows, columns col ... col + cols - 1. */
static void NAME(load_tile)(const fs_matrix *A, const fs_rows *list, int64_t row, int64_t rows, int64_t col,
                            int64_t cols, int64_t width, SUM *tile)
{
    const ELEM *x = (const ELEM *)A->data + col * A->col_stride;
    for (int64_t c = 0; c < width; c += LANES) {
        const int64_t count = cols - c < 0 ? 0 : fsi_min64(LANES, cols - c);
        const ELEM *from = x + (count ? c * A->col_stride : 0);
        int64_t r = 0;
        if (A->row_stride == 1 && A->col_stride != 1 && !list)
            for (; r + LANES <= rows; r += LANES) {
                VEC v[LANES];
                for (int i = 0; i < LANES; i++)
                    v[i] = i < count ? NAME(vector)(from + i * A->col_stride + row + r) : NAME(vector_some)(from, 1, 0);
                NAME(transpose)(v);
                for (int i = 0; i < LANES; i++) *(VEC *)(tile + (r + i) * width + c) = v[i];
            }
        for (; r < rows; r++) {
            const ELEM *at = from + fsi_row_at(list, row + r) * A->row_stride;
            *(VEC *)(tile + r * width + c) = A->col_stride != 1 ? NAME(vector_some)(at, A->col_stride, count)
                                             : count == LANES   ? NAME(vector)(at)
                                                                : NAME(vector_first)(at, count);
        }
    }
}

/* As store_row.  past_cache: y is larger than a cache; where a vector is a line of it, lines are written as a whole,
 * and not read before (store_fence). */
static void NAME(store_line)(const fs_matrix *Y, int64_t row, int64_t col, int64_t count, const SUM *sum, SUM scale,
                             SUM beta, int past_cache)
{
#if VARIANT_BYTES == 64
    SUM *y = (SUM *)Y->data + row * Y->row_stride + col * Y->col_stride;
    if (past_cache && beta == 0 && Y->dtype == fsi_dtype_sum(Y->dtype) && Y->col_stride == 1 && count % LANES == 0 &&
        (uintptr_t)y % LINE == 0) {
        for (int64_t c = 0; c < count; c += LANES) {
            const VEC x = *(const NAME(loose) *)(sum + c) * scale;
            _mm512_stream_si512((void *)(y + c), (__m512i)x);
        }
        return;
    }
#endif
    (void)past_cache;
    NAME(store_row)(Y, row, col, count, sum, scale, beta);
}

/* A vector of sums, of which `there` may be read: what is behind the last row is another task's. */
static inline VEC NAME(sums_at)(const SUM *from, int64_t there)
{
    VEC x = {0};
    if (there >= LANES) return *(const NAME(loose) *)from;
    memcpy(&x, from, (size_t)there * sizeof(SUM));
    return x;
}

/* Rows row ..., columns col ... col + cols - 1 of Y: y = beta y + scale tile; a vector goes to neighbouring elements,
 * whether rows or columns of Y are contiguous. */
static void NAME(store_lines)(const fs_matrix *Y, int64_t row, int64_t rows, int64_t col, int64_t cols, int64_t width,
                              const SUM *tile, SUM scale, SUM beta, int past_cache)
{
    if (Y->row_stride != 1 || Y->col_stride == 1) {
        for (int64_t r = 0; r < rows; r++)
            NAME(store_line)(Y, row + r, col, cols, tile + r * width, scale, beta, past_cache);
        return;
    }
    fs_matrix turned = *Y;
    turned.row_stride = Y->col_stride;
    turned.col_stride = 1;
    for (int64_t r = 0; r < rows; r += LANES)
        for (int64_t c = 0; c < cols; c += LANES) {
            VEC v[LANES];
            const int64_t high = fsi_min64(LANES, rows - r);
            for (int64_t i = 0; i < LANES; i++) {
                const int64_t at = r + (i < high ? i : 0);
                v[i] = NAME(sums_at)(tile + at * width + c, at + 1 < rows ? LANES : width - c);
            }
            NAME(transpose)(v);
            for (int64_t i = 0; i < fsi_min64(LANES, cols - c); i++) NAME(store_line)
            (&turned, col + c + i, row + r, high, (const SUM *)&v[i], scale, beta, past_cache);
        }
}
static void NAME(store_tile)(const fs_matrix *Y, int64_t row, int64_t rows, int64_t col, int64_t cols, int64_t width,
                             const SUM *tile, SUM scale, SUM beta)
{
    NAME(store_lines)(Y, row, rows, col, cols, width, tile, scale, beta, 0);
}
