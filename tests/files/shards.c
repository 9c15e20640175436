/* shards.c - see shards.h. */
#include "tests/files/shards.h"

double value(int64_t i, int64_t j) { return (double)((i * COLS + j) % 2039); }

/* Magic and header of an npy file, 128 bytes. */
static void put_header(bytes *b, const char *descr, int fortran, int64_t rows)
{
    put_text(b, "%cNUMPY%c%c%c%c", 0x93, 1, 1, 128 - 10, 1);
    b->at[7] = b->at[9] = 0; /* put_text writes no zeros */
    put_text(b, "{'descr': '%s', 'fortran_order': %s, 'shape': (%d, %d), }", descr, fortran ? "True" : "False",
             (int)rows, COLS);
    while (b->count < 127) put_text(b, " ");
    put_text(b, "\n");
}

void save_integers(const char *path, int64_t first, int64_t end, const char *descr, int fortran)
{
    bytes b = {.count = 0};
    put_header(&b, descr, fortran, end - first);
    for (int64_t p = 0; p < (end - first) * COLS; p++) {
        const int64_t i = fortran ? p % (end - first) : p / COLS, j = fortran ? p / (end - first) : p % COLS;
        (descr[0] == '>' ? put_big : put_little)(&b, (uint64_t)value(first + i, j), descr[2] - '0');
    }
    save(&b, path);
}

void save_npy(const char *path, int64_t first, int64_t end, fs_dtype dtype, int fortran)
{
    bytes b = {.count = 0};
    static const char *const descr[] = {"", "<f4", "<f8", "<f2"};
    put_header(&b, descr[dtype], fortran, end - first);
    if (fortran)
        for (int64_t j = 0; j < COLS; j++)
            for (int64_t i = first; i < end; i++) put_double(&b, value(i, j), dtype);
    else
        for (int64_t i = first; i < end; i++)
            for (int64_t j = 0; j < COLS; j++) put_double(&b, value(i, j), dtype);
    save(&b, path);
}

const char *const names[MOST_SHARDS] = {"s0.npy", "s1.npy", "s2.npy", "s3.npy", "s4.npy", "s5.npy"};
const int64_t cuts[CUTS][MOST_SHARDS] = {{0, ROWS}, {0, 1, ROWS}, {0, 100, 101, 102, ROWS}, {0, 50, 210, ROWS}};
int64_t save_shards(const int64_t *at, fs_dtype dtype, int fortran)
{
    int64_t count = 0;
    for (; at[count] < ROWS; count++) save_npy(names[count], at[count], at[count + 1], dtype, fortran);
    return count;
}

void save_whole(const char *path, int64_t first, int64_t end, whole_format format, int packed)
{
    bytes b = {.count = 0};
    if (format == IDX) {
        put_big(&b, 0x0D02, 4), put_big(&b, (uint64_t)(end - first), 4), put_big(&b, COLS, 4);
        for (int64_t i = first; i < end; i++)
            for (int64_t j = 0; j < COLS; j++) {
                const float x = (float)value(i, j);
                uint32_t bits;
                memcpy(&bits, &x, sizeof bits);
                put_big(&b, bits, 4);
            }
    } else if (format == TABLE) {
        for (int64_t p = first * COLS; p < end * COLS; p++)
            put_text(&b, "%d%s", (int)value(p / COLS, p % COLS), p % COLS + 1 < COLS ? ";" : "\r\n");
    } else {
        int64_t entries = 0;
        for (int64_t i = first; i < end; i++)
            for (int64_t j = 0; j < COLS; j++) entries += value(i, j) != 0;
        put_text(&b, "%%%%MatrixMarket matrix %s integer general\n%d %d", format == ARRAY ? "array" : "coordinate",
                 (int)(end - first), COLS);
        if (format == ENTRIES) put_text(&b, " %d", (int)entries);
        put_text(&b, "\n");
        for (int64_t j = 0; j < COLS; j++)
            for (int64_t i = first; i < end; i++)
                if (format == ARRAY) put_text(&b, "%d\n", (int)value(i, j));
                else if (value(i, j) != 0)
                    put_text(&b, "%d %d %d\n", (int)(i - first + 1), (int)j + 1, (int)value(i, j));
    }
    if (packed) save_gzip(&b, path);
    else save(&b, path);
}

fs_stream *opened_stream(const char *const *paths, int64_t count, const fs_stream_options *options)
{
    fs_stream *stream = NULL;
    if (fs_stream_create(&stream, paths, count, options) != FS_OK) {
        print_error("%s\n", fs_error_message());
        fail();
    }
    return stream;
}

void expect_words(fs_result result, fs_result wanted, const char *a, const char *b)
{
    const char *message = fs_error_message();
    if (result != wanted || !strstr(message, a) || !strstr(message, b))
        print_error("%s: \"%s\" lacks \"%s\" or \"%s\"\n", fs_result_name(result), message, a, b);
    assert_true(result == wanted && strstr(message, a) && strstr(message, b));
}
