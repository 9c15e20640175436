/* queue.c - calls as work on a stream: queued back to back, captured into graphs, on the default stream. */
#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <stdio.h>

#include "call.h"

/* Kinds of calls with every need of scratch, from none to several matrices. */
static const call_kind kinds[] = {
    {BLOCKPERM(ROWS, 8, 1, 4, 0, 500, 512), 1, ROWS, FS_F32, 0},
    {BLOCKPERM(ROWS, 1, 1, 4, 0, 3000, 64), 16, ROWS, FS_F32, 0},
    {BLOCKPERM(GROUPS, 8, 2, 2, 8, 7000, 512), 3, COLUMNS, FS_F32, 0},
    {OTHER(SJLT, 4, 5000, 300), 33, ROWS, FS_F32, 0},
    {BLOCKPERM(ROWS, 16, 1, 4, 0, 9000, 1024), 128, ROWS, FS_BF16, 0},
    {OTHER(SRHT, 0, 9000, 256), 33, ROWS, FS_F32, 0},
    {BLOCKPERM(ROWS, 16, 4, 1, 0, 20000, 1024), 256, ROWS, FS_F32, 0},
    {OTHER(SRHT, 0, 20000, 1024), 64, COLUMNS, FS_F32, 1},
    {BLOCKPERM(GROUPS, 16, 1, 4, 16, 60000, 1024), 130, COLUMNS, FS_F32, 0},
    {BLOCKPERM(ROWS, 1, 1, 4, 0, 200000, 64), 64, ROWS, FS_F32, 0},
    {BLOCKPERM(ROWS, 16, 2, 2, 0, 9000, 1024), 128, ROWS, FS_F32, 1},
    {{"BLOCKROW", FS_BLOCKROW, (fs_shuffle)0, 16, 4, 4, 0, 16384, 1024, 1}, 64, ROWS, FS_F32, 0},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static call call_of(int kind_number)
{
    const call_kind *K = &kinds[kind_number];
    call c = {.adjoint = K->adjoint,
              .n = K->n,
              .from = K->how,
              .to = K->how,
              .in = K->in,
              .out = fsi_dtype_sum(K->in),
              .alpha = 1,
              .large = 1,
              .rows = small_set && K->R.d > 600 ? 600 : K->R.d};
    c.spec = spec_at(&K->R, c.rows, small_set ? 64 : K->R.k, 41);
    call_name(&c, K->R.name);
    return c;
}

/* A call with its matrices on the device, and the CPU's result. */
typedef struct job {
    call c;
    fs_sketch *S;
    view A, start, want, got; /* start: Y before the call */
    mirror from, to;
} job;
static void compute_reference(const lane *l, job *j) { MUST(call_run(&j->c, l->tuned, j->S, &j->A.m, &j->want.m)); }
static job job_make(const lane *l, int kind_number)
{
    job j = {.c = call_of(kind_number)};
    j.S = sketch_of(&j.c.spec);
    j.A = call_input(&j.c);
    j.start = call_output(&j.c);
    j.want = call_output(&j.c);
    j.got = call_output(&j.c);
    j.from = mirror_make(l, &j.A);
    j.to = mirror_make(l, &j.got);
    compute_reference(l, &j);
    return j;
}
static void job_queue(job *j, fs_context *ctx) { MUST(call_run(&j->c, ctx, j->S, &j->from.m, &j->to.m)); }
static void job_expect(const lane *l, job *j)
{
    mirror_fetch(l, j->c.name, &j->to, &j->got);
    call_compare(&j->c, j->S, &j->got, &j->want);
}
static void job_free(const lane *l, job *j)
{
    mirror_free(l, &j->from), mirror_free(l, &j->to);
    view_free(&j->A), view_free(&j->start), view_free(&j->want), view_free(&j->got);
    fs_sketch_destroy(j->S);
}

/* Two rounds on a new context: in the first its scratch grows while earlier calls are still running, in the second they
 * all find it large enough, and each must have left it to the next. */
static void calls_queued_back_to_back_do_not_disturb_each_other(void **state)
{
    (void)state;
    lane own = {stream_make(), NULL, NULL, lanes[0].tuned};
    own.gpu = gpu_context(own.stream, FS_PRECISION_FULL);
    job jobs[KINDS];
    for (int k = 0; k < KINDS; k++) jobs[k] = job_make(&own, k);
    for (int round = 0; round < 2; round++) {
        for (int k = 0; k < KINDS; k++) job_queue(&jobs[k], own.gpu);
        stream_wait(own.stream);
        for (int k = 0; k < KINDS; k++) {
            job_expect(&own, &jobs[k]);
            mirror_load(&own, &jobs[k].to, &jobs[k].start);
        }
    }
    for (int k = 0; k < KINDS; k++) job_free(&own, &jobs[k]);
    fs_context_destroy(own.gpu);
    stream_free(own.stream);
}

/* Stream NULL is the default stream, which the copies of this lane then use too. */
static void a_context_without_a_stream_works_on_the_default_stream(void **state)
{
    (void)state;
    lane own = {NULL, gpu_context(NULL, FS_PRECISION_FULL), NULL, lanes[0].tuned};
    for (int k = 0; k < KINDS; k++) {
        job j = job_make(&own, k);
        job_queue(&j, own.gpu);
        job_expect(&own, &j);
        job_free(&own, &j);
    }
    fs_context_destroy(own.gpu);
}

/* graphs ---------------------------------------------------------------------------------------------------- */

static cudaGraphExec_t captured(job *j, const lane *l)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUDA(cudaStreamBeginCapture((cudaStream_t)l->stream, cudaStreamCaptureModeGlobal));
    const fs_result result = call_run(&j->c, l->gpu, j->S, &j->from.m, &j->to.m);
    const cudaError_t error = cudaStreamEndCapture((cudaStream_t)l->stream, &graph);
    MUST(result);
    CUDA(error);
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    return exec;
}

