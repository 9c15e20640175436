/* older.c - programs that were compiled with an older or a newer header: their structs are shorter or longer.
 *
 * Every struct with a size is tried at lengths from its size field alone to twice its own: a shorter one is read
 * as if the missing fields had their defaults, or filled as far as it goes; a longer one is accepted if its unknown tail
 * is 0.  Structs stand at the end of a heap block of their length, so that sanitizers see every access past it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flashsketch_attribution.h"
#include "flashsketch_files.h"
#include "flashsketch_tasks.h"
#include "tests/support/problems.h"
#include "tests/support/support.h"

enum { D = 60, K = 24, N = 5, FILLER = 0x55 };

/* What one struct is tried with. */
typedef struct subject {
    const char *name;
    const void *start; /* from its INIT macro, with the fields set that a call needs */
    size_t known;      /* its size here */
    size_t least;      /* the bytes without which a call cannot succeed: the end of the last field that it needs */
    int is_output;
    fs_result (*call)(void *given);
} subject;

/* A copy of the struct in `size` bytes: as much of *start as fits, then zeros. */
static unsigned char *copy_of(const subject *s, size_t size)
{
    unsigned char *copy = calloc(1, size);
    assert_non_null(copy);
    memcpy(copy, s->start, size < s->known ? size : s->known);
    memcpy(copy, &size, sizeof size);
    return copy;
}

static void try_shorter(const subject *s)
{
    for (size_t size = sizeof(size_t); size < s->known; size += 8) { /* where fields end */
        unsigned char *given = copy_of(s, size);
        if (s->is_output) memset(given + sizeof size, FILLER, size - sizeof size);
        const fs_result result = s->call(given);
        if (size >= s->least && result != FS_OK)
            fail_msg("%s of %zu bytes: %s: %s", s->name, size, fs_result_name(result), fs_error_message());
        if (size < s->least && result != FS_EINVAL)
            fail_msg("%s of %zu bytes lacks a field that it needs: %s", s->name, size, fs_result_name(result));
        size_t kept;
        memcpy(&kept, given, sizeof kept);
        assert_int_equal(kept, size);
        free(given);
    }
}

static void try_longer(const subject *s)
{
    for (size_t size = s->known; size <= 2 * s->known; size += sizeof(int)) {
        unsigned char *given = copy_of(s, size);
        const fs_result result = s->call(given);
        if (result != FS_OK)
            fail_msg("%s of %zu bytes: %s: %s", s->name, size, fs_result_name(result), fs_error_message());
        for (size_t i = s->known; i < size; i++) assert_int_equal(given[i], 0);
        free(given);
        if (size == s->known) continue;
        given = copy_of(s, size);
        given[size - 1] = 1;
        char bytes[32];
        snprintf(bytes, sizeof bytes, "%zu bytes", size);
        REFUSED(s->call(given), FS_EINVAL, bytes, "newer");
        free(given);
    }
}

static void try_lengths(const subject *s)
{
    static const size_t wrong[] = {0, 1, sizeof(size_t) - 1, 4097, SIZE_MAX};
    try_shorter(s);
    try_longer(s);
    for (int i = 0; i < 5; i++) {
        unsigned char *given = copy_of(s, s->known);
        memcpy(given, &wrong[i], sizeof wrong[i]);
        REFUSED(s->call(given), FS_EINVAL, "size is");
        free(given);
    }
}

/* options ---------------------------------------------------------------------------------------------------- */

#define END(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

static fs_context *cpu(int threads)
{
    fs_context_options options = FS_CONTEXT_INIT;
    fs_context *ctx = NULL;
    options.backend = FS_BACKEND_CPU, options.threads = threads;
    MUST(fs_context_create(&ctx, &options));
    return ctx;
}

