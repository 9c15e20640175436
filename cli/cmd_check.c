/* cmd_check.c - flashsketch check: is this machine right?
 *
 * Three questions.  Is S the S of the test vectors, on the CPU and on every GPU?  Do all CPU variants and GPUs find
 * the products of the reference implementation (variant ref): exactly, because the elements are integers, whose sums
 * are the same in any order?  And how good are the sketches, measured on subspaces whose bases are known? */
#include <flashsketch_tasks.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "command.h"
#include "json.h"
#include "apps/common/progress.h"
#include "spec_options.h"
#include "variant.h"

enum { JSON = 256 };

static int check_take(void *options, int code, const char *value)
{
    (void)code, (void)value;
    *(int *)options = 1;
    return 0;
}

/* What one context got right; and the whole. */
typedef struct score {
    char name[300];
    int digests; /* NONE: S is made by the same code as for another context */
    int products;
} score;
enum { NONE = -1 };
enum { MOST_CONTEXTS = 32 };
typedef struct report {
    int digests, products; /* how many there are */
    score score[MOST_CONTEXTS];
    int contexts;
    char no_gpu[400]; /* why there is none; "" where there is */
} report;

/* digests ---------------------------------------------------------------------------------------------------- */

/* src/def/vectors.txt, which says what stands in a line. */
static const char *const vectors[] = {
#include "vectors.inc"
};
enum { VECTORS = sizeof vectors / sizeof vectors[0] };

static int digest_agrees(fs_context *ctx, const char *vector)
{
    char family[16], shuffle[16];
    fs_spec p = FS_SPEC_INIT;
    int64_t col0, cols;
    uint64_t wanted, found = 0;
    fs_sketch *S = NULL;
    if (sscanf(vector,
               "%15s %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %15s %" SCNd64 " %" SCNx64 " %" SCNd64
               " %" SCNd64 " %" SCNx64,
               family, &p.d, &p.k, &p.M, &p.kappa, &p.s, shuffle, &p.interleave, &p.seed, &col0, &cols, &wanted) != 12)
        return 0;
    if (fs_family_from_name(family, &p.family) || fs_shuffle_from_name(shuffle, &p.shuffle)) return 0;
    const int agrees = !fs_sketch_create(&S, &p) && !fs_sketch_digest(ctx, S, col0, cols, &found) && found == wanted;
    fs_sketch_destroy(S);
    return agrees;
}

/* products --------------------------------------------------------------------------------------------------- */

enum { D = 1200, K = 192, N = 33 };
static const struct sort {
    fs_family family;
    fs_shuffle shuffle;
    const char *name;
} sorts[] = {
    {FS_BLOCKPERM, FS_SHUFFLE_ROWS, "blockperm (default)"},
    {FS_BLOCKPERM, FS_SHUFFLE_GROUPS, "blockperm, groups"},
    {FS_BLOCKPERM, FS_SHUFFLE_NONE, "blockperm, contiguous"},
    {FS_SJLT, (fs_shuffle)0, "sjlt"},
    {FS_BLOCKROW, (fs_shuffle)0, "blockrow"},
    {FS_SRHT, (fs_shuffle)0, "srht"},
    {FS_GAUSSIAN, (fs_shuffle)0, "gaussian"},
};
enum { SORTS = sizeof sorts / sizeof sorts[0], DTYPES = 4, LAYOUTS = 2, PRODUCTS = SORTS * DTYPES * LAYOUTS };

static fs_spec spec_of(const struct sort *sort, int64_t d, int64_t k, uint64_t seed)
{
    fs_spec spec = FS_SPEC_INIT;
    spec.family = sort->family, spec.shuffle = sort->shuffle;
    spec.d = d, spec.k = k, spec.seed = seed;
    return spec;
}

typedef struct room {
    double integers[D * N], a[D * N], y[K * N];
    double wanted[PRODUCTS][K * N];
    int is_there[PRODUCTS];
} room;

