/* no_files.c - in place of files.c in a build without the command and its readers of files. */
#include <stdio.h>

#include "data.h"

static int refuse(const data_source *source)
{
    fprintf(stderr, "fsbench: %s:%s cannot be read, this build has no readers of files (FS_BUILD_CLI)\n", source->kind,
            source->path);
    return 1;
}
int data_file_shape(const data_source *source, int64_t *d, int64_t *n)
{
    *d = *n = 0;
    return refuse(source);
}
int data_file_make(const data_set *set, float *A)
{
    (void)A;
    return refuse(set->source);
}
