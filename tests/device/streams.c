/* streams.c - a matrix in a file, in panels through a GPU: Y stays in host memory, as in `flashsketch sketch --device
 * cuda`, and every panel adds to it.  Data are integers, so that panels of any size give the CPU's bits. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "flashsketch_files.h"

enum { D = 30011, N = 67, K = 300 };
static const char *const path = "device.streams.raw";

/* D x N numbers from -8 to 7, as the file holds them: rows of A, or N samples of D coordinates. */
static float *make_file(void)
{
    float *a = malloc(sizeof *a * D * N);
    FILE *file = fopen(path, "wb");
    assert_true(a && file);
    for (int64_t i = 0; i < (int64_t)D * N; i++) a[i] = (float)((int)(bits_at(67, i) & 15) - 8);
    const size_t written = fwrite(a, sizeof *a, (size_t)D * N, file);
    assert_true(fclose(file) == 0 && written == (size_t)D * N);
    return a;
}

static void sketch_panels(fs_context *gpu, const fs_sketch *S, int batch, int64_t memory, float *y)
{
    fs_stream_options how = FS_STREAM_INIT;
    fs_stream *stream = NULL;
    fs_panel p = FS_PANEL_INIT;
    how.memory = memory;
    how.batch_major = batch;
    how.rows = batch ? N : D, how.cols = batch ? D : N, how.dtype = FS_F32;
    if (fs_stream_create(&stream, &path, 1, &how)) fail_msg("%s", fs_error_message());
    const fs_matrix Y = batch ? fs_batch_major(y, N, K, FS_F32) : fs_row_major(y, K, N, FS_F32);
    for (;;) {
        if (fs_stream_next(stream, &p)) fail_msg("%s", fs_error_message());
        if (!p.A.rows) break;
        fs_matrix to = Y;
        to.cols = p.A.cols, to.offset += p.col0 * Y.col_stride;
        if (fs_apply(gpu, S, p.row0, 1.0, &p.A, p.row0 ? 1.0 : 0.0, &to)) fail_msg("%s", fs_error_message());
    }
    fs_stream_destroy(stream);
}

static void panels_of_a_file_give_the_bits_of_the_whole(void **state)
{
    (void)state;
    static const int64_t memories[] = {64 << 10, 1 << 20, 64 << 20};
    static float y[K * N], wanted[K * N];
    float *a = make_file();
    for (int shuffle = FS_SHUFFLE_NONE; shuffle <= FS_SHUFFLE_GROUPS; shuffle++)
        for (int batch = 0; batch < 2; batch++) {
            fs_spec spec = FS_SPEC_INIT;
            fs_sketch *S = NULL;
            spec.d = D, spec.k = K, spec.seed = 11, spec.shuffle = (fs_shuffle)shuffle;
            const fs_matrix A = batch ? fs_batch_major(a, N, D, FS_F32) : fs_row_major(a, D, N, FS_F32);
            fs_matrix W = batch ? fs_batch_major(wanted, N, K, FS_F32) : fs_row_major(wanted, K, N, FS_F32);
            if (fs_sketch_create(&S, &spec) || fs_apply(lanes[0].tuned, S, 0, 1.0, &A, 0.0, &W))
                fail_msg("%s", fs_error_message());
            for (int m = 0; m < COUNT(memories); m++) {
                memset(y, 0xFF, sizeof y);
                sketch_panels(lanes[0].gpu, S, batch, memories[m], y);
                if (memcmp(y, wanted, sizeof y))
                    fail_msg("shuffle %d, batch %d, memory %" PRId64 ": Y differs", shuffle, batch, memories[m]);
            }
            fs_sketch_destroy(S);
        }
    free(a);
    unlink(path);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(panels_of_a_file_give_the_bits_of_the_whole)};
    return RUN_DEVICE_TESTS(argc, argv, tests);
}
