/* experiment.c - the whole experiment, reduced, on images whose classes are blobs: a positive LDS with a margin, the
 * same bits when models and features were kept, and a folder of something else refused.
 *
 * The images are 6 x 6 pixels of four noisy classes, so that models differ by which examples of a class they have seen.
 * LDS is 0 for scores without information: shuffled ground truth shows it with the same scores. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/grass/experiment.h"
#include "tests/support/folders.h"
#include "tests/support/problems.h"

enum { PIXELS = 36, CLASSES = 10, TRAIN = 200, TESTS = 60 };

static grass_images blobs(int64_t count, uint64_t seed)
{
    grass_images d = {count, PIXELS, room(count * PIXELS, sizeof(float)), room(count, 1)};
    for (int64_t i = 0; i < count; i++) {
        d.label[i] = (uint8_t)(bits_at(seed, i) % 4);
        for (int64_t u = 0; u < PIXELS; u++)
            d.x[i * PIXELS + u] = (float)(0.35 * normal_at(90 + d.label[i], u) + normal_at(seed + 1, i * PIXELS + u));
    }
    return d;
}

static const experiment_recipe reduced = {
    {3, {PIXELS, 16, 12, CLASSES}}, {0.05, 0.9, 0.1, 16, 15}, 40, 5, TRAIN / 2, 10, 64, 1, 7};

static char folder[] = "grass-XXXXXX";
static grass_device device;
static grass_data data;

static int set_up(void **state)
{
    fs_context_options options = FS_CONTEXT_INIT;
    (void)state;
    options.backend = FS_BACKEND_CPU;
    data.train = blobs(TRAIN, 1);
    data.test = blobs(TESTS, 3);
    MUST(grass_device_open(&device, &options));
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    grass_data_free(&data);
    grass_device_close(&device);
    remove_tree(folder);
    return 0;
}

static fs_spec spec_of(fs_family family, int64_t k)
{
    fs_spec spec = FS_SPEC_INIT;
    spec.family = family;
    spec.k = k;
    spec.seed = 42;
    return spec;
}

/* With gradients of all 874 parameters and with a mask of 4 k, by every family. */
static void every_family_predicts_the_outputs_of_models(void **state)
{
    experiment e;
    experiment_result result;
    (void)state;
    MUST(experiment_open(&e, &device, &reduced, &data, folder, NULL));
    MUST(experiment_models(&e));
    for (int family = FS_BLOCKPERM; family <= FS_GAUSSIAN; family++)
        for (int masked = 0; masked < 2; masked++) {
            const fs_spec spec = spec_of((fs_family)family, 96);
            MUST(experiment_lds(&e, &spec, masked ? 4 * 96 : 0, 0, NULL, &result));
            print_message("family %d%s: LDS %.3f [%.3f, %.3f] of %d images, damping %g\n", family,
                          masked ? ", masked" : "", result.lds.mean, result.lds.low, result.lds.high,
                          (int)result.lds.count, result.damping);
            assert_int_equal(result.lds.count, TESTS - reduced.validation);
            assert_true(result.project_seconds > 0);
            if (!(result.lds.mean > 0.1 && result.lds.low > 0.05))
                fail_msg("family %d, masked %d: LDS %.3f [%.3f, %.3f]", family, masked, result.lds.mean, result.lds.low,
                         result.lds.high);
        }
    /* The same scores against the outputs of models for other images. */
    const fs_spec spec = spec_of(FS_BLOCKPERM, 96);
    double *turned = room(reduced.models * TESTS, 8);
    for (int64_t i = 0; i < reduced.models; i++)
        for (int64_t t = 0; t < TESTS; t++)
            turned[i * TESTS + t] = e.y[(i + 1 + t % (reduced.models - 1)) % reduced.models * TESTS + t];
    memcpy(e.y, turned, (size_t)(reduced.models * TESTS) * sizeof *turned);
    MUST(experiment_lds(&e, &spec, 0, 0, NULL, &result));
    if (!(fabs(result.lds.mean) < 0.1)) fail_msg("LDS of models out of order is %.3f", result.lds.mean);
    free(turned);
    experiment_close(&e);
}

static void what_was_kept_gives_the_same_bits_and_is_not_recomputed(void **state)
{
    const fs_spec spec = spec_of(FS_BLOCKPERM, 32);
    experiment_result first, again;
    experiment e;
    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        MUST(experiment_open(&e, &device, &reduced, &data, folder, NULL));
        MUST(experiment_models(&e));
        MUST(experiment_lds(&e, &spec, 128, 0, NULL, turn ? &again : &first));
        experiment_close(&e);
    }
    assert_true(first.project_seconds > 0 && again.project_seconds == 0);
    assert_true(first.damping == again.damping);
    assert_memory_equal(first.validation, again.validation, sizeof first.validation);
    assert_memory_equal(&first.lds, &again.lds, sizeof first.lds);
}

