/* grid.c - the cells of `fsbench quality`: inputs, n, k and rungs; tails; ranks.  And the lines of the record. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/progress.h"
#include "quality.h"

enum { CELL = 256, MOST_THREADS = 64, GAUSSIAN_DRAWS = 2000, TAIL_DRAWS = 65536 };
enum { SOME_ROWS = 65536 }; /* of a spec whose input is not made yet: labels do not depend on d */
static const int64_t tail_k[] = {1024, 4096};
enum { TAIL_KS = sizeof tail_k / sizeof tail_k[0] };

/* The state of a run over the grid. */
typedef struct grid {
    const quality_options *o;
    lapack l;
    nla_record record;
    quality_worker *workers[MOST_THREADS];
    progress bar;
    double start;
    int steps, done, failed, stopped;
} grid;

/* Whether a name is in a list between commas; every name is in "". */
static int in_list(const char *list, const char *name)
{
    for (const char *at = list; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strcspn(at, ",") == strlen(name) && !strncmp(at, name, strlen(name))) return 1;
    return !*list;
}

static int out_of_time(grid *g)
{
    if (!g->stopped && bench_now() - g->start > g->o->seconds) g->stopped = 1;
    return g->stopped;
}

/* lines ------------------------------------------------------------------------------------------------------ */

static void start_line(nla_line *l, const char *cell, const char *what)
{
    nla_line_start(l, cell);
    nla_line_word(l, "what", what);
}
static int end_line(grid *g, nla_line *l)
{
    nla_line_whole(l, "definition", fs_definition_version());
    nla_line_word(l, "machine", bench_machine());
    nla_line_whole(l, "threads", g->o->common.threads);
    nla_line_word(l, "commit", g->o->common.commit);
    nla_line_word(l, "date", bench_date());
    return nla_record_write(&g->record, l);
}
static void spec_fields(nla_line *l, const fs_spec *spec)
{
    nla_line_word(l, "family", fs_family_name(spec->family));
    nla_line_whole(l, "M", quality_blocks(spec));
    nla_line_whole(l, "kappa", spec->kappa ? spec->kappa : 1);
    nla_line_whole(l, "s", spec->s);
    nla_line_word(l, "shuffle", bench_shuffle_name(spec->shuffle));
}

/* the Gaussian ----------------------------------------------------------------------------------------------- */

static int run_gaussian(grid *g, int64_t n, int64_t k)
{
    char cell[CELL];
    nla_line l;
    quality_summary s;
    snprintf(cell, sizeof cell, "quality/gaussian/n%" PRId64 "/k%" PRId64, n, k);
    if (nla_record_has(&g->record, cell, -1)) return 0;
    if (quality_gaussian(&g->l, n, k, GAUSSIAN_DRAWS, g->o->common.threads, &s)) return 1;
    start_line(&l, cell, "gaussian");
    nla_line_whole(&l, "n", n);
    nla_line_whole(&l, "k", k);
    nla_line_whole(&l, "draws", s.draws);
    nla_line_number(&l, "error", s.mean);
    nla_line_number(&l, "deviation", s.deviation);
    nla_line_number(&l, "p95", s.p95);
    nla_line_number(&l, "smallest", s.smallest);
    nla_line_number(&l, "residual", s.residual);
    nla_line_number(&l, "residual_p95", s.residual_p95);
    return end_line(g, &l);
}

/* Four digits, because a record has thousands of these lists. */
static double rounded(double x)
{
    char text[32];
    snprintf(text, sizeof text, "%.4g", x);
    return strtod(text, NULL);
}

/* cells ------------------------------------------------------------------------------------------------------ */

/* An input, or a file, at one n; the matrix stays until another is needed. */
typedef struct subject {
    const quality_input *input; /* NULL: a file */
    const data_source *source;
    char name[80];
    int by_blocks;
    int64_t n, M; /* that m was made for; n 0: none */
    int code;     /* of making it */
    quality_matrix m;
} subject;

/* 2: a file without so many columns. */
static int make_subject(grid *g, subject *s, int64_t n, int64_t M)
{
    if (s->n == n && (!s->by_blocks || s->M == M)) return s->code;
    quality_matrix_free(&s->m);
    s->n = n, s->M = M;
    s->code = s->input ? quality_matrix_make(&g->l, s->input, n, M, &s->m)
                       : quality_matrix_read(&g->l, s->source, n, &s->m);
    return s->code;
}

