/* tasks.c - `fsbench tasks`: the times of sketching and of solving in ridge and least squares on a GPU, and the times
 * of the steps of solving by each alternative in cuBLAS and cuSOLVER.
 *
 * Lines with op "ridge" and "solve" are the library's functions, A and b in device memory: sketch_ms and solve_ms
 * between events on the stream, wall_ms on the host's clock from the first call to the last return, without a report.
 * Lines with op "part" are single calls: those that src/cuda/linalg/dense.cu uses (potrf and trsv where cholesky.cu
 * does not), and the alternatives. */
#include <cublas_v2.h>
#include <cusolverDn.h>
#include <flashsketch_tasks.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/gpu/bench_gpu.h"

static const struct {
    int64_t d, n;
} shapes[] = {{16384, 1024}, {65536, 1024}, {131072, 512}, {262144, 512}};
static const int64_t sizes[] = {1024, 4096};
enum { SHAPES = sizeof shapes / sizeof shapes[0], SIZES = sizeof sizes / sizeof sizes[0], WARM_UP = 3 };

static void provenance(const bench_gpu *g)
{
    printf("\"reps\": %d, \"machine\": \"%s\", \"driver\": \"%s\", \"cuda\": \"%s\", \"commit\": \"%s\", "
           "\"date\": \"%s\"}\n",
           g->options->repetitions, g->name, g->driver, g->cuda, g->options->commit, bench_date());
    fflush(stdout);
}

/* the library ------------------------------------------------------------------------------------------------ */

typedef struct job {
    bench_gpu *g;
    fs_workspace *w;
    fs_sketch *S;
    fs_matrix A, b, x;
    int ridge;
} job;

static int run_once(const job *j, fs_fit_report *report)
{
    fs_matrix x = j->x;
    if (bench_fs_failed(fs_task_sketch(j->w, j->S, &j->A, &j->b), "sketching")) return 1;
    return bench_fs_failed(j->ridge ? fs_ridge(j->w, 1e-3, &x, report) : fs_solve(j->w, 0.0, &x, report), "solving");
}

static int measure(const job *j, int64_t k)
{
    const int reps = j->g->options->repetitions;
    double *sketch = malloc(sizeof *sketch * (size_t)reps * 3), *solve = sketch + reps, *wall = solve + reps,
           residual = 0;
    fs_fit_report report = FS_FIT_REPORT_INIT;
    int failed = !sketch;
    for (int i = -WARM_UP; i < reps && !failed; i++) {
        const int at = i < 0 ? 0 : i;
        failed = run_once(j, &report);
        sketch[at] = 1e3 * report.sketch_seconds, solve[at] = 1e3 * report.solve_seconds;
        const double start = bench_now();
        failed = failed || run_once(j, NULL);
        wall[at] = 1e3 * (bench_now() - start);
    }
    failed = failed || bench_fs_failed(fs_residual(j->w, &j->A, &j->b, &j->x, &residual), "computing the residual");
    if (!failed) {
        const double sketch_ms = bench_median(sketch, reps), solve_ms = bench_median(solve, reps);
        printf("{\"case\": \"tasks\", \"op\": \"%s\", \"d\": %" PRId64 ", \"n\": %" PRId64 ", \"k\": %" PRId64
               ", \"method\": \"%s\", \"sketch_ms\": %.4f, \"solve_ms\": %.4f, \"total_ms\": %.4f, \"wall_ms\": %.4f, "
               "\"residual\": %.6g, ",
               j->ridge ? "ridge" : "solve", j->A.rows, j->A.cols, k,
               report.method == FS_METHOD_CHOLESKY ? "cholesky" : "svd", sketch_ms, solve_ms, sketch_ms + solve_ms,
               bench_median(wall, reps), residual);
        if (report.confidence > 0) printf("\"low\": %.6g, \"high\": %.6g, ", report.low, report.high);
        provenance(j->g);
    }
    free(sketch);
    return failed;
}

static int measure_shape(bench_gpu *g, int64_t d, int64_t n, int64_t k)
{
    fs_task_shape shape = FS_TASK_SHAPE_INIT;
    fs_spec spec = FS_SPEC_INIT;
    job j = {g, NULL, NULL, {0}, {0}, {0}, 0};
    shape.k = k, shape.n = n, shape.rhs = 1;
    spec.d = d, spec.k = k;
    j.A = bench_gpu_view(g->from.data, d, n, 0, FS_F32);
    j.b = bench_gpu_view(g->from.data + d * n * 4, d, 1, 0, FS_F32);
    j.x = bench_gpu_view(g->to.data, n, 1, 0, FS_F32);
    bench_gpu_fill(g, g->from.data, d * (n + 1) * 4, FS_F32);
    int failed = bench_fs_failed(fs_sketch_create(&j.S, &spec), "making a sketch") ||
                 bench_fs_failed(fs_workspace_create(&j.w, g->context[FS_PRECISION_FULL], &shape),
                                 "making a workspace");
    for (j.ridge = 0; j.ridge < 2 && !failed; j.ridge++) failed = measure(&j, k);
    fs_workspace_destroy(j.w);
    fs_sketch_destroy(j.S);
    return failed;
}

