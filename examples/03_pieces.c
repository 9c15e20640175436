/* 03_pieces.c - a matrix that is larger than memory is sketched in row slices.
 *
 * A is 200000 x 16 and arrives in slices of 4096 rows: from a file, a socket, another rank; here each is generated when
 * it is needed, and discarded.  row0 is the index of a slice's first row, beta = 1 adds its result to Y.  Slices may
 * come in any order.  At the end Y is compared with the sketch of the whole, which fits in memory here. */
#include <flashsketch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { D = 200000, N = 16, K = 512, PIECE = 4096 };

/* Rows row0 ... row0 + rows - 1 of A, in place of a read from a file. */
static void read_rows(float *to, int row0, int rows)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < N; j++) to[i * N + j] = (float)sin(0.001 * (j + 1) * (row0 + i));
}

/* Y = S A, with at most PIECE rows of A in memory. */
static int sketch_in_pieces(fs_context *ctx, const fs_sketch *S, fs_matrix *Y)
{
    static float piece[PIECE * N];
    for (int row0 = 0; row0 < D; row0 += PIECE) {
        const int rows = D - row0 < PIECE ? D - row0 : PIECE;
        read_rows(piece, row0, rows);
        fs_matrix part = fs_row_major(piece, rows, N, FS_F32);
        if (fs_apply(ctx, S, row0, 1.0, &part, row0 ? 1.0 : 0.0, Y)) return 1;
    }
    return 0;
}

int main(void)
{
    static float y[K * N], y_whole[K * N];
    float *a = malloc(sizeof(float) * D * N);
    fs_spec spec = FS_SPEC_INIT;
    spec.d = D, spec.k = K, spec.seed = 7; /* d is that of the whole: S is one matrix for all slices */
    fs_sketch *S = NULL;
    fs_context *ctx = NULL;
    fs_matrix Y = fs_row_major(y, K, N, FS_F32), Y_whole = fs_row_major(y_whole, K, N, FS_F32);
    fs_matrix A = fs_row_major(a, D, N, FS_F32);
    if (a) read_rows(a, 0, D);
    if (!a || fs_sketch_create(&S, &spec) || fs_context_create(&ctx, NULL) || sketch_in_pieces(ctx, S, &Y) ||
        fs_apply(ctx, S, 0, 1.0, &A, 0.0, &Y_whole)) {
        fprintf(stderr, "%s\n", a ? fs_error_message() : "no memory");
        return 1;
    }
    double difference = 0, length = 0;
    for (int i = 0; i < K * N; i++) {
        difference += pow(y[i] - y_whole[i], 2);
        length += pow(y_whole[i], 2);
    }
    printf("%d rows, %d at a time: Y differs by %.0e of its length from the sketch of the whole\n", D, PIECE,
           sqrt(difference / length));
    fs_context_destroy(ctx);
    fs_sketch_destroy(S);
    free(a);
    return !(difference <= 1e-10 * length); /* only the order of the f32 additions differs */
}
