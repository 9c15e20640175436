/* layers.c - features from layers against features of the same gradients, formed by plain loops.
 *
 * The parts are what a model may have: weights with biases that share their output gradients or have a copy of them, weights that
 * share their inputs, tensors given as they are, one of them long, one of them empty, with one token and with several,
 * in every element type and layout. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <flashsketch_attribution.h>

#include "tests/support/problems.h"
#include "tests/support/scarce.h"

enum { PARTS = 9, ALL = 198, SEVERAL = 5, LIMIT = 4 };

/* A part of out x in, in 0: no inputs.  `several`: it has SEVERAL tokens, or as many as in the case.  Output gradients
 * and inputs are those of part `same_output_gradients`, `same_inputs`; -1: their own. */
typedef struct part {
    int64_t out, in;
    int several, same_output_gradients, same_inputs;
    layout how;
    fs_dtype dtype;
} part;
static const part parts[PARTS] = {
    {6, 9, 1, -1, -1, COLUMNS, FS_F32},          {6, 0, 1, 0, -1, COLUMNS, FS_F32},
    {11, 0, 0, -1, -1, ROWS_PADDED, FS_F32},     {70, 0, 0, -1, -1, COLUMNS_PADDED, FS_F16},
    {4, 7, 0, -1, -1, ROWS_BACKWARD, FS_BF16},   {4, 0, 0, -1, -1, COLUMNS_SHIFTED, FS_F32},
    {3, 5, 1, -1, -1, COLUMNS_BACKWARD, FS_F16}, {0, 0, 1, -1, -1, COLUMNS, FS_F32},
    {2, 5, 1, -1, 6, ROWS_SPREAD, FS_F32},
};

/* A batch of n examples, their layers, and the gradients that these make: batch-major, f32. */
typedef struct batch {
    int64_t n;
    view output_gradients[PARTS], inputs[PARTS];
    fs_attribution_layer layers[PARTS];
    float *gradients;
    fs_matrix formed[PARTS];
} batch;

static void fill(view *v, int wholes, uint64_t seed)
{
    if (wholes) fill_whole(&v->m, seed, LIMIT);
    else fill_normal(&v->m, seed);
}

/* Row i of G, parameters of a part for example j. */
static float product_at(const fs_attribution_layer *l, int64_t i, int64_t j)
{
    const int64_t in = l->inputs.data ? l->inputs.rows : 1;
    double sum = 0;
    for (int64_t t = j * l->tokens; t < (j + 1) * l->tokens; t++)
        sum += at(&l->output_gradients, i / in, t) * (l->inputs.data ? at(&l->inputs, i % in, t) : 1);
    return (float)sum;
}

/* Gradients as the layers make them. */
static void form(batch *b, const int64_t *counts, int count)
{
    int64_t start = 0;
    for (int p = 0; p < count; p++) {
        for (int64_t j = 0; j < b->n; j++)
            for (int64_t i = 0; i < counts[p]; i++) b->gradients[j * ALL + start + i] = product_at(&b->layers[p], i, j);
        b->formed[p] = fs_batch_major(b->gradients, b->n, ALL, FS_F32);
        b->formed[p].rows = counts[p];
        b->formed[p].offset = counts[p] ? start : 0;
        start += counts[p];
    }
}

static void counts_of(int64_t *counts)
{
    for (int p = 0; p < PARTS; p++) counts[p] = parts[p].out * (parts[p].in ? parts[p].in : 1);
}

