/* products.c - factored input in device memory is sketched as on the CPU; a pair with a row number out of range, and
 * an element that is not finite, reach the elements to which their products contribute, and nothing else. */
#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "call.h"

enum { MOST_FACTORS = 70 };

/* Factors, on the host and in the lane's device memory, and pairs of their rows. */
typedef struct factors {
    int count;
    int64_t rows, tokens, bytes;
    view host[MOST_FACTORS];
    mirror device[MOST_FACTORS];
    fs_matrix m[2][MOST_FACTORS]; /* host, device */
    fs_pairs pairs[2];
} factors;

/* What factors are made of: `heights`, types and layouts in turn, or all batches in f32. */
typedef struct kind {
    int count;
    const int64_t *heights;
    int height_count;
    int batch;
    uint64_t draw;
} kind;

static void factors_open(const lane *l, factors *F, const kind *k, int64_t n, int64_t tokens, int64_t pairs)
{
    static const fs_dtype types[] = {FS_F32, FS_BF16, FS_F16};
    F->count = k->count;
    F->tokens = tokens;
    F->rows = 0;
    F->bytes = 8 * pairs;
    for (int f = 0; f < k->count; f++) {
        const layout how = k->batch ? COLUMNS : (layout)((k->draw + 3 * (uint64_t)f) % OUTPUT_LAYOUTS);
        F->host[f] = view_make(how, k->heights[f % k->height_count], n * tokens,
                               k->batch ? FS_F32 : types[((k->draw >> 8) + (uint64_t)f) % 3]);
        fill_whole(&F->host[f].m, 5 + (uint64_t)f, 3);
        F->device[f] = mirror_make(l, &F->host[f]);
        F->m[0][f] = F->host[f].m;
        F->m[1][f] = F->device[f].m;
        F->rows += F->host[f].m.rows;
    }
    int32_t *index = room(2 * pairs + 1, sizeof *index);
    for (int64_t i = 0; i < pairs; i++) {
        index[2 * i] = (int32_t)(bits_at(3, 2 * i) % (uint64_t)F->rows);
        index[2 * i + 1] = i % 5 == 2 ? -1 : (int32_t)(bits_at(3, 2 * i + 1) % (uint64_t)F->rows);
    }
    F->pairs[0] = (fs_pairs){pairs, index, FS_MEMORY_HOST};
    F->pairs[1] = (fs_pairs){pairs, device_alloc(l->stream, F->bytes + 8), device_place()};
    copy_in(l->stream, (void *)F->pairs[1].index, index, F->bytes);
}
static void factors_close(const lane *l, factors *F)
{
    for (int f = 0; f < F->count; f++) {
        mirror_free(l, &F->device[f]);
        view_free(&F->host[f]);
    }
    device_free(l->stream, (void *)F->pairs[1].index);
    free((void *)F->pairs[0].index);
}

static view on_device(const lane *l, const call *c, const fs_sketch *S, const factors *F)
{
    view Y = call_output(c);
    mirror to = mirror_make(l, &Y);
    MUST(fs_apply_products(l->gpu, S, c->row0, c->alpha, F->m[1], F->count, F->tokens, &F->pairs[1], c->beta, &to.m));
    stream_wait(l->stream);
    mirror_fetch(l, c->name, &to, &Y);
    expect_padding_untouched(c->name, &Y);
    for (int f = 0; f < F->count; f++) expect_mirror_untouched(l, c->name, &F->device[f], &F->host[f]);
    mirror_free(l, &to);
    return Y;
}

static void check(const lane *l, const call *c, const kind *k, int64_t tokens)
{
    fs_sketch *S = sketch_of(&c->spec);
    factors *F = room(1, sizeof *F);
    factors_open(l, F, k, c->n, tokens, c->rows);
    view want = call_output(c), got = on_device(l, c, S, F), again = on_device(l, c, S, F);
    expect_same_bits(c->name, &again, &got);
    MUST(fs_apply_products(c->large ? l->tuned : l->ref, S, c->row0, c->alpha, F->m[0], F->count, tokens, &F->pairs[0],
                           c->beta, &want.m));
    call_compare(c, S, &got, &want);
    view_free(&want), view_free(&got), view_free(&again);
    factors_close(l, F);
    free(F);
    fs_sketch_destroy(S);
}

