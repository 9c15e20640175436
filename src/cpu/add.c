/* add.c - Y = beta Y + P[0] + P[1] + ... in host memory: sums in f64, in this order, rounded once.
 *
 * Works along the direction in which Y is closer packed, a run of elements at a time, whose sums stay in cache while
 * one matrix after the other is added. */
#include <string.h>

#include "cpu/cpu.h"

enum { RUN = 512, WORTH_A_THREAD = 32768 };

/* sums[c] = or += the c-th element of a run that starts at `from`; the branches are outside of the loops so that those
 * vectorize. */
#define LOAD(element, value) \
    do { \
        const element *x = (const element *)data + from; \
        if (add) \
            for (int64_t c = 0; c < count; c++) sums[c] += value(x[c * stride]); \
        else \
            for (int64_t c = 0; c < count; c++) sums[c] = value(x[c * stride]); \
    } while (0)
static void add_load(double *sums, int add, const void *data, fs_dtype dtype, int64_t from, int64_t stride,
                     int64_t count)
{
    switch (dtype) {
    case FS_F64: LOAD(double, (double)); break;
    case FS_F32: LOAD(float, (double)); break;
    case FS_F16: LOAD(uint16_t, fsi_float_of_f16); break;
    default: LOAD(uint16_t, fsi_float_of_bf16);
    }
}

#define STORE(element, value, rounded) \
    do { \
        element *y = (element *)data + from; \
        if (beta == 0) \
            for (int64_t c = 0; c < count; c++) y[c * stride] = rounded(sums[c]); \
        else \
            for (int64_t c = 0; c < count; c++) y[c * stride] = rounded((sums[c] + beta * value(y[c * stride]))); \
    } while (0)
static uint16_t f16_of(double x) { return fsi_f16_of_float((float)x); }
static uint16_t bf16_of(double x) { return fsi_bf16_of_float((float)x); }
static void add_store(const double *sums, double beta, void *data, fs_dtype dtype, int64_t from, int64_t stride,
                      int64_t count)
{
    switch (dtype) {
    case FS_F64: STORE(double, (double), (double)); break;
    case FS_F32: STORE(float, (double), (float)); break;
    case FS_F16: STORE(uint16_t, fsi_float_of_f16, f16_of); break;
    default: STORE(uint16_t, fsi_float_of_bf16, bf16_of);
    }
}

static void sum_line(const fs_matrix *P, int count, double beta, const fs_matrix *Y, int down, int64_t line)
{
    const int64_t length = down ? Y->rows : Y->cols;
    double sums[RUN];
    for (int64_t at = 0; at < length; at += RUN) {
        const int64_t here = length - at < RUN ? length - at : RUN, i = down ? at : line, j = down ? line : at;
        memset(sums, 0, sizeof sums);
        for (int p = 0; p < count; p++)
            add_load(sums, p > 0, P[p].data, P[p].dtype, P[p].offset + i * P[p].row_stride + j * P[p].col_stride,
                     down ? P[p].row_stride : P[p].col_stride, here);
        add_store(sums, beta, Y->data, Y->dtype, Y->offset + i * Y->row_stride + j * Y->col_stride,
                  down ? Y->row_stride : Y->col_stride, here);
    }
}

void fsi_cpu_add(int threads, const fs_matrix *P, int count, double beta, const fs_matrix *Y)
{
    const int down = !fsi_view_is_row_major(Y);
    const int64_t lines = down ? Y->cols : Y->rows, elements = Y->rows * Y->cols;
    const int worth = (int)fsi_min64(elements / WORTH_A_THREAD + 1, FS_THREADS_MAX);
    const int most = worth == 1 ? 1 : (int)fsi_min64(worth, fs_thread_count(threads));
#pragma omp parallel for num_threads(most) schedule(static)
    for (int64_t line = 0; line < lines; line++) sum_line(P, count, beta, Y, down, line);
}
