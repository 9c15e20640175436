/* tune.c - `fsbench tune`: tries the plans that the CUDA backend thinks worth trying, and writes down which one won.
 *
 * The plugin is asked for the plans, so they are those of the kernels that are measured.  A plan is tried through the
 * door that users have: a table of one entry, named by FLASHSKETCH_TUNING, read by a new context.  A winner is written
 * only where it beats the library's own choice by more than a run differs from the next. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "choose.h"
#include "groups.h"

enum { MOST_PLANS = 256 };
static const double worth_an_entry = 0.99; /* the winner's time over the library's own */
static const char *const variable = "FLASHSKETCH_TUNING";

/* The plugin's functions of choose.h. */
typedef struct chooser {
    void *plugin;
    fs_problem (*problem_of)(const fs_blockperm *, int64_t, const fs_matrix *, const fs_matrix *, fs_precision);
    int (*candidates)(const fs_problem *, const fs_gpu_traits *, fs_plan *, int);
    void (*write_head)(FILE *, const char *);
    void (*write)(FILE *, const fs_problem *, const fs_plan *);
} chooser;

typedef struct tuning_run {
    chooser choose;
    fs_gpu_traits traits;
    FILE *table;
    const char *trial; /* path of the one-entry table */
    fs_plan plans[MOST_PLANS];
} tuning_run;

/* POSIX's way from an object pointer to a function pointer, which ISO C has none for. */
static int find(const chooser *c, const char *name, void *function)
{
    *(void **)function = dlsym(c->plugin, name);
    if (!*(void **)function) fprintf(stderr, "fsbench: the CUDA plugin has no %s to tune with\n", name);
    return !*(void **)function;
}
static int chooser_open(chooser *c)
{
    const char *path = getenv("FLASHSKETCH_CUDA_PLUGIN");
    c->plugin = dlopen(path ? path : "libflashsketch_cuda.so", RTLD_NOW | RTLD_LOCAL);
    if (!c->plugin) {
        fprintf(stderr, "fsbench: the CUDA plugin could not be loaded: %s\n", dlerror());
        return 1;
    }
    return find(c, "fs_problem_of", &c->problem_of) || find(c, "fs_choose_candidates", &c->candidates) ||
           find(c, "fs_tuning_write_head", &c->write_head) || find(c, "fs_tuning_write", &c->write);
}

/* What the candidates depend on, as the backend asks for it. */
static int read_traits(fs_gpu_traits *traits)
{
    struct cudaDeviceProp p;
    if (bench_cuda_failed(cudaGetDeviceProperties(&p, 0), "asking for the GPU's properties")) return 1;
    *traits = (fs_gpu_traits){p.major * 10 + p.minor, p.multiProcessorCount, (int64_t)p.sharedMemPerBlockOptin,
                              (int64_t)p.sharedMemPerMultiprocessor, p.l2CacheSize};
    return 0;
}

/* The milliseconds of a case as a context opened now has it. */
static int time_now(bench_gpu *g, bench_case *c, double *ms)
{
    fs_context_options where = FS_CONTEXT_INIT;
    fs_context *context = NULL;
    bench_times times;
    where.backend = FS_BACKEND_CUDA;
    where.stream = g->stream;
    where.precision = c->group->precision;
    if (bench_fs_failed(fs_context_create(&context, &where), "opening a CUDA context")) return 1;
    c->sketch.context = context;
    const bench_work work = bench_case_work(c);
    const int failed = bench_gpu_measure(g, &work, &times);
    fs_context_destroy(context);
    if (!failed) *ms = times.ms;
    return failed;
}

static int time_plan(bench_gpu *g, bench_case *c, const tuning_run *run, const fs_problem *problem, const fs_plan *plan,
                     double *ms)
{
    FILE *f = fopen(run->trial, "w");
    if (f) {
        run->choose.write_head(f, g->name);
        run->choose.write(f, problem, plan);
    }
    if (!f || fclose(f) || setenv(variable, run->trial, 1)) {
        perror("fsbench: writing a table of one entry");
        return 1;
    }
    const int failed = time_now(g, c, ms);
    unsetenv(variable);
    return failed;
}

