/* call.c - see call.h. */
#include "call.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const type_pair type_pairs[TYPE_PAIRS] = {{FS_F32, FS_F32}, {FS_F64, FS_F64},   {FS_F16, FS_F16},
                                          {FS_F16, FS_F32}, {FS_BF16, FS_BF16}, {FS_BF16, FS_F32}};

void draw_scalars(call *c, uint64_t draw)
{
    static const double pairs[][2] = {{1, 0}, {1, 1}, {-2, 0.5}, {0.5, -2}, {0, 1}, {-2, 0}, {0.5, 1}, {1, -2}};
    c->alpha = pairs[draw % (uint64_t)COUNT(pairs)][0];
    c->beta = pairs[draw % (uint64_t)COUNT(pairs)][1];
}

void call_name(call *c, const char *kind)
{
    snprintf(c->name, sizeof c->name,
             "%s, k %" PRId64 ", d %" PRId64 ", M %" PRId64 ", kappa %" PRId64 ", s %" PRId64 ", seed %" PRIu64
             ", rows %" PRId64 " + %" PRId64 ", n %" PRId64 ", %s from %s%s %s to %s%s %s, pad %" PRId64
             ", lead %" PRId64 ", alpha %g, beta %g",
             kind, c->spec.k, c->spec.d, c->spec.M, c->spec.kappa, c->spec.s, c->spec.seed, c->row0, c->rows, c->n,
             c->adjoint ? "adjoint" : "apply", c->from_host ? "host " : "", layout_names[c->from], fs_dtype_name(c->in),
             c->to_host ? "host " : "", layout_names[c->to], fs_dtype_name(c->out), c->pad, c->lead, c->alpha, c->beta);
}

int64_t call_in_rows(const call *c) { return c->adjoint ? c->spec.k : c->rows; }
int64_t call_out_rows(const call *c) { return c->adjoint ? c->rows : c->spec.k; }

/* The largest integer in the input.  Sums of them are exact in f32; in the wide types most have more bits than a
 * bf16, so that a kernel which splits numbers and drops a part is seen; in the narrow ones results stay in range. */
static int64_t whole_limit(const call *c)
{
    if (c->limit) return c->limit;
    const int64_t most = ((int64_t)1 << 20) / (call_in_rows(c) + 1);
    return c->in == FS_F16 || c->in == FS_BF16 || most < 8 ? 8 : most < 4095 ? most : 4095;
}

view call_input(const call *c)
{
    view A = view_padded(c->from, call_in_rows(c), c->n, c->in, c->pad, c->lead);
    fill_whole(&A.m, c->spec.seed + 1, whole_limit(c));
    return A;
}
view call_output(const call *c)
{
    view Y = view_padded(c->to, call_out_rows(c), c->n, c->out, c->pad, c->lead);
    if (c->beta != 0.0) fill_whole(&Y.m, c->spec.seed + 2, 8);
    view_seal(&Y);
    return Y;
}

fs_result call_run(const call *c, fs_context *ctx, const fs_sketch *S, const fs_matrix *from, fs_matrix *to)
{
    return c->adjoint ? fs_apply_adjoint(ctx, S, c->row0, c->alpha, from, c->beta, to)
                      : fs_apply(ctx, S, c->row0, c->alpha, from, c->beta, to);
}

static view on_device(const lane *l, const call *c, fs_context *ctx, const fs_sketch *S, const view *A)
{
    view Y = call_output(c);
    mirror from = mirror_make(l, A), to = mirror_make(l, &Y);
    MUST(call_run(c, ctx, S, c->from_host ? &A->m : &from.m, c->to_host ? &Y.m : &to.m));
    stream_wait(l->stream);
    if (!c->to_host) mirror_fetch(l, c->name, &to, &Y);
    expect_padding_untouched(c->name, &Y);
    expect_mirror_untouched(l, c->name, &from, A);
    mirror_free(l, &from), mirror_free(l, &to);
    return Y;
}
view call_on_device(const lane *l, const call *c, fs_context *ctx, const view *A)
{
    fs_sketch *S = sketch_of(&c->spec);
    view Y = on_device(l, c, ctx, S, A);
    fs_sketch_destroy(S);
    return Y;
}