/* parts ------------------------------------------------------------------------------------------------------ */

typedef struct parts {
    bench_gpu *g;
    cublasHandle_t blas;
    cusolverDnHandle_t solver;
    int n, k;
    double *Z, *G, *L, *work, *x; /* n x k, n x n, its factor, cuSOLVER's, n */
    int lwork, *info;
} parts;

static int bad(int status, const char *doing)
{
    if (status) fprintf(stderr, "fsbench: %s: status %d\n", doing, status);
    return status != 0;
}
static int refresh(const parts *p)
{
    const size_t bytes = sizeof(double) * (size_t)p->n * (size_t)p->n;
    return bench_cuda_failed(cudaMemcpyAsync(p->L, p->G, bytes, cudaMemcpyDeviceToDevice, p->g->stream), "copying G");
}
static int run_syrk(void *user)
{
    const parts *p = user;
    const double one = 1, zero = 0;
    return bad(
        cublasDsyrk(p->blas, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, p->n, p->k, &one, p->Z, p->n, &zero, p->G, p->n),
        "syrk");
}
static int run_gemm(void *user)
{
    const parts *p = user;
    const double one = 1, zero = 0;
    return bad(cublasDgemm(p->blas, CUBLAS_OP_N, CUBLAS_OP_T, p->n, p->n, p->k, &one, p->Z, p->n, p->Z, p->n, &zero,
                           p->G, p->n),
               "gemm");
}
static int run_copy(void *user) { return refresh(user); }
static int run_potrf(void *user) /* after the copy that restores its input */
{
    const parts *p = user;
    return refresh(p) ||
           bad(cusolverDnDpotrf(p->solver, CUBLAS_FILL_MODE_LOWER, p->n, p->L, p->n, p->work, p->lwork, p->info),
               "potrf");
}
static int run_trsv(void *user)
{
    const parts *p = user;
    return bad(
        cublasDtrsv(p->blas, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT, p->n, p->L, p->n, p->x, 1),
        "trsv");
}
static int run_trsm(void *user)
{
    const parts *p = user;
    const double one = 1;
    return bad(cublasDtrsm(p->blas, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, 1,
                           p->n, &one, p->L, p->n, p->x, 1),
               "trsm");
}

static int measure_parts(bench_gpu *g, int n, int k)
{
    static const struct {
        const char *name;
        int (*run)(void *);
    } ways[] = {{"syrk", run_syrk}, {"gemm", run_gemm}, {"copy", run_copy}, {"copy and potrf", run_potrf},
                {"trsv", run_trsv}, {"trsm", run_trsm}};
    parts p = {.g = g, .n = n, .k = k};
    p.Z = (double *)g->from.data;
    p.G = (double *)g->to.data;
    p.L = p.G + (size_t)n * (size_t)n;
    p.x = p.L + (size_t)n * (size_t)n;
    p.info = (int *)(p.x + n);
    p.work = p.x + 2 * n;
    bench_gpu_fill(g, p.Z, (int64_t)sizeof(double) * n * k, FS_F64);
    int failed = bad(cublasCreate(&p.blas), "opening cuBLAS") || bad(cusolverDnCreate(&p.solver), "opening cuSOLVER") ||
                 bad(cublasSetStream(p.blas, g->stream), "setting a stream") ||
                 bad(cusolverDnSetStream(p.solver, g->stream), "setting a stream") ||
                 bad(cusolverDnDpotrf_bufferSize(p.solver, CUBLAS_FILL_MODE_LOWER, n, p.L, n, &p.lwork),
                     "asking for memory");
    for (size_t i = 0; i < sizeof ways / sizeof ways[0] && !failed; i++) {
        double ms;
        failed = bench_gpu_measure_alone(g, ways[i].run, &p, &ms);
        if (failed) break;
        printf("{\"case\": \"tasks\", \"op\": \"part\", \"part\": \"%s\", \"n\": %d, \"k\": %d, \"ms\": %.4f, ",
               ways[i].name, n, k, ms);
        provenance(g);
    }
    if (p.blas) cublasDestroy(p.blas);
    if (p.solver) cusolverDnDestroy(p.solver);
    return failed;
}

int bench_tasks(const bench_options *options)
{
    bench_gpu g;
    int failed = bench_gpu_open(&g, options);
    for (int s = 0; s < SHAPES && !failed; s++)
        for (int i = 0; i < SIZES; i++)
            if (bench_wanted(options, "tasks") && measure_shape(&g, shapes[s].d, shapes[s].n, sizes[i])) {
                bench_no_result("tasks", shapes[s].d, shapes[s].n, sizes[i]);
                failed = 1;
            }
    for (int n = 512; n <= 1024 && !failed; n += 512)
        for (int i = 0; i < SIZES; i++)
            if (bench_wanted(options, "parts")) failed |= measure_parts(&g, n, (int)sizes[i]);
    bench_gpu_close(&g);
    return failed;
}
