/* multi.c - several contexts as one on a GPU: as streams of one device here, and as devices where there are several.
 *
 * The properties are those of tests/properties/multi.c and add.c, with the CPU as the reference.  FLASHSKETCH_NCCL may
 * name NCCL's library, which is tried on one GPU by a device group of one. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

enum { MOST = 5 };

/* `count` contexts, each with a stream of its own on one device. */
typedef struct crew {
    int count;
    lane members[MOST];
    fs_context *contexts[MOST];
    fs_multi *multi;
} crew;
static crew crew_make(int count, fs_multi_sum sum)
{
    crew c = {.count = count};
    fs_multi_options options = FS_MULTI_INIT;
    options.sum = sum;
    for (int i = 0; i < count; i++) {
        c.members[i].stream = stream_make();
        c.contexts[i] = c.members[i].gpu = gpu_context(c.members[i].stream, FS_PRECISION_FULL);
        c.members[i].tuned = lanes[0].tuned;
    }
    MUST(fs_multi_create(&c.multi, c.contexts, count, &options));
    return c;
}
static void crew_wait(const crew *c)
{
    for (int i = 0; i < c->count; i++) stream_wait(c->members[i].stream);
}
static void crew_free(crew *c)
{
    crew_wait(c);
    fs_multi_destroy(c->multi);
    for (int i = 0; i < c->count; i++) fs_context_destroy(c->contexts[i]), stream_free(c->members[i].stream);
}

/* A in `count` row slices, the first empty if there are more than two. */
static void cut(const fs_matrix *A, int count, int64_t *row0, fs_matrix *pieces)
{
    const int none = count > 2;
    for (int i = 0; i < count; i++) {
        const int64_t from = i < none ? 0 : A->rows * (i - none) / (count - none);
        const int64_t to = i < none ? 0 : A->rows * (i - none + 1) / (count - none);
        pieces[i] = *A;
        pieces[i].rows = to - from;
        pieces[i].offset += from * A->row_stride;
        row0[i] = from;
    }
}

/* Two calls back to back, the second before the first has run: it must not change its partial results. */
static void whole_numbers_have_the_same_bits_on_any_number_of_streams(void **state)
{
    (void)state;
    const int64_t n = small_set ? 9 : 96;
    for (int count = 1; count <= MOST; count++) {
        crew c = crew_make(count, FS_MULTI_AUTO);
        for (int r = 0; r < recipe_count; r++) {
            if (!recipes[r].exact || (small_set && r % 4)) continue;
            const fs_dtype in = (fs_dtype)(FS_F32 + r % 4), out = r % 3 ? in : fsi_dtype_sum(in);
            const fs_spec spec = spec_at(&recipes[r], recipes[r].d, recipes[r].k, 5);
            const layout how = r % 2 ? COLUMNS_PADDED : ROWS;
            fs_sketch *S = sketch_of(&spec);
            view A = view_make(how, spec.d, n, in), want = view_make(how, spec.k, n, out);
            view got = view_make(how, spec.k, n, out);
            fill_whole(&A.m, 3, 1);
            MUST(fs_apply(lanes[0].tuned, S, 0, 1.0, &A.m, 0.0, &want.m));
            mirror from = mirror_make(&c.members[0], &A), to = mirror_make(&c.members[0], &got);
            mirror again = mirror_make(&c.members[0], &got);
            int64_t row0[MOST];
            fs_matrix pieces[MOST];
            cut(&from.m, count, row0, pieces);
            MUST(fs_multi_apply(c.multi, S, row0, 1.0, pieces, 0.0, &to.m));
            MUST(fs_multi_apply(c.multi, S, row0, 1.0, pieces, 0.0, &again.m));
            crew_wait(&c);
            mirror_fetch(&c.members[0], recipes[r].name, &to, &got);
            expect_equal(recipes[r].name, &got.m, &want.m);
            mirror_fetch(&c.members[0], recipes[r].name, &again, &got);
            expect_equal(recipes[r].name, &got.m, &want.m);
            mirror_free(&c.members[0], &from), mirror_free(&c.members[0], &to), mirror_free(&c.members[0], &again);
            view_free(&A), view_free(&want), view_free(&got);
            fs_sketch_destroy(S);
        }
        crew_free(&c);
    }
}

