/* mpi.c - fsbench_mpi: ranks against threads, one JSON object a line.
 *
 *     mpirun -n P fsbench_mpi [--case TEXT] [--reps N] [--commit TEXT] [--network TEXT]
 *
 * A case is a matrix, a k and a way to sum.  Three measurements take turns, under the same load of the machine: P ranks
 * with one thread each, every rank its own rows (fs_mpi_apply); rank 0 alone with P threads and all rows, while the
 * others sleep (fs_apply); and the ranks without any rows, which is the time of their sum when no work hides it.
 * Ranks begin together and the last one counts.  Fields: ms, one_ms and sum_ms are medians of the three, _min the
 * fastest of each; ratio is the median of the turns' own ratios ms / one_ms; load is the machine's load average.
 *
 * Cases "lstsq-...": fs_lstsq of the same rows, by ranks (fs_mpi_ranks) and by rank 0 alone, in turns; sum_ms is the time
 * that a rank spends in sums, waiting for others included, and sums and sum_numbers are how many there were. */
#define _GNU_SOURCE /* sched_setaffinity */
#include <dlfcn.h>
#include <flashsketch_extend.h>
#include <flashsketch_mpi.h>
#include <flashsketch_tasks.h>
#include <getopt.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

static const struct bench_case {
    const char *name;
    int64_t d, n, k;
    fs_mpi_output output;
    int ordered;
} cases[] = {
    {"default", 65536, 512, 1024, FS_MPI_ALL, 0},
    {"default-ordered", 65536, 512, 1024, FS_MPI_ALL, 1},
    {"default-root", 65536, 512, 1024, FS_MPI_ROOT, 0},
    {"default-scatter", 65536, 512, 1024, FS_MPI_SCATTER, 0},
    {"default-scatter-ordered", 65536, 512, 1024, FS_MPI_SCATTER, 1},
    {"tall", 262144, 512, 1024, FS_MPI_ALL, 0},
    {"tall-k4096", 262144, 512, 4096, FS_MPI_ALL, 0},
    {"wide", 65536, 2048, 1024, FS_MPI_ALL, 0},
    {"wide-ordered", 65536, 2048, 1024, FS_MPI_ALL, 1},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static int rank, ranks;
/* OpenMP's threads spin for some milliseconds after the one process is done, on the core of a rank that is next. */
static const struct timespec settle = {0, 30000000};
static const char *network = "shared memory"; /* fields of the record */

/* A barrier whose waiting ranks sleep: the cores belong to the ranks that are late. */
static void meet(void)
{
    MPI_Request all;
    int done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    while (MPI_Test(&all, &done, MPI_STATUS_IGNORE), !done) nanosleep(&(struct timespec){0, 100000}, NULL);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Binds this rank to a core of its own, as launchers of MPI do by default, or gives it all cores again: a rank that has
 * slept may wake up on the core of another, and stay there for milliseconds. */
static void keep_to_a_core(int own)
{
    static cpu_set_t all;
    static int known;
    if (!known) known = sched_getaffinity(0, sizeof all, &all) == 0;
    cpu_set_t one = all;
    int at = 0, chosen = rank % (CPU_COUNT(&all) ? CPU_COUNT(&all) : 1);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && at++ == chosen) CPU_SET(cpu, &one);
    if (known) sched_setaffinity(0, sizeof all, own ? &one : &all);
}

static fs_context *context(int threads)
{
    fs_context_options where = FS_CONTEXT_INIT;
    fs_context *ctx = NULL;
    where.backend = FS_BACKEND_CPU, where.threads = threads;
    if (fs_context_create(&ctx, &where) != FS_OK) ctx = NULL;
    return ctx;
}

typedef struct bench_run {
    const struct bench_case *c;
    fs_sketch *S;
    fs_context *own, *crowd; /* one thread; as many as ranks */
    fs_mpi *together;
    fs_matrix all, mine, none, whole, Y;
    int64_t row0;
} bench_run;

/* Seconds of the slowest rank; below 0 after printing an error message. */
static double together(bench_run *r, const fs_matrix *A)
{
    keep_to_a_core(1);
    meet();
    const double start = bench_now();
    const fs_result result = fs_mpi_apply(r->together, r->S, r->row0, 1.0, A, 0.0, &r->Y);
    double mine = result == FS_OK ? bench_now() - start : 1e9, slowest = 0;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (result != FS_OK && rank == 0) fprintf(stderr, "fsbench_mpi: %s\n", fs_error_message());
    return result == FS_OK ? slowest : -1;
}
static double alone(bench_run *r)
{
    double seconds = 0;
    keep_to_a_core(0);
    meet();
    if (rank == 0) {
        const double start = bench_now();
        const fs_result result = fs_apply(r->crowd, r->S, 0, 1.0, &r->all, 0.0, &r->whole);
        seconds = result == FS_OK ? bench_now() - start : -1;
    }
    meet(); /* the others sleep until then: MPI_Bcast would spin, on a core that rank 0 needs */
    nanosleep(&settle, NULL);
    MPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return seconds;
}

/* times: of the ranks, of one process, of the sum alone, and the ratios of the first two; each sorted. */
static void report(const bench_run *r, const bench_options *o, double *const times[4])
{
    static const char *const outputs[] = {"?", "all", "root", "scatter"};
    const struct bench_case *c = r->c;
    double median[4], load = -1;
    for (int i = 0; i < 4; i++) median[i] = bench_median(times[i], o->repetitions);
    if (getloadavg(&load, 1) < 1) load = -1;
    char library[MPI_MAX_LIBRARY_VERSION_STRING + 1];
    int length;
    MPI_Get_library_version(library, &length);
    library[strcspn(library, ",\n")] = 0;
    for (char *at = library; *at; at++) *at = *at == '\t' ? ' ' : *at;
    printf("{\"case\": \"%s\", \"d\": %" PRId64 ", \"n\": %" PRId64 ", \"k\": %" PRId64 ", \"dtype\": \"f32\", "
           "\"ranks\": %d, \"threads\": 1, \"output\": \"%s\", \"ordered\": %d, \"ms\": %.3f, \"one_ms\": %.3f, "
           "\"ratio\": %.3f, "
           "\"sum_ms\": %.3f, \"ms_min\": %.3f, \"one_min\": %.3f, \"sum_min\": %.3f, \"load\": %.1f, \"reps\": %d, "
           "\"scratch\": %zu, \"network\": \"%s\", \"library\": \"%s\", \"machine\": \"%s\", \"commit\": \"%s\", "
           "\"date\": \"%s\"}\n",
           c->name, c->d, c->n, c->k, ranks, outputs[c->output], c->ordered, 1e3 * median[0], 1e3 * median[1],
           median[3], 1e3 * median[2], 1e3 * times[0][0], 1e3 * times[1][0], 1e3 * times[2][0], load, o->repetitions,
           fs_mpi_memory_bytes(r->together), network, library, bench_machine(), o->commit, bench_date());
    fflush(stdout);
}

static int measure(bench_run *r, const bench_options *o)
{
    const int reps = o->repetitions;
    double *t = malloc(sizeof *t * (size_t)reps * 4);
    int failed = !t;
    for (int i = -2; i < reps && !failed; i++) {
        const double with = together(r, &r->mine), one = alone(r), sum = together(r, &r->none);
        failed = with < 0 || one < 0 || sum < 0;
        if (i >= 0) t[i] = with, t[reps + i] = one, t[2 * reps + i] = sum, t[3 * reps + i] = with / one;
    }
    if (!failed && rank == 0) report(r, o, (double *const[]){t, t + reps, t + 2 * reps, t + 3 * reps});
    free(t);
    return failed;
}

/* Makes a case, measures it and frees it.  Rank 0 has all rows, the others their own. */
static int run(const struct bench_case *c, const bench_options *o)
{
    bench_run r = {.c = c};
    const int64_t end = c->d * (rank + 1) / ranks;
    r.row0 = c->d * rank / ranks;
    const int64_t rows = end - r.row0, held = rank == 0 ? c->d : rows;
    float *a = malloc(sizeof *a * (size_t)(held * c->n)), *y = malloc(sizeof *y * (size_t)(2 * c->k * c->n));
    fs_spec spec = FS_SPEC_INIT;
    fs_mpi_options how = FS_MPI_INIT;
    spec.d = c->d, spec.k = c->k, spec.seed = 7;
    how.output = c->output, how.ordered = c->ordered;
    r.own = context(1), r.crowd = context(ranks);
    fs_result mine = a && y && r.own && r.crowd ? fs_sketch_create(&r.S, &spec) : fs_fail(FS_ENOMEM, "no memory");
    int failed = fs_mpi_agree(MPI_COMM_WORLD, mine) || fs_mpi_create(&r.together, MPI_COMM_WORLD, r.own, &how);
    if (!failed) {
        bench_fill(a, held * c->n, (uint64_t)rank);
        memset(y, 0, sizeof *y * (size_t)(2 * c->k * c->n));
        r.all = fs_row_major(a, c->d, c->n, FS_F32), r.mine = fs_row_major(a, rows, c->n, FS_F32);
        r.none = fs_row_major(a, 0, c->n, FS_F32), r.whole = fs_row_major(y + c->k * c->n, c->k, c->n, FS_F32);
        int64_t first = 0, have = c->k;
        failed = c->output == FS_MPI_SCATTER && fs_mpi_rows(r.together, r.S, &first, &have) != FS_OK;
        r.Y = fs_row_major(y, have, c->n, FS_F32);
        failed = failed || measure(&r, o);
    }
    if (failed && rank == 0) fprintf(stderr, "fsbench_mpi: %s: %s\n", c->name, fs_error_message());
    fs_mpi_destroy(r.together);
    fs_context_destroy(r.own), fs_context_destroy(r.crowd);
    fs_sketch_destroy(r.S);
    free(a), free(y);
    return failed;
}

/* least squares ---------------------------------------------------------------------------------------------------- */

static const struct lstsq_case {
    const char *name;
    int64_t d, n;
    fs_lstsq_method method;
} lstsq_cases[] = {
    {"lstsq-iterate", 200000, 200, FS_LSTSQ_ITERATE},
    {"lstsq-normal", 200000, 200, FS_LSTSQ_NORMAL},
    {"lstsq-iterate-wide", 100000, 500, FS_LSTSQ_ITERATE},
};
enum { LSTSQ_CASES = sizeof lstsq_cases / sizeof lstsq_cases[0] };

/* The sums of fs_mpi_ranks, counted. */
typedef struct counted {
    fs_ranks ranks;
    int64_t sums, numbers;
    double seconds;
} counted;
static fs_result sum_and_count(void *user, double *values, int64_t count, int failed)
{
    counted *c = user;
    const double start = bench_now();
    const fs_result result = c->ranks.sum(c->ranks.user, values, count, failed);
    c->seconds += bench_now() - start;
    c->sums++;
    c->numbers += count;
    return result;
}

/* OpenBLAS, once it is loaded, with this many threads. */
static void use_blas_threads(int threads)
{
    void *const library = dlopen("libopenblas.so.0", RTLD_LAZY | RTLD_NOLOAD);
    void (*set)(int) = NULL;
    if (library) *(void **)&set = dlsym(library, "openblas_set_num_threads");
    if (set) set(threads);
}

typedef struct lstsq_run {
    const struct lstsq_case *c;
    fs_context *own, *crowd;
    fs_ranks ranks;
    counted sums;
    double *a, *b, *x; /* rank 0 has all rows, the others their own */
    int64_t rows;
    fs_lstsq_report report;
} lstsq_run;

/* Seconds; below 0 after printing an error message. */
static double solve_on(lstsq_run *r, fs_context *ctx, int64_t rows, const fs_ranks *over)
{
    const fs_matrix A = fs_row_major(r->a, rows, r->c->n, FS_F64), B = fs_row_major(r->b, rows, 1, FS_F64);
    const fs_matrix X = fs_row_major(r->x, r->c->n, 1, FS_F64);
    const fs_lstsq_report start = FS_LSTSQ_REPORT_INIT;
    fs_lstsq_options options = FS_LSTSQ_INIT;
    fs_operand operand = FS_OPERAND_INIT;
    operand.dense = &A;
    options.method = r->c->method, options.ranks = over;
    r->report = start;
    const double began = bench_now();
    return bench_fs_failed(fs_lstsq(ctx, &operand, &B, &options, &X, &r->report), "lstsq") ? -1 : bench_now() - began;
}

static double solve_together(lstsq_run *r)
{
    fs_ranks over = r->ranks;
    r->sums = (counted){r->ranks, 0, 0, 0};
    over.sum = sum_and_count, over.user = &r->sums;
    keep_to_a_core(1);
    use_blas_threads(1);
    meet();
    double mine = solve_on(r, r->own, r->rows, &over), slowest = 0;
    mine = mine < 0 ? 1e9 : mine;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest < 1e9 ? slowest : -1;
}

static double solve_alone(lstsq_run *r)
{
    double seconds = 0;
    keep_to_a_core(0);
    meet();
    if (rank == 0) use_blas_threads(ranks), seconds = solve_on(r, r->crowd, r->c->d, NULL);
    meet();
    nanosleep(&settle, NULL);
    MPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return seconds;
}

static int measure_lstsq(lstsq_run *r, const bench_options *o)
{
    const int reps = o->repetitions;
    double *t = malloc(sizeof *t * (size_t)reps * 4), load = -1;
    int failed = !t;
    for (int i = -1; i < reps && !failed; i++) {
        const double one = solve_alone(r), with = solve_together(r);
        failed = with < 0 || one < 0;
        if (i >= 0) t[i] = with, t[reps + i] = one, t[2 * reps + i] = r->sums.seconds, t[3 * reps + i] = with / one;
    }
    if (getloadavg(&load, 1) < 1) load = -1;
    if (!failed && rank == 0)
        printf("{\"case\": \"%s\", \"d\": %" PRId64 ", \"n\": %" PRId64 ", \"dtype\": \"f64\", \"ranks\": %d, "
               "\"threads\": 1, \"iterations\": %" PRId64 ", \"reads\": %" PRId64 ", \"sums\": %" PRId64
               ", \"sum_numbers\": %" PRId64 ", \"ms\": %.3f, \"one_ms\": %.3f, \"ratio\": %.3f, \"sum_ms\": %.3f, "
               "\"load\": %.1f, \"reps\": %d, \"network\": \"%s\", \"machine\": \"%s\", \"commit\": \"%s\", "
               "\"date\": \"%s\"}\n",
               r->c->name, r->c->d, r->c->n, ranks, r->report.iterations, r->report.reads, r->sums.sums,
               r->sums.numbers, 1e3 * bench_median(t, reps), 1e3 * bench_median(t + reps, reps),
               bench_median(t + 3 * reps, reps), 1e3 * bench_median(t + 2 * reps, reps), load, reps, network,
               bench_machine(), o->commit, bench_date());
    fflush(stdout);
    free(t);
    return failed;
}

static int run_lstsq(const struct lstsq_case *c, const bench_options *o)
{
    lstsq_run r = {.c = c, .ranks = FS_RANKS_INIT};
    fs_mpi *all = NULL;
    const int64_t row0 = c->d * rank / ranks, held = rank == 0 ? c->d : c->d * (rank + 1) / ranks - row0;
    r.rows = c->d * (rank + 1) / ranks - row0;
    r.a = malloc(sizeof *r.a * (size_t)(held * c->n)), r.b = malloc(sizeof *r.b * (size_t)held);
    r.x = malloc(sizeof *r.x * (size_t)c->n);
    r.own = context(1), r.crowd = context(ranks);
    const fs_result mine = r.a && r.b && r.x && r.own && r.crowd ? FS_OK : fs_fail(FS_ENOMEM, "no memory");
    int failed = fs_mpi_agree(MPI_COMM_WORLD, mine) || fs_mpi_create(&all, MPI_COMM_WORLD, r.own, NULL) ||
                 fs_mpi_ranks(all, row0, r.rows, &r.ranks);
    if (failed && rank == 0) fprintf(stderr, "fsbench_mpi: %s: %s\n", c->name, fs_error_message());
    if (!failed) {
        /* Numbers by their place in the whole, so that ranks and one process have one matrix. */
        for (int64_t i = 0; i < held; i++) {
            float row[1024], side;
            bench_fill(row, c->n, (uint64_t)(row0 + i));
            bench_fill(&side, 1, (uint64_t)(row0 + i + c->d));
            for (int64_t j = 0; j < c->n; j++) r.a[i * c->n + j] = row[j];
            r.b[i] = side;
        }
        failed = measure_lstsq(&r, o);
    }
    fs_mpi_destroy(all);
    fs_context_destroy(r.own), fs_context_destroy(r.crowd);
    free(r.a), free(r.b), free(r.x);
    return failed;
}

int main(int argc, char **argv)
{
    static const struct option known[] = {{"case", required_argument, NULL, 'c'},
                                          {"reps", required_argument, NULL, 'r'},
                                          {"commit", required_argument, NULL, 'g'},
                                          {"network", required_argument, NULL, 'n'},
                                          {NULL, 0, NULL, 0}};
    bench_options options = {NULL, "unknown", NULL, 1, 15};
    int letter, failed = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    while ((letter = getopt_long(argc, argv, "", known, NULL)) != -1) switch (letter) {
        case 'c': options.filter = optarg; break;
        case 'r': options.repetitions = atoi(optarg); break;
        case 'g': options.commit = optarg; break;
        case 'n': network = optarg; break;
        default: failed = 2;
        }
    if (options.repetitions < 3) failed = 2;
    if (failed && rank == 0)
        fprintf(stderr, "usage: mpirun -n P fsbench_mpi [--case TEXT] [--reps N, at least 3] [--commit TEXT] "
                        "[--network TEXT]\n");
    for (int i = 0; i < CASES && !failed; i++)
        if (!options.filter || strstr(cases[i].name, options.filter)) failed = run(&cases[i], &options);
    for (int i = 0; i < LSTSQ_CASES && !failed; i++)
        if (!options.filter || strstr(lstsq_cases[i].name, options.filter))
            failed = run_lstsq(&lstsq_cases[i], &options);
    MPI_Finalize();
    return failed;
}
