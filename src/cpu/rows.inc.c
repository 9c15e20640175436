/* rows.inc.c - products of a few contiguous rows with a vector, and of their transpose: the inner loops of normal.c.
 *
 * Sums are in f64 whatever the type of the rows.  Four rows are processed together, so that p and w are loaded once for
 * all four. */
#define ROW_PRODUCTS(type, ELEMENT) \
    static void row_dots_##type(int64_t count, int64_t n, const ELEMENT *a, int64_t pitch, const double *restrict p, \
                                double *restrict u) \
    { \
        int64_t i = 0; \
        for (; i + 4 <= count; i += 4) { \
            const ELEMENT *restrict a0 = a + i * pitch, *restrict a1 = a0 + pitch, *restrict a2 = a1 + pitch, \
                                    *restrict a3 = a2 + pitch; \
            double s0 = 0, s1 = 0, s2 = 0, s3 = 0; \
            _Pragma("omp simd reduction(+ : s0, s1, s2, s3)") for (int64_t j = 0; j < n; j++) \
            { \
                s0 += (double)a0[j] * p[j]; \
                s1 += (double)a1[j] * p[j]; \
                s2 += (double)a2[j] * p[j]; \
                s3 += (double)a3[j] * p[j]; \
            } \
            u[i] = s0, u[i + 1] = s1, u[i + 2] = s2, u[i + 3] = s3; \
        } \
        for (; i < count; i++) { \
            const ELEMENT *restrict a0 = a + i * pitch; \
            double s0 = 0; \
            _Pragma("omp simd reduction(+ : s0)") for (int64_t j = 0; j < n; j++) s0 += (double)a0[j] * p[j]; \
            u[i] = s0; \
        } \
    } \
    static void row_sums_##type(int64_t count, int64_t n, const ELEMENT *a, int64_t pitch, const double *restrict u, \
                                double *restrict w) \
    { \
        int64_t i = 0; \
        for (; i + 4 <= count; i += 4) { \
            const ELEMENT *restrict a0 = a + i * pitch, *restrict a1 = a0 + pitch, *restrict a2 = a1 + pitch, \
                                    *restrict a3 = a2 + pitch; \
            const double u0 = u[i], u1 = u[i + 1], u2 = u[i + 2], u3 = u[i + 3]; \
            _Pragma("omp simd") for (int64_t j = 0; j < n; j++) \
                w[j] += ((double)a0[j] * u0 + (double)a1[j] * u1) + ((double)a2[j] * u2 + (double)a3[j] * u3); \
        } \
        for (; i < count; i++) { \
            const ELEMENT *restrict a0 = a + i * pitch; \
            const double u0 = u[i]; \
            _Pragma("omp simd") for (int64_t j = 0; j < n; j++) w[j] += (double)a0[j] * u0; \
        } \
    }
ROW_PRODUCTS(f32, float)
ROW_PRODUCTS(f64, double)

static void row_dots(int64_t count, int64_t n, const void *a, fs_dtype dtype, int64_t pitch, const double *p, double *u)
{
    if (dtype == FS_F32) row_dots_f32(count, n, a, pitch, p, u);
    else row_dots_f64(count, n, a, pitch, p, u);
}
static void row_sums(int64_t count, int64_t n, const void *a, fs_dtype dtype, int64_t pitch, const double *u, double *w)
{
    if (dtype == FS_F32) row_sums_f32(count, n, a, pitch, u, w);
    else row_sums_f64(count, n, a, pitch, u, w);
}
