#!/usr/bin/env python3
"""Draws the figures of a run of compare.py as SVG files, all libraries in each.

    bench/plot.py r.json [FOLDER]

latency, bandwidth (both over shared memory and over TCP), unexpected (a receive behind so many unexpected messages),
posted (a round trip behind so many posted receives), oversubscribed (collectives of more ranks than cores), barrier
(over the number of ranks). rma_latency, rma_bandwidth, rma_overlap, rma_victim: puts over TCP, in each way in which Tern's
target serves them; copy_engines: copies by engines beside memcpy. spawn, spawn_rate, spawn_loop, connect, connect_choice,
first_contact, intercomm: dynamic processes, over children, spawns, processes that connect, bytes. A point is the median of the
launches, the bar behind it their range. collectives_N: Tern's time to that of the better other library, for each collective and
size, with N ranks. overlap: bars of what goes on while the caller computes. Plain SVG, written here: no library is needed.
"""

import json
import math
import os
import re
import statistics
import sys

COLOURS = {"Tern": "#c2410c", "MPICH": "#1d4ed8", "Open MPI": "#15803d", "bare socket": "#111111"}
LINE_COLOURS = ["#111111", "#1d4ed8", "#c2410c", "#15803d", "#7c3aed"]  # of charts with a single library
DASHES = ["", "7 4", "2 4"]
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 800, 440, 80, 250, 40, 50

# Modes of compare.py, and words for them.
RMA_WAYS = [("basic", "basic"), ("served", "helper"), ("beside", "helper, target's core"), ("copy", "copy"),
            ("core", "copy by a core")]

LINEAR = ("%", "time to that alone")  # words on y: the axis is from 0 on

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
    ("barrier", "Barrier over the number of ranks", "ranks", "µs",
     [("", r"barrier\.n(\d+)_barrier_us"), ("messages", r"barrier\.msg\.n(\d+)_barrier_us"),
      ("TCP", r"barrier\.tcp\.n(\d+)_barrier_us")]),
    ("rma_latency", "Lock, put, unlock over TCP, the target idle", "bytes", "µs",
     [(way, r"rma\.designs\.%s_put_(\w+)_us" % way) for way in ("basic", "helper", "copy")]),
    ("rma_bandwidth", "Lock, 64 puts, unlock over TCP, the target idle", "bytes", "MB/s",
     [(way, r"rma\.designs\.%s_bw_(\w+)_MBs" % way) for way in ("basic", "helper", "copy")]),
    ("rma_overlap", "What of a put over TCP goes on while the target computes", "bytes", "%",
     [(words, r"rma\.%s\.create_(\w+)_overlap_pct" % way) for way, words in RMA_WAYS]),
    ("rma_victim", "A target's loop over 256 KB beside puts of 200 MB/s over TCP", "bytes of a put", "time to that alone",
     [(words, r"rma\.%s\.loop256K_put(\w+)_ratio" % way) for way, words in RMA_WAYS]),
    ("copy_engines", "A copy by an engine, beside memcpy", "bytes", "µs",
     [("memcpy", r"copy\.memcpy_(\w+)_us"), ("nontemporal", r"copy\.nontemporal_(\w+)_us"),
      ("core", r"copy\.core_(\d\w*)_us"), ("core, caller's part", r"copy\.core_caller_(\w+)_us")]),
    ("spawn", "MPI_Comm_spawn beside vfork and exec of bare processes", "children", "ms",
     [("", r"spawn\.spawn_(\d+)_ms"), ("first answer", r"spawn\.spawn_(\d+)_first_ms"), ("bare", r"spawn\.bare_(\d+)_ms")]),
    ("spawn_rate", "Children spawned one at a time, all alive", "children so far", "a second", [("", r"spawn\.alive_at_(\d+)_per_s")]),
    ("spawn_loop", "Children spawned and disconnected one after the other", "children so far", "a second",
     [("", r"spawn\.loop_at_(\d+)_per_s")]),
    ("connect", "MPI_Comm_accept and MPI_Comm_connect", "processes that connect", "ms",
     [("halves of a job", r"connect\.connect_(\d+)_ms"), ("children to their parent", r"connect\.child_(\d+)_ms")]),
    ("connect_choice", "Accept and connect, by what more the two processes have to tell", "bytes", "ms",
     [("datagrams", r"choice\.datagrams_(\w+)_ms"), ("connected", r"choice\.connected_(\w+)_ms"), ("automatic", r"choice\.auto_(\w+)_ms")]),
    ("first_contact", "The first message of two processes and its answer", "processes of the group that is talked to", "µs",
     [("spawned", r"spawn\.spawn_(\d+)_trip_us"), ("connected", r"connect\.connect_(\d+)_trip_us"),
      ("child, connected", r"connect\.child_(\d+)_trip_us")]),
    ("intercomm", "Half round trip over intercommunicators and MPI_COMM_WORLD", "bytes", "µs",
     [("MPI_COMM_WORLD", r"inter\.intra_(\d\w*)_us"), ("created", r"inter\.created_(\d\w*)_us"),
      ("spawned", r"inter\.spawned_(\d\w*)_us")]),
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


