/* scoring.c - scores of training images for test images, the damping that suits them best, and their LDS. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "random.h"
#include "stages.h"

typedef struct scoring {
    experiment *e;
    features f;
    float *some_phi; /* features of the test images that choose the damping, in the device's memory */
    double *scores[EXPERIMENT_DAMPINGS]; /* of those, for every damping: validation x N */
    double *all;                         /* of all test images: tests x N; `given`: the caller's */
    int given;
    double *y, *lds, *work;
    int64_t *validation, *others; /* the test images that choose the damping, and the others */
    double damping;
} scoring;

static double damping_at(int i) { return pow(10, i - 7); }

/* scores ----------------------------------------------------------------------------------------------------- */

static fs_result add_scores(const scoring *s, fs_attribution *g, int64_t c, const fs_matrix *from, double *scores)
{
    fs_matrix to = fs_row_major(scores, from->rows, s->f.N, FS_F64);
    return fs_attribution_scores(g, from, s->e->Q, 1.0 / (double)s->e->recipe.ensemble, c ? 1.0 : 0.0, &to);
}

/* Copies the features of the validation images from f.phi to some_phi. */
static fs_result gather_validation(const scoring *s)
{
    const grass_device *device = s->e->device;
    const int64_t V = s->e->recipe.validation, k = s->f.k;
    float *host = s->f.host;
    GRASS_TRY(device->ops->fetch(device->state, s->f.phi, (size_t)(s->f.tests * k) * sizeof *host, host));
    for (int64_t v = 0; v < V; v++) /* in place: validation[] ascends */
        memmove(host + v * k, host + s->validation[v] * k, (size_t)k * sizeof *host);
    return device->ops->send(device->state, host, (size_t)(V * k) * sizeof *host, s->some_phi);
}

/* Adds checkpoint c's scores of the validation images, for all dampings.  Scores of a damping at which K is singular
 * are NaN from then on. */
static fs_result score_validation(void *user, fs_attribution *g, int64_t c)
{
    const scoring *s = user;
    const int64_t V = s->e->recipe.validation;
    const fs_matrix from = features_view(&s->f, s->some_phi, V);
    fs_result result = gather_validation(s);
    for (int i = 0; i < EXPERIMENT_DAMPINGS && result == FS_OK; i++) {
        const fs_result factored = fs_attribution_factor(g, damping_at(i));
        if (factored == FS_OK) result = add_scores(s, g, c, &from, s->scores[i]);
        else if (factored == FS_EINVAL)
            for (int64_t j = 0; j < V * s->f.N; j++) s->scores[i][j] = NAN;
        else result = factored;
    }
    return result;
}

static fs_result score_tests(void *user, fs_attribution *g, int64_t c)
{
    const scoring *s = user;
    const fs_matrix from = features_view(&s->f, s->f.phi, s->f.tests);
    GRASS_TRY(fs_attribution_factor(g, s->damping));
    return add_scores(s, g, c, &from, s->all);
}

/* LDS -------------------------------------------------------------------------------------------------------- */

/* LDS of the images which[0 .. count), whose scores are the rows of `scores`, or rows which[] of it. */
static void lds_some(scoring *s, const double *scores, int by_number, const int64_t *which, int64_t count)
{
    const experiment *e = s->e;
    const int64_t N = s->f.N;
    for (int64_t t = 0; t < count; t++) {
        for (int64_t i = 0; i < e->recipe.models; i++) s->y[i] = e->y[i * s->f.tests + which[t]];
        lds_of(1, N, e->recipe.models, e->recipe.half, scores + (by_number ? which[t] : t) * N, e->chosen, s->y,
               s->lds + t, s->work);
    }
}

static fs_result choose_damping(scoring *s, experiment_result *out)
{
    int best = -1;
    for (int i = 0; i < EXPERIMENT_DAMPINGS; i++) {
        const int64_t V = s->e->recipe.validation;
        lds_some(s, s->scores[i], 0, s->validation, V);
        out->validation[i] = lds_summarise(V, 1, s->lds, 0, s->work).mean;
        if (!isnan(out->validation[i]) && (best < 0 || out->validation[i] > out->validation[best])) best = i;
    }
    if (best < 0) return fs_fail(FS_EBACKEND, "no damping from %g to %g gives scores", damping_at(0), damping_at(9));
    out->damping = damping_at(best);
    return FS_OK;
}