/* On numbers that round: fs_add of the partial results that each context computes alone, in whatever order the
 * streams run; alpha and beta. */
static void copied_parts_are_added_in_the_order_of_contexts(void **state)
{
    (void)state;
    crew c = crew_make(3, FS_MULTI_COPY);
    const lane *l = &c.members[0];
    fs_spec spec = FS_SPEC_INIT;
    spec.d = small_set ? 600 : 30000, spec.k = small_set ? 64 : 512, spec.seed = 9;
    const int64_t n = small_set ? 8 : 64;
    fs_sketch *S = sketch_of(&spec);
    view A = view_make(ROWS, spec.d, n, FS_F32), Y = view_make(ROWS, spec.k, n, FS_F32);
    fill_normal(&A.m, 1), fill_normal(&Y.m, 2);
    mirror from = mirror_make(l, &A), to = mirror_make(l, &Y), sum = mirror_make(l, &Y), made[3];
    view got = view_copy(&Y), want = view_copy(&Y);
    int64_t row0[3];
    fs_matrix pieces[3], parts[3];
    cut(&from.m, 3, row0, pieces);
    for (int i = 0; i < 3; i++) {
        made[i] = mirror_make(l, &Y);
        MUST(fs_apply(l->gpu, S, row0[i], -0.5, &pieces[i], 0.0, &made[i].m));
        parts[i] = made[i].m;
    }
    for (int again = 0; again < 5; again++) {
        MUST(fs_add(l->gpu, parts, 3, 3.0, &sum.m));
        MUST(fs_multi_apply(c.multi, S, row0, -0.5, pieces, 3.0, &to.m));
        crew_wait(&c);
        mirror_fetch(l, "want", &sum, &want);
        mirror_fetch(l, "got", &to, &got);
        expect_same_bits("in order", &got, &want);
    }
    for (int i = 0; i < 3; i++) mirror_free(l, &made[i]);
    mirror_free(l, &from), mirror_free(l, &to), mirror_free(l, &sum);
    view_free(&A), view_free(&Y), view_free(&got), view_free(&want);
    crew_free(&c);
    fs_sketch_destroy(S);
}

/* Host matrices, a CPU context among GPUs', and Y in either place. */
static void host_matrices_and_cpu_contexts_take_part(void **state)
{
    (void)state;
    fs_spec spec = FS_SPEC_INIT;
    spec.d = 4000, spec.k = 256, spec.s = 4, spec.seed = 4; /* a scale that is a power of two */
    fs_sketch *S = sketch_of(&spec);
    view A = view_make(ROWS, spec.d, 24, FS_F32), want = view_make(ROWS, spec.k, 24, FS_F32), got = view_copy(&want);
    fill_whole(&A.m, 3, 4);
    MUST(fs_apply(lanes[0].tuned, S, 0, 1.0, &A.m, 0.0, &want.m));
    const lane *l = &lanes[0];
    void *stream = stream_make();
    fs_context *second = gpu_context(stream, FS_PRECISION_FULL), *mixed[3] = {l->gpu, second, l->tuned};
    mirror from = mirror_make(l, &A), to = mirror_make(l, &got);
    for (int cpu = 0; cpu < 2; cpu++)
        for (int device_y = 0; device_y < 2; device_y++)
            for (int resident = 0; resident < 2; resident++) {
                const int count = 2 + cpu;
                fs_multi *multi = NULL;
                MUST(fs_multi_create(&multi, mixed, count, NULL));
                int64_t row0[3];
                fs_matrix pieces[3], device[3];
                cut(&A.m, count, row0, pieces);
                cut(&from.m, count, row0, device);
                if (resident) pieces[0] = device[0], pieces[1] = device[1];
                memset(got.m.data, 0xFF, sizeof(float) * (size_t)(spec.k * 24));
                MUST(fs_multi_apply(multi, S, row0, 1.0, pieces, 0.0, device_y ? &to.m : &got.m));
                if (device_y) {
                    stream_wait(l->stream);
                    mirror_fetch(l, "mixed", &to, &got);
                }
                expect_equal("mixed", &got.m, &want.m);
                fs_multi_destroy(multi);
            }
    mirror_free(l, &from), mirror_free(l, &to);
    view_free(&A), view_free(&want), view_free(&got);
    stream_wait(stream);
    fs_context_destroy(second);
    stream_free(stream);
    fs_sketch_destroy(S);
}