/* A first call inside a capture, for which the context allocates its scratch and the driver loads the kernel; replayed
 * on other data, and again after the context has run something larger.  The first test, so that no kernel is loaded. */
static void a_first_call_can_be_captured_and_replayed(void **state)
{
    (void)state;
    if (dry) skip_because("graphs are CUDA's");
    int grown = 0;
    for (int k = 0; k < KINDS; k++) {
        lane own = {stream_make(), NULL, NULL, lanes[0].tuned};
        own.gpu = gpu_context(own.stream, FS_PRECISION_FULL);
        job j = job_make(&own, k), other = job_make(&own, (k + 7) % KINDS);
        const size_t before = fs_context_memory_bytes(own.gpu);
        cudaGraphExec_t graph = captured(&j, &own);
        grown += fs_context_memory_bytes(own.gpu) > before;
        for (int replay = 0; replay < 3; replay++) {
            fill_whole(&j.A.m, 100 + (uint64_t)replay, 8);
            mirror_load(&own, &j.from, &j.A);
            compute_reference(&own, &j);
            if (replay == 1) job_queue(&other, own.gpu);
            CUDA(cudaGraphLaunch(graph, (cudaStream_t)own.stream));
            stream_wait(own.stream);
            job_expect(&own, &j);
        }
        job_expect(&own, &other);
        CUDA(cudaGraphExecDestroy(graph));
        job_free(&own, &j), job_free(&own, &other);
        fs_context_destroy(own.gpu);
        stream_free(own.stream);
    }
    printf("    %d of %d first calls needed scratch\n", grown, KINDS);
    if (grown == 0) fail_msg("no call needed scratch: nothing is shown");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_first_call_can_be_captured_and_replayed),
        cmocka_unit_test(calls_queued_back_to_back_do_not_disturb_each_other),
        cmocka_unit_test(a_context_without_a_stream_works_on_the_default_stream),
    };
    return RUN_DEVICE_TESTS(argc, argv, tests);
}