static fs_result create_sketch(void *spec)
{
    fs_sketch *S = NULL;
    const fs_result result = fs_sketch_create(&S, spec);
    fs_sketch_destroy(S);
    return result;
}
static fs_result create_context(void *options)
{
    fs_context *ctx = NULL;
    const fs_result result = fs_context_create(&ctx, options);
    fs_context_destroy(ctx);
    return result;
}
static fs_result create_multi(void *options)
{
    fs_context *ctx = cpu(1);
    fs_multi *multi = NULL;
    const fs_result result = fs_multi_create(&multi, &ctx, 1, options);
    fs_multi_destroy(multi);
    fs_context_destroy(ctx);
    return result;
}
static fs_result create_workspace(void *shape)
{
    fs_context *ctx = cpu(1);
    fs_workspace *w = NULL;
    const fs_result result = fs_workspace_create(&w, ctx, shape);
    fs_workspace_destroy(w);
    fs_context_destroy(ctx);
    return result;
}
static fs_result create_attribution(void *options)
{
    fs_context *ctx = cpu(1);
    fs_attribution *g = NULL;
    const fs_result result = fs_attribution_create(&g, ctx, options);
    fs_attribution_destroy(g);
    fs_context_destroy(ctx);
    return result;
}

static void options_of_other_headers_are_accepted(void **state)
{
    (void)state;
    fs_spec spec = FS_SPEC_INIT;
    spec.d = D, spec.k = K;
    fs_context_options where = FS_CONTEXT_INIT;
    where.backend = FS_BACKEND_CPU, where.threads = 1;
    const fs_multi_options multi = FS_MULTI_INIT;
    fs_task_shape shape = FS_TASK_SHAPE_INIT;
    shape.k = K, shape.n = N;
    const int64_t parameters[] = {D};
    fs_spec features = FS_SPEC_INIT;
    features.k = K;
    fs_attribution_options attribution = FS_ATTRIBUTION_INIT;
    attribution.examples = N, attribution.parts = 1, attribution.parameters = parameters;
    attribution.sketch = &features;
    const subject subjects[] = {
        {"fs_spec", &spec, sizeof spec, END(fs_spec, k), 0, create_sketch},
        {"fs_context_options", &where, sizeof where, sizeof(size_t), 0, create_context},
        {"fs_multi_options", &multi, sizeof multi, sizeof(size_t), 0, create_multi},
        {"fs_task_shape", &shape, sizeof shape, END(fs_task_shape, n), 0, create_workspace},
        {"fs_attribution_options", &attribution, sizeof attribution, END(fs_attribution_options, sketch), 0,
         create_attribution},
    };
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) { try_lengths(&subjects[i]); }
}

/* A field that the caller's struct does not reach has its default, not what is behind the struct. */
static void fields_beyond_an_older_struct_are_not_read(void **state)
{
    (void)state;
    fs_context_options where = FS_CONTEXT_INIT;
    fs_context *ctx = NULL;
    where.backend = FS_BACKEND_CPU, where.threads = 1, where.isa = "nonsense";
    where.size = offsetof(fs_context_options, isa);
    MUST(fs_context_create(&ctx, &where));
    fs_context_destroy(ctx);
    fs_spec spec = FS_SPEC_INIT, full = FS_SPEC_INIT;
    fs_sketch *S = NULL;
    spec.d = D, spec.k = K, spec.seed = 9, spec.size = offsetof(fs_spec, seed);
    MUST(fs_sketch_create(&S, &spec));
    MUST(fs_sketch_spec(S, &full));
    assert_int_equal(full.seed, 0);
    fs_sketch_destroy(S);
    /* Programs from before the rungs: the default one, whatever follows their struct. */
    fs_spec before = FS_SPEC_INIT;
    before.d = D, before.k = K, before.quality = FS_QUALITY_HIGH, before.size = offsetof(fs_spec, quality);
    MUST(fs_sketch_create(&S, &before));
    MUST(fs_sketch_spec(S, &full));
    assert_int_equal(full.quality, FS_QUALITY_DEFAULT);
    assert_int_equal(full.kappa * full.s, 8);
    before.quality = (fs_quality)77;
    MUST(fs_sketch_spec(S, &before));
    assert_int_equal(before.quality, 77);
    fs_sketch_destroy(S);
}

