/* bench.h - what the benchmark's cases share: a clock, medians, the lower bound, and one JSON object a line. */
#ifndef FSI_BENCH_BENCH_H
#define FSI_BENCH_BENCH_H

#include <flashsketch_extend.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bench_options {
    const char *filter; /* run only cases whose name contains this; NULL: all */
    const char *commit; /* what was measured */
    const char *output; /* the table that `fsbench tune` writes, the file that `fsbench stream` makes; NULL: none */
    int threads;
    int repetitions;
} bench_options;

/* 0, or 1 after printing the action that failed and the library's error message. */
int bench_fs_failed(fs_result result, const char *doing);

/* Makes the result in double from a matrix in double; both are row-major.  0, or 1 after printing an error message. */
typedef int (*bench_reference)(void *user, const fs_matrix *from, fs_matrix *to);

/* Seconds on a clock that only goes forward. */
double bench_now(void);

/* The median of `count` values, which it sorts. */
double bench_median(double *values, int count);

/* Fills with numbers from -1 to 1 that look random; the same for the same seed. */
void bench_fill(float *x, int64_t count, uint64_t seed);

/* Reads `bytes` bytes of A and writes `out` bytes, with this many threads: the minimum for any sketch.  Returns a value
 * computed from all data read. */
float bench_floor(const void *A, int64_t bytes, void *Y, int64_t out, int threads);

/* The shuffle of a spec in a record; families without one have "none". */
static inline const char *bench_shuffle_name(fs_shuffle shuffle) { return shuffle ? fs_shuffle_name(shuffle) : "none"; }

/* The processor's name, and today's date, for the record. */
const char *bench_machine(void);
const char *bench_date(void);

/* bench/cases */
int bench_cpu(const bench_options *options);
int bench_cuda(const bench_options *options);
int bench_tune(const bench_options *options);
int bench_stream(const bench_options *options);
int bench_tasks(const bench_options *options);
/* These have options of their own; argv[0] is their name. */
int bench_randnla(int argc, char **argv);
int bench_grass(int argc, char **argv);
int bench_solve(int argc, char **argv);
int bench_quality(int argc, char **argv);

#ifdef __cplusplus
}
#endif

#endif
