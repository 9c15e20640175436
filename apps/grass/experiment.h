/* experiment.h - the paper's experiment: how well do sketched gradients predict the outputs of models trained on half of
 * the data?
 *
 * Ground truth: `models` perceptrons, each trained on a half of the training images of its own; y[i][t] is minus the
 * cross-entropy of model i at test image t.  Scores: gradients of the margin at the first `ensemble` of the same
 * models, masked and sketched (flashsketch_attribution.h), averaged over them, times Q_i = the mean of 1 - p_y at training
 * image i.  The damping is the one of a grid with the best mean LDS on `validation` of the test images; LDS is then
 * that of the others.
 *
 *     experiment_open(&e, &device, &recipe, &data, "folder", NULL); models are kept in the folder and found there again
 *     experiment_models(&e);                                        trains what is missing
 *     experiment_lds(&e, &sketch, mask, 0, NULL, &result);          any number of sketches; features are kept too
 *                                                                   (experiment_features makes those alone)
 *     experiment_close(&e); */
#ifndef FSI_APPS_GRASS_EXPERIMENT_H
#define FSI_APPS_GRASS_EXPERIMENT_H

#include <flashsketch_attribution.h>
#include <flashsketch_tasks.h>

#include "cache.h"
#include "lds.h"
#include "train.h"

typedef struct experiment_recipe {
    mlp_shape shape;
    train_recipe train;
    int64_t models, ensemble; /* ensemble <= models */
    int64_t half;             /* training images of a model */
    int64_t validation;       /* test images that choose the damping */
    int64_t batch;            /* gradients in memory at a time */
    int64_t run;              /* coordinates that a mask keeps together (flashsketch_attribution.h) */
    uint64_t seed;            /* of subsets and models */
} experiment_recipe;
#define EXPERIMENT_RECIPE_INIT \
    { \
        {3, {784, 128, 64, 10}}, TRAIN_RECIPE_INIT, 50, 10, 2500, 50, 512, 1, 0 \
    }

enum { EXPERIMENT_DAMPINGS = 10 }; /* 1e-7, 1e-6, ..., 100 */

typedef struct experiment {
    experiment_recipe recipe;
    const grass_device *device;
    const grass_data *data;
    fs_progress progress;
    cache kept;
    mlp net; /* of one model: losses and gradients */
    int64_t parameters;
    grass_images train, test; /* those of data, in the device's memory, ... */
    double *losses;           /* ... and a number for each of train, or of test if there are more */
    float *theta;             /* models x parameters, in host memory, as is the rest */
    int64_t *chosen;          /* models x half */
    double *y;                /* models x test images */
    double *Q;                /* of each training image */
    double *lds; /* of each test image, by the last experiment_lds; NaN: it chose the damping, or has none */
} experiment;

/* The files in the folder for a sketch, or for the models. */
typedef struct experiment_kept {
    char folder[PATH_MAX + 128];
    int64_t files, missing; /* their number if none is missing, and the number of missing ones */
} experiment_kept;

typedef struct experiment_result {
    lds_summary lds; /* of the test images that did not choose the damping */
    double damping;
    double validation[EXPERIMENT_DAMPINGS]; /* mean LDS there, NaN where K is singular, or one was given */
    double project_seconds;                 /* to mask and sketch batches of gradients of training images, which with a
                                             * mask includes forming them, ... */
    int64_t project_batches;                /* ... and how many they were; 0: all features were kept */
} experiment_result;

/* device and data must live as long; the folder is created.  progress NULL: no reports.  FS_EINVAL: a number of the recipe does
 * not fit the data.  FS_EFILE: the folder is of another experiment, or cannot be used.  FS_EBACKEND: the library has no linear algebra
 * here. */
FS_NODISCARD fs_result experiment_open(experiment *e, const grass_device *device, const experiment_recipe *recipe,
                                       const grass_data *data, const char *folder, const fs_progress *progress);
void experiment_close(experiment *e);

/* Trains the models that are not kept, and takes y and Q of all. */
FS_NODISCARD fs_result experiment_models(experiment *e);

/* A hash in 32 bits of everything but the sketch that results depend on: images, models, and their numbers. */
uint32_t experiment_crc(const experiment *e);

/* Where the features of a sketch are kept, for arguments as below, or the models (sketch NULL), and how many of their
 * files are missing.  Computes nothing. */
FS_NODISCARD fs_result experiment_look(const experiment *e, const fs_spec *sketch, int64_t mask, experiment_kept *kept);

/* The features of a sketch, after experiment_models: computes those that are missing.  In the result only the time of
 * projecting is written.  For checkpoint c they are files train-00c.npy and test-00c.npy, f32, a row for each image. */
FS_NODISCARD fs_result experiment_features(experiment *e, const fs_spec *sketch, int64_t mask,
                                           experiment_result *result);

/* Removes the features of a sketch, which are large: k = 4096 has 0.9 GB. */
FS_NODISCARD fs_result experiment_forget(experiment *e, const fs_spec *sketch, int64_t mask);

/* mask: coordinates that are kept, 0: all.  sketch: its d is set here; checkpoint c has seed sketch->seed + 100000 c.
 * damping 0: the best of the grid.  scores: test images x training images, NULL: not wanted. */
FS_NODISCARD fs_result experiment_lds(experiment *e, const fs_spec *sketch, int64_t mask, double damping,
                                      double *scores, experiment_result *result);

#endif
