/* randnla.c - the command line of `fsbench randnla`. */
#include "bench/randnla/randnla.h"

#include <getopt.h>
#include <inttypes.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

static int usage(FILE *to, int code)
{
    fprintf(to,
            "usage: fsbench randnla [OPTION]...\n\n"
            "The paper's four tasks over data, sketch sizes, methods and seeds.  One JSON object a line; what a\n"
            "record already holds is not measured again.\n\n"
            "options:\n"
            "  --cuda           on the first GPU (default: on the CPU)\n"
            "  --record FILE    continue this file (default: lines go to stdout)\n"
            "  --data LIST      between commas: recipes, or KIND:PATH (default: all recipes)\n"
            "  --shape LIST     DxN between commas (default: 8192x128; with --cuda 16384x1024,65536x1024,131072x512,\n"
            "                   262144x512); whole files come in their own shape\n"
            "  --k LIST         (default: 64,256,512,1024,2048,4096)\n"
            "  --method LIST    names or labels (default: all)\n"
            "  --task LIST      sketch, gram, ose, ridge, solve (default: all)\n"
            "  --seeds A-B      (default: 0-9)\n"
            "  --threads N      threads (default: OpenMP's)\n"
            "  --reps N         measurements of a time, at least 3 (default: 15)\n"
            "  --commit TEXT    what to write down as the commit\n"
            "  --quiet          no progress bar\n\n"
            "data:   ");
    for (int i = 0; i < RECIPES; i++) fprintf(to, " %s", data_recipe_names[i]);
    fprintf(to, "\n         spal:X.mtx gpt2:X.safetensors gpt2-full:X.safetensors qwen2:X.safetensors fashion[:X]\n"
                "         file:X\nmethods:");
    for (int i = 0; i < nla_method_count; i++) {
        char label[64];
        nla_method_label(&nla_methods[i], label, sizeof label);
        fprintf(to, "%s%s", i && i % 6 == 0 ? "\n         " : " ", label);
    }
    fprintf(to,
            " (srht-passes on a GPU only)\n\n"
            "fields of a line: cell, what (time or error), task, method, family, d, n, k, M, kappa, s, shuffle,\n"
            "  solver (ridge, solve), data; of times floor_ms, ms (between CUDA events), wall_ms, prep_ms (making S),\n"
            "  full_ms (making it and multiplying), call_us; of errors data_seed, seeds, error (one for each seed),\n"
            "  noisy (ridge, solve: with a noisy b), best_noisy (of the exact solution); backend, machine, driver,\n"
            "  cuda, threads, reps, commit, date\n");
    return code;
}

static int wrong(const char *option, const char *text, const char *should)
{
    fprintf(stderr, "fsbench: %s '%s' is not %s\n", option, text, should);
    return 2;
}

/* Reads an integer from low to high; *end is the text behind it. */
static int whole(const char *text, char **end, int64_t low, int64_t high, int64_t *out)
{
    *out = strtoll(text, end, 10);
    return *end == text || *out < low || *out > high;
}

static int take_shape(nla_options *o, const char *text)
{
    char *end;
    int64_t *shape = o->shapes[o->shape_count];
    if (whole(text, &end, 4, INT64_C(1) << 40, &shape[0]) || *end != 'x' ||
        whole(end + 1, &end, 1, 1 << 16, &shape[1]) || *end || shape[0] < shape[1])
        return wrong("--shape", text, "ROWSxCOLUMNS, at least as many rows as columns");
    o->shape_count++;
    return 0;
}
static int take_k(nla_options *o, const char *text)
{
    char *end;
    if (whole(text, &end, 1, INT32_MAX, &o->k[o->k_count]) || *end) return wrong("--k", text, "an integer from 1 on");
    o->k_count++;
    return 0;
}
static int take_data(nla_options *o, const char *text)
{
    return data_source_parse(text, &o->sources[o->source_count++]) ? 2 : 0;
}
static int take_task(nla_options *o, const char *text)
{
    for (int i = 0; i < TASKS; i++)
        if (!strcmp(text, nla_task_names[i])) return o->tasks |= 1u << i, 0;
    return wrong("--task", text, "sketch, gram, ose, ridge or solve");
}
static int take_method(nla_options *o, const char *text)
{
    for (int i = 0; i < nla_method_count; i++) {
        char label[64];
        nla_method_label(&nla_methods[i], label, sizeof label);
        if (strcmp(text, nla_methods[i].name) && strcmp(text, label)) continue;
        const size_t used = strlen(o->methods);
        const int more = snprintf(o->methods + used, sizeof o->methods - used, "%s%s", used ? "," : "", text);
        return (size_t)more < sizeof o->methods - used ? 0 : wrong("--method", text, "in a list that is short enough");
    }
    return wrong("--method", text, "a method; --help names them");
}

