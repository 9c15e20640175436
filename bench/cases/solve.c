/* solve.c - the command line of `fsbench solve`. */
#include "bench/solve/solve.h"

#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

static int usage(FILE *to, int code)
{
    fprintf(
        to,
        "usage: fsbench solve [OPTION]...\n\n"
        "Least squares, QR and singular values to full accuracy: times and errors of this library's solvers and of\n"
        "LAPACK's (by OpenBLAS; with --cuda cuSOLVER's), in turns.  One JSON object a line; what a record already\n"
        "holds is not measured again.\n\n"
        "options:\n"
        "  --cuda           on the first GPU (default: on the CPU)\n"
        "  --record FILE    continue this file (default: lines go to stdout)\n"
        "  --shape LIST     DxN between commas (default: 200000x200,100000x500; with --cuda 65536x1024,262144x512,\n"
        "                   1048576x256,4194304x64)\n"
        "  --task LIST      lstsq, qr, pivoted, svd (default: all)\n"
        "  --dtype LIST     f32, f64 (default: both)\n"
        "  --cond LIST      condition numbers (default: lstsq f32 1e1,1e3,1e5, f64 1e1,1e6,1e10,1e14; others f32 1e6,\n"
        "                   f64 1e14, svd f64 1e12)\n"
        "  --method LIST    (default: all)\n"
        "  --threads N      threads (default: OpenMP's)\n"
        "  --reps N         turns of a case, 3 to 64 (default: 15)\n"
        "  --seconds S      no turn begins after so many seconds of a case, but 3 are taken (default: 15)\n"
        "  --commit TEXT    what to write down as the commit\n"
        "  --quiet          no progress bar\n\nmethods:");
    for (int i = 0; i < solve_method_count; i++) {
        int seen = 0;
        for (int j = 0; j < i; j++) seen |= !strcmp(solve_methods[i].name, solve_methods[j].name);
        if (!seen) fprintf(to, " %s", solve_methods[i].name);
    }
    fprintf(
        to,
        "\n\nfields of a line: cell, task, method, by (library or peer), d, n, dtype, cond, outcome (solved, or breaks\n"
        "  down), read_ms (reading A), ms and ms_min (median and least), reads (ms / read_ms); lstsq: backward,\n"
        "  forward, excess; qr, pivoted, svd: orthogonality, product, values; of this library's also k, iterations,\n"
        "  reads_made, note; backend, machine, driver, cuda, threads, reps, commit, date (bench/solve/solve.h says\n"
        "  what the errors are)\n");
    return code;
}

static int wrong(const char *option, const char *text, const char *should)
{
    fprintf(stderr, "fsbench: %s '%s' is not %s\n", option, text, should);
    return 2;
}

static int take_shape(solve_options *o, const char *text)
{
    int64_t *shape = o->common.shapes[o->common.shape_count];
    int used = 0;
    if (sscanf(text, "%" SCNd64 "x%" SCNd64 "%n", &shape[0], &shape[1], &used) != 2 || text[used] || shape[1] < 1 ||
        shape[0] < shape[1] || shape[1] > 1 << 15 || shape[0] > INT32_MAX / 64)
        return wrong("--shape", text, "ROWSxCOLUMNS, at least as many rows as columns, at most 2^25 of them");
    o->common.shape_count++;
    return 0;
}
static int take_condition(solve_options *o, const char *text)
{
    char *end;
    double *value = &o->conditions[o->condition_count];
    *value = strtod(text, &end);
    if (end == text || *end || !(*value >= 1) || !isfinite(*value))
        return wrong("--cond", text, "a condition number, at least 1");
    o->condition_count++;
    return 0;
}
static int take_task(solve_options *o, const char *text)
{
    for (int i = 0; i < SOLVE_TASKS; i++)
        if (!strcmp(text, solve_task_names[i])) return o->tasks |= 1u << i, 0;
    return wrong("--task", text, "lstsq, qr, pivoted or svd");
}
static int take_type(solve_options *o, const char *text)
{
    const int type = !strcmp(text, "f32") ? 1 : !strcmp(text, "f64") ? 2 : 0;
    o->types |= (unsigned)type;
    return type ? 0 : wrong("--dtype", text, "f32 or f64");
}
static int take_method(solve_options *o, const char *text)
{
    char *list = o->common.methods;
    const size_t used = strlen(list), room = sizeof o->common.methods - used;
    int known = 0;
    for (int i = 0; i < solve_method_count; i++) known |= !strcmp(text, solve_methods[i].name);
    if (!known) return wrong("--method", text, "a method; --help names them");
    const int more = snprintf(list + used, room, "%s%s", used ? "," : "", text);
    return (size_t)more < room ? 0 : wrong("--method", text, "in a list that is short enough");
}

