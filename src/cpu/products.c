/* products.c - the sketch of factored input: panels of X are computed and multiplied by S, one after the other.
 *
 * A panel is some columns of Y, with all pairs unless they are too many for its memory.  The factors of its columns are
 * first copied to f32 with columns side by side, [row][token][column], whatever their layout: they are small, and then
 * a row of X is a product of two contiguous rows, computed in vectors.  X has packed rows, which every family reads
 * fastest.  Fastest is a factor whose rows or whose columns are contiguous (a batch); other strides cost the copy a
 * cache line an element.
 *
 * Where a panel ends depends on the sizes alone and rows of X have one owner, so the bits do not depend on threads.
 * Memory: 64 MiB for a panel of X and as much for the factors; more where 16 columns of them are. */
#include "cpu/cpu.h"

enum { NARROW = 16, WIDE = 512, ROWS = 16, MANY = 1 << 17 };
static const int64_t most_floats = (int64_t)1 << 24;

/* Columns of a panel, its pairs, and the tokens that are copied at once. */
typedef struct panel {
    int64_t columns, pairs, tokens;
} panel;

static panel panel_of(const fsi_products *p, int64_t n)
{
    const int64_t tallest = fsi_max(p->width, fsi_min64(p->pairs->count, MANY));
    const int64_t fit = most_floats / fsi_max(tallest, 1) / NARROW * NARROW;
    panel of;
    of.columns = fsi_min64(n, fsi_max(fsi_min64(fit, WIDE), NARROW));
    of.pairs = fsi_min64(p->pairs->count, most_floats / of.columns);
    of.tokens = fsi_min64(p->tokens, fsi_max(most_floats / fsi_max(p->width * of.columns, 1), 1));
    return of;
}

/* to[r][t][c] = rows row + r, r < rows, of F at token t of columns col + c. */
#define WIDEN(name, ELEM, TO_FLOAT) \
    static void name(const fs_matrix *F, int64_t row, int64_t rows, int64_t tokens, int64_t first, int64_t count, \
                     int64_t col, int64_t cols, float *to) \
    { \
        const ELEM *from = (const ELEM *)F->data + F->offset + row * F->row_stride; \
        for (int64_t t = 0; t < count; t++) \
            for (int64_t c = 0; c < cols; c++) { \
                const ELEM *x = from + ((col + c) * tokens + first + t) * F->col_stride; \
                for (int64_t r = 0; r < rows; r++) to[(r * count + t) * cols + c] = TO_FLOAT(x[r * F->row_stride]); \
            } \
    }
WIDEN(widen_f32, float, )
WIDEN(widen_f16, uint16_t, fsi_float_of_f16)
WIDEN(widen_bf16, uint16_t, fsi_float_of_bf16)
#undef WIDEN

/* F[row][t][c], for tokens first ... first + count - 1 of columns col ... */
static void copy_factors(const fsi_cpu *cpu, const fsi_products *p, int64_t first, int64_t count, int64_t col,
                         int64_t cols, float *to)
{
    for (int f = 0; f < p->factor_count; f++) {
        const fs_matrix *F = &p->factors[f];
        void (*widen)(const fs_matrix *, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                      float *) = F->dtype == FS_F32   ? widen_f32
                                 : F->dtype == FS_F16 ? widen_f16
                                                      : widen_bf16;
#pragma omp parallel for num_threads(cpu->threads) schedule(static)
        for (int64_t row = 0; row < F->rows; row += ROWS)
            widen(F, row, fsi_min64(ROWS, F->rows - row), p->tokens, first, count, col, cols, to + row * count * cols);
        to += F->rows * count * cols;
    }
}

/* X = the products of pairs pair ... pair + pairs - 1, for columns col ... */
static void make_products(const fsi_cpu *cpu, const fsi_products *p, const panel *of, int64_t pair, int64_t pairs,
                          int64_t col, int64_t cols, float *F, float *X)
{
    const int32_t *index = p->pairs->index + 2 * pair;
    for (int64_t first = 0; first < p->tokens; first += of->tokens) {
        const int64_t count = fsi_min64(of->tokens, p->tokens - first);
        /* The copy of the last panel is reused where it holds all tokens. */
        if (pair == 0 || of->tokens < p->tokens) copy_factors(cpu, p, first, count, col, cols, F);
#pragma omp parallel for num_threads(cpu->threads) schedule(static)
        for (int64_t i = 0; i < pairs; i++) {
            const int32_t a = index[2 * i], b = index[2 * i + 1];
            cpu->ops->multiply(cols, count, first > 0, F + a * count * cols, b < 0 ? NULL : F + b * count * cols,
                               X + i * cols);
        }
    }
}

fs_result fsi_cpu_products(fsi_cpu *cpu, const fsi_def *S, int64_t row0, double alpha, const fsi_products *p,
                           double beta, const fs_matrix *Y)
{
    if (Y->rows == 0 || Y->cols == 0) return FS_OK;
    const panel of = panel_of(p, Y->cols);
    float *F = fsi_cpu_take(cpu, &cpu->panels, 4 * of.columns * (p->width * of.tokens + of.pairs));
    if (!F) return FS_ENOMEM;
    float *X = F + p->width * of.tokens * of.columns;
    for (int64_t col = 0; col < Y->cols; col += of.columns) {
        const int64_t cols = fsi_min64(of.columns, Y->cols - col);
        fs_matrix to = *Y;
        to.data = (float *)Y->data + col * Y->col_stride;
        to.cols = cols;
        int64_t pair = 0;
        do {
            const int64_t pairs = fsi_min64(of.pairs, p->pairs->count - pair);
            make_products(cpu, p, &of, pair, pairs, col, cols, F, X);
            const fs_matrix from = fs_row_major(X, pairs, cols, FS_F32);
            const fs_result result = cpu->ops->apply(cpu, S, row0 + pair, alpha, &from, NULL, pair == 0 ? beta : 1.0,
                                                     &to);
            if (result != FS_OK) return result;
            pair += pairs;
        } while (pair < p->pairs->count);
    }
    return FS_OK;
}
