/* bench.c - the clock, the lower bound and the provenance of a measurement. */
#include "bench.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int bench_fs_failed(fs_result result, const char *doing)
{
    if (result == FS_OK) return 0;
    fprintf(stderr, "fsbench: %s: %s (%s)\n", doing, fs_error_message(), fs_result_name(result));
    return 1;
}

double bench_now(void) { return omp_get_wtime(); }

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
double bench_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
    return values[count / 2];
}

void bench_fill(float *x, int64_t count, uint64_t seed)
{
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i++) {
        uint64_t z = (uint64_t)i * 0x9E3779B97F4A7C15u + seed;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        x[i] = (float)(z >> 40) * 0x1p-23f - 1.0f;
    }
}

typedef float wide __attribute__((vector_size(64), aligned(4), may_alias));

float bench_floor(const void *A, int64_t bytes, void *Y, int64_t out, int threads)
{
    enum { RUN = 4 };
    const wide *x = A;
    const int64_t runs = bytes / (int64_t)sizeof *x / RUN;
    float total = 0;
#pragma omp parallel num_threads(threads) reduction(+ : total)
    {
        wide sum[RUN];
        memset(sum, 0, sizeof sum);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < runs; i++)
            for (int v = 0; v < RUN; v++) sum[v] += x[i * RUN + v];
        for (int v = 0; v < RUN; v++)
            for (int lane = 0; lane < 16; lane++) total += sum[v][lane];
#pragma omp for schedule(static)
        for (int64_t i = 0; i < out / (int64_t)sizeof(wide); i++) ((wide *)Y)[i] = sum[i % RUN];
    }
    return total;
}

const char *bench_machine(void)
{
    static char name[128] = "unknown processor";
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "model name : %127[^\n]", name) == 1) break;
    if (f) fclose(f);
    return name;
}

const char *bench_date(void)
{
    static char text[32];
    const time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(text, sizeof text, "%Y-%m-%d", &utc);
    return text;
}
