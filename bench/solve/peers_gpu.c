/* peers_gpu.c - cuSOLVER and cuBLAS on a case.  Every method waits for its result. */
#include <cublas_v2.h>
#include <cusolverDn.h>
#include <stdlib.h>

#include "bench/gpu/bench_gpu.h"
#include "solve.h"

struct cusolver {
    cublasHandle_t blas;
    cusolverDnHandle_t solver;
    cudaStream_t stream;
    int d, n, f64, room; /* numbers of work */
    int floor_shape;     /* the fastest launch of a read */
    void *work, *tau, *host;
    int *info;
};

static int bad(int status, const char *doing)
{
    if (status) fprintf(stderr, "fsbench: %s: status %d\n", doing, status);
    return status != 0;
}
static int wait(const solve_case *c, const char *doing)
{
    return bench_cuda_failed(cudaGetLastError(), doing) ||
           bench_cuda_failed(cudaStreamSynchronize(c->m->g->stream), doing);
}

/* Numbers of work that any of the methods of this task takes. */
static int ask_for_room(const solve_case *c, struct cusolver *u)
{
    const int d = u->d, n = u->n;
    int rooms[4] = {0};
    int failed;
    if (c->task == SOLVE_SVD) {
        const cusolverEigMode_t vectors = CUSOLVER_EIG_MODE_VECTOR;
        failed = u->f64 ? cusolverDnDgesvdaStridedBatched_bufferSize(u->solver, vectors, n, d, n, c->work, d, 0,
                                                                     c->values, 0, c->Q, d, 0, c->R, n, 0, rooms, 1)
                        : cusolverDnSgesvdaStridedBatched_bufferSize(u->solver, vectors, n, d, n, c->work, d, 0,
                                                                     c->values, 0, c->Q, d, 0, c->R, n, 0, rooms, 1);
    } else if (u->f64) {
        failed = cusolverDnDgeqrf_bufferSize(u->solver, d, n, c->work, d, rooms) ||
                 cusolverDnDormqr_bufferSize(u->solver, CUBLAS_SIDE_LEFT, CUBLAS_OP_T, d, 1, n, c->work, d, u->tau,
                                             c->right, d, rooms + 1) ||
                 cusolverDnDorgqr_bufferSize(u->solver, d, n, n, c->work, d, u->tau, rooms + 2) ||
                 cusolverDnDpotrf_bufferSize(u->solver, CUBLAS_FILL_MODE_LOWER, n, c->R, n, rooms + 3);
    } else {
        failed = cusolverDnSgeqrf_bufferSize(u->solver, d, n, c->work, d, rooms) ||
                 cusolverDnSormqr_bufferSize(u->solver, CUBLAS_SIDE_LEFT, CUBLAS_OP_T, d, 1, n, c->work, d, u->tau,
                                             c->right, d, rooms + 1) ||
                 cusolverDnSorgqr_bufferSize(u->solver, d, n, n, c->work, d, u->tau, rooms + 2) ||
                 cusolverDnSpotrf_bufferSize(u->solver, CUBLAS_FILL_MODE_LOWER, n, c->R, n, rooms + 3);
    }
    for (int i = 0; i < 4; i++)
        if (rooms[i] > u->room) u->room = rooms[i];
    return bad(failed, "asking cuSOLVER for its memory");
}

/* The launch shape that reads A fastest. */
static int choose_floor(solve_case *c)
{
    double best = 0;
    for (int round = 0; round < 3; round++)
        for (int shape = 0; shape < BENCH_FLOOR_SHAPES; shape++) {
            const int before = c->cusolver->floor_shape;
            c->cusolver->floor_shape = shape;
            const double start = bench_now();
            if (solve_cusolver_read(c)) return 1;
            const double seconds = bench_now() - start;
            if (best == 0 || seconds < best) best = seconds;
            else c->cusolver->floor_shape = before;
        }
    return 0;
}

