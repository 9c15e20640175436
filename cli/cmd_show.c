/* cmd_show.c - flashsketch show: a picture of S, like the figure of the paper.
 *
 * Every nonzero is a dot; for blockperm its colour is the permutation that its block belongs to, otherwise its sign.
 * An entry is an integral number of pixels as long as S fits; the picture is a PNG, or an SVG of the same pixels. */
#include <flashsketch.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "command.h"
#include "def/def.h"
#include "output.h"
#include "png.h"
#include "spec_options.h"
#include "svg.h"

enum {
    SIDE = 2048,
    ZOOMED_SIDE = 1024,
    MARGIN = 24,
    PANELS = 2,
    GRID_BLOCKS = 64,
    MAX_NONZEROS = 1 << 26,
    MAX_SVG_NONZEROS = 1 << 18 /* some 50 bytes each */
};
enum { PAGE, PANEL, GRID, FRAME, FIRST_COLOUR, COLOURS = 256, DOT_COLOURS = COLOURS - FIRST_COLOUR };

/* Eight distinct colours, then hues a golden angle apart. */
static void make_palette(uint32_t palette[COLOURS])
{
    static const uint32_t known[] = {
        0xFFFFFF, 0xF6F7F9, 0xDADEE4, 0x868E96, 0x1F66C0, 0xE8590C,
        0x2B8A3E, 0xC2255C, 0x7048E8, 0x0B7285, 0xB08800, 0x495057,
    };
    enum { KNOWN = sizeof known / sizeof known[0] };
    for (int i = 0; i < COLOURS; i++) {
        palette[i] = i < KNOWN ? known[i] : 0;
        for (int channel = 0; channel < 3 && i >= KNOWN; channel++) {
            const double turn = 0.61803398875 * i + channel / 3.0, wave = cos(6.28318530718 * turn);
            palette[i] = palette[i] << 8 | (uint32_t)lround(110 + 90 * wave);
        }
    }
}

typedef struct canvas {
    int64_t width, height;
    uint8_t *pixel;
} canvas;

/* Where S is on the canvas: rows x cols entries in width x height pixels at (x, y). */
typedef struct panel {
    const fs_spec *spec;
    int64_t x, y, width, height;
    int64_t dot; /* pixels across */
} panel;

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* Fills a rectangle, as far as it is inside the panel; (0, 0) is the panel's corner. */
static void show_fill(canvas *c, const panel *p, int64_t x, int64_t y, int64_t width, int64_t height, uint8_t colour)
{
    const int64_t x0 = clamp(x, 0, p->width), x1 = clamp(x + width, 0, p->width);
    const int64_t y0 = clamp(y, 0, p->height), y1 = clamp(y + height, 0, p->height);
    for (int64_t row = p->y + y0; row < p->y + y1; row++)
        memset(c->pixel + row * c->width + p->x + x0, colour, (size_t)(x1 - x0));
}

/* An entry is one pixel, a square of them where S is small; a side of more than SIDE entries shrinks.  A dot covers
 * about a third of the B_r / s entries of its stratum in its column, in whole entries, because scaling would make
 * stripes. */
static void lay_out(panel *p, const fs_spec *spec, int64_t x)
{
    const int64_t zoom = clamp(ZOOMED_SIDE / (spec->d > spec->k ? spec->d : spec->k), 1, 32);
    const double room = (double)spec->k / (double)(spec->M * spec->s);
    const int dense = spec->family == FS_SRHT || spec->family == FS_GAUSSIAN;
    p->spec = spec;
    p->x = x;
    p->y = MARGIN;
    p->width = clamp(spec->d, 1, SIDE / zoom) * zoom;
    p->height = clamp(spec->k, 1, SIDE / zoom) * zoom;
    p->dot = dense ? zoom : zoom * clamp((int64_t)lround(0.6 * sqrt(room)), 1, 6);
}

static void draw_background(canvas *c, const panel *p)
{
    const panel around = {p->spec, p->x - 1, p->y - 1, p->width + 2, p->height + 2, 0};
    const fs_spec *spec = p->spec;
    show_fill(c, &around, 0, 0, around.width, around.height, FRAME);
    show_fill(c, p, 0, 0, p->width, p->height, PANEL);
    if (spec->M > GRID_BLOCKS) return;
    const fsi_split out = fsi_split_make(spec->k, spec->M), in = fsi_split_make(spec->d, spec->M);
    for (int64_t g = 1; g < spec->M; g++) {
        show_fill(c, p, 0, fsi_split_start(&out, g) * p->height / spec->k, p->width, 1, GRID);
        if (spec->shuffle == FS_SHUFFLE_NONE)
            show_fill(c, p, fsi_split_start(&in, g) * p->width / spec->d, 0, 1, p->height, GRID);
    }
}