/* Takes each item of a list separated by commas; modifies the text. */
static int take_list(nla_options *o, const char *option, char *text, int (*take)(nla_options *, const char *),
                     int *count)
{
    for (char *part = strtok(text, ","); part; part = strtok(NULL, ",")) {
        if (count && *count >= NLA_LIST) return wrong(option, part, "among the first 64");
        const int code = take(o, part);
        if (code) return code;
    }
    return 0;
}

static int take_seeds(nla_options *o, const char *text)
{
    char *end;
    int64_t first, last;
    if (whole(text, &end, 0, 1 << 20, &first)) return wrong("--seeds", text, "FIRST-LAST");
    last = first;
    if ((*end == '-' && whole(end + 1, &end, first, first + NLA_SEEDS - 1, &last)) || *end)
        return wrong("--seeds", text, "FIRST-LAST, 64 seeds at most");
    o->first_seed = (int)first, o->last_seed = (int)last;
    return 0;
}

static void defaults(nla_options *o)
{
    static const int64_t small[][2] = {{8192, 128}};
    static const int64_t large[][2] = {{16384, 1024}, {65536, 1024}, {131072, 512}, {262144, 512}};
    static const int64_t sizes[] = {64, 256, 512, 1024, 2048, 4096};
    if (!o->tasks) o->tasks = (1u << TASKS) - 1;
    if (!o->shape_count) {
        o->shape_count = o->cuda ? 4 : 1;
        memcpy(o->shapes, o->cuda ? large : small, sizeof *o->shapes * (size_t)o->shape_count);
    }
    if (!o->k_count) o->k_count = 6, memcpy(o->k, sizes, sizeof sizes);
    if (!o->source_count)
        for (int i = 0; i < RECIPES; i++) take_data(o, data_recipe_names[i]);
}

int bench_randnla(int argc, char **argv)
{
    enum { CUDA = 256, RECORD, DATA, SHAPE, K, METHOD, TASK, SEEDS, THREADS, REPS, COMMIT, QUIET };
    static const struct option known[] = {{"cuda", no_argument, NULL, CUDA},
                                          {"record", required_argument, NULL, RECORD},
                                          {"data", required_argument, NULL, DATA},
                                          {"shape", required_argument, NULL, SHAPE},
                                          {"k", required_argument, NULL, K},
                                          {"method", required_argument, NULL, METHOD},
                                          {"task", required_argument, NULL, TASK},
                                          {"seeds", required_argument, NULL, SEEDS},
                                          {"threads", required_argument, NULL, THREADS},
                                          {"reps", required_argument, NULL, REPS},
                                          {"commit", required_argument, NULL, COMMIT},
                                          {"quiet", no_argument, NULL, QUIET},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    nla_options *o = calloc(1, sizeof *o);
    if (!o) return 1;
    *o = (nla_options){.commit = "unknown", .threads = omp_get_max_threads(), .repetitions = 15, .last_seed = 9};
    int code = 0, letter;
    while (!code && (letter = getopt_long(argc, argv, "h", known, NULL)) != -1) switch (letter) {
        case CUDA: o->cuda = 1; break;
        case RECORD: o->record = optarg; break;
        case DATA: code = take_list(o, "--data", optarg, take_data, &o->source_count); break;
        case SHAPE: code = take_list(o, "--shape", optarg, take_shape, &o->shape_count); break;
        case K: code = take_list(o, "--k", optarg, take_k, &o->k_count); break;
        case METHOD: code = take_list(o, "--method", optarg, take_method, NULL); break;
        case TASK: code = take_list(o, "--task", optarg, take_task, NULL); break;
        case SEEDS: code = take_seeds(o, optarg); break;
        case THREADS: o->threads = atoi(optarg); break;
        case REPS: o->repetitions = atoi(optarg); break;
        case COMMIT: o->commit = optarg; break;
        case QUIET: o->quiet = 1; break;
        case 'h': free(o); return usage(stdout, 0);
        default: code = usage(stderr, 2);
        }
    if (!code && optind < argc) code = wrong("the argument", argv[optind], "expected; options begin with --");
    if (!code && (o->threads < 1 || o->repetitions < 3)) {
        fprintf(stderr, "fsbench: --threads must be at least 1 and --reps at least 3\n");
        code = 2;
    }
#ifndef FS_BENCH_CUDA
    if (!code && o->cuda) {
        fprintf(stderr, "fsbench: this build has no CUDA; configure it where nvcc is installed\n");
        code = 2;
    }
#endif
    if (!code) {
        defaults(o);
        omp_set_num_threads(o->threads);
        code = nla_grid(o);
    }
    free(o);
    return code;
}
