/* grass.c - the command line of `fsbench grass`. */
#include "bench/grass/grass.h"

#include <getopt.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

static int usage(FILE *to, int code)
{
    fprintf(
        to,
        "usage: fsbench grass [OPTION]...\n\n"
        "How long a batch of gradients takes to become features, as in GraSS: masked (a random mask keeps 4 k\n"
        "coordinates, one by one or in runs of eight) and of all coordinates, by this library's sketches and by\n"
        "what people use instead; in case layers the library gets the inputs and slopes of a perceptron's layers,\n"
        "of which its gradients are products, and the others get the gradients.  One JSON object a line; what a\n"
        "record already holds is not measured again.\n\n"
        "options:\n"
        "  --cuda           on the first GPU (default: on the CPU)\n"
        "  --record FILE    continue this file (default: lines go to stdout)\n"
        "  --case LIST      masked, runs, layers, all (default: all four)\n"
        "  --batch NxP      gradients of a batch and their coordinates (default: 512x109386)\n"
        "  --layers LIST    widths of the perceptron of case layers, from its input to its output, whose parameters\n"
        "                   are the coordinates (default: 784,128,64,10; for others there is no case layers)\n"
        "  --k LIST         values of a feature (default: 1024,2048,4096)\n"
        "  --method LIST    names (default: all)\n"
        "  --time SECONDS   begin no cell after so many\n"
        "  --threads N      threads (default: OpenMP's)\n"
        "  --reps N         measurements of a time, at least 3 (default: 15)\n"
        "  --commit TEXT    what to write down as the commit\n"
        "  --quiet          no progress bar\n\n"
        "methods:");
    for (int i = 0; i < grass_method_count; i++)
        fprintf(to, "%s%s", i && i % 8 == 0 ? "\n         " : " ", grass_methods[i].name);
    fprintf(to,
            "\n         (sjlt-sparse-rows, srht-passes and gaussian-tf32 on a GPU only)\n\n"
            "fields of a line: cell, case, op, method, by (library or peer), from (gradients or layers), family, p,\n"
            "  mask (coordinates kept; 0: all), run (neighbours that it keeps together), d (columns of S), n, k, M,\n"
            "  kappa, s, shuffle, interleave, layout, dtype, precision, floor_ms (reading the 32-byte sectors that\n"
            "  hold what is kept, or all inputs and slopes, writing n k values), ms (median of the whole, S made\n"
            "  beforehand), ms_min, ratio (ms / floor_ms), of peers gather_ms, transpose_ms (both of them) and\n"
            "  product_ms alone and prep_ms (making S), call_us, error (relative, against the CPU in double on 8\n"
            "  samples), backend, machine, driver, cuda, threads, reps, commit, date\n");
    return code;
}

static int wrong(const char *option, const char *text, const char *should)
{
    fprintf(stderr, "fsbench: %s '%s' is not %s\n", option, text, should);
    return 2;
}

static int take_batch(grass_options *o, const char *text)
{
    enum { MOST = 1 << 17 }; /* the limit of a grid of thread blocks */
    char *end;
    o->n = strtoll(text, &end, 10);
    if (*end != 'x' || o->n < 1 || o->n > MOST) return wrong("--batch", text, "GRADIENTSxCOORDINATES, 131072 at most");
    o->p = strtoll(end + 1, &end, 10);
    return *end || o->p < 1 || o->p > INT64_C(1) << 32 ? wrong("--batch", text, "GRADIENTSxCOORDINATES") : 0;
}
static int take_k(grass_options *o, const char *text)
{
    char *end;
    const int64_t k = strtoll(text, &end, 10);
    if (*end || k < 1 || k > INT32_MAX) return wrong("--k", text, "an integer from 1 on");
    if (o->common.k_count == NLA_LIST) return wrong("--k", text, "among the first 64");
    o->common.k[o->common.k_count++] = k;
    return 0;
}
static int take_case(grass_options *o, const char *text)
{
    const int which = !strcmp(text, "masked")   ? GRASS_MASKED
                      : !strcmp(text, "runs")   ? GRASS_RUNS
                      : !strcmp(text, "layers") ? GRASS_LAYERS
                      : !strcmp(text, "all")    ? GRASS_ALL
                                                : 0;
    o->cases |= which;
    return which ? 0 : wrong("--case", text, "masked, runs, layers or all");
}
static int take_layer(grass_options *o, const char *text)
{
    enum { MOST = 1 << 20 };
    char *end;
    const int64_t width = strtoll(text, &end, 10);
    if (*end || width < 1 || width > MOST) return wrong("--layers", text, "a width, 1048576 at most");
    if (o->layers.widths == GRASS_WIDTHS) return wrong("--layers", text, "among the first 16");
    o->layers.width[o->layers.widths++] = width;
    return 0;
}
static int take_method(grass_options *o, const char *text)
{
    char *all = o->common.methods;
    for (int i = 0; i < grass_method_count; i++) {
        if (strcmp(text, grass_methods[i].name)) continue;
        const size_t used = strlen(all), room = sizeof o->common.methods - used;
        return (size_t)snprintf(all + used, room, "%s%s", used ? "," : "", text) < room
                   ? 0
                   : wrong("--method", text, "in a list that is short enough");
    }
    return wrong("--method", text, "a method; --help names them");
}