/* the judgement --------------------------------------------------------------------------------------------- */

static int power_of_two(double x)
{
    int exponent;
    return frexp(x, &exponent) == 0.5;
}

/* Whether every weight of S is a power of two, so that integers stay exact in every step. */
static int exact(const fs_sketch *S)
{
    fs_spec p = FS_SPEC_INIT;
    MUST(fs_sketch_spec(S, &p));
    if (p.family == FS_GAUSSIAN) return 0;
    if (p.family == FS_SRHT) return power_of_two(sqrt((double)p.k));
    if (p.family != FS_BLOCKROW) return power_of_two(sqrt((double)(p.kappa * p.s)));
    return p.d % p.M == 0 && power_of_two(sqrt((double)p.d / (double)(p.k * p.kappa * p.s)));
}

/* size[i] = the sum of |S| over what row i of the result reads. */
static double *row_sizes(const call *c, const fs_sketch *S)
{
    fs_sparse T = export_columns(S, c->row0, c->rows, FS_INDEX64, FS_F64);
    const int64_t *ptr = T.ptr, *index = T.index;
    const double *value = T.value;
    double *size = room(call_out_rows(c), sizeof *size);
    for (int64_t i = 0; i < call_out_rows(c); i++) size[i] = 0.0;
    for (int64_t i = 0; i < T.rows; i++)
        for (int64_t e = ptr[i]; e < ptr[i + 1]; e++) size[c->adjoint ? index[e] : i] += fabs(value[e]);
    sparse_free(&T);
    return size;
}

/* Half the distance between neighbours of a type, relative to a number between them. */
static double unit_of(fs_dtype t)
{
    return t == FS_F64 ? 0x1p-53 : t == FS_F32 ? 0x1p-24 : t == FS_F16 ? 0x1p-11 : 0x1p-8;
}

/* Both may be off by slack_of and by one rounding to the output's type, in f16 down to its smallest number. */
static void expect_close_to_reference(const call *c, const fs_sketch *S, const view *got, const view *reference)
{
    const int64_t count = call_out_rows(c) * c->n;
    double *size = row_sizes(c, S), *want = room(count, 8), *slack = room(count, 8);
    for (int64_t e = 0; e < count; e++) {
        want[e] = at(&reference->m, e / c->n, e % c->n);
        const double terms = fabs(c->beta) * 8 + fabs(c->alpha) * (double)whole_limit(c) * size[e / c->n];
        slack[e] = 2 * slack_of(c->in, call_in_rows(c), terms) + 2 * unit_of(c->out) * fabs(want[e]) +
                   (c->out == FS_F16 ? 0x1p-24 : 0.0);
    }
    expect_close(c->name, &got->m, want, slack);
    free(size), free(want), free(slack);
}

void call_compare(const call *c, const fs_sketch *S, const view *got, const view *reference)
{
    if (exact(S)) expect_equal(c->name, &got->m, &reference->m);
    else expect_close_to_reference(c, S, got, reference);
}

void call_check(const lane *l, const call *c)
{
    fs_sketch *S = sketch_of(&c->spec);
    view A = call_input(c), want = call_output(c);
    view_seal(&A);
    view got = on_device(l, c, l->gpu, S, &A);
    expect_untouched(c->name, &A);
    MUST(call_run(c, c->large ? l->tuned : l->ref, S, &A.m, &want.m));
    call_compare(c, S, &got, &want);
    view_free(&A), view_free(&want), view_free(&got);
    fs_sketch_destroy(S);
}

signed char *call_readers(const fs_sketch *S, const call *c, int64_t column)
{
    fs_sparse T = export_columns(S, column, 1, FS_INDEX64, FS_F64);
    const int64_t *ptr = T.ptr;
    signed char *reads = room(c->spec.k, 1);
    for (int64_t i = 0; i < c->spec.k; i++) reads[i] = ptr[i + 1] > ptr[i];
    sparse_free(&T);
    return reads;
}
