/* fsbench.c - the one benchmark program: `fsbench cpu` times the CPU backend, one JSON object a line.
 *
 * A time means nothing alone on a shared machine: every case is measured alternately with the floor of its shape (reading
 * A and writing k n values with the same threads) and reported as a ratio to it. */
#include <getopt.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static const struct command {
    const char *name, *what;
    int (*run)(const bench_options *options);
} commands[] = {
    {"cpu", "the CPU backend: every family, layout and element type", bench_cpu},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static int usage(FILE *to, int code)
{
    fprintf(to, "usage: fsbench COMMAND [--case TEXT] [--threads N] [--reps N] [--commit TEXT]\n\ncommands:\n");
    for (int i = 0; i < COMMANDS; i++) fprintf(to, "  %-6s %s\n", commands[i].name, commands[i].what);
    fprintf(to,
            "\noptions:\n"
            "  --case TEXT    only cases whose name contains TEXT\n"
            "  --threads N    threads to use (default: OpenMP's)\n"
            "  --reps N       measurements of each case, at least 3; medians are reported (default: 15)\n"
            "  --commit TEXT  what to write down as the commit\n"
            "\nfields of a line: case, op, backend, family, d, n, k, M, kappa, s, shuffle, layout, dtype, threads,\n"
            "  floor_ms (reading A and writing k n values), ms (median), ratio (ms / floor_ms), error (relative, against\n"
            "  a reference in double on 64 columns), machine, commit, date\n");
    return code;
}

int main(int argc, char **argv)
{
    static const struct option known[] = {{"case", required_argument, NULL, 'c'},   {"threads", required_argument, NULL, 't'},
                                          {"reps", required_argument, NULL, 'r'},   {"commit", required_argument, NULL, 'g'},
                                          {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
    bench_options options = {NULL, "unknown", omp_get_max_threads(), 15};
    int letter;
    while ((letter = getopt_long(argc, argv, "h", known, NULL)) != -1) switch (letter) {
        case 'c': options.filter = optarg; break;
        case 't': options.threads = atoi(optarg); break;
        case 'r': options.repetitions = atoi(optarg); break;
        case 'g': options.commit = optarg; break;
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
