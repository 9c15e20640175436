/* cmd_spec.c - flashsketch spec: the sketch that a spec gives, with every value that the library chose. */
#include <flashsketch_tasks.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "cli.h"
#include "command.h"
#include "def/def.h"
#include "json.h"
#include "spec_options.h"

typedef struct spec_options {
    fs_spec spec;
    int64_t n;
    int json;
} spec_options;

enum { JSON = SPEC_OTHER, WIRED = 16 /* blocks whose permutations are printed */ };
enum { SPREAD, CONCENTRATED };

static int spec_take(void *options, int code, const char *value)
{
    spec_options *o = options;
    if (spec_is_option(code)) return spec_option(spec_command.name, code, value, &o->spec);
    if (code == 'n') return cli_number(spec_command.name, "-n", value, 1, INT32_MAX, &o->n);
    o->json = 1;
    return 0;
}

/* The values computed from a full spec. */
typedef struct facts {
    fs_spec spec;
    int blocked;       /* it has blocks of rows */
    fsi_split out, in; /* B_r and B_c */
    fsi_wiring wiring; /* blockperm */
    int64_t nonzeros;  /* of S; the dense families have k d */
    double csr_bytes;  /* of S written out: f32 values, 32-bit indices where they are enough */
    double vector;     /* standard deviation of |S x|^2 / |x|^2, as of a dense Gaussian: a chi^2 of k degrees over k;
                        * negative: unknown */
    double typical[CONCENTRATED + 1], exceeded[CONCENTRATED + 1]; /* fs_ose_errors, with n; NaN: unknown */
} facts;

static int find_facts(const fs_sketch *S, const spec_options *o, facts *f)
{
    const fs_spec *p = &f->spec;
    f->blocked = p->family == FS_BLOCKPERM || p->family == FS_BLOCKROW;
    f->out = fsi_split_make(p->k, p->M);
    f->in = fsi_split_make(p->d, p->M);
    if (p->family == FS_BLOCKPERM) f->wiring = fsi_wiring_make(p->seed, (uint32_t)p->M);
    if (fs_sketch_nnz(S, 0, p->d, &f->nonzeros)) return cli_library_fail();
    const int64_t index = p->d <= INT32_MAX && f->nonzeros <= INT32_MAX ? 4 : 8;
    f->csr_bytes = (double)f->nonzeros * (double)(index + 4) + (double)(p->k + 1) * (double)index;
    f->vector = p->family == FS_BLOCKROW ? -1 : sqrt(2.0 / (double)p->k);
    for (int i = 0; i < 2 && o->n; i++)
        if (fs_ose_errors(S, o->n, i, &f->typical[i], &f->exceeded[i])) return cli_library_fail();
    return 0;
}

static void print_split(const char *name, const fsi_split *split)
{
    printf("%s%" PRId64, name, split->small);
    if (split->larger) printf(" or %" PRId64, split->small + 1);
    printf("\n");
}

/* Which input blocks an output block reads. */
static void print_wiring(const facts *f)
{
    const fs_spec *p = &f->spec;
    printf("permutations    input block l = 1 ... kappa of output block g is f^l(g), f(x) = (%" PRIu32 " x + %" PRIu32
           ") mod %" PRIu32 "\n",
           f->wiring.a, f->wiring.b, f->wiring.M);
    if (p->M > WIRED || p->kappa > WIRED) return;
    for (uint32_t g = 0; g < (uint32_t)p->M; g++) {
        uint32_t h = g;
        printf("  %2" PRIu32 " reads", g);
        for (int64_t l = 0; l < p->kappa; l++) printf(" %" PRIu32, h = fsi_wiring_next(&f->wiring, h));
        printf("\n");
    }
}

/* Whether the family has rungs. */
static int has_rungs(const facts *f) { return f->spec.family == FS_BLOCKPERM || f->spec.family == FS_SJLT; }

static void print_quality(const facts *f, const fs_spec *given)
{
    const char *name = fs_quality_name(f->spec.quality);
    const int kappa = given->kappa || f->spec.family == FS_SJLT;
    if (!has_rungs(f)) return;
    if (kappa && given->s) printf("quality         as kappa and s, which are given: no rung chooses them\n");
    else printf("quality         %s, which chooses %s\n", name, kappa ? "s" : given->s ? "kappa" : "kappa and s");
}

static const char *why_unknown(const facts *f)
{
    const fs_spec *p = &f->spec;
    if (p->family == FS_SRHT) return "an srht: neighbouring rows may lose directions of A";
    if (p->family == FS_BLOCKPERM && p->shuffle == FS_SHUFFLE_NONE) return "contiguous blocks";
    return p->kappa * p->s < 4 ? "fewer than 4 nonzeros in a column" : "k < 2 n";
}

static void print_errors_on_subspaces(const facts *f, int64_t n)
{
    printf("                on a subspace of %" PRId64 " dimensions, all vectors at once, within\n", n);
    printf("                  spread data        %.3g %% typically, %.3g %% for 95 of 100 seeds\n",
           100 * f->typical[SPREAD], 100 * f->exceeded[SPREAD]);
    if (isnan(f->typical[CONCENTRATED]))
        printf("                  concentrated data  not known for %s\n", why_unknown(f));
    else
        printf("                  concentrated data  %.3g %% typically, %.3g %% for 95 of 100 seeds\n",
               100 * f->typical[CONCENTRATED], 100 * f->exceeded[CONCENTRATED]);
    printf("                (concentrated: %" PRId64 " scattered rows of A outweigh all others)\n", n);
}

