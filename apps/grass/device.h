/* device.h - where the experiment computes: a context of the library, and the operations of perceptrons on its backend,
 * device and stream. */
#ifndef FSI_APPS_GRASS_DEVICE_H
#define FSI_APPS_GRASS_DEVICE_H

#include "ops.h"

typedef struct grass_device {
    fs_context *ctx;
    const grass_ops *ops;
    void *state;  /* of ops */
    void *plugin; /* dlopen's handle of ops; NULL: they are the CPU's */
} grass_device;

/* Creates the context, with fs_context_create's failures, and opens the operations.  On a GPU those are the plugin
 * libflashsketch_grass_cuda.so, or what FLASHSKETCH_GRASS_CUDA_PLUGIN names.
 * FS_EBACKEND: the plugin or cuBLAS could not be loaded; the message has the loader's reason. */
FS_NODISCARD fs_result grass_device_open(grass_device *device, const fs_context_options *options);

/* Destroys the context too; a device that is zero, or was not opened, is a no-op. */
void grass_device_close(grass_device *device);

/* Opens the linear algebra of the library for ctx, or fails as fs_workspace_create does. */
FS_NODISCARD fs_result grass_open_algebra(fs_context *ctx);

#endif
