#!/usr/bin/env python3
"""Compares the figures of a run of compare.py with the goals of suite.py.

    bench/summary.py r.json [--md]
    bench/summary.py r.json --before

For each goal (of a group of figures: their number, and the worst one's name): the medians, the ratio of Tern's to the better of the others', the bound, and whether it is met. The
exit code is 1 when a goal is missed, 2 when a figure is missing. --md prints the table in Markdown.

--before: of a run of compare.py --before: how the times of Tern compare with those of the build before, by kind of benchmark: the median,
and the figures that differ most to the worse. Above 1 it takes longer, or moves less, than before.
"""

import argparse
import json
import re
import statistics
import sys

from suite import GOALS

OURS, BARE, BEFORE = "Tern", "bare socket", "Tern before"
MORE_IS_BETTER = r"(MBs|GBs|Mmsgs|Mops|ops|per_s|per_round|overlap\d*\w*_pct|avail_pct|count|(un)?pack_hand|to_one|slowest)$"
WORST_OF_BEFORE = 5  # figures of a kind that are printed


def judge(goal, by_peer):
    """(Tern's median, the better of the others' medians, what the bound is compared with, the verdict)."""
    medians = {name: statistics.median(values) for name, values in by_peer.items() if values}
    ours, bare = medians.pop(OURS, None), medians.pop(BARE, None)
    medians.pop(BEFORE, None)
    better = (min if goal.sense == "<=" else max)(medians.values(), default=None)
    if goal.kind == "socket":
        better = bare
    if goal.kind == "value":
        result = ours
    else:
        result = ours / better if ours is not None and better else None
    if result is None:
        return ours, better, None, "no figure"
    met = result <= goal.bound if goal.sense == "<=" else result >= goal.bound
    return ours, better, result, "met" if met else "MISSED"


def judge_own(goal, data):
    """Tern's medians of the two figures that the key names, "one / other": as judge."""
    medians = [data.get(key, {}).get(OURS) for key in goal.key.split(" / ")]
    one, other = (statistics.median(values) if values else None for values in medians)
    if one is None or not other:
        return one, other, None, "no figure"
    met = one / other <= goal.bound if goal.sense == "<=" else one / other >= goal.bound
    return one, other, one / other, "met" if met else "MISSED"


def judge_many(goal, data):
    """(how many figures, the worst one's name, the median or the worst of their ratios or values, the verdict)."""
    ratios = []
    which, _, one_kind = goal.kind.partition("_")
    for key, by_peer in data.items():
        if re.fullmatch(goal.key, key):
            result = judge(goal._replace(key=key, kind=one_kind or "ratio"), by_peer)[2]
            ratios += [] if result is None else [(result, key)]
    if not ratios:
        return None, None, None, "no figure"
    worst = (max if goal.sense == "<=" else min)(ratios)
    result = worst[0] if which == "worst" else statistics.median(ratio for ratio, key in ratios)
    met = result <= goal.bound if goal.sense == "<=" else result >= goal.bound
    return len(ratios), worst[1], result, "met" if met else "MISSED"


def number(x):
    return "-" if x is None else "%.4g" % x


def rows(data):
    for goal in GOALS:
        if re.match("median|worst", goal.kind):
            count, worst, result, verdict = judge_many(goal, data)
            bound = "%s %s %g" % (goal.kind, goal.sense, goal.bound)
            yield goal.words, worst or goal.key, "%s figures" % (count or 0), "-", number(result), bound, verdict
            continue
        ours, better, result, verdict = judge_own(goal, data) if goal.kind == "own" else judge(goal, data.get(goal.key, {}))
        bound = "%s %s %g" % (goal.kind, goal.sense, goal.bound)
        yield goal.words, goal.key, number(ours), number(better), number(result), bound, verdict


def print_before(data):
    """Kind by kind, the part of the name before the first dot."""
    kinds = {}
    for key, by_peer in data.items():
        if by_peer.get(OURS) and by_peer.get(BEFORE):
            ours, before = statistics.median(by_peer[OURS]), statistics.median(by_peer[BEFORE])
            one, other = (before, ours) if re.search(MORE_IS_BETTER, key) else (ours, before)
            if one > 0 and other > 0:
                kinds.setdefault(key.partition(".")[0], []).append((one / other, key))
    if not kinds:
        sys.exit("no figures of a build before: was it measured with compare.py --before?")
    for kind, ratios in kinds.items():
        ratios.sort(reverse=True)
        print("%-8s %5d figures, median %.3f" % (kind, len(ratios), statistics.median(ratio for ratio, key in ratios)))
        for ratio, key in ratios[:WORST_OF_BEFORE]:
            print("           %.3f  %s" % (ratio, key))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("json")
    ap.add_argument("--md", action="store_true")
    ap.add_argument("--before", action="store_true")
    args = ap.parse_args()
    with open(args.json) as file:
        data = json.load(file)
    if args.before:
        print_before(data)
        return
    table = list(rows(data))
    heading = ("goal", "figure", OURS, "better other", "result", "bound", "")
    if args.md:
        print("| %s |\n|%s" % (" | ".join(heading), "---|---|---:|---:|---:|---|---|"))
        for row in table:
            print("| %s | `%s` | %s |" % (row[0], row[1], " | ".join(row[2:])))
    else:
        widths = [max(len(row[k]) for row in table + [heading]) for k in range(len(heading))]
        for row in [heading] + table:
            print("  ".join(cell.ljust(width) if k in (0, 1, 5, 6) else cell.rjust(width)
                            for k, (cell, width) in enumerate(zip(row, widths))).rstrip())
    verdicts = [row[6] for row in table]
    print("\n%d met, %d missed, %d without a figure" % tuple(map(verdicts.count, ("met", "MISSED", "no figure"))))
    sys.exit(1 if "MISSED" in verdicts else 2 if "no figure" in verdicts else 0)


if __name__ == "__main__":
    main()