static batch batch_make(int64_t n, int64_t several, int wholes, uint64_t seed)
{
    batch b = {.n = n, .gradients = room(n * ALL, sizeof(float))};
    int64_t counts[PARTS];
    counts_of(counts);
    for (int p = 0; p < PARTS; p++) {
        const part *of = &parts[p];
        const int64_t tokens = of->several ? several : 1;
        fs_attribution_layer *l = &b.layers[p];
        memset(l, 0, sizeof *l);
        l->tokens = tokens;
        if (of->same_output_gradients < 0) {
            b.output_gradients[p] = view_make(of->how, of->out, n * tokens, of->dtype);
            fill(&b.output_gradients[p], wholes, seed + 2 * (uint64_t)p);
        }
        if (of->in && of->same_inputs < 0) {
            b.inputs[p] = view_make(of->how, of->in, n * tokens, of->dtype);
            fill(&b.inputs[p], wholes, seed + 2 * (uint64_t)p + 1);
        }
        l->output_gradients = b.output_gradients[of->same_output_gradients < 0 ? p : of->same_output_gradients].m;
        if (of->in) l->inputs = b.inputs[of->same_inputs < 0 ? p : of->same_inputs].m;
    }
    form(&b, counts, PARTS);
    return b;
}
static void batch_free(batch *b)
{
    for (int p = 0; p < PARTS; p++) {
        if (b->output_gradients[p].m.data) view_free(&b->output_gradients[p]);
        if (b->inputs[p].m.data) view_free(&b->inputs[p]);
    }
    free(b->gradients);
}

static fs_context *cpu(void)
{
    fs_context_options options = FS_CONTEXT_INIT;
    fs_context *ctx;
    options.backend = FS_BACKEND_CPU;
    MUST(fs_context_create(&ctx, &options));
    return ctx;
}

static fs_attribution *begin(fs_context *ctx, const recipe *R, int64_t N, int64_t mask, int64_t run)
{
    fs_attribution_options o = FS_ATTRIBUTION_INIT;
    fs_attribution *g;
    int64_t counts[PARTS];
    counts_of(counts);
    o.examples = N, o.parts = PARTS, o.parameters = counts, o.mask = mask, o.run = run;
    o.scale = 1;
    const fs_spec spec = spec_at(R, mask ? mask : ALL, 16, 9);
    o.sketch = &spec;
    MUST(fs_attribution_create(&g, ctx, &o));
    return g;
}

/* Features of g, whose examples have just been added, by layers and by gradients: equal, or within rounding. */
static void compare(const char *what, fs_attribution *g, fs_attribution *reference, int exact)
{
    fs_matrix got, want;
    double most = 0;
    MUST(fs_attribution_features(g, &got));
    MUST(fs_attribution_features(reference, &want));
    for (int64_t i = 0; i < want.rows * want.cols; i++) most = fmax(most, fabs(((float *)want.data)[i]));
    assert_true(most > 1);
    for (int64_t n = 0; n < want.rows; n++)
        for (int64_t i = 0; i < want.cols; i++)
            if (!(fabs(at(&got, n, i) - at(&want, n, i)) <= (exact ? 0 : 2e-6 * most)))
                fail_msg("%s: feature %d of example %d is %.9g, of formed gradients %.9g", what, (int)i, (int)n,
                         at(&got, n, i), at(&want, n, i));
}

/* Whether all entries of S are powers of two, so that on integers features are exact in any order of sums. */
static int is_exact(const recipe *R, int64_t mask)
{
    const fs_spec spec = spec_at(R, mask ? mask : ALL, 16, 9);
    fs_sketch *S = sketch_of(&spec);
    double *T = columns_of(S, 0, spec.d);
    int exact = 1, exponent;
    for (int64_t i = 0; i < spec.k * spec.d; i++) exact &= T[i] == 0 || fabs(frexp(T[i], &exponent)) == 0.5;
    free(T);
    fs_sketch_destroy(S);
    return exact;
}

