/* svg.c - pixels of few colours as rectangles.
 *
 * Colours are painted in the order of their numbers, so a rectangle may extend under later colours: the ground is one
 * rectangle.  From the top left, every pixel of a colour that is not yet covered starts a rectangle: as long as its row
 * allows, then as tall as that length allows.  A colour is one path. */
#include "svg.h"

#include <inttypes.h>

/* How many pixels from here on have this colour or a later one. */
static int64_t run_of(const uint8_t *row, int64_t length, int colour)
{
    int64_t run = 0;
    while (run < length && row[run] >= colour) run++;
    return run;
}

/* Takes the colour from a row of a rectangle: it is painted. */
static void paint(uint8_t *row, int64_t length, int colour)
{
    for (int64_t i = 0; i < length; i++)
        if (row[i] == colour) row[i] = 0;
}

int svg_write(FILE *out, int64_t width, int64_t height, const uint32_t *palette, int colours, uint8_t *pixels)
{
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%" PRId64 "\" height=\"%" PRId64
            "\" viewBox=\"0 0 %" PRId64 " %" PRId64 "\" shape-rendering=\"crispEdges\">\n"
            "<rect width=\"%" PRId64 "\" height=\"%" PRId64 "\" fill=\"#%06" PRIX32 "\"/>\n",
            width, height, width, height, width, height, palette[0]);
    for (int colour = 1; colour < colours; colour++) {
        int begun = 0;
        for (int64_t y = 0; y < height; y++)
            for (int64_t x = 0; x < width; x++) {
                uint8_t *row = pixels + y * width + x;
                if (*row != colour) continue;
                const int64_t length = run_of(row, width - x, colour);
                int64_t tall = 0;
                for (; y + tall < height && run_of(row, length, colour) == length; tall++, row += width)
                    paint(row, length, colour);
                if (!begun++) fprintf(out, "<path fill=\"#%06" PRIX32 "\" d=\"", palette[colour]);
                fprintf(out, "M%" PRId64 " %" PRId64 "h%" PRId64 "v%" PRId64 "h-%" PRId64 "z", x, y, length, tall,
                        length);
            }
        if (begun) fputs("\"/>\n", out);
    }
    fputs("</svg>\n", out);
    return 0;
}
