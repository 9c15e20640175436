/* repeat.c - the same bits from run to run, and whatever runs at the same time: sums on the device have one order.
 *
 * Data are normal, so that any other order shows in the last bits.  The lanes run at once, each on its stream. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "call.h"

enum { RUNS = 20 };

/* Kinds of kernels: one, some and all neighbours; blocks that are split because there are few; few columns; contiguous
 * columns; 16-bit types; the adjoint; the other families. */
static const call_kind kinds[] = {
    {BLOCKPERM(ROWS, 16, 1, 4, 0, 9001, 1024), 128, ROWS, FS_F32, 0},
    {BLOCKPERM(ROWS, 16, 2, 4, 0, 9001, 1024), 256, ROWS, FS_F32, 0},
    {BLOCKPERM(ROWS, 16, 4, 2, 0, 9001, 1000), 130, ROWS, FS_F32, 0},
    {BLOCKPERM(NONE, 4, 3, 3, 0, 5000, 257), 33, ROWS, FS_F32, 0},
    {BLOCKPERM(ROWS, 1, 1, 4, 0, 60001, 64), 128, ROWS, FS_F32, 0},
    {BLOCKPERM(ROWS, 2, 2, 4, 0, 60001, 128), 7, ROWS, FS_F32, 0},
    {BLOCKPERM(ROWS, 16, 1, 4, 0, 60001, 1024), 1, ROWS, FS_F32, 0},
    {BLOCKPERM(ROWS, 16, 1, 4, 0, 60001, 1024), 3, COLUMNS, FS_F32, 0},
    {BLOCKPERM(ROWS, 16, 1, 4, 0, 60001, 1024), 16, ROWS, FS_F32, 0},
    {BLOCKPERM(NONE, 5, 1, 8, 0, 60001, 320), 40, ROWS, FS_F32, 0},
    {BLOCKPERM(ROWS, 1, 1, 2, 0, 60001, 64), 9, ROWS, FS_F32, 0},
    {BLOCKPERM(GROUPS, 16, 1, 4, 16, 40001, 1024), 64, COLUMNS, FS_F32, 0},
    {BLOCKPERM(GROUPS, 16, 1, 4, 16, 40000, 1024), 64, COLUMNS, FS_F32, 0},
    {BLOCKPERM(GROUPS, 16, 1, 4, 4, 40000, 1000), 100, COLUMNS, FS_F32, 0},
    {BLOCKPERM(GROUPS, 16, 1, 4, 1, 40000, 1024), 200, COLUMNS, FS_F32, 0},
    {BLOCKPERM(GROUPS, 16, 2, 4, 4, 40001, 1024), 5, COLUMNS, FS_F32, 0},
    {BLOCKPERM(GROUPS, 2, 1, 4, 2, 90001, 128), 1, COLUMNS, FS_F32, 0},
    {BLOCKPERM(GROUPS, 32, 4, 1, 32, 40001, 2048), 100, COLUMNS, FS_BF16, 0},
    {BLOCKPERM(ROWS, 16, 1, 4, 0, 9001, 1024), 256, ROWS, FS_BF16, 0},
    {BLOCKPERM(ROWS, 1, 1, 4, 0, 9001, 64), 1024, ROWS, FS_F16, 0},
    {BLOCKPERM(ROWS, 4, 1, 4, 0, 9001, 256), 1000, ROWS, FS_BF16, 0},
    {BLOCKPERM(ROWS, 4, 1, 4, 0, 9001, 256), 504, ROWS, FS_F16, 0},
    {BLOCKPERM(NONE, 2, 1, 4, 0, 9001, 128), 1000, ROWS, FS_BF16, 0},
    {BLOCKPERM(ROWS, 32, 1, 4, 0, 9001, 2048), 512, ROWS, FS_F16, 0},
    {BLOCKPERM(NONE, 8, 1, 4, 0, 9001, 512), 1024, ROWS, FS_F16, 0},
    {BLOCKPERM(ROWS, 16, 1, 4, 0, 9001, 1024), 1024, ROWS, FS_BF16, 0},
    {BLOCKPERM(ROWS, 16, 4, 4, 0, 9001, 1024), 128, ROWS, FS_F16, 0},
    {BLOCKPERM(ROWS, 16, 2, 4, 0, 9001, 1024), 64, ROWS, FS_F64, 0},
    {BLOCKPERM(ROWS, 16, 2, 4, 0, 9001, 1024), 128, ROWS, FS_F32, 1},
    {BLOCKPERM(GROUPS, 16, 2, 4, 4, 9001, 1024), 64, COLUMNS, FS_F32, 1},
    {OTHER(SJLT, 4, 20001, 1000), 64, ROWS, FS_F32, 0},
    {OTHER(SJLT, 4, 20001, 1000), 5, COLUMNS, FS_F32, 0},
    {OTHER(SJLT, 4, 20001, 1000), 64, ROWS, FS_F32, 1},
    {OTHER(SRHT, 0, 10001, 500), 64, ROWS, FS_F32, 0},
    {OTHER(SRHT, 0, 10001, 500), 9, COLUMNS, FS_F32, 0},
    {OTHER(SRHT, 0, 10001, 500), 64, ROWS, FS_F32, 1},
    {OTHER(GAUSSIAN, 0, 4001, 200), 64, ROWS, FS_F32, 0},
    {OTHER(GAUSSIAN, 0, 60001, 64), 3, COLUMNS, FS_F32, 0},
    {OTHER(GAUSSIAN, 0, 4001, 200), 64, ROWS, FS_F32, 1},
    {OTHER(GAUSSIAN, 0, 60001, 600), 64, ROWS, FS_F32, 0},
    {OTHER(GAUSSIAN, 0, 9001, 1000), 256, ROWS, FS_BF16, 0},
    {OTHER(GAUSSIAN, 0, 4001, 200), 16, ROWS, FS_F32, 0},
    {{"BLOCKROW", FS_BLOCKROW, (fs_shuffle)0, 8, 2, 4, 0, 9001, 1000, 0}, 64, ROWS, FS_F32, 0},
    {{"BLOCKROW", FS_BLOCKROW, (fs_shuffle)0, 8, 2, 4, 0, 9001, 1000, 0}, 64, ROWS, FS_F32, 1},
};