/* The permutation l = 1 ... kappa with pi_l(g) = h, counted from 0, where g and h are the blocks of row i, column j. */
static int64_t permutation_of(const fsi_blockperm *B, int64_t i, int64_t j)
{
    const uint32_t target = (uint32_t)fsi_split_index(&B->out, i);
    uint32_t g = fsi_wiring_back(&B->wiring, (uint32_t)fsi_blockperm_local(B, j).h);
    int64_t l = 0;
    for (; g != target; l++) g = fsi_wiring_back(&B->wiring, g);
    return l;
}

static void draw_dots(canvas *c, const panel *p, const fs_sparse *S)
{
    const fs_spec *spec = p->spec;
    const int64_t *start = S->ptr, *column = S->index;
    const float *value = S->value;
    fsi_blockperm B = {0};
    if (spec->family == FS_BLOCKPERM)
        B = fsi_blockperm_make(spec->seed, spec->d, spec->k, spec->M, spec->kappa, spec->s, (int32_t)spec->shuffle,
                               spec->interleave);
    for (int64_t i = 0; i < S->rows; i++)
        for (int64_t e = start[i]; e < start[i + 1]; e++) {
            const int64_t j = column[e];
            const int64_t which = spec->family == FS_BLOCKPERM ? permutation_of(&B, i, j) : value[e] < 0;
            /* The centre of the entry, then half a dot back. */
            const int64_t x = ((2 * j + 1) * p->width / spec->d - p->dot + 1) / 2;
            const int64_t y = ((2 * i + 1) * p->height / spec->k - p->dot + 1) / 2;
            show_fill(c, p, x, y, p->dot, p->dot, (uint8_t)(FIRST_COLOUR + which % DOT_COLOURS));
        }
}

/* Exports S and draws it. */
static int draw_sketch(canvas *c, const panel *p, const fs_sketch *S, int svg)
{
    const fs_spec *spec = p->spec;
    int64_t nonzeros;
    if (fs_sketch_nnz(S, 0, spec->d, &nonzeros)) return cli_library_fail();
    if (nonzeros > MAX_NONZEROS)
        return cli_fail("S has %" PRId64 " nonzeros, but at most %d are drawn; give a smaller -d or -k", nonzeros,
                        MAX_NONZEROS);
    if (svg && nonzeros > MAX_SVG_NONZEROS)
        return cli_fail("S has %" PRId64 " nonzeros, but at most %d are drawn in an SVG; name a .png, or give a "
                        "smaller -d or -k",
                        nonzeros, MAX_SVG_NONZEROS);
    fs_sparse csr = {FS_CSR,
                     FS_INDEX64,
                     spec->k,
                     spec->d,
                     nonzeros,
                     cli_array(spec->k + 1, 1, sizeof(int64_t)),
                     cli_array(nonzeros, 1, sizeof(int64_t)),
                     cli_array(nonzeros, 1, sizeof(float)),
                     FS_F32,
                     FS_MEMORY_HOST};
    int code = 0;
    if (!csr.ptr || !csr.index || !csr.value)
        code = cli_fail("no memory for %" PRId64 " nonzeros; give a smaller -d or -k", nonzeros);
    else if (fs_sketch_to_csr(NULL, S, 0, &csr)) code = cli_library_fail();
    else draw_dots(c, p, &csr);
    free(csr.ptr);
    free(csr.index);
    free(csr.value);
    return code;
}

