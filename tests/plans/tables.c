/* tables.c - properties of tables of measured plans: they are read as written, and damaged ones are rejected. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plans.h"

/* tables ------------------------------------------------------------------------------------------------------ */

/* A table being written; it is removed when it has been read. */
typedef struct draft {
    char path[40];
    FILE *file;
} draft;

static draft draft_open(void)
{
    draft t = {"/tmp/flashsketch-choose-XXXXXX", NULL};
    const int descriptor = mkstemp(t.path);
    if (descriptor < 0 || !(t.file = fdopen(descriptor, "w"))) fail_msg("no temporary file");
    return t;
}
static fsi_tuning *draft_read(draft *t, char *why, size_t bytes)
{
    assert_int_equal(fclose(t->file), 0);
    fsi_tuning *table = fsi_tuning_read(t->path, why, bytes);
    unlink(t->path);
    return table;
}
static fsi_tuning *table_of(const fsi_problem *p, const fsi_plan *plan, char *why, size_t bytes)
{
    draft t = draft_open();
    fsi_tuning_write_head(t.file, "some GPU");
    fsi_tuning_write(t.file, p, plan);
    return draft_read(&t, why, bytes);
}

/* Problems that the properties of tables are tried on, one of each kernel and GPU at least. */
static const call table_calls[] = {
    {65536, 1024, 16, 1, 4, SHUFFLED, 0, 0, 65536, 1024, FS_F32, FULL, PACKED},
    {65536, 4096, 0, 4, 8, SHUFFLED, 0, 0, 65536, 512, FS_BF16, FULL, PACKED},
    {262144, 1024, 0, 2, 2, NONE, 0, 0, 262144, 64, FS_F32, FAST, PACKED},
    {262144, 1024, 16, 1, 4, GROUPED, 0, 100, 200000, 300, FS_F16, FULL, BATCH},
    {262144, 1024, 16, 1, 4, GROUPED, 16, 100, 200000, 300, FS_F32, FULL, BATCH},
    {16777216, 1024, 0, 1, 4, SHUFFLED, 0, 0, 16777216, 1, FS_F32, FULL, PACKED},
    {16777216, 4096, 0, 1, 4, NONE, 0, 0, 16777216, 16, FS_BF16, FULL, PACKED},
    {100, 200, 0, 3, 1, SHUFFLED, 0, 0, 100, 7, FS_F64, FULL, ODD},
};

static void a_table_takes_every_candidate(void **state)
{
    (void)state;
    call c;
    const gpu_kind *gpu;
    char why[512] = "";
    for (int64_t i = 0; sweep(i, &c, &gpu); i += 3 * WIDE_STEP) {
        fsi_plan plans[ROOM];
        const fsi_problem p = problem_of_call(&c);
        const int count = fsi_choose_candidates(&p, &gpu->traits, plans, ROOM);
        for (int j = 0; j < count; j++) {
            fsi_tuning *table = table_of(&p, &plans[j], why, sizeof why);
            if (!table) fail_msg("%s: %s: %s", say_call(&c, gpu), say_plan(&plans[j]), why);
            const fsi_plan chosen = fsi_choose(&p, &gpu->traits, table);
            free(table);
            if (!same_plan(&chosen, &plans[j])) {
                print_error("%s: written was %s\n", say_call(&c, gpu), say_plan(&plans[j]));
                fail_msg("chosen is %s", say_plan(&chosen));
            }
        }
    }
}

/* A candidate that the rules do not choose. */
static fsi_plan other_plan(const call *c, const fsi_problem *p, const gpu_kind *gpu)
{
    fsi_plan plans[ROOM];
    const fsi_plan own = fsi_choose(p, &gpu->traits, NULL);
    const int count = fsi_choose_candidates(p, &gpu->traits, plans, ROOM);
    for (int i = count - 1; i >= 0; i--)
        if (!same_plan(&plans[i], &own)) return plans[i];
    fail_msg("%s: there is only one plan", say_call(c, gpu));
    return own;
}

static void expect_rules(const char *field, const fsi_problem *p, const gpu_kind *gpu, const fsi_tuning *table)
{
    const fsi_plan chosen = fsi_choose(p, &gpu->traits, table), own = fsi_choose(p, &gpu->traits, NULL);
    if (!same_plan(&chosen, &own))
        fail_msg("%s: an entry was chosen for a problem with another %s: %s", gpu->name, field, say_plan(&chosen));
}

