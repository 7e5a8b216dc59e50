#!/usr/bin/env python3
"""Measures what strangers who flood a job's listening ports cost its messages.

    bench/hostile.py BUILD [--rounds 15] [--rate 200] [--bytes 8,65536]

BUILD is a build folder of Tern. Two ranks exchange messages over tcp (hostile_job.c) while a flooder, a process with
nice 19, connects to the ports that the ranks listen at, on 127.0.0.1 only, `--rate` times a second at most. In turn it

    sends noise and hangs up,
    begins a handshake and then says a byte now and then, of which it holds 40 (slow loris),
    begins a handshake with the nonce of an earlier one and repeats its proof (replay),
    answers the challenge by a proof with another secret.

Flooder and ranks share the machine, so the flooder's own work slows the ranks down whatever they do. Each round
therefore measures three times, in changing order: quiet; with the flooder at work on a decoy, a process with nice 19
that accepts, reads and hangs up as a rank would; and with the flooder at work on the ranks. Printed are medians over
the rounds, and the medians of each round's ratios: flood / decoy is what it costs that the strangers come to the ranks,
flood / quiet includes the processor time of the flooder. The goal is 1.05.
"""

import argparse
import hashlib
import mmap
import os
import random
import selectors
import signal
import socket
import statistics
import struct
import subprocess
import sys
import time

COUNT_MAX = 50000  # connections of one flooder
HELD = 40  # connections of the slow kind, all ports together
SETTLE = 0.3  # s, until the flood is what it will be

tally = mmap.mmap(-1, 16)  # shared with the flooders: connections made, challenges answered


def count_one(place):
    struct.pack_into("Q", tally, place, 1 + struct.unpack_from("Q", tally, place)[0])


# ---- who floods ----


def hello(rank, nonce):
    """To this rank, as if from the other: it costs the rank a challenge (src/base/handshake.c)."""
    return struct.pack(">IHHQQ", 0x5445524E, 1, 1, 1 - rank, rank) + nonce


class Flooder:
    """One thread; every socket is nonblocking, and closed after a second or when its place is needed."""

    def __init__(self, ports, rate):
        self.ports, self.rate = ports, rate
        self.selector = selectors.DefaultSelector()
        self.held, self.count = [], 0
        self.nonce = hashlib.sha256(b"an earlier handshake").digest()

    def connect(self, port):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(("127.0.0.1", port))
        return s

    def close(self, s):
        try:
            self.selector.unregister(s)
        except KeyError:
            pass
        s.close()

    def answer(self, s, proof):
        """The challenge has come, or the end."""
        try:
            if s.recv(64):
                s.send(proof)
                count_one(8)
                return
        except OSError:
            pass
        self.close(s)

    def one(self):
        kind, rank = self.count % 4, self.count // 4 % len(self.ports)
        self.count += 1
        s = self.connect(self.ports[rank])
        first = random.randbytes(1 + random.randrange(200))
        if kind == 1:
            first = hello(rank, self.nonce)[: random.randrange(1, 40)]
        elif kind:
            first = hello(rank, self.nonce if kind == 2 else random.randbytes(32))
        self.selector.register(s, selectors.EVENT_WRITE, (kind, first, time.monotonic()))

    def connected(self, s, kind, first):
        try:
            s.send(first)
            count_one(0)
        except OSError:
            kind = 0
        if kind == 1:
            self.selector.unregister(s)
            self.held.append(s)
            if len(self.held) > HELD:
                self.held.pop(0).close()
        elif kind:
            proof = hashlib.sha256(b"proof" if kind == 2 else first).digest()
            self.selector.modify(s, selectors.EVENT_READ, (kind, proof, time.monotonic()))
        else:
            self.close(s)

    def drip(self):
        for s in list(self.held):
            try:
                s.send(b"\0")
            except OSError:
                s.close()
                self.held.remove(s)

    def events(self, wait):
        for key, mask in self.selector.select(wait):
            kind, text, _ = key.data
            if mask & selectors.EVENT_WRITE:
                self.connected(key.fileobj, kind, text)
            else:
                self.answer(key.fileobj, text)

    def expire(self, now):
        for key in list(self.selector.get_map().values()):
            if now - key.data[2] > 1:
                self.close(key.fileobj)

    def run(self):
        begin = last = time.monotonic()
        while os.getppid() != 1:
            now = time.monotonic()
            if self.count < min((now - begin) * self.rate, COUNT_MAX):
                self.one()
            if now - last > 0.25:
                last = now
                self.drip()
                self.expire(now)
            wait = begin + self.count / self.rate - time.monotonic()
            self.events(min(0.1, max(0.0, wait)) if self.count < COUNT_MAX else 0.1)


