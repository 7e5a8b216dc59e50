#!/usr/bin/env python3
"""Runs the benchmark programs with several MPI libraries in turn and compares them.

    bench/compare.py --tern PREFIX --build --json r.json --md r.md [--only REGEX] [--reps 5]

PREFIX is where Tern is installed, or a build folder of it. peers.json is a list of libraries, each an object with
    name    the column's title
    mpicc   the compiler wrapper (used with --build)
    bin     folder of the programs built with it
    modes   launch commands by mode, {n} ranks and {prog} program + arguments:
            pair      n ranks, one a core, shared memory
            pair_tcp  the same over TCP on the loopback interface
            pair_helper, pair_tcp_helper   with a thread that makes progress, on the second core
            pair_helper_apart, pair_tcp_helper_apart   with one for each rank, on the other rank's core
            free      n ranks, unbound, more ranks than cores allowed
            pair_idle  as pair, for programs that ask for that thread themselves, which then has the second core (Tern only)
            pair_tcp_basic, pair_tcp_served, pair_tcp_copy, pair_tcp_core, pair_tcp_nontemporal, pair_tcp_inline   over TCP,
                      with each way in which a target of one-sided communication serves others (TERN_RMA_PASSIVE), the last
                      three with each engine that copies. Rank 1 has
                      a core alone, rank 0 shares its with the helper threads; with pair_tcp_beside those have rank 1's (Tern only)
            pair_tcp_own   as pair_tcp, for programs that choose one of these ways for each window (Tern only)
            pair_msg, free_msg   as pair and free, small collectives by messages of schedules (Tern only)
            free_tcp  the same over TCP on the loopback interface
            hosts     n ranks dealt out to three hosts, over TCP; two ranks are on two hosts, a core each
            spawn     as free, for the programs of dynamic processes
            spawn_own   the same, for programs that give spawned processes Tern's variables (Tern only)
            parts     a program {part} of a build folder that measures parts of Tern alone (Tern only)
    env     environment variables for all of them (optional)
    build   the command that builds its programs, in place of the make of mpi/ with mpicc (optional)
$TERN and $BENCH_OUT in it are --tern and --out, $SYSTEM the folder of hosts.sh; other $VARIABLES come from the
environment. What is not an MPI can have a column as well: "bare socket" is what TCP itself gives (socket.c).

The launches on hosts are made on those of test/system/hosts.sh, when the whole is started by it, as in

    test/system/hosts.sh with 3 bench/compare.py --tern build --build --only hosts

and left out otherwise.

Every benchmark is launched once with each library, then once more with each, and so on, so that a noisy moment hits
all of them; a figure is the median over the launches, printed with the spread. A launch that fails or passes its time
limit counts as missing and is listed. A library that is not installed is left out, and so is a library's part of a
benchmark whose program it could not build.

On Linux, before each launch it waits (at most --quiet-wait seconds) for the machine's other processes to leave it
alone, and a launch during which they took more than --foreign percent of the processors is made again (--retries
times at most; the quietest one counts).
"""

import argparse
import json
import os
import re
import resource
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections import namedtuple

from suite import SUITE

HERE = os.path.dirname(os.path.abspath(__file__))

# What a launch gave: output, exit code, seconds, and the processors' time that others took meanwhile, in % and in s.
Outcome = namedtuple("Outcome", "text code wall share foreign")


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def figures_in(text):
    """The lines "key value" of a program's output."""
    lines = re.findall(r"^\s*([A-Za-z]\w*) (-?[\d.]+(?:e[+-]?\d+)?)\s*$", text, re.MULTILINE)
    return {key: float(value) for key, value in lines}


def busy_seconds():
    """Processor seconds used on the machine so far, by anyone, stolen ones too."""
    try:
        with open("/proc/stat") as stat:
            v = [int(x) for x in stat.readline().split()[1:9]]
    except OSError:
        return 0.0
    return (v[0] + v[1] + v[2] + v[5] + v[6] + v[7]) / os.sysconf("SC_CLK_TCK")


def own_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def wait_quiet(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        before = busy_seconds()
        time.sleep(0.25)
        if busy_seconds() - before <= 0.03:
            return


def output_of(process, limit):
    """Output and exit code (124 after the limit, when the whole process group goes)."""
    try:
        return process.communicate(timeout=limit)[0], process.returncode
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)
    try:
        return process.communicate(timeout=10)[0], 124
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0], 124


