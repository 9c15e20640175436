/* recipe.h - synthetic matrices, entry by entry: the same bits on every CPU and GPU from the same seed.
 *
 * Normal numbers are those of src/def/gauss.h, and every further operation is a single IEEE one (port.h), so nothing
 * depends on a compiler or a library.  Rows come in fours, because one Philox call makes four of them.
 *
 *   gaussian   i.i.d. N(0, 1): the paper's "ls_tall"
 *   lowrank    U V + 1e-5 E with U d x 64, V 64 x n, E all i.i.d. N(0, 1): the paper's "lr_tall"
 *   sparse     N(0, 1) with the density of SuiteSparse's Mittelmann/spal_004 (46168124 of 10203 x 321696), elsewhere 0
 *   hot        gaussian, rows 64 ... 127 times 100: 64 neighbouring rows have most of the norm
 *   bundles    gaussian, 20 runs of 16 rows, evenly apart, times 100
 *   decay      gaussian, row i times n / (n + i)
 *   identity   the identity on top of N(0, 0.01 / d)
 *   diagonal   gaussian in 16 blocks on the diagonal, elsewhere 0
 *   student    Student's t with two degrees of freedom, which has no variance
 *
 * The last six are coherent or adversarial for sketches that mix within contiguous blocks of rows. */
#ifndef FSI_BENCH_DATA_RECIPE_H
#define FSI_BENCH_DATA_RECIPE_H

#include "def/gauss.h"

typedef enum recipe_kind {
    RECIPE_GAUSSIAN,
    RECIPE_LOWRANK,
    RECIPE_SPARSE,
    RECIPE_HOT,
    RECIPE_BUNDLES,
    RECIPE_DECAY,
    RECIPE_IDENTITY,
    RECIPE_DIAGONAL,
    RECIPE_STUDENT,
    RECIPES
} recipe_kind;

enum { RECIPE_RANK = 64, RECIPE_BUNDLES_OF = 16, RECIPE_BUNDLE_COUNT = 20, RECIPE_DIAGONALS = 16 };
#define RECIPE_HEAVY 100.0f
/* floor(2^32 46168124 / (10203 321696)): a word below it makes an entry of `sparse`. */
#define RECIPE_DENSITY 60412741u

typedef struct recipe {
    recipe_kind kind;
    uint64_t seed;
    int64_t d, n;
    const float *U, *V; /* lowrank: d x 64 and 64 x n, row-major */
} recipe;

/* Independent streams of one seed: the matrix, U, V, the right-hand sides, and what an entry needs besides. */
enum recipe_stream { STREAM_MATRIX, STREAM_U, STREAM_V, STREAM_X, STREAM_NOISE, STREAM_SECOND, STREAM_THIRD };

/* Rows 4 p ... 4 p + 3 of column j of an i.i.d. N(0, 1) matrix. */
FSI_DEF void recipe_normals(uint64_t seed, enum recipe_stream stream, int64_t p, int64_t j, float z[4])
{
    const fsi_gauss G = fsi_gauss_make(seed + ((uint64_t)stream << 32), 0, 0);
    fsi_gauss_four(&G, p, j, z);
}

/* The factor of row i. */
FSI_DEF float recipe_weight(const recipe *r, int64_t i)
{
    switch (r->kind) {
    case RECIPE_HOT: return i >= 64 && i < 128 ? RECIPE_HEAVY : 1.0f;
    case RECIPE_BUNDLES: {
        const int64_t apart = r->d / RECIPE_BUNDLE_COUNT;
        return i < apart * RECIPE_BUNDLE_COUNT && i % apart < RECIPE_BUNDLES_OF ? RECIPE_HEAVY : 1.0f;
    }
    case RECIPE_DECAY: return (float)((double)r->n / (double)(r->n + i));
    case RECIPE_IDENTITY: return (float)(0.1 / (double)fsi_sqrtf((float)r->d));
    default: return 1.0f;
    }
}

FSI_DEF int recipe_on_diagonal(const recipe *r, int64_t i, int64_t j)
{
    return i * RECIPE_DIAGONALS / r->d == j * RECIPE_DIAGONALS / r->n;
}

/* Rows 4 p ... 4 p + 3 of column j. */
FSI_DEF void recipe_four(const recipe *r, int64_t p, int64_t j, float a[4])
{
    float u[4], v[4];
    fsi_quad word;
    recipe_normals(r->seed, STREAM_MATRIX, p, j, a);
    if (r->kind == RECIPE_STUDENT) {
        recipe_normals(r->seed, STREAM_SECOND, p, j, u);
        recipe_normals(r->seed, STREAM_THIRD, p, j, v);
    }
    if (r->kind == RECIPE_SPARSE)
        word = fsi_random_quad(r->seed + ((uint64_t)STREAM_SECOND << 32), FSI_TAG_SAMPLE, (uint64_t)j, (uint32_t)p, 0);
    for (int e = 0; e < 4; e++) {
        const int64_t i = 4 * p + e;
        switch (r->kind) {
        case RECIPE_LOWRANK: {
            float sum = fsi_mulf(1e-5f, a[e]);
            if (i < r->d)
                for (int t = 0; t < RECIPE_RANK; t++)
                    sum = fsi_addf(sum, fsi_mulf(r->U[i * RECIPE_RANK + t], r->V[t * r->n + j]));
            a[e] = sum;
            break;
        }
        case RECIPE_SPARSE: a[e] = word.w[e] < RECIPE_DENSITY ? a[e] : 0.0f; break;
        case RECIPE_IDENTITY: a[e] = i < r->n ? (i == j ? 1.0f : 0.0f) : fsi_mulf(recipe_weight(r, i), a[e]); break;
        case RECIPE_DIAGONAL: a[e] = recipe_on_diagonal(r, i, j) ? a[e] : 0.0f; break;
        case RECIPE_STUDENT: {
            /* z / sqrt(chi^2 / 2), chi^2 of two squares. */
            const float half = fsi_mulf(0.5f, fsi_addf(fsi_mulf(u[e], u[e]), fsi_mulf(v[e], v[e])));
            a[e] = (float)((double)a[e] / (double)fsi_sqrtf(half > 1e-12f ? half : 1e-12f));
            break;
        }
        default: a[e] = fsi_mulf(recipe_weight(r, i), a[e]);
        }
    }
}

#endif
