/* methods.c - the table of methods: this library's sketches and the alternatives in use. */
#include <inttypes.h>
#include <string.h>

#include "bench/baselines/algorithm1.h"
#include "randnla.h"

#ifdef FS_BENCH_CUDA
#define GPU(name) &baseline_##name
#else
#define GPU(name) NULL
#endif
#define LIBRARY &baseline_library, GPU(library)
#define NONE FS_SHUFFLE_NONE
#define ROWS FS_SHUFFLE_ROWS
#define UNSAID (fs_shuffle)0

/* name, on the CPU, on a GPU, family, kappa, s, shuffle, same S as another, solved as by textbooks.  The pairs
 * (kappa, s) are those of the paper's grid; 1, 8 in shuffled rows is the library's default. */
const nla_method nla_methods[] = {
    {"flashsketch", LIBRARY, FS_BLOCKPERM, 1, 4, ROWS, 0, 0},
    {"flashsketch", LIBRARY, FS_BLOCKPERM, 1, 1, ROWS, 0, 0},
    {"flashsketch", LIBRARY, FS_BLOCKPERM, 1, 2, ROWS, 0, 0},
    {"flashsketch", LIBRARY, FS_BLOCKPERM, 2, 1, ROWS, 0, 0},
    {"flashsketch", LIBRARY, FS_BLOCKPERM, 2, 2, ROWS, 0, 0},
    {"flashsketch", LIBRARY, FS_BLOCKPERM, 4, 1, ROWS, 0, 0},
    {"flashsketch", LIBRARY, FS_BLOCKPERM, 1, 8, ROWS, 0, 0},
    {"contiguous", LIBRARY, FS_BLOCKPERM, 1, 4, NONE, 0, 0},
    {"contiguous", LIBRARY, FS_BLOCKPERM, 1, 1, NONE, 0, 0},
    {"contiguous", LIBRARY, FS_BLOCKPERM, 1, 2, NONE, 0, 0},
    {"contiguous", LIBRARY, FS_BLOCKPERM, 2, 1, NONE, 0, 0},
    {"contiguous", LIBRARY, FS_BLOCKPERM, 2, 2, NONE, 0, 0},
    {"contiguous", LIBRARY, FS_BLOCKPERM, 4, 1, NONE, 0, 0},
    {"blockrow", LIBRARY, FS_BLOCKROW, 1, 4, UNSAID, 0, 0},
    {"blockrow", LIBRARY, FS_BLOCKROW, 1, 1, UNSAID, 0, 0},
    {"blockrow", LIBRARY, FS_BLOCKROW, 1, 2, UNSAID, 0, 0},
    {"blockrow", LIBRARY, FS_BLOCKROW, 2, 1, UNSAID, 0, 0},
    {"blockrow", LIBRARY, FS_BLOCKROW, 2, 2, UNSAID, 0, 0},
    {"blockrow", LIBRARY, FS_BLOCKROW, 4, 1, UNSAID, 0, 0},
    {"algorithm1", &baseline_cpu_algorithm1, GPU(shared_atomics), FS_BLOCKPERM, 1, 4, NONE, 0, 1},
    {"algorithm1", &baseline_cpu_algorithm1, GPU(shared_atomics), FS_BLOCKPERM, 1, 1, NONE, 0, 1},
    {"algorithm1", &baseline_cpu_algorithm1, GPU(shared_atomics), FS_BLOCKPERM, 1, 2, NONE, 0, 1},
    {"algorithm1", &baseline_cpu_algorithm1, GPU(shared_atomics), FS_BLOCKPERM, 2, 1, NONE, 0, 1},
    {"algorithm1", &baseline_cpu_algorithm1, GPU(shared_atomics), FS_BLOCKPERM, 2, 2, NONE, 0, 1},
    {"algorithm1", &baseline_cpu_algorithm1, GPU(shared_atomics), FS_BLOCKPERM, 4, 1, NONE, 0, 1},
    {"sjlt-sparse", &baseline_cpu_csr, GPU(cusparse), FS_SJLT, 0, 4, UNSAID, 0, 1},
    {"sjlt-sparse", &baseline_cpu_csr, GPU(cusparse), FS_SJLT, 0, 1, UNSAID, 0, 1},
    {"sjlt-sparse", &baseline_cpu_csr, GPU(cusparse), FS_SJLT, 0, 2, UNSAID, 0, 1},
    {"sjlt-scatter", &baseline_cpu_scatter, GPU(scatter), FS_SJLT, 0, 4, UNSAID, 1, 1},
    {"sjlt-scatter", &baseline_cpu_scatter, GPU(scatter), FS_SJLT, 0, 1, UNSAID, 1, 1},
    {"sjlt-scatter", &baseline_cpu_scatter, GPU(scatter), FS_SJLT, 0, 2, UNSAID, 1, 1},
    {"srht", LIBRARY, FS_SRHT, 0, 0, UNSAID, 0, 1},
    {"srht-passes", NULL, GPU(srht_passes), FS_SRHT, 0, 0, UNSAID, 1, 1},
    {"gaussian", &baseline_cpu_gaussian, GPU(gaussian), FS_GAUSSIAN, 0, 0, UNSAID, 0, 1},
};
const int nla_method_count = sizeof nla_methods / sizeof nla_methods[0];

void nla_method_label(const nla_method *m, char *text, size_t bytes)
{
    if (m->kappa) snprintf(text, bytes, "%s-%" PRId64 "-%" PRId64, m->name, m->kappa, m->s);
    else if (m->s) snprintf(text, bytes, "%s-%" PRId64, m->name, m->s);
    else snprintf(text, bytes, "%s", m->name);
}

int nla_sketch(const nla_method *m, int64_t d, int64_t k, uint64_t seed, fs_spec *spec, fs_sketch **S)
{
    *spec = (fs_spec)FS_SPEC_INIT;
    spec->family = m->family, spec->d = d, spec->k = k, spec->seed = seed;
    spec->kappa = m->kappa, spec->s = m->s, spec->shuffle = m->shuffle;
    spec->M = algorithm1_blocks(m->shuffle, k);
    *S = NULL;
    if (fs_sketch_create(S, spec) != FS_OK) return 1;
    if (fs_sketch_spec(*S, spec) == FS_OK) return 0;
    fs_sketch_destroy(*S);
    *S = NULL;
    return 1;
}