/* y = S A for the integers a_ij = (5 i + 3 j) mod 9 - 4; returns 0 after a failure. */
static int product(fs_context *ctx, const struct sort *sort, fs_dtype dtype, int batch_major, room *with, double *y)
{
    const fs_spec spec = spec_of(sort, D, K, 11);
    fs_sketch *S = NULL;
    const fs_matrix integers = fs_row_major(with->integers, D, N, FS_F64);
    fs_matrix A = batch_major ? fs_batch_major(with->a, N, D, dtype) : fs_row_major(with->a, D, N, dtype);
    fs_matrix Y = fs_row_major(y, K, N, cli_sum_dtype(dtype));
    for (int64_t i = 0; i < D; i++)
        for (int64_t j = 0; j < N; j++) with->integers[i * N + j] = (double)((5 * i + 3 * j) % 9 - 4);
    const int made = !fs_sketch_create(&S, &spec) && !fs_add(ctx, &integers, 1, 0.0, &A) &&
                     !fs_apply(ctx, S, 0, 1.0, &A, 0.0, &Y);
    fs_sketch_destroy(S);
    return made;
}

/* Element i of sums of a type. */
static double sum_at(const double *sums, fs_dtype type, int64_t i)
{
    return type == FS_F64 ? sums[i] : (double)((const float *)sums)[i];
}

/* Equal; the Gaussian's entries are no integers, so its sums may differ by their rounding: sums of D = 1200 terms
 * of at most 4 |s_ij|, |s_ij| about 0.07, are below 100, and their error below sqrt(D) roundings of that. */
static int same(const struct sort *sort, fs_dtype dtype, const double *found, const double *wanted)
{
    const fs_dtype sum = cli_sum_dtype(dtype);
    const double most = sort->family != FS_GAUSSIAN ? 0 : sum == FS_F64 ? 1e-11 : 1e-3;
    for (int64_t i = 0; i < K * N; i++)
        if (!(fabs(sum_at(found, sum, i) - sum_at(wanted, sum, i)) <= most)) return 0;
    return 1;
}

/* everything that can compute -------------------------------------------------------------------------------- */

static const struct sort *sort_of(int product) { return &sorts[product / (DTYPES * LAYOUTS)]; }
static fs_dtype dtype_of(int product) { return (fs_dtype)(FS_F32 + product / LAYOUTS % DTYPES); }

/* The first two questions, for one context. */
static void examine(report *r, fs_context *ctx, const char *name, int digests, room *with, progress *bar)
{
    score *got = &r->score[r->contexts++];
    *got = (score){.digests = digests ? 0 : NONE};
    snprintf(got->name, sizeof got->name, "%s", name);
    progress_step(bar, "%s: digests", name);
    for (int i = 0; i < VECTORS && digests; i++) got->digests += digest_agrees(ctx, vectors[i]);
    progress_step(bar, "%s: products", name);
    for (int i = 0; i < PRODUCTS; i++)
        got->products += with->is_there[i] && product(ctx, sort_of(i), dtype_of(i), i % LAYOUTS, with, with->y) &&
                         same(sort_of(i), dtype_of(i), with->y, with->wanted[i]);
}

static void examine_gpus(report *r, room *with, progress *bar)
{
    for (int device = 0; r->contexts < MOST_CONTEXTS; device++) {
        fs_context_options options = FS_CONTEXT_INIT;
        fs_context *ctx = NULL;
        char name[300];
        options.backend = FS_BACKEND_CUDA;
        options.device = device;
        if (fs_context_create(&ctx, &options)) {
            if (!device) snprintf(r->no_gpu, sizeof r->no_gpu, "%s", fs_error_message());
            return;
        }
        fs_context_describe(ctx, name, sizeof name);
        examine(r, ctx, name, 1, with, bar);
        fs_context_destroy(ctx);
    }
}

static int examine_all(report *r, progress *bar)
{
    room *with = malloc(sizeof *with);
    fs_context *reference = with ? variant_context(variant_names[0]) : NULL;
    if (!reference) {
        free(with);
        return cli_fail("no memory for %d products of %d x %d", PRODUCTS, K, N);
    }
    r->digests = VECTORS, r->products = PRODUCTS;
    progress_step(bar, "products by the reference implementation");
    for (int i = 0; i < PRODUCTS; i++)
        with->is_there[i] = product(reference, sort_of(i), dtype_of(i), i % LAYOUTS, with, with->wanted[i]);
    fs_context_destroy(reference);
    for (int i = 1; variant_names[i]; i++) {
        char name[32];
        fs_context *ctx = variant_context(variant_names[i]);
        snprintf(name, sizeof name, "cpu, variant %s", variant_names[i]);
        if (ctx) examine(r, ctx, name, i == 1, with, bar);
        fs_context_destroy(ctx);
    }
    examine_gpus(r, with, bar);
    free(with);
    return 0;
}

/* quality ---------------------------------------------------------------------------------------------------- */

