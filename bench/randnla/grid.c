/* grid.c - which cells there are, which of them are done, and the order of the rest.
 *
 * For each shape: the times of sketches; then, for each k and method, S of every seed on all matrices of that shape;
 * then the times of ridge and solve.  A line is written as soon as its cell is complete. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/progress.h"
#include "bench/baselines/algorithm1.h"
#include "randnla.h"

const char *const nla_task_names[TASKS] = {"sketch", "gram", "ose", "ridge", "solve"};
enum { CELL = 256 };
static const unsigned errors_of[] = {TASK_GRAM, TASK_OSE, TASK_RIDGE, TASK_SOLVE};
enum { ERROR_TASKS = 4 };

/* The state of a run over the grid. */
typedef struct grid {
    const nla_options *o;
    nla_machine m;
    nla_record record;
    progress bar;
    double start;
    int64_t steps, done; /* of the progress bar: pairs of k and method, for errors and for each time */
    int failed;
} grid;

/* A shape with the data that come in it. */
typedef struct group {
    int64_t d, n;
    const data_source *sources[NLA_LIST];
    int count;
} group;

static int wanted_method(const nla_options *o, const nla_method *m)
{
    char label[64];
    if (!o->methods[0]) return 1;
    nla_method_label(m, label, sizeof label);
    const char *const names[] = {m->name, label};
    for (int i = 0; i < 2; i++)
        for (const char *p = o->methods; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
            if (strcspn(p, ",") == strlen(names[i]) && !strncmp(p, names[i], strlen(names[i]))) return 1;
    return 0;
}

/* Whether a method is in the grid at this shape and k. */
static int exists(const grid *g, const nla_method *m, int64_t d, int64_t k)
{
    fs_spec spec;
    fs_sketch *S;
    if (!wanted_method(g->o, m) || !nla_baseline(&g->m, m) || k > d || nla_sketch(m, d, k, 0, &spec, &S)) return 0;
    fs_sketch_destroy(S);
    /* Algorithm 1 takes whole blocks, and its kernel whole tiles of them. */
    const int whole = spec.k % ALGORITHM1_BR == 0 && d % (spec.M * ALGORITHM1_TK) == 0;
    return strcmp(m->name, "algorithm1") || whole;
}

static void step(grid *g, const char *doing, int64_t d, int64_t n, int64_t k, const char *label)
{
    const double spent = bench_now() - g->start, share = g->steps ? (double)g->done / (double)g->steps : 0;
    const double left = g->done ? spent * (1 - share) / share : 0;
    progress_at(&g->bar, share, "about %d:%02d left; %s, %" PRId64 " x %" PRId64 ", k = %" PRId64 ", %s",
                (int)left / 60, (int)left % 60, doing, d, n, k, label);
    g->done++;
}

/* lines ------------------------------------------------------------------------------------------------------ */

static void start_line(nla_line *l, const char *cell, const char *what, enum nla_task task, const nla_method *method,
                       int64_t d, int64_t n, int64_t k)
{
    char label[64];
    fs_spec spec;
    fs_sketch *S;
    nla_method_label(method, label, sizeof label);
    if (!nla_sketch(method, d, k, 0, &spec, &S)) fs_sketch_destroy(S);
    nla_line_start(l, cell);
    nla_line_word(l, "what", what);
    nla_line_word(l, "task", nla_task_names[task]);
    nla_line_word(l, "method", label);
    nla_line_word(l, "family", fs_family_name(spec.family));
    nla_line_whole(l, "d", d);
    nla_line_whole(l, "n", n);
    nla_line_whole(l, "k", k);
    nla_line_whole(l, "M", spec.M);
    nla_line_whole(l, "kappa", spec.kappa);
    nla_line_whole(l, "s", spec.s);
    nla_line_word(l, "shuffle", bench_shuffle_name(spec.shuffle));
    if (task >= TASK_RIDGE) nla_line_word(l, "solver", method->textbook ? "textbook" : "library");
}

static int end_line(grid *g, nla_line *l)
{
    char backend[256];
    fs_context_describe(g->m.context, backend, sizeof backend);
    nla_line_word(l, "backend", backend);
    nla_line_word(l, "machine", g->m.name);
    if (g->m.driver) nla_line_word(l, "driver", g->m.driver);
    if (g->m.cuda) nla_line_word(l, "cuda", g->m.cuda);
    nla_line_whole(l, "threads", g->o->threads);
    nla_line_whole(l, "reps", g->o->repetitions);
    nla_line_word(l, "commit", g->o->commit);
    nla_line_word(l, "date", bench_date());
    return nla_record_write(&g->record, l);
}

static void measured(nla_line *l, const char *name, double value)
{
    if (!isnan(value)) nla_line_number(l, name, value);
}

static int write_times(grid *g, nla_line *l, const nla_times *t)
{
    measured(l, "floor_ms", t->floor_ms);
    measured(l, "ms", t->ms);
    measured(l, "wall_ms", t->wall_ms);
    measured(l, "prep_ms", t->prep_ms);
    measured(l, "full_ms", t->full_ms);
    measured(l, "call_us", t->call_us);
    return end_line(g, l);
}

/* times ------------------------------------------------------------------------------------------------------ */

static void time_cell(char *cell, enum nla_task task, int64_t d, int64_t n, int64_t k, const nla_method *method)
{
    char label[64];
    nla_method_label(method, label, sizeof label);
    snprintf(cell, CELL, "time/%s/%" PRId64 "x%" PRId64 "/k%" PRId64 "/%s", nla_task_names[task], d, n, k, label);
}

static int time_sketch(grid *g, const group *in, int64_t k, const nla_method *method, const char *cell)
{
    const baseline *b = nla_baseline(&g->m, method);
    baseline_problem p = {g->m.g, g->m.context, FS_SPEC_INIT, NULL, in->n, 0, FS_F32, PRODUCT_F32};
    fs_sketch *S;
    void *state = NULL;
    nla_times times;
    nla_line line;
    if (nla_sketch(method, in->d, k, 0, &p.spec, &S)) return 1;
    p.S = S;
    int bad = b->open(&state, &p) || g->m.measure(&g->m, b, state, &p, &times);
    b->close(state);
    fs_sketch_destroy(S);
    if (bad) return 1;
    start_line(&line, cell, "time", TASK_SKETCH, method, in->d, in->n, k);
    return write_times(g, &line, &times);
}

static int time_fit(grid *g, const nla_matrix *a, int64_t k, const nla_method *method, enum nla_task task,
                    const char *cell)
{
    nla_times times;
    nla_line line;
    if (nla_measure_fit(&g->m, method, a, k, task, &times)) return 1;
    start_line(&line, cell, "time", task, method, a->set.d, a->set.n, k);
    nla_line_word(&line, "data", a->set.source->name);
    return write_times(g, &line, &times);
}

/* Times of one task; matrix: the data for ridge and solve. */
static void run_times(grid *g, const group *in, enum nla_task task, const nla_matrix *a)
{
    for (int i = 0; i < g->o->k_count; i++)
        for (int j = 0; j < nla_method_count; j++) {
            const nla_method *method = &nla_methods[j];
            const int64_t k = g->o->k[i];
            char cell[CELL], label[64];
            if (!exists(g, method, in->d, k)) continue;
            nla_method_label(method, label, sizeof label);
            step(g, "time", in->d, in->n, k, label);
            time_cell(cell, task, in->d, in->n, k, method);
            if (nla_record_has(&g->record, cell, -1)) continue;
            if (task == TASK_SKETCH ? !time_sketch(g, in, k, method, cell) : !time_fit(g, a, k, method, task, cell))
                continue;
            fprintf(stderr, "fsbench: %s has no result\n", cell);
            g->failed = 1;
        }
}

/* errors ----------------------------------------------------------------------------------------------------- */

static void error_cell(char *cell, enum nla_task task, const char *data, const group *in, int64_t k,
                       const nla_method *method)
{
    char label[64];
    nla_method_label(method, label, sizeof label);
    snprintf(cell, CELL, "error/%s/%s/%" PRId64 "x%" PRId64 "/k%" PRId64 "/%s", nla_task_names[task], data, in->d,
             in->n, k, label);
}

/* Which error tasks of a matrix lack this seed. */
static unsigned missing(const grid *g, const group *in, const data_source *source, int64_t k, const nla_method *method,
                        int seed)
{
    unsigned tasks = 0;
    for (int t = 0; t < ERROR_TASKS; t++) {
        char cell[CELL];
        error_cell(cell, errors_of[t], source->name, in, k, method);
        if (g->o->tasks & 1u << errors_of[t] && !nla_record_has(&g->record, cell, seed)) tasks |= 1u << errors_of[t];
    }
    return tasks;
}

/* What the seeds of one k and method gave on one matrix. */
typedef struct results {
    int count[ERROR_TASKS];
    double seed_of[ERROR_TASKS][NLA_SEEDS], error[ERROR_TASKS][NLA_RHS][NLA_SEEDS];
} results;

static void keep(results *r, unsigned tasks, int seed, const nla_errors *e)
{
    const double values[ERROR_TASKS][NLA_RHS] = {
        {e->gram, NAN}, {e->ose, NAN}, {e->ridge[0], e->ridge[1]}, {e->solve[0], e->solve[1]}};
    for (int t = 0; t < ERROR_TASKS; t++) {
        if (!(tasks & 1u << errors_of[t])) continue;
        r->seed_of[t][r->count[t]] = seed;
        for (int side = 0; side < NLA_RHS; side++) r->error[t][side][r->count[t]] = values[t][side];
        r->count[t]++;
    }
}

static int write_errors(grid *g, const group *in, const nla_matrix *a, int64_t k, const nla_method *method,
                        const results *r)
{
    for (int t = 0; t < ERROR_TASKS; t++) {
        char cell[CELL];
        nla_line line;
        const int fit = errors_of[t] >= TASK_RIDGE;
        if (!r->count[t]) continue;
        error_cell(cell, errors_of[t], a->set.source->name, in, k, method);
        start_line(&line, cell, "error", errors_of[t], method, in->d, in->n, k);
        nla_line_word(&line, "data", a->set.source->name);
        nla_line_whole(&line, "data_seed", (int64_t)a->set.seed);
        nla_line_numbers(&line, "seeds", r->seed_of[t], r->count[t]);
        nla_line_numbers(&line, "error", r->error[t][0], r->count[t]);
        if (fit) {
            nla_line_numbers(&line, "noisy", r->error[t][1], r->count[t]);
            nla_line_number(&line, "best_noisy", a->best[1] / a->b_norm[1]);
        }
        if (end_line(g, &line)) return 1;
    }
    return 0;
}

/* One S on all matrices that lack it. */
static int draw(grid *g, const group *in, nla_matrix *matrices, nla_room *room, int64_t k, const nla_method *method,
                int seed, results *all)
{
    const baseline *b = nla_baseline(&g->m, method);
    baseline_problem p = {g->m.g, g->m.context, FS_SPEC_INIT, NULL, room->wide, 0, FS_F32, PRODUCT_F32};
    fs_sketch *S = NULL;
    void *state = NULL;
    int needed = 0, bad = 0;
    for (int i = 0; i < in->count; i++) needed |= missing(g, in, in->sources[i], k, method, seed) != 0;
    if (!needed) return 0;
    if (nla_sketch(method, in->d, k, (uint64_t)seed, &p.spec, &S)) return bench_fs_failed(FS_EINVAL, "making a sketch");
    p.S = S;
    bad = b->open(&state, &p) || (b->prepare && b->prepare(state));
    for (int i = 0; i < in->count && !bad; i++) {
        const unsigned tasks = missing(g, in, in->sources[i], k, method, seed);
        nla_errors errors;
        if (!tasks) continue;
        bad = b->run(state, matrices[i].W, room->YW) ||
              nla_errors_of(&g->m, room, &matrices[i], method->textbook, tasks, &errors);
        if (!bad) keep(&all[i], tasks, seed, &errors);
    }
    b->close(state);
    fs_sketch_destroy(S);
    return bad;
}

static int run_method(grid *g, const group *in, nla_matrix *matrices, nla_room *room, int64_t k,
                      const nla_method *method)
{
    results *all = calloc((size_t)in->count, sizeof *all);
    int bad = !all;
    for (int seed = g->o->first_seed; seed <= g->o->last_seed && !bad; seed++)
        bad = draw(g, in, matrices, room, k, method, seed, all);
    /* Results from before a failure are kept. */
    for (int i = 0; i < in->count && all; i++) bad |= write_errors(g, in, &matrices[i], k, method, &all[i]);
    free(all);
    return bad;
}

/* Whether anything is left to do at this k; every pair counts as a step. */
static int left_at(grid *g, const group *in, int64_t k)
{
    int left = 0;
    for (int j = 0; j < nla_method_count; j++) {
        if (nla_methods[j].same_S || !exists(g, &nla_methods[j], in->d, k)) continue;
        for (int i = 0; i < in->count; i++)
            for (int seed = g->o->first_seed; seed <= g->o->last_seed; seed++)
                left |= missing(g, in, in->sources[i], k, &nla_methods[j], seed) != 0;
    }
    return left;
}

static void run_errors(grid *g, const group *in, nla_matrix *matrices)
{
    for (int i = 0; i < g->o->k_count; i++) {
        const int64_t k = g->o->k[i];
        nla_room room = {0};
        const int left = left_at(g, in, k);
        int bad = left && nla_room_open(&g->m, &matrices[0], k, g->o->tasks, &room);
        for (int j = 0; j < nla_method_count && !bad; j++) {
            char label[64];
            const nla_method *method = &nla_methods[j];
            if (method->same_S || !exists(g, method, in->d, k)) continue;
            nla_method_label(method, label, sizeof label);
            step(g, "errors", in->d, in->n, k, label);
            if (!left || !run_method(g, in, matrices, &room, k, method)) continue;
            fprintf(stderr,
                    "fsbench: the errors of %s at %" PRId64 " x %" PRId64 ", k = %" PRId64
                    " have no result, or not all\n",
                    label, in->d, in->n, k);
            g->failed = 1;
        }
        if (left) nla_room_close(&g->m, &room);
        g->failed |= bad;
    }
}

/* groups ----------------------------------------------------------------------------------------------------- */

static int fit_times_left(grid *g, const group *in)
{
    for (int task = TASK_RIDGE; task <= TASK_SOLVE; task++)
        for (int i = 0; i < g->o->k_count; i++)
            for (int j = 0; j < nla_method_count; j++) {
                char cell[CELL];
                time_cell(cell, (enum nla_task)task, in->d, in->n, g->o->k[i], &nla_methods[j]);
                if (g->o->tasks & 1u << task && exists(g, &nla_methods[j], in->d, g->o->k[i]) &&
                    !nla_record_has(&g->record, cell, -1))
                    return 1;
            }
    return 0;
}

static void run_group(grid *g, const group *in)
{
    nla_matrix *matrices = calloc((size_t)in->count, sizeof *matrices);
    int left = 0, bad = !matrices;
    if (g->o->tasks & 1u << TASK_SKETCH) run_times(g, in, TASK_SKETCH, NULL);
    for (int i = 0; i < g->o->k_count; i++) left |= left_at(g, in, g->o->k[i]);
    left |= fit_times_left(g, in);
    for (int i = 0; i < in->count && left && !bad; i++) {
        const data_set set = data_set_of(in->sources[i], in->d, in->n);
        bad = nla_matrix_make(&g->m, &set, g->o->tasks, &matrices[i]);
        if (bad)
            fprintf(stderr, "fsbench: %s at %" PRId64 " x %" PRId64 " has no results\n", set.source->name, in->d,
                    in->n);
    }
    if (!bad && left) {
        run_errors(g, in, matrices);
        for (int task = TASK_RIDGE; task <= TASK_SOLVE; task++)
            if (g->o->tasks & 1u << task) run_times(g, in, (enum nla_task)task, &matrices[0]);
    }
    for (int i = 0; i < in->count && matrices; i++)
        if (matrices[i].W) nla_matrix_free(&g->m, &matrices[i]);
    free(matrices);
    g->failed |= bad;
}

/* Shapes with all data that have none of their own, then the files in theirs. */
static int make_groups(const nla_options *o, group *groups)
{
    int count = 0;
    for (int i = 0; i < o->shape_count; i++) {
        group *in = &groups[count];
        *in = (group){.d = o->shapes[i][0], .n = o->shapes[i][1]};
        for (int j = 0; j < o->source_count; j++)
            if (!o->sources[j].d) in->sources[in->count++] = &o->sources[j];
        count += in->count > 0;
    }
    for (int j = 0; j < o->source_count; j++)
        if (o->sources[j].d) {
            group *in = &groups[count++];
            *in = (group){.d = o->sources[j].d, .n = o->sources[j].n, .count = 1};
            in->sources[0] = &o->sources[j];
        }
    return count;
}

static int64_t count_steps(const grid *g, const group *groups, int count)
{
    int64_t steps = 0;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < g->o->k_count; j++)
            for (int m = 0; m < nla_method_count; m++) {
                if (!exists(g, &nla_methods[m], groups[i].d, g->o->k[j])) continue;
                for (int task = 0; task < TASKS; task++)
                    steps += g->o->tasks >> task & 1 && (task == TASK_SKETCH || task >= TASK_RIDGE);
                steps += !nla_methods[m].same_S && g->o->tasks & ~(1u << TASK_SKETCH);
            }
    return steps;
}

int nla_grid(const nla_options *o)
{
    group *groups = calloc(2 * NLA_LIST, sizeof *groups);
    grid g = {.o = o};
#ifdef FS_BENCH_CUDA
    g.m = o->cuda ? nla_gpu : nla_cpu;
#else
    g.m = nla_cpu;
#endif
    if (!groups) return 1;
    const int count = make_groups(o, groups);
    /* Reads the record first, so that a broken one is refused before anything is measured. */
    int failed = nla_record_open(&g.record, o->record, "randnla") || g.m.open(&g.m, o);
    if (!failed) {
        g.steps = count_steps(&g, groups, count);
        g.start = bench_now();
        g.bar = progress_start(1, o->quiet);
        for (int i = 0; i < count; i++) run_group(&g, &groups[i]);
        progress_end(&g.bar);
    }
    g.m.close(&g.m);
    failed |= nla_record_close(&g.record);
    free(groups);
    return failed | g.failed;
}