static const double first_pass = 0.8; /* its share: ten Cholesky factors, not one, of each checkpoint */

static fs_result run_scoring(scoring *s, double damping, experiment_result *out)
{
    experiment *e = s->e;
    out->damping = damping;
    for (int i = 0; i < EXPERIMENT_DAMPINGS; i++) out->validation[i] = NAN;
    if (damping == 0) {
        GRASS_TRY(features_pass(&s->f, "features and dampings", 0, first_pass, score_validation, s));
        GRASS_TRY(choose_damping(s, out));
    }
    s->damping = out->damping;
    GRASS_TRY(features_pass(&s->f, "scores", damping == 0 ? first_pass : 0, 1, score_tests, s));
    const int64_t others = s->f.tests - e->recipe.validation;
    lds_some(s, s->all, 1, s->others, others);
    out->lds = lds_summarise(others, 1, s->lds, e->recipe.seed, s->work);
    for (int64_t t = 0; t < s->f.tests; t++) e->lds[t] = NAN;
    for (int64_t t = 0; t < others; t++) e->lds[s->others[t]] = s->lds[t];
    return FS_OK;
}

/* memory ----------------------------------------------------------------------------------------------------- */

static fs_result allocate_scoring(scoring *s)
{
    const experiment_recipe *r = &s->e->recipe;
    const grass_device *device = s->e->device;
    const int64_t N = s->f.N, tests = s->f.tests;
    const size_t rows = (size_t)N * sizeof(double), longest = (size_t)(2 * tests + 5 * r->models + LDS_SAMPLES);
    void *some_phi = NULL;
    int ok = 1;
    GRASS_TRY(device->ops->alloc(device->state, (size_t)(r->validation * s->f.k) * sizeof(float), &some_phi));
    s->some_phi = some_phi;
    for (int i = 0; i < EXPERIMENT_DAMPINGS; i++) ok &= !!(s->scores[i] = malloc((size_t)r->validation * rows));
    if (!s->given) ok &= !!(s->all = malloc((size_t)tests * rows));
    ok &= !!(s->y = malloc((size_t)r->models * sizeof(double)));
    ok &= !!(s->lds = malloc((size_t)tests * sizeof(double)));
    ok &= !!(s->work = malloc(longest * sizeof(double)));
    ok &= !!(s->validation = malloc((size_t)tests * sizeof(int64_t)));
    ok &= !!(s->others = malloc((size_t)tests * sizeof(int64_t)));
    return ok ? FS_OK : fs_fail(FS_ENOMEM, "no memory for %" PRId64 " x %" PRId64 " scores", tests, N);
}

static void release_scoring(scoring *s)
{
    const grass_device *device = s->e->device;
    if (s->some_phi) device->ops->release(device->state, s->some_phi);
    for (int i = 0; i < EXPERIMENT_DAMPINGS; i++) free(s->scores[i]);
    if (!s->given) free(s->all);
    free(s->y);
    free(s->lds);
    free(s->work);
    free(s->validation);
    free(s->others);
    features_close(&s->f);
}

static void choose_validation(scoring *s)
{
    const int64_t V = s->e->recipe.validation;
    grass_choose(s->e->recipe.seed, GRASS_TAG_SPLIT, 0, s->f.tests, V, s->validation);
    for (int64_t t = 0, v = 0, o = 0; t < s->f.tests; t++)
        if (v < V && s->validation[v] == t) v++;
        else s->others[o++] = t;
}

fs_result experiment_lds(experiment *e, const fs_spec *sketch, int64_t mask, double damping, double *scores,
                         experiment_result *result)
{
    scoring s = {.e = e, .all = scores, .given = scores != NULL};
    memset(result, 0, sizeof *result);
    GRASS_REQUIRE(isfinite(damping) && damping >= 0, "a damping of %g: it must be positive, or 0 for the best",
                  damping);
    GRASS_TRY(features_open(&s.f, e, sketch, mask));
    fs_result code = allocate_scoring(&s);
    if (code == FS_OK) {
        choose_validation(&s);
        code = run_scoring(&s, damping, result);
    }
    result->project_seconds = s.f.seconds;
    result->project_batches = s.f.batches;
    release_scoring(&s);
    return code;
}
