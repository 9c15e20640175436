/* 07_files.c - a matrix in files, larger than the memory that is allowed for it, is sketched a panel at a time.
 *
 * A is 20000 x 16, in two files of raw floats that this program writes first; yours may be npy or safetensors files.  A
 * stream gives A in panels of 64 KiB and reads ahead by itself.  In the end Y is compared with the sketch of the whole,
 * which we can afford here. */
#include <flashsketch_files.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { D = 20000, N = 16, K = 512, FILES = 2 };

/* Y = S A, of which never more than the stream's memory is there. */
static int sketch_files(fs_context *ctx, const fs_sketch *S, fs_stream *stream, const fs_matrix *Y)
{
    fs_panel p = FS_PANEL_INIT;
    for (;;) {
        if (fs_stream_next(stream, &p)) return 1;
        if (!p.A.rows) return 0;
        fs_matrix y = *Y; /* the columns of Y that the panel belongs to: all, where panels are whole rows */
        y.cols = p.A.cols, y.offset += p.col0 * Y->col_stride;
        if (fs_apply(ctx, S, p.row0, 1.0, &p.A, p.row0 ? 1.0 : 0.0, &y)) return 1;
    }
}

static int write_file(const char *path, const float *rows, int count)
{
    FILE *file = fopen(path, "wb");
    if (!file) return 1;
    const size_t written = fwrite(rows, sizeof *rows * N, (size_t)count, file);
    return fclose(file) || written != (size_t)count;
}

int main(void)
{
    static float a[D * N], y[K * N], y_whole[K * N];
    const char *const paths[FILES] = {"07_files_1.raw", "07_files_2.raw"};
    for (int i = 0; i < D * N; i++) a[i] = (float)sin(0.001 * i);
    for (int f = 0; f < FILES; f++)
        if (write_file(paths[f], a + f * (D / FILES) * N, D / FILES)) return fprintf(stderr, "no file here\n");

    fs_spec spec = FS_SPEC_INIT;
    spec.d = D, spec.k = K, spec.seed = 7;
    fs_stream_options how = FS_STREAM_INIT;
    how.memory = 64 << 10;
    how.rows = D / FILES, how.cols = N, how.dtype = FS_F32; /* of each file, as nothing in it says so */
    fs_sketch *S = NULL;
    fs_context *ctx = NULL;
    fs_stream *stream = NULL;
    fs_matrix A = fs_row_major(a, D, N, FS_F32), Y = fs_row_major(y, K, N, FS_F32);
    fs_matrix Y_whole = fs_row_major(y_whole, K, N, FS_F32);
    if (fs_sketch_create(&S, &spec) || fs_context_create(&ctx, NULL) || fs_stream_create(&stream, paths, FILES, &how) ||
        sketch_files(ctx, S, stream, &Y) || fs_apply(ctx, S, 0, 1.0, &A, 0.0, &Y_whole))
        return fprintf(stderr, "%s\n", fs_error_message());
    double difference = 0, length = 0;
    for (int i = 0; i < K * N; i++) {
        difference += pow(y[i] - y_whole[i], 2);
        length += pow(y_whole[i], 2);
    }
    printf("%d rows from %d files in %d panels: Y differs by %.0e of its length from the sketch of the whole\n", D,
           FILES, (int)fs_stream_panels(stream), sqrt(difference / length));
    fs_stream_destroy(stream);
    fs_context_destroy(ctx);
    fs_sketch_destroy(S);
    for (int f = 0; f < FILES; f++) remove(paths[f]);
    return !(difference <= 1e-10 * length); /* only the order of the f32 additions differs */
}