/* The panels side by side on one canvas, then the file. */
static int draw(const fs_sketch *const *sketch, const fs_spec *spec, int panels, const char *path)
{
    panel panel_of[PANELS];
    canvas c = {MARGIN, 0, NULL};
    const int svg = cli_ends_with(path, ".svg");
    uint32_t palette[COLOURS];
    make_palette(palette);
    for (int i = 0; i < panels; i++) {
        lay_out(&panel_of[i], &spec[i], c.width);
        c.width += panel_of[i].width + MARGIN;
    }
    c.height = panel_of[0].height + 2 * MARGIN;
    c.pixel = cli_array(c.height, c.width, 1);
    if (!c.pixel) return cli_fail("no memory for %" PRId64 " x %" PRId64 " pixels", c.width, c.height);
    memset(c.pixel, PAGE, (size_t)(c.width * c.height));
    int code = 0;
    for (int i = 0; i < panels && !code; i++) {
        draw_background(&c, &panel_of[i]);
        code = draw_sketch(&c, &panel_of[i], sketch[i], svg);
    }
    FILE *out = code ? NULL : output_open(path);
    if (!out) code = EXIT_FAILURE;
    else if (svg) code = svg_write(out, c.width, c.height, palette, COLOURS, c.pixel);
    else code = png_write(out, c.width, c.height, palette, COLOURS, c.pixel);
    if (!code) code = output_close();
    output_abandon();
    free(c.pixel);
    return code;
}

typedef struct show_options {
    const char *output;
    fs_spec spec;
    fs_shuffle beside;
} show_options;

enum { BESIDE = SPEC_OTHER, UNSAID = -1 };

static int show_take(void *options, int code, const char *value)
{
    show_options *o = options;
    if (spec_is_option(code)) return spec_option(show_command.name, code, value, &o->spec);
    if (code == BESIDE) return spec_shuffle(show_command.name, "--beside", value, &o->beside);
    o->output = value;
    return 0;
}

/* Options that were not given: the paper's figure for a blockperm of its size, the library's choice otherwise. */
static void complete(fs_spec *spec)
{
    const int figure = (spec->family == 0 || spec->family == FS_BLOCKPERM) && !spec->d && !spec->k;
    if (!spec->d) spec->d = 2048;
    if (!spec->k) spec->k = 1024;
    if (spec->M == UNSAID) spec->M = figure ? 16 : 0;
    if (spec->kappa == UNSAID) spec->kappa = figure ? 4 : 0;
    if (spec->s == UNSAID) spec->s = figure ? 2 : 0;
    if (figure && !spec->shuffle) spec->shuffle = FS_SHUFFLE_NONE;
}

static int show_run(int argc, char **argv)
{
    show_options o = {"flashsketch.png", FS_SPEC_INIT, (fs_shuffle)0};
    o.spec.seed = 1;
    o.spec.M = o.spec.kappa = o.spec.s = UNSAID;
    int code = cli_parse(&show_command, &argc, argv, show_take, &o);
    if (code) return code;
    if (argc > 1) return cli_usage(argv[0], "'%s' is not expected here; -o names the picture", argv[1]);
    if (!cli_ends_with(o.output, ".png") && !cli_ends_with(o.output, ".svg"))
        return cli_usage(argv[0], "the picture is PNG or SVG: -o names a file that ends in .png or .svg, not '%s'",
                         o.output);
    complete(&o.spec);

    fs_sketch *sketch[PANELS] = {NULL};
    fs_spec full[PANELS];
    const int panels = o.beside ? 2 : 1;
    for (int i = 0; i < panels && !code; i++) {
        if (i) o.spec.shuffle = o.beside;
        code = spec_sketch(&o.spec, &sketch[i], &full[i]);
    }
    if (!code) code = draw((const fs_sketch *const *)sketch, full, panels, o.output);
    for (int i = 0; i < panels && !code; i++) {
        char text[256];
        fs_sketch_describe(sketch[i], text, sizeof text);
        printf("%s\n", text);
    }
    if (!code) printf("The picture is in %s\n", o.output);
    for (int i = 0; i < panels; i++) fs_sketch_destroy(sketch[i]);
    return code;
}

static const cli_option options[] = {
    SPEC_OPTIONS,
    {BESIDE, "beside", "NAME", "draw S a second time with this shuffle, to the right", "none rows groups"},
    {'o', "output", "FILE", "file for the picture, .png or .svg (default flashsketch.png)", CLI_FILES},
    {0}};
const cli_command show_command = {
    "show",
    "[OPTION]...",
    "draw a picture of S",
    "Draws S, as PNG or SVG: every nonzero is a dot, its colour the permutation it belongs to (blockperm) or\n"
    "its sign (the other families).",
    options,
    "Without -d and -k this is the figure of the paper: -d 2048 -k 1024 -M 16 --kappa 4 -s 2 --shuffle none.  With\n"
    "one of them, or another family, the library chooses what is not given, as for 'flashsketch sketch'; 0 lets it\n"
    "choose in the figure too.",
    show_run};