def step_for(top):
    """1, 2 or 5 times a power of ten, at most 8 of which reach the top."""
    decade = 10.0 ** math.floor(math.log10(top))
    return next(step for step in (decade * k / 10 for k in (1, 2, 5, 10, 20)) if 8 * step >= top)


class Chart:
    """Logarithmic axes (y may be LINEAR); x = 0 has a place of its own at the left."""

    def __init__(self, title, x_words, y_words, points):
        xs, ys = sorted({p[0] for p in points}), [y for p in points for y in p[2:] if y > 0]
        positive = [math.log2(x) for x in xs if x > 0]
        self.zero = min(positive) - 2 if 0 in xs else None
        self.x_range = (self.zero if 0 in xs else min(positive), max(max(positive), min(positive) + 1))
        self.linear = y_words in LINEAR
        if self.linear:
            self.step = step_for(max(ys, default=1))
            self.y_range = (0, math.ceil(max(ys, default=1) / self.step) * self.step)
        else:
            self.y_range = (math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)) + 1e-9))
        self.out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" '
                    'font-size="13">' % (WIDTH, HEIGHT), '<rect width="100%" height="100%" fill="white"/>']
        self.text((LEFT + WIDTH - RIGHT) / 2, 22, title, "middle", 'font-size="16"')
        self.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x_words, "middle")
        self.text(14, TOP - 10, y_words, "start")
        free = 0  # on the left of it there are words
        for x in xs:
            wide = 8 * len(short(x))
            if self.x(x) - wide / 2 >= free:
                self.text(self.x(x), HEIGHT - BOTTOM + 18, short(x), "middle")
                free = self.x(x) + wide / 2
            self.rule(self.x(x), TOP, self.x(x), HEIGHT - BOTTOM)
        for value in self.marks():
            self.text(LEFT - 8, self.y(value) + 4, "{:,.0f}".format(value) if value >= 1 and value % 1 == 0 else "%.3g" % value, "end")
            self.rule(LEFT, self.y(value), WIDTH - RIGHT, self.y(value))

    def marks(self):
        low, high = self.y_range
        if not self.linear:
            return [10.0 ** decade for decade in range(low, high + 1)]
        return [self.step * k for k in range(round(high / self.step) + 1)]

    def x(self, value):
        at = math.log2(value) if value > 0 else self.zero
        low, high = self.x_range
        return LEFT + 12 + (at - low) / (high - low) * (WIDTH - LEFT - RIGHT - 24)

    def y(self, value):
        low, high = self.y_range
        at = value if self.linear else math.log10(max(value, 10.0 ** low))
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
    libraries = {entry[0] for entry in found}
    for k, (name, words, dash, points) in enumerate(found):
        colour = COLOURS.get(name, "#555555") if len(libraries) > 1 else LINE_COLOURS[k % len(LINE_COLOURS)]
        chart.line(points, colour, dash)
        chart.legend(k, name + (", " + words if words else ""), colour, dash)
    return "\n".join(chart.out) + "\n</svg>\n"


def ratio_of(by_peer):
    """Tern's median to the better of the others', or None."""
    medians = {name: statistics.median(values) for name, values in by_peer.items() if values}
    ours = medians.pop("Tern", None)
    return ours / min(medians.values()) if ours and medians else None


def shade(ratio):
    """Green where Tern is faster, red where it is slower, white at 1; a factor of 4 is full colour."""
    depth = min(1, abs(math.log(ratio, 4)))
    low = round(255 - 155 * depth)
    return "#%02x%02x%02x" % ((low, 255 - round(20 * depth), low) if ratio <= 1 else (255, low, low))