static int check(fs_context *ctx, const recipe *R, int64_t several, int64_t mask, int64_t run, int wholes)
{
    enum { N = 13 };
    batch b = batch_make(N, several, wholes, 100);
    fs_attribution *g = begin(ctx, R, N, mask, run), *reference = begin(ctx, R, N, mask, run);
    char what[128];
    snprintf(what, sizeof what, "%s, %d tokens, mask %d in runs of %d, %s", R->name, (int)several, (int)mask, (int)run,
             wholes ? "integers" : "normals");
    MUST(fs_attribution_add_layers(g, 0, b.layers));
    MUST(fs_attribution_add(reference, 0, b.formed));
    const int exact = wholes && is_exact(R, mask);
    compare(what, g, reference, exact);
    fs_attribution_destroy(g);
    fs_attribution_destroy(reference);
    batch_free(&b);
    return exact;
}

/* Every family, one token and several, all coordinates, a mask and one in runs. */
static void features_from_layers_are_those_of_formed_gradients(void **state)
{
    fs_context *ctx = cpu();
    int exact = 0;
    (void)state;
    for (int r = 0; r < recipe_count; r++)
        for (int64_t several = 1; several <= SEVERAL; several += SEVERAL - 1)
            for (int wholes = 0; wholes < 2; wholes++) {
                exact += check(ctx, &recipes[r], several, 0, 1, wholes);
                exact += check(ctx, &recipes[r], several, 96, 1, wholes);
                exact += check(ctx, &recipes[r], several, 96, 8, wholes);
            }
    assert_true(exact >= recipe_count); /* of 6 recipe_count on integers */
    fs_context_destroy(ctx);
}

/* Batches of several sizes, also of none, in any order; projected features are those that are added. */
static void batches_and_projections_agree_to_the_bit(void **state)
{
    enum { N = 30, K_ = 16 };
    fs_context *ctx = cpu();
    fs_attribution *g = begin(ctx, &recipes[0], N, 96, 1), *reference = begin(ctx, &recipes[0], N, 96, 1);
    float features[N * K_];
    fs_matrix phi = fs_row_major(features, 17, K_, FS_F32), Phi;
    batch late = batch_make(17, SEVERAL, 1, 5), early = batch_make(13, SEVERAL, 1, 50), none = batch_make(0, 1, 1, 0);
    (void)state;
    assert_true(is_exact(&recipes[0], 96));
    MUST(fs_attribution_add_layers(g, 13, late.layers));
    MUST(fs_attribution_project_layers(g, late.layers, &phi));
    MUST(fs_attribution_add_layers(g, 0, none.layers));
    MUST(fs_attribution_add_layers(g, 0, early.layers));
    MUST(fs_attribution_add(reference, 0, early.formed));
    MUST(fs_attribution_add(reference, 13, late.formed));
    compare("two batches", g, reference, 1);
    MUST(fs_attribution_features(g, &Phi));
    assert_memory_equal((float *)Phi.data + 13 * K_, features, 17 * K_ * sizeof *features);
    MUST(fs_attribution_factor(g, 0.1));
    fs_attribution_destroy(g);
    fs_attribution_destroy(reference);
    batch_free(&late);
    batch_free(&early);
    batch_free(&none);
    fs_context_destroy(ctx);
}

/* 54 parameters are 6 x 9, then 9 x 6, then 6 x 9 again; then a bias has output gradients of its own, with the same numbers. */
static void widths_may_change_from_batch_to_batch(void **state)
{
    enum { N = 7 };
    fs_context *ctx = cpu();
    int64_t counts[PARTS];
    (void)state;
    counts_of(counts);
    for (int masked = 0; masked < 2; masked++) {
        const int64_t mask = masked ? 96 : 0;
        fs_attribution *g = begin(ctx, &recipes[0], N, mask, 1), *reference = begin(ctx, &recipes[0], N, mask, 1);
        assert_true(is_exact(&recipes[0], mask));
        for (int turn = 0; turn < 4; turn++) {
            batch b = batch_make(N, SEVERAL, 1, 300 + (uint64_t)turn);
            view copy = view_make(ROWS, 6, N * SEVERAL, FS_F32);
            for (int64_t i = 0; i < copy.m.rows * copy.m.cols; i++)
                put(&copy.m, i / copy.m.cols, i % copy.m.cols,
                    at(&b.output_gradients[0].m, i / copy.m.cols, i % copy.m.cols));
            if (turn == 1) {
                const fs_matrix slopes = b.layers[0].output_gradients;
                b.layers[0].output_gradients = b.layers[0].inputs;
                b.layers[0].inputs = slopes;
            }
            if (turn == 3) b.layers[1].output_gradients = copy.m;
            form(&b, counts, PARTS);
            MUST(fs_attribution_add_layers(g, 0, b.layers));
            MUST(fs_attribution_add(reference, 0, b.formed));
            compare("changed widths", g, reference, 1);
            view_free(&copy);
            batch_free(&b);
        }
        fs_attribution_destroy(g);
        fs_attribution_destroy(reference);
    }
    fs_context_destroy(ctx);
}