/* The digits are recipe and tokens; the rest is drawn. */
static void check_case(const lane *l, int64_t number, const void *data)
{
    (void)data;
    static const int64_t widths[] = {1, 3, 17, 64, 65, 130}, depths[] = {1, 40, 257, 700, 0, 64}, tokens[] = {1, 2, 7};
    static const int64_t heights[] = {5, 1, 40, 0, 33};
    const recipe *R = &recipes[number % recipe_count];
    const uint64_t draw = bits_at(71, number);
    const int64_t many = tokens[number / recipe_count % 3];
    const kind k = {draw & 64 ? 4 : 1 + (int)((draw >> 7) % MOST_FACTORS), heights, 5, 0, draw >> 50};
    call c = {.in = FS_F32, .out = FS_F32, .row0 = (int64_t)(draw & 63), .limit = 9 * many};
    c.rows = depths[(draw >> 20) % 6];
    c.n = widths[(draw >> 16) % 6];
    c.to = (layout)((draw >> 32) % OUTPUT_LAYOUTS);
    c.spec = spec_at(R, c.row0 + c.rows + 3, draw >> 40 & 1 ? 65 : 257, 21);
    draw_scalars(&c, bits_at(72, number));
    char name[120];
    snprintf(name, sizeof name, "%s, products of %d factors, %d tokens", R->name, k.count, (int)many);
    call_name(&c, name);
    check(l, &c, &k, many);
}
static void products_are_sketched_as_on_the_cpu(void **state)
{
    (void)state;
    for_each_case((int64_t)recipe_count * 3 * 12, 100, check_case, NULL);
}

/* Masks of gradients of a perceptron, every shuffle: batches of inputs and output gradients. */
static void check_layers(const lane *l, int64_t number, const void *data)
{
    (void)data;
    static const fs_shuffle shuffles[] = {FS_SHUFFLE_GROUPS, FS_SHUFFLE_ROWS, FS_SHUFFLE_NONE};
    static const int64_t heights[] = {784, 128, 128, 64, 64, 10};
    const recipe R = {"layers", FS_BLOCKPERM, shuffles[number % 3], 0, 1 + number / 6 % 2, 4, 0, 0, 0, 1};
    const kind k = {6, heights, 6, 1, 0};
    call c = {.in = FS_F32, .out = FS_F32, .large = 1, .alpha = 1, .to = COLUMNS, .limit = 9};
    c.n = number & 1 ? 100 : 512;
    const int64_t size = small_set ? 256 : 1024 << number / 6 % 3;
    c.rows = 4 * size;
    c.spec = spec_at(&R, c.rows, size, 3);
    call_name(&c, "layers");
    check(l, &c, &k, 1);
}
static void masks_of_layers_are_sketched_as_on_the_cpu(void **state)
{
    (void)state;
    for_each_case(18, 6, check_layers, NULL);
}

/* Pair `bad` alone is changed: it names a row out of range (columns from 0 on), or one with an element that is not
 * finite, which no other pair names (one column). */
static void expect_spoiled(const lane *l, const call *c, const fs_sketch *S, const factors *F, const view *good,
                           int64_t bad, int64_t column)
{
    view got = on_device(l, c, S, F);
    signed char *reads = call_readers(S, c, bad);
    for (int64_t i = 0; i < c->spec.k; i++)
        for (int64_t j = 0; j < c->n; j++) {
            const double y = at(&got.m, i, j), was = at(&good->m, i, j);
            if (reads[i] && (column < 0 || j == column) ? isfinite(y) : y != was)
                fail_msg("%s: pair %" PRId64 " is spoiled in column %" PRId64 ", and makes %" PRId64 ", %" PRId64
                         " %g, which was %g",
                         c->name, bad, column, i, j, y, was);
        }
    free(reads);
    view_free(&got);
}