/* Takes each item of a list separated by commas; modifies the text. */
static int take_list(solve_options *o, const char *option, char *text, int (*take)(solve_options *, const char *),
                     const int *count)
{
    for (char *part = strtok(text, ","); part; part = strtok(NULL, ",")) {
        if (count && *count >= NLA_LIST) return wrong(option, part, "among the first 64");
        const int code = take(o, part);
        if (code) return code;
    }
    return 0;
}

static void defaults(solve_options *o)
{
    static const int64_t cpu[][2] = {{200000, 200}, {100000, 500}};
    static const int64_t gpu[][2] = {{65536, 1024}, {262144, 512}, {1048576, 256}, {4194304, 64}};
    if (!o->tasks) o->tasks = (1u << SOLVE_TASKS) - 1;
    if (!o->types) o->types = 3;
    if (o->common.shape_count) return;
    o->common.shape_count = o->common.cuda ? 4 : 2;
    memcpy(o->common.shapes, o->common.cuda ? gpu : cpu, sizeof *o->common.shapes * (size_t)o->common.shape_count);
}

static int check(const solve_options *o)
{
    if (o->common.threads < 1 || o->common.repetitions < SOLVE_LEAST_TURNS ||
        o->common.repetitions > SOLVE_MOST_TURNS || !(o->seconds > 0)) {
        fprintf(stderr, "fsbench: --threads must be at least 1, --reps from %d to %d, --seconds above 0\n",
                SOLVE_LEAST_TURNS, SOLVE_MOST_TURNS);
        return 2;
    }
#ifndef FS_BENCH_CUDA
    if (o->common.cuda) {
        fprintf(stderr, "fsbench: this build has no CUDA; configure it where nvcc is installed\n");
        return 2;
    }
#endif
    return 0;
}

int bench_solve(int argc, char **argv)
{
    enum { CUDA = 256, RECORD, SHAPE, TASK, DTYPE, COND, METHOD, THREADS, REPS, SECONDS, COMMIT, QUIET };
    static const struct option known[] = {{"cuda", no_argument, NULL, CUDA},
                                          {"record", required_argument, NULL, RECORD},
                                          {"shape", required_argument, NULL, SHAPE},
                                          {"task", required_argument, NULL, TASK},
                                          {"dtype", required_argument, NULL, DTYPE},
                                          {"cond", required_argument, NULL, COND},
                                          {"method", required_argument, NULL, METHOD},
                                          {"threads", required_argument, NULL, THREADS},
                                          {"reps", required_argument, NULL, REPS},
                                          {"seconds", required_argument, NULL, SECONDS},
                                          {"commit", required_argument, NULL, COMMIT},
                                          {"quiet", no_argument, NULL, QUIET},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    solve_options *o = calloc(1, sizeof *o);
    if (!o) return 1;
    o->common = (nla_options){.commit = "unknown", .threads = omp_get_max_threads(), .repetitions = 15};
    o->seconds = 15;
    int code = 0, letter;
    while (!code && (letter = getopt_long(argc, argv, "h", known, NULL)) != -1) switch (letter) {
        case CUDA: o->common.cuda = 1; break;
        case RECORD: o->common.record = optarg; break;
        case SHAPE: code = take_list(o, "--shape", optarg, take_shape, &o->common.shape_count); break;
        case TASK: code = take_list(o, "--task", optarg, take_task, NULL); break;
        case DTYPE: code = take_list(o, "--dtype", optarg, take_type, NULL); break;
        case COND: code = take_list(o, "--cond", optarg, take_condition, &o->condition_count); break;
        case METHOD: code = take_list(o, "--method", optarg, take_method, NULL); break;
        case THREADS: o->common.threads = atoi(optarg); break;
        case REPS: o->common.repetitions = atoi(optarg); break;
        case SECONDS: o->seconds = atof(optarg); break;
        case COMMIT: o->common.commit = optarg; break;
        case QUIET: o->common.quiet = 1; break;
        case 'h': free(o); return usage(stdout, 0);
        default: code = usage(stderr, 2);
        }
    if (!code && optind < argc) code = wrong("the argument", argv[optind], "expected; options begin with --");
    if (!code) code = check(o);
    if (!code) {
        defaults(o);
        omp_set_num_threads(o->common.threads);
        code = solve_grid(o);
    }
    free(o);
    return code;
}