def launch(command, env, limit):
    busy, own, start = busy_seconds(), own_seconds(), time.monotonic()
    process = subprocess.Popen(shlex.split(command), env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               stdin=subprocess.DEVNULL, text=True, errors="replace", start_new_session=True)
    text, code = output_of(process, limit)
    wall = time.monotonic() - start
    foreign = max(0.0, (busy_seconds() - busy) - (own_seconds() - own))
    return Outcome(text, code, wall, 100 * foreign / (wall * (os.cpu_count() or 1)), foreign)


def log_launch(name, peer, rep, command, outcome):
    if not name:
        return
    with open(name, "a") as log:
        log.write("@@ %s rep %d code %d wall %.2f others %.1f%%: %s\n%s\n"
                  % (peer["name"], rep, outcome.code, outcome.wall, outcome.share, command, outcome.text))


def quiet_launch(bench, peer, rep, args):
    """The quietest of some launches, and its command."""
    prefix = os.path.abspath(args.prefix) + " " if args.prefix else ""
    program = prefix + os.path.join(peer["bin"], bench.program) + " " + bench.arguments
    part = bench.program + " " + bench.arguments
    command = prefix + peer["modes"][bench.mode].format(n=bench.ranks, prog=program, part=part)
    env = dict(os.environ, BENCH_PRIO="1" if prefix else "", **peer.get("env", {}))
    best = None
    for _ in range(args.retries + 1):
        wait_quiet(args.quiet_wait)
        now = launch(command, env, bench.seconds)
        log_launch(args.log, peer, rep, command, now)
        if best is None or (best.code != 0, best.share) > (now.code != 0, now.share):
            best = now
        if now.code == 124 or (now.code == 0 and now.foreign < 0.05) or now.share <= args.foreign:
            break
    return best, command


def can_run(bench, peer):
    if bench.mode == "hosts" and not os.environ.get("TERN_TEST_HOSTS"):
        return False
    folder = peer["modes"].get(bench.mode, "").partition("{part}")[0] if bench.mode == "parts" else peer["bin"]
    if "build" in peer and bench.arguments:
        return False  # what is no MPI knows no arguments of the programs
    return bench.mode in peer["modes"] and os.path.exists(os.path.join(folder, bench.program))


def run_benchmark(bench, peers, args, failed):
    """The figures of a benchmark, name -> library -> list, from args.reps launches with each library."""
    fresh, shares, dead = {}, [], {}  # dead: failures of a library; after two it is left out of this benchmark
    start = time.monotonic()
    for rep in range(args.reps):
        for peer in peers:
            name = peer["name"]
            if not can_run(bench, peer) or dead.get(name, 0) >= 2:
                continue
            outcome, command = quiet_launch(bench, peer, rep, args)
            shares.append(outcome.share)
            got = figures_in(outcome.text)
            if bench.prefix.startswith("wall") and outcome.code == 0:
                got = {"n%d_wall_ms" % bench.ranks: 1e3 * outcome.wall}
            if outcome.code != 0 or not got:
                dead[name] = dead.get(name, 0) + 1
                failed.append("%s: exit code %d after %.0f s: %s" % (name, outcome.code, outcome.wall, command))
                say("   ", failed[-1])
            for key, value in got.items():
                fresh.setdefault(bench.prefix + "." + key, {}).setdefault(name, []).append(value)
    say("   %.0f s, others took %.1f%% (worst launch %.1f%%)"
        % (time.monotonic() - start, statistics.mean(shares or [0]), max(shares or [0])))
    return fresh


def expand(x):
    """$VARIABLES in all strings of the peers' description."""
    if isinstance(x, str):
        return os.path.expandvars(x)
    if isinstance(x, dict):
        return {key: expand(value) for key, value in x.items()}
    return x


def before(args):
    """The first library of the description, Tern, as it was before: another build of it."""
    now = dict(os.environ)
    os.environ["TERN"] = os.path.abspath(args.before)
    with open(args.peers) as file:
        peer = expand(json.load(file)[0])
    os.environ.update(now)
    return dict(peer, name=peer["name"] + " before", bin=os.path.join(os.path.dirname(peer["bin"]), "before"))