/* Every type and layout, more matrices than one launch takes, some of them in host memory: to the bit as on the CPU. */
static void matrices_are_added_as_the_cpu_adds_them(void **state)
{
    (void)state;
    const lane *l = &lanes[0];
    enum { PARTS = 35 };
    for (int how = 0; how < OUTPUT_LAYOUTS; how++)
        for (int count = 0; count <= PARTS; count += how % 2 ? 7 : 5) {
            const fs_dtype out = (fs_dtype)(FS_F32 + (how + count) % 4);
            const double beta = count % 2 ? 0 : -0.75;
            view P[PARTS], Y = view_make((layout)how, 37, 29, out), want;
            mirror device[PARTS];
            fs_matrix here[PARTS], there[PARTS];
            fill_normal(&Y.m, 99);
            want = view_copy(&Y);
            mirror to = mirror_make(l, &Y);
            for (int p = 0; p < count; p++) {
                const int on_host = p % 6 == 5;
                const layout its = on_host ? ROWS : (layout)((how + p) % OUTPUT_LAYOUTS);
                P[p] = view_make(its, 37, 29, (fs_dtype)(FS_F32 + p % 4));
                fill_normal(&P[p].m, 10 + (uint64_t)p);
                device[p] = mirror_make(l, &P[p]);
                here[p] = P[p].m, there[p] = on_host ? P[p].m : device[p].m;
            }
            MUST(fs_add(l->tuned, here, count, beta, &want.m));
            MUST(fs_add(l->gpu, there, count, beta, &to.m));
            stream_wait(l->stream);
            if (how == ROWS || how == COLUMNS) { /* Y in host memory, its old value from the device */
                view here_too = view_copy(&Y);
                MUST(fs_add(l->gpu, there, count, beta, &here_too.m));
                expect_same_bits(layout_names[how], &here_too, &want);
                view_free(&here_too);
            }
            mirror_fetch(l, "fs_add", &to, &Y);
            expect_same_bits(layout_names[how], &Y, &want);
            for (int p = 0; p < count; p++) mirror_free(l, &device[p]), view_free(&P[p]);
            mirror_free(l, &to);
            view_free(&Y), view_free(&want);
        }
    if (dry) return;
    float data[12] = {0};
    fs_matrix spread = fs_row_major(data, 2, 3, FS_F32);
    view Y = view_make(ROWS, 2, 3, FS_F32);
    mirror to = mirror_make(l, &Y);
    spread.row_stride = 6;
    REFUSED(fs_add(l->gpu, &spread, 1, 0.0, &to.m), FS_EUNSUPPORTED, "P[0]", "packed", "6 and 1");
    REFUSED(fs_add(l->gpu, &to.m, 1, 0.0, &spread), FS_EUNSUPPORTED, "Y is in host memory", "packed", "6 and 1");
    mirror_free(l, &to);
    view_free(&Y);
}

static void nccl_sums_and_wants_a_gpu_for_each(void **state)
{
    (void)state;
    if (dry) skip_because("NCCL is for GPUs");
    fs_multi_options options = FS_MULTI_INIT;
    options.sum = FS_MULTI_NCCL;
    fs_multi *multi = NULL;
    void *stream = stream_make();
    fs_context *both[2] = {lanes[0].gpu, gpu_context(stream, FS_PRECISION_FULL)};
    REFUSED(fs_multi_create(&multi, both, 2, &options), FS_EUNSUPPORTED, "NCCL needs a GPU for every context");
    fs_context_destroy(both[1]);
    stream_free(stream);
    if (fs_multi_create(&multi, both, 1, &options) != FS_OK) skip_because(fs_error_message());
    char text[512];
    fs_multi_describe(multi, text, sizeof text);
    if (!strstr(text, "summed by NCCL")) fail_msg("%s", text);
    fs_spec spec = FS_SPEC_INIT;
    spec.d = 3000, spec.k = 128, spec.seed = 1;
    fs_sketch *S = sketch_of(&spec);
    view A = view_make(ROWS, spec.d, 16, FS_F64), want = view_make(ROWS, spec.k, 16, FS_F64), got = view_copy(&want);
    fill_whole(&A.m, 3, 4);
    MUST(fs_apply(lanes[0].tuned, S, 0, 1.0, &A.m, 0.0, &want.m));
    mirror from = mirror_make(&lanes[0], &A), to = mirror_make(&lanes[0], &got);
    const int64_t row0 = 0;
    MUST(fs_multi_apply(multi, S, &row0, 1.0, &from.m, 0.0, &to.m));
    stream_wait(lanes[0].stream);
    mirror_fetch(&lanes[0], "NCCL", &to, &got);
    expect_equal("NCCL", &got.m, &want.m);
    mirror_free(&lanes[0], &from), mirror_free(&lanes[0], &to);
    view_free(&A), view_free(&want), view_free(&got);
    fs_multi_destroy(multi);
    fs_sketch_destroy(S);
}