enum { QD = 4096, QK = 512, QN = 32, DRAWS = 20, INPUTS = 3 };
static const char *const inputs[INPUTS] = {"spread", "neighbours", "scattered"};
/* A sketch that is sound stays within this of the expected error; 1.27 is the worst that tests/properties/quality.c knows of
 * the default.  Contiguous blocks and blockrow are there to be seen failing. */
static const double sound = 1.5;

/* Orthonormal columns: Walsh functions, spread over all rows; the first QN unit vectors; one of every QD / QN. */
static double basis_at(int input, int64_t i, int64_t j)
{
    int odd = 0;
    for (int64_t both = i & j; both; both &= both - 1) odd ^= 1;
    if (input == 0) return (odd ? -1.0 : 1.0) / sqrt((double)QD);
    return i == (input == 1 ? j : j * (QD / QN) + j * 37 % (QD / QN));
}

/* |Y'Y - I|_2: |G|_2 = lim |G^m|_F^(1/m), m = 2^8 by squaring, at most 32^(1/512), 0.7 %, too large. */
static double error_of(const double *Y)
{
    enum { SQUARINGS = 8 };
    double G[QN][QN] = {{0}}, next[QN][QN], log_norm = 0, power = 1;
    for (int r = 0; r < QK; r++)
        for (int i = 0; i < QN; i++)
            for (int j = 0; j < QN; j++) G[i][j] += Y[r * QN + i] * Y[r * QN + j];
    for (int i = 0; i < QN; i++) G[i][i] -= 1;
    for (int step = 0; step <= SQUARINGS; step++, power *= 2) {
        double sum = 0;
        for (int i = 0; i < QN * QN; i++) sum += G[i / QN][i % QN] * G[i / QN][i % QN];
        if (sum == 0) return 0;
        log_norm += log(sqrt(sum)) / power;
        memset(next, 0, sizeof next);
        for (int i = 0; i < QN; i++)
            for (int l = 0; l < QN; l++)
                for (int j = 0; j < QN; j++) next[i][j] += G[i][l] * G[l][j] / sum;
        memcpy(G, next, sizeof G);
    }
    return exp(log_norm);
}

/* The mean error over the draws, over the expected one. */
static int quality(fs_context *ctx, const struct sort *sort, int input, double *Q, double *Y, double *ratio)
{
    fs_matrix from = fs_row_major(Q, QD, QN, FS_F64), to = fs_row_major(Y, QK, QN, FS_F64);
    double total = 0;
    for (int64_t i = 0; i < QD; i++)
        for (int64_t j = 0; j < QN; j++) Q[i * QN + j] = basis_at(input, i, j);
    for (int draw = 0; draw < DRAWS; draw++) {
        const fs_spec spec = spec_of(sort, QD, QK, 1 + (uint64_t)draw);
        fs_sketch *S = NULL;
        const int failed = fs_sketch_create(&S, &spec) || fs_apply(ctx, S, 0, 1.0, &from, 0.0, &to);
        fs_sketch_destroy(S);
        if (failed) return cli_library_fail();
        total += error_of(Y);
    }
    *ratio = total / DRAWS / fs_ose_expected(QK, QN);
    return 0;
}

static int measure_quality(double ratio[SORTS][INPUTS], progress *bar)
{
    double *Q = cli_array(QD, QN, sizeof *Q), *Y = cli_array(QK, QN, sizeof *Y);
    fs_context_options cpu = FS_CONTEXT_INIT;
    fs_context *ctx = NULL;
    cpu.backend = FS_BACKEND_CPU;
    int code = Q && Y ? 0 : cli_fail("no memory for a basis of %d x %d", QD, QN);
    if (!code && fs_context_create(&ctx, &cpu)) code = cli_library_fail();
    for (int sort = 0; sort < SORTS && !code; sort++) {
        progress_step(bar, "quality: %s", sorts[sort].name);
        for (int input = 0; input < INPUTS && !code; input++)
            code = quality(ctx, &sorts[sort], input, Q, Y, &ratio[sort][input]);
    }
    fs_context_destroy(ctx);
    free(Q);
    free(Y);
    return code;
}

/* Those that are good on every input: the ones that mix all rows. */
static int must_be_sound(const struct sort *sort)
{
    return sort->family != FS_BLOCKROW && sort->shuffle != FS_SHUFFLE_NONE;
}

/* the answers ------------------------------------------------------------------------------------------------ */