static fs_problem problem_of(const bench_gpu *g, const bench_case *c, const chooser *choose)
{
    const fs_spec *p = &c->spec;
    const fs_blockperm B =
        fs_blockperm_make(p->seed, p->d, p->k, p->M, p->kappa, p->s, (int32_t)p->shuffle, p->interleave);
    const fs_matrix A = bench_case_from(c, g->from.data), Y = bench_case_to(c, g->to.data);
    return choose->problem_of(&B, 0, &A, &Y, c->group->precision);
}

/* A plan that cannot run says so on stderr and loses. */
static int tune(bench_gpu *g, bench_case *c, void *user)
{
    tuning_run *run = user;
    const fs_problem problem = problem_of(g, c, &run->choose);
    const int count = run->choose.candidates(&problem, &run->traits, run->plans, MOST_PLANS);
    double own, best = 0;
    int winner = -1;
    if (time_now(g, c, &own)) return 1;
    for (int i = 0; i < count; i++) {
        double ms;
        if (time_plan(g, c, run, &problem, &run->plans[i], &ms)) continue;
        if (winner < 0 || ms < best) best = ms, winner = i;
    }
    const int entered = winner >= 0 && best < worth_an_entry * own;
    printf("%-14s %10" PRId64 " x %-5" PRId64 " k %-5" PRId64 " %3d plans, own choice %8.4f ms", c->group->name,
           c->spec.d, c->n, c->spec.k, count, own);
    if (winner >= 0) printf(", best %8.4f ms, %.3f%s", best, best / own, entered ? ", entered" : "");
    printf("\n");
    fflush(stdout);
    if (entered) {
        fprintf(run->table, "# %s: %.4f ms, the library's own choice %.4f ms\n", c->group->name, best, own);
        run->choose.write(run->table, &problem, &run->plans[winner]);
    }
    return 0;
}

/* Writes beside the output and renames at the end, so that a table is whole or not there. */
static int write_table(bench_gpu *g, tuning_run *run, const char *output)
{
    char beside[4096];
    if (snprintf(beside, sizeof beside, "%s.part", output) >= (int)sizeof beside) {
        fprintf(stderr, "fsbench: the path %s is too long\n", output);
        return 1;
    }
    run->table = fopen(beside, "w");
    if (!run->table) {
        fprintf(stderr, "fsbench: %s cannot be written\n", beside);
        return 1;
    }
    run->choose.write_head(run->table, g->name);
    fprintf(run->table, "# fsbench tune, commit %s, %s, driver %s, CUDA %s\n", g->options->commit, bench_date(),
            g->driver, g->cuda);
    const int failed = bench_for_cases(g, 1, tune, run);
    if (fclose(run->table) || rename(beside, output)) {
        fprintf(stderr, "fsbench: %s cannot be written\n", output);
        return 1;
    }
    return failed;
}

int bench_tune(const bench_options *options)
{
    char trial[] = "/tmp/fsbench-tuning-XXXXXX";
    if (!options->output) {
        fprintf(stderr, "fsbench: tune needs --output FILE, the table to write\n");
        return 2;
    }
    const int descriptor = mkstemp(trial);
    tuning_run *run = calloc(1, sizeof *run);
    if (descriptor < 0 || !run) {
        perror("fsbench: tune");
        free(run);
        return 1;
    }
    close(descriptor);
    run->trial = trial;
    unsetenv(variable);
    bench_gpu g;
    const int failed = bench_gpu_open(&g, options) || chooser_open(&run->choose) || read_traits(&run->traits) ||
                       write_table(&g, run, options->output);
    bench_gpu_close(&g);
    if (run->choose.plugin) dlclose(run->choose.plugin);
    unlink(trial);
    free(run);
    return failed;
}
