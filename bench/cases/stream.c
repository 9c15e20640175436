/* stream.c - the cases of `fsbench stream`: a matrix of 4 GiB in a file that is in the page cache (or not: `cold`),
 * read in panels and sketched, against reading it alone.
 *
 * Two lower bounds, both by the same threads with pread.  `panels` copies the same panels into memory, which is what a
 * program does that holds a panel at a time.  `small` reads everything into one MiB for each thread, which stays in the
 * cache of its core: no program that needs a whole panel can do that, but nothing reads a file faster.
 *
 * Every measurement is a process of its own, so that its memory and its CPU time are its own too; cases and lower
 * bounds take turns.  On a shared machine, CPU times are more reliable than those of the clock. */
#include <errno.h>
#include <fcntl.h>
#include <flashsketch_files.h>
#include <inttypes.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"

enum { D = 1 << 21, N = 512, HEADER = 128, MIB = 1 << 20, MOST_REPETITIONS = 99 };
static const int64_t BYTES = (int64_t)D * N * 4;

static const struct stream_case {
    const char *name;
    int64_t k, memory;
    int cold; /* the file is evicted from the page cache before each measurement */
} cases[] = {
    {"stream", 1024, (int64_t)64 << 20, 0}, /* what `flashsketch sketch` takes */
    {"stream", 4096, (int64_t)64 << 20, 0},       {"stream-16M", 1024, (int64_t)16 << 20, 0},
    {"stream-192M", 4096, (int64_t)192 << 20, 0}, {"cold", 1024, (int64_t)64 << 20, 1},
};
enum { CASES = sizeof cases / sizeof cases[0] };

typedef struct seen {
    double seconds, cpu; /* on the clock, and of all threads together */
    int64_t peak;        /* bytes of memory, at most */
} seen;

typedef struct job {
    const char *path;
    const struct stream_case *c;
    int threads;
} job;

static void fail(const char *what)
{
    fprintf(stderr, "fsbench: %s\n", what);
    exit(1);
}

/* what is measured ------------------------------------------------------------------------------------------- */

static void sketch(const job *j)
{
    const char *paths[] = {j->path};
    fs_stream_options how = FS_STREAM_INIT;
    fs_context_options where = FS_CONTEXT_INIT;
    fs_spec spec = FS_SPEC_INIT;
    fs_stream *stream = NULL;
    fs_sketch *S = NULL;
    fs_context *ctx = NULL;
    fs_panel p = FS_PANEL_INIT;
    how.memory = j->c->memory;
    how.threads = where.threads = j->threads;
    where.backend = FS_BACKEND_CPU;
    spec.d = D;
    spec.k = j->c->k;
    float *y = malloc(sizeof *y * (size_t)(j->c->k * N));
    fs_matrix Y = fs_row_major(y, j->c->k, N, FS_F32);
    if (!y || fs_stream_create(&stream, paths, 1, &how) || fs_sketch_create(&S, &spec) ||
        fs_context_create(&ctx, &where))
        fail(y ? fs_error_message() : "no memory for Y");
    for (;;) {
        if (fs_stream_next(stream, &p)) fail(fs_error_message());
        if (!p.A.rows) break;
        if (fs_apply(ctx, S, p.row0, 1.0, &p.A, p.row0 ? 1.0 : 0.0, &Y)) fail(fs_error_message());
    }
    fs_stream_destroy(stream);
    fs_context_destroy(ctx);
    fs_sketch_destroy(S);
    free(y);
}

/* Reads the file a MiB at a time, repeatedly into the same `room` bytes. */
static void read_into(const job *j, int64_t room)
{
    const int fd = open(j->path, O_RDONLY);
    char *buffer = malloc((size_t)room);
    int wrong = fd < 0 || !buffer;
    for (int64_t at = 0; at < BYTES && !wrong; at += room)
#pragma omp parallel for num_threads(j->threads) schedule(dynamic)
        for (int64_t i = 0; i < room; i += MIB)
            if (at + i < BYTES && pread(fd, buffer + i, MIB, HEADER + at + i) != MIB) wrong = 1;
    free(buffer);
    close(fd);
    if (wrong) fail("the file cannot be read");
}
static void read_panels(const job *j) { read_into(j, j->c->memory); }
static void read_small(const job *j)
{
    int wrong = 0;
    const int fd = open(j->path, O_RDONLY);
#pragma omp parallel num_threads(j->threads)
    {
        char *mine = malloc(MIB);
#pragma omp for schedule(dynamic)
        for (int64_t at = 0; at < BYTES; at += MIB)
            if (!mine || pread(fd, mine, MIB, HEADER + at) != MIB) wrong = 1;
        free(mine);
    }
    close(fd);
    if (wrong) fail("the file cannot be read");
}

/* Evicts the file, whose pages are written, from the page cache. */
static void forget(const char *path)
{
    const int fd = open(path, O_RDONLY);
    if (fd < 0 || fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED)) fail("the file cannot be forgotten");
    close(fd);
}