int solve_cusolver_open(solve_case *c)
{
    const size_t element = fs_dtype_size(c->p->dtype), n = (size_t)c->p->n;
    struct cusolver *u = calloc(1, sizeof *u);
    c->cusolver = u;
    if (!u) return 1;
    u->d = (int)c->p->d, u->n = (int)n, u->f64 = c->p->dtype == FS_F64, u->stream = c->m->g->stream;
    u->tau = c->m->alloc(element * n);
    u->info = c->m->alloc(sizeof *u->info);
    u->host = malloc(element * n);
    if (!u->tau || !u->info || !u->host || bad(cublasCreate(&u->blas), "opening cuBLAS") ||
        bad(cusolverDnCreate(&u->solver), "opening cuSOLVER") ||
        bad(cublasSetStream(u->blas, u->stream), "setting a stream") ||
        bad(cusolverDnSetStream(u->solver, u->stream), "setting a stream") || ask_for_room(c, u))
        return 1;
    u->work = c->m->alloc(element * (size_t)u->room);
    return !u->work || choose_floor(c);
}

void solve_cusolver_close(solve_case *c)
{
    struct cusolver *u = c->cusolver;
    if (!u) return;
    if (u->blas) cublasDestroy(u->blas);
    if (u->solver) cusolverDnDestroy(u->solver);
    void *const all[] = {u->work, u->tau, u->info};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i]) c->m->release(all[i]);
    free(u->host);
    free(u);
    c->cusolver = NULL;
}

int solve_cusolver_read(solve_case *c)
{
    const int64_t bytes = c->p->d * c->p->n * (int64_t)fs_dtype_size(c->p->dtype);
    bench_gpu_floor(c->m->g, c->cusolver->floor_shape, c->A, bytes, c->right, 64);
    return wait(c, "reading A");
}

/* n numbers of A's type, from the GPU. */
static int take(solve_case *c, const void *from, double *to)
{
    const struct cusolver *u = c->cusolver;
    const size_t bytes = (size_t)u->n * (u->f64 ? sizeof(double) : sizeof(float));
    if (c->m->copy(c->m, u->host, bytes, from, bytes, bytes, 1)) return 1;
    for (int i = 0; i < u->n; i++) to[i] = u->f64 ? ((double *)u->host)[i] : ((float *)u->host)[i];
    return 0;
}

/* The result of cuSOLVER's last call: 0, 1 after an error message, or SOLVE_NO_ANSWER. */
static int outcome(solve_case *c)
{
    int info = 0;
    c->k = c->iterations = c->reads = 0;
    c->note[0] = 0;
    c->by_rows = 0, c->Q_in_work = c->task != SOLVE_SVD, c->V_turned = 0;
    for (int64_t j = 0; j < c->p->n; j++) c->pivots[j] = j;
    if (c->m->copy(c->m, &info, sizeof info, c->cusolver->info, sizeof info, sizeof info, 1)) return 1;
    return info ? SOLVE_NO_ANSWER : 0;
}

static int factor(solve_case *c)
{
    struct cusolver *u = c->cusolver;
    return bad(u->f64 ? cusolverDnDgeqrf(u->solver, u->d, u->n, c->work, u->d, u->tau, u->work, u->room, u->info)
                      : cusolverDnSgeqrf(u->solver, u->d, u->n, c->work, u->d, u->tau, u->work, u->room, u->info),
               "geqrf");
}

int solve_cusolver_gels(solve_case *c, double unused)
{
    struct cusolver *u = c->cusolver;
    const double one = 1;
    const float single = 1;
    (void)unused;
    if (factor(c)) return 1;
    const int failed = u->f64 ? cusolverDnDormqr(u->solver, CUBLAS_SIDE_LEFT, CUBLAS_OP_T, u->d, 1, u->n, c->work, u->d,
                                                 u->tau, c->right, u->d, u->work, u->room, u->info) ||
                                    cublasDtrsm(u->blas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N,
                                                CUBLAS_DIAG_NON_UNIT, u->n, 1, &one, c->work, u->d, c->right, u->d)
                              : cusolverDnSormqr(u->solver, CUBLAS_SIDE_LEFT, CUBLAS_OP_T, u->d, 1, u->n, c->work, u->d,
                                                 u->tau, c->right, u->d, u->work, u->room, u->info) ||
                                    cublasStrsm(u->blas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N,
                                                CUBLAS_DIAG_NON_UNIT, u->n, 1, &single, c->work, u->d, c->right, u->d);
    return bad(failed, "ormqr and trsm") || take(c, c->right, c->x) ? 1 : outcome(c);
}