/* All GPUs of this machine, each with its rows in its own memory, by copies and by NCCL. */
static void several_gpus_make_what_one_makes(void **state)
{
    (void)state;
    int gpus = 0;
    if (dry || cudaGetDeviceCount(&gpus) != cudaSuccess || gpus < 2) skip_because("there is one GPU");
    if (gpus > MOST) gpus = MOST;
    fs_spec spec = FS_SPEC_INIT;
    spec.d = 9000, spec.k = 512, spec.seed = 6;
    fs_sketch *S = sketch_of(&spec);
    const int64_t n = 64;
    view A = view_make(ROWS, spec.d, n, FS_F32), want = view_make(ROWS, spec.k, n, FS_F32), got = view_copy(&want);
    fill_whole(&A.m, 3, 4);
    MUST(fs_apply(lanes[0].tuned, S, 0, 1.0, &A.m, 0.0, &want.m));
    mirror to = mirror_make(&lanes[0], &got);
    fs_context *contexts_[MOST] = {lanes[0].gpu};
    int64_t row0[MOST];
    fs_matrix pieces[MOST];
    cut(&A.m, gpus, row0, pieces);
    for (int i = 0; i < gpus; i++) {
        fs_context_options where = FS_CONTEXT_INIT;
        where.backend = FS_BACKEND_CUDA, where.device = i;
        if (i > 0) MUST(fs_context_create(&contexts_[i], &where));
        void *memory = NULL;
        const size_t bytes = (size_t)(pieces[i].rows * n + 1) * sizeof(float);
        CUDA(cudaSetDevice(i));
        CUDA(cudaMalloc(&memory, bytes));
        CUDA(cudaMemcpy(memory, (float *)pieces[i].data + pieces[i].offset, bytes - sizeof(float),
                        cudaMemcpyHostToDevice));
        pieces[i] = fs_row_major(memory, pieces[i].rows, n, FS_F32);
        pieces[i].memory = FS_MEMORY_CUDA;
    }
    CUDA(cudaSetDevice(0));
    for (int sum = FS_MULTI_COPY; sum <= FS_MULTI_NCCL; sum++) {
        fs_multi_options options = FS_MULTI_INIT;
        options.sum = (fs_multi_sum)sum;
        fs_multi *multi = NULL;
        if (fs_multi_create(&multi, contexts_, gpus, &options) != FS_OK) {
            printf("    %s\n", fs_error_message());
            continue;
        }
        for (int again = 0; again < 3; again++) MUST(fs_multi_apply(multi, S, row0, 1.0, pieces, 0.0, &to.m));
        stream_wait(lanes[0].stream);
        mirror_fetch(&lanes[0], "GPUs", &to, &got);
        expect_equal("GPUs", &got.m, &want.m);
        fs_multi_destroy(multi);
    }
    for (int i = 0; i < gpus; i++) {
        CUDA(cudaFree(pieces[i].data));
        if (i > 0) fs_context_destroy(contexts_[i]);
    }
    mirror_free(&lanes[0], &to);
    view_free(&A), view_free(&want), view_free(&got);
    fs_sketch_destroy(S);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers_have_the_same_bits_on_any_number_of_streams),
        cmocka_unit_test(copied_parts_are_added_in_the_order_of_contexts),
        cmocka_unit_test(host_matrices_and_cpu_contexts_take_part),
        cmocka_unit_test(matrices_are_added_as_the_cpu_adds_them),
        cmocka_unit_test(nccl_sums_and_wants_a_gpu_for_each),
        cmocka_unit_test(several_gpus_make_what_one_makes),
    };
    return RUN_DEVICE_TESTS(argc, argv, tests);
}
