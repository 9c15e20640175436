/* where.c - from the command line to a context's options. */
#include "where.h"

#include <string.h>

#include "cli.h"

int where_is_option(int code) { return code == WHERE_DEVICE || code == WHERE_THREADS; }

static int take_device(const char *command, const char *text, fs_context_options *where)
{
    int64_t device = 0;
    where->backend = !strcmp(text, "auto") ? FS_BACKEND_AUTO : !strcmp(text, "cpu") ? FS_BACKEND_CPU : FS_BACKEND_CUDA;
    if (where->backend != FS_BACKEND_CUDA || !strcmp(text, "cuda")) return 0;
    if (strncmp(text, "cuda:", 5)) return cli_usage(command, "--device is auto, cpu, cuda or cuda:N, not '%s'", text);
    const int code = cli_number(command, "--device cuda:", text + 5, 0, 1023, &device);
    where->device = (int)device;
    return code;
}

int where_option(const char *command, int code, const char *text, fs_context_options *where)
{
    int64_t threads = 0;
    if (code == WHERE_DEVICE) return take_device(command, text, where);
    const int bad = cli_number(command, "--threads", text, 1, FS_THREADS_MAX, &threads);
    where->threads = (int)threads;
    return bad;
}
