/* 01_sketch.c - the shortest whole program: a 10000 x 50 matrix becomes 400 x 50, and lengths survive. */
#include <flashsketch.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    enum { D = 10000, N = 50, K = 400 };
    float *a = malloc(sizeof(float) * D * N), *y = malloc(sizeof(float) * K * N);
    for (int i = 0; a && i < D * N; i++) a[i] = (float)rand() / (float)RAND_MAX - 0.5f;

    fs_spec spec = FS_SPEC_INIT;
    spec.d = D, spec.k = K, spec.seed = 7;
    fs_sketch *S = NULL;
    fs_context *ctx = NULL;
    fs_matrix A = fs_row_major(a, D, N, FS_F32), Y = fs_row_major(y, K, N, FS_F32);
    if (fs_sketch_create(&S, &spec) || fs_context_create(&ctx, NULL) || fs_apply(ctx, S, 0, 1.0, &A, 0.0, &Y)) {
        fprintf(stderr, "%s\n", fs_error_message());
        return 1;
    }
    double before = 0, after = 0;
    for (int i = 0; i < D * N; i++) before += a[i] * a[i];
    for (int i = 0; i < K * N; i++) after += y[i] * y[i];
    printf("|A|^2 = %.1f, |S A|^2 = %.1f: off by %.2f %%\n", before, after, 100 * (after / before - 1));
    fs_context_destroy(ctx);
    fs_sketch_destroy(S);
    free(a);
    free(y);
    return !(after > 0.9 * before && after < 1.1 * before);
}
