/* apply.c - products on ranks: tiles of columns of Y go through three steps, one tile in each.
 *
 *     make      this rank's partial result of tile t: fs_apply of its rows
 *     sum       tile t - 1, begun when it was computed, is ended or distributed (reduce.c)
 *     store     tile t - 2 goes to Y
 * so that a tile is summed while the next ones are computed, by MPI's own progress and whenever MPI is called.
 *
 * A rank that fails still takes part in all collectives of the call.  Its error is broadcast where all ranks agree:
 * after the first tile, before which Y is not written and by when all memory is allocated, or at the end. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "ranks.h"

/* Narrower tiles cost the CPU kernels time (docs/scaling.md). */
enum { LEAST_TILE = 512, TILES = 4, ALIGNMENT = 64 };

/* The state of a call. */
typedef struct work {
    fs_mpi *m;
    fs_mpi_output output;
    const char *who;
    const fs_sketch *S;
    fs_spec spec;
    int64_t row0, rows, n;
    double alpha, beta;
    const fs_matrix *dense; /* A, or, where `made`, this rank's partial result */
    const fs_sparse *sparse;
    int made;
    const fs_matrix *Y;
    fs_dtype type, sum;
    int64_t tile, tiles;
    char *whole; /* of a sparse A: all of this rank's partial result */
} work;

/* checks and buffers ---------------------------------------------------------------------------------------- */

static fs_result check_output(const work *w)
{
    const int64_t rows = fsi_ranks_rows(w->m, w->spec.k);
    if (w->m->output == FS_MPI_ROOT && w->m->rank != w->m->options.root) return FS_OK;
    FSI_TRY(fs_matrix_check_output(w->who, "Y", w->Y));
    FSI_REQUIRE(w->Y->rows == rows && w->Y->cols == w->n,
                "%s: Y is %" PRId64 " x %" PRId64 ", it must be %" PRId64 " x %" PRId64, w->who, w->Y->rows, w->Y->cols,
                rows, w->n);
    FSI_REQUIRE(w->Y->dtype == w->type || w->Y->dtype == w->sum, "%s: A is %s, so Y must be %s%s%s, not %s", w->who,
                fs_dtype_name(w->type), fs_dtype_name(w->type), w->sum == w->type ? "" : " or ",
                w->sum == w->type ? "" : fs_dtype_name(w->sum), fs_dtype_name(w->Y->dtype));
    FSI_REQUIRE(!w->dense || !fs_matrix_overlap(w->dense, w->Y), "%s: A and Y overlap in memory", w->who);
    if (fs_context_accepts(w->m->ctx, w->Y->memory)) return FS_OK;
    return fs_fail(FS_EUNSUPPORTED, "%s: Y is in %s memory, this context works on %s memory", w->who,
                   fs_memory_name(w->Y->memory), fs_memory_name(fs_context_memory(w->m->ctx)));
}

static fs_result choose_tile(work *w)
{
    const int64_t most = INT_MAX / fsi_ranks_largest(w->m, w->spec.k);
    if (most < 1)
        return fs_fail(FS_EUNSUPPORTED,
                       "%s: a column of Y has k = %" PRId64 " rows, too many for messages to %d "
                       "ranks",
                       w->who, w->spec.k, w->m->size);
    w->tile = w->m->options.tile;
    if (!w->tile) w->tile = (w->n + TILES - 1) / TILES;
    if (!w->m->options.tile && w->tile < LEAST_TILE) w->tile = LEAST_TILE;
    if (w->tile > w->n) w->tile = w->n;
    if (w->tile > most) w->tile = most;
    w->tiles = w->n > 0 ? (w->n + w->tile - 1) / w->tile : 0;
    return FS_OK;
}