def heat_map(data, ranks):
    """Ratios by collective (rows; nonblocking ones below) and size (columns), or None."""
    cells = {}
    for key, by_peer in data.items():
        match = re.fullmatch(r"coll\.n%d_(?!pingpong)([a-z_]+?)(?:_(\d+[KM]?))?_us" % ranks, key)
        ratio = ratio_of(by_peer) if match else None
        if ratio:
            cells[match.group(1), match.group(2) or ""] = ratio
    if not cells:
        return None
    rows = sorted({row for row, column in cells}, key=lambda name: (name.startswith("i"), name))
    columns = sorted({column for row, column in cells}, key=lambda text: size(text) if text else 0)
    wide, high, left, top = 74, 20, 190, 62
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">'
           % (left + wide * len(columns) + 20, top + high * len(rows) + 14),
           '<rect width="100%" height="100%" fill="white"/>',
           '<text x="12" y="24" font-size="15">Collectives of %d ranks: time of Tern to the better other library</text>' % ranks]
    for k, column in enumerate(columns):
        out.append('<text x="%d" y="%d" text-anchor="middle">%s</text>'
                   % (left + wide * k + wide / 2, top - 8, column + " B" if column else "-"))
    for n, row in enumerate(rows):
        y = top + high * n
        out.append('<text x="%d" y="%d" text-anchor="end">%s</text>' % (left - 8, y + 14, row))
        for k, column in enumerate(columns):
            ratio = cells.get((row, column))
            if ratio:
                out.append('<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/><text x="%d" y="%d" text-anchor="middle">'
                           '%.2f</text>' % (left + wide * k + 1, y + 1, wide - 2, high - 2, shade(ratio),
                                            left + wide * k + wide / 2, y + 14, ratio))
    return "\n".join(out) + "\n</svg>\n"


def overlap_bars(data):
    """Bars of 0 to 100 %, a group for each operation, a bar for each library, or None."""
    found = {}
    for key, by_peer in data.items():
        match = re.fullmatch(r"(nbc(?:\.tcp)?(?:\.helper)?)\.(alone_)?n(\d+)_(\w+)_overlap_pct", key)
        if match:
            way = "".join(", " + word for part, word in (("tcp", "TCP"), ("helper", "helper")) if part in match.group(1))
            words = "%s, %s%s ranks%s" % (match.group(4), "one of " if match.group(2) else "", match.group(3), way)
            found[words] = {name: statistics.median(values) for name, values in by_peer.items() if values}
    if not found:
        return None
    names = sorted({name for by_peer in found.values() for name in by_peer}, key=lambda n: (n != "Tern", n))
    bar, left, top, wide = 9, 260, 60, 420
    group = bar * len(names) + 8
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">'
           % (left + wide + 60, top + group * len(found) + 20), '<rect width="100%" height="100%" fill="white"/>',
           '<text x="12" y="22" font-size="15">Part of the communication that goes on while the caller computes, %</text>']
    for k, name in enumerate(names):
        colour = COLOURS.get(name, "#555555")
        out.append('<rect x="%d" y="32" width="12" height="12" fill="%s"/><text x="%d" y="43">%s</text>'
                   % (left + 110 * k, colour, left + 110 * k + 18, name))
    for n, (words, by_peer) in enumerate(sorted(found.items())):
        y = top + group * n
        out.append('<text x="%d" y="%d" text-anchor="end">%s</text>' % (left - 8, y + group / 2, words))
        for k, name in enumerate(names):
            value = by_peer.get(name)
            if value is not None:
                out.append('<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/><text x="%.1f" y="%d" font-size="9">'
                           '%.0f</text>' % (left, y + bar * k, wide * value / 100 + 0.5, bar - 1,
                                            COLOURS.get(name, "#555555"), left + wide * value / 100 + 4, y + bar * k + 8, value))
    return "\n".join(out) + "\n</svg>\n"


def write(folder, name, picture, source):
    if picture is None:
        print("%s: no figures in %s" % (name, source))
        return
    with open(os.path.join(folder, name + ".svg"), "w", encoding="utf-8") as file:
        file.write(picture)
    print(os.path.join(folder, name + ".svg"))


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    with open(sys.argv[1]) as file:
        data = json.load(file)
    folder = sys.argv[2] if len(sys.argv) == 3 else "."
    os.makedirs(folder, exist_ok=True)
    for name, *chart in CHARTS:
        write(folder, name, draw(data, *chart), sys.argv[1])
    for ranks in (2, 4, 8, 16):
        write(folder, "collectives_%d" % ranks, heat_map(data, ranks), sys.argv[1])
    write(folder, "overlap", overlap_bars(data), sys.argv[1])


if __name__ == "__main__":
    main()
