/* demo_picture.c - error against time, both logarithmic, as SVG with a background of its own.
 *
 * One colour and one marker for each sketch, one point for each k; left and down is better.  A dashed line is the
 * time to read the matrix once. */
#include <inttypes.h>
#include <math.h>

#include "demo.h"

enum { WIDTH = 960, HEIGHT = 600, LEFT = 84, RIGHT = 700, TOP = 100, BOTTOM = 524, LEGEND = 724 };

/* In the order of demo_sketches.  Markers are paths around the origin, about 12 units across. */
static const struct style {
    const char *colour, *marker;
} styles[DEMO_SKETCHES] = {
    {"#d6004f", "M-7 0a7 7 0 1 0 14 0a7 7 0 1 0-14 0z"},
    {"#f2789f", "M-5-5h10v10h-10z"},
    {"#1864ab", "M0-6.5L6 5H-6z"},
    {"#3fa7e0", "M0 6.5L6-5H-6z"},
    {"#2b7a2f", "M0-7L7 0L0 7L-7 0z"},
    {"#8a9a00", "M-6-2h4v-4h4v4h4v4h-4v4h-4v-4h-4z"},
    {"#e8710a", "M-6.5 0L5-6V6z"},
    {"#6f42c1", "M6.5 0L-5-6V6z"},
    {"#343a40", "M0-6.5L6-2L4 5.5H-4L-6-2z"},
};

/* A logarithmic axis from low to high, drawn between two coordinates. */
typedef struct axis {
    double low, high, from, to;
} axis;
static double place(const axis *a, double value)
{
    return a->from + (a->to - a->from) * log(value / a->low) / log(a->high / a->low);
}

/* One coordinate of a point; values without a logarithm are drawn at the edge. */
static double value_of(const demo_table *t, int which, int size, int error)
{
    const demo_result *r = &t->result[which][size];
    return fmax(error ? r->error : r->ms, 1e-6);
}

/* The number of k at which a sketch was measured. */
static int points(const demo_table *t, int which)
{
    int count = 0;
    while (count < t->sizes && t->result[which][count].ms > 0) count++;
    return count;
}

static axis axis_over(const demo_table *t, int error, double from, double to)
{
    axis a = {error ? INFINITY : t->read, error ? 0 : t->read, from, to};
    for (int which = 0; which < DEMO_SKETCHES; which++)
        for (int i = 0; i < points(t, which); i++) {
            a.low = fmin(a.low, value_of(t, which, i, error));
            a.high = fmax(a.high, value_of(t, which, i, error));
        }
    a.low /= 1.35;
    a.high *= 1.35;
    return a;
}

/* The name of a matrix may be a file's, with any byte in it and of any length. */
static void put_text(FILE *out, const char *text)
{
    for (int i = 0; text[i] && i < 48; i++) switch (text[i]) {
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '&': fputs("&amp;", out); break;
        default: fputc(text[i] < ' ' || text[i] > '~' ? '?' : text[i], out);
        }
}

static void put_frame(FILE *out, const demo_table *t)
{
    fprintf(out,
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' font-family='DejaVu Sans, Verdana, Arial, "
            "sans-serif' font-size='14' fill='#212529'>\n"
            "<rect x='0.5' y='0.5' width='%d' height='%d' rx='8' fill='#fdfdfb' stroke='#ced4da'/>\n"
            "<text x='%d' y='38' font-size='20' font-weight='bold'>Sketching ",
            WIDTH, HEIGHT, WIDTH - 1, HEIGHT - 1, LEFT);
    put_text(out, t->A->name);
    fprintf(out,
            ", %" PRId64 " × %" PRId64 "</text>\n<text x='%d' y='60' fill='#495057'>left is faster, down is more "
            "accurate</text>\n<text x='%d' y='%d' text-anchor='middle' font-size='15'>time, milliseconds</text>\n"
            "<text transform='translate(26 %d) rotate(-90)' text-anchor='middle' font-size='15'>error of the Gram "
            "matrix, ‖Y′Y − A′A‖ / ‖A′A‖</text>\n",
            t->A->rows, t->A->cols, LEFT, (LEFT + RIGHT) / 2, BOTTOM + 52, (TOP + BOTTOM) / 2);
}

