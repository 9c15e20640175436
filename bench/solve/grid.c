/* grid.c - the cases of `fsbench solve`: shapes, types, condition numbers and tasks; the turns of each. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/progress.h"
#include "solve.h"

enum { CELL = 256, MOST_METHODS = 32 };

/* The state of a run over the grid. */
typedef struct grid {
    const solve_options *o;
    nla_machine m;
    lapack l;
    nla_record record;
    progress bar;
    int steps, done, failed;
} grid;

/* One method in one case. */
typedef struct entry {
    const solve_method *method;
    char cell[CELL];
    double ms[SOLVE_MOST_TURNS];
    int code; /* of the last run */
    int64_t iterations, reads, k;
    char note[64];
    solve_errors errors;
} entry;

/* The default condition numbers of a task and type. */
static int conditions_of(const solve_options *o, enum solve_task task, fs_dtype dtype, const double **list)
{
    static const double lstsq_f32[] = {1e1, 1e3, 1e5}, lstsq_f64[] = {1e1, 1e6, 1e10, 1e14}, f32[] = {1e6},
                        f64[] = {1e14}, svd_f64[] = {1e12};
    if (o->condition_count) return *list = o->conditions, o->condition_count;
    if (task == SOLVE_LSTSQ) return *list = dtype == FS_F32 ? lstsq_f32 : lstsq_f64, dtype == FS_F32 ? 3 : 4;
    return *list = dtype == FS_F32 ? f32 : task == SOLVE_SVD ? svd_f64 : f64, 1;
}

static int is_named(const char *list, const char *name)
{
    for (const char *at = list; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strcspn(at, ",") == strlen(name) && !strncmp(at, name, strlen(name))) return 1;
    return !*list;
}

/* The methods of a case, and how many of them the record lacks. */
static int methods_of(const grid *g, const solve_problem *p, enum solve_task task, entry *entries, int *count)
{
    int missing = 0;
    *count = 0;
    for (int i = 0; i < solve_method_count; i++) {
        const solve_method *m = &solve_methods[i];
        if (!(m->tasks & 1u << task) || !(g->o->common.cuda ? m->on_gpu : m->on_cpu) ||
            !is_named(g->o->common.methods, m->name))
            continue;
        entry *e = &entries[(*count)++];
        e->method = m;
        snprintf(e->cell, sizeof e->cell, "solve/%s/%" PRId64 "x%" PRId64 "/%s/cond%g/%s", solve_task_names[task], p->d,
                 p->n, fs_dtype_name(p->dtype), p->condition, m->name);
        missing += !nla_record_has(&g->record, e->cell, -1);
    }
    return missing;
}

/* lines ------------------------------------------------------------------------------------------------------ */

static void known(nla_line *l, const char *name, double value)
{
    if (!isnan(value)) nla_line_number(l, name, value);
}

static int write_line(grid *g, const solve_problem *p, enum solve_task task, entry *e, int turns, double read_ms)
{
    const nla_machine *m = &g->m;
    char backend[256];
    nla_line l;
    nla_line_start(&l, e->cell);
    nla_line_word(&l, "task", solve_task_names[task]);
    nla_line_word(&l, "method", e->method->name);
    nla_line_word(&l, "by", e->method->by_peer ? "peer" : "library");
    nla_line_whole(&l, "d", p->d);
    nla_line_whole(&l, "n", p->n);
    nla_line_word(&l, "dtype", fs_dtype_name(p->dtype));
    nla_line_number(&l, "cond", p->condition);
    nla_line_word(&l, "outcome", e->code ? "breaks down" : "solved");
    if (!e->code) {
        const double ms = bench_median(e->ms, turns);
        nla_line_number(&l, "read_ms", read_ms);
        nla_line_number(&l, "ms", ms);
        nla_line_number(&l, "ms_min", e->ms[0]);
        nla_line_number(&l, "reads", ms / read_ms);
        known(&l, "backward", e->errors.backward);
        known(&l, "forward", e->errors.forward);
        known(&l, "excess", e->errors.excess);
        known(&l, "orthogonality", e->errors.orthogonality);
        known(&l, "product", e->errors.product);
        known(&l, "values", e->errors.values);
    }
    if (e->k) nla_line_whole(&l, "k", e->k);
    if (e->iterations) nla_line_whole(&l, "iterations", e->iterations);
    if (e->reads) nla_line_whole(&l, "reads_made", e->reads);
    if (e->note[0]) nla_line_word(&l, "note", e->note);
    fs_context_describe(m->context, backend, sizeof backend);
    nla_line_word(&l, "backend", backend);
    nla_line_word(&l, "machine", m->name);
    if (m->driver) nla_line_word(&l, "driver", m->driver);
    if (m->cuda) nla_line_word(&l, "cuda", m->cuda);
    nla_line_whole(&l, "threads", g->o->common.threads);
    nla_line_whole(&l, "reps", turns);
    nla_line_word(&l, "commit", g->o->common.commit);
    nla_line_word(&l, "date", bench_date());
    return nla_record_write(&g->record, &l);
}

