/* without.c - where no linear algebra can be loaded, a workspace is refused with the loader's message, and sketching
 * still works.
 *
 * usage: without BACKEND CODE WORD...    CODE is the refusal's fs_result, the words are in its message.  The test's
 * environment hides OpenBLAS behind a file that is none, or names a plugin that has no linear algebra. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <flashsketch_tasks.h>

int main(int argc, char **argv)
{
    if (argc < 4) return 2;
    fs_context_options where = FS_CONTEXT_INIT;
    where.backend = !strcmp(argv[1], "cuda") ? FS_BACKEND_CUDA : FS_BACKEND_CPU;
    fs_context *ctx = NULL;
    if (fs_context_create(&ctx, &where)) {
        fprintf(stderr, "no context: %s\n", fs_error_message());
        return 1;
    }
    fs_task_shape shape = FS_TASK_SHAPE_INIT;
    shape.k = 4, shape.n = 2;
    fs_workspace *w = NULL;
    int failed = 0;
    const fs_result result = fs_workspace_create(&w, ctx, &shape);
    printf("%s: %s\n", fs_result_name(result), fs_error_message());
    failed |= w != NULL || strcmp(fs_result_name(result), argv[2]) != 0;
    for (int i = 3; i < argc; i++) failed |= !strstr(fs_error_message(), argv[i]);

    fs_spec spec = FS_SPEC_INIT;
    spec.d = 9, spec.k = 4;
    fs_sketch *S = NULL;
    float a[18] = {1}, y[8] = {0};
    fs_matrix A = fs_row_major(a, 9, 2, FS_F32), Y = fs_row_major(y, 4, 2, FS_F32);
    failed |= fs_sketch_create(&S, &spec) != FS_OK;
    if (where.backend == FS_BACKEND_CPU) failed |= fs_apply(ctx, S, 0, 1.0, &A, 0.0, &Y) != FS_OK;
    fs_sketch_destroy(S);
    fs_context_destroy(ctx);
    return failed;
}
