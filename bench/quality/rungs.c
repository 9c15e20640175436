/* rungs.c - the rungs that `fsbench quality` compares: the one table of them. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "quality.h"

const quality_rung quality_rungs[] = {
    {.name = "fast", FS_BLOCKPERM, .quality = FS_QUALITY_FAST},
    {.name = "default", FS_BLOCKPERM},
    {.name = "high", FS_BLOCKPERM, .quality = FS_QUALITY_HIGH},
    {.name = "gaussian", FS_BLOCKPERM, .quality = FS_QUALITY_GAUSSIAN},
    /* To compare with. */
    {.name = "sjlt4", FS_SJLT, .s = 4},
    {.name = "sjlt8", FS_SJLT, .s = 8},
    {.name = "groups", FS_BLOCKPERM, .shuffle = FS_SHUFFLE_GROUPS, .on_request = 1},
    {.name = "contiguous", FS_BLOCKPERM, .shuffle = FS_SHUFFLE_NONE, .on_request = 1},
    {.name = "srht", FS_SRHT, .on_request = 1},
    {.name = "dense", FS_GAUSSIAN, .on_request = 1},
};
const int quality_rung_count = sizeof quality_rungs / sizeof quality_rungs[0];

static int resolve(fs_spec *spec)
{
    fs_sketch *S;
    int bad = bench_fs_failed(fs_sketch_create(&S, spec), "making a sketch");
    if (bad) return 1;
    bad = bench_fs_failed(fs_sketch_spec(S, spec), "reading a spec");
    fs_sketch_destroy(S);
    return bad;
}

int quality_spec(const quality_rung *rung, int64_t d, int64_t k, uint64_t seed, fs_spec *spec)
{
    *spec = (fs_spec)FS_SPEC_INIT;
    spec->family = rung->family, spec->d = d, spec->k = k, spec->seed = seed, spec->shuffle = rung->shuffle;
    spec->quality = rung->quality;
    if (rung->family == FS_SJLT) spec->s = rung->s < k ? rung->s : k;
    return resolve(spec);
}

void quality_spec_label(const fs_spec *spec, char *text, size_t bytes)
{
    const char *family = fs_family_name(spec->family);
    if (spec->family == FS_BLOCKPERM)
        snprintf(text, bytes, "%s-M%" PRId64 "-%" PRId64 "-%" PRId64 "-%s%.0" PRId64, family, spec->M, spec->kappa,
                 spec->s, bench_shuffle_name(spec->shuffle), spec->shuffle == FS_SHUFFLE_GROUPS ? spec->interleave : 0);
    else if (spec->family == FS_SJLT) snprintf(text, bytes, "%s-%" PRId64, family, spec->s);
    else snprintf(text, bytes, "%s", family);
}

void quality_spec_rungs(const fs_spec *spec, char *text, size_t bytes)
{
    char label[96], other[96];
    size_t used = 0;
    quality_spec_label(spec, label, sizeof label);
    *text = 0;
    for (int i = 0; i < quality_rung_count; i++) {
        fs_spec its;
        if (quality_rungs[i].family != spec->family || quality_spec(&quality_rungs[i], spec->d, spec->k, 0, &its))
            continue;
        quality_spec_label(&its, other, sizeof other);
        if (strcmp(label, other)) continue;
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? " " : "", quality_rungs[i].name);
        if (used >= bytes) return;
    }
}

int64_t quality_k(int64_t n, double ratio) { return (int64_t)ceil(ratio * (double)n - 1e-9); }

int64_t quality_blocks(const fs_spec *spec) { return spec->family == FS_BLOCKPERM ? spec->M : (spec->k + 127) / 128; }