/* Lines at 1, 2 and 5 times the powers of ten; numbers at all of them, or at the powers alone where space is short. */
static void put_ticks(FILE *out, const axis *a, int vertical)
{
    static const double steps[] = {1, 2, 5};
    const double decade = fabs(a->to - a->from) / log10(a->high / a->low);
    const int tight = decade < (vertical ? 60 : 150);
    for (int power = (int)floor(log10(a->low)); power <= (int)ceil(log10(a->high)); power++)
        for (int i = 0; i < 3; i++) {
            const double value = steps[i] * pow(10, power), at = place(a, value);
            char number[32] = "";
            if (value < a->low || value > a->high) continue;
            if (!i || !tight) snprintf(number, sizeof number, "%g", value);
            if (vertical)
                fprintf(out,
                        "<path d='M%d %.1fH%d' stroke='#e3e6ea'/><text x='%d' y='%.1f' "
                        "text-anchor='end'>%s</text>\n",
                        LEFT, at, RIGHT, LEFT - 8, at + 5, number);
            else
                fprintf(out,
                        "<path d='M%.1f %dV%d' stroke='#e3e6ea'/><text x='%.1f' y='%d' "
                        "text-anchor='middle'>%s</text>\n",
                        at, TOP, BOTTOM, at, BOTTOM + 22, number);
        }
}

static void put_series(FILE *out, const demo_table *t, int which, const axis *x, const axis *y)
{
    fprintf(out,
            "<g fill='%s'><polyline fill='none' stroke='%s' stroke-opacity='0.45' stroke-width='1.5' "
            "points='",
            styles[which].colour, styles[which].colour);
    for (int i = 0; i < points(t, which); i++)
        fprintf(out, "%s%.1f,%.1f", i ? " " : "", place(x, value_of(t, which, i, 0)),
                place(y, value_of(t, which, i, 1)));
    fputs("'/>", out);
    for (int i = 0; i < points(t, which); i++)
        fprintf(out, "<path transform='translate(%.1f %.1f)' stroke='#fdfdfb' d='%s'/>",
                place(x, value_of(t, which, i, 0)), place(y, value_of(t, which, i, 1)), styles[which].marker);
    fputs("</g>\n", out);
}

static void put_legend(FILE *out, const demo_table *t)
{
    for (int which = 0; which < DEMO_SKETCHES; which++)
        fprintf(out, "<path transform='translate(%d %d)' fill='%s' d='%s'/><text x='%d' y='%d'%s>%s</text>\n", LEGEND,
                TOP + 20 + 30 * which, styles[which].colour, styles[which].marker, LEGEND + 18, TOP + 25 + 30 * which,
                which ? "" : " font-weight='bold'", demo_sketches[which].name);
    fprintf(out,
            "<text x='%d' y='%d' fill='#495057' font-size='13'>one point for each k,<tspan x='%d' "
            "dy='18'>from the top: ",
            LEGEND - 8, TOP + 42 + 30 * DEMO_SKETCHES, LEGEND - 8);
    for (int i = 0; i < t->sizes; i++) fprintf(out, "%s%" PRId64, i ? ", " : "", t->k[i]);
    fputs("</tspan></text>\n", out);
}

void demo_picture(FILE *out, const demo_table *t)
{
    const axis x = axis_over(t, 0, LEFT, RIGHT), y = axis_over(t, 1, BOTTOM, TOP);
    put_frame(out, t);
    put_ticks(out, &x, 0);
    put_ticks(out, &y, 1);
    fprintf(out, "<rect x='%d' y='%d' width='%d' height='%d' fill='none' stroke='#868e96'/>\n", LEFT, TOP, RIGHT - LEFT,
            BOTTOM - TOP);
    const double read = place(&x, t->read);
    fprintf(out,
            "<path d='M%.1f %dV%d' stroke='#495057' stroke-dasharray='5 4'/>"
            "<text x='%.1f' y='%d' text-anchor='middle' fill='#495057' font-size='13'>reading A once</text>\n",
            read, TOP, BOTTOM, read, TOP - 7);
    for (int which = DEMO_SKETCHES - 1; which >= 0; which--) put_series(out, t, which, &x, &y);
    put_legend(out, t);
    fputs("</svg>\n", out);
}