/* reports ---------------------------------------------------------------------------------------------------- */

/* One least-squares problem, sketched. */
static struct {
    fs_context *ctx;
    fs_sketch *S;
    fs_workspace *w;
    fs_matrix A, B, X;
} task;

static int open_task(void **state)
{
    (void)state;
    static double a[D * N], b[D], x[N];
    fs_spec spec = FS_SPEC_INIT;
    fs_task_shape shape = FS_TASK_SHAPE_INIT;
    spec.d = D, spec.k = K, spec.M = 2;
    shape.k = K, shape.n = N, shape.rhs = 1, shape.dtype = FS_F64, shape.basis = D;
    for (int i = 0; i < D * N; i++) a[i] = normal_at(1, i);
    for (int i = 0; i < D; i++) b[i] = normal_at(2, i);
    task.A = fs_row_major(a, D, N, FS_F64), task.B = fs_row_major(b, D, 1, FS_F64);
    task.X = fs_row_major(x, N, 1, FS_F64);
    task.ctx = cpu(1), task.S = sketch_of(&spec);
    MUST(fs_workspace_create(&task.w, task.ctx, &shape));
    MUST(fs_task_sketch(task.w, task.S, &task.A, &task.B));
    return 0;
}
static int close_task(void **state)
{
    (void)state;
    fs_workspace_destroy(task.w);
    fs_sketch_destroy(task.S);
    fs_context_destroy(task.ctx);
    return 0;
}

static fs_result report_spec(void *report) { return fs_sketch_spec(task.S, report); }
static fs_result report_gram(void *report) { return fs_gram(task.w, task.S, NULL, report); }
static fs_result report_solve(void *report) { return fs_solve(task.w, 0.0, &task.X, report); }
static fs_result report_ridge(void *report) { return fs_ridge(task.w, 1.0, &task.X, report); }
static fs_result report_coherence(void *report) { return fs_coherence(task.ctx, task.S, &task.A, NULL, report); }
static fs_result report_ose(void *report) { return fs_ose(task.w, task.S, &task.A, 0, report); }

/* The members of all structs; bytes between them have no value. */
#define STRUCT(type, bytes)
#define FIELD(type, member, offset) {#type, offset, sizeof(((type *)NULL)->member)},
static const struct {
    const char *type;
    size_t offset, bytes;
} fields[] = {
#include "layouts.h"
};
static int is_in_member(const char *type, size_t byte)
{
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (!strcmp(fields[i].type, type) && byte >= fields[i].offset && byte < fields[i].offset + fields[i].bytes)
            return 1;
    return 0;
}

/* `given` has what `full` has in its bytes after the size, but for times, which differ from call to call: `count`
 * doubles from byte `times` on. */
static void compare_report(const subject *s, size_t times, size_t count, size_t size, const unsigned char *given,
                           const unsigned char *full)
{
    for (size_t i = sizeof(size_t); i < size; i++)
        if (is_in_member(s->name, i) && (i < times || i >= times + count * sizeof(double)) && given[i] != full[i])
            fail_msg("%s of %zu bytes: byte %zu differs from that of the full report", s->name, size, i);
}

static void compare_reports(const subject *s, size_t times, size_t count)
{
    unsigned char *full = copy_of(s, s->known);
    MUST(s->call(full));
    for (size_t size = sizeof(size_t); size < s->known; size += sizeof(int)) {
        unsigned char *given = copy_of(s, size);
        MUST(s->call(given));
        compare_report(s, times, count, size, given, full);
        free(given);
    }
    free(full);
}