/* A run that was interrupted: one model is missing, as is one file of features. */
static void what_is_missing_is_recomputed_with_the_same_bits(void **state)
{
    const fs_spec spec = spec_of(FS_BLOCKPERM, 32);
    experiment_result first, again;
    experiment e;
    char path[4096];
    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        MUST(experiment_open(&e, &device, &reduced, &data, folder, NULL));
        MUST(experiment_models(&e));
        MUST(experiment_lds(&e, &spec, 128, 0, NULL, turn ? &again : &first));
        experiment_close(&e);
        if (turn) break;
        snprintf(path, sizeof path, "%s/model-003.npy", folder);
        assert_int_equal(unlink(path), 0);
        DIR *d = opendir(folder);
        int removed = 0;
        for (struct dirent *f; (f = readdir(d));) {
            snprintf(path, sizeof path, "%s/%.200s/train-001.npy", folder, f->d_name);
            if (strstr(f->d_name, "-128")) removed += unlink(path) == 0;
        }
        closedir(d);
        assert_int_equal(removed, 1);
    }
    assert_true(again.project_seconds > 0);
    assert_memory_equal(&first.lds, &again.lds, sizeof first.lds);
}

/* The features of checkpoint c as the recipe has them: gradients formed, masked and sketched. */
static void expect_features(const experiment *e, const experiment_kept *kept, const fs_spec *spec, int64_t mask,
                            int64_t c)
{
    const int64_t p = e->parameters, k = spec->k;
    float *G = room(TRAIN * p, sizeof *G), *had = room(TRAIN * k, sizeof *had);
    const fs_matrix gradients = fs_batch_major(G, TRAIN, p, FS_F32), file = fs_row_major(had, TRAIN, k, FS_F32);
    fs_attribution_options o = FS_ATTRIBUTION_INIT;
    cache folder_of = {.lock = -1};
    double margins[TRAIN], error = 0, size = 0;
    char name[32];
    fs_attribution *g;
    fs_matrix Phi;
    mlp net;
    int found;
    o.examples = TRAIN, o.parts = 1, o.parameters = &p, o.mask = mask;
    fs_spec seeded = *spec;
    seeded.seed += 100000 * (uint64_t)c;
    o.sketch = &seeded;
    MUST(mlp_open(&net, &device, &reduced.shape, TRAIN, 1));
    MUST(mlp_set(&net, 0, e->theta + c * p));
    MUST(mlp_forward(&net, data.train.x, TRAIN, NULL));
    MUST(mlp_margin(&net, TRAIN, data.train.label, margins));
    MUST(mlp_gradients(&net, TRAIN, G, p));
    MUST(fs_attribution_create(&g, device.ctx, &o));
    MUST(fs_attribution_add(g, 0, &gradients));
    MUST(fs_attribution_features(g, &Phi));
    snprintf(folder_of.folder, sizeof folder_of.folder, "%.4000s", kept->folder);
    snprintf(name, sizeof name, "train-%03d", (int)c);
    MUST(cache_get(&folder_of, name, &file, &found));
    assert_true(found);
    for (int64_t i = 0; i < TRAIN * k; i++) {
        const double x = ((float *)Phi.data)[i];
        error += (had[i] - x) * (had[i] - x);
        size += x * x;
    }
    if (!(size > 0 && sqrt(error / size) < 1e-6))
        fail_msg("mask %d, checkpoint %d: features differ by %g of their size", (int)mask, (int)c, sqrt(error / size));
    fs_attribution_destroy(g);
    mlp_close(&net);
    free(G);
    free(had);
}

/* All ways to compute them, with a mask and without: every family, the first checkpoint and the last. */
static void features_are_those_of_formed_gradients(void **state)
{
    experiment e;
    experiment_result result;
    experiment_kept kept;
    (void)state;
    MUST(experiment_open(&e, &device, &reduced, &data, folder, NULL));
    MUST(experiment_models(&e));
    for (int family = FS_BLOCKPERM; family <= FS_GAUSSIAN; family++)
        for (int64_t mask = 0; mask <= 128; mask += 128) {
            const fs_spec spec = spec_of((fs_family)family, 32);
            MUST(experiment_features(&e, &spec, mask, &result));
            MUST(experiment_look(&e, &spec, mask, &kept));
            expect_features(&e, &kept, &spec, mask, 0);
            expect_features(&e, &kept, &spec, mask, reduced.ensemble - 1);
        }
    experiment_close(&e);
}