static int write_cell(grid *g, const subject *s, const fs_spec *spec, double ratio, const char *cell, const int *seeds,
                      const quality_draw *draws, int count)
{
    double values[QUALITY_LINE_SEEDS];
    char rungs[128];
    nla_line l;
    start_line(&l, cell, "embedding");
    nla_line_word(&l, "input", s->name);
    nla_line_word(&l, "group", quality_group_names[s->input ? s->input->group : QUALITY_FILE]);
    nla_line_whole(&l, "d", spec->d);
    nla_line_whole(&l, "n", s->m.n);
    nla_line_whole(&l, "k", spec->k);
    nla_line_number(&l, "ratio", ratio);
    quality_spec_rungs(spec, rungs, sizeof rungs);
    nla_line_word(&l, "rungs", rungs);
    spec_fields(&l, spec);
    nla_line_number(&l, "leverage", s->m.leverage);
    for (int i = 0; i < count; i++) values[i] = seeds[i];
    nla_line_numbers(&l, "seeds", values, count);
    for (int i = 0; i < count; i++) values[i] = rounded(draws[i].error);
    nla_line_numbers(&l, "error", values, count);
    for (int i = 0; i < count; i++) values[i] = rounded(draws[i].smallest);
    nla_line_numbers(&l, "smallest", values, count);
    for (int i = 0; i < count; i++) values[i] = rounded(draws[i].residual);
    nla_line_numbers(&l, "residual", values, count);
    return end_line(g, &l);
}

static int run_cell(grid *g, subject *s, const quality_rung *rung, int64_t n, double ratio)
{
    const nla_options *o = &g->o->common;
    fs_spec spec;
    char label[96], cell[CELL];
    int seeds[QUALITY_LINE_SEEDS];
    quality_draw draws[QUALITY_LINE_SEEDS];
    if (quality_spec(rung, SOME_ROWS, quality_k(n, ratio), 0, &spec)) return 1;
    const int64_t M = quality_blocks(&spec);
    quality_spec_label(&spec, label, sizeof label);
    snprintf(cell, sizeof cell, "quality/v%d/%s/n%" PRId64 "/k%" PRId64 "/%s", fs_definition_version(), s->name, n,
             spec.k, label);
    for (int first = o->first_seed; first <= o->last_seed && !out_of_time(g);) {
        int count = 0;
        for (; first <= o->last_seed && count < QUALITY_LINE_SEEDS; first++)
            if (!nla_record_has(&g->record, cell, first)) seeds[count++] = first;
        if (!count) break;
        const int code = make_subject(g, s, n, M);
        if (code) return code;
        spec.d = s->m.d;
        if (quality_draws(g->workers, o->threads, &s->m, &spec, seeds, count, draws) ||
            write_cell(g, s, &spec, ratio, cell, seeds, draws, count))
            return 1;
    }
    return 0;
}

static int is_chosen(const grid *g, int rung)
{
    return *g->o->rungs ? in_list(g->o->rungs, quality_rungs[rung].name) : !quality_rungs[rung].on_request;
}

/* Whether a rung has the S of an earlier one that is measured too. */
static int is_repeated(const grid *g, int rung, int64_t k)
{
    char label[96], other[96];
    fs_spec spec;
    if (quality_spec(&quality_rungs[rung], SOME_ROWS, k, 0, &spec)) return 0;
    quality_spec_label(&spec, label, sizeof label);
    for (int i = 0; i < rung; i++) {
        if (!is_chosen(g, i) || quality_rungs[i].family != spec.family) continue;
        if (quality_spec(&quality_rungs[i], SOME_ROWS, k, 0, &spec)) continue;
        quality_spec_label(&spec, other, sizeof other);
        if (!strcmp(label, other)) return 1;
    }
    return 0;
}

static void run_subject(grid *g, subject *s)
{
    const quality_options *o = g->o;
    for (int a = 0; a < o->n_count; a++)
        for (int b = 0; b < o->ratio_count; b++)
            for (int r = 0; r < quality_rung_count; r++) {
                const int64_t n = o->n[a], k = quality_k(n, o->ratios[b]);
                if (!is_chosen(g, r)) continue;
                progress_at(&g->bar, (double)g->done++ / g->steps, "%s, n %" PRId64 ", k %" PRId64 ", %s", s->name, n,
                            k, quality_rungs[r].name);
                if (out_of_time(g) || is_repeated(g, r, k)) continue;
                const int code = run_cell(g, s, &quality_rungs[r], n, o->ratios[b]);
                if (code == 1) { /* 2: nothing to measure */
                    fprintf(stderr, "fsbench: %s, n = %" PRId64 ", k = %" PRId64 " has no result\n", s->name, n, k);
                    g->failed = 1;
                }
            }
    quality_matrix_free(&s->m);
}

