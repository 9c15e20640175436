/* cmd_spec.c - flashsketch spec: the sketch that a spec gives, with every value that was chosen. */
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

enum { JSON = SPEC_OTHER, WIRED = 16 /* blocks whose wiring is printed */ };

static int take(void *options, int code, const char *value)
{
    spec_options *o = options;
    if (spec_is_option(code)) return spec_option(spec_command.name, code, value, &o->spec);
    if (code == 'n') return cli_number(spec_command.name, "-n", value, 1, INT32_MAX, &o->n);
    o->json = 1;
    return 0;
}

/* What is worked out from a full spec. */
typedef struct facts {
    fs_spec spec;
    int blocked;       /* it has blocks of rows */
    fsi_split out, in; /* B_r and B_c */
    fsi_wiring wiring; /* blockperm */
    int64_t nonzeros;  /* of S; the dense families have k d */
    double csr_bytes;  /* of S written out: f32 values, 32-bit indices where they are enough */
    double vector;     /* standard deviation of |S x|^2 / |x|^2, as of a dense Gaussian: a chi^2 of k degrees over k */
    double space;      /* fs_ose_expected; of both, negative: unknown */
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
    f->space = p->family == FS_BLOCKROW || !o->n ? -1 : fs_ose_expected(p->k, o->n);
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
    printf("wiring          input block l = 1 ... kappa of output block g is f^l(g), f(x) = (%" PRIu32 " x + %" PRIu32
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

static void print_error(const facts *f, int64_t n)
{
    if (f->vector < 0) {
        printf("expected error  depends on A: this family keeps some rows of A and drops the others\n");
        return;
    }
    printf("expected error  |S x|^2 is |x|^2 within %.3g %%, one standard deviation\n", 100 * f->vector);
    if (f->space >= 0)
        printf("                on a subspace of %" PRId64 " dimensions within %.3g %%, all vectors at once\n", n,
               100 * f->space);
    if (f->spec.shuffle == FS_SHUFFLE_NONE && f->spec.family == FS_BLOCKPERM && f->spec.M > f->spec.kappa)
        printf("                for A spread evenly over contiguous blocks; up to sqrt(mu_nbr) times as much for\n"
               "                others, at most %.3g times ('flashsketch coherence' measures mu_nbr)\n",
               sqrt((double)f->spec.M / (double)f->spec.kappa));
}

static void print_facts(const fs_sketch *S, const facts *f, int64_t n)
{
    char text[256];
    fs_sketch_describe(S, text, sizeof text);
    printf("%s\n\n", text);
    if (f->blocked) {
        printf("blocks          M = %" PRId64 ", kappa = %" PRId64 " read by each\n", f->spec.M, f->spec.kappa);
        print_split("rows of each    B_r = ", &f->out);
        print_split("columns of each B_c = ", &f->in);
    }
    if (f->spec.family == FS_BLOCKPERM) print_wiring(f);
    const double d = (double)f->spec.d, k = (double)f->spec.k, nonzeros = (double)f->nonzeros;
    printf("nonzeros        %" PRId64 ", %.3g to a column, %.3g %% of S\n", f->nonzeros, nonzeros / d,
           100 * nonzeros / (k * d));
    printf("memory          none that grows: S is made while A is read; written out as CSR it has %.4g MB\n",
           1e-6 * f->csr_bytes);
    print_error(f, n);
}

static int print_json(const facts *f)
{
    cJSON *out = cJSON_CreateObject();
    json_spec(out, &f->spec);
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
    if (f->space >= 0) cJSON_AddNumberToObject(out, "expected_subspace_error", f->space);
    return json_print(out);
}

static int run(int argc, char **argv)
{
    spec_options o = {.spec = FS_SPEC_INIT};
    int code = cli_parse(&spec_command, &argc, argv, take, &o);
    if (code) return code;
    if (argc > 1) return cli_usage(argv[0], "it takes no arguments, but got '%s'", argv[1]);
    if (!o.spec.d || !o.spec.k) return cli_usage(argv[0], "say how large S is, with -d N and -k N");
    fs_sketch *S = NULL;
    facts f = {.nonzeros = 0};
    code = spec_sketch(&o.spec, &S, &f.spec);
    if (!code) code = find_facts(S, &o, &f);
    if (!code && o.json) code = print_json(&f);
    else if (!code) print_facts(S, &f, o.n);
    fs_sketch_destroy(S);
    return code;
}

static const cli_option options[] = {
    SPEC_OPTIONS,
    {'n', NULL, "N", "columns of A: tell the error on a subspace of so many dimensions too", NULL},
    {JSON, "json", NULL, "print a JSON object", NULL},
    {0}};
const cli_command spec_command = {
    "spec",
    "-d N -k N [OPTION]...",
    "tell what sketch a spec gives",
    "Prints the sketch that these options give, with every value that the library chooses: blocks, wiring,\n"
    "nonzeros, memory and the error to expect.",
    options,
    NULL,
    run};
