/* raw.c - a file of elements alone: little-endian, packed, shape and type from the command line. */
#include <stdlib.h>

#include "files/reader.h"

fs_result raw_read(const reader_source *in, const file_options *options, file_matrix *out)
{
    const reader_shape shape = {2, {options->rows, options->cols}};
    if (options->dtype < FS_F32 || options->dtype > FS_BF16)
        return bad_file("%s: a raw file needs a type: f16, bf16, f32 or f64", in->path);
    if (options->rows < 1 || options->cols < 1)
        return bad_file("%s: a raw file needs a shape of at least 1 x 1, not %" PRId64 " x %" PRId64, in->path,
                        options->rows, options->cols);
    const int64_t need = reader_bytes(&shape, fsi_dtype_size(options->dtype));
    if (need < 0 || (in->pipe && need > INT64_MAX / 16))
        return bad_file("%s: %" PRId64 " x %" PRId64 " %s is more bytes than can be counted", in->path, options->rows,
                        options->cols, file_dtype_name(options->dtype));
    if (!in->pipe && need != in->bytes)
        return bad_file("%s: %" PRId64 " x %" PRId64 " %s needs %" PRId64 " bytes, but the file has %" PRId64, in->path,
                        options->rows, options->cols, file_dtype_name(options->dtype), need, in->bytes);
    const file_kind kind = reader_kind_of(options->dtype);
    return reader_view(in, 0, &shape, &kind, options->by_columns, out);
}
