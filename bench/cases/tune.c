/* tune.c - `fsbench tune`: tries the candidate plans of the CUDA backend, and records the fastest.
 *
 * fsbench compiles the plan layer that the plugin of the same build was compiled with.  A plan is tried as users would:
 * by a table of one entry, named by FLASHSKETCH_TUNING, read by a new context.  A winner is written only where it beats
 * the library's own choice by more than a run differs from the next, and a plan whose result is not that of the
 * library's own choice is reported and never written, however fast it is. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/dtype.h"
#include "groups.h"
#include "cuda/plan/tune/candidates.h"

enum { MOST_PLANS = 256 };
static const double worth_an_entry = 0.99; /* the winner's time over the library's own */
/* Relative, for all of Y.  Sums in another order differ by 1e-6 or so, and two split terms of an f32 by 4e-6; in a Y
 * of 4096 x 1024 elements a single wrong one gives 5e-4. */
static const double most_difference = 1e-5;
static const char *const variable = "FLASHSKETCH_TUNING";

typedef struct tuning_run {
    fsi_gpu_traits traits;
    FILE *table;
    FILE *trial;         /* the one-entry table, a file without a name: it is deleted however fsbench ends */
    char trial_path[64]; /* the path by which it is opened */
    int wrong;           /* plans whose results differed */
    fsi_plan plans[MOST_PLANS];
} tuning_run;

/* The properties of the GPU that candidates depend on, in the backend's form. */
static int read_traits(fsi_gpu_traits *traits)
{
    struct cudaDeviceProp p;
    if (bench_cuda_failed(cudaGetDeviceProperties(&p, 0), "asking for the GPU's properties")) return 1;
    *traits = (fsi_gpu_traits){p.major * 10 + p.minor, p.multiProcessorCount, (int64_t)p.sharedMemPerBlockOptin,
                               (int64_t)p.sharedMemPerMultiprocessor, p.l2CacheSize};
    return 0;
}

/* Recomputes the result for comparisons, in the type of sums: rounded to f16 or bf16, sums that agree to seven digits
 * may be neighbours three digits apart.  The plan is the same, it does not depend on the type of Y. */
static int make_result(bench_gpu *g, bench_case *c, fs_matrix *Y)
{
    const fs_matrix A = bench_case_from(c, g->from.data);
    *Y = bench_case_to(c, g->to.data);
    Y->dtype = fsi_dtype_sum(A.dtype);
    /* All ones is NaN, so that what a plan leaves alone differs too. */
    const size_t bytes = (size_t)(Y->rows * Y->cols * fsi_dtype_size(Y->dtype));
    return bench_cuda_failed(cudaMemsetAsync(Y->data, 0xFF, bytes, g->stream), "clearing the output") ||
           bench_sketch_apply(&c->sketch, &A, Y);
}

/* The milliseconds of a case as a context opened now has it, and the distance of its result from the one kept.
 * Without `difference` the result becomes the one kept. */
static int time_now(bench_gpu *g, bench_case *c, double *ms, double *difference)
{
    fs_context_options where = FS_CONTEXT_INIT;
    fs_context *context = NULL;
    bench_times times;
    fs_matrix Y;
    where.backend = FS_BACKEND_CUDA;
    where.stream = g->stream;
    where.precision = c->group->precision;
    if (bench_fs_failed(fs_context_create(&context, &where), "opening a CUDA context")) return 1;
    c->sketch.context = context;
    const bench_work work = bench_case_work(c);
    const int failed = bench_gpu_measure(g, &work, &times) || make_result(g, c, &Y) ||
                       (difference ? bench_gpu_difference(g, &Y, difference) : bench_gpu_keep(g, &Y));
    fs_context_destroy(context);
    if (!failed) *ms = times.ms;
    return failed;
}

static int time_plan(bench_gpu *g, bench_case *c, const tuning_run *run, const fsi_problem *problem,
                     const fsi_plan *plan, double *ms, double *difference)
{
    rewind(run->trial);
    fsi_tuning_write_head(run->trial, g->name);
    fsi_tuning_write(run->trial, problem, plan);
    const long length = ftell(run->trial);
    if (fflush(run->trial) || length < 0 || ftruncate(fileno(run->trial), length) ||
        setenv(variable, run->trial_path, 1)) {
        perror("fsbench: writing a table of one entry");
        return 1;
    }
    const int failed = time_now(g, c, ms, difference);
    unsetenv(variable);
    return failed;
}

