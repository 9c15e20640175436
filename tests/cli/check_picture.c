/* check_picture.c - prints the format and size of a picture, or exits 1 if it is not well-formed.
 *
 * PNG: every chunk is whole and has the right checksum, the pixels unpack to the size in the header, and are in the
 * palette.  SVG: every element is closed in order, and no coordinate is nan or inf. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { MOST = 1 << 24, DEEP = 64 };
static unsigned char data[MOST + 1];

static int wrong(const char *what)
{
    printf("not well-formed: %s\n", what);
    return 1;
}

static unsigned long get32(const unsigned char *p)
{
    return (unsigned long)p[0] << 24 | (unsigned long)p[1] << 16 | (unsigned long)p[2] << 8 | p[3];
}

static int check_pixels(const unsigned char *packed, uLong bytes, unsigned long width, unsigned long height,
                        unsigned long colours)
{
    uLongf size = (width + 1) * height;
    unsigned char *pixels = malloc(size);
    int result = 0;
    if (!pixels || uncompress(pixels, &size, packed, bytes) != Z_OK || size != (width + 1) * height)
        result = wrong("the pixels do not unpack to the size in the header");
    for (unsigned long i = 0; i < size && !result; i++) {
        if (i % (width + 1) == 0 && pixels[i] != 0) result = wrong("a row has a filter");
        if (pixels[i] >= colours) result = wrong("a pixel is outside the palette");
    }
    free(pixels);
    return result;
}

static int check_png(size_t bytes)
{
    unsigned long width = 0, height = 0, colours = 0;
    int ended = 0;
    for (size_t at = 8; at < bytes;) {
        if (at + 12 > bytes || get32(data + at) > bytes - at - 12) return wrong("a chunk is cut short");
        const unsigned long length = get32(data + at);
        const unsigned char *type = data + at + 4, *body = type + 4;
        if (crc32(0, type, (uInt)length + 4) != get32(body + length)) return wrong("a checksum is wrong");
        if (!memcmp(type, "IHDR", 4)) {
            width = get32(body);
            height = get32(body + 4);
            if (length != 13 || body[8] != 8 || body[9] != 3) return wrong("it is not 8-bit with a palette");
        }
        if (!memcmp(type, "PLTE", 4)) colours = length / 3;
        if (!memcmp(type, "IDAT", 4) && check_pixels(body, length, width, height, colours)) return 1;
        ended = !memcmp(type, "IEND", 4);
        at += length + 12;
    }
    if (!ended) return wrong("it does not end with IEND");
    printf("PNG, %lu x %lu, %lu bytes\n", width, height, (unsigned long)bytes);
    return 0;
}

static int check_svg(void)
{
    char open[DEEP][32];
    int depth = 0, elements = 0;
    const char *text = (const char *)data;
    if (strstr(text, "nan") || strstr(text, "inf")) return wrong("a number is nan or inf");
    for (const char *tag = text; (tag = strchr(tag, '<')); tag++) {
        const char *end = strchr(tag, '>');
        char name[32] = "";
        if (!end) return wrong("a tag is cut short");
        if (sscanf(tag + 1 + (tag[1] == '/'), "%31[a-z]", name) != 1) return wrong("a tag has no name");
        if (tag[1] == '/') {
            if (!depth || strcmp(open[--depth], name)) return wrong("elements are not closed in order");
        } else {
            elements++;
            if (end[-1] != '/' && depth == DEEP) return wrong("elements are too deep");
            if (end[-1] != '/') strcpy(open[depth++], name);
        }
        if (depth == 0 && end[1 + strspn(end + 1, " \n")]) return wrong("something follows the last element");
    }
    if (depth || !elements) return wrong("an element is not closed");
    printf("SVG, %d elements\n", elements);
    return 0;
}

int main(int argc, char **argv)
{
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (!file) return wrong("there is no such file");
    const size_t bytes = fread(data, 1, MOST, file);
    fclose(file);
    if (bytes > 8 && !memcmp(data, "\x89PNG\r\n\x1A\n", 8)) return check_png(bytes);
    if (bytes > 4 && !memcmp(data, "<svg", 4)) return check_svg();
    return wrong("it is neither PNG nor SVG");
}
