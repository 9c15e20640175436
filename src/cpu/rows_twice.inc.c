/* rows_twice.inc.c - the products of rows.inc.c for f64 rows, with numbers and sums of twice the precision.
 *
 * A number is an unevaluated sum hi + lo.  Sums are by Knuth's two-sum, errors of products by fma or Dekker's product; a
 * sum of n terms errs by about u + n^2 u^2 times the sum of their magnitudes, u = 2^-53 (Ogita, Rump and Oishi, SIAM
 * Journal on Scientific Computing 26, 2005).  LANES chains are independent, which compilers vectorize without reordering
 * anything. */
enum { LANES = 8 };

/* a b - p, where p is a b rounded. */
static inline double product_error(double a, double b, double p)
{
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return __builtin_fma(a, b, -p);
#else
    const double split = 134217729.0, as = split * a, bs = split * b; /* 2^27 + 1 */
    const double ah = as - (as - a), al = a - ah, bh = bs - (bs - b), bl = b - bh;
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
#endif
}

/* *hi + *lo += a (xh + xl) */
static inline void add_product(double a, double xh, double xl, double *hi, double *lo)
{
    const double p = a * xh, error = product_error(a, xh, p) + a * xl;
    const double sum = *hi + p, added = sum - *hi;
    *lo += ((*hi - (sum - added)) + (p - added)) + error;
    *hi = sum;
}

static void row_dots_twice(int64_t count, int64_t n, const double *a, int64_t pitch, const double *restrict xh,
                           const double *restrict xl, double *restrict uh, double *restrict ul)
{
    for (int64_t i = 0; i < count; i++) {
        const double *restrict row = a + i * pitch;
        double hi[LANES] = {0}, lo[LANES] = {0};
        int64_t j = 0;
        for (; j + LANES <= n; j += LANES)
            for (int l = 0; l < LANES; l++) add_product(row[j + l], xh[j + l], xl[j + l], &hi[l], &lo[l]);
        for (; j < n; j++) add_product(row[j], xh[j], xl[j], &hi[0], &lo[0]);
        for (int l = 1; l < LANES; l++) add_product(1, hi[l], lo[l], &hi[0], &lo[0]);
        uh[i] = hi[0], ul[i] = lo[0];
    }
}

static void row_sums_twice(int64_t count, int64_t n, const double *a, int64_t pitch, const double *restrict uh,
                           const double *restrict ul, double *restrict wh, double *restrict wl)
{
    for (int64_t i = 0; i < count; i++) {
        const double *restrict row = a + i * pitch;
        const double h = uh[i], l = ul[i];
        _Pragma("omp simd") for (int64_t j = 0; j < n; j++) add_product(row[j], h, l, &wh[j], &wl[j]);
    }
}