static void a_slope_that_is_not_finite_names_the_example(void **state)
{
    enum { N = 10 };
    fs_context *ctx = cpu();
    fs_attribution *g = begin(ctx, &recipes[0], N, 0, 1);
    batch b = batch_make(N, SEVERAL, 1, 8), some = batch_make(4, SEVERAL, 1, 8);
    uint8_t added[N];
    (void)state;
    MUST(fs_attribution_add_layers(g, 0, b.layers));
    put(&some.output_gradients[0].m, 3, 2 * SEVERAL + 4, NAN);
    REFUSED(fs_attribution_add_layers(g, 3, some.layers), FS_EINVAL, "fs_attribution_add_layers",
            "the gradient of example 5 is not finite");
    MUST(fs_attribution_added(g, added));
    for (int i = 0; i < N; i++) assert_int_equal(added[i], i < 3 || i > 6);
    put(&some.output_gradients[0].m, 3, 2 * SEVERAL + 4, 1);
    put(&some.inputs[6].m, 0, 3 * SEVERAL, INFINITY);
    REFUSED(fs_attribution_add_layers(g, 3, some.layers), FS_EINVAL, "example 6");
    put(&some.inputs[6].m, 0, 3 * SEVERAL, 1);
    MUST(fs_attribution_add_layers(g, 3, some.layers));
    MUST(fs_attribution_factor(g, 0.1));
    fs_attribution_destroy(g);
    batch_free(&b);
    batch_free(&some);
    fs_context_destroy(ctx);
}