/* A'A x = A'b; x in tau, A'A in R. */
int solve_cusolver_normal(solve_case *c, double unused)
{
    struct cusolver *u = c->cusolver;
    const double one = 1, zero = 0;
    const float single = 1, none = 0;
    const cublasFillMode_t lower = CUBLAS_FILL_MODE_LOWER;
    (void)unused;
    if (bad(u->f64
                ? cublasDsyrk(u->blas, lower, CUBLAS_OP_T, u->n, u->d, &one, c->work, u->d, &zero, c->R, u->n) ||
                      cublasDgemv(u->blas, CUBLAS_OP_T, u->d, u->n, &one, c->work, u->d, c->right, 1, &zero, u->tau, 1)
                : cublasSsyrk(u->blas, lower, CUBLAS_OP_T, u->n, u->d, &single, c->work, u->d, &none, c->R, u->n) ||
                      cublasSgemv(u->blas, CUBLAS_OP_T, u->d, u->n, &single, c->work, u->d, c->right, 1, &none, u->tau,
                                  1),
            "syrk and gemv") ||
        bad(u->f64 ? cusolverDnDpotrf(u->solver, lower, u->n, c->R, u->n, u->work, u->room, u->info)
                   : cusolverDnSpotrf(u->solver, lower, u->n, c->R, u->n, u->work, u->room, u->info),
            "potrf"))
        return 1;
    const int code = outcome(c);
    if (code) return code;
    return bad(u->f64 ? cusolverDnDpotrs(u->solver, lower, u->n, 1, c->R, u->n, u->tau, u->n, u->info)
                      : cusolverDnSpotrs(u->solver, lower, u->n, 1, c->R, u->n, u->tau, u->n, u->info),
               "potrs") ||
                   take(c, u->tau, c->x)
               ? 1
               : 0;
}

int solve_cusolver_qr(solve_case *c, double unused)
{
    struct cusolver *u = c->cusolver;
    const size_t element = fs_dtype_size(c->p->dtype), rows = element * (size_t)u->n;
    (void)unused;
    if (factor(c) || c->m->copy(c->m, c->R, rows, c->work, element * (size_t)u->d, rows, (size_t)u->n) ||
        bad(u->f64 ? cusolverDnDorgqr(u->solver, u->d, u->n, u->n, c->work, u->d, u->tau, u->work, u->room, u->info)
                   : cusolverDnSorgqr(u->solver, u->d, u->n, u->n, c->work, u->d, u->tau, u->work, u->room, u->info),
            "orgqr") ||
        wait(c, "orgqr"))
        return 1;
    return outcome(c);
}

int solve_cusolver_svd(solve_case *c, double unused)
{
    struct cusolver *u = c->cusolver;
    const cusolverEigMode_t vectors = CUSOLVER_EIG_MODE_VECTOR;
    double residual = 0;
    (void)unused;
    const int failed = u->f64 ? cusolverDnDgesvdaStridedBatched(u->solver, vectors, u->n, u->d, u->n, c->work, u->d, 0,
                                                                c->values, 0, c->Q, u->d, 0, c->R, u->n, 0, u->work,
                                                                u->room, u->info, &residual, 1)
                              : cusolverDnSgesvdaStridedBatched(u->solver, vectors, u->n, u->d, u->n, c->work, u->d, 0,
                                                                c->values, 0, c->Q, u->d, 0, c->R, u->n, 0, u->work,
                                                                u->room, u->info, &residual, 1);
    return bad(failed, "gesvda") || take(c, c->values, c->s) ? 1 : outcome(c);
}
