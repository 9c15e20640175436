/* sketch.c - from a user's spec to the constants of S: the only place where a spec is checked. */
#include "core/sketch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* The public enums are the definition's, so that a spec passes through unchanged. */
_Static_assert((int)FS_BLOCKPERM == (int)FSI_DEF_BLOCKPERM && (int)FS_SJLT == (int)FSI_DEF_SJLT &&
                   (int)FS_BLOCKROW == (int)FSI_DEF_BLOCKROW && (int)FS_SRHT == (int)FSI_DEF_SRHT &&
                   (int)FS_GAUSSIAN == (int)FSI_DEF_GAUSS,
               "families");
_Static_assert((int)FS_SHUFFLE_NONE == (int)FSI_DEF_NONE && (int)FS_SHUFFLE_ROWS == (int)FSI_DEF_ROWS &&
                   (int)FS_SHUFFLE_GROUPS == (int)FSI_DEF_GROUPS,
               "shuffles");
_Static_assert((int)FS_QUALITY_FAST == (int)FSI_DEF_FAST && (int)FS_QUALITY_DEFAULT == (int)FSI_DEF_DEFAULT &&
                   (int)FS_QUALITY_HIGH == (int)FSI_DEF_HIGH && (int)FS_QUALITY_GAUSSIAN == (int)FSI_DEF_GAUSSIAN,
               "qualities");

/* Checks the fields that a caller may set, before defaults are chosen. */
static fs_result check_ranges(const fsi_def_spec *p)
{
    FSI_REQUIRE(p->family >= 0 && p->family <= FSI_DEF_GAUSS,
                "fs_sketch_create: family %d does not exist; it must be one of fs_family, or 0", p->family);
    FSI_REQUIRE(p->shuffle >= 0 && p->shuffle <= FSI_DEF_GROUPS,
                "fs_sketch_create: shuffle %d does not exist; it must be one of fs_shuffle, or 0", p->shuffle);
    FSI_REQUIRE(p->quality >= 0 && p->quality <= FSI_DEF_GAUSSIAN,
                "fs_sketch_create: quality %d does not exist; it must be from %d (fast) to %d (gaussian), or 0 for the "
                "default",
                p->quality, FSI_DEF_FAST, FSI_DEF_GAUSSIAN);
    FSI_REQUIRE(p->d >= 1 && p->d <= FSI_MAX_D, "fs_sketch_create: d = %" PRId64 ", it must be from 1 to %" PRId64,
                p->d, FSI_MAX_D);
    FSI_REQUIRE(p->k >= 1 && p->k <= FSI_MAX_K, "fs_sketch_create: k = %" PRId64 ", it must be from 1 to %" PRId64,
                p->k, FSI_MAX_K);
    FSI_REQUIRE(p->M >= 0 && p->kappa >= 0 && p->s >= 0 && p->interleave >= 0,
                "fs_sketch_create: M = %" PRId64 ", kappa = %" PRId64 ", s = %" PRId64 ", interleave = %" PRId64
                ": none may be negative (0 lets the library choose)",
                p->M, p->kappa, p->s, p->interleave);
    FSI_REQUIRE(p->interleave <= FSI_GROUP_ROWS && (p->interleave & (p->interleave - 1)) == 0,
                "fs_sketch_create: interleave = %" PRId64 ", it must be 1, 2, 4, 8, 16 or 32", p->interleave);
    return FS_OK;
}

/* Fields that a family does not have must be left open or at the value they are fixed to. */
static fs_result check_fixed(const fsi_def_spec *p)
{
    const char *name = fs_family_name((fs_family)p->family);
    const int blocks = p->family == FSI_DEF_BLOCKPERM || p->family == FSI_DEF_BLOCKROW;
    const int sparse = blocks || p->family == FSI_DEF_SJLT;
    FSI_REQUIRE(p->family == FSI_DEF_BLOCKPERM || p->shuffle == FSI_DEF_NONE,
                "fs_sketch_create: shuffle %s is for blockperm, %s has none", fs_shuffle_name((fs_shuffle)p->shuffle),
                name);
    FSI_REQUIRE(p->shuffle == FSI_DEF_GROUPS || p->interleave == 1,
                "fs_sketch_create: interleave = %" PRId64 " is for shuffle groups, not for %s", p->interleave,
                fs_shuffle_name((fs_shuffle)p->shuffle));
    FSI_REQUIRE(blocks || (p->M == 1 && p->kappa == 1),
                "fs_sketch_create: %s has no blocks, so M = %" PRId64 " and kappa = %" PRId64 " must be 1 or 0", name,
                p->M, p->kappa);
    FSI_REQUIRE(sparse || p->s == 1, "fs_sketch_create: %s is dense, so s = %" PRId64 " must be 1 or 0", name, p->s);
    return FS_OK;
}