static void reports_are_filled_as_far_as_they_go(void **state)
{
    (void)state;
    const fs_spec spec = FS_SPEC_INIT;
    const fs_gram_report gram = FS_GRAM_REPORT_INIT;
    const fs_fit_report fit = FS_FIT_REPORT_INIT;
    const fs_ose_report ose = FS_OSE_REPORT_INIT;
    const fs_coherence_report coherence = FS_COHERENCE_REPORT_INIT;
    /* fs_ose is last: it replaces Y. */
    const subject subjects[] = {
        {"fs_spec", &spec, sizeof spec, 0, 1, report_spec},
        {"fs_coherence_report", &coherence, sizeof coherence, 0, 1, report_coherence},
        {"fs_gram_report", &gram, sizeof gram, 0, 1, report_gram},
        {"fs_fit_report", &fit, sizeof fit, 0, 1, report_solve},
        {"fs_fit_report", &fit, sizeof fit, 0, 1, report_ridge},
        {"fs_ose_report", &ose, sizeof ose, 0, 1, report_ose},
    };
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
        try_lengths(&subjects[i]);
        compare_reports(&subjects[i], offsetof(fs_gram_report, sketch_seconds), i < 2 ? 0 : 3);
    }
}

/* solvers ---------------------------------------------------------------------------------------------------- */

static int rows_given; /* of the slices */
static fs_result rewind_rows(void *user)
{
    (void)user;
    rows_given = 0;
    return FS_OK;
}
static fs_result next_rows(void *user, fs_matrix *dense, const fs_sparse **sparse)
{
    (void)user, (void)sparse;
    *dense = fs_row_major((double *)task.A.data + rows_given * N, D / 2, N, FS_F64);
    rows_given += D / 2;
    return FS_OK;
}
static fs_result sum_of_one(void *user, double *values, int64_t count, int failed)
{
    (void)user, (void)values, (void)count;
    return failed ? fs_fail(FS_EINVAL, "a rank failed") : FS_OK;
}

static const fs_operand *operand(void)
{
    static fs_operand A = FS_OPERAND_INIT;
    A.dense = &task.A;
    return &A;
}
static fs_result solve_lstsq(const fs_operand *A, const fs_lstsq_options *options, fs_lstsq_report *report)
{
    return fs_lstsq(task.ctx, A, &task.B, options, &task.X, report);
}
static fs_result factor_qr(const fs_qr_options *options, fs_qr_report *report)
{
    static double r[N * N];
    const fs_matrix R = fs_row_major(r, N, N, FS_F64);
    return fs_qr(task.ctx, operand(), options, NULL, &R, NULL, report);
}
static fs_result factor_svd(const fs_svd_options *options, fs_svd_report *report)
{
    static double s[N];
    return fs_svd(task.ctx, operand(), options, NULL, s, NULL, report);
}
static fs_result score_rows(const fs_leverage_options *options, fs_leverage_report *report)
{
    static double scores[D];
    return fs_leverage(task.ctx, operand(), options, scores, report);
}
static fs_result plan_sketch(const fs_plan_options *options, fs_plan_report *report)
{
    fs_plan_options wanted = FS_PLAN_INIT;
    fs_plan_report unused = FS_PLAN_REPORT_INIT;
    wanted.n = N, wanted.error = 0.5;
    return fs_plan(options ? options : &wanted, report ? report : &unused);
}

static fs_result take_operand(void *given) { return solve_lstsq(given, NULL, NULL); }
static fs_result take_slices(void *given)
{
    fs_operand A = FS_OPERAND_INIT;
    A.slices = given;
    return solve_lstsq(&A, NULL, NULL);
}
static fs_result take_ranks(void *given)
{
    fs_lstsq_options options = FS_LSTSQ_INIT;
    options.ranks = given;
    return solve_lstsq(operand(), &options, NULL);
}
static fs_result take_lstsq(void *given) { return solve_lstsq(operand(), given, NULL); }
static fs_result take_qr(void *given) { return factor_qr(given, NULL); }
static fs_result take_svd(void *given) { return factor_svd(given, NULL); }
static fs_result take_leverage(void *given) { return score_rows(given, NULL); }
static fs_result take_plan(void *given) { return plan_sketch(given, NULL); }