/* turns ------------------------------------------------------------------------------------------------------ */

static int run_entry(solve_case *c, entry *e, int turn)
{
    if (e->code) return 0;
    c->iterations = c->reads = c->k = 0;
    c->note[0] = 0;
    if (e->method->by_peer && solve_case_refresh(c)) return 1;
    const double start = bench_now();
    e->code = e->method->run(c, e->method->parameter);
    if (turn >= 0) e->ms[turn] = 1e3 * (bench_now() - start);
    e->iterations = c->iterations, e->reads = c->reads, e->k = c->k;
    memcpy(e->note, c->note, sizeof e->note);
    return e->code == 1;
}

/* The first turn counts for errors only: it touches memory and starts threads. */
static int run_turns(grid *g, solve_case *c, entry *entries, int count, int *turns, double *read_ms)
{
    double reads[SOLVE_MOST_TURNS];
    const double start = bench_now();
    for (int i = 0; i < count; i++)
        if (run_entry(c, &entries[i], -1) || (!entries[i].code && solve_case_errors(c, &entries[i].errors))) return 1;
    const int most = g->o->common.repetitions;
    for (*turns = 0; *turns < most && (*turns < SOLVE_LEAST_TURNS || bench_now() - start < g->o->seconds); ++*turns) {
        const double before = bench_now();
        if (solve_case_read(c)) return 1;
        reads[*turns] = 1e3 * (bench_now() - before);
        for (int i = 0; i < count; i++)
            if (run_entry(c, &entries[i], *turns)) return 1;
    }
    *read_ms = bench_median(reads, *turns);
    return 0;
}

static int run_case(grid *g, const solve_base *base, fs_dtype dtype, double condition, enum solve_task task)
{
    const solve_problem named = {.d = base->d, .n = base->n, .dtype = dtype, .condition = condition};
    entry *entries = calloc(MOST_METHODS, sizeof *entries);
    solve_problem p = {0};
    solve_case c = {0};
    int count, turns = 0;
    double read_ms = 0;
    if (!entries) return 1;
    progress_at(&g->bar, (double)g->done++ / g->steps, "%s, %" PRId64 " x %" PRId64 ", %s, cond %g",
                solve_task_names[task], base->d, base->n, fs_dtype_name(dtype), condition);
    if (!methods_of(g, &named, task, entries, &count)) {
        free(entries);
        return 0;
    }
    int bad = solve_problem_make(&g->l, base, dtype, condition, &p) || solve_case_open(&c, &g->m, &g->l, &p, task) ||
              run_turns(g, &c, entries, count, &turns, &read_ms);
    for (int i = 0; i < count && !bad; i++)
        if (!nla_record_has(&g->record, entries[i].cell, -1))
            bad = write_line(g, &p, task, &entries[i], turns, read_ms);
    if (bad) fprintf(stderr, "fsbench: %s has no result\n", count ? entries[0].cell : "a case");
    solve_case_close(&c);
    solve_problem_free(&p);
    free(entries);
    return bad;
}

/* Runs, or only counts, the cases of a shape. */
static void run_shape(grid *g, const int64_t *shape, int only_count)
{
    solve_base base = {.d = shape[0], .n = shape[1]};
    if (!only_count && solve_base_make(&g->l, shape[0], shape[1], &base)) {
        solve_base_free(&base);
        g->failed = 1;
        return;
    }
    for (int task = 0; task < SOLVE_TASKS; task++)
        for (int type = 0; type < 2; type++) {
            const fs_dtype dtype = type ? FS_F64 : FS_F32;
            const double *list;
            const int count = conditions_of(g->o, (enum solve_task)task, dtype, &list);
            if (!(g->o->tasks & 1u << task) || !(g->o->types & 1u << type)) continue;
            if (only_count) g->steps += count;
            for (int i = 0; i < count && !only_count; i++)
                g->failed |= run_case(g, &base, dtype, list[i], (enum solve_task)task);
        }
    if (!only_count) solve_base_free(&base);
}

int solve_grid(const solve_options *o)
{
    grid g = {.o = o, .m = nla_cpu};
#ifdef FS_BENCH_CUDA
    if (o->common.cuda) g.m = nla_gpu;
#endif
    for (int i = 0; i < o->common.shape_count; i++) run_shape(&g, o->common.shapes[i], 1);
    /* Reads the record first, so that a broken one is refused before anything is measured. */
    int failed = nla_record_open(&g.record, o->common.record, "solve") || lapack_open(&g.l, o->common.threads) ||
                 g.m.open(&g.m, &o->common);
    if (!failed) {
        g.bar = progress_start(1, o->common.quiet);
        for (int i = 0; i < o->common.shape_count; i++) run_shape(&g, o->common.shapes[i], 0);
        progress_end(&g.bar);
    }
    if (g.m.context) g.m.close(&g.m);
    lapack_close(&g.l);
    failed |= nla_record_close(&g.record);
    return failed | g.failed;
}
