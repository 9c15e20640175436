/* no_gpu.c - an installed library with a CUDA plugin where there is no GPU: FS_EBACKEND with a message if CUDA is
 * requested, the CPU and the reason with auto. */
#include <flashsketch.h>
#include <stdio.h>
#include <string.h>

/* The plugin's message.  "could not be loaded" would be the loader's message: then the plugin was not opened. */
static const char message[] = "the CUDA backend found no GPU: ";

static int asked_for(void)
{
    fs_context_options options = FS_CONTEXT_INIT;
    fs_context *ctx = NULL;
    options.backend = FS_BACKEND_CUDA;
    const fs_result result = fs_context_create(&ctx, &options);
    printf("asked for CUDA: %s, \"%s\"\n", fs_result_name(result), fs_error_message());
    fs_context_destroy(ctx);
    return result == FS_EBACKEND && !ctx && strncmp(fs_error_message(), message, strlen(message)) == 0;
}

static int left_open(void)
{
    float a[100] = {0}, y[10];
    char text[512];
    fs_spec spec = FS_SPEC_INIT;
    spec.d = 100, spec.k = 10;
    fs_sketch *S = NULL;
    fs_context *ctx = NULL;
    fs_matrix A = fs_row_major(a, 100, 1, FS_F32), Y = fs_row_major(y, 10, 1, FS_F32);
    if (fs_sketch_create(&S, &spec) || fs_context_create(&ctx, NULL) || fs_apply(ctx, S, 0, 1.0, &A, 0.0, &Y)) {
        printf("left open: \"%s\"\n", fs_error_message());
        return 0;
    }
    fs_context_describe(ctx, text, sizeof text);
    printf("left open: %s\n", text);
    fs_context_destroy(ctx);
    fs_sketch_destroy(S);
    return strncmp(text, "cpu", 3) == 0 && strstr(text, "(auto: ") && strstr(text, message) && !*fs_error_message();
}

int main(void)
{
    const int asked = asked_for(), open = left_open();
    return asked && open ? 0 : 1;
}