static void an_entry_is_chosen_for_its_problem_and_no_other(void **state)
{
    (void)state;
    char why[512] = "";
    for (int i = 0; i < COUNT(table_calls); i++)
        for (int g = 0; g < GPUS; g++) {
            const call *c = &table_calls[i];
            const fsi_problem p = problem_of_call(c);
            const fsi_plan plan = other_plan(c, &p, &gpus[g]);
            fsi_tuning *table = table_of(&p, &plan, why, sizeof why);
            if (!table) fail_msg("%s: %s: %s", say_call(c, &gpus[g]), say_plan(&plan), why);
            const fsi_plan chosen = fsi_choose(&p, &gpus[g].traits, table);
            if (!same_plan(&chosen, &plan)) fail_msg("%s: not chosen: %s", say_call(c, &gpus[g]), say_plan(&plan));
#define WITH_ANOTHER(field, value) \
    do { \
        fsi_problem other = p; \
        other.field = (value); \
        expect_rules(#field, &other, &gpus[g], table); \
    } while (0)
            WITH_ANOTHER(rows, p.rows + 32);
            WITH_ANOTHER(n, p.n + 16);
            WITH_ANOTHER(k, p.k + 1);
            WITH_ANOTHER(M, p.M + 1);
            WITH_ANOTHER(kappa, p.kappa + 2);
            WITH_ANOTHER(s, p.s + 1);
            WITH_ANOTHER(interleave, 2 * p.interleave);
            WITH_ANOTHER(block_rows, p.block_rows - 1);
            WITH_ANOTHER(tiles, p.tiles + 1);
            WITH_ANOTHER(tile_rows, p.tile_rows - 1);
            WITH_ANOTHER(tile_nonzeros, p.tile_nonzeros + 1);
            WITH_ANOTHER(local_rows, p.local_rows + 1);
            WITH_ANOTHER(shuffle, p.shuffle % FSI_DEF_GROUPS + 1);
            WITH_ANOTHER(dtype, p.dtype == FS_F32 ? FS_F16 : FS_F32);
            WITH_ANOTHER(precision, p.precision == FS_PRECISION_FAST ? FS_PRECISION_FULL : FS_PRECISION_FAST);
            WITH_ANOTHER(across, !p.across);
            WITH_ANOTHER(down, !p.down);
            WITH_ANOTHER(aligned, !p.aligned);
            WITH_ANOTHER(whole, !p.whole);
            WITH_ANOTHER(input, FSI_INPUT_GATHERED);
#undef WITH_ANOTHER
            free(table);
        }
}

/* Each entry is found, whatever comments and empty lines lie between them. */
static void a_table_may_have_many_entries_and_comments(void **state)
{
    (void)state;
    char why[512] = "";
    fsi_plan plans[COUNT(table_calls)];
    draft t = draft_open();
    fsi_tuning_write_head(t.file, "some GPU");
    for (int i = 0; i < COUNT(table_calls); i++) {
        const fsi_problem p = problem_of_call(&table_calls[i]);
        plans[i] = other_plan(&table_calls[i], &p, &gpus[H200]);
        fprintf(t.file, "# entry %d\n\n", i);
        fsi_tuning_write(t.file, &p, &plans[i]);
    }
    fsi_tuning *table = draft_read(&t, why, sizeof why);
    if (!table) fail_msg("%s", why);
    for (int i = 0; i < COUNT(table_calls); i++) {
        const fsi_problem p = problem_of_call(&table_calls[i]);
        const fsi_plan chosen = fsi_choose(&p, &gpus[H200].traits, table);
        if (!same_plan(&chosen, &plans[i])) fail_msg("entry %d is not chosen", i);
    }
    free(table);
}

/* A table may come from another machine. */
static void an_entry_that_this_gpu_cannot_run_is_not_chosen(void **state)
{
    (void)state;
    char why[512] = "";
    for (int i = 0; i < COUNT(table_calls); i++)
        for (int from = 0; from < GPUS; from++) {
            fsi_plan plans[ROOM];
            const call *c = &table_calls[i];
            const fsi_problem p = problem_of_call(c);
            const int count = fsi_choose_candidates(&p, &gpus[from].traits, plans, ROOM);
            for (int j = 0; j < count; j++) {
                fsi_tuning *table = table_of(&p, &plans[j], why, sizeof why);
                if (!table) fail_msg("%s: %s: %s", say_call(c, &gpus[from]), say_plan(&plans[j]), why);
                for (int to = 0; to < GPUS; to++) {
                    const fsi_plan chosen = fsi_choose(&p, &gpus[to].traits, table);
                    expect_fits("chosen from a table of another GPU", c, &gpus[to], &p, &chosen);
                }
                free(table);
            }
        }
}

/* damaged tables ---------------------------------------------------------------------------------------------- */

typedef enum plan_field {
#define NAME(field) FIELD_##field,
    PLAN_FIELDS(NAME)
#undef NAME
        PLAN_FIELD_COUNT
} plan_field;
static const char *const plan_field_names[] = {
#define NAME(field) #field,
    PLAN_FIELDS(NAME)
#undef NAME
};
static int64_t get_field(const fsi_plan *plan, plan_field which)
{
#define GET(field) \
    if (which == FIELD_##field) return (int64_t)plan->field;
    PLAN_FIELDS(GET)
#undef GET
    return 0;
}
static void set_field(fsi_plan *plan, plan_field which, int64_t value)
{
#define SET(field) \
    if (which == FIELD_##field) plan->field = value;
    PLAN_FIELDS(SET)
#undef SET
}

/* How a block's local rows are cut into slices, and whether those are clusters, may be edited, within what fits; nothing
 * else may, because everything else follows from the kernel's instance and the problem. */
static int may_be_edited(plan_field which)
{
    return which == FIELD_slices || which == FIELD_length || which == FIELD_cluster;
}

static void an_edited_plan_is_refused_or_still_fits(void **state)
{
    (void)state;
    char why[512] = "";
    for (int i = 0; i < COUNT(table_calls); i++)
        for (int g = 0; g < GPUS; g++) {
            fsi_plan plans[ROOM];
            const call *c = &table_calls[i];
            const fsi_problem p = problem_of_call(c);
            const int count = fsi_choose_candidates(&p, &gpus[g].traits, plans, ROOM);
            for (int j = 0; j < count; j++)
                for (plan_field which = 0; which < PLAN_FIELD_COUNT; which++) {
                    const int64_t old = get_field(&plans[j], which);
                    const int64_t values[] = {-old,    0,       1,       2,       3,        old - 1,    old + 1,
                                              old + 8, 2 * old, 4 * old, old / 2, old + 32, 0x7FFFFFFF, INT64_MAX};
                    for (int v = 0; v < COUNT(values); v++) {
                        fsi_plan edited = plans[j];
                        set_field(&edited, which, values[v]);
                        if (same_plan(&edited, &plans[j])) continue;
                        fsi_tuning *table = table_of(&p, &edited, why, sizeof why);
                        const int taken = table != NULL;
                        free(table);
                        if (!taken) continue;
                        const char *fault = may_be_edited(which) ? fault_of(&p, &edited, &gpus[g].traits)
                                                                 : "it follows from the others";
                        if (fault)
                            fail_msg("%s: %s edited from %" PRId64 " was taken: %s: %s", say_call(c, &gpus[g]),
                                     plan_field_names[which], old, fault, say_plan(&edited));
                    }
                }
        }
}

/* Of simt_generic.cu every number of a plan follows from its threads, so all may be edited together and agree: between two
 * plans that differ in their threads alone, shared memory grows evenly with them. */
static void threads_that_make_no_teams_are_refused(void **state)
{
    (void)state;
    char why[512] = "";
    const call *c = &table_calls[0];
    const fsi_problem p = problem_of_call(c);
    fsi_plan plans[ROOM], few = {0}, many = {0};
    const int count = fsi_choose_candidates(&p, &gpus[H200].traits, plans, ROOM);
    for (int i = 0; i < count; i++) {
        if (plans[i].kernel != FSI_KERNEL_SIMT_GENERIC || fsi_plan_width(&plans[i]) != plans[i].team) continue;
        if (plans[i].threads == 64) few = plans[i];
        if (plans[i].threads == 128) many = plans[i];
    }
    assert_true(few.threads == 64 && many.threads == 128 && few.chunk == many.chunk && few.group == many.group);
    for (int threads = 65; threads < 128; threads++)
        for (int team = 1; team <= 128; team *= 2) {
            fsi_plan edited = few;
            edited.threads = threads;
            edited.team = team;
            edited.shared += (many.shared - few.shared) * (threads - 64) / 64;
            fsi_tuning *table = table_of(&p, &edited, why, sizeof why);
            const int taken = table != NULL;
            free(table);
            if (taken) expect_fits("taken from a table", c, &gpus[H200], &p, &edited);
        }
}

/* Fails the test unless a file was rejected with an error message that names it and, unless it is 0, the line. */
static void expect_refused(const char *what, fsi_tuning *table, const char *path, int line, const char *why)
{
    char named[32];
    const int taken = table != NULL;
    free(table);
    if (taken) fail_msg("%s: taken for a table", what);
    if (!strstr(why, path)) fail_msg("%s: \"%s\" does not name the file %s", what, why, path);
    snprintf(named, sizeof named, "line %d ", line);
    if (line && !strstr(why, named)) fail_msg("%s: \"%s\" does not name line %d", what, why, line);
}
static void expect_path_refused(const char *what, const char *path)
{
    char why[512] = "";
    fsi_tuning *table = fsi_tuning_read(path, why, sizeof why);
    expect_refused(what, table, path, 0, why);
}
static void expect_draft_refused(const char *what, draft *t, int line)
{
    char why[512] = "";
    fsi_tuning *table = draft_read(t, why, sizeof why);
    expect_refused(what, table, t->path, line, why);
}
static void expect_text_refused(const char *what, const char *text, int line)
{
    draft t = draft_open();
    fputs(text, t.file);
    expect_draft_refused(what, &t, line);
}

/* A good table: head, comment, entry; its entry is line 3. */
static char *good_text(void)
{
    const fsi_problem p = problem_of_call(&table_calls[0]);
    const fsi_plan plan = fsi_choose(&p, &gpus[H200].traits, NULL);
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    assert_non_null(f);
    fsi_tuning_write_head(f, "some GPU");
    fputs("# a comment\n", f);
    fsi_tuning_write(f, &p, &plan);
    assert_int_equal(fclose(f), 0);
    return text;
}

static void what_is_no_table_is_refused(void **state)
{
    (void)state;
    expect_path_refused("a missing file", "/nonexistent/flashsketch-tuning.txt");
    expect_path_refused("a directory", "/tmp");
    expect_text_refused("an empty file", "", 1);
    expect_text_refused("an empty line", "\n", 1);
    expect_text_refused("another kind of file", "{\"this\": \"is no table\"}\n", 1);
    expect_text_refused("half a head", "flashsketch-tun", 1);
}

static void another_head_is_refused(void **state)
{
    (void)state;
    char *good = good_text(), *text = room((int64_t)strlen(good) + 100, 1);
    const char *entries = strchr(good, '\n');
    static const char *const heads[] = {"",
                                        " flashsketch-tuning 7 GPU",
                                        "flashsketch-tuning 6 GPU",
                                        "flashsketch-tuning 70 GPU",
                                        "flashsketch-tuning",
                                        "FLASHSKETCH-TUNING 6 GPU"};
    for (int i = 0; i < COUNT(heads); i++) {
        sprintf(text, "%s%s", heads[i], entries);
        char what[80];
        snprintf(what, sizeof what, "the head '%s'", heads[i]);
        expect_text_refused(what, text, 1);
    }
    free(text);
    free(good);
}

/* Cut anywhere, also within its last number. */
static void a_truncated_entry_is_refused(void **state)
{
    (void)state;
    char *good = good_text();
    const char *entry = strchr(strchr(good, '\n') + 1, '\n') + 1;
    const size_t start = (size_t)(entry - good), end = strlen(good) - 1;
    for (size_t length = start + 1; length < end; length++) {
        char *text = room((int64_t)length + 1, 1), what[64];
        memcpy(text, good, length);
        text[length] = 0;
        snprintf(what, sizeof what, "an entry cut after %zu of %zu characters", length - start, end - start);
        expect_text_refused(what, text, 3);
        free(text);
    }
    free(good);
}

static void a_spoilt_line_is_refused_and_named(void **state)
{
    (void)state;
    static const struct {
        const char *what, *before, *after;
        int line;
    } spoilt[] = {
        {"more behind an entry", "", " and more\n", 3},
        {"another number behind an entry", "", " slices=7\n", 3},
        {"more before an entry", "x", "\n", 3},
        {"a line after a good entry", "", "\nmore\n", 4},
        {"an empty line, then another that is no entry", "\n", "\nmore\n", 5},
        {"a binary line", "\x7f\x45\x4c\x46\x02\x01\n", "\n", 3},
    };
    char *good = good_text(), *text = room((int64_t)strlen(good) + 100, 1);
    char *entry = strchr(strchr(good, '\n') + 1, '\n') + 1;
    entry[strlen(entry) - 1] = 0;
    for (int i = 0; i < COUNT(spoilt); i++) {
        sprintf(text, "%.*s%s%s%s", (int)(entry - good), good, spoilt[i].before, entry, spoilt[i].after);
        expect_text_refused(spoilt[i].what, text, spoilt[i].line);
    }
    free(text);
    free(good);
}

/* The first plan of a kernel that an H200 could try. */
static fsi_plan candidate_of(const fsi_problem *p, fsi_kernel_id kernel)
{
    fsi_plan plans[ROOM];
    const int count = fsi_choose_candidates(p, &gpus[H200].traits, plans, ROOM);
    for (int i = 0; i < count; i++)
        if (plans[i].kernel == kernel) return plans[i];
    fail_msg("%s is no candidate", fsi_kernel_of(kernel)->name);
    return plans[0];
}

/* Kernels are recorded by name. */
static void an_unknown_kernel_is_refused(void **state)
{
    (void)state;
    char *good = good_text(), *name = strstr(good, "kernel=wgmma_rows ");
    assert_non_null(name);
    memcpy(name, "kernel=wgmma_cols ", 18);
    expect_text_refused("the kernel wgmma_cols", good, 3);
    memcpy(name, "kernel=3           ", 18);
    expect_text_refused("a kernel by number", good, 3);
    free(good);
}

#ifndef FS_FEW_INSTANCES
/* A tile of rows that a tensor map brings is whole groups of 128 bytes, or no wider than the matrix. */
static void plans_of_tensor_maps_are_for_matrices_as_wide_as_a_tile(void **state)
{
    (void)state;
    const call wide = {65536, 1024, 8, 1, 8, SHUFFLED, 0, 0, 65536, 1024, FS_F64, FULL, PACKED};
    call narrow = wide;
    narrow.n = 40;
    const fsi_problem p = problem_of_call(&wide), q = problem_of_call(&narrow);
    const fsi_plan plan = fsi_choose(&p, &gpus[H200].traits, NULL);
    assert_int_equal(plan.kernel, FSI_KERNEL_ROTATE_ROWS_SIMT);
    assert_true(p.mapped && q.mapped);
    assert_true(fsi_plan_sound(&p, &plan));
    if (fsi_plan_sound(&q, &plan)) fail_msg("%s: %s is sound", say_call(&narrow, &gpus[H200]), say_plan(&plan));
}

/* Two slices are a cluster, or persistent thread blocks take both; not both. */
static void persistent_thread_blocks_are_no_cluster(void **state)
{
    (void)state;
    char why[512] = "";
    const fsi_problem p = problem_of_call(&table_calls[0]);
    fsi_plan plans[ROOM], pair = {0}, persistent = {0};
    const int count = fsi_choose_candidates(&p, &gpus[H200].traits, plans, ROOM);
    for (int i = 0; i < count; i++) {
        if (plans[i].kernel != FSI_KERNEL_WGMMA_ROWS || fsi_plan_width(&plans[i]) != 256) continue;
        if (plans[i].cluster == 2) pair = plans[i];
        if (fsi_plan_is_persistent(&plans[i])) persistent = plans[i];
    }
    assert_true(pair.cluster == 2 && pair.slices == 2 && persistent.kernel == FSI_KERNEL_WGMMA_ROWS);
    pair.instance = persistent.instance;
    pair.shared = persistent.shared;
    assert_null(table_of(&p, &pair, why, sizeof why));
    pair.cluster = 1;
    fsi_tuning *table = table_of(&p, &pair, why, sizeof why);
    if (!table) fail_msg("%s: %s", say_plan(&pair), why);
    free(table);
    expect_fits("taken from a table", &table_calls[0], &gpus[H200], &p, &pair);
}
#endif

/* Whole entries whose plan the problem or the kernels cannot have. */
static void an_impossible_plan_is_refused_and_named(void **state)
{
    (void)state;
    const call f64 = {65536, 1024, 16, 1, 4, SHUFFLED, 0, 0, 65536, 1024, FS_F64, FULL, PACKED};
    const call shifted = {65536, 1024, 16, 1, 4, SHUFFLED, 0, 0, 65536, 1024, FS_F32, FULL, SHIFTED};
    const call batch = {262144, 1024, 16, 1, 4, GROUPED, 16, 100, 200000, 300, FS_F32, FULL, BATCH};
    const fsi_problem rows = problem_of_call(&table_calls[0]), lines = problem_of_call(&batch),
                      p64 = problem_of_call(&f64), unaligned = problem_of_call(&shifted);
    const fsi_kernel_id kernels[] = {FSI_KERNEL_WGMMA_ROWS, FSI_KERNEL_WGMMA_GROUPS, FSI_KERNEL_MMA_ROWS,
                                     FSI_KERNEL_SIMT_GENERIC, FSI_KERNEL_GATHER_ROWS_SIMT};
    const fsi_plan columns = candidate_of(&rows, FSI_KERNEL_SIMT_GENERIC);
    struct {
        const char *what;
        fsi_problem p;
        fsi_plan plan;
    } wrong[80];
    int count = 0;
#define WRONG(problem, base, field, value) \
    do { \
        wrong[count].what = #field " = " #value " of " #base; \
        wrong[count].p = problem; \
        wrong[count].plan = base; \
        wrong[count++].plan.field = value; \
    } while (0)
    for (int i = 0; i < COUNT(kernels); i++) {
        const fsi_problem p = kernels[i] == FSI_KERNEL_WGMMA_GROUPS ? lines : rows;
        const fsi_plan plan = candidate_of(&p, kernels[i]);
        WRONG(p, plan, slices, 0);
        WRONG(p, plan, slices, -plan.slices);
        WRONG(p, plan, length, 0);
        WRONG(p, plan, instance, -1);
        WRONG(p, plan, instance, 1000);
        WRONG(p, plan, shared, plan.shared + 16);
        WRONG(p, plan, shared, 0);
        WRONG(p, plan, kernel, FSI_KERNEL_NONE);
        WRONG(p, plan, kernel, (fsi_kernel_id)99);
        WRONG(p, plan, kernel, FSI_KERNEL_SORTED_NONZEROS);
        /* Kernels, instances and vectors that another problem has. */
        WRONG(p64, plan, kernel, plan.kernel);
        const int vectors = plan.kernel != FSI_KERNEL_SIMT_GENERIC || fsi_plan_width(&plan) > plan.team;
        if (vectors) WRONG(unaligned, plan, kernel, plan.kernel);
    }
#undef WRONG
    assert_true(count <= COUNT(wrong));
    for (int i = 0; i < count; i++) {
        draft t = draft_open();
        fsi_tuning_write_head(t.file, "some GPU");
        fsi_tuning_write(t.file, &rows, &columns);
        fsi_tuning_write(t.file, &wrong[i].p, &wrong[i].plan);
        char what[600];
        snprintf(what, sizeof what, "%s: %s", wrong[i].what, say_plan(&wrong[i].plan));
        expect_draft_refused(what, &t, 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_takes_every_candidate),
        cmocka_unit_test(an_entry_is_chosen_for_its_problem_and_no_other),
        cmocka_unit_test(a_table_may_have_many_entries_and_comments),
        cmocka_unit_test(an_entry_that_this_gpu_cannot_run_is_not_chosen),
        cmocka_unit_test(an_edited_plan_is_refused_or_still_fits),
        cmocka_unit_test(threads_that_make_no_teams_are_refused),
        cmocka_unit_test(what_is_no_table_is_refused),
        cmocka_unit_test(another_head_is_refused),
        cmocka_unit_test(a_truncated_entry_is_refused),
        cmocka_unit_test(a_spoilt_line_is_refused_and_named),
        cmocka_unit_test(an_unknown_kernel_is_refused),
#ifndef FS_FEW_INSTANCES
        cmocka_unit_test(plans_of_tensor_maps_are_for_matrices_as_wide_as_a_tile),
        cmocka_unit_test(persistent_thread_blocks_are_no_cluster),
#endif
        cmocka_unit_test(an_impossible_plan_is_refused_and_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