static fsi_problem problem_of(const bench_gpu *g, const bench_case *c)
{
    const fs_spec *p = &c->spec;
    const fsi_blockperm B = fsi_blockperm_make(p->seed, p->d, p->k, p->M, p->kappa, p->s, (int32_t)p->shuffle,
                                               p->interleave);
    const fs_matrix A = bench_case_from(c, g->from.data);
    return fsi_problem_of(&B, 0, &A, c->group->precision);
}

static void enter(FILE *table, const char *name, const fsi_problem *problem, const fsi_plan *best, double best_ms,
                  const fsi_plan *own, double own_ms)
{
    fprintf(table, "# %s: %.4f ms; the library's own choice took %.4f ms:\n# ", name, best_ms, own_ms);
    fsi_tuning_write(table, problem, own);
    fsi_tuning_write(table, problem, best);
}

/* A plan that cannot run is reported on stderr and not chosen. */
static int tune(bench_gpu *g, bench_case *c, void *user)
{
    tuning_run *run = user;
    const fsi_problem problem = problem_of(g, c);
    const fsi_plan own = fsi_choose(&problem, &run->traits, NULL);
    const int count = fsi_choose_candidates(&problem, &run->traits, run->plans, MOST_PLANS);
    double own_ms, best_ms = 0;
    int winner = -1;
    if (time_now(g, c, &own_ms, NULL)) return 1;
    for (int i = 0; i < count; i++) {
        double ms, difference;
        /* The library's own choice has been timed.  Equal plans with other padding are too, which costs only time. */
        if (memcmp(&run->plans[i], &own, sizeof own) == 0) continue;
        if (time_plan(g, c, run, &problem, &run->plans[i], &ms, &difference)) continue;
        if (!(difference <= most_difference)) {
            fprintf(stderr, "fsbench: case %s: a plan's result is %.2e from that of the library's own choice:\n",
                    c->group->name, difference);
            fsi_tuning_write(stderr, &problem, &run->plans[i]);
            run->wrong++;
            continue;
        }
        if (winner < 0 || ms < best_ms) best_ms = ms, winner = i;
    }
    const int entered = winner >= 0 && best_ms < worth_an_entry * own_ms;
    printf("%-14s %10" PRId64 " x %-5" PRId64 " k %-5" PRId64 " %3d plans, own choice %8.4f ms", c->group->name,
           c->spec.d, c->n, c->spec.k, count, own_ms);
    if (winner >= 0) printf(", best other %8.4f ms, %.3f%s", best_ms, best_ms / own_ms, entered ? ", entered" : "");
    printf("\n");
    fflush(stdout);
    if (entered) enter(run->table, c->group->name, &problem, &run->plans[winner], best_ms, &own, own_ms);
    return 0;
}

/* Writes beside the output and renames at the end, so that a table is written atomically. */
static int write_table(bench_gpu *g, tuning_run *run, const char *output)
{
    char beside[4096];
    if (snprintf(beside, sizeof beside, "%s.part", output) >= (int)sizeof beside) {
        fprintf(stderr, "fsbench: the path %s is too long\n", output);
        return 1;
    }
    run->table = fopen(beside, "w");
    if (!run->table) {
        perror("fsbench: writing the table");
        return 1;
    }
    fsi_tuning_write_head(run->table, g->name);
    fprintf(run->table, "# fsbench tune, commit %s, %s, driver %s, CUDA %s\n", g->options->commit, bench_date(),
            g->driver, g->cuda);
    const int failed = bench_for_cases(g, 1, tune, run);
    const int unwritten = ferror(run->table);
    if (fclose(run->table) || unwritten || rename(beside, output)) {
        fprintf(stderr, "fsbench: %s cannot be written\n", output);
        unlink(beside);
        return 1;
    }
    if (run->wrong) fprintf(stderr, "fsbench: %d plans gave other results and were left out\n", run->wrong);
    return failed || run->wrong;
}

int bench_tune(const bench_options *options)
{
    if (!options->output) {
        fprintf(stderr, "fsbench: tune needs --output FILE, the table to write\n");
        return 2;
    }
    tuning_run *run = calloc(1, sizeof *run);
    if (run) run->trial = tmpfile();
    if (!run || !run->trial) {
        perror("fsbench: tune");
        free(run);
        return 1;
    }
    snprintf(run->trial_path, sizeof run->trial_path, "/proc/self/fd/%d", fileno(run->trial));
    unsetenv(variable);
    bench_gpu g;
    const int failed = bench_gpu_open(&g, options) || read_traits(&run->traits) ||
                       write_table(&g, run, options->output);
    bench_gpu_close(&g);
    fclose(run->trial);
    free(run);
    return failed;
}
