/* demo_matrix.c - the demo's matrix, and the time to read it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "claims.h"
#include "cli.h"
#include "demo.h"
#include "apps/common/images.h"

static const char fashion[] = "/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz";
enum { SYNTHETIC_COLS = 784, RANK = 8 };

/* A number in [-1, 1) from a counter: the finalizer of SplitMix64 (Steele, Lea and Flood, 2014). */
static float uniform(uint64_t counter)
{
    uint64_t x = (counter + 1) * 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return (float)((x ^ x >> 31) >> 40) / 8388608.0f - 1.0f;
}

/* Eight directions of falling weight and a little noise, like images: a_ij = sum_t 2^-t u_it v_tj + noise_ij / 8. */
static int make_synthetic(demo_matrix *A, int64_t rows)
{
    A->rows = rows;
    A->cols = SYNTHETIC_COLS;
    A->data = cli_array(rows, A->cols, sizeof *A->data);
    if (!A->data) return cli_fail("no memory for %" PRId64 " rows; give --rows a smaller number", rows);
    static float v[RANK][SYNTHETIC_COLS];
    for (int t = 0; t < RANK; t++)
        for (int j = 0; j < SYNTHETIC_COLS; j++)
            v[t][j] = uniform((uint64_t)(t * SYNTHETIC_COLS + j)) / (float)(1 << t);
#pragma omp parallel for
    for (int64_t i = 0; i < rows; i++) {
        const uint64_t start = (uint64_t)(i + RANK) << 16;
        float *row = A->data + i * SYNTHETIC_COLS;
        for (int j = 0; j < SYNTHETIC_COLS; j++) row[j] = uniform(start + RANK + (uint64_t)j) / 8;
        for (int t = 0; t < RANK; t++) {
            const float u = uniform(start + (uint64_t)t);
            for (int j = 0; j < SYNTHETIC_COLS; j++) row[j] += u * v[t][j];
        }
    }
    return 0;
}

/* The first rows of an IDX file of bytes. */
static int read_images(demo_matrix *A, const char *path, int64_t rows)
{
    image_rows images;
    if (claims_input(path)) return EXIT_FAILURE;
    const int code = images_read(path, rows, DEMO_MAX_COLS, &images) ? cli_library_fail() : 0;
    A->rows = images.rows;
    A->cols = images.cols;
    A->data = images.data;
    return code;
}

int demo_load(demo_matrix *A, const char *path, int64_t rows)
{
    memset(A, 0, sizeof *A);
    int code;
    const int absent = !path && access(fashion, R_OK) != 0;
    if (absent || (path && !strcmp(path, "synthetic"))) {
        snprintf(A->name, sizeof A->name, "a synthetic matrix");
        A->stand_in = absent;
        code = make_synthetic(A, rows);
    } else {
        const char *slash = path ? strrchr(path, '/') : NULL;
        snprintf(A->name, sizeof A->name, "%s", slash ? slash + 1 : path ? path : "Fashion-MNIST");
        code = read_images(A, path ? path : fashion, rows);
    }
    if (!code && A->rows < DEMO_MIN_ROWS)
        code = cli_fail("%s has %" PRId64 " rows; the comparison needs at least %d", A->name, A->rows, DEMO_MIN_ROWS);
    if (!code && !(A->gram = cli_array(A->cols, A->cols, sizeof *A->gram)))
        code = cli_fail("no memory for a %" PRId64 " x %" PRId64 " Gram matrix", A->cols, A->cols);
    if (code) demo_free(A);
    return code;
}

void demo_free(demo_matrix *A)
{
    free(A->data);
    free(A->gram);
    memset(A, 0, sizeof *A);
}

void demo_make_heavy(demo_matrix *A)
{
    const int64_t first = A->rows / 2;
    for (int64_t i = first * A->cols; i < (first + DEMO_HEAVY) * A->cols; i++) A->data[i] *= DEMO_WEIGHT;
}

double demo_read_ms(const demo_matrix *A)
{
    enum { LANES = 64 }; /* sums side by side, so that additions do not wait for each other */
    const int64_t count = A->rows * A->cols / LANES;
    const double start = cli_seconds();
    float total = 0;
#pragma omp parallel reduction(+ : total)
    {
        float sum[LANES] = {0};
#pragma omp for schedule(static)
        for (int64_t i = 0; i < count; i++)
            for (int lane = 0; lane < LANES; lane++) sum[lane] += A->data[i * LANES + lane];
        for (int lane = 0; lane < LANES; lane++) total += sum[lane];
    }
    const volatile float kept = total; /* so that the compiler keeps the sum */
    (void)kept;
    return 1e3 * (cli_seconds() - start);
}