static void options_of_solvers_too(void **state)
{
    (void)state;
    const fs_operand *A = operand();
    fs_slices slices = FS_SLICES_INIT;
    slices.rows = D, slices.cols = N, slices.dtype = FS_F64, slices.rewind = rewind_rows, slices.next = next_rows;
    fs_ranks ranks = FS_RANKS_INIT;
    ranks.rows = D, ranks.sum = sum_of_one;
    const fs_lstsq_options lstsq = FS_LSTSQ_INIT;
    const fs_qr_options qr = FS_QR_INIT;
    const fs_svd_options svd = FS_SVD_INIT;
    const fs_leverage_options leverage = FS_LEVERAGE_INIT;
    fs_plan_options plan = FS_PLAN_INIT;
    plan.n = N, plan.error = 0.5;
    const subject subjects[] = {
        {"fs_operand", A, sizeof *A, END(fs_operand, dense), 0, take_operand},
        {"fs_slices", &slices, sizeof slices, END(fs_slices, next), 0, take_slices},
        {"fs_ranks", &ranks, sizeof ranks, END(fs_ranks, sum), 0, take_ranks},
        {"fs_lstsq_options", &lstsq, sizeof lstsq, sizeof(size_t), 0, take_lstsq},
        {"fs_qr_options", &qr, sizeof qr, sizeof(size_t), 0, take_qr},
        {"fs_svd_options", &svd, sizeof svd, sizeof(size_t), 0, take_svd},
        {"fs_leverage_options", &leverage, sizeof leverage, sizeof(size_t), 0, take_leverage},
        {"fs_plan_options", &plan, sizeof plan, END(fs_plan_options, error), 0, take_plan},
    };
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) try_lengths(&subjects[i]);
}

static fs_result report_lstsq(void *report) { return solve_lstsq(operand(), NULL, report); }
static fs_result report_qr(void *report) { return factor_qr(NULL, report); }
static fs_result report_svd(void *report) { return factor_svd(NULL, report); }
static fs_result report_leverage(void *report) { return score_rows(NULL, report); }
static fs_result report_plan(void *report) { return plan_sketch(NULL, report); }

static void reports_of_solvers_too(void **state)
{
    (void)state;
    const fs_lstsq_report lstsq = FS_LSTSQ_REPORT_INIT;
    const fs_qr_report qr = FS_QR_REPORT_INIT;
    const fs_svd_report svd = FS_SVD_REPORT_INIT;
    const fs_leverage_report leverage = FS_LEVERAGE_REPORT_INIT;
    const fs_plan_report plan = FS_PLAN_REPORT_INIT;
    const subject subjects[] = {
        {"fs_lstsq_report", &lstsq, sizeof lstsq, 0, 1, report_lstsq},
        {"fs_qr_report", &qr, sizeof qr, 0, 1, report_qr},
        {"fs_svd_report", &svd, sizeof svd, 0, 1, report_svd},
        {"fs_leverage_report", &leverage, sizeof leverage, 0, 1, report_leverage},
        {"fs_plan_report", &plan, sizeof plan, 0, 1, report_plan},
    };
    const size_t times[] = {offsetof(fs_lstsq_report, seconds), offsetof(fs_qr_report, seconds),
                            offsetof(fs_svd_report, seconds), offsetof(fs_leverage_report, seconds), sizeof plan};
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
        try_lengths(&subjects[i]);
        compare_reports(&subjects[i], times[i], i == 0 ? 2 : 1);
    }
}

#ifdef OLDER_WITH_FILES
/* files ------------------------------------------------------------------------------------------------------ */

static char name[] = "older_XXXXXX";

