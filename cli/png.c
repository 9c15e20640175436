/* png.c - four chunks: header, palette, one compressed stream of all rows, end (ISO/IEC 15948). */
#include "png.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "cli.h"

static void put32(uint8_t *to, uint64_t value)
{
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(value >> (24 - 8 * i));
}

static void put_chunk(FILE *out, const char *type, const uint8_t *data, size_t bytes)
{
    uint8_t word[4];
    put32(word, bytes);
    fwrite(word, 1, 4, out);
    fwrite(type, 1, 4, out);
    fwrite(data, 1, bytes, out);
    const uLong crc = crc32_z(crc32(0, (const Bytef *)type, 4), data, bytes);
    put32(word, crc);
    fwrite(word, 1, 4, out);
}

/* Every row of the stream starts with the number of its filter; 0: none. */
static uint8_t *compress_rows(int64_t width, int64_t height, const uint8_t *pixels, uLongf *bytes)
{
    uint8_t *raw = cli_array(height, width + 1, 1);
    *bytes = compressBound((uLong)(height * (width + 1)));
    uint8_t *packed = raw ? malloc(*bytes) : NULL;
    if (packed) {
        for (int64_t i = 0; i < height; i++) {
            raw[i * (width + 1)] = 0;
            memcpy(raw + i * (width + 1) + 1, pixels + i * width, (size_t)width);
        }
        compress2(packed, bytes, raw, (uLong)(height * (width + 1)), Z_BEST_COMPRESSION);
    }
    free(raw);
    return packed;
}

int png_write(FILE *out, int64_t width, int64_t height, const uint32_t *palette, int colours, const uint8_t *pixels)
{
    static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
    uint8_t header[13] = {0}, table[3 * 256];
    uLongf bytes;
    uint8_t *packed = compress_rows(width, height, pixels, &bytes);
    if (!packed) return cli_fail("no memory for a picture of %" PRId64 " x %" PRId64 " pixels", width, height);
    put32(header, (uint64_t)width);
    put32(header + 4, (uint64_t)height);
    header[8] = 8; /* bits a pixel */
    header[9] = 3; /* indices into a palette */
    for (int i = 0; i < colours; i++)
        for (int c = 0; c < 3; c++) table[3 * i + c] = (uint8_t)(palette[i] >> (16 - 8 * c));
    fwrite(signature, 1, sizeof signature, out);
    put_chunk(out, "IHDR", header, sizeof header);
    put_chunk(out, "PLTE", table, 3 * (size_t)colours);
    put_chunk(out, "IDAT", packed, bytes);
    put_chunk(out, "IEND", signature, 0);
    free(packed);
    return 0;
}