/* The damping that the grid chose, given, makes the same scores: what LDS is made of. */
static void a_given_damping_is_taken_and_scores_are_handed_out(void **state)
{
    const fs_spec spec = spec_of(FS_BLOCKPERM, 32);
    experiment_result chosen, given;
    experiment e;
    double *scores = room(TESTS * TRAIN, 8), *again = room(TESTS * TRAIN, 8);
    (void)state;
    MUST(experiment_open(&e, &device, &reduced, &data, folder, NULL));
    MUST(experiment_models(&e));
    MUST(experiment_lds(&e, &spec, 128, 0, scores, &chosen));
    MUST(experiment_lds(&e, &spec, 128, chosen.damping, again, &given));
    assert_memory_equal(scores, again, TESTS * TRAIN * sizeof *scores);
    assert_memory_equal(&chosen.lds, &given.lds, sizeof given.lds);
    assert_true(isnan(given.validation[0]) && !isnan(chosen.validation[9]));
    MUST(experiment_lds(&e, &spec, 128, 30 * chosen.damping, again, &given));
    assert_memory_not_equal(scores, again, TESTS * TRAIN * sizeof *scores);
    REFUSED(experiment_lds(&e, &spec, 128, -1, again, &given), FS_EINVAL, "damping of -1");
    experiment_close(&e);
    free(scores);
    free(again);
}

static void must_have(const experiment *e, const fs_spec *spec, int64_t mask, int64_t files, int64_t missing)
{
    experiment_kept kept;
    MUST(experiment_look(e, spec, mask, &kept));
    assert_int_equal(kept.files, files);
    assert_int_equal(kept.missing, missing);
    assert_int_equal(access(kept.folder, F_OK) == 0, missing < files);
}

/* Features made alone are those that LDS uses; forgetting them removes them and no others. */
static void features_alone_are_those_of_lds_and_can_be_forgotten(void **state)
{
    const fs_spec spec = spec_of(FS_SRHT, 24), other = spec_of(FS_SJLT, 24);
    experiment_result made, from_kept, again;
    experiment e;
    (void)state;
    MUST(experiment_open(&e, &device, &reduced, &data, folder, NULL));
    MUST(experiment_models(&e));
    must_have(&e, NULL, 0, reduced.models, 0);
    must_have(&e, &spec, 64, 2 * reduced.ensemble, 2 * reduced.ensemble);
    MUST(experiment_features(&e, &spec, 64, &made));
    assert_int_equal(made.project_batches, reduced.ensemble * ((TRAIN + reduced.batch - 1) / reduced.batch));
    assert_true(made.project_seconds > 0);
    MUST(experiment_features(&e, &other, 64, &again));
    must_have(&e, &spec, 64, 2 * reduced.ensemble, 0);
    MUST(experiment_lds(&e, &spec, 64, 0, NULL, &from_kept));
    assert_int_equal(from_kept.project_batches, 0);
    MUST(experiment_forget(&e, &spec, 64));
    must_have(&e, &spec, 64, 2 * reduced.ensemble, 2 * reduced.ensemble);
    must_have(&e, &other, 64, 2 * reduced.ensemble, 0);
    must_have(&e, NULL, 0, reduced.models, 0);
    MUST(experiment_forget(&e, &spec, 64)); /* there is nothing to remove */
    MUST(experiment_lds(&e, &spec, 64, 0, NULL, &again));
    assert_int_equal(again.project_batches, made.project_batches);
    assert_memory_equal(&again.lds, &from_kept.lds, sizeof again.lds);
    experiment_close(&e);
}

/* The same S under two names (one block is an sjlt): features apart, and the same result. */
static void families_with_the_same_sketch_do_not_meet(void **state)
{
    fs_spec one = spec_of(FS_BLOCKPERM, 16), two = spec_of(FS_SJLT, 16);
    experiment_result first, second;
    experiment e;
    (void)state;
    one.M = 1, one.s = two.s = 4;
    MUST(experiment_open(&e, &device, &reduced, &data, folder, NULL));
    MUST(experiment_models(&e));
    MUST(experiment_lds(&e, &one, 64, 0, NULL, &first));
    MUST(experiment_lds(&e, &two, 64, 0, NULL, &second));
    assert_memory_equal(&first.lds, &second.lds, sizeof first.lds);
    experiment_close(&e);
}