static fs_stream *open_matrix(const fs_stream_options *options, fs_result *result)
{
    static const fs_stream_options raw = {.size = sizeof raw, .threads = 1, .rows = D, .cols = N, .dtype = FS_F64};
    const char *const path = name;
    fs_stream *stream = NULL;
    *result = fs_stream_create(&stream, &path, 1, options ? options : &raw);
    return stream;
}
static fs_result create_stream(void *options)
{
    fs_result result;
    fs_stream_destroy(open_matrix(options, &result));
    return result;
}
static fs_result report_panel(void *panel)
{
    fs_result result;
    fs_stream *stream = open_matrix(NULL, &result);
    MUST(result);
    result = fs_stream_next(stream, panel);
    fs_stream_destroy(stream);
    return result;
}

static fs_result describe_file(void *file)
{
    fs_result result;
    fs_stream *stream = open_matrix(NULL, &result);
    MUST(result);
    result = fs_stream_get_file(stream, 0, file);
    fs_stream_destroy(stream);
    return result;
}
static fs_result open_file(void *options)
{
    fs_file *file = NULL;
    const fs_result result = fs_file_open(&file, name, options);
    fs_file_close(file);
    return result;
}
static fs_result report_info(void *info)
{
    fs_file_options raw = FS_FILE_INIT;
    fs_file *file = NULL;
    raw.format = FS_FILE_RAW, raw.rows = D, raw.cols = N, raw.dtype = FS_F64;
    MUST(fs_file_open(&file, name, &raw));
    const fs_result result = fs_file_get_info(file, info);
    fs_file_close(file);
    return result;
}

static void streams_and_panels_too(void **state)
{
    (void)state;
    const int file = mkstemp(name);
    const size_t bytes = D * N * sizeof(double);
    assert_true(file >= 0 && write(file, task.A.data, bytes) == (ssize_t)bytes && close(file) == 0);
    fs_stream_options options = FS_STREAM_INIT;
    options.threads = 1, options.rows = D, options.cols = N, options.dtype = FS_F64;
    const fs_panel panel = FS_PANEL_INIT;
    fs_file_options raw = FS_FILE_INIT;
    raw.format = FS_FILE_RAW, raw.rows = D, raw.cols = N, raw.dtype = FS_F64;
    const fs_file_info info = FS_FILE_INFO_INIT;
    const fs_stream_file shard = FS_STREAM_FILE_INIT;
    /* A raw file needs its shape and type; without them it is a file of an unknown format, FS_EFILE. */
    const subject subjects[] = {
        {"fs_stream_options", &options, sizeof options, END(fs_stream_options, dtype), 0, create_stream},
        {"fs_panel", &panel, sizeof panel, 0, 1, report_panel},
        {"fs_file_options", &raw, sizeof raw, END(fs_file_options, dtype), 0, open_file},
        {"fs_file_info", &info, sizeof info, 0, 1, report_info},
        {"fs_stream_file", &shard, sizeof shard, 0, 1, describe_file},
    };
    try_longer(&subjects[0]);
    try_longer(&subjects[2]);
    try_lengths(&subjects[3]);
    try_lengths(&subjects[4]);
    MUST(create_stream(&(fs_stream_options){
        .size = END(fs_stream_options, dtype), .rows = D, .cols = N, .dtype = FS_F64, .by_columns = 4711}));
    try_lengths(&subjects[1]);
    fs_panel got = FS_PANEL_INIT;
    got.size = offsetof(fs_panel, row0), got.row0 = 4711;
    MUST(report_panel(&got));
    assert_int_equal(got.A.rows, D);
    assert_int_equal(got.row0, 4711);
    remove(name);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_of_other_headers_are_accepted),
        cmocka_unit_test(fields_beyond_an_older_struct_are_not_read),
        cmocka_unit_test(reports_are_filled_as_far_as_they_go),
        cmocka_unit_test(options_of_solvers_too),
        cmocka_unit_test(reports_of_solvers_too),
#ifdef OLDER_WITH_FILES
        cmocka_unit_test(streams_and_panels_too),
#endif
    };
    need_openblas();
    return cmocka_run_group_tests(tests, open_task, close_task);
}
