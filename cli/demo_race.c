/* demo_race.c - the sketches that are compared, and the measurement of one of them. */
#include "cli.h"
#include "demo.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The paper's sketches are blockperm with contiguous blocks. */
const demo_sketch demo_sketches[DEMO_SKETCHES] = {
    {"blockperm (default)", FS_BLOCKPERM, 0, 0, (fs_shuffle)0},
    {"blockperm, groups", FS_BLOCKPERM, 0, 0, FS_SHUFFLE_GROUPS},
    {"paper, kappa 1, s 4", FS_BLOCKPERM, 1, 4, FS_SHUFFLE_NONE},
    {"paper, kappa 4, s 1", FS_BLOCKPERM, 4, 1, FS_SHUFFLE_NONE},
    {"sjlt, s 4", FS_SJLT, 0, 4, (fs_shuffle)0},
    {"countsketch", FS_SJLT, 0, 1, (fs_shuffle)0},
    {"blockrow", FS_BLOCKROW, 0, 0, (fs_shuffle)0},
    {"srht", FS_SRHT, 0, 0, (fs_shuffle)0},
    {"gaussian", FS_GAUSSIAN, 0, 0, (fs_shuffle)0},
};

enum { MAX_DRAWS = 5 };
static const double patience = 1.2; /* seconds for one sketch at one k, after which no new draw begins */

/* Gram matrices ---------------------------------------------------------------------------------------------- */

enum { GRAM_ROWS = 256 }; /* of a workspace: every k is a multiple of it */

int demo_gram_open(demo_race *race, int64_t cols)
{
    fs_task_shape shape = FS_TASK_SHAPE_INIT;
    shape.k = GRAM_ROWS;
    shape.n = cols;
    race->part = cli_array(cols, cols, sizeof *race->part);
    race->gram = cli_array(cols, cols, sizeof *race->gram);
    if (!race->part || !race->gram)
        return cli_fail("no memory for two Gram matrices of %" PRId64 " x %" PRId64, cols, cols);
    return fs_workspace_create(&race->w, race->ctx, &shape) ? cli_library_fail() : 0;
}

void demo_gram_close(demo_race *race)
{
    fs_workspace_destroy(race->w);
    free(race->part);
    free(race->gram);
}

int demo_gram(const demo_race *race, const float *X, int64_t rows, int64_t cols, double *G)
{
    fs_matrix Y, part = fs_row_major(race->part, cols, cols, FS_F64), sum = fs_row_major(G, cols, cols, FS_F64);
    fs_gram_report report = FS_GRAM_REPORT_INIT;
    if (fs_workspace_views(race->w, &Y, NULL)) return cli_library_fail();
    for (int64_t row = 0; row < rows; row += GRAM_ROWS) {
        const size_t line = (size_t)cols * sizeof *X, here = (size_t)(rows - row < GRAM_ROWS ? rows - row : GRAM_ROWS);
        memcpy(Y.data, X + row * cols, here * line);
        memset((char *)Y.data + here * line, 0, (GRAM_ROWS - here) * line);
        if (fs_gram(race->w, NULL, &part, &report) || fs_add(race->ctx, &part, 1, row ? 1.0 : 0.0, &sum))
            return cli_library_fail();
    }
    return 0;
}

/* |H - G|_F / |G|_F. */
static double gram_error(const double *H, const double *G, int64_t n)
{
    double apart = 0, whole = 0;
    for (int64_t i = 0; i < n * n; i++) {
        apart += (H[i] - G[i]) * (H[i] - G[i]);
        whole += G[i] * G[i];
    }
    return sqrt(apart / whole);
}

/* measurement --------------------------------------------------------------------------------------------------- */

/* One draw: the time of the product and the error of its Gram matrix. */
static int draw(const demo_race *race, const fs_spec *spec, double *ms, double *error)
{
    const demo_matrix *A = race->A;
    const fs_matrix from = fs_row_major(A->data, A->rows, A->cols, FS_F32);
    fs_matrix to = fs_row_major(race->Y, spec->k, A->cols, FS_F32);
    fs_sketch *S;
    if (fs_sketch_create(&S, spec)) return cli_library_fail();
    const double start = cli_seconds();
    const fs_result result = fs_apply(race->ctx, S, 0, 1.0, &from, 0.0, &to);
    *ms = 1e3 * (cli_seconds() - start);
    fs_sketch_destroy(S);
    if (result) return cli_library_fail();
    const int code = demo_gram(race, race->Y, spec->k, A->cols, race->gram);
    if (!code) *error = gram_error(race->gram, A->gram, A->cols);
    return code;
}

int demo_measure(const demo_race *race, const demo_sketch *sketch, int64_t k, int draws, demo_result *result)
{
    double ms[MAX_DRAWS], read[MAX_DRAWS], errors = 0;
    int done = 0;
    const double start = cli_seconds();
    do {
        fs_spec spec = FS_SPEC_INIT;
        spec.family = sketch->family;
        spec.d = race->A->rows;
        spec.k = k;
        spec.kappa = sketch->kappa;
        spec.s = sketch->s;
        spec.shuffle = sketch->shuffle;
        if (sketch->shuffle == FS_SHUFFLE_NONE) spec.M = (k + 63) / 64; /* the paper's blocks */
        spec.seed = race->seed + (uint64_t)done;
        double error = 0;
        read[done] = demo_read_ms(race->A);
        const int code = draw(race, &spec, &ms[done], &error);
        if (code) return code;
        errors += error;
        done++;
    } while (done < draws && done < MAX_DRAWS && cli_seconds() - start < patience);
    result->ms = cli_median(ms, done);
    result->read = cli_median(read, done);
    result->error = errors / done;
    return 0;
}
