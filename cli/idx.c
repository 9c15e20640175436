/* idx.c - the header with limits, then the rows one by one, then the proof that nothing follows. */
#include "idx.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "cli.h"

enum { MAX_DIMENSIONS = 4, TYPE_BYTES = 0x08 };

/* The file ended before `what` did, or could not be decoded: says which.  zlib's sentences start with the path. */
static int cut_short(gzFile file, const char *path, const char *what)
{
    int code;
    const char *why = gzerror(file, &code);
    if (code == Z_ERRNO) return cli_fail("'%s' could not be read (%s)", path, strerror(errno));
    if (code != Z_OK && code != Z_BUF_ERROR) return cli_fail("%s; the file is damaged, get it again", why);
    return cli_fail("'%s' ends in the middle of %s; get the file again", path, what);
}

static int read_header(gzFile file, const char *path, int64_t max_cols, int64_t *rows, int64_t *cols)
{
    unsigned char magic[4], size[4];
    if (gzread(file, magic, 4) != 4) return cut_short(file, path, "its header");
    if (magic[0] || magic[1])
        return cli_fail("'%s' is not an IDX file: it starts with %02x %02x, not with 00 00", path, magic[0], magic[1]);
    if (magic[2] != TYPE_BYTES)
        return cli_fail("'%s' holds values of type 0x%02x; only unsigned bytes (0x08) are read", path, magic[2]);
    if (magic[3] < 2 || magic[3] > MAX_DIMENSIONS)
        return cli_fail("'%s' has %d dimensions; a matrix needs 2 to %d", path, magic[3], MAX_DIMENSIONS);
    *rows = 0;
    *cols = 1;
    for (int i = 0; i < magic[3]; i++) {
        if (gzread(file, size, 4) != 4) return cut_short(file, path, "its header");
        const int64_t n = (int64_t)size[0] << 24 | size[1] << 16 | size[2] << 8 | size[3];
        if (n < 1) return cli_fail("'%s' has size 0 in dimension %d: there is nothing to read", path, i + 1);
        if (i == 0) *rows = n;
        else *cols *= n <= max_cols ? n : max_cols + 1;
        if (*cols > max_cols)
            return cli_fail("'%s' has rows of more than %" PRId64 " values, the most that is read", path, max_cols);
    }
    return 0;
}

static int read_rows(gzFile file, const char *path, int64_t rows, int64_t kept, int64_t cols, float *data)
{
    unsigned char *line = malloc((size_t)cols);
    int code = line ? 0 : cli_fail("there is no memory for a row of %" PRId64 " bytes", cols);
    for (int64_t i = 0; i < rows && !code; i++) {
        if (gzread(file, line, (unsigned)cols) != (int)cols) code = cut_short(file, path, "its values");
        for (int64_t j = 0; j < cols && i < kept && !code; j++) data[i * cols + j] = (float)line[j] / 255.0f;
    }
    const int more = code ? 0 : gzread(file, line, 1);
    if (more < 0) code = cut_short(file, path, "its last bytes");
    if (more > 0)
        code = cli_fail("'%s' goes on after the %" PRId64 " x %" PRId64 " values of its header; it is not what it says",
                        path, rows, cols);
    free(line);
    return code;
}

int idx_read(const char *path, int64_t max_rows, int64_t max_cols, float **data, int64_t *rows, int64_t *cols)
{
    *data = NULL;
    gzFile file = gzopen(path, "rb");
    if (!file) return cli_fail("'%s' cannot be opened (%s)", path, strerror(errno));
    gzbuffer(file, 1 << 17);
    int64_t all = 0;
    int code = read_header(file, path, max_cols, &all, cols);
    if (!code) {
        *rows = all < max_rows ? all : max_rows;
        *data = cli_array(*rows, *cols, sizeof **data);
        if (*data) code = read_rows(file, path, all, *rows, *cols, *data);
        else code = cli_fail("there is no memory for %" PRId64 " x %" PRId64 " values of '%s'", *rows, *cols, path);
    }
    gzclose(file);
    if (code) {
        free(*data);
        *data = NULL;
    }
    return code;
}
