/* fsbench.c - the one benchmark program: `fsbench cpu` and `fsbench cuda` time a backend, `fsbench randnla` compares
 * methods by time and error, `fsbench grass` projections of gradients, `fsbench solve` solvers to full accuracy,
 * `fsbench quality` embedding errors on hard inputs; one JSON object a line.
 *
 * On a shared machine a time alone is not comparable: every case is measured alternately with the lower bound of its
 * shape (reading A and writing k n values on the same processor) and reported as a ratio to it. */
#include <getopt.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#ifdef FS_BENCH_CUDA
/* The plugin of the same build, unless the environment names another. */
static int cuda(const bench_options *options)
{
    setenv("FLASHSKETCH_CUDA_PLUGIN", FS_BENCH_PLUGIN, 0);
    return bench_cuda(options);
}
static int tune(const bench_options *options)
{
    setenv("FLASHSKETCH_CUDA_PLUGIN", FS_BENCH_PLUGIN, 0);
    return bench_tune(options);
}
static int tasks(const bench_options *options)
{
    setenv("FLASHSKETCH_CUDA_PLUGIN", FS_BENCH_PLUGIN, 0);
    return bench_tasks(options);
}
#else
static int cuda(const bench_options *options)
{
    (void)options;
    fprintf(stderr, "fsbench: this build has no CUDA; configure it where nvcc is installed\n");
    return 2;
}
static int tune(const bench_options *options) { return cuda(options); }
static int tasks(const bench_options *options) { return cuda(options); }
#endif

/* A command with options of its own. */
static int run_own(int (*command)(int argc, char **argv), int argc, char **argv)
{
#ifdef FS_BENCH_CUDA
    setenv("FLASHSKETCH_CUDA_PLUGIN", FS_BENCH_PLUGIN, 0);
#endif
    return command(argc, argv);
}

#ifndef FS_BENCH_FILES
int bench_stream(const bench_options *options)
{
    (void)options;
    fprintf(stderr, "fsbench: this build has no libflashsketch_files; configure it with FS_BUILD_CLI\n");
    return 2;
}
#endif

static const struct command {
    const char *name, *what;
    int (*run)(const bench_options *options);
} commands[] = {
    {"cpu", "the CPU backend: every family, layout and element type", bench_cpu},
    {"stream", "files larger than memory: 4 GiB of them in the page cache, against reading them", bench_stream},
    {"cuda", "the CUDA backend, and what people use instead, on the first GPU", cuda},
    {"tune", "tries the CUDA backend's plans on the first GPU and writes a table for FLASHSKETCH_TUNING", tune},
    {"tasks", "ridge and least squares on the first GPU: how they divide into sketching and solving", tasks},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static int usage(FILE *to, int code)
{
    fprintf(to, "usage: fsbench COMMAND [--case TEXT] [--threads N] [--reps N] [--commit TEXT] [--output FILE]\n\n"
                "commands:\n");
    for (int i = 0; i < COMMANDS; i++) fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].what);
    fprintf(to, "  randnla  the paper's tasks, methods and data: errors and times; see 'fsbench randnla --help'\n");
    fprintf(to, "  grass    gradients to features, as in GraSS: times; see 'fsbench grass --help'\n");
    fprintf(to, "  solve    least squares, QR and singular values against LAPACK's; see 'fsbench solve --help'\n");
    fprintf(to, "  quality  embedding errors over a dense Gaussian's on hard inputs; see 'fsbench quality --help'\n");
    fprintf(
        to,
        "\noptions:\n"
        "  --case TEXT    only cases whose name contains TEXT\n"
        "  --threads N    threads to use (default: OpenMP's)\n"
        "  --reps N       measurements of each case, at least 3; medians are reported (default: 15)\n"
        "  --commit TEXT  what to write down as the commit\n"
        "  --output FILE  tune: the table to write; stream: where to make the file of 4 GiB (default in TMPDIR)\n"
        "\nfields of a line: case, op, backend, family, d, n, k, M, kappa, s, shuffle, layout, dtype, threads,\n"
        "  floor_ms (reading A and writing k n values), ms (median), ratio (ms / floor_ms), error (relative,\n"
        "  against a reference in double on 64 columns), machine, commit, date\n"
        "of stream: floor_ms (reading the same panels), small_ms (reading into a MiB for each thread), the same in\n"
        "  CPU time, beyond_y (the process's largest memory less Y, in bytes)\n"
        "of cuda besides: interleave, precision, floor_min and ms_min (the fastest), call_us (the host's time in\n"
        "  the call), bytes_per_s (the floor's bytes / ms), driver, cuda, reps; of peers prep_ms (making S) and\n"
        "  full_ms (S made and multiplied in one call); of matrices in host memory, whose floor is a copy,\n"
        "  copy_share (floor_ms / ms)\n");
    return code;
}

int main(int argc, char **argv)
{
    static const struct option known[] = {{"case", required_argument, NULL, 'c'},
                                          {"threads", required_argument, NULL, 't'},
                                          {"reps", required_argument, NULL, 'r'},
                                          {"commit", required_argument, NULL, 'g'},
                                          {"output", required_argument, NULL, 'o'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    if (argc > 1 && !strcmp(argv[1], "randnla")) return run_own(bench_randnla, argc - 1, argv + 1);
    if (argc > 1 && !strcmp(argv[1], "solve")) return run_own(bench_solve, argc - 1, argv + 1);
    if (argc > 1 && !strcmp(argv[1], "quality")) return run_own(bench_quality, argc - 1, argv + 1);
    if (argc > 1 && !strcmp(argv[1], "grass")) return run_own(bench_grass, argc - 1, argv + 1);
    bench_options options = {NULL, "unknown", NULL, omp_get_max_threads(), 15};
    int letter;
    while ((letter = getopt_long(argc, argv, "h", known, NULL)) != -1) switch (letter) {
        case 'c': options.filter = optarg; break;
        case 't': options.threads = atoi(optarg); break;
        case 'r': options.repetitions = atoi(optarg); break;
        case 'g': options.commit = optarg; break;
        case 'o': options.output = optarg; break;
        case 'h': return usage(stdout, 0);
        default: return usage(stderr, 2);
        }
    if (options.threads < 1 || options.repetitions < 3) {
        fprintf(stderr, "fsbench: --threads must be at least 1 and --reps at least 3\n");
        return 2;
    }
    for (int i = 0; optind < argc && i < COMMANDS; i++)
        if (strcmp(argv[optind], commands[i].name) == 0) return commands[i].run(&options);
    return usage(stderr, 2);
}