/* The LDS of each image has the mean that is returned; images that chose the damping have none. */
static void each_image_has_its_lds(void **state)
{
    const fs_spec spec = spec_of(FS_BLOCKPERM, 32);
    experiment_result result;
    experiment e;
    double sum = 0;
    int64_t count = 0;
    (void)state;
    MUST(experiment_open(&e, &device, &reduced, &data, folder, NULL));
    MUST(experiment_models(&e));
    MUST(experiment_lds(&e, &spec, 128, 0, NULL, &result));
    for (int64_t t = 0; t < TESTS; t++) {
        if (isnan(e.lds[t])) continue;
        assert_true(fabs(e.lds[t]) <= 1);
        sum += e.lds[t];
        count++;
    }
    assert_int_equal(count, TESTS - reduced.validation);
    assert_true(fabs(sum / (double)count - result.lds.mean) < 1e-12);
    experiment_close(&e);
}

static uint32_t crc_with(const experiment_recipe *of)
{
    experiment e;
    MUST(experiment_open(&e, &device, of, &data, folder, NULL));
    const uint32_t crc = experiment_crc(&e);
    experiment_close(&e);
    return crc;
}

/* Everything that the result depends on and that a folder may differ in. */
static void experiments_have_names_of_their_own(void **state)
{
    experiment_recipe other = reduced;
    const uint32_t crc = crc_with(&reduced);
    (void)state;
    assert_true(crc_with(&reduced) == crc);
    other.models = 41;
    assert_true(crc_with(&other) != crc);
    other = reduced, other.ensemble = 4;
    assert_true(crc_with(&other) != crc);
    other = reduced, other.validation = 11;
    assert_true(crc_with(&other) != crc);
    data.test.label[0] ^= 1;
    assert_true(crc_with(&reduced) != crc);
    data.test.label[0] ^= 1;
}

static void folders_of_other_experiments_and_wrong_numbers_are_refused(void **state)
{
    experiment e;
    experiment_recipe other = reduced;
    experiment_result result;
    fs_spec spec = spec_of(FS_BLOCKPERM, 32);
    (void)state;
    other.train.epochs = 16;
    REFUSED(experiment_open(&e, &device, &other, &data, folder, NULL), FS_EFILE, "epochs 15", "epochs 16");
    other = reduced, other.seed = 8;
    REFUSED(experiment_open(&e, &device, &other, &data, folder, NULL), FS_EFILE, "seed 7", "seed 8");
    data.train.label[0] ^= 1;
    REFUSED(experiment_open(&e, &device, &reduced, &data, folder, NULL), FS_EFILE, "training-images 200 crc");
    data.train.label[0] ^= 1;
    other = reduced, other.half = 201;
    REFUSED(experiment_open(&e, &device, &other, &data, folder, NULL), FS_EINVAL, "201 of 200");
    other = reduced, other.ensemble = 41;
    REFUSED(experiment_open(&e, &device, &other, &data, folder, NULL), FS_EINVAL, "40 models, of which 41");
    other = reduced, other.shape.layers = 9;
    REFUSED(experiment_open(&e, &device, &other, &data, folder, NULL), FS_EINVAL, "of 9 layers");
    other = reduced, other.validation = TESTS;
    REFUSED(experiment_open(&e, &device, &other, &data, folder, NULL), FS_EINVAL, "60 of 60");
    MUST(experiment_open(&e, &device, &reduced, &data, folder, NULL));
    MUST(experiment_models(&e));
    REFUSED(experiment_lds(&e, &spec, 100000, 0, NULL, &result), FS_EINVAL, "100000");
    spec.k = -1;
    REFUSED(experiment_lds(&e, &spec, 128, 0, NULL, &result), FS_EINVAL, "-1");
    experiment_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_predicts_the_outputs_of_models),
        cmocka_unit_test(what_was_kept_gives_the_same_bits_and_is_not_recomputed),
        cmocka_unit_test(what_is_missing_is_recomputed_with_the_same_bits),
        cmocka_unit_test(features_are_those_of_formed_gradients),
        cmocka_unit_test(a_given_damping_is_taken_and_scores_are_handed_out),
        cmocka_unit_test(features_alone_are_those_of_lds_and_can_be_forgotten),
        cmocka_unit_test(families_with_the_same_sketch_do_not_meet),
        cmocka_unit_test(each_image_has_its_lds),
        cmocka_unit_test(experiments_have_names_of_their_own),
        cmocka_unit_test(folders_of_other_experiments_and_wrong_numbers_are_refused),
    };
    need_openblas();
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