def decoy(listeners):
    """Accepts, reads what comes, answers a challenge's length of bytes, hangs up."""
    selector = selectors.DefaultSelector()
    for s in listeners:
        s.setblocking(False)
        selector.register(s, selectors.EVENT_READ, True)
    guests = []
    while os.getppid() != 1:
        for key, _ in selector.select(1):
            s = key.fileobj
            if key.data:
                guest, _ = s.accept()
                guest.setblocking(False)
                selector.register(guest, selectors.EVENT_READ, False)
                guests.append(guest)
            else:
                try:
                    got = s.recv(200)
                    if len(got) == 56:
                        s.send(bytes(64))
                    done = not got or len(got) == 32
                except OSError:
                    done = True
                if done:
                    selector.unregister(s)
                    guests.remove(s)
                    s.close()


def child(work):
    """Runs work() in a process of the lowest priority, in a group of its own; its pid."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        os.nice(19)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        work()
        status = 0
    finally:
        os._exit(status)


def end(pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


# ---- who is flooded ----


def ports_of(pid):
    """The ports on 127.0.0.1 that this process listens at."""
    names = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    inodes = {name[8:-1] for name in names if name.startswith("socket:[")}
    ports = []
    with open("/proc/net/tcp") as lines:
        for field in map(str.split, list(lines)[1:]):
            where, port = field[1].split(":")
            if field[3] == "0A" and field[9] in inodes and where == "0100007F":
                ports.append(int(port, 16))
    return ports


class Job:
    def __init__(self, build):
        names = dict(os.environ, TERN_TRANSPORTS="self,tcp", TERN_TCP_INTERFACES="lo")
        command = [f"{build}/bin/mpiexec", "--timeout", "600", "-n", "2", f"{build}/bench/hostile_job"]
        self.process = subprocess.Popen(command, env=names, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        words = self.process.stdout.readline().split()
        if words[:1] != ["pids"]:
            sys.exit("hostile.py: the job has not started")
        self.ports = [port for pid in words[1:] for port in ports_of(pid)]
        if len(self.ports) != 2:
            sys.exit(f"hostile.py: the ranks listen at {len(self.ports)} ports of 127.0.0.1, not at one each")

    def measure(self, size):
        self.process.stdin.write(f"{size}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit("hostile.py: the job has ended")
        return float(line)

    def close(self):
        self.process.stdin.close()
        return self.process.wait()


# ---- measuring ----


def sample(job, size, ports, rate):
    """Microseconds, with the flooder at work on these ports, if any."""
    if not ports:
        return job.measure(size)
    pid = child(lambda: Flooder(ports, rate).run())
    try:
        time.sleep(SETTLE)
        return job.measure(size)
    finally:
        end(pid)


def rounds(job, size, decoys, args):
    samples = {"quiet": [], "decoy": [], "flood": []}
    targets = {"quiet": [], "decoy": decoys, "flood": job.ports}
    for i in range(args.rounds):
        order = list(targets)
        random.shuffle(order)
        for name in order:
            samples[name].append(sample(job, size, targets[name], args.rate))
    return samples


def report(size, samples):
    for name, values in samples.items():
        print(f"{name}_{size}_us {statistics.median(values):.2f}")
    for other in ("decoy", "quiet"):
        ratios = [a / b for a, b in zip(samples["flood"], samples[other])]
        low, _, high = statistics.quantiles(ratios, n=4)
        print(f"flood_to_{other}_{size} {statistics.median(ratios):.3f}   (quartiles {low:.3f} {high:.3f})")


def report_tally():
    connections, answers = struct.unpack("QQ", tally)
    print(f"strangers {connections}   (decoys' too; challenges answered: {answers})")
    if not connections or not answers:
        sys.exit("hostile.py: the strangers did not get through")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--rate", type=int, default=200, help="connections a second, at most 1000")
    parser.add_argument("--bytes", default="8,65536")
    args = parser.parse_args()
    args.rate = max(1, min(args.rate, 1000))
    listeners = [socket.create_server(("127.0.0.1", 0), backlog=128) for _ in range(2)]
    decoy_pid = child(lambda: decoy(listeners))
    try:
        job = Job(args.build)
        for size in map(int, args.bytes.split(",")):
            report(size, rounds(job, size, [s.getsockname()[1] for s in listeners], args))
        report_tally()
        sys.exit(job.close())
    finally:
        end(decoy_pid)


if __name__ == "__main__":
    main()