def read_peers(args):
    peers = []
    with open(args.peers) as file:
        described = [expand(peer) for peer in json.load(file)]
    if args.before:
        described.insert(1, before(args))
    for peer in described:
        if args.skip_peer and re.search(args.skip_peer, peer["name"]):
            continue
        if shutil.which(peer["mpicc"]):
            peers.append(peer)
        else:
            say("## %s is left out: there is no %s" % (peer["name"], peer["mpicc"]))
    return peers


def build(peers, log):
    for peer in peers:
        command = ["make", "-s", "-k", "-C", "mpi", "MPICC=" + peer["mpicc"], "OUT=" + os.path.abspath(peer["bin"])]
        if "build" in peer:
            command = shlex.split(peer["build"])
            os.makedirs(peer["bin"], exist_ok=True)
        made = subprocess.run(command, cwd=HERE, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if log:
            with open(log, "a") as file:
                file.write("@@ building with %s\n%s\n" % (peer["name"], made.stdout))
        missing = re.findall(r"^make: \*\*\* .*/(\w+)\] Error", made.stdout, re.MULTILINE)
        if made.returncode:
            say("## did not build with %s: %s" % (peer["name"], " ".join(missing) or made.stdout))


def table(data, names, failed):
    """All figures as a table in Markdown: median (smallest..largest)."""
    lines = ["| figure | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for key, by_peer in data.items():
        cells = []
        for values in (by_peer.get(name) for name in names):
            cells.append("%.4g (%.3g..%.3g)" % (statistics.median(values), min(values), max(values)) if values else "-")
        lines.append("| %s | %s |" % (key, " | ".join(cells)))
    if failed:
        lines += ["", "Launches that failed or ran past their limit:", ""] + ["- `%s`" % words for words in failed]
    return "\n".join(lines) + "\n"


def read_arguments():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--tern", default=os.environ.get("TERN", ""), help="where Tern is ($TERN)")
    ap.add_argument("--before", default="", help="another build of Tern, which gets a column of its own (summary.py --before)")
    ap.add_argument("--out", default=os.environ.get("BENCH_OUT", "bench-programs"), help="folder of the programs")
    ap.add_argument("--peers", default=os.path.join(HERE, "peers.json"))
    ap.add_argument("--only", default="", help="regular expression on 'PREFIX PROGRAM RANKS'")
    ap.add_argument("--skip-peer", default="", help="regular expression on the names")
    ap.add_argument("--reps", type=int, default=5)
    ap.add_argument("--json", default="", help="all samples; figures of an earlier run stay unless measured again")
    ap.add_argument("--md", default="", help="the table; else it is printed")
    ap.add_argument("--append", action="store_true", help="add to the samples already in --json")
    ap.add_argument("--build", action="store_true", help="build the programs for every library first")
    ap.add_argument("--quiet-wait", type=float, default=15)
    ap.add_argument("--retries", type=int, default=2)
    ap.add_argument("--foreign", type=float, default=5)
    ap.add_argument("--prefix", default="", help="command put before the launcher and before the program (prio.sh)")
    ap.add_argument("--log", default="", help="append every launch's output to this file")
    args = ap.parse_args()
    os.environ["TERN"] = os.path.abspath(args.tern) if args.tern else ""
    os.environ["BENCH_OUT"] = os.path.abspath(args.out)
    os.environ["SYSTEM"] = os.path.join(os.path.dirname(HERE), "test", "system")
    return args


def main():
    args = read_arguments()
    peers = read_peers(args)
    if args.build:
        build(peers, args.log)
    data, failed = {}, []
    if args.json and os.path.exists(args.json):
        with open(args.json) as file:
            data = json.load(file)
    for bench in SUITE:
        if not re.search(args.only, "%s %s %d" % (bench.prefix, bench.program, bench.ranks)):
            continue
        say("## %s %s %d %s  load %s" % (bench.prefix, bench.mode, bench.ranks, bench.program, os.getloadavg()[0]))
        for key, by_peer in run_benchmark(bench, peers, args, failed).items():
            for name, values in by_peer.items():
                mine = data.setdefault(key, {})
                mine[name] = (mine.get(name, []) if args.append else []) + values
        if args.json:
            with open(args.json, "w") as file:
                json.dump(data, file, indent=0)
    text = table(data, [peer["name"] for peer in peers], failed)
    if args.md:
        with open(args.md, "w") as file:
            file.write(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
