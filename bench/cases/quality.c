/* quality.c - the command line of `fsbench quality`. */
#include "bench/quality/quality.h"

#include <getopt.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 64 };

static int usage(FILE *to, int code)
{
    fprintf(
        to,
        "usage: fsbench quality [OPTION]...\n\n"
        "Embedding errors over a dense Gaussian's, on inputs that are hard for a sketch, and tails of |S x|^2 over an\n"
        "SJLT's.  One JSON object a line; what a record already holds is not measured again.\n\n"
        "options:\n"
        "  --record FILE    continue this file (default: lines go to stdout)\n"
        "  --seconds S      no cell begins after so many seconds (default: no limit)\n"
        "  --part LIST      embedding, tails, rank (default: all)\n"
        "  --case LIST      inputs: names, or parts of names (default: all)\n"
        "  --data LIST      files, as KIND:PATH of 'fsbench randnla'; without --case only these\n"
        "  --rung LIST      (default: those that are not marked)\n"
        "  --n LIST         columns, multiples of 16 (default: 32,64,128,256)\n"
        "  --k LIST         rows of S over n (default: 1.1,1.25,1.5,2,4,8,16)\n"
        "  --seeds A-B      (default: 0-39)\n"
        "  --threads N      threads, at most %d (default: OpenMP's)\n"
        "  --commit TEXT    what to write down as the commit\n"
        "  --quiet          no progress bar\n\nrungs (* measured where it is named):",
        MOST_THREADS);
    for (int i = 0; i < quality_rung_count; i++)
        fprintf(to, " %s%s", quality_rungs[i].name, quality_rungs[i].on_request ? "*" : "");
    fprintf(to, "\ninputs, the worst first:");
    for (int i = 0; i < quality_input_count; i++)
        fprintf(to, "%s%s", i % 6 == 0 ? "\n  " : " ", quality_inputs[i].name);
    fprintf(
        to,
        "\n\nfields of a line: cell, what (gaussian, embedding, tail or rank); of embeddings input, group, d, n, k, ratio\n"
        "  (k / n), rungs (all that have this S), family, M, kappa, s, shuffle, leverage (the largest), and for each\n"
        "  of the seeds error, smallest (eigenvalue), residual; of the Gaussian draws, error (the mean), deviation,\n"
        "  p95, smallest (the median), residual, residual_p95; of tails shape, blocks (M of the shape), draws,\n"
        "  deviation, kurtosis, q99, q999 (of |S x|^2 - 1), top (mean of its largest thousandth); of ranks\n"
        "  singular (draws); definition, machine, threads, commit, date (bench/quality/quality.h says what they are)\n");
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

static int append(char *list, size_t bytes, const char *name)
{
    const size_t used = strlen(list);
    return (size_t)snprintf(list + used, bytes - used, "%s%s", used ? "," : "", name) >= bytes - used;
}

static int take_n(quality_options *o, const char *text)
{
    char *end;
    if (o->n_count >= QUALITY_LIST || whole(text, &end, 16, QUALITY_MOST_N, &o->n[o->n_count]) || *end ||
        o->n[o->n_count] % 16)
        return wrong("--n", text, "a multiple of 16 up to 1024");
    for (int i = 0; i < o->n_count; i++)
        if (o->n[i] == o->n[o->n_count]) return 0; /* named twice */
    o->n_count++;
    return 0;
}
static int take_k(quality_options *o, const char *text)
{
    char *end;
    const double ratio = strtod(text, &end);
    if (o->ratio_count >= QUALITY_LIST || end == text || *end || !(ratio > 1 && ratio <= 256))
        return wrong("--k", text, "a multiple of n, above 1 and at most 256");
    for (int i = 0; i < o->ratio_count; i++)
        if (o->ratios[i] == ratio) return 0;
    o->ratios[o->ratio_count++] = ratio;
    return 0;
}
/* A name of all, or every name with this text in it. */
static int take_case(quality_options *o, const char *text)
{
    int same = 0, found = 0;
    for (int i = 0; i < quality_input_count; i++) same |= !strcmp(quality_inputs[i].name, text);
    for (int i = 0; i < quality_input_count; i++) {
        const char *name = quality_inputs[i].name;
        if (same ? strcmp(name, text) != 0 : !strstr(name, text)) continue;
        found = 1;
        if (append(o->cases, sizeof o->cases, name)) return wrong("--case", text, "in a list that is short enough");
    }
    return found ? 0 : wrong("--case", text, "an input; --help names them");
}
static int take_rung(quality_options *o, const char *text)
{
    for (int i = 0; i < quality_rung_count; i++)
        if (!strcmp(text, quality_rungs[i].name))
            return append(o->rungs, sizeof o->rungs, text) ? wrong("--rung", text, "in a list that is short enough")
                                                           : 0;
    return wrong("--rung", text, "a rung; --help names them");
}
static int take_part(quality_options *o, const char *text)
{
    const unsigned part = !strcmp(text, "embedding") ? QUALITY_EMBEDDING
                          : !strcmp(text, "tails")   ? QUALITY_TAILS
                          : !strcmp(text, "rank")    ? QUALITY_RANK
                                                     : 0;
    o->parts |= part;
    return part ? 0 : wrong("--part", text, "embedding, tails or rank");
}
static int take_data(quality_options *o, const char *text)
{
    if (o->common.source_count >= NLA_LIST) return wrong("--data", text, "among the first 64");
    return data_source_parse(text, &o->common.sources[o->common.source_count++]) ? 2 : 0;
}

/* Takes each item of a list separated by commas; modifies the text. */
static int take_list(quality_options *o, char *text, int (*take)(quality_options *, const char *))
{
    for (char *part = strtok(text, ","); part; part = strtok(NULL, ",")) {
        const int code = take(o, part);
        if (code) return code;
    }
    return 0;
}

static int take_seeds(quality_options *o, const char *text)
{
    char *end;
    int64_t first, last;
    if (whole(text, &end, 0, 999999, &first)) return wrong("--seeds", text, "FIRST-LAST");
    last = first;
    if ((*end == '-' && whole(end + 1, &end, first, 999999, &last)) || *end)
        return wrong("--seeds", text, "FIRST-LAST, below 1000000");
    o->common.first_seed = (int)first, o->common.last_seed = (int)last;
    return 0;
}

static void defaults(quality_options *o)
{
    static const int64_t n[] = {32, 64, 128, 256};
    static const double ratios[] = {1.1, 1.25, 1.5, 2, 4, 8, 16};
    if (!o->n_count) o->n_count = 4, memcpy(o->n, n, sizeof n);
    if (!o->ratio_count) o->ratio_count = 7, memcpy(o->ratios, ratios, sizeof ratios);
    if (!o->parts) o->parts = QUALITY_EMBEDDING | QUALITY_TAILS | QUALITY_RANK;
}

int bench_quality(int argc, char **argv)
{
    enum { RECORD = 256, SECONDS, PART, CASE, DATA, RUNG, N, K, SEEDS, THREADS, COMMIT, QUIET };
    static const struct option known[] = {{"record", required_argument, NULL, RECORD},
                                          {"seconds", required_argument, NULL, SECONDS},
                                          {"part", required_argument, NULL, PART},
                                          {"case", required_argument, NULL, CASE},
                                          {"data", required_argument, NULL, DATA},
                                          {"rung", required_argument, NULL, RUNG},
                                          {"n", required_argument, NULL, N},
                                          {"k", required_argument, NULL, K},
                                          {"seeds", required_argument, NULL, SEEDS},
                                          {"threads", required_argument, NULL, THREADS},
                                          {"commit", required_argument, NULL, COMMIT},
                                          {"quiet", no_argument, NULL, QUIET},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    quality_options *o = calloc(1, sizeof *o);
    if (!o) return 1;
    o->common = (nla_options){.commit = "unknown", .threads = omp_get_max_threads(), .last_seed = 39};
    if (o->common.threads > MOST_THREADS) o->common.threads = MOST_THREADS;
    o->seconds = INFINITY;
    int code = 0, letter;
    while (!code && (letter = getopt_long(argc, argv, "h", known, NULL)) != -1) switch (letter) {
        case RECORD: o->common.record = optarg; break;
        case SECONDS: o->seconds = atof(optarg); break;
        case PART: code = take_list(o, optarg, take_part); break;
        case CASE: code = take_list(o, optarg, take_case); break;
        case DATA: code = take_list(o, optarg, take_data); break;
        case RUNG: code = take_list(o, optarg, take_rung); break;
        case N: code = take_list(o, optarg, take_n); break;
        case K: code = take_list(o, optarg, take_k); break;
        case SEEDS: code = take_seeds(o, optarg); break;
        case THREADS: o->common.threads = atoi(optarg); break;
        case COMMIT: o->common.commit = optarg; break;
        case QUIET: o->common.quiet = 1; break;
        case 'h': free(o); return usage(stdout, 0);
        default: code = usage(stderr, 2);
        }
    if (!code && optind < argc) code = wrong("the argument", argv[optind], "expected; options begin with --");
    if (!code && (o->common.threads < 1 || o->common.threads > MOST_THREADS || !(o->seconds > 0))) {
        fprintf(stderr, "fsbench: --threads must be from 1 to %d, --seconds above 0\n", MOST_THREADS);
        code = 2;
    }
    if (!code) {
        defaults(o);
        omp_set_num_threads(o->common.threads);
        code = quality_grid(o);
    }
    free(o);
    return code;
}
