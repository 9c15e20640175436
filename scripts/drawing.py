"""drawing.py - SVG pictures in one style, for scripts/figures.py and bench/report_rivals.py.

A picture is a white card with a grey border, so that it is legible on a light and on a dark page.  Colours are those of
Okabe and Ito, which stay apart for colour-blind readers.  The text is always the same, so that a test can compare it
with the file.
"""
import html
import math
import pathlib

INK, GREY, FAINT = "#1a1a1a", "#5c5c5c", "#dcdcdc"
ORANGE, BLUE, GREEN, SKY, PINK, YELLOW, BLACK = ("#d55e00", "#0072b2", "#009e73", "#56b4e9", "#cc79a7", "#e69f00",
                                                "#000000")


def rounded(value):
    """A coordinate with at most one digit behind the point."""
    return f"{value:.1f}".removesuffix(".0")


class Picture:
    """Shapes are drawn in the order of the calls.  Coordinates are in pixels from the upper left corner."""

    def __init__(self, width, height, title):
        self.width, self.height = width, height
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
                      f'height="{height}" role="img" font-family="DejaVu Sans, Verdana, Arial, sans-serif">',
                      f"<title>{html.escape(title)}</title>"]
        self.rect(0.5, 0.5, width - 1, height - 1, "#ffffff", stroke="#c8c8c8", radius=6)

    def rect(self, x, y, width, height, fill, stroke=None, radius=0):
        self.parts.append(f'<rect x="{rounded(x)}" y="{rounded(y)}" width="{rounded(width)}" '
                          f'height="{rounded(height)}" fill="{fill}"' + (f' stroke="{stroke}"' if stroke else "")
                          + (f' rx="{radius}"' if radius else "") + "/>")

    def line(self, points, colour, width=1.0, dashes=None):
        path = " ".join(f"{rounded(x)},{rounded(y)}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"'
                          + (f' stroke-dasharray="{dashes}"' if dashes else "") + "/>")

    def arrow(self, x0, y0, x1, y1, colour, width=1.4):
        angle = math.atan2(y1 - y0, x1 - x0)
        self.line([(x0, y0), (x1, y1)], colour, width)
        head = [(x1 + 7 * math.cos(angle + turn), y1 + 7 * math.sin(angle + turn)) for turn in (2.7, -2.7)]
        self.polygon([(x1, y1), *head], colour)

    def polygon(self, points, fill, stroke=None):
        path = " ".join(f"{rounded(x)},{rounded(y)}" for x, y in points)
        self.parts.append(f'<polygon points="{path}" fill="{fill}"' + (f' stroke="{stroke}"' if stroke else "") + "/>")

    def text(self, x, y, text, size=12, colour=INK, anchor="start", bold=False, angle=0):
        self.parts.append(f'<text x="{rounded(x)}" y="{rounded(y)}" font-size="{size}" fill="{colour}"'
                          + (f' text-anchor="{anchor}"' if anchor != "start" else "")
                          + (' font-weight="bold"' if bold else "")
                          + (f' transform="rotate({angle} {rounded(x)} {rounded(y)})"' if angle else "")
                          + f">{html.escape(text, quote=False)}</text>")

    def marker(self, x, y, shape, colour, size=4.5):
        """A point of a chart; shapes differ so that the chart can be read without colours."""
        r = size
        if shape == "o":
            self.parts.append(f'<circle cx="{rounded(x)}" cy="{rounded(y)}" r="{r}" fill="{colour}" stroke="#ffffff"/>')
        else:
            corners = {"s": [(-r, -r), (r, -r), (r, r), (-r, r)],
                       "d": [(0, -r - 1), (r + 1, 0), (0, r + 1), (-r - 1, 0)],
                       "^": [(0, -r - 1), (r, r), (-r, r)], "v": [(0, r + 1), (r, -r), (-r, -r)],
                       "<": [(-r - 1, 0), (r, -r), (r, r)]}[shape]
            self.polygon([(x + dx, y + dy) for dx, dy in corners], colour, "#ffffff")

    def svg(self):
        return "\n".join([*self.parts, "</svg>"]) + "\n"


class Axes:
    """A panel with two logarithmic axes."""

    def __init__(self, picture, box, xs, ys):
        self.picture, self.box, self.xs, self.ys = picture, box, xs, ys

    def at(self, x, y):
        left, top, width, height = self.box

        def share(value, low, high):
            return math.log(value / low) / math.log(high / low)

        return left + width * share(x, *self.xs), top + height * (1 - share(y, *self.ys))

    def frame(self, x_ticks, y_ticks, title, y_numbers=True):
        left, top, width, height = self.box
        for tick in x_ticks:
            x, _ = self.at(tick, self.ys[0])
            self.picture.line([(x, top), (x, top + height)], FAINT)
            self.picture.text(x, top + height + 16, f"{tick:g}", 11, GREY, "middle")
        for tick in y_ticks:
            _, y = self.at(self.xs[0], tick)
            self.picture.line([(left, y), (left + width, y)], FAINT)
            if y_numbers:
                self.picture.text(left - 6, y + 4, f"{tick:g}", 11, GREY, "end")
        self.picture.line([(left, top), (left, top + height), (left + width, top + height)], GREY)
        self.picture.text(left, top - 10, title, 12.5, INK, bold=True)

    def series(self, points, colour, marker, width=1.6):
        places = [self.at(*point) for point in points]
        self.picture.line(places, colour, width)
        for x, y in places:
            self.picture.marker(x, y, marker, colour)


def put(path, text, check):
    """Writes a file made by a script, or compares it: the name of a file that differs, otherwise None."""
    path = pathlib.Path(path)
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return None
    if not check:
        path.write_text(text, encoding="utf-8")
        return None
    return path