/* In a process of its own. */
static seen measure(void (*what)(const job *), const job *j)
{
    int ends[2], status = 0;
    seen s = {0, 0, 0};
    struct rusage used;
    if (j->c->cold) forget(j->path);
    if (pipe(ends)) fail("no pipe");
    const pid_t child = fork();
    if (child < 0) fail("no process");
    if (child == 0) {
        const double start = bench_now();
        what(j);
        const double seconds = bench_now() - start;
        _exit(write(ends[1], &seconds, sizeof seconds) != (ssize_t)sizeof seconds);
    }
    close(ends[1]);
    const int received = read(ends[0], &s.seconds, sizeof s.seconds) == (ssize_t)sizeof s.seconds;
    close(ends[0]);
    if (wait4(child, &status, 0, &used) != child || status || !received) fail("a measurement failed");
    s.cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
            1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    s.peak = (int64_t)used.ru_maxrss << 10;
    return s;
}

/* the file --------------------------------------------------------------------------------------------------- */

static void make_file(const char *path)
{
    enum { CHUNK = 1 << 22 };
    char header[HEADER + 1];
    float *x = malloc(sizeof *x * CHUNK);
    FILE *out = fopen(path, "wb");
    if (!x || !out) fail("the file of the matrix cannot be made; name another with --output");
    memset(header, ' ', sizeof header);
    memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
    header[10 + snprintf(header + 10, HEADER - 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", D,
                         N)] = ' ';
    header[HEADER - 1] = '\n';
    fwrite(header, 1, HEADER, out);
    for (int64_t i = 0; i < BYTES / 4; i += CHUNK) {
        for (int64_t e = 0; e < CHUNK; e++) x[e] = (float)((i + e) * 2654435761u % 65536) / 32768 - 1;
        if (fwrite(x, sizeof *x, CHUNK, out) != CHUNK) fail("the file of the matrix cannot be written");
    }
    free(x);
    if (fclose(out)) fail("the file of the matrix cannot be written");
}

typedef enum way { PANELS, SMALL, SKETCH, WAYS } way;
static void (*const ways[WAYS])(const job *) = {read_panels, read_small, sketch};

static void report(const struct stream_case *c, const bench_options *o, const double *ms, const double *cpu,
                   int64_t peak)
{
    printf("{\"case\": \"%s\", \"op\": \"stream\", \"backend\": \"cpu\", \"d\": %d, \"n\": %d, \"k\": %" PRId64
           ", \"dtype\": \"f32\", \"bytes\": %" PRId64 ", \"memory\": %" PRId64 ", \"threads\": %d, \"floor_ms\": "
           "%.1f, \"small_ms\": %.1f, \"ms\": %.1f, \"ratio\": %.3f, \"small_ratio\": %.3f, ",
           c->name, D, N, c->k, BYTES, c->memory, o->threads, ms[PANELS], ms[SMALL], ms[SKETCH],
           ms[SKETCH] / ms[PANELS], ms[SKETCH] / ms[SMALL]);
    printf("\"floor_cpu_ms\": %.1f, \"small_cpu_ms\": %.1f, \"cpu_ms\": %.1f, \"cpu_ratio\": %.3f, "
           "\"small_cpu_ratio\": %.3f, \"beyond_y\": %" PRId64 ", \"reps\": %d, \"machine\": \"%s\", \"commit\": "
           "\"%s\", \"date\": \"%s\"}\n",
           cpu[PANELS], cpu[SMALL], cpu[SKETCH], cpu[SKETCH] / cpu[PANELS], cpu[SKETCH] / cpu[SMALL],
           peak - c->k * N * 4, o->repetitions, bench_machine(), o->commit, bench_date());
    fflush(stdout);
}

static void run_case(const bench_options *o, const job *j)
{
    static double ms[WAYS][MOST_REPETITIONS], cpu[WAYS][MOST_REPETITIONS];
    const int repetitions = o->repetitions < MOST_REPETITIONS ? o->repetitions : MOST_REPETITIONS;
    double ms_median[WAYS], cpu_median[WAYS];
    int64_t peak = 0;
    for (int r = 0; r < repetitions; r++)
        for (int w = 0; w < WAYS; w++) {
            const seen s = measure(ways[w], j);
            ms[w][r] = 1e3 * s.seconds;
            cpu[w][r] = 1e3 * s.cpu;
            if (w == SKETCH && s.peak > peak) peak = s.peak;
        }
    for (int w = 0; w < WAYS; w++) {
        ms_median[w] = bench_median(ms[w], repetitions);
        cpu_median[w] = bench_median(cpu[w], repetitions);
    }
    report(j->c, o, ms_median, cpu_median, peak);
}

int bench_stream(const bench_options *o)
{
    char path[4096];
    const char *folder = getenv("TMPDIR");
    if (o->output) snprintf(path, sizeof path, "%s", o->output);
    else snprintf(path, sizeof path, "%s/fsbench-stream-%ld.npy", folder ? folder : "/tmp", (long)getpid());
    make_file(path);
    for (int i = 0; i < CASES; i++) {
        const job j = {path, &cases[i], o->threads};
        if (!o->filter || strstr(cases[i].name, o->filter)) run_case(o, &j);
    }
    unlink(path);
    return 0;
}
