/* grass_picture.c - images side by side, twice as large as they are, dark on white. */
#include "grass_picture.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "png.h"

enum { SCALE = 2, FRAME = 2, GAP = 4, WIDE = 20, GREYS = 250, WHITE = GREYS, GREEN, RED, BLACK, COLOURS };

typedef struct canvas {
    int64_t width, height;
    uint8_t *pixel;
    int64_t across, down; /* pixels of an image */
} canvas;

/* A byte of the file that x was made of, as a grey: 255 is darkest. */
static uint8_t grey(const grass_data *data, float x)
{
    const double byte = (x * data->deviation + data->mean) * 255;
    const double level = (1 - byte / 255) * (GREYS - 1) + 0.5;
    return (uint8_t)(level < 0 ? 0 : level > GREYS - 1 ? GREYS - 1 : level);
}

/* An image in a frame whose upper left corner is (left, top). */
static void draw(canvas *c, int64_t left, int64_t top, const grass_data *data, const float *x, int frame)
{
    const int64_t wide = c->across * SCALE + 2 * FRAME, high = c->down * SCALE + 2 * FRAME;
    for (int64_t j = 0; j < high; j++)
        for (int64_t i = 0; i < wide; i++) {
            const int64_t u = (i - FRAME) / SCALE, v = (j - FRAME) / SCALE;
            const int inside = i >= FRAME && j >= FRAME && u < c->across && v < c->down;
            c->pixel[(top + j) * c->width + left + i] = inside ? grey(data, x[v * c->across + u]) : (uint8_t)frame;
        }
}

int grass_picture(FILE *out, const grass_data *data, const grass_rows *rows)
{
    static uint32_t palette[COLOURS];
    for (uint32_t i = 0; i < GREYS; i++) palette[i] = (i * 255 / (GREYS - 1)) * 0x010101u;
    palette[WHITE] = 0xFFFFFF, palette[GREEN] = 0x2E9E4F, palette[RED] = 0xC8372D, palette[BLACK] = 0x202020;
    const int64_t pixels = data->train.pixels, side = (int64_t)(sqrt((double)pixels) + 0.5);
    canvas c = {.across = side * side == pixels ? side : pixels, .down = side * side == pixels ? side : 1};
    const int64_t cell = c.across * SCALE + 2 * FRAME + GAP, line = c.down * SCALE + 2 * FRAME + GAP;
    c.width = GAP + cell + 2 * (WIDE + rows->each * cell);
    c.height = GAP + rows->count * line;
    c.pixel = cli_array(c.height, c.width, 1);
    if (!c.pixel) return cli_fail("no memory for a picture of %" PRId64 " x %" PRId64 " pixels", c.width, c.height);
    memset(c.pixel, WHITE, (size_t)(c.width * c.height));
    for (int64_t r = 0; r < rows->count; r++) {
        const int64_t top = GAP + r * line, first = GAP + cell + WIDE, second = first + rows->each * cell + WIDE;
        draw(&c, GAP, top, data, data->test.x + rows->query[r] * pixels, BLACK);
        for (int64_t i = 0; i < rows->each; i++) {
            const int64_t at = r * rows->each + i;
            draw(&c, first + i * cell, top, data, data->train.x + rows->helpful[at] * pixels, GREEN);
            draw(&c, second + i * cell, top, data, data->train.x + rows->harmful[at] * pixels, RED);
        }
    }
    const int code = png_write(out, c.width, c.height, palette, COLOURS, c.pixel);
    free(c.pixel);
    return code;
}
