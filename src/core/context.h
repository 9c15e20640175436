#ifndef FSI_CORE_CONTEXT_H
#define FSI_CORE_CONTEXT_H

#include "core/backend.h"
#include "flashsketch.h"

struct fs_context {
    fs_allocator allocator;
    const fsi_backend *backend;
    void *state;  /* the backend's own */
    void *plugin; /* dlopen's handle, NULL for the CPU */
    fs_backend_kind kind;
    int device;    /* -1 for the CPU */
    int threads;   /* as asked for, 0: OpenMP's own number */
    char why[256]; /* why this backend */
};

/* Opens the CUDA plugin.  On failure *plugin is NULL and the error message contains the loader's.  Where the loader
 * finds no plugin, *absent is set and the message explains how to install one. */
fs_result fsi_backend_load(const fsi_backend **backend, void **plugin, int *absent);

/* The checks of fs_apply except for the memory space of Y, in the name of `who`. */
fs_result fsi_apply_check(const char *who, const fs_context *ctx, const fs_sketch *S, int64_t row0, const fs_matrix *A,
                          const fs_matrix *Y);

/* FS_EUNSUPPORTED unless `place` is where ctx's backend has its memory. */
fs_result fsi_context_check_memory(const char *who, const char *name, const fs_context *ctx, fs_memory memory);

#endif