static call call_of(const call_kind *K)
{
    call c = {.adjoint = K->adjoint,
              .n = K->n,
              .from = K->how,
              .to = K->how,
              .in = K->in,
              .out = fsi_dtype_sum(K->in),
              .alpha = 1.25};
    c.rows = small_set ? 400 : K->R.d;
    c.spec = spec_at(&K->R, c.rows, small_set ? 64 : K->R.k, 9);
    call_name(&c, K->R.name);
    return c;
}
static view normal_input(const call *c)
{
    view A = view_make(c->from, call_in_rows(c), c->n, c->in);
    fill_normal(&A.m, 4);
    return A;
}

static void check_runs(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const call c = call_of(&kinds[number]);
    fs_sketch *S = sketch_of(&c.spec);
    view A = normal_input(&c), blank = call_output(&c), first = call_output(&c), again = call_output(&c);
    mirror from = mirror_make(l, &A), to = mirror_make(l, &blank);
    for (int run = 0; run < (small_set ? 2 : RUNS); run++) {
        mirror_load(l, &to, &blank);
        MUST(call_run(&c, l->gpu, S, &from.m, &to.m));
        stream_wait(l->stream);
        mirror_fetch(l, c.name, &to, run ? &again : &first);
        if (run) expect_same_bits(c.name, &again, &first);
    }
    mirror_free(l, &from), mirror_free(l, &to);
    view_free(&A), view_free(&blank), view_free(&first), view_free(&again);
    fs_sketch_destroy(S);
}
static void runs_give_the_same_bits(void **state)
{
    (void)state;
    for_each_case(COUNT(kinds), COUNT(kinds), check_runs, NULL);
}

/* streams at once ------------------------------------------------------------------------------------------- */

enum { STREAMS = 4, ROUNDS = 4 };

/* What one of the threads needs; the reference results are the first lane's, made while nothing else ran. */
typedef struct station {
    lane own;
    const view *inputs, *wants;
    int number, ended_well;
} station;

static void run_station(void *argument)
{
    const station *st = argument;
    /* Each thread takes the kinds in its own order. */
    static const int64_t strides[STREAMS] = {1, 3, 5, 9};
    _Static_assert(sizeof kinds / sizeof kinds[0] % 3 != 0 && sizeof kinds / sizeof kinds[0] % 5 != 0, "all are met");
    for (int64_t i = 0; i < (small_set ? 1 : ROUNDS) * COUNT(kinds); i++) {
        const int64_t k = (i * strides[st->number] + 5 * st->number) % COUNT(kinds);
        const call c = call_of(&kinds[k]);
        view Y = call_on_device(&st->own, &c, st->own.gpu, &st->inputs[k]);
        expect_same_bits(c.name, &Y, &st->wants[k]);
        view_free(&Y);
    }
}
static void *start_station(void *argument)
{
    station *st = argument;
    st->ended_well = stand_in_attempt(run_station, st);
    return NULL;
}
static void four_streams_at_once_give_what_one_gives_alone(void **state)
{
    (void)state;
    view inputs[COUNT(kinds)], wants[COUNT(kinds)];
    for (int64_t k = 0; k < COUNT(kinds); k++) {
        const call c = call_of(&kinds[k]);
        inputs[k] = normal_input(&c);
        wants[k] = call_on_device(&lanes[0], &c, lanes[0].gpu, &inputs[k]);
    }
    station stations[STREAMS];
    pthread_t threads[STREAMS];
    int well = 1;
    for (int s = 0; s < STREAMS; s++) {
        void *stream = stream_make();
        stations[s] = (station){{stream, gpu_context(stream, FS_PRECISION_FULL), NULL, NULL}, inputs, wants, s, 0};
        if (pthread_create(&threads[s], NULL, start_station, &stations[s]) != 0) fail_msg("no thread %d", s);
    }
    for (int s = 0; s < STREAMS; s++) {
        pthread_join(threads[s], NULL);
        well = well && stations[s].ended_well;
        fs_context_destroy(stations[s].own.gpu);
        stream_free(stations[s].own.stream);
    }
    for (int64_t k = 0; k < COUNT(kinds); k++) view_free(&inputs[k]), view_free(&wants[k]);
    if (!well) fail_msg("a thread saw other bits");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_give_the_same_bits),
        cmocka_unit_test(four_streams_at_once_give_what_one_gives_alone),
    };
    return RUN_DEVICE_TESTS(argc, argv, tests);
}