/* tails ------------------------------------------------------------------------------------------------------ */

static int run_tail(grid *g, int shape, const fs_spec *spec, int64_t M)
{
    char label[96], cell[CELL], rungs[128];
    quality_tail t;
    nla_line l;
    quality_spec_label(spec, label, sizeof label);
    snprintf(cell, sizeof cell, "quality/tails/v%d/%s/M%" PRId64 "/k%" PRId64 "/%s", fs_definition_version(),
             quality_shape_name(shape), M, spec->k, label);
    if (out_of_time(g) || nla_record_has(&g->record, cell, -1)) return 0;
    if (quality_tail_of(shape, spec, M, TAIL_DRAWS, g->o->common.threads, &t)) return 1;
    start_line(&l, cell, "tail");
    nla_line_word(&l, "shape", quality_shape_name(shape));
    nla_line_whole(&l, "k", spec->k);
    quality_spec_rungs(spec, rungs, sizeof rungs);
    nla_line_word(&l, "rungs", rungs);
    nla_line_whole(&l, "blocks", M);
    spec_fields(&l, spec);
    nla_line_whole(&l, "draws", t.draws);
    nla_line_number(&l, "deviation", t.deviation);
    nla_line_number(&l, "kurtosis", t.kurtosis);
    nla_line_number(&l, "q99", t.q99);
    nla_line_number(&l, "q999", t.q999);
    nla_line_number(&l, "top", t.top);
    return end_line(g, &l);
}

/* Each rung, and the SJLT with as many nonzeros a column. */
static void run_tails(grid *g)
{
    for (int shape = 0; shape < quality_shape_count; shape++)
        for (int i = 0; i < TAIL_KS; i++)
            for (int r = 0; r < quality_rung_count; r++) {
                const quality_rung *rung = &quality_rungs[r];
                fs_spec spec;
                if (!is_chosen(g, r)) continue;
                progress_at(&g->bar, (double)g->done++ / g->steps, "tails: %s, k %" PRId64 ", %s",
                            quality_shape_name(shape), tail_k[i], rung->name);
                if (rung->family != FS_BLOCKPERM || is_repeated(g, r, tail_k[i])) continue;
                int bad = quality_spec(rung, SOME_ROWS, tail_k[i], 0, &spec) || run_tail(g, shape, &spec, spec.M);
                const quality_rung beside = {.name = "", FS_SJLT, .s = spec.kappa * spec.s};
                const int64_t M = spec.M;
                bad = bad || quality_spec(&beside, SOME_ROWS, tail_k[i], 0, &spec) || run_tail(g, shape, &spec, M);
                g->failed |= bad;
            }
}

/* ranks ------------------------------------------------------------------------------------------------------ */

static const struct rank_shape {
    int64_t n;
    double ratio;
} rank_shapes[] = {{1024, 1.5}, {1024, 2}, {1024, 4}, {4096, 2}};
enum { RANK_SHAPES = sizeof rank_shapes / sizeof rank_shapes[0] };

static int run_rank(grid *g, const quality_rung *rung, const struct rank_shape *shape, int scattered)
{
    const nla_options *o = &g->o->common;
    const char *input = scattered ? "scattered" : "side-by-side";
    char label[96], cell[CELL], rungs[128];
    int seeds[QUALITY_LINE_SEEDS], singular;
    double values[QUALITY_LINE_SEEDS];
    fs_spec spec;
    nla_line l;
    if (quality_spec(rung, SOME_ROWS, quality_k(shape->n, shape->ratio), 0, &spec)) return 1;
    quality_spec_label(&spec, label, sizeof label);
    snprintf(cell, sizeof cell, "quality/rank/v%d/%s/n%" PRId64 "/k%" PRId64 "/%s", fs_definition_version(), input,
             shape->n, spec.k, label);
    for (int first = o->first_seed; first <= o->last_seed && !out_of_time(g);) {
        int count = 0;
        for (; first <= o->last_seed && count < QUALITY_LINE_SEEDS; first++)
            if (!nla_record_has(&g->record, cell, first)) seeds[count++] = first;
        if (!count) break;
        if (quality_rank(&g->l, &spec, shape->n, scattered, seeds, count, o->threads, &singular)) return 1;
        start_line(&l, cell, "rank");
        nla_line_word(&l, "input", input);
        nla_line_whole(&l, "n", shape->n);
        nla_line_whole(&l, "k", spec.k);
        nla_line_number(&l, "ratio", shape->ratio);
        quality_spec_rungs(&spec, rungs, sizeof rungs);
        nla_line_word(&l, "rungs", rungs);
        spec_fields(&l, &spec);
        for (int i = 0; i < count; i++) values[i] = seeds[i];
        nla_line_numbers(&l, "seeds", values, count);
        nla_line_whole(&l, "singular", singular);
        if (end_line(g, &l)) return 1;
    }
    return 0;
}

