/* methods.c - the table of projections: this library's sketches and the alternatives in use. */
#include "grass.h"

#include "bench/baselines/algorithm1.h"

#ifdef FS_BENCH_CUDA
#define GPU(name) &baseline_##name
#else
#define GPU(name) NULL
#endif
#define LIBRARY &baseline_library, GPU(library), 0
#define NONE FS_SHUFFLE_NONE
#define ROWS FS_SHUFFLE_ROWS
#define LINES FS_SHUFFLE_GROUPS
#define UNSAID (fs_shuffle)0

/* name, on the CPU, on a GPU, by rows there, family, kappa, s, shuffle, interleave, product */
const grass_method grass_methods[] = {
    {"flashsketch", LIBRARY, FS_BLOCKPERM, 1, 4, LINES, 1, 0}, /* what fs_attribution_create chooses */
    {"contiguous", LIBRARY, FS_BLOCKPERM, 1, 4, NONE, 0, 0},
    {"interleaved", LIBRARY, FS_BLOCKPERM, 1, 4, LINES, 0, 0},
    {"rows", LIBRARY, FS_BLOCKPERM, 1, 4, ROWS, 0, 0},
    {"sjlt", LIBRARY, FS_SJLT, 0, 4, UNSAID, 0, 0},
    {"blockrow", LIBRARY, FS_BLOCKROW, 0, 0, UNSAID, 0, 0},
    {"srht", LIBRARY, FS_SRHT, 0, 0, UNSAID, 0, 0},
    {"gaussian", LIBRARY, FS_GAUSSIAN, 0, 0, UNSAID, 0, 0},
    {"sjlt-scatter", &baseline_cpu_scatter, GPU(scatter), 0, FS_SJLT, 0, 4, UNSAID, 0, 0},
    {"algorithm1", &baseline_cpu_algorithm1, GPU(shared_atomics), 1, FS_BLOCKPERM, 1, 4, NONE, 0, 0},
    {"sjlt-sparse", &baseline_cpu_csr, GPU(cusparse), 0, FS_SJLT, 0, 4, UNSAID, 0, 0},
    {"sjlt-sparse-rows", NULL, GPU(cusparse), 1, FS_SJLT, 0, 4, UNSAID, 0, 0},
    {"srht-passes", NULL, GPU(srht_passes), 1, FS_SRHT, 0, 0, UNSAID, 0, 0},
    {"gaussian-blas", &baseline_cpu_gaussian, GPU(gaussian), 0, FS_GAUSSIAN, 0, 0, UNSAID, 0, PRODUCT_F32},
    {"gaussian-tf32", NULL, GPU(gaussian), 0, FS_GAUSSIAN, 0, 0, UNSAID, 0, PRODUCT_TF32},
};
const int grass_method_count = sizeof grass_methods / sizeof grass_methods[0];

int64_t grass_kept(const grass_options *o, int which, int64_t k)
{
    const int64_t kept = which == GRASS_ALL || GRASS_KEPT * k > o->p ? o->p : GRASS_KEPT * k;
    return which == GRASS_RUNS ? kept / GRASS_RUN * GRASS_RUN : kept;
}

int64_t grass_columns(const grass_method *method, int64_t kept, int64_t k)
{
    if (k > kept) return 0;
    if (method->cpu != &baseline_cpu_algorithm1) return kept;
    /* Whole tiles of TK rows in each of its k / BR blocks. */
    const int64_t whole = k / ALGORITHM1_BR * ALGORITHM1_TK;
    return k % ALGORITHM1_BR ? 0 : (kept + whole - 1) / whole * whole;
}
