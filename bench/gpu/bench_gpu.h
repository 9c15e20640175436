/* bench_gpu.h - what `fsbench cuda` and `fsbench tune` share: buffers, the lower bound, a measurement, a check, a
 * record.
 *
 * How a time is taken.  Lower bound and work take turns on one stream, between CUDA events, and medians are reported.
 * Every launch reads and writes the next of several buffers, so many that 600 MB pass before one comes back: L2 is
 * cold.  Before each turn the GPU is kept waiting until the host has queued it all, so that the time is that of a busy
 * stream; what a call costs the host is reported beside it. */
#ifndef FSI_BENCH_GPU_BENCH_GPU_H
#define FSI_BENCH_GPU_BENCH_GPU_H

#include <cuda_runtime_api.h>
#include <flashsketch.h>

#include "bench/bench.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bench_arena {
    char *data; /* device memory */
    int64_t bytes;
} bench_arena;

typedef struct bench_gpu {
    const bench_options *options;
    cudaStream_t stream;
    cudaEvent_t turn[3];    /* before the lower bound, between lower bound and work, after the work */
    fs_context *context[2]; /* by fs_precision, both on `stream` */
    bench_arena from, to;   /* inputs and outputs, divided again for every case */
    bench_arena check;      /* columns in double */
    int processors;
    char name[256], driver[32], cuda[16];
} bench_gpu;

/* Opens the first GPU, its contexts and its memory, and runs it warm.  0, or 1 after printing an error message; close
 * it all the same. */
int bench_gpu_open(bench_gpu *g, const bench_options *options);
void bench_gpu_close(bench_gpu *g);

/* 0, or 1 after printing the action that failed and CUDA's error message. */
int bench_cuda_failed(cudaError_t error, const char *doing);

/* measure.c -------------------------------------------------------------------------------------------------- */

/* Work to be timed, from one matrix into another. */
typedef struct bench_work {
    fs_dtype dtype;                                 /* of the input, which is filled with numbers from -1 to 1 */
    int64_t from_bytes, to_bytes;                   /* of one input and one output */
    int64_t read, written;                          /* bytes that the work cannot avoid: its lower bound */
    int (*queue)(void *user, void *from, void *to); /* puts it on the stream; 0, or 1 after printing an error message */
    void *user;
} bench_work;

typedef struct bench_times {
    double floor_ms, floor_min, ms, ms_min; /* medians and minima */
    double call_us;                         /* the host's time in `queue`, median */
} bench_times;

/* Measures the work; afterwards the first buffers of `from` and `to` hold one input and its output. */
int bench_gpu_measure(bench_gpu *g, const bench_work *work, bench_times *times);

/* Median milliseconds of something that reads and writes no matrix: making S. */
int bench_gpu_measure_alone(bench_gpu *g, int (*queue)(void *user), void *user, double *ms);

/* measure_baseline.c: the times of a baseline (baselines.h); prep_ms and full_ms, making S without and with the
 * product, stay negative where S is made in every call. */
struct baseline;
struct baseline_problem;
int bench_gpu_measure_baseline(bench_gpu *g, const struct baseline *b, void *state, const struct baseline_problem *p,
                               bench_times *times, double *prep_ms, double *full_ms);

/* check.c ---------------------------------------------------------------------------------------------------- */

/* |to - reference(from)| / |reference(from)| over up to 64 of the columns. */
int bench_gpu_error(bench_gpu *g, bench_reference reference, void *user, const fs_matrix *from, const fs_matrix *to,
                    double *error);

/* Keeps a result, in double, in the memory that bench_gpu_error uses; and |m - kept| / |kept| of another one of the
 * same shape, NaN if an element of it is. */
int bench_gpu_keep(bench_gpu *g, const fs_matrix *m);
int bench_gpu_difference(bench_gpu *g, const fs_matrix *m, double *difference);

/* A sketch of the library as a reference. */
typedef struct bench_sketch {
    fs_context *context;
    const fs_sketch *S;
    int adjoint;
} bench_sketch;
int bench_sketch_apply(void *sketch, const fs_matrix *from, fs_matrix *to);

/* A packed rows x cols matrix on the GPU: row-major, or stored as cols samples of rows coordinates. */
fs_matrix bench_gpu_view(void *data, int64_t rows, int64_t cols, int batch_major, fs_dtype dtype);

/* record.c --------------------------------------------------------------------------------------------------- */

typedef struct bench_record {
    const char *name, *op;
    fs_spec spec; /* full; what does not apply is 0 */
    int64_t n;
    int batch_major;
    fs_dtype dtype;
    fs_precision precision;
    int64_t bytes; /* of the lower bound */
    bench_times times;
    double error;
    double prep_ms, full_ms, copy_share; /* negative: not measured */
} bench_record;

/* A record with what was not measured marked as such. */
bench_record bench_record_of(const char *name, const char *op, const fs_spec *spec, int64_t n, fs_dtype dtype);
/* Writes one line of JSON to stdout. */
void bench_gpu_report(const bench_gpu *g, const bench_record *record);

/* kernels.cu ------------------------------------------------------------------------------------------------- */

/* One way to launch the lower bound; BENCH_FLOOR_SHAPES of them are tried for every case and the fastest is kept. */
enum { BENCH_FLOOR_SHAPES = 16 };
void bench_gpu_floor(const bench_gpu *g, int shape, const void *from, int64_t read, void *to, int64_t written);
void bench_gpu_hold(const bench_gpu *g);
void bench_gpu_fill(const bench_gpu *g, void *data, int64_t bytes, fs_dtype dtype);
/* out[i cols + c] = column c step of the matrix, in double. */
void bench_gpu_widen(const bench_gpu *g, const fs_matrix *m, int64_t step, int64_t cols, double *out);
/* sums[0] += sum of (m - reference)^2, sums[1] += sum of reference^2, over the same columns. */
void bench_gpu_compare(const bench_gpu *g, const fs_matrix *m, int64_t step, int64_t cols, const double *reference,
                       double *sums);

/* bench/cases ------------------------------------------------------------------------------------------------ */

/* Whether the options select a case of this name. */
int bench_wanted(const bench_options *options, const char *name);
/* Prints on stderr which case failed. */
void bench_no_result(const char *name, int64_t d, int64_t n, int64_t k);
/* The parts of `fsbench cuda` that have files of their own; 0, or 1 if something failed. */
int bench_cuda_host(bench_gpu *g);
int bench_cuda_baselines(bench_gpu *g);

#ifdef __cplusplus
}
#endif

#endif