static fs_result check_full(const fsi_def_spec *p)
{
    FSI_TRY(check_fixed(p));
    FSI_REQUIRE(p->M <= p->k, "fs_sketch_create: M = %" PRId64 " blocks need at least as many rows, but k = %" PRId64,
                p->M, p->k);
    FSI_REQUIRE(p->kappa <= p->M,
                "fs_sketch_create: kappa = %" PRId64 " is more than M = %" PRId64
                ": a block row has only M blocks to read",
                p->kappa, p->M);
    if (p->family == FSI_DEF_BLOCKPERM || p->family == FSI_DEF_SJLT)
        FSI_REQUIRE(p->s <= p->k / p->M,
                    "fs_sketch_create: s = %" PRId64 " is more than B_r = floor(k / M) = %" PRId64
                    ": a block has too few rows for s distinct ones",
                    p->s, p->k / p->M);
    FSI_REQUIRE(p->M % p->interleave == 0, "fs_sketch_create: interleave = %" PRId64 " must divide M = %" PRId64,
                p->interleave, p->M);
    if (p->family == FSI_DEF_BLOCKROW) {
        FSI_REQUIRE(p->M <= p->d,
                    "fs_sketch_create: M = %" PRId64 " blocks of blockrow need at least as many rows of A, "
                    "but d = %" PRId64,
                    p->M, p->d);
        FSI_REQUIRE((p->d - 1) / p->M < FSI_MAX_K,
                    "fs_sketch_create: blocks of d / M = %" PRId64 " rows are too large for blockrow; at most %" PRId64,
                    p->d / p->M, FSI_MAX_K);
        FSI_REQUIRE(p->s <= FSI_MAX_K / p->kappa,
                    "fs_sketch_create: kappa s = %" PRId64 " x %" PRId64 " draws a row are too many; at most %" PRId64,
                    p->kappa, p->s, FSI_MAX_K);
    }
    if (p->family == FSI_DEF_SRHT)
        FSI_REQUIRE(p->k <= fsi_srht_order(p->d),
                    "fs_sketch_create: srht has only %" PRId64 " rows to choose from (d = %" PRId64
                    " rounded up to a power of two), but k = %" PRId64,
                    fsi_srht_order(p->d), p->d, p->k);
    return FS_OK;
}

fs_result fs_sketch_create_with(fs_sketch **out, const fs_spec *spec, const fs_allocator *allocator)
{
    FSI_REQUIRE(out, "fs_sketch_create: out is NULL");
    *out = NULL;
    FSI_REQUIRE(spec, "fs_sketch_create: spec is NULL");
    fs_spec user = FS_SPEC_INIT;
    FSI_TRY(fs_struct_read("fs_sketch_create", "spec", spec, &user, sizeof user));
    fsi_def_spec p = {user.d,
                      user.k,
                      user.M,
                      user.kappa,
                      user.s,
                      user.interleave,
                      user.seed,
                      (int32_t)user.family,
                      (int32_t)user.shuffle,
                      (int32_t)user.quality};
    FSI_REQUIRE(!allocator || !allocator->alloc == !allocator->release,
                "fs_sketch_create: the allocator needs both alloc and release");
    FSI_TRY(check_ranges(&p));
    fsi_def_defaults(&p);
    FSI_TRY(check_full(&p));

    const fs_allocator memory = fs_allocator_or_malloc(allocator);
    fs_sketch *S = memory.alloc(memory.user, sizeof *S);
    if (!S) return fs_fail(FS_ENOMEM, "fs_sketch_create: no memory for the %zu bytes of a sketch", sizeof *S);
    S->allocator = memory;
    S->spec = p;
    S->def = fsi_def_make(&p);
    *out = S;
    return FS_OK;
}

fs_result fs_sketch_create(fs_sketch **out, const fs_spec *spec) { return fs_sketch_create_with(out, spec, NULL); }

void fs_sketch_destroy(fs_sketch *S)
{
    if (S) S->allocator.release(S->allocator.user, S);
}

fs_result fs_sketch_spec(const fs_sketch *S, fs_spec *spec)
{
    FSI_REQUIRE(S && spec, "fs_sketch_spec: %s is NULL", S ? "spec" : "S");
    FSI_TRY(fs_struct_check("fs_sketch_spec", "spec", spec, sizeof(fs_spec)));
    const fsi_def_spec *p = &S->spec;
    const fs_spec full = {
        sizeof full,   (fs_family)p->family,  p->d, p->k, p->seed, p->M, p->kappa, p->s, (fs_shuffle)p->shuffle,
        p->interleave, (fs_quality)p->quality};
    fs_struct_write(spec, &full, sizeof full);
    return FS_OK;
}

int fs_sketch_describe(const fs_sketch *S, char *text, size_t bytes)
{
    if (!S) return snprintf(text, bytes, "no sketch");
    const fsi_def_spec *p = &S->spec;
    char blocks[160] = "";
    if (p->shuffle == FSI_DEF_GROUPS)
        snprintf(blocks, sizeof blocks,
                 ", M %" PRId64 ", kappa %" PRId64 ", s %" PRId64 ", shuffle groups, interleave %" PRId64, p->M,
                 p->kappa, p->s, p->interleave);
    else if (p->family == FSI_DEF_BLOCKPERM)
        snprintf(blocks, sizeof blocks, ", M %" PRId64 ", kappa %" PRId64 ", s %" PRId64 ", shuffle %s", p->M, p->kappa,
                 p->s, fs_shuffle_name((fs_shuffle)p->shuffle));
    else if (p->family == FSI_DEF_BLOCKROW)
        snprintf(blocks, sizeof blocks, ", M %" PRId64 ", kappa %" PRId64 ", s %" PRId64, p->M, p->kappa, p->s);
    else if (p->family == FSI_DEF_SJLT) snprintf(blocks, sizeof blocks, ", s %" PRId64, p->s);
    return snprintf(text, bytes, "%s %" PRId64 " x %" PRId64 ", seed %" PRIu64 "%s, definition %d",
                    fs_family_name((fs_family)p->family), p->k, p->d, p->seed, blocks, FSI_DEFINITION_VERSION);
}
