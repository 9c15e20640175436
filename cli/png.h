/* png.h - writes PNG images of at most 256 colours. */
#ifndef FSI_CLI_PNG_H
#define FSI_CLI_PNG_H

#include <stdint.h>
#include <stdio.h>

/* pixels: height rows of width bytes, each an index into palette, whose entries are 0xRRGGBB.  Returns 0, or
 * EXIT_FAILURE after printing why; a failed write shows when the stream is closed. */
int png_write(FILE *out, int64_t width, int64_t height, const uint32_t *palette, int colours, const uint8_t *pixels);

#endif