static int count_wrong(const report *r, double ratio[SORTS][INPUTS])
{
    int wrong = 0;
    for (int i = 0; i < r->contexts; i++) {
        wrong += r->products - r->score[i].products;
        if (r->score[i].digests != NONE) wrong += r->digests - r->score[i].digests;
    }
    for (int sort = 0; sort < SORTS; sort++)
        for (int input = 0; input < INPUTS; input++)
            wrong += must_be_sound(&sorts[sort]) && !(ratio[sort][input] <= sound);
    return wrong;
}

static void check_print(const report *r, double ratio[SORTS][INPUTS])
{
    printf("flashsketch %s, definition of S %d\n\n", fs_version(), fs_definition_version());
    for (int i = 0; i < r->contexts; i++) {
        printf("%s: ", r->score[i].name);
        if (r->score[i].digests != NONE) printf("%d of %d digests, ", r->score[i].digests, r->digests);
        printf("%d of %d products are right\n", r->score[i].products, r->products);
    }
    if (r->no_gpu[0]) printf("no GPU was checked: %s\n", r->no_gpu);
    printf("\nError |(S Q)'S Q - I|, mean of %d draws, in times %.3f, what a Gaussian's is expected to be;\n"
           "k = %d, Q %d x %d:\n\n%-22s",
           DRAWS, fs_ose_expected(QK, QN), QK, QD, QN, "");
    for (int input = 0; input < INPUTS; input++) printf("%12s", inputs[input]);
    for (int sort = 0; sort < SORTS; sort++) {
        printf("\n%-22s", sorts[sort].name);
        for (int input = 0; input < INPUTS; input++) printf("%12.2f", ratio[sort][input]);
        if (!must_be_sound(&sorts[sort])) printf("   (may be large)");
    }
    printf("\n");
}

static int print_json(const report *r, double ratio[SORTS][INPUTS])
{
    cJSON *out = cJSON_CreateObject(), *all = cJSON_CreateArray(), *table = cJSON_CreateObject();
    json_versions(out);
    cJSON_AddBoolToObject(out, "right", !count_wrong(r, ratio));
    json_whole(out, "digests", r->digests);
    json_whole(out, "products", r->products);
    for (int i = 0; i < r->contexts; i++) {
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "name", r->score[i].name);
        if (r->score[i].digests != NONE) json_whole(one, "digests", r->score[i].digests);
        json_whole(one, "products", r->score[i].products);
        cJSON_AddItemToArray(all, one);
    }
    cJSON_AddItemToObject(out, "contexts", all);
    if (r->no_gpu[0]) cJSON_AddStringToObject(out, "no_gpu", r->no_gpu);
    for (int sort = 0; sort < SORTS; sort++) {
        cJSON *row = cJSON_CreateObject();
        for (int input = 0; input < INPUTS; input++) cJSON_AddNumberToObject(row, inputs[input], ratio[sort][input]);
        cJSON_AddItemToObject(table, sorts[sort].name, row);
    }
    cJSON_AddItemToObject(out, "quality", table);
    return json_print(out);
}

static int check_run(int argc, char **argv)
{
    int json = 0;
    int code = cli_parse(&check_command, &argc, argv, check_take, &json);
    if (code) return code;
    if (argc > 1) return cli_usage(argv[0], "it takes no arguments, but got '%s'", argv[1]);
    report r = {.contexts = 0};
    double ratio[SORTS][INPUTS];
    progress bar = progress_start(1 + 2 * 4 + SORTS, 0);
    code = examine_all(&r, &bar);
    if (!code) code = measure_quality(ratio, &bar);
    progress_end(&bar);
    if (code) return code;
    if (json) code = print_json(&r, ratio);
    else check_print(&r, ratio);
    const int wrong = count_wrong(&r, ratio);
    if (wrong && !code)
        return cli_fail("%d of these answers are wrong: this build does not give the right results on this machine; "
                        "please report it with this text",
                        wrong);
    return code;
}

static const cli_option options[] = {{JSON, "json", NULL, "print a JSON object", NULL}, {0}};
const cli_command check_command = {
    "check",
    "[OPTION]...",
    "check on this machine that S and its products are right",
    "Compares the digests of S with the test vectors of its definition, the products of every CPU variant and GPU\n"
    "with plain loops, and measures the error of every sketch on three subspaces: spread over all rows of A, on\n"
    "neighbouring rows, on rows far from each other.  Takes seconds; the exit code is 1 if anything is wrong.",
    options,
    NULL,
    check_run};
