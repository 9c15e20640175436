/* record.c - one measurement as a line of JSON. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "bench_gpu.h"

bench_record bench_record_of(const char *name, const char *op, const fs_spec *spec, int64_t n, fs_dtype dtype)
{
    return (bench_record){.name = name,
                          .op = op,
                          .spec = *spec,
                          .n = n,
                          .dtype = dtype,
                          .error = NAN,
                          .prep_ms = -1,
                          .full_ms = -1,
                          .copy_share = -1};
}

/* One field and a comma. */
static void word(const char *name, const char *value) { printf("\"%s\": \"%s\", ", name, value); }
/* JSON has no NaN: it becomes null. */
static void number(const char *name, const char *format, double value)
{
    printf("\"%s\": ", name);
    if (isfinite(value)) printf(format, value);
    else printf("null");
    printf(", ");
}
static void measured(const char *name, double value)
{
    if (value >= 0) number(name, "%.5f", value);
}

void bench_gpu_report(const bench_gpu *g, const bench_record *r)
{
    char backend[256];
    fs_context_describe(g->context[r->precision], backend, sizeof backend);
    printf("{");
    word("case", r->name);
    word("op", r->op);
    word("backend", backend);
    word("family", fs_family_name(r->spec.family));
    printf("\"d\": %" PRId64 ", \"n\": %" PRId64 ", \"k\": %" PRId64 ", \"M\": %" PRId64 ", \"kappa\": %" PRId64
           ", \"s\": %" PRId64 ", \"interleave\": %" PRId64 ", ",
           r->spec.d, r->n, r->spec.k, r->spec.M, r->spec.kappa, r->spec.s, r->spec.interleave);
    word("shuffle", bench_shuffle_name(r->spec.shuffle));
    word("layout", r->batch_major ? "batch" : "row");
    word("dtype", fs_dtype_name(r->dtype));
    word("precision", r->precision == FS_PRECISION_FAST ? "fast" : "full");
    number("floor_ms", "%.5f", r->times.floor_ms);
    number("floor_min", "%.5f", r->times.floor_min);
    number("ms", "%.5f", r->times.ms);
    number("ms_min", "%.5f", r->times.ms_min);
    number("ratio", "%.4f", r->times.ms / r->times.floor_ms);
    measured("copy_share", r->copy_share);
    measured("prep_ms", r->prep_ms);
    measured("full_ms", r->full_ms);
    number("call_us", "%.1f", r->times.call_us);
    number("bytes_per_s", "%.4g", (double)r->bytes / (1e-3 * r->times.ms));
    number("error", "%.3e", r->error);
    word("machine", g->name);
    word("driver", g->driver);
    word("cuda", g->cuda);
    word("commit", g->options->commit);
    word("date", bench_date());
    printf("\"reps\": %d}\n", g->options->repetitions);
    fflush(stdout);
}