static int64_t aligned(int64_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static fs_result take_scratch(work *w)
{
    fs_mpi *m = w->m;
    const int64_t size = (int64_t)fs_dtype_size(w->sum),
                  slots = w->tiles < FSI_RANKS_SLOTS ? w->tiles : FSI_RANKS_SLOTS;
    const int64_t part = aligned(w->spec.k * w->tile * size);
    const int64_t other = aligned(fsi_ranks_received(m, w->spec.k, w->tile) * size);
    int64_t whole = 0;
    if (w->sparse && (__builtin_mul_overflow(w->spec.k * size, w->n, &whole) || whole > PTRDIFF_MAX / 2))
        return fs_fail(FS_ENOMEM, "%s: no memory for a Y of %" PRId64 " x %" PRId64, w->who, w->spec.k, w->n);
    const size_t needed = (size_t)(slots * (part + other) + whole + ALIGNMENT);
    if (!fsi_ranks_scratch(m, w->who, needed)) return FS_ENOMEM;
    char *at = (char *)(((uintptr_t)m->scratch + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    for (int64_t s = 0; s < slots; s++, at += part + other) m->slots[s].part = at, m->slots[s].other = at + part;
    w->whole = at;
    return FS_OK;
}

static fs_result apply_prepare(work *w)
{
    FSI_REQUIRE(w->S, "%s: S is NULL", w->who);
    FSI_TRY(fs_sketch_spec(w->S, &w->spec));
    if (w->sparse) FSI_REQUIRE(w->sparse->cols >= 0, "%s: A has %" PRId64 " columns", w->who, w->sparse->cols);
    else FSI_TRY(fs_matrix_check(w->who, "A", w->dense));
    w->type = w->sparse ? w->sparse->dtype : w->dense->dtype;
    w->sum = fsi_ranks_sum_type(w->type);
    w->n = w->sparse ? w->sparse->cols : w->dense->cols;
    w->rows = w->made ? 0 : w->sparse ? w->sparse->rows : w->dense->rows;
    FSI_REQUIRE(!w->made || w->dense->rows == w->spec.k, "%s: part has %" PRId64 " rows, and S has k = %" PRId64,
                w->who, w->dense->rows, w->spec.k);
    fsi_ranks_divide(w->m, &w->spec);
    FSI_TRY(choose_tile(w));
    FSI_TRY(check_output(w));
    return take_scratch(w);
}

static fsi_ranks_ask ask_of(const work *w)
{
    const fs_spec *p = &w->spec;
    const fs_mpi_options *o = &w->m->options;
    fsi_ranks_ask ask = {{[FSI_ASK_VERSION] = fs_definition_version(),
                          [FSI_ASK_FAMILY] = p->family,
                          [FSI_ASK_D] = p->d,
                          [FSI_ASK_K] = p->k,
                          [FSI_ASK_SEED] = (int64_t)p->seed,
                          [FSI_ASK_M] = p->M,
                          [FSI_ASK_KAPPA] = p->kappa,
                          [FSI_ASK_S] = p->s,
                          [FSI_ASK_SHUFFLE] = p->shuffle,
                          [FSI_ASK_INTERLEAVE] = p->interleave,
                          [FSI_ASK_COLS] = w->n,
                          [FSI_ASK_SUMS] = (int64_t)fs_dtype_size(w->sum),
                          [FSI_ASK_OUTPUT] = w->m->output,
                          [FSI_ASK_ROOT] = o->root,
                          [FSI_ASK_ORDERED] = o->ordered,
                          [FSI_ASK_TILE] = o->tile}};
    memcpy(&ask.field[FSI_ASK_ALPHA], &w->alpha, sizeof w->alpha);
    memcpy(&ask.field[FSI_ASK_BETA], &w->beta, sizeof w->beta);
    return ask;
}

/* the steps ------------------------------------------------------------------------------------------------- */

/* Columns col0 ... col0 + cols - 1 of a matrix. */
static fs_matrix columns(const fs_matrix *A, int64_t col0, int64_t cols)
{
    fs_matrix some = *A;
    some.offset += col0 * A->col_stride;
    some.cols = cols;
    return some;
}

static fs_result make(work *w, fsi_ranks_slot *slot)
{
    fs_matrix part = fs_row_major(slot->part, w->spec.k, slot->cols, w->sum);
    if (w->dense) {
        const fs_matrix A = columns(w->dense, slot->col0, slot->cols);
        if (w->made) return fs_add(w->m->ctx, &A, 1, 0.0, &part);
        return fs_apply(w->m->ctx, w->S, w->row0, w->alpha, &A, 0.0, &part);
    }
    fs_matrix whole = fs_row_major(w->whole, w->spec.k, w->n, w->sum);
    if (slot->col0 == 0) FSI_TRY(fs_apply_sparse(w->m->ctx, w->S, w->row0, w->alpha, w->sparse, 0.0, &whole));
    const fs_matrix some = columns(&whole, slot->col0, slot->cols);
    return fs_add(w->m->ctx, &some, 1, 0.0, &part);
}

static fs_result apply_store(work *w, fsi_ranks_slot *slot, void *data)
{
    const int64_t rows = fsi_ranks_rows(w->m, w->spec.k);
    if (rows == 0) return FS_OK;
    const fs_matrix summed = fs_row_major(data, rows, slot->cols, w->sum);
    fs_matrix to = columns(w->Y, slot->col0, slot->cols);
    return fs_add(w->m->ctx, &summed, 1, w->beta, &to);
}

static fsi_ranks_slot *slot_of(work *w, int64_t tile)
{
    fsi_ranks_slot *slot = &w->m->slots[tile % FSI_RANKS_SLOTS];
    slot->col0 = tile * w->tile;
    slot->cols = w->n - slot->col0 < w->tile ? w->n - slot->col0 : w->tile;
    return slot;
}

/* All tiles, of which the first has been computed.  A failure of this rank alone is kept in *mine; a failure of MPI is
 * returned. */
static fs_result go_through(work *w, fs_result *mine)
{
    for (int64_t t = 0; t < w->tiles + 2; t++) {
        if (t < w->tiles) {
            fsi_ranks_slot *slot = slot_of(w, t);
            if (t > 0 && *mine == FS_OK) *mine = make(w, slot);
            if (*mine != FS_OK)
                memset(slot->part, 0, (size_t)(w->spec.k * slot->cols * (int64_t)fs_dtype_size(w->sum)));
            FSI_TRY(fsi_ranks_begin(w->m, slot, w->sum));
        }
        if (t >= 1 && t - 1 < w->tiles) FSI_TRY(fsi_ranks_hand_out(w->m, slot_of(w, t - 1), w->sum));
        if (t >= 2) {
            void *rows;
            fsi_ranks_slot *slot = slot_of(w, t - 2);
            FSI_TRY(fsi_ranks_end(w->m, slot, w->sum, &rows));
            if (*mine == FS_OK) *mine = apply_store(w, slot, rows);
        }
    }
    return FS_OK;
}

static fs_result apply_run(work *w)
{
    w->m->output = w->output;
    fs_result mine = apply_prepare(w);
    const int alone = w->m->size == 1 && w->dense && !w->made;
    if (mine == FS_OK && !alone && w->tiles > 0) mine = make(w, slot_of(w, 0));
    const fsi_ranks_ask ask = ask_of(w);
    FSI_TRY(fsi_ranks_agree(w->m, w->who, mine, &ask, w->row0, w->rows, NULL));
    if (alone) mine = fs_apply(w->m->ctx, w->S, w->row0, w->alpha, w->dense, w->beta, w->Y);
    else FSI_TRY(go_through(w, &mine));
    return fs_mpi_agree(w->m->comm, mine);
}

fs_result fsi_ranks_apply(fs_mpi *ranks, fs_mpi_output output, const fs_sketch *S, int64_t row0, const fs_matrix *A,
                          const fs_matrix *Y)
{
    work w = {.m = ranks,
              .output = output,
              .who = "fs_mpi_apply",
              .S = S,
              .spec = FS_SPEC_INIT,
              .row0 = row0,
              .alpha = 1.0,
              .dense = A,
              .Y = Y};
    return apply_run(&w);
}

fs_result fs_mpi_apply(fs_mpi *ranks, const fs_sketch *S, int64_t row0, double alpha, const fs_matrix *A, double beta,
                       const fs_matrix *Y)
{
    FSI_REQUIRE(ranks, "fs_mpi_apply: ranks is NULL");
    work w = {.m = ranks,
              .output = ranks->options.output,
              .who = "fs_mpi_apply",
              .S = S,
              .spec = FS_SPEC_INIT,
              .row0 = row0,
              .alpha = alpha,
              .beta = beta,
              .dense = A,
              .Y = Y};
    return apply_run(&w);
}

fs_result fs_mpi_apply_sparse(fs_mpi *ranks, const fs_sketch *S, int64_t row0, double alpha, const fs_sparse *A,
                              double beta, const fs_matrix *Y)
{
    FSI_REQUIRE(ranks, "fs_mpi_apply_sparse: ranks is NULL");
    work w = {.m = ranks,
              .output = ranks->options.output,
              .who = "fs_mpi_apply_sparse",
              .S = S,
              .spec = FS_SPEC_INIT,
              .row0 = row0,
              .alpha = alpha,
              .beta = beta,
              .sparse = A,
              .Y = Y};
    return apply_run(&w);
}

fs_result fs_mpi_sum(fs_mpi *ranks, const fs_sketch *S, const fs_matrix *part, double beta, const fs_matrix *Y)
{
    FSI_REQUIRE(ranks, "fs_mpi_sum: ranks is NULL");
    work w = {.m = ranks,
              .output = ranks->options.output,
              .who = "fs_mpi_sum",
              .S = S,
              .spec = FS_SPEC_INIT,
              .alpha = 1.0,
              .beta = beta,
              .dense = part,
              .made = 1,
              .Y = Y};
    return apply_run(&w);
}
