/* stages.h - what the files of the experiment share: experiment.c opens it, models.c trains, features.c sketches
 * gradients, scoring.c computes scores and their LDS. */
#ifndef FSI_APPS_GRASS_STAGES_H
#define FSI_APPS_GRASS_STAGES_H

#include "experiment.h"

/* Reports to the caller that `share` of the work is done. */
void experiment_report(const experiment *e, double share, const char *doing);

/* The CRC-32 of images and labels. */
uint32_t experiment_images_crc(const grass_images *images);

typedef char experiment_file[32]; /* the name of a file in a cache, without .npy */
void experiment_name(const char *kind, int64_t i, experiment_file name);

/* Counts the files of a kind and those that are missing; removes them if that is wanted. */
void experiment_count_files(experiment_kept *kept, const char *kind, int64_t count, int remove_them);

/* The features of one sketch, at all checkpoints. */
typedef struct features {
    experiment *e;
    cache kept; /* of the features of this sketch */
    fs_spec sketch;
    int64_t mask, k, N, tests;
    int parts; /* of a gradient: W and b of each layer; one, the whole of it, where gradients are formed */
    int64_t parameters[2 * MLP_LAYERS];
    float *gradients; /* batch x ld, in the device's memory (NULL: features are made from layers), ... */
    int64_t ld;
    double *margins; /* ... as are margins (batch), ... */
    float *phi;      /* ... and features of the test images (tests x k), of the present checkpoint */
    float *host;     /* N x k or tests x k numbers that are copied between files and the device's memory */
    double seconds;  /* of sketching batches of training images, ... */
    int64_t batches; /* ... and how many they were */
} features;

/* FS_EINVAL: the sketch or the mask does not fit.  FS_EFILE: the folder cannot be used.  After a failure there is
 * nothing to close. */
FS_NODISCARD fs_result features_open(features *f, experiment *e, const fs_spec *sketch, int64_t mask);
void features_close(features *f);

/* `rows` rows of features in the device's memory. */
fs_matrix features_view(const features *f, float *phi, int64_t rows);

/* One pass over the checkpoints: the features of each, kept or made, those of training images in g, those of test images
 * in f->phi; then use(user, g, c), NULL: nothing.  The pass is the work from share `from` to share `to`. */
typedef fs_result features_use(void *user, fs_attribution *g, int64_t c);
FS_NODISCARD fs_result features_pass(features *f, const char *doing, double from, double to, features_use *use,
                                     void *user);

#endif