static void check_spoiled(const lane *l, int64_t number, const void *data)
{
    (void)data;
    static const int64_t heights[] = {30, 20};
    static const int32_t numbers[][2] = {{-1, 3}, {50, 3}, {3, 50}, {3, -2}};
    static const double poisons[] = {INFINITY, -INFINITY, NAN};
    enum { OWN = 7 }; /* a row that no pair names but the bad one */
    const recipe *R = &recipes[number % recipe_count];
    const uint64_t draw = bits_at(5, number);
    const kind k = {2, heights, 2, 0, 3 * (draw >> 50)};
    call c = {.in = FS_F32, .out = FS_F32, .rows = 300, .n = 37, .alpha = 1, .to = COLUMNS, .limit = 18};
    const int64_t bad = (int64_t)(draw % 300), column = (int64_t)(draw >> 16) % 37, tokens = 2;
    c.spec = spec_at(R, c.rows, 65, 9);
    call_name(&c, R->name);
    fs_sketch *S = sketch_of(&c.spec);
    factors *F = room(1, sizeof *F);
    factors_open(l, F, &k, c.n, tokens, c.rows);
    int32_t *index = (int32_t *)F->pairs[0].index;
    for (int64_t i = 0; i < 2 * c.rows; i++) index[i] += index[i] == OWN;
    const int side = draw >> 32 & 1;
    index[2 * bad + side] = OWN;
    if (!side) index[2 * bad + 1] = 12;
    copy_in(l->stream, (void *)F->pairs[1].index, index, F->bytes);
    view good = on_device(l, &c, S, F);
    const double was = at(&F->host[0].m, OWN, column * tokens + 1);
    put(&F->host[0].m, OWN, column * tokens + 1, poisons[(draw >> 33) % 3]);
    mirror_load(l, &F->device[0], &F->host[0]);
    /* 0 Inf is NaN too. */
    expect_spoiled(l, &c, S, F, &good, bad, column);
    put(&F->host[0].m, OWN, column * tokens + 1, was);
    mirror_load(l, &F->device[0], &F->host[0]);
    for (int64_t v = 0; v < COUNT(numbers) && !dry; v++) { /* lists in host memory are checked */
        index[2 * bad] = numbers[v][0];
        index[2 * bad + 1] = numbers[v][1];
        copy_in(l->stream, (void *)F->pairs[1].index, index, F->bytes);
        expect_spoiled(l, &c, S, F, &good, bad, -1);
    }
    view_free(&good);
    factors_close(l, F);
    free(F);
    fs_sketch_destroy(S);
}
static void a_spoiled_product_reaches_its_sums_and_no_others(void **state)
{
    (void)state;
    for_each_case((int64_t)recipe_count * 6, 20, check_spoiled, NULL);
}

/* queues ---------------------------------------------------------------------------------------------------- */

/* A call whose result is known, and where the device leaves it. */
typedef struct job {
    call c;
    fs_sketch *S;
    factors *F;
    view want;
    mirror to;
} job;
static job job_make(const lane *l, int number)
{
    static const int64_t heights[][3] = {{300, 40, 7}, {33, 500, 64}, {128, 10, 1}};
    static const recipe kinds[] = {{"groups", FS_BLOCKPERM, FS_SHUFFLE_GROUPS, 0, 1, 4, 1, 0, 0, 1},
                                   {"rows", FS_BLOCKPERM, FS_SHUFFLE_ROWS, 0, 4, 1, 0, 0, 0, 1},
                                   {"sjlt", FS_SJLT, (fs_shuffle)0, 0, 0, 4, 0, 0, 0, 1}};
    const kind k = {3, heights[number], 3, 1, 0};
    job j = {.c = {.in = FS_F32, .out = FS_F32, .large = 1, .alpha = 1, .to = COLUMNS, .limit = 18}};
    j.c.n = small_set ? 70 : 200 + 150 * number;
    j.c.rows = small_set ? 500 : 4096 << number;
    j.c.spec = spec_at(&kinds[number], j.c.rows, j.c.rows / 4, 3);
    call_name(&j.c, kinds[number].name);
    j.S = sketch_of(&j.c.spec);
    j.F = room(1, sizeof *j.F);
    factors_open(l, j.F, &k, j.c.n, 1 + number % 2, j.c.rows);
    j.want = call_output(&j.c);
    j.to = mirror_make(l, &j.want);
    return j;
}
static fs_result job_queue(const lane *l, job *j)
{
    return fs_apply_products(l->gpu, j->S, 0, 1.0, j->F->m[1], j->F->count, j->F->tokens, &j->F->pairs[1], 0.0,
                             &j->to.m);
}
/* Overwrites the old result, so that elements that are not written show. */
static void job_expect(const lane *l, job *j)
{
    view got = call_output(&j->c), blank = call_output(&j->c);
    MUST(fs_apply_products(l->tuned, j->S, 0, 1.0, j->F->m[0], j->F->count, j->F->tokens, &j->F->pairs[0], 0.0,
                           &j->want.m));
    mirror_fetch(l, j->c.name, &j->to, &got);
    call_compare(&j->c, j->S, &got, &j->want);
    mirror_load(l, &j->to, &blank);
    view_free(&got), view_free(&blank);
}
static void job_free(const lane *l, job *j)
{
    mirror_free(l, &j->to);
    view_free(&j->want);
    factors_close(l, j->F);
    free(j->F);
    fs_sketch_destroy(j->S);
}

