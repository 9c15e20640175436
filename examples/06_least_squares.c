/* 06_least_squares.c - a curve by twenty cosines: 400 equations in place of 10000, and the accuracy of the answer. */
#include <flashsketch_tasks.h>
#include <math.h>
#include <stdio.h>

enum { D = 10000, N = 20, K = 400 };
static double a[D * N], b[D], x[N];

static int fit(fs_context *ctx, const fs_sketch *S, const fs_matrix *A, const fs_matrix *B, fs_matrix *X)
{
    fs_task_shape shape = FS_TASK_SHAPE_INIT; /* what the workspace has room for */
    shape.k = K, shape.n = N, shape.rhs = 1, shape.dtype = FS_F64;
    fs_workspace *w = NULL;
    fs_fit_report report = FS_FIT_REPORT_INIT;
    double exact = 0;
    if (fs_workspace_create(&w, ctx, &shape) || fs_task_sketch(w, S, A, B) || fs_solve(w, 0.0, X, &report) ||
        fs_residual(w, A, B, X, &exact)) {
        fprintf(stderr, "%s\n", fs_error_message());
        fs_workspace_destroy(w);
        return 1;
    }
    printf("|A x - b| about %.3g, from %.3g to %.3g; exactly %.3g; the smallest about %.3g\n", report.residual,
           report.low, report.high, exact, report.smallest);
    fs_workspace_destroy(w);
    return !(report.low <= exact && exact <= report.high);
}

int main(void)
{
    for (int i = 0; i < D; i++) {
        b[i] = exp((i + 0.5) / D) - exp(1) + 1; /* its mean is 0, as that of every cosine */
        for (int j = 0; j < N; j++) a[i * N + j] = cos(3.14159265358979 * (j + 1) * (i + 0.5) / D);
    }
    fs_spec spec = FS_SPEC_INIT;
    spec.d = D, spec.k = K, spec.seed = 7;
    fs_context_options where = FS_CONTEXT_INIT;
    where.backend = FS_BACKEND_CPU; /* fs_residual reads A where the context computes, and A is in host memory */
    fs_sketch *S = NULL;
    fs_context *ctx = NULL;
    const fs_matrix A = fs_row_major(a, D, N, FS_F64), B = fs_row_major(b, D, 1, FS_F64);
    fs_matrix X = fs_row_major(x, N, 1, FS_F64);
    if (fs_sketch_create(&S, &spec) || fs_context_create(&ctx, &where)) {
        fprintf(stderr, "%s\n", fs_error_message());
        return 1;
    }
    const int failed = fit(ctx, S, &A, &B, &X);
    fs_context_destroy(ctx);
    fs_sketch_destroy(S);
    return failed;
}
