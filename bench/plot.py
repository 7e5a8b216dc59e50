#!/usr/bin/env python3
"""Draws the figures of a run of compare.py as SVG files, all libraries in each.

    bench/plot.py r.json [FOLDER]

latency, bandwidth (both over shared memory and over TCP), unexpected (a receive behind so many unexpected messages),
posted (a round trip behind so many posted receives), oversubscribed (collectives of more ranks than cores). A point is
the median of the launches, the bar behind it their range. Plain SVG, written here: no library is needed.
"""

import json
import math
import os
import re
import statistics
import sys

COLOURS = {"Tern": "#c2410c", "MPICH": "#1d4ed8", "Open MPI": "#15803d", "bare socket": "#111111"}
DASHES = ["", "7 4", "2 4"]
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 800, 440, 80, 250, 40, 50

# file, title, words on x and y, and (words, pattern of the key with one group: x) for each line of a library
CHARTS = [
    ("latency", "Half round trip, two ranks, shared memory", "bytes", "µs", [("", r"p2p\.lat_(\w+)_us")]),
    ("bandwidth", "One way, windows of 64 messages, shared memory", "bytes", "MB/s", [("", r"p2p\.bw_(\w+)_MBs")]),
    ("latency_tcp", "Half round trip, two ranks, TCP on loopback", "bytes", "µs", [("", r"p2p\.tcp\.lat_(\w+)_us")]),
    ("bandwidth_tcp", "One way, windows of 64 messages, TCP on loopback", "bytes", "MB/s",
     [("", r"p2p\.tcp\.bw_(\w+)_MBs")]),
    ("unexpected", "Receive behind unexpected messages", "messages in the way", "ns",
     [("tag", r"match\.unexp_tag_n(\d+)_ns"), ("16 communicators", r"match\.unexp_comms_n(\d+)_ns")]),
    ("posted", "Round trip behind posted receives", "receives in the way", "ns",
     [("one source", r"match\.posted_tag_n(\d+)_ns"), ("any source", r"match\.posted_any_n(\d+)_ns")]),
    ("oversubscribed", "More ranks than cores", "ranks", "µs",
     [("barrier", r"over\.n(\d+)_barrier_us"), ("allreduce, 8 bytes", r"over\.n(\d+)_allreduce8_us")]),
]


def size(text):
    """512, 64K, 4M as a number."""
    unit = {"K": 1 << 10, "M": 1 << 20}.get(text[-1], 1)
    return int(text.rstrip("KM")) * unit


def short(x):
    for unit, letter in ((1 << 20, "M"), (1 << 10, "K")):
        if x >= unit and x % unit == 0:
            return "%d%s" % (x // unit, letter)
    return "%g" % x


def line_of(data, pattern, name):
    """Points (x, median, smallest, largest) of a library, by x."""
    points = []
    for key, by_peer in data.items():
        match = re.fullmatch(pattern, key)
        if match and by_peer.get(name):
            values = by_peer[name]
            points.append((size(match.group(1)), statistics.median(values), min(values), max(values)))
    return sorted(points)


class Chart:
    """Logarithmic axes; x = 0 has a place of its own at the left."""

    def __init__(self, title, x_words, y_words, points):
        xs, ys = sorted({p[0] for p in points}), [y for p in points for y in p[2:] if y > 0]
        positive = [math.log2(x) for x in xs if x > 0]
        self.zero = min(positive) - 2 if 0 in xs else None
        self.x_range = (self.zero if 0 in xs else min(positive), max(max(positive), min(positive) + 1))
        self.y_range = (math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)) + 1e-9))
        self.out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" '
                    'font-size="13">' % (WIDTH, HEIGHT), '<rect width="100%" height="100%" fill="white"/>']
        self.text((LEFT + WIDTH - RIGHT) / 2, 22, title, "middle", 'font-size="16"')
        self.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x_words, "middle")
        self.text(14, TOP - 10, y_words, "start")
        for x in xs:
            self.text(self.x(x), HEIGHT - BOTTOM + 18, short(x), "middle")
            self.rule(self.x(x), TOP, self.x(x), HEIGHT - BOTTOM)
        for decade in range(self.y_range[0], self.y_range[1] + 1):
            value = 10.0 ** decade
            self.text(LEFT - 8, self.y(value) + 4, "{:,.0f}".format(value) if decade >= 0 else "%g" % value, "end")
            self.rule(LEFT, self.y(value), WIDTH - RIGHT, self.y(value))

    def x(self, value):
        at = math.log2(value) if value > 0 else self.zero
        low, high = self.x_range
        return LEFT + 12 + (at - low) / (high - low) * (WIDTH - LEFT - RIGHT - 24)

    def y(self, value):
        low, high = self.y_range
        at = math.log10(max(value, 10.0 ** low))
        return HEIGHT - BOTTOM - (at - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    def text(self, x, y, words, anchor, more=""):
        words = words.replace("&", "&amp;").replace("<", "&lt;")
        self.out.append('<text x="%.1f" y="%.1f" text-anchor="%s" %s>%s</text>' % (x, y, anchor, more, words))

    def rule(self, x1, y1, x2, y2, colour="#e2e2e2", width=1, dash=""):
        self.out.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%g" '
                        'stroke-dasharray="%s"/>' % (x1, y1, x2, y2, colour, width, dash))

    def line(self, points, colour, dash):
        path = " ".join("%.1f,%.1f" % (self.x(p[0]), self.y(p[1])) for p in points)
        self.out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>'
                        % (path, colour, dash))
        for x, median, low, high in points:
            self.out.append('<line x1="{0:.1f}" x2="{0:.1f}" y1="{1:.1f}" y2="{2:.1f}" stroke="{3}" stroke-width="5" '
                            'opacity="0.3"/>'.format(self.x(x), self.y(low), self.y(high), colour))
            self.out.append('<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>' % (self.x(x), self.y(median), colour))

    def legend(self, k, words, colour, dash):
        y = TOP + 12 + 20 * k
        self.rule(WIDTH - RIGHT + 12, y, WIDTH - RIGHT + 40, y, colour, 2, dash)
        self.text(WIDTH - RIGHT + 46, y + 4, words, "start")


def draw(data, title, x_words, y_words, lines):
    """The chart as text, or None when there are no figures for it."""
    names = sorted({name for by_peer in data.values() for name in by_peer}, key=lambda n: (n != "Tern", n))
    found = [(name, words, DASHES[k % 3], line_of(data, pattern, name))
             for name in names for k, (words, pattern) in enumerate(lines)]
    found = [entry for entry in found if entry[3]]
    if not any(p[0] > 0 for entry in found for p in entry[3]):
        return None
    chart = Chart(title, x_words, y_words, [p for entry in found for p in entry[3]])
    for k, (name, words, dash, points) in enumerate(found):
        colour = COLOURS.get(name, "#555555")
        chart.line(points, colour, dash)
        chart.legend(k, name + (", " + words if words else ""), colour, dash)
    return "\n".join(chart.out) + "\n</svg>\n"


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    with open(sys.argv[1]) as file:
        data = json.load(file)
    folder = sys.argv[2] if len(sys.argv) == 3 else "."
    os.makedirs(folder, exist_ok=True)
    for name, *chart in CHARTS:
        picture = draw(data, *chart)
        if picture is None:
            print("%s: no figures in %s" % (name, sys.argv[1]))
            continue
        with open(os.path.join(folder, name + ".svg"), "w", encoding="utf-8") as file:
            file.write(picture)
        print(os.path.join(folder, name + ".svg"))


if __name__ == "__main__":
    main()