static void run_ranks(grid *g)
{
    for (int i = 0; i < RANK_SHAPES; i++)
        for (int scattered = 0; scattered < 2; scattered++)
            for (int r = 0; r < quality_rung_count; r++) {
                const quality_rung *rung = &quality_rungs[r];
                if (!is_chosen(g, r)) continue;
                progress_at(&g->bar, (double)g->done++ / g->steps, "ranks: n %" PRId64 ", %s", rank_shapes[i].n,
                            rung->name);
                if ((rung->family != FS_BLOCKPERM && rung->family != FS_SJLT) ||
                    is_repeated(g, r, quality_k(rank_shapes[i].n, rank_shapes[i].ratio)))
                    continue;
                g->failed |= run_rank(g, rung, &rank_shapes[i], scattered);
            }
}

/* all -------------------------------------------------------------------------------------------------------- */

static int open_grid(grid *g)
{
    /* Reads the record first, so that a broken one is refused before anything is measured.  Draws run in parallel, so
     * LAPACK gets one thread. */
    if (nla_record_open(&g->record, g->o->common.record, "quality") || lapack_open(&g->l, 1)) return 1;
    for (int t = 0; t < g->o->common.threads; t++)
        if (!(g->workers[t] = quality_worker_open(&g->l))) return 1;
    return 0;
}

static int count_steps(const grid *g, int cases)
{
    int rungs = 0, steps = 0;
    for (int r = 0; r < quality_rung_count; r++) rungs += is_chosen(g, r);
    if (g->o->parts & QUALITY_EMBEDDING) steps += cases * g->o->n_count * g->o->ratio_count * rungs;
    if (g->o->parts & QUALITY_TAILS) steps += quality_shape_count * TAIL_KS * rungs;
    if (g->o->parts & QUALITY_RANK) steps += RANK_SHAPES * 2 * rungs;
    return steps ? steps : 1;
}

static void run_embeddings(grid *g)
{
    const quality_options *o = g->o;
    for (int a = 0; a < o->n_count; a++)
        for (int b = 0; b < o->ratio_count; b++)
            g->failed |= run_gaussian(g, o->n[a], quality_k(o->n[a], o->ratios[b]));
    for (int i = 0; i < quality_input_count && (*o->cases || !o->common.source_count); i++) {
        subject s = {.input = &quality_inputs[i], .by_blocks = quality_inputs[i].by_blocks};
        snprintf(s.name, sizeof s.name, "%s", s.input->name);
        if (in_list(o->cases, s.name)) run_subject(g, &s);
    }
    for (int i = 0; i < o->common.source_count; i++) {
        subject s = {.source = &o->common.sources[i]};
        snprintf(s.name, sizeof s.name, "data-%s", s.source->name);
        run_subject(g, &s);
    }
}

int quality_grid(const quality_options *o)
{
    grid g = {.o = o, .start = bench_now()};
    int cases = o->common.source_count;
    for (int i = 0; i < quality_input_count; i++) cases += in_list(o->cases, quality_inputs[i].name);
    g.steps = count_steps(&g, cases);
    int failed = open_grid(&g);
    if (!failed) {
        g.bar = progress_start(1, o->common.quiet);
        if (o->parts & QUALITY_EMBEDDING) run_embeddings(&g);
        if (o->parts & QUALITY_TAILS) run_tails(&g);
        if (o->parts & QUALITY_RANK) run_ranks(&g);
        progress_end(&g.bar);
        if (g.stopped) fprintf(stderr, "fsbench: the time is up; the same command continues with the rest\n");
    }
    for (int t = 0; t < o->common.threads; t++) quality_worker_close(g.workers[t]);
    lapack_close(&g.l);
    failed |= nla_record_close(&g.record);
    return failed | g.failed;
}
