/* 15_contexts.c - leverage scores of a matrix whose rows several contexts have: GPUs, or as here, halves of a processor.
 *
 * With a GPU for each context, `where.backend` is FS_BACKEND_CUDA, `where.device` their numbers, and the rows of each lie
 * in its memory. */
#include <flashsketch_tasks.h>
#include <math.h>
#include <stdio.h>

enum { CONTEXTS = 2, D = 20000, N = 10 };
static double a[D * N], scores[D];
static int64_t row0[CONTEXTS], rows[CONTEXTS];
static fs_leverage_report reports[CONTEXTS];

/* The work of one context, in a thread of its own. */
static fs_result score(void *user, int i, fs_context *ctx, const fs_ranks *ranks)
{
    const fs_matrix A = fs_row_major(a + row0[i] * N, rows[i], N, FS_F64);
    fs_operand operand = FS_OPERAND_INIT;
    fs_leverage_options options = FS_LEVERAGE_INIT;
    (void)user;
    operand.dense = &A;
    options.exact = 1;
    options.ranks = ranks;
    return fs_leverage(ctx, &operand, &options, scores + row0[i], &reports[i]);
}

int main(void)
{
    for (int i = 0; i < D; i++)
        for (int j = 0; j < N; j++) a[i * N + j] = cos(0.1 * (j + 1) * i) + (i == 12345 ? 100 * j : 0);
    fs_context *contexts[CONTEXTS] = {NULL};
    fs_multi *multi = NULL;
    fs_result result = FS_OK;
    for (int i = 0; i < CONTEXTS && result == FS_OK; i++) {
        const fs_leverage_report start = FS_LEVERAGE_REPORT_INIT;
        fs_context_options where = FS_CONTEXT_INIT;
        where.backend = FS_BACKEND_CPU;
        where.threads = 1;
        reports[i] = start;
        row0[i] = D / CONTEXTS * i, rows[i] = D / CONTEXTS;
        result = fs_context_create(&contexts[i], &where);
    }
    if (result || fs_multi_create(&multi, contexts, CONTEXTS, NULL) || fs_multi_run(multi, row0, rows, score, NULL)) {
        fprintf(stderr, "%s\n", fs_error_message());
        return 1;
    }
    printf("the scores sum to %.6f; the largest is %.4f, of row %d\n", reports[0].sum, reports[0].largest,
           (int)reports[0].row);
    fs_multi_destroy(multi);
    for (int i = 0; i < CONTEXTS; i++) fs_context_destroy(contexts[i]);
    return fabs(reports[0].sum - N) < 1e-9 && reports[1].row == 12345 ? 0 : 1;
}