/* Takes each item of a list separated by commas; modifies the text. */
static int take_list(grass_options *o, char *text, int (*take)(grass_options *, const char *))
{
    int code = 0;
    for (char *part = strtok(text, ","); part && !code; part = strtok(NULL, ",")) code = take(o, part);
    return code;
}

static int take_time(grass_options *o, const char *text)
{
    char *end;
    o->seconds = strtod(text, &end);
    return end == text || *end || !(o->seconds > 0) ? wrong("--time", text, "a number of seconds") : 0;
}

/* Defaults of options that were not given; fails where they are inconsistent. */
static int complete(grass_options *o)
{
    static const int64_t sizes[] = {1024, 2048, 4096};
    static const grass_layers layers = {4, {784, 128, 64, 10}};
    nla_options *common = &o->common;
    const int asked = o->layers.widths > 0 || o->cases & GRASS_LAYERS;
    if (!o->layers.widths) o->layers = layers;
    if (asked && grass_layers_parameters(&o->layers) != o->p) {
        fprintf(stderr, "fsbench: the layers have %lld parameters, but a gradient has %lld coordinates\n",
                (long long)grass_layers_parameters(&o->layers), (long long)o->p);
        return 2;
    }
    if (!o->cases) o->cases = GRASS_MASKED | GRASS_RUNS | GRASS_LAYERS | GRASS_ALL;
    if (!common->k_count) common->k_count = 3, memcpy(common->k, sizes, sizeof sizes);
    if (common->threads < 1 || common->repetitions < 3) {
        fprintf(stderr, "fsbench: --threads must be at least 1 and --reps at least 3\n");
        return 2;
    }
#ifndef FS_BENCH_CUDA
    if (common->cuda) {
        fprintf(stderr, "fsbench: this build has no CUDA; configure it where nvcc is installed\n");
        return 2;
    }
#endif
    for (int i = 0; i < common->k_count; i++)
        if (common->k[i] > o->p) {
            fprintf(stderr, "fsbench: k = %lld, but a gradient has %lld coordinates only\n", (long long)common->k[i],
                    (long long)o->p);
            return 2;
        }
    return 0;
}

int bench_grass(int argc, char **argv)
{
    enum { CUDA = 256, RECORD, CASE, BATCH, LAYERS, K, METHOD, TIME, THREADS, REPS, COMMIT, QUIET };
    static const struct option known[] = {{"cuda", no_argument, NULL, CUDA},
                                          {"record", required_argument, NULL, RECORD},
                                          {"case", required_argument, NULL, CASE},
                                          {"batch", required_argument, NULL, BATCH},
                                          {"layers", required_argument, NULL, LAYERS},
                                          {"k", required_argument, NULL, K},
                                          {"method", required_argument, NULL, METHOD},
                                          {"time", required_argument, NULL, TIME},
                                          {"threads", required_argument, NULL, THREADS},
                                          {"reps", required_argument, NULL, REPS},
                                          {"commit", required_argument, NULL, COMMIT},
                                          {"quiet", no_argument, NULL, QUIET},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    grass_options *o = calloc(1, sizeof *o);
    if (!o) return 1;
    nla_options *common = &o->common;
    common->commit = "unknown", common->threads = omp_get_max_threads(), common->repetitions = 15;
    o->n = 512, o->p = 109386;
    int code = 0, letter;
    while (!code && (letter = getopt_long(argc, argv, "h", known, NULL)) != -1) switch (letter) {
        case CUDA: common->cuda = 1; break;
        case RECORD: common->record = optarg; break;
        case CASE: code = take_list(o, optarg, take_case); break;
        case BATCH: code = take_batch(o, optarg); break;
        case LAYERS: code = take_list(o, optarg, take_layer); break;
        case K: code = take_list(o, optarg, take_k); break;
        case METHOD: code = take_list(o, optarg, take_method); break;
        case TIME: code = take_time(o, optarg); break;
        case THREADS: common->threads = atoi(optarg); break;
        case REPS: common->repetitions = atoi(optarg); break;
        case COMMIT: common->commit = optarg; break;
        case QUIET: common->quiet = 1; break;
        case 'h': free(o); return usage(stdout, 0);
        default: code = usage(stderr, 2);
        }
    if (!code && optind < argc) code = wrong("the argument", argv[optind], "expected; options begin with --");
    if (!code) code = complete(o);
    if (!code) {
        omp_set_num_threads(common->threads);
        code = grass_grid(o);
    }
    free(o);
    return code;
}