/* Copies of factors lie where those of the call before did, and a call begins while its copy is made: each must have
 * left them to the next.  In the first round scratch grows while earlier calls run. */
static void calls_queued_back_to_back_do_not_disturb_each_other(void **state)
{
    enum { JOBS = 3, ROUNDS = 8 };
    (void)state;
    lane own = {stream_make(), NULL, NULL, lanes[0].tuned};
    own.gpu = gpu_context(own.stream, FS_PRECISION_FULL);
    job jobs[JOBS];
    for (int i = 0; i < JOBS; i++) jobs[i] = job_make(&own, i);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < JOBS; i++) MUST(job_queue(&own, &jobs[i]));
        stream_wait(own.stream);
        for (int i = 0; i < JOBS; i++) job_expect(&own, &jobs[i]);
    }
    for (int i = 0; i < JOBS; i++) job_free(&own, &jobs[i]);
    fs_context_destroy(own.gpu);
    stream_free(own.stream);
}

static void expect_cuda(cudaError_t error)
{
    if (error) fail_msg("CUDA said: %s", cudaGetErrorString(error));
}

/* A first call inside a capture, replayed on other factors. */
static void a_first_call_can_be_captured_and_replayed(void **state)
{
    (void)state;
    if (dry) skip_because("graphs are CUDA's");
    for (int i = 0; i < 3; i++) {
        lane own = {stream_make(), NULL, NULL, lanes[0].tuned};
        own.gpu = gpu_context(own.stream, FS_PRECISION_FULL);
        job j = job_make(&own, i);
        cudaGraph_t graph;
        cudaGraphExec_t replayed;
        expect_cuda(cudaStreamBeginCapture((cudaStream_t)own.stream, cudaStreamCaptureModeGlobal));
        const fs_result result = job_queue(&own, &j);
        expect_cuda(cudaStreamEndCapture((cudaStream_t)own.stream, &graph));
        MUST(result);
        expect_cuda(cudaGraphInstantiate(&replayed, graph, 0));
        for (int replay = 0; replay < 3; replay++) {
            for (int f = 0; f < j.F->count; f++) {
                fill_whole(&j.F->host[f].m, (uint64_t)(100 + 10 * replay + f), 3);
                mirror_load(&own, &j.F->device[f], &j.F->host[f]);
            }
            expect_cuda(cudaGraphLaunch(replayed, (cudaStream_t)own.stream));
            stream_wait(own.stream);
            job_expect(&own, &j);
        }
        expect_cuda(cudaGraphExecDestroy(replayed));
        expect_cuda(cudaGraphDestroy(graph));
        job_free(&own, &j);
        fs_context_destroy(own.gpu);
        stream_free(own.stream);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_sketched_as_on_the_cpu),
        cmocka_unit_test(masks_of_layers_are_sketched_as_on_the_cpu),
        cmocka_unit_test(a_spoiled_product_reaches_its_sums_and_no_others),
        cmocka_unit_test(calls_queued_back_to_back_do_not_disturb_each_other),
        cmocka_unit_test(a_first_call_can_be_captured_and_replayed),
    };
    return RUN_DEVICE_TESTS(argc, argv, tests);
}
