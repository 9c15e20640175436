/* svg.h - writes the images that png.h writes as SVG: whole rectangles of one colour, which stay sharp at any size. */
#ifndef FSI_CLI_SVG_H
#define FSI_CLI_SVG_H

#include <stdint.h>
#include <stdio.h>

/* As png_write.  Colour 0 is the page.  Overwrites pixels. */
int svg_write(FILE *out, int64_t width, int64_t height, const uint32_t *palette, int colours, uint8_t *pixels);

#endif