static void layers_that_do_not_fit_are_refused_with_the_numbers(void **state)
{
    enum { N = 4 };
    fs_context *ctx = cpu();
    fs_attribution *g = begin(ctx, &recipes[0], N, 96, 1);
    float features[N * 16];
    fs_matrix phi = fs_row_major(features, N, 16, FS_F32);
    batch b = batch_make(N, SEVERAL, 1, 8);
    fs_attribution_layer bad[PARTS];
    (void)state;
#define BROKEN(change, ...) \
    do { \
        memcpy(bad, b.layers, sizeof bad); \
        change; \
        REFUSED(fs_attribution_add_layers(g, 0, bad), FS_EINVAL, "fs_attribution_add_layers", __VA_ARGS__); \
        REFUSED(fs_attribution_project_layers(g, bad, &phi), FS_EINVAL, "fs_attribution_project_layers", __VA_ARGS__); \
    } while (0)
    BROKEN(bad[0].inputs.rows = 8, "layers[0] is a weight of 6 x 8", "parameters[0] = 54");
    BROKEN(bad[1].output_gradients.rows = 5, "layers[1] is a bias of 5 x 1", "parameters[1] = 6");
    BROKEN(bad[0].inputs.data = NULL, "layers[0] is a bias of 6 x 1", "parameters[0] = 54");
    BROKEN(bad[4].tokens = 0, "layers[4].tokens = 0");
    BROKEN(bad[0].tokens = 3, "layers[0].output_gradients has 20 columns", "6 examples of 3 tokens");
    BROKEN(bad[0].inputs.cols = 19, "layers[0].inputs has 19 columns", "4 examples of 5 tokens");
    BROKEN(bad[2].output_gradients.cols = 3, "layers[2].output_gradients has 3 columns", "4 examples of 1 tokens");
    BROKEN(bad[8].output_gradients.dtype = (fs_dtype)9, "layers[8].output_gradients has dtype 9");
    BROKEN(bad[8].output_gradients.data = NULL, "layers[8].output_gradients", "its data is NULL");
#undef BROKEN
    static double wide[2 * N * SEVERAL];
    memcpy(bad, b.layers, sizeof bad);
    bad[8].output_gradients = fs_batch_major(wide, N * SEVERAL, 2, FS_F64);
    REFUSED(fs_attribution_add_layers(g, 0, bad), FS_EINVAL, "layers[8].output_gradients is f64", "f32, f16 or bf16");
    bad[8] = b.layers[8];
    bad[8].output_gradients.memory = FS_MEMORY_CUDA;
    REFUSED(fs_attribution_add_layers(g, 0, bad), FS_EUNSUPPORTED, "layers[8].output_gradients is in cuda memory");
    REFUSED(fs_attribution_add_layers(g, 1, b.layers), FS_EINVAL, "1 + 4", "among the 4");
    REFUSED(fs_attribution_add_layers(g, 0, NULL), FS_EINVAL, "layers is NULL");
    REFUSED(fs_attribution_add_layers(NULL, 0, b.layers), FS_EINVAL, "g is NULL");
    phi.cols = 15;
    REFUSED(fs_attribution_project_layers(g, b.layers, &phi), FS_EINVAL, "4 x 15", "4 x 16");
    MUST(fs_attribution_add_layers(g, 0, b.layers));
    fs_attribution_destroy(g);
    batch_free(&b);
    fs_context_destroy(ctx);
}

/* Whatever allocation fails: nothing leaks, the examples are missing, and the same call with memory adds them. */
static void without_memory_nothing_is_added_and_nothing_leaks(void **state)
{
    enum { N = 5 };
    batch b = batch_make(N, SEVERAL, 1, 8);
    int failures = 0;
    (void)state;
    for (int n = 0, done = 0; !done; n++) {
        scarce s = {1000, 0};
        fs_context_options options = FS_CONTEXT_INIT;
        fs_context *ctx;
        options.backend = FS_BACKEND_CPU;
        options.allocator = scarce_allocator(&s);
        MUST(fs_context_create(&ctx, &options));
        fs_attribution *g = begin(ctx, &recipes[0], N, 96, 1);
        s.left = n;
        const fs_result result = fs_attribution_add_layers(g, 0, b.layers);
        uint8_t added[N];
        MUST(fs_attribution_added(g, added));
        done = result == FS_OK;
        for (int i = 0; i < N; i++) assert_int_equal(added[i], done);
        if (!done) {
            assert_int_equal(result, FS_ENOMEM);
            assert_non_null(strstr(fs_error_message(), "no memory"));
            failures++;
        }
        s.left = 1000;
        MUST(fs_attribution_add_layers(g, 0, b.layers));
        s.left = 0; /* and then none is needed any more */
        MUST(fs_attribution_add_layers(g, 0, b.layers));
        fs_attribution_destroy(g);
        fs_context_destroy(ctx);
        assert_int_equal(s.live, 0);
    }
    assert_true(failures >= 3); /* factors, where they are, pairs; and scratch */
    batch_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_from_layers_are_those_of_formed_gradients),
        cmocka_unit_test(batches_and_projections_agree_to_the_bit),
        cmocka_unit_test(widths_may_change_from_batch_to_batch),
        cmocka_unit_test(a_slope_that_is_not_finite_names_the_example),
        cmocka_unit_test(layers_that_do_not_fit_are_refused_with_the_numbers),
        cmocka_unit_test(without_memory_nothing_is_added_and_nothing_leaks),
    };
    return RUN_TASK_TESTS(tests);
}