static void print_needed_rows(const facts *f, int64_t n)
{
    printf("rows of S       %s: k >= 2 n = %" PRId64 " is needed, and k >= 4 n = %" PRId64
           " for data with few dominant rows\n",
           f->spec.k < 2 * n   ? "too small"
           : f->spec.k < 4 * n ? "enough for spread data"
                               : "enough",
           2 * n, 4 * n);
}

static void print_error(const facts *f, int64_t n)
{
    if (f->vector < 0) {
        printf("expected error  depends on A: this family keeps some rows of A and drops the others\n");
        return;
    }
    printf("expected error  |S x|^2 is |x|^2 within %.3g %%, one standard deviation\n", 100 * f->vector);
    if (n) print_errors_on_subspaces(f, n);
    if (f->spec.shuffle == FS_SHUFFLE_NONE && f->spec.family == FS_BLOCKPERM && f->spec.M > f->spec.kappa)
        printf("                for A spread evenly over contiguous blocks; up to sqrt(mu_nbr) times as much for\n"
               "                others, at most %.3g times ('flashsketch coherence' measures mu_nbr)\n",
               sqrt((double)f->spec.M / (double)f->spec.kappa));
    if (n) print_needed_rows(f, n);
}

static void print_facts(const fs_sketch *S, const facts *f, const spec_options *o)
{
    char text[256];
    fs_sketch_describe(S, text, sizeof text);
    printf("%s\n\n", text);
    print_quality(f, &o->spec);
    if (f->blocked) {
        printf("blocks          M = %" PRId64 ", kappa = %" PRId64 " read by each\n", f->spec.M, f->spec.kappa);
        print_split("rows of each    B_r = ", &f->out);
        print_split("columns of each B_c = ", &f->in);
    }
    if (f->spec.family == FS_BLOCKPERM) print_wiring(f);
    const double d = (double)f->spec.d, k = (double)f->spec.k, nonzeros = (double)f->nonzeros;
    printf("nonzeros        %" PRId64 ", %.3g to a column, %.3g %% of S\n", f->nonzeros, nonzeros / d,
           100 * nonzeros / (k * d));
    printf("memory          constant: S is generated while A is read; as CSR it has %.4g MB\n", 1e-6 * f->csr_bytes);
    print_error(f, o->n);
}

static void add_error(cJSON *out, const char *name, double error)
{
    if (isnan(error)) cJSON_AddNullToObject(out, name);
    else cJSON_AddNumberToObject(out, name, error);
}

static int print_json(const facts *f, int64_t n)
{
    cJSON *out = cJSON_CreateObject();
    json_spec(out, &f->spec);
    if (has_rungs(f)) cJSON_AddStringToObject(out, "quality", fs_quality_name(f->spec.quality));
    json_whole(out, "definition", fs_definition_version());
    if (f->blocked) {
        json_whole(out, "B_r_min", f->out.small);
        json_whole(out, "B_r_max", f->out.small + (f->out.larger > 0));
        json_whole(out, "B_c_min", f->in.small);
        json_whole(out, "B_c_max", f->in.small + (f->in.larger > 0));
    }
    if (f->spec.family == FS_BLOCKPERM) {
        json_whole(out, "wiring_a", f->wiring.a);
        json_whole(out, "wiring_b", f->wiring.b);
    }
    json_whole(out, "nonzeros", f->nonzeros);
    cJSON_AddNumberToObject(out, "csr_bytes", f->csr_bytes);
    if (f->vector >= 0) cJSON_AddNumberToObject(out, "expected_vector_error", f->vector);
    if (n) {
        add_error(out, "expected_subspace_error", f->typical[SPREAD]);
        add_error(out, "exceeded_subspace_error", f->exceeded[SPREAD]);
        add_error(out, "expected_concentrated_error", f->typical[CONCENTRATED]);
        add_error(out, "exceeded_concentrated_error", f->exceeded[CONCENTRATED]);
    }
    return json_print(out);
}

static int spec_run(int argc, char **argv)
{
    spec_options o = {.spec = FS_SPEC_INIT};
    int code = cli_parse(&spec_command, &argc, argv, spec_take, &o);
    if (code) return code;
    if (argc > 1) return cli_usage(argv[0], "it takes no arguments, but got '%s'", argv[1]);
    if (!o.spec.d || !o.spec.k) return cli_usage(argv[0], "give the size of S, with -d N and -k N");
    fs_sketch *S = NULL;
    facts f = {.nonzeros = 0};
    code = spec_sketch(&o.spec, &S, &f.spec);
    if (!code) code = find_facts(S, &o, &f);
    if (!code && o.json) code = print_json(&f, o.n);
    else if (!code) print_facts(S, &f, &o);
    fs_sketch_destroy(S);
    return code;
}

static const cli_option options[] = {
    SPEC_OPTIONS,
    {'n', NULL, "N", "columns of A: print the errors on a subspace of that dimension too", NULL},
    {JSON, "json", NULL, "print a JSON object", NULL},
    {0}};
const cli_command spec_command = {
    "spec",
    "-d N -k N [OPTION]...",
    "print the sketch that a spec defines",
    "Prints the sketch that these options give, with every value that the library chooses: blocks, wiring,\n"
    "nonzeros, memory and the error to expect.",
    options,
    NULL,
    spec_run};
